"""Runs on Ray from start to finish: the same loop, directory and files as in one process.

engine.json, next to config.json, marks a run on Ray and says how it was spread, so that resuming
needs no options. It is not part of the run's identity.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.agents.agent import GameSpec, game_spec
from ezgreedy.agents.r2d2.actor import network_settings
from ezgreedy.agents.r2d2.roles import require_replay_bytes
from ezgreedy.agents.registry import agents
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.fleet.coordinator import BATCHES_IN_FLIGHT, FleetTraining, steps_per_call
from ezgreedy.fleet.fleet_settings import FleetSettings, spread
from ezgreedy.fleet.places import cpus_for, places
from ezgreedy.fleet.plays import MOST_DELIVERIES_PER_ACTOR
from ezgreedy.fleet.roles import network_copy, preset_of
from ezgreedy.fleet.session import (
    LEAST_STORE_MEGABYTES,
    MEGABYTE,
    ClusterSession,
    LocalSession,
    require_ray,
    require_store,
)
from ezgreedy.fleet.weights import calls_in_flight
from ezgreedy.games.lanes import Lanes
from ezgreedy.replay.sequence_sizes import STEP_BYTES
from ezgreedy.results.runs import ENGINE_FILE
from ezgreedy.results.store import read_json, write_json_atomically
from ezgreedy.runs.output_paths import require_apart
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import (
    DriveOptions,
    drive,
    require_device,
    require_nobody_else,
    require_not_longer,
)

SNAPSHOTS = "memories"
_KEPT = ("actors", "shards", "address", "object_store_megabytes")
# Not in the files of older runs.
_KEPT_SINCE = ("evaluators", "evaluation_seconds", "decode_threads", "spread_shards")
_LARGEST_COMPRESSED = 2_000  # bytes of an observation, with a margin over the worst of the 57 games


def train(
    directory: Path,
    settings: RunSettings,
    fleet: FleetSettings | None = None,
    options: DriveOptions | None = None,
    at_start: Callable[[], None] = lambda: None,
) -> int:
    """Starts a run in a new directory and trains to the end; returns the exit code.

    Args:
        directory: directory of the run.
        settings: settings of the run.
        fleet: its processes.
        options: checkpoints and output.
        at_start: called once nothing is refused any more.
    """
    require_apart(directory)
    fleet = fleet or FleetSettings()
    session = _session(settings, fleet)  # refuses impossible settings before anything is written
    place = RunDirectory(directory)
    place.create(settings)
    write_engine(place, fleet)
    at_start()
    with session:
        return _drive(place, settings, fleet, options or DriveOptions(), resumes=False)


def resume(
    directory: Path,
    options: DriveOptions | None = None,
    *,
    keeps_address: bool = True,
    **changes: Any,
) -> int:
    """Resumes a run and trains to the end; returns the exit code.

    Args:
        directory: directory of the run.
        options: checkpoints and output.
        keeps_address: whether to use the same cluster when the run is resumed once more.
        changes: fields of `FleetSettings` to change. With another number of actors, lanes start
            new episodes.
    """
    place = RunDirectory(directory)
    settings = place.settings()
    fleet = replace(read_engine(place), **changes)
    require_not_longer(place, settings)
    if place.status().get("has_replay") is False:
        return 0  # it has finished, and Ray has nothing to do
    session = _session(settings, fleet)
    require_nobody_else(place)
    write_engine(place, fleet if keeps_address else replace(fleet, address=None))
    with session:
        return _drive(place, settings, fleet, options or DriveOptions(), resumes=True)


def is_fleet_run(directory: Path) -> bool:
    """Whether a directory holds a run on Ray."""
    return (Path(directory) / ENGINE_FILE).exists()


def read_engine(place: RunDirectory) -> FleetSettings:
    """How the run in a directory was spread."""
    path = place.path / ENGINE_FILE
    try:
        said = read_json(path)
        kept = {name: said[name] for name in _KEPT}
        kept |= {name: said[name] for name in _KEPT_SINCE if name in said}
        return FleetSettings(**kept)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} was not made by ezgreedy train ({error})") from error


def store_megabytes_needed(settings: RunSettings, fleet: FleetSettings) -> int:
    """Most data in transit at once (batches, windows and weights), plus half as much again."""
    preset = preset_of(settings)
    played = _spec(settings)
    observation = prod(played.observation_shape) * played.frame_dtype.itemsize
    compressed = min(observation, _LARGEST_COMPRESSED)
    # A window and its prefix, in whole blocks, each with the observation after it.
    blocks = preset.sequences.blocks_per_window + 1
    window = blocks * (preset.stride + 1) * (compressed + STEP_BYTES)
    recurrent = 8 * prod(network_settings(preset, played).state_shape)
    batches = (BATCHES_IN_FLIGHT + 1) * preset.learner.batch_size * (window + recurrent)
    steps = steps_per_call(settings.lanes // fleet.actors, preset.stride)
    # Of the calls in flight and of those that wait for each actor; windows complete in strides.
    calls = calls_in_flight(steps) + MOST_DELIVERIES_PER_ACTOR
    chunks = calls * settings.lanes * (steps + preset.stride) * compressed
    # Each evaluator may hold a version of its own.
    weights = (2 + fleet.evaluators) * 4 * network_copy(settings, played).num_parameters
    states = 4 * weights if settings.lanes else 0  # a checkpoint also gathers Adam's moments
    needed = 1.5 * (batches + chunks + weights + states)
    return max(int(needed / MEGABYTE) + 1, LEAST_STORE_MEGABYTES)


def _spec(settings: RunSettings) -> GameSpec:
    return game_spec(Lanes(settings.game, 1, settings.protocol, seed=0))


def require_fleet(settings: RunSettings, fleet: FleetSettings) -> None:
    """Refuses a run that cannot be spread like this, on whichever cluster."""
    if "ray" not in settings.agent.engines:
        able = [agent.name for agent in agents().values() if "ray" in agent.engines]
        rule = f"be one of {', '.join(able)} for --engine ray"
        raise require.refuse("agent", rule, settings.agent.name)
    require_ray()
    spread(settings.lanes, fleet.actors)
    require_replay_bytes(preset_of(settings), _spec(settings), fleet.shards)


def _session(settings: RunSettings, fleet: FleetSettings) -> AbstractContextManager[Any]:
    require_fleet(settings, fleet)
    if fleet.address is not None:
        session = ClusterSession(fleet.address)
        fleet.require_room(session.num_cpus, f"the cluster at {fleet.address}")
        if settings.device == "cuda" and not session.num_gpus:
            rule = f"be cpu on a cluster without GPUs, as that at {fleet.address}"
            raise require.refuse("device", rule, settings.device)
        return session
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
    fits = fleet if fleet.address is None else fleet.fitting(cpus_for(fleet.num_processes))
    with FleetTraining(settings, fits, place.path / SNAPSHOTS) as training:
        if fits.actors < fleet.actors:
            lack = f"the run wants {fleet.num_processes} CPUs, and {places()}"
            spread_over = f"{settings.lanes} lanes are spread over {fits.actors} actors"
            later = "resume it later to use more"
            training.members.say(f"{lack}; {spread_over} instead of {fleet.actors} ({later})")
        return drive(place, training, options, resumes=resumes)


def write_engine(place: RunDirectory, fleet: FleetSettings) -> None:
    """Marks the run in a directory as one on Ray, and says how it is spread."""
    said = {name: getattr(fleet, name) for name in (*_KEPT, *_KEPT_SINCE)}
    write_json_atomically(place.path / ENGINE_FILE, {"engine": "ray", **said}, seals=True)
