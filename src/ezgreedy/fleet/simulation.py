"""What would a fleet do that does not fit on this machine? The real coordinator in virtual time.

Coordinator, limiter, publication of weights, deliveries and evaluations are those of a run on Ray.
Only the processes are replaced, by members whose work takes as long as was measured for each role
(`virtual_time.Costs`). Nothing is played or learned.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.fleet.coordinator import BATCHES_IN_FLIGHT, FleetTraining
from ezgreedy.fleet.costs import Costs
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.fleet.supervision import Process
from ezgreedy.fleet.virtual_time import VirtualSupervisor

FAULTS = ("actor-lost", "slow-evaluator", "stalled-shard", "machine-lost")
SECONDS_BETWEEN_LOSSES = 60.0
SLOWDOWN_OF_EVALUATOR = 10.0
SECONDS_BETWEEN_STALLS, STALLED_SECONDS = 30.0, 10.0
SECONDS_UNTIL_MACHINE_IS_LOST, SECONDS_WITHOUT_MACHINE = 15.0, 120.0
PAPER_FRAMES = 30_000_000_000
MOST_ACTORS, MOST_SHARDS = 1_000, 8
_LONGEST_WARM_UP = 3_600.0  # virtual seconds after the first update
_OFTEN_FULL = 0.7  # the same for batches in flight, while the coordinator waits
_FEWEST_UPDATES = 20
PIPELINE = "batches in flight"
_SATURATED = 0.95  # share of working time from which a role counts as saturated


@dataclass(frozen=True)
class Scenario:
    """A fleet to be simulated.

    Args:
        fleet: number and kinds of processes.
        lanes_per_actor: lanes of each actor.
        costs: seconds that everything takes.
        faults: what goes wrong, of `FAULTS`: an actor is lost every minute, evaluators are ten
            times slower, the first memory does nothing for 10 of every 30 seconds, or the learner's
            machine is lost and comes back, empty, after two minutes.
        seconds: virtual seconds to measure, after a warm-up; as many as 20 updates take, if that is
            more.
        cpus: CPUs of each machine, one for each process; none for a single machine that holds
            everybody. If they are too few, there are fewer actors.
    """

    fleet: FleetSettings
    lanes_per_actor: int = 1
    costs: Costs = field(default_factory=Costs)
    faults: tuple[str, ...] = ()
    seconds: float = 60.0
    cpus: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require.integer("actors", self.fleet.actors, 2, MOST_ACTORS)
        require.integer("shards", self.fleet.shards, 1, MOST_SHARDS)
        require.integer("lanes_per_actor", self.lanes_per_actor, least=1)
        if not require.number("seconds", self.seconds, 0.0) > 0.0:
            raise require.refuse("seconds", "be more than 0", self.seconds)
        for fault in self.faults:
            require.one_of("fault", fault, FAULTS)
        if not self.costs.step > 0.0:
            raise require.refuse("step", "be more than 0, or play takes no time", self.costs.step)
        if not self.costs.update > 0.0:
            rule = "be more than 0, or learning takes no time"
            raise require.refuse("update", rule, self.costs.update)
        most = self.fleet.patience.start
        if not self.costs.start < most:
            rule = f"be less than {most:g}, after which a process is given up"
            raise require.refuse("start", rule, self.costs.start)
        self._require_machines()

    def _require_machines(self) -> None:
        for each in self.cpus:
            require.integer("cpus", each, least=1)
        if self.cpus:
            self.fleet.require_room(sum(self.cpus), "the simulated cluster")
        if "machine-lost" in self.faults and len(self.cpus) < 2:
            raise require.refuse("machines", "be at least 2 if one is lost", len(self.cpus) or 1)


@dataclass(frozen=True)
class Simulated:
    """What a simulated fleet did in the measured time.

    Args:
        actors: number of actors.
        shards: number of memories.
        evaluators: number of evaluators.
        lanes: number of lanes.
        frames_per_second: frames played.
        updates_per_second: updates made.
        weight_age: mean age of the weights, in environment frames.
        largest_weight_age: the largest.
        waiting: share of the time in which each role had nothing to do, mean over its processes.
        saturated: what limits the fleet: the role that worked nearly all the time, or else the
            largest number of batches in flight, if it was nearly always reached.
        evaluations: evaluations that ended.
        skipped: evaluations that were skipped.
        windows_delivered: windows completed by actors, since the start.
        windows_inserted: windows stored in memories, since the start.
        windows_in_transit: windows between the two.
        restarts: processes that were lost, since the start.
    """

    actors: int
    shards: int
    evaluators: int
    lanes: int
    frames_per_second: float
    updates_per_second: float
    weight_age: float
    largest_weight_age: float
    waiting: dict[str, float]
    saturated: str
    evaluations: int
    skipped: int
    windows_delivered: int
    windows_inserted: int
    windows_in_transit: int
    restarts: int

    @property
    def days(self) -> float:
        """Days for the paper's 30,000 million frames."""
        speed = self.frames_per_second
        return PAPER_FRAMES / speed / 86_400.0 if speed > 0.0 else inf

    def record(self) -> dict[str, Any]:
        """All numbers as plain data; None for days without end."""
        return asdict(self) | {"days": self.days if self.days < inf else None}


