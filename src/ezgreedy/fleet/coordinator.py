"""The Ray engine as a training like any other: one turn after another, saved between turns.

The coordinator moves no data. Windows go from actors to memories, batches from memories to the
learner, and weights from the learner to actors and the evaluator, all by reference; only small
results come back here. It keeps the ratio of samples to insertions by requesting play only while
insertions are not too far ahead, and updates only while samples are not; one of the two can always
proceed.
"""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ezgreedy.agents.registry import policy_state
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.fleet.barrier import Barrier
from ezgreedy.fleet.deliveries import Deliveries
from ezgreedy.fleet.evaluations import Evaluations
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.fleet.membership import Membership
from ezgreedy.fleet.plays import Plays
from ezgreedy.fleet.roles import preset_of
from ezgreedy.fleet.status import Status
from ezgreedy.fleet.supervision import Process, Supervisor
from ezgreedy.fleet.transport import LEAST_WINDOWS_PER_CALL
from ezgreedy.fleet.updates import Updates
from ezgreedy.fleet.weights import STEPS_PER_WEIGHT_PULL, PublishedWeights, calls_in_flight
from ezgreedy.replay.limiter import SamplesPerInsert
from ezgreedy.runs.evaluation import Stops
from ezgreedy.runs.trainable import Trainable

BATCHES_IN_FLIGHT = 4  # for the learner: one in use, one decoded, one queued, one being drawn


