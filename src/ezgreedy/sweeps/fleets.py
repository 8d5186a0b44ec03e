"""Sweeps whose runs are fleets: each run is a driver with its share of a Ray cluster.

The driver is a process like that of any other run, on a machine that has a CPU for it. It connects
to the same cluster, where its actors, memories, learner and evaluators take the rest of its share.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.agents.r2d2.sizes import policy_bytes
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.fleet.ray_run_loop import (
    read_engine,
    require_fleet,
    resume,
    store_megabytes_needed,
    write_engine,
)
from ezgreedy.fleet.roles import preset_of
from ezgreedy.fleet.session import ClusterSession, LocalSession
from ezgreedy.learning.settings import Sight
from ezgreedy.replay.available_memory import available_bytes
from ezgreedy.runs.memory import PROCESS_BYTES, memory_bytes
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import DriveOptions
from ezgreedy.sweeps.jobs import Capacity, Saving, Work, visible_gpus
from ezgreedy.sweeps.placement import Demand, Node, nodes
from ezgreedy.sweeps.ray_engine import RayEngine

_DRIVER = Demand(1.0, PROCESS_BYTES, 0.0)
_FIT = "--actors, --shards and --evaluators must fit"
_Shapes = Mapping[str, tuple[int, ...]]


def need(settings: RunSettings, frame_shape: tuple[int, ...], fleet: FleetSettings) -> Demand:
    """Resources of a run that is a fleet: its driver and a process for each role.

    Args:
        settings: settings of the run.
        frame_shape: shape of a frame of its game.
        fleet: number of processes.
    """
    sight = Sight(frame_shape, has_codes=settings.protocol.colour == "palette")
    networks = (fleet.actors + fleet.evaluators) * policy_bytes(preset_of(settings), sight)
    processes = fleet.num_processes * PROCESS_BYTES + networks
    memory = memory_bytes(settings, frame_shape) + processes
    return Demand(fleet.num_processes + _DRIVER.cpus, memory, float(settings.device == "cuda"))


def needs(runs: Sequence[RunSettings], shapes: _Shapes, fleet: FleetSettings) -> set[Demand]:
    """Resources of all runs, after a check that each can be a fleet.

    Args:
        runs: settings of the runs.
        shapes: frame shapes by game.
        fleet: number of processes.
    """
    kinds = {(run.agent, run.lanes, shapes[run.game]): run for run in runs}
    for run in kinds.values():
        require_fleet(run, fleet)
    return {need(run, shapes[run.game], fleet) for run in kinds.values()}


def total(there: Sequence[Node]) -> Demand:
    """Resources of all machines together."""
    cpus, memory, gpus = (sum(each) for each in zip(*(node.has for node in there), strict=True))
    return Demand(cpus, memory, gpus)


def this_machine() -> Demand:
    """Resources of this machine, as far as they are free."""
    gpus = float(len(visible_gpus()))
    return Demand(float(len(os.sched_getaffinity(0))), available_bytes(), gpus)


def require_share(wanted: Demand, there: Demand, where: str) -> None:
    """Refuses a cluster or machine that cannot hold one run.

    Args:
        wanted: resources of the run.
        there: resources of the cluster.
        where: what it is called.
    """
    if not wanted.times_within(there):
        raise ValueError(f"{_FIT} into {where}; a run asks for {wanted}, and there are {there}")


class FleetRuns:
    """How each run of a sweep is executed: as a fleet on the sweep's cluster.

    Args:
        fleet: number of processes.
        session: session with the cluster, which knows its address once it was entered.
        is_private: whether the cluster ends with the sweep.
    """

    def __init__(
        self, fleet: FleetSettings, session: ClusterSession | LocalSession, *, is_private: bool
    ) -> None:
        self._fleet, self._session, self._is_private = fleet, session, is_private

    def prepare(self, draft: RunDirectory) -> None:
        """Marks a new run as a fleet."""
        write_engine(draft, self._fleet)

    def work(self, directory: Path, saving: Saving, log: Path) -> Work:
        """Starts or resumes a run and trains to the end."""
        fleet = replace(self._fleet, address=self._session.address)
        return Work(drive_to_the_end, (directory, saving, fleet, self._is_private), log)


def drive_to_the_end(
    directory: Path, saving: Saving, fleet: FleetSettings, is_private: bool
) -> int:
    """Starts or resumes a run that is a fleet; returns the exit code.

    Args:
        directory: directory of the run.
        saving: when and how it is saved.
        fleet: number of processes; a run that was started before keeps its shards.
        is_private: whether the cluster ends with the sweep.
    """
    names = ("actors", "evaluators", "evaluation_seconds", "address")
    changes: dict[str, Any] = {name: getattr(fleet, name) for name in names}
    shards = read_engine(RunDirectory(directory)).shards
    changes["actors"] = max(changes["actors"], shards)
    options = DriveOptions(
        saving.seconds,
        is_quiet=True,
        checkpoint_share=saving.share,
        keeps_replay=saving.keeps_replay,
    )
    return resume(directory, options, keeps_address=not is_private, **changes)


class FleetEngine(RayEngine):
    """A Ray cluster, for runs that are fleets.

    Args:
        session: session with the cluster, entered and left with the engine.
        needs: resources of the runs; refused if the cluster cannot hold one.
        is_private: whether the cluster is this machine, and ends with the sweep.
    """

    def __init__(
        self, session: ClusterSession | LocalSession, needs: set[Demand], *, is_private: bool
    ) -> None:
        super().__init__(session, lambda _: _DRIVER, [])
        self._demands = {_DRIVER}
        self._needs = needs
        self._where = "this machine" if is_private else "the cluster"

    def __enter__(self) -> "FleetEngine":
        super().__enter__()
        try:
            for wanted in sorted(self._needs, reverse=True):
                require_share(wanted, total(nodes()), self._where)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    @property
    def capacity(self) -> Capacity:
        """As many of the most demanding fleets as fit at once."""
        there = total(nodes())
        num_runs = min(wanted.times_within(there) for wanted in self._needs)
        return Capacity(num_runs, None, max(wanted.memory for wanted in self._needs))

    def has_room(self, num_running: int) -> bool:
        """Whether another fleet fits; if none runs, it is tried, with fewer actors if need be."""
        return num_running == 0 or num_running < self.capacity.num_runs


def fleet_session(
    address: str | None,
    runs: Sequence[RunSettings],
    wanted: set[Demand],
    fleet: FleetSettings,
) -> ClusterSession | LocalSession:
    """The cluster at an address; if None, a new one on this machine, if it can hold a run.

    Args:
        address: HOST:PORT of the cluster.
        runs: settings of the runs.
        wanted: resources of the runs.
        fleet: number of processes.
    """
    if address is not None:
        return ClusterSession(address)
    machine = this_machine()
    for each in sorted(wanted, reverse=True):
        require_share(each, machine, "this machine")
    at_once = max(each.times_within(machine) for each in wanted)
    kinds = {(run.agent, run.lanes): run for run in runs}.values()
    store = max(store_megabytes_needed(run, fleet) for run in kinds)
    return LocalSession(int(machine.cpus), at_once * store)


def require_jobs(num_jobs: int, engine: FleetEngine) -> None:
    """Refuses more concurrent fleets than the cluster can hold."""
    most = engine.capacity.num_runs
    if num_jobs > most:
        raise require.refuse("--jobs", f"be at most {most}, the runs that fit at once", num_jobs)
