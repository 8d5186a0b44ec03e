"""What will a sweep cost? Frames, hours, disk and memory, told before it begins.

Speeds are measured: in runs of the same agent that the sweep already has, or in a few seconds of
playing and learning. Sizes follow from the settings, and are upper bounds.
"""

import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np

from ezgreedy.agents.presets import Preset
from ezgreedy.atari.lanes import make
from ezgreedy.replay.frames import required_bytes
from ezgreedy.replay.sequence_memory import BYTES_PER_OBSERVATION
from ezgreedy.running.settings import RunSettings
from ezgreedy.running.sweep_directory import DONE, FAILED, RunState
from ezgreedy.running.sweep_jobs import LocalEngine, Room
from ezgreedy.running.sweeps import Member

SECONDS_WITHOUT_ASKING = 3600.0
MOST_SHARE_OF_DISK = 0.9
MOST_SHARE_OF_MEMORY = 0.8

# Python, PyTorch and games: 0.48 GB were seen, part of which processes share.
_PROCESS_BYTES = 500_000_000
# Two checkpoints of Atari's networks with their optimiser, by their number of weights.
# Of a trained agent, in a game of middling length; the longest take 108,000.
_FRAMES_OF_EPISODE = 4_000
_CHECKPOINT_BYTES = 250_000_000
_SMALL_CHECKPOINT_BYTES = 20_000_000
_SMALL_FRAME = 2000  # pixels; MinAtar has 1,000 at most
_BYTES_BESIDE_STEP, _BYTES_BESIDE_WINDOW = 13, 104
# Enough for a speed, and soon learned from.
_HASTY_TRANSITIONS, _HASTY_OBSERVATIONS, _HASTY_LANES = 10_000, 100_000, 16
_MOST_WARM_UP_SECONDS = 20.0  # to the first updates, which compile and load


@dataclass(frozen=True)
class Forecast:
    """What is still to be spent.

    Args:
        num_runs: that are not done.
        frames: that they have still to play, evaluations apart.
        seconds: that it takes; None if no speed could be measured.
        disk: bytes that all of them leave, at most.
        memory: bytes that those running at once take, at most.
        free_disk: bytes there are.
        free_memory: bytes there are; None if runs begin only where they fit.
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
        """Why somebody should be asked before this begins; empty if there is no reason."""
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
        sizes = f"up to {size(self.disk)} of disk and {size(self.memory)} of memory"
        return f"{self.num_runs} runs, {self.frames:,} frames to play: {time_needed}, {sizes}"


def frame_shapes(members: Sequence[Member]) -> dict[str, tuple[int, ...]]:
    """The shape of one frame in every game; a game that does not exist is refused."""
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
    room: Room | None = None,
) -> Forecast:
    """The cost of the runs that are not done.

    Args:
        members: all runs.
        states: how those are that are known, by id.
        shapes: from `frame_shapes`.
        probed: speeds of agents that no run has shown, in frames a second.
        num_jobs: runs at once.
        directory: where their files go.
        room: what there is for them; None for this machine's.
    """
    room = LocalEngine().room if room is None else room
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
    sizes = [replay_bytes(m.settings, shapes[m.settings.game]) for m in to_do]
    disk = sum(
        min(largest, _rows_kept(m.settings, largest)) + _checkpoint(shapes[m.settings.game])
        for m, largest in zip(to_do, sizes, strict=True)
    )
    needs = [memory_bytes(m.settings, shapes[m.settings.game]) for m in to_do]
    return Forecast(
        num_runs=len(to_do),
        frames=frames,
        # Speeds are those of one process; more of them than cores would only share.
        seconds=seconds / max(min(num_jobs, room.num_runs, len(to_do)), 1) if is_known else None,
        disk=disk,
        memory=sum(sorted(needs, reverse=True)[:num_jobs]),
        free_disk=shutil.disk_usage(_existing(directory)).free,
        free_memory=room.memory,
    )


def left(
    states: Sequence[RunState], num_jobs: int, speeds: Mapping[str, float] | None = None
) -> float | None:
    """Seconds until all runs are done that have not failed; None if no run has shown a speed.

    Args:
        states: of these runs.
        num_jobs: how many go on at once.
        speeds: of agents, where more runs than these tell; None for what these tell.
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
    """The median speed of each agent, by its runs."""
    seen: dict[str, list[float]] = {}
    for run in states:
        if run.speed:
            seen.setdefault(run.agent, []).append(run.speed)
    return {agent: statistics.median(speeds) for agent, speeds in seen.items()}