def steps_per_call(lanes: int, stride: int) -> int:
    """Steps of one call: enough for several windows, and at most half of what weights last for.

    Args:
        lanes: lanes of an actor; each completes a window per stride.
        stride: steps between the starts of two windows.
    """
    wanted = -(-LEAST_WINDOWS_PER_CALL // lanes)
    most = STEPS_PER_WEIGHT_PULL // 2
    return min(stride * max(min(wanted, most // stride), 1), most)


class FleetTraining(Trainable):
    """A run on Ray; use as a context manager within that of a session.

    Args:
        settings: settings of the run.
        fleet: number and kinds of processes.
        directory: directory of the memories' snapshots.
        supervisor: supervisor of the processes; None for Ray's.
    """

    def __init__(
        self,
        settings: RunSettings,
        fleet: FleetSettings,
        directory: Path,
        supervisor: Supervisor | None = None,
    ) -> None:
        super().__init__(settings)
        self.fleet = fleet
        self.members = members = Membership(settings, fleet, directory, supervisor)
        self.gauges = Status(members.supervisor.now)
        preset = preset_of(settings)
        self.steps_per_call = steps_per_call(settings.lanes // fleet.actors, preset.stride)
        batch_size = preset.learner.batch_size
        # Windows of every call in flight, and of one more for each actor in transit.
        calls = 1 + calls_in_flight(self.steps_per_call)
        windows = calls * settings.lanes * -(-self.steps_per_call // preset.stride)
        self.limiter = SamplesPerInsert(
            preset.samples_per_insert,
            preset.least_windows,
            most_inserted=windows,
            most_sampled=batch_size,
        )
        members.has_begun = self._has_begun
        self._weights = PublishedWeights(members, self.steps_per_call)
        self.evaluations = Evaluations(members, self.ledger)
        members.has_updated = self._weights.note_update
        self.deliveries = Deliveries(members, self.limiter)
        self._plays = Plays(
            members, self._weights, self.deliveries, self.limiter, self.ledger, self.gauges
        )
        seed = settings.role_seed("shards")
        self.updates = Updates(members, self.limiter, self.gauges, batch_size, seed)
        self._barrier = Barrier(members, self.deliveries, lambda: self.meanwhile())

    def __enter__(self) -> "FleetTraining":
        self.members.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.members.supervisor.end_all()

    def pids(self) -> dict[str, int | None]:
        """Process ids by name; None for a process that is being started."""
        return {process.name: process.pid for process in self.members.supervisor.processes}

    @property
    def num_restarts(self) -> int:
        """Number of times a process was lost."""
        return self.members.supervisor.num_restarts

    @property
    def num_updates(self) -> int:
        """Number of updates so far."""
        return self.members.num_updates

    # The interface of a training.

    @property
    def evaluation_is_due(self) -> bool:
        """Whether to call `evaluate`: one has finished, or nothing else is left to do."""
        is_last = self.ledger.is_finished and self.ledger.evaluation_is_due
        return self.evaluations.are_done or is_last

    @property
    def is_savable(self) -> bool:
        """Whether the learner and the memories live; if not, the last checkpoint is their state."""
        return self.members.has_core

    def step(self) -> None:
        """One turn: make the requests that are allowed, and handle results."""
        self._weights.ask()
        self._ask_for_evaluation()
        self.updates.ask(BATCHES_IN_FLIGHT)
        if not self.is_finished:
            self._plays.ask()
        self._barrier.turn()

    def evaluate(self, stops: Stops | None = None) -> dict[str, Any] | None:
        """The evaluation that is due, as a line of results; None if it was abandoned."""
        while not self.evaluations.are_done:
            if stops is not None and stops(None):
                return None
            self._weights.ask(is_urgent=True)
            self._ask_for_evaluation()
            self._barrier.turn()
            self.meanwhile()
        return self.evaluations.take()

    def report(self) -> dict[str, Any]:
        """Report on the time since the last report, as a line of results."""
        measured = self._plays.take_explored().measured()
        measured |= self.updates.take_means()
        measured["windows"] = float(self.limiter.num_inserted)
        measured["updates"] = float(self.num_updates)
        return self.ledger.report(measured | self.gauges.take_report() | self._so_far())

    def status(self) -> dict[str, float]:
        """Status of the fleet; empty if it was shown a moment ago."""
        view = self.gauges.take_view()
        return view and view | self._so_far()

    def take_notices(self) -> list[str]:
        """Take the messages for the user; each is returned once."""
        own = self.members.take_notices() + self.evaluations.take_notices()
        return own + self.ledger.take_notices()

    def state_dict(self) -> dict[str, Any]:
        """Everything the future depends on, taken while all processes are idle.

        Memories are large, so they write themselves to disk, and this holds only the number of
        their snapshot. Large actor states are left out; the lanes of those actors then start new
        episodes.
        """
        learner_state, actor_states = self._barrier.gather()
        return {
            **self.ledger.state_dict(),
            "agent": learner_state,
            "fleet": {
                **self.members.state_dict(actor_states),
                "limiter": self.limiter.state_dict(),
                "evaluations": self.evaluations.state_dict(),
                "rng": self.updates.rng.bit_generator.state,
            },
        }

    def final_state(self) -> dict[str, Any]:
        """The policy and the counts: without memories, optimiser and games."""
        agent = policy_state(self.settings.agent, self._barrier.learner_state())
        return {"agent": agent, **self.ledger.state_dict()}

    @property
    def replay_directory(self) -> Path:
        """Directory of the memories' snapshots."""
        return self.members.directory

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a training with the same settings; before the first turn."""
        saved = state["fleet"]
        self.members.load_state_dict(saved, state["agent"])
        self.ledger.load_state_dict(state)
        self.evaluations.load_state_dict(saved.get("evaluations", {}))
        self._barrier.num_snapshots = int(saved["snapshot"])
        self.limiter.load_state_dict(saved["limiter"])
        self.updates.rng.bit_generator.state = saved["rng"]

    # Requests, and the handling of their results.

    def _ask_for_evaluation(self) -> None:
        """Requests an evaluation; the last one uses the final weights."""
        weights, updates = self._weights, self.updates
        is_final = weights.is_newest and not updates.num_in_flight
        self.evaluations.ask(weights.weights if is_final or not self.is_finished else None)

    def _has_begun(self, process: Process) -> None:
        """Adjusts the others when a process has started again."""
        members = self.members
        if process is members.learner:
            self._weights.forget()
        elif process in members.memories:
            if process.past_lives or members.is_poorer:
                self._recount()
        elif process not in members.evaluators:
            self._plays.begin(process.number)

    def _recount(self) -> None:
        """After a memory was lost: count as if the rest had just been inserted and sampled."""
        preset, kept = preset_of(self.settings), sum(one.windows for one in self.members.reports)
        sampled = int(max(kept - preset.least_windows, 0) * preset.samples_per_insert)
        self.limiter.load_state_dict({"num_inserted": kept, "num_sampled": sampled})
        self.members.is_poorer = False

    def _so_far(self) -> dict[str, float]:
        members = self.members
        inserted = self.limiter.num_inserted - self.limiter.least_size
        return {
            "samples_per_insert": self.limiter.num_sampled / max(inserted, 1),
            "target_samples_per_insert": float(self.limiter.ratio),
            "plays_in_flight": float(sum(map(members.num_calls, members.actors))),
            "deliveries_waiting": float(len(self.deliveries)),
            "updates_in_flight": float(members.num_calls(members.learner)),
            "evaluations_running": float(self.evaluations.num_running),
            "evaluations_skipped": float(self.evaluations.num_skipped),
            "live_actors": float(sum(actor.is_ready for actor in members.actors)),
            "actors": float(self.fleet.actors),
            "restarts": float(self.num_restarts),
            "duplicates": float(sum(one.duplicates for one in members.reports)),
            **members.held,
        }
