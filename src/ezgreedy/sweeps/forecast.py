"""What will a sweep cost? Frames, hours, disk and memory, estimated before it starts.

Speeds are measured in runs of the same agent that the sweep already has, or in a few seconds of
playing and learning. Sizes follow from the settings and are upper bounds.
"""

import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.games.registry import make
from ezgreedy.runs.memory import memory_bytes
from ezgreedy.sweeps.definitions import Member
from ezgreedy.sweeps.jobs import Capacity, LocalEngine
from ezgreedy.sweeps.sweep_directory import DONE, FAILED, RunState
from ezgreedy.units import counted, duration, size

SECONDS_WITHOUT_ASKING = 3600.0
MOST_SHARE_OF_DISK = 0.9
MOST_SHARE_OF_MEMORY = 0.8

# Two checkpoints of Atari's networks with their optimiser, by their number of weights.
# Episode of a trained agent in a game of medium length; the longest take 108,000.
_FRAMES_OF_EPISODE = 4_000
_CHECKPOINT_BYTES = 250_000_000
_SMALL_CHECKPOINT_BYTES = 20_000_000
_SMALL_FRAME = 2000  # pixels; MinAtar has 1,000 at most
_MOST_WARM_UP_SECONDS = 20.0  # until the first updates, which compile and load


@dataclass(frozen=True)
class Forecast:
    """The remaining cost of a sweep.

    Args:
        num_runs: number of unfinished runs.
        frames: frames left to play, without evaluations.
        seconds: time it will take; None if no speed could be measured.
        disk: bytes on disk of all runs, at most.
        memory: bytes of memory of concurrent runs, at most.
        free_disk: free bytes on disk.
        free_memory: free bytes of memory; None if runs start only where they fit.
    """

    num_runs: int
    frames: int
    seconds: float | None
    disk: int
    memory: int
    free_disk: int
    free_memory: int | None

    @property
    def doubts(self) -> list[str]:
        """Reasons to ask the user before starting; empty if there are none."""
        found = []
        if self.seconds is None:
            found.append("its speed could not be measured")
        elif self.seconds > SECONDS_WITHOUT_ASKING:
            found.append(f"it takes about {duration(self.seconds)}")
        if self.disk > MOST_SHARE_OF_DISK * self.free_disk:
            found.append(f"{size(self.disk)} may not fit on the disk ({size(self.free_disk)} free)")
        there = self.free_memory
        if there is not None and self.memory > MOST_SHARE_OF_MEMORY * there:
            found.append(f"{size(self.memory)} may not fit in memory ({size(there)} free)")
        return found

    def __str__(self) -> str:
        time_needed = (
            "an unknown time" if self.seconds is None else f"about {duration(self.seconds)}"
        )
        runs = counted(self.num_runs, "run")
        sizes = f"up to {size(self.disk)} of disk and {size(self.memory)} of memory"
        return f"{runs}, {self.frames:,} frames to play: {time_needed}, {sizes}"


def frame_shapes(members: Sequence[Member]) -> dict[str, tuple[int, ...]]:
    """The shape of a frame in every game; refuses games that do not exist."""
    protocols = {member.settings.game: member.settings.protocol for member in members}
    rng = np.random.default_rng(0)
    return {game: make(game, protocol, rng=rng).frame_shape for game, protocol in protocols.items()}


