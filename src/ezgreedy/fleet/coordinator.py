"""The Ray engine as a training like any other: one turn after another, saved between turns.

The coordinator moves no data. Windows go from actors to memories, batches from memories to the
learner and weights from the learner to everybody, by references; what comes back here is small. It
holds the two sides to their ratio by asking for play only while insertions are not too far ahead,
and for updates only while samples are not; one of the two may always go on.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ezgreedy.agents.means import Mean
from ezgreedy.fleet.crew import FleetError, Member
from ezgreedy.fleet.examination import Examination
from ezgreedy.fleet.publication import Publication
from ezgreedy.fleet.roles import Key, PlayReport, ShardReport, UpdateReport, preset_of
from ezgreedy.fleet.settings import FleetSettings
from ezgreedy.fleet.staff import Staff
from ezgreedy.fleet.status import SECONDS_BETWEEN_VIEWS, Gauges
from ezgreedy.fleet.transport import LEAST_WINDOWS_PER_CALL
from ezgreedy.replay.limiter import SamplesPerInsert
from ezgreedy.running.settings import RunSettings

CALLS_IN_FLIGHT = 2  # of each actor and of the learner: one at work, one at hand
_MOST_SAVED_LANE_BYTES = 256_000_000
_MOST_BARRIERS = 3
_MOST_ATTEMPTS = 3


@dataclass
class Delivery:
    """Windows that are to go into a memory."""

    key: Key
    chunk: Any  # a reference
    shard: int
    num_attempts: int = 0


class FleetTraining:
    """A run on Ray; to be used as a context, within that of a session.

    Args:
        settings: of the run.
        fleet: of its processes.
        directory: where memories keep their snapshots.
    """

    def __init__(self, settings: RunSettings, fleet: FleetSettings, directory: Path) -> None:
        self.settings = settings
        self.fleet = fleet
        self.frames = 0
        self.num_evaluations = 0
        self.num_reports = 0
        self.gauges = Gauges()
        preset = preset_of(settings)
        self._staff = Staff(settings, fleet, directory)
        self._staff.has_begun = self._has_begun
        self._crew = self._staff.crew
        # A call should carry some windows, and every lane completes one with each stride.
        fewest = settings.lanes // fleet.actors
        strides = -(-LEAST_WINDOWS_PER_CALL // fewest)
        self.steps_per_call = preset.stride * strides
        in_flight = CALLS_IN_FLIGHT * settings.lanes * strides
        self.limiter = SamplesPerInsert(
            preset.samples_per_insert,
            preset.least_windows,
            most_inserted=in_flight,
            most_sampled=preset.learner.batch_size,
        )
        self._rng = np.random.default_rng(settings.role_seed("shards"))
        self._num_snapshots = 0  # with those that came to nothing
        self._publication = Publication(self._staff, self.steps_per_call)
        self._examination = Examination(settings, self._staff)
        self._deliveries: deque[Delivery] = deque()
        self._is_delivering = [False] * fleet.shards
        self._num_samples = 0  # batches that are being made, or wait for the learner
        self._returns: list[float] = []
        self._means: dict[str, Mean] = {}
        self._counted = [0, 0]  # steps, and those that explored
        self._report_gauges = Gauges()
        self._viewed = time.monotonic()

    def __enter__(self) -> "FleetTraining":
        self._staff.recruit()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._crew.dismiss()

    def pids(self) -> dict[str, int | None]:
        """The processes by name; None where one is being started."""
        return {member.name: member.pid for member in self._crew.members}

    @property
    def num_restarts(self) -> int:
        """How often a process was lost."""
        return self._crew.num_restarts

    @property
    def num_updates(self) -> int:
        """How often it has learned so far."""
        return self._staff.num_updates

    def take_notices(self) -> list[str]:
        """What a person should know, once."""
        notices, self._staff.notices = self._staff.notices, []
        return notices

    def _has_begun(self, member: Member) -> None:
        """What a new beginning of a process means for the others."""
        if member is self._staff.learner:
            self._publication.forget()
        elif member in self._staff.actors:
            self._publication.forget_actor(self._staff.actors.index(member))
        elif member in self._staff.memories and (member.dead_pids or self._staff.is_poorer):
            self._recount()

    def _recount(self) -> None:
        """After a memory was lost: as if what is left had just been inserted, and sampled."""
        preset, kept = preset_of(self.settings), sum(one.windows for one in self._staff.reports)
        sampled = int(max(kept - preset.least_windows, 0) * preset.samples_per_insert)
        self.limiter.load_state_dict({"num_inserted": kept, "num_sampled": sampled})
        self._staff.is_poorer = False

    # The training, as the loop around it sees it.

    @property
    def is_finished(self) -> bool:
        """Whether all frames have been played."""
        return self.frames >= self.settings.frames

    @property
    def report_is_due(self) -> bool:
        """Whether to call `report` before the next turn."""
        return self.frames >= (self.num_reports + 1) * self.settings.frames_per_report

    @property
    def evaluation_is_due(self) -> bool:
        """Whether to call `evaluate`: one is done, or nothing else is left to do."""
        is_awaited = self.num_evaluations < self._examination.num_due(self.frames)
        return bool(self._examination.records) or (self.is_finished and is_awaited)

    def step(self) -> None:
        """One turn: ask for what may be asked for, and deal with what has come back."""
        self._publication.ask()
        self._ask_for_evaluation()
        self._ask_for_play()
        self._ask_for_updates()
        self._turn()

    def evaluate(self, stops: Callable[[], bool] | None = None) -> dict[str, Any] | None:
        """The evaluation that is due, as a line of results; None if it was given up."""
        while not self._examination.records:
            if stops is not None and stops():
                return None
            self._publication.ask(is_urgent=True)
            self._ask_for_evaluation()
            self._turn()
        self.num_evaluations += 1
        return self._examination.records.popleft()

    def report(self) -> dict[str, Any]:
        """What happened since the last report, as a line of results."""
        self.num_reports += 1
        returns, self._returns = self._returns, []
        record: dict[str, Any] = {"kind": "training", "frames": self.frames}
        record["episodes"] = len(returns)
        if returns:
            record["mean_return"] = float(np.mean(returns))
        steps, explored = self._counted
        self._counted = [0, 0]
        record["explored_share"] = explored / max(steps, 1)
        record |= {name: mean.take() for name, mean in self._means.items() if mean.count}
        record["windows"] = float(self.limiter.num_inserted)
        record["updates"] = float(self.num_updates)
        record |= self._report_gauges.view() | self._so_far()
        self._report_gauges = Gauges()
        return record

    def status(self) -> dict[str, float]:
        """How the fleet is doing; empty if that was just told."""
        if time.monotonic() - self._viewed < SECONDS_BETWEEN_VIEWS:
            return {}
        self._viewed = time.monotonic()
        view = self.gauges.view() | self._so_far()
        self.gauges = Gauges()
        return view

    def _so_far(self) -> dict[str, float]:
        inserted = self.limiter.num_inserted - self.limiter.least_size
        return {
            "samples_per_insert": self.limiter.num_sampled / max(inserted, 1),
            "target_samples_per_insert": float(self.limiter.ratio),
            "plays_in_flight": float(sum(map(self._crew.num_calls, self._staff.actors))),
            "deliveries_waiting": float(len(self._deliveries)),
            "updates_in_flight": float(self._crew.num_calls(self._staff.learner)),
            "live_actors": float(sum(actor.is_ready for actor in self._staff.actors)),
            "actors": float(self.fleet.actors),
            "restarts": float(self.num_restarts),
            "duplicates": float(sum(one.duplicates for one in self._staff.reports)),
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything that the future depends on, all of one moment; nobody is at work meanwhile.

        Memories, which are large, bring themselves to the disk and are named here by the number
        of their snapshot. What actors hold is left out where it is large too: their lanes then
        begin anew.
        """
        for _ in range(_MOST_BARRIERS):
            self._drain()
            restarts = self.num_restarts
            states = self._gather()
            if restarts == self.num_restarts:
                break
        else:
            raise FleetError("no moment was found in which all processes lived")
        self._staff.learner_state, self._staff.snapshot = states["learner"], self._num_snapshots
        return {
            "frames": self.frames,
            "num_evaluations": self.num_evaluations,
            "num_reports": self.num_reports,
            "returns": list(self._returns),
            "agent": states["learner"],
            "fleet": {
                "snapshot": self._staff.snapshot,
                "shards": self.fleet.shards,
                "lanes": [list(where[:2]) for where in self._staff.where],
                "incarnations": [actor.incarnation for actor in self._staff.actors],
                "actors": states["actors"],
                "limiter": self.limiter.state_dict(),
                "rng": self._rng.bit_generator.state,
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of a training with the same settings; before the first turn."""
        saved = state["fleet"]
        if saved["shards"] != self.fleet.shards:
            rule = f"be {saved['shards']}, as before, to find what is remembered"
            raise ValueError(f"--shards must {rule}; got {self.fleet.shards}")
        self.frames = int(state["frames"])
        self.num_evaluations = self._examination.num_asked = int(state["num_evaluations"])
        self.num_reports = int(state["num_reports"])
        self._returns = list(state["returns"])
        self._staff.learner_state = state["agent"]
        self._staff.snapshot = self._num_snapshots = int(saved["snapshot"])
        self.limiter.load_state_dict(saved["limiter"])
        self._rng.bit_generator.state = saved["rng"]
        incarnations, states = saved["incarnations"], saved["actors"]
        is_alike = saved["lanes"] == [list(where[:2]) for where in self._staff.where]
        for number, actor in enumerate(self._staff.actors):
            if is_alike and states[number] is not None:
                actor.incarnation = int(incarnations[number])
                self._staff.actor_states[number] = states[number]
            else:
                actor.incarnation = max(map(int, incarnations)) + 1

    # What is asked for.

    def _ask_for_play(self) -> None:
        if self._publication.weights is None or self.is_finished:
            return
        if self._examination.is_behind(self.frames):
            return  # it is not to fall further behind
        for number, actor in enumerate(self._staff.actors):
            while (
                actor.is_ready
                and self._crew.num_calls(actor) < CALLS_IN_FLIGHT
                and len(self._deliveries) < CALLS_IN_FLIGHT * self.fleet.actors
                and self.limiter.may_insert()
            ):
                self._play(number, actor)

    def _play(self, number: int, actor: Member) -> None:
        version, weights = self._publication.take(number)
        chunks: list[Any] = []

        def then(report: PlayReport) -> None:
            self._count(report)
            if report.windows:
                shard = number % self.fleet.shards
                self._deliveries.append(Delivery(report.key, chunks[0], shard))

        arguments = (self.steps_per_call, version, weights)
        chunks += self._crew.ask(actor, "play", *arguments, then=then, num_returns=2)

    def _count(self, report: PlayReport) -> None:
        self.frames += report.frames
        self._returns += report.returns
        self._counted[0] += report.steps
        self._counted[1] += report.explored
        for gauges in (self.gauges, self._report_gauges):
            gauges.frames += report.frames
            gauges.lags.append(max(self.num_updates - report.version, 0))

    def _deliver(self) -> None:
        """The oldest delivery of each memory, one at a time, so that they arrive in order."""
        for delivery in list(self._deliveries):
            shard = delivery.shard
            if self._staff.memories[shard].is_ready and not self._is_delivering[shard]:
                self._deliveries.remove(delivery)
                self._send(delivery)

    def _send(self, delivery: Delivery) -> None:
        shard = delivery.shard
        self._is_delivering[shard] = True
        delivery.num_attempts += 1

        def then(report: ShardReport) -> None:
            self._is_delivering[shard] = False
            self._staff.reports[shard] = report
            if report.kept:
                self.limiter.inserted(report.kept)

        def lost() -> None:
            # It is sent again; a memory that has it already recognises it. If the windows
            # themselves are gone, with the machine that they were on, that does not help.
            self._is_delivering[shard] = False
            if delivery.num_attempts < _MOST_ATTEMPTS:
                self._deliveries.appendleft(delivery)

        arguments = (delivery.key, delivery.chunk)
        self._crew.ask(self._staff.memories[shard], "add", *arguments, then=then, lost=lost)

    def _ask_for_updates(self) -> None:
        batch_size = preset_of(self.settings).learner.batch_size
        while (
            self._staff.learner.is_ready
            and self._num_samples + self._crew.num_calls(self._staff.learner) < CALLS_IN_FLIGHT + 1
            and self.limiter.may_sample(batch_size)
        ):
            totals = [
                report.total_priority if memory.is_ready else 0.0
                for report, memory in zip(self._staff.reports, self._staff.memories, strict=True)
            ]
            if not sum(totals) > 0.0:
                return
            # A batch is of one memory, drawn in proportion to what it holds: every window is then
            # as likely as in one large memory, and weights, relative within a batch, are the same.
            shard = int(self._rng.choice(len(totals), p=np.array(totals) / sum(totals)))
            self._sample(shard, batch_size)

    def _sample(self, shard: int, batch_size: int) -> None:
        self.limiter.sampled(batch_size)
        self._num_samples += 1
        batches: list[Any] = []

        def then(_: int) -> None:
            self._num_samples -= 1
            if self._staff.learner.is_ready:
                self._update(shard, batches[0])

        def lost() -> None:
            self._num_samples -= 1

        memory = self._staff.memories[shard]
        batches += self._crew.ask(memory, "sample", batch_size, then=then, lost=lost, num_returns=2)

    def _update(self, shard: int, batch: Any) -> None:
        memory = self._staff.memories[shard]
        pid = memory.pid

        def then(report: UpdateReport) -> None:
            self._staff.num_updates = report.num_updates
            for name, value in report.measured.items():
                self._means.setdefault(name, Mean()).add(value)
            for gauges in (self.gauges, self._report_gauges):
                gauges.updates += 1
                gauges.learner_waited += report.waited
                gauges.learner_worked += report.seconds
            if memory.is_ready and memory.pid == pid:
                self._write_back(shard, report)

        self._crew.ask(self._staff.learner, "update", batch, then=then)

    def _write_back(self, shard: int, report: UpdateReport) -> None:
        def then(answer: ShardReport) -> None:
            self._staff.reports[shard] = answer

        arguments = (report.slots, report.generations, report.priorities)
        self._crew.ask(self._staff.memories[shard], "update_priorities", *arguments, then=then)

    def _ask_for_evaluation(self) -> None:
        """The last one is of the last weights."""
        publication = self._publication
        if publication.weights is not None and (publication.is_newest or not self.is_finished):
            self._examination.ask(self.frames, publication.weights)

    # Turns and barriers.

    def _turn(self) -> None:
        self._deliver()
        self._crew.turn()

    def _drain(self) -> None:
        """Let everybody finish what was asked for, evaluations aside."""
        while self._deliveries or not self._is_drained:
            self._turn()

    @property
    def _is_drained(self) -> bool:
        others = [member for member in self._crew.members if member is not self._staff.evaluator]
        return all(member.is_ready and not self._crew.num_calls(member) for member in others)

    def _gather(self) -> dict[str, Any]:
        """States of everybody; worthless if somebody was lost meanwhile."""
        self._num_snapshots += 1
        states: dict[str, Any] = {"actors": [None] * self.fleet.actors}
        is_small = self._saved_lane_bytes <= _MOST_SAVED_LANE_BYTES

        def keep_actor(number: int) -> Callable[[Any], None]:
            return lambda state: states["actors"].__setitem__(number, state)

        for number, actor in enumerate(self._staff.actors if is_small else []):
            self._crew.ask(actor, "state", then=keep_actor(number))
        self._crew.ask(
            self._staff.learner, "state", then=lambda state: states.update(learner=state)
        )
        for memory in self._staff.memories:
            self._crew.ask(memory, "save", self._num_snapshots, then=lambda _: None)
        restarts = self.num_restarts
        while not self._is_drained and self.num_restarts == restarts:
            self._turn()
        return states

    @property
    def _saved_lane_bytes(self) -> int:
        """What open blocks take: a stride of observations for each lane."""
        shape, dtype = self._staff.surface.observation_shape, self._staff.surface.frame_dtype
        each = int(np.prod(shape)) * dtype.itemsize
        return self.settings.lanes * (preset_of(self.settings).stride + 1) * each
