"""Runs on Ray from beginning to end: the same loop, directory and files as in one process.

engine.json, beside config.json, says that a run is Ray's and how it was spread, so that resuming
needs no options. It is no part of the run's identity.
"""

import json
from contextlib import AbstractContextManager
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.agents.sequence_presets import SequencePreset
from ezgreedy.atari.lanes import Lanes
from ezgreedy.fleet.coordinator import CALLS_IN_FLIGHT, FleetTraining
from ezgreedy.fleet.roles import make_learner, preset_of
from ezgreedy.fleet.session import (
    LEAST_STORE_MEGABYTES,
    MEGABYTE,
    ClusterSession,
    LocalSession,
    require_ray,
    require_store,
)
from ezgreedy.fleet.settings import FleetSettings, spread
from ezgreedy.results.runs import ENGINE_FILE
from ezgreedy.results.store import write_json_atomically
from ezgreedy.running.driver import DriveOptions, drive, require_device, require_nobody_else
from ezgreedy.running.enclosure import require_apart
from ezgreedy.running.run_directory import RunDirectory
from ezgreedy.running.settings import RunSettings
from ezgreedy.running.training import surface

SNAPSHOTS = "memories"
_KEPT = ("actors", "shards", "address", "object_store_megabytes")
_LARGEST_COMPRESSED = 2_000  # bytes of an observation, in the worst of the 57 games and to spare


def train(
    directory: Path,
    settings: RunSettings,
    fleet: FleetSettings | None = None,
    options: DriveOptions | None = None,
) -> int:
    """Begins a run in a new directory and takes it to its end; returns the exit code."""
    require_apart(directory)
    fleet = fleet or FleetSettings()
    session = _session(settings, fleet)  # refuses what cannot be before anything is written
    place = RunDirectory(directory)
    place.create(settings)
    _write_engine(place, fleet)
    with session:
        return _drive(place, settings, fleet, options or DriveOptions(), resumes=False)


def resume(
    directory: Path,
    options: DriveOptions | None = None,
    **changes: Any,
) -> int:
    """Takes a run to its end from where it stopped; returns the exit code.

    Args:
        directory: of the run.
        options: how it is looked after.
        changes: fields of `FleetSettings` that are to be others than before. With another number
            of actors, lanes begin new episodes.
    """
    place = RunDirectory(directory)
    settings = place.settings()
    fleet = replace(read_engine(place), **changes)
    session = _session(settings, fleet)
    require_nobody_else(place)
    _write_engine(place, fleet)
    with session:
        return _drive(place, settings, fleet, options or DriveOptions(), resumes=True)


def is_fleet_run(directory: Path) -> bool:
    """Whether a directory holds a run of this engine."""
    return (Path(directory) / ENGINE_FILE).exists()


def read_engine(place: RunDirectory) -> FleetSettings:
    """How the run in a directory was spread."""
    path = place.path / ENGINE_FILE
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return FleetSettings(**{name: said[name] for name in _KEPT})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} was not made by ezgreedy train ({error})") from error


def store_megabytes_needed(settings: RunSettings, fleet: FleetSettings) -> int:
    """What is in transit at once at most: batches, windows and weights, and half as much again."""
    preset = preset_of(settings)
    played = surface(Lanes(settings.game, 1, settings.protocol, seed=0))
    observation = prod(played.observation_shape) * played.frame_dtype.itemsize
    learner = preset.learner
    window = (learner.burn_in + learner.length + 1) * observation
    batches = (CALLS_IN_FLIGHT + 2) * learner.batch_size * window
    strides = 2 * max(1, 8 // max(settings.lanes // fleet.actors, 1))
    compressed = min(observation, _LARGEST_COMPRESSED)
    chunks = CALLS_IN_FLIGHT * settings.lanes * strides * preset.stride * compressed
    online = make_learner(settings, played, "cpu").online
    weights = 3 * sum(4 * parameter.numel() for parameter in online.parameters())
    states = 4 * weights if settings.lanes else 0  # a checkpoint gathers the learner's moments too
    needed = 1.5 * (batches + chunks + weights + states)
    return max(int(needed / MEGABYTE) + 1, LEAST_STORE_MEGABYTES)


def _session(settings: RunSettings, fleet: FleetSettings) -> AbstractContextManager[Any]:
    if not isinstance(settings.agent, SequencePreset):
        rule = "be one of R2D2's for --engine ray"
        raise require.refuse("agent", rule, settings.agent.name)
    require_ray()
    spread(settings.lanes, fleet.actors)
    if fleet.address is not None:
        num_gpus = 1 if settings.device == "cuda" else 0
        return ClusterSession(fleet.address, fleet.num_processes, num_gpus)
    require_device(settings)
    needed = store_megabytes_needed(settings, fleet)
    megabytes = fleet.object_store_megabytes or needed
    require_store(megabytes, needed)
    return LocalSession(fleet.num_processes, megabytes, settings.threads)


def _drive(
    place: RunDirectory,
    settings: RunSettings,
    fleet: FleetSettings,
    options: DriveOptions,
    *,
    resumes: bool,
) -> int:
    with FleetTraining(settings, fleet, place.path / SNAPSHOTS) as training:
        return drive(place, training, options, resumes=resumes)


def _write_engine(place: RunDirectory, fleet: FleetSettings) -> None:
    said = {name: getattr(fleet, name) for name in _KEPT}
    write_json_atomically(place.path / ENGINE_FILE, {"engine": "ray", **said})