def measure_speed(settings: RunSettings, seconds: float) -> float:
    """Frames a second of an agent that plays and learns, on this machine as it is now."""
    from ezgreedy.running.driver import require_device
    from ezgreedy.running.training import Training

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
    """The same run with a small replay that is soon learned from."""
    agent = settings.agent
    if isinstance(agent, Preset):
        agent = replace(
            agent,
            least_replay=min(agent.least_replay, 10 * agent.learner.batch_size),
            replay_capacity=min(agent.replay_capacity, _HASTY_TRANSITIONS),
        )
        return replace(settings, agent=agent)
    agent = replace(
        agent,
        least_windows=1,
        replay_capacity=min(agent.replay_capacity, _HASTY_OBSERVATIONS),
    )
    # A window takes its length in every lane.
    return replace(settings, agent=agent, lanes=min(settings.lanes, _HASTY_LANES))


def memory_bytes(settings: RunSettings, frame_shape: tuple[int, ...]) -> int:
    """Memory that the process of a run takes when its replay is full, at most."""
    return replay_bytes(settings, frame_shape) + _PROCESS_BYTES


def replay_bytes(settings: RunSettings, frame_shape: tuple[int, ...]) -> int:
    """Memory that a run's replay takes when it is full."""
    agent = settings.agent
    if isinstance(agent, Preset):
        return required_bytes(agent.replay_capacity, frame_shape)
    cuts = agent.sequences
    each = min(BYTES_PER_OBSERVATION, prod(frame_shape) + 1)
    beside = cuts.blocks_per_window * _BYTES_BESIDE_STEP
    beside += (8 * agent.memory_size + _BYTES_BESIDE_WINDOW) // cuts.stride
    return agent.replay_capacity * (each + beside)


def duration(seconds: float) -> str:
    """A time in the unit that people would choose."""
    for unit, length in (("years", 31_557_600.0), ("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.0f} s"


def size(num_bytes: int) -> str:
    """Bytes in the unit that people would choose."""
    for unit, length in (("TB", 1e12), ("GB", 1e9)):
        if num_bytes >= length:
            return f"{num_bytes / length:.1f} {unit}"
    return f"{num_bytes / 1e6:.0f} MB"


def _evaluations_too(settings: RunSettings) -> float:
    """Frames with evaluations for each frame of training; both are taken to cost the same."""
    evaluation = settings.evaluation
    frames = evaluation.frames
    if evaluation.episodes is not None:
        frames = min(frames, evaluation.episodes * _FRAMES_OF_EPISODE)
    return 1.0 + evaluation.num_due(settings.frames, settings.frames) * frames / settings.frames


def _rows_kept(settings: RunSettings, largest: int) -> int:
    """What a replay that is never filled has on disk."""
    steps = settings.frames // settings.protocol.frame_skip + 1
    return largest * steps // settings.agent.replay_capacity + 1


def _checkpoint(frame_shape: tuple[int, ...]) -> int:
    is_small = prod(frame_shape) <= _SMALL_FRAME
    return _SMALL_CHECKPOINT_BYTES if is_small else _CHECKPOINT_BYTES


def _existing(directory: Path) -> Path:
    """The directory, or the nearest one above it that is there."""
    directory = directory.absolute()
    return next(path for path in (directory, *directory.parents) if path.exists())