def forecast(
    members: Sequence[Member],
    states: Mapping[str, RunState],
    shapes: Mapping[str, tuple[int, ...]],
    probed: Mapping[str, float],
    num_jobs: int,
    directory: Path,
    capacity: Capacity | None = None,
    *,
    keeps_replay: bool = False,
) -> Forecast:
    """The cost of the unfinished runs.

    Args:
        members: all runs of the sweep.
        states: states of known runs, by id.
        shapes: frame shapes, from `frame_shapes`.
        probed: measured speeds of agents without runs, in frames per second.
        num_jobs: number of concurrent runs.
        directory: directory of the sweep.
        capacity: available resources; None for those of this machine.
        keeps_replay: whether finished runs keep their replays; otherwise only concurrent ones have
            them.
    """
    capacity = LocalEngine().capacity if capacity is None else capacity
    speeds = known_speeds(list(states.values()))
    to_do = [m for m in members if m.id not in states or states[m.id].state != DONE]
    frames, seconds, is_known = 0, 0.0, True
    for member in to_do:
        played = states[member.id].frames if member.id in states else 0
        still, agent = max(member.settings.frames - played, 0), member.settings.agent.name
        frames += still
        if agent in speeds:
            seconds += still / speeds[agent]
        elif agent in probed:
            seconds += still * _evaluations_too(member.settings) / probed[agent]
        else:
            is_known = False
    stored = [_disk_bytes(m.settings, shapes[m.settings.game]) for m in to_do]
    replays = sorted((each.replay for each in stored), reverse=True)
    disk = sum(each.checkpoints for each in stored)
    disk += sum(replays if keeps_replay else replays[:num_jobs])
    # Speeds are for one process; more processes than cores would only share them.
    num_at_once = max(min(num_jobs, capacity.num_runs, len(to_do)), 1)
    needs = [
        capacity.memory_per_run or memory_bytes(m.settings, shapes[m.settings.game]) for m in to_do
    ]
    return Forecast(
        num_runs=len(to_do),
        frames=frames,
        seconds=seconds / num_at_once if is_known else None,
        disk=disk,
        memory=sum(sorted(needs, reverse=True)[:num_jobs]),
        free_disk=shutil.disk_usage(_existing(directory)).free,
        free_memory=capacity.memory,
    )


def left(
    states: Sequence[RunState], num_jobs: int, speeds: Mapping[str, float] | None = None
) -> float | None:
    """Seconds until all runs that have not failed are done; None if no speed is known.

    Args:
        states: states of the runs.
        num_jobs: number of concurrent runs.
        speeds: speeds of agents; None to use those of these runs.
    """
    speeds = known_speeds(states) if speeds is None else speeds
    if not speeds:
        return None
    usual = statistics.median(speeds.values())
    waiting = [run for run in states if run.state not in (DONE, FAILED)]
    seconds = sum(
        max(run.frames_to_play - run.frames, 0) / speeds.get(run.agent, usual) for run in waiting
    )
    return seconds / max(min(num_jobs, len(waiting)), 1)


def known_speeds(states: Sequence[RunState]) -> dict[str, float]:
    """The median speed of each agent over its runs."""
    seen: dict[str, list[float]] = {}
    for run in states:
        if run.speed:
            seen.setdefault(run.agent, []).append(run.speed)
    return {agent: statistics.median(speeds) for agent, speeds in seen.items()}


def measure_speed(settings: RunSettings, seconds: float) -> float:
    """Frames per second of an agent that plays and learns on this machine now."""
    from ezgreedy.runs.run_loop import require_device
    from ezgreedy.runs.training import Training

    require_device(settings)
    training = Training(hasty(settings))
    end = time.monotonic() + _MOST_WARM_UP_SECONDS
    while training.agent.num_updates < 2 and time.monotonic() < end:
        training.step()
    begin, before = time.monotonic(), training.frames
    while training.frames == before or time.monotonic() < begin + seconds:
        training.step()
    return (training.frames - before) / (time.monotonic() - begin)


def hasty(settings: RunSettings) -> RunSettings:
    """The same run with a small replay and early updates."""
    lanes = min(settings.lanes, settings.agent.hurried_lanes)
    return replace(settings, agent=settings.agent.hurried(), lanes=lanes)


def _evaluations_too(settings: RunSettings) -> float:
    """Frames, evaluations included, per training frame; both are assumed to cost the same."""
    evaluation = settings.evaluation
    frames = evaluation.frames
    if evaluation.episodes is not None:
        frames = min(frames, evaluation.episodes * _FRAMES_OF_EPISODE)
    return 1.0 + evaluation.num_due(settings.frames, settings.frames) * frames / settings.frames


class _DiskBytes(NamedTuple):
    replay: int  # as far as it is ever filled
    checkpoints: int  # two, without the replay


def _disk_bytes(settings: RunSettings, frame_shape: tuple[int, ...]) -> _DiskBytes:
    """Size of an unfinished run on disk."""
    is_small = prod(frame_shape) <= _SMALL_FRAME
    steps = settings.frames // settings.protocol.frame_skip + 1
    checkpoints = _SMALL_CHECKPOINT_BYTES if is_small else _CHECKPOINT_BYTES
    return _DiskBytes(settings.agent.replay_bytes(frame_shape, steps), checkpoints)


def _existing(directory: Path) -> Path:
    """The directory, or its nearest existing parent."""
    directory = directory.absolute()
    return next(path for path in (directory, *directory.parents) if path.exists())