def simulate(scenario: Scenario, settings: RunSettings) -> Simulated:
    """Simulate a fleet.

    Args:
        scenario: the fleet.
        settings: settings of the run; lanes and length are replaced.
    """
    fleet = scenario.fleet.fitting(sum(scenario.cpus)) if scenario.cpus else scenario.fleet
    lanes = scenario.fleet.actors * scenario.lanes_per_actor
    settings = replace(settings, lanes=lanes, frames=10**15)
    costs = scenario.costs
    if "slow-evaluator" in scenario.faults:
        costs = replace(costs, evaluate=costs.evaluate * SLOWDOWN_OF_EVALUATOR)
    supervisor = VirtualSupervisor(costs, cpus=scenario.cpus)
    with FleetTraining(settings, fleet, Path("unused"), supervisor) as training:
        simulation = _Simulation(training, supervisor)
        simulation.warm_up()
        simulation.add_faults(scenario.faults)
        return simulation.measure(max(scenario.seconds, _FEWEST_UPDATES * costs.update))


class _Simulation:
    """A training in virtual time, and the counts at the beginning of the measurement."""

    def __init__(self, training: FleetTraining, supervisor: VirtualSupervisor) -> None:
        self._training, self._supervisor = training, supervisor
        members = training.members
        self._roles: dict[str, Sequence[Process]] = {
            "actors": members.actors,
            "shards": members.memories,
            "learner": [members.learner],
            "evaluators": members.evaluators,
        }
        self._num_evaluations = 0
        self._full = 0.0  # seconds in which no more batches could be requested
        supervisor.has_waited = self._has_waited

    def warm_up(self) -> None:
        """Run until one side of the limiter has had to wait for the other."""
        training, limiter = self._training, self._training.limiter
        while not training.num_updates:
            self._step()
        end = self._supervisor.now() + _LONGEST_WARM_UP
        while limiter.may_insert() and limiter.may_sample(limiter.most_sampled):
            self._step()
            if self._supervisor.now() > end:
                return

    def add_faults(self, faults: Sequence[str]) -> None:
        """Have things go wrong from now on."""
        supervisor, actors = self._supervisor, self._training.members.actors
        memory = self._training.members.memories[0]
        num_lost = 0

        def lose() -> None:
            nonlocal num_lost
            supervisor.lose(actors[num_lost % len(actors)])
            num_lost += 1
            supervisor.at(supervisor.now() + SECONDS_BETWEEN_LOSSES, lose)

        def stall() -> None:
            supervisor.stall(memory, STALLED_SECONDS)
            supervisor.at(supervisor.now() + SECONDS_BETWEEN_STALLS, stall)

        def lose_machine() -> None:
            machine = self._training.members.learner.machine
            supervisor.lose_machine(machine)
            back = supervisor.now() + SECONDS_WITHOUT_MACHINE
            supervisor.at(back, lambda: supervisor.cluster.bring_back(machine))

        if "machine-lost" in faults:
            supervisor.at(supervisor.now() + SECONDS_UNTIL_MACHINE_IS_LOST, lose_machine)
        if "actor-lost" in faults:
            supervisor.at(supervisor.now() + SECONDS_BETWEEN_LOSSES / 2, lose)
        if "stalled-shard" in faults:
            supervisor.at(supervisor.now() + SECONDS_BETWEEN_STALLS / 2, stall)

    def measure(self, seconds: float) -> Simulated:
        """Run for some virtual seconds and say what happened in them."""
        training, supervisor = self._training, self._supervisor
        training.gauges.take_report()
        begun, skipped, evaluated = supervisor.now(), self._num_skipped, self._num_evaluations
        busy = {role: self._busy(role) for role in self._roles}
        decoded = self._decoded
        coordinated, full = supervisor.busy, self._full
        while supervisor.now() < begun + seconds:
            self._step()
        took = supervisor.now() - begun
        waiting = {
            role: _waiting(self._busy(role) - busy[role], took * len(processes))
            for role, processes in self._roles.items()
        }
        waiting["decoders"] = _waiting(self._decoded - decoded, took)
        waiting["coordinator"] = _waiting(supervisor.busy - coordinated, took)
        report, fleet = training.gauges.take_report(), training.fleet
        return Simulated(
            actors=fleet.actors,
            shards=fleet.shards,
            evaluators=fleet.evaluators,
            lanes=training.settings.lanes,
            frames_per_second=report["frames_per_second"],
            updates_per_second=report["updates_per_second"],
            weight_age=report["weight_age_in_frames"],
            largest_weight_age=report["largest_weight_age_in_frames"],
            waiting=waiting,
            saturated=_saturated(waiting, (self._full - full) / took),
            evaluations=self._num_evaluations - evaluated,
            skipped=self._num_skipped - skipped,
            windows_delivered=training.deliveries.num_windows,
            windows_inserted=training.limiter.num_inserted,
            windows_in_transit=training.deliveries.num_windows_in_transit,
            restarts=training.num_restarts,
        )

    def _step(self) -> None:
        self._training.step()
        while self._training.evaluation_is_due:
            self._training.evaluate()
            self._num_evaluations += 1

    def _has_waited(self, seconds: float) -> None:
        if self._training.updates.num_in_flight >= BATCHES_IN_FLIGHT:
            self._full += seconds

    @property
    def _num_skipped(self) -> int:
        return self._training.evaluations.num_skipped

    @property
    def _decoded(self) -> float:
        """Seconds of work so far of the learner's other threads."""
        return float(self._training.members.learner.handle.decoder.worked(self._supervisor.now()))

    def _busy(self, role: str) -> float:
        """Seconds of work so far of all processes of a role."""
        now = self._supervisor.now()
        return sum(process.handle.worked(now) for process in self._roles[role])


def _waiting(busy: float, time: float) -> float:
    return min(max(1.0 - busy / time, 0.0), 1.0)


def _saturated(waiting: dict[str, float], full: float) -> str:
    """The role that works most, if it works nearly all the time; evaluators hold nobody up."""
    role = min((role for role in waiting if role != "evaluators"), key=waiting.__getitem__)
    if 1.0 - waiting[role] >= _SATURATED:
        return role
    return PIPELINE if full >= _OFTEN_FULL else "none"
