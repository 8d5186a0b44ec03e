"""A fleet in virtual time: processes that only say how long their work takes.

`VirtualSupervisor` takes the place of Ray's supervisor, so that the real coordinator runs against
it. A process works on one call after another, as Ray's do. Time passes when the coordinator waits
for the next answer, and when it makes a call; what arrives in the meantime waits for it.
"""

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ezgreedy.agents.means import Explored
from ezgreedy.agents.r2d2.actor import Whereabouts
from ezgreedy.agents.r2d2.feed import NUM_BUFFERS
from ezgreedy.agents.r2d2.roles import Learned
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.fleet.costs import Costs
from ezgreedy.fleet.fleet_settings import Patience
from ezgreedy.fleet.places import Places
from ezgreedy.fleet.roles import (
    ActorRole,
    EvaluatorRole,
    Key,
    LearnerRole,
    PlayReport,
    ShardReport,
    ShardRole,
    UpdateReport,
    preset_of,
)
from ezgreedy.fleet.supervision import FleetError, Process, Supervisor
from ezgreedy.fleet.virtual_cluster import VirtualCluster, VirtualReservation
from ezgreedy.runs.evaluation import Evaluation

SECONDS_UNTIL_DEAD = 15.0  # until Ray declares a machine dead that does not answer
_SECONDS_BETWEEN_TICKS = 0.5


class VirtualMember:
    """A process that only says how long its work takes and what comes of it.

    Args:
        costs: seconds that everything takes.
    """

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.place: tuple[VirtualReservation, int] | None = None  # that is reserved for it
        self.machine = ""  # where it is
        self.life = 0  # number of times that it was started or ended
        self.free_at = 0.0
        self._worked = 0.0  # seconds, without those in `_spans`
        self._spans: deque[tuple[float, float]] = deque()  # of work not known to be over

    def answer(self, method: str, arguments: tuple[Any, ...], arrived: float) -> tuple[Any, ...]:
        """The results of a call, after which `free_at` is the time of its end.

        Args:
            method: name of a method of its role.
            arguments: arguments of the method.
            arrived: time at which the call arrives.
        """
        self._begun = begun = max(self.free_at, self.prepared(method, arrived))
        seconds, *answers = getattr(self, f"do_{method}")(*arguments)
        self.work(begun, seconds)
        return tuple(answers)

    def work(self, begun: float, seconds: float) -> None:
        """Work for some seconds, as soon as it is free.

        Args:
            begun: time from which it could.
            seconds: duration of the work.
        """
        begun = max(begun, self.free_at)
        self.free_at = begun + seconds
        self._spans.append((begun, self.free_at))

    def prepared(self, _method: str, arrived: float) -> float:
        """Time from which the work for a call could begin.

        Args:
            _method: name of the method.
            arrived: time at which the call arrives.
        """
        return arrived

    def worked(self, now: float) -> float:
        """Seconds of work until now.

        Args:
            now: the time.
        """
        while self._spans and self._spans[0][1] <= now:
            begun, end = self._spans.popleft()
            self._worked += end - begun
        return self._worked + (max(now - self._spans[0][0], 0.0) if self._spans else 0.0)

    def forget(self, now: float) -> None:
        """Give up all work, at the end of a process.

        Args:
            now: the time.
        """
        self._worked = self.worked(now)
        self._spans.clear()
        self.free_at = 0.0


class VirtualActor(VirtualMember):
    """Plays: every lane completes a window in each stride."""

    def do_begin(
        self, settings: RunSettings, number: int, where: Whereabouts, incarnation: int, _: Any
    ) -> tuple[float, None]:
        """Seconds to start, and nothing."""
        self._key, self._lanes = Key(number, incarnation, 0), where.lanes
        self._stride = preset_of(settings).stride
        self._frame_skip = settings.protocol.frame_skip
        self._num_steps = self._version = 0
        return 0.0, None

    def do_play(self, steps: int, version: int, weights: Any) -> tuple[float, PlayReport, int]:
        """Seconds of play, a report, and the number of completed windows."""
        seconds = steps * (self.costs.act + self._lanes * self.costs.step)
        if weights is not None:
            self._version = version
            seconds += self.costs.load
        strides = (self._num_steps + steps) // self._stride - self._num_steps // self._stride
        self._num_steps += steps
        self._key = self._key._replace(number=self._key.number + 1)
        windows, frames = strides * self._lanes, steps * self._lanes * self._frame_skip
        explored = Explored(0, 0)
        report = PlayReport(self._key, self._version, frames, explored, [], windows, seconds)
        return seconds, report, windows


class VirtualMemory(VirtualMember):
    """Stores windows, all with the same priority; loses none when it is restarted."""

    num_windows = 0

    def do_begin(self, *_: Any) -> tuple[float, tuple[ShardReport, None]]:
        """Seconds to start, and a report."""
        return 0.0, (self._report(0), None)

    def do_add_all(self, _: list[Key], *chunks: int) -> tuple[float, ShardReport]:
        """Seconds to store windows, and a report."""
        windows = sum(chunks)
        self.num_windows += windows
        return windows * self.costs.store, self._report(windows)

    def do_sample(self, batch_size: int) -> tuple[float, int, int]:
        """Seconds to draw and send a batch, the number of windows, and the batch."""
        return batch_size * self.costs.draw + self.costs.send, self.num_windows, batch_size

    def do_update_priorities(self, *_: Any) -> tuple[float, ShardReport]:
        """Seconds to store priorities, and a report."""
        return 0.0, self._report(0)

    def _report(self, kept: int) -> ShardReport:
        return ShardReport(kept, 0, self.num_windows, float(self.num_windows))


class VirtualLearner(VirtualMember):
    """Learns: every update takes the same time; loses none when it is restarted.

    Batches are decoded one after another, each into one of two buffers, while it computes.
    """

    def __init__(self, costs: Costs) -> None:
        super().__init__(costs)
        self.ends: list[float] = []  # of the updates
        self.decoder = VirtualMember(costs)  # its threads, all together

    def do_begin(
        self, settings: RunSettings, _spec: Any, _state: Any, decode_threads: int
    ) -> tuple[float, int]:
        """Seconds to start, and the number of updates."""
        batch_size = preset_of(settings).learner.batch_size
        self._decode_seconds = batch_size * self.costs.decode / decode_threads
        return 0.0, len(self.ends)

    def prepared(self, method: str, arrived: float) -> float:
        """Time at which the batch of an update is decoded; see `VirtualMember`."""
        if method != "update":
            return arrived
        buffer_is_free = self.ends[-NUM_BUFFERS] if len(self.ends) >= NUM_BUFFERS else 0.0
        self.decoder.work(max(arrived, buffer_is_free), self._decode_seconds)
        return self.decoder.free_at

    def forget(self, now: float) -> None:
        """Give up all work, that of its threads too."""
        super().forget(now)
        self.decoder.forget(now)

    def do_update(self, _: Any) -> tuple[float, UpdateReport]:
        """Seconds of an update, and a report."""
        begun, seconds = self._begun, self.costs.update
        waited = begun - self.ends[-1] if self.ends else 0.0
        self.ends.append(begun + seconds)
        nothing = np.zeros(0, dtype=np.int64)
        learned = Learned(nothing, nothing, np.zeros(0), {})
        return seconds, UpdateReport(len(self.ends), learned, waited, seconds)

    def do_weights(self) -> tuple[float, int, str]:
        """Seconds to hand out weights, their version, and a name for them."""
        return self.costs.publish, len(self.ends), f"weights {len(self.ends)}"


class VirtualEvaluator(VirtualMember):
    """Evaluates: every evaluation has the same length."""

    def do_begin(self, settings: RunSettings, _: Any) -> tuple[float, None]:
        """Seconds to start, and nothing."""
        self._frames = settings.evaluation.frames
        return 0.0, None

    def do_evaluate(self, _number: int, _weights: Any) -> tuple[float, Evaluation]:
        """Seconds of an evaluation, and its scores."""
        return self._frames * self.costs.evaluate, Evaluation([0.0], [], self._frames, 0.0)


_MEMBERS: dict[type, type[VirtualMember]] = {
    ActorRole: VirtualActor,
    ShardRole: VirtualMemory,
    LearnerRole: VirtualLearner,
    EvaluatorRole: VirtualEvaluator,
}


class VirtualSupervisor(Supervisor):
    """Processes in virtual time.

    Args:
        costs: seconds that everything takes.
        patience: number of crashes to tolerate, and time for processes to start.
        cpus: CPUs of each machine; none for a single machine that holds everybody.
    """

    def __init__(
        self, costs: Costs, patience: Patience | None = None, cpus: Sequence[int] = ()
    ) -> None:
        super().__init__(patience or Patience(most_crashes=10**9))
        self.costs = costs
        self.cluster = VirtualCluster(cpus)
        self.busy = 0.0  # seconds of the coordinator's work
        self.num_asked = 0
        self.has_waited: Callable[[float], None] = lambda seconds: None  # called in every turn
        self._time = self._next_tick = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []  # a heap

    def now(self) -> float:
        """Virtual seconds since the beginning."""
        return self._time

    def launch(self, role: type, **options: Any) -> VirtualMember:
        """A member that takes the place of a role."""
        member = _MEMBERS[role](self.costs)
        member.place = options.get("place")
        return member

    def reserve(self, bundles: Sequence[Mapping[str, float]], _: str) -> VirtualReservation:
        """Places that are kept free for processes."""
        return self.cluster.reserve(len(bundles))

    def places(self) -> Places:
        """Places of the cluster."""
        return self.cluster.places()

    def head_answers(self) -> bool:
        """Whether the head answers, which it always does."""
        return True

    def add(self, process: Process) -> Process:
        """Supervise one more process, which wakes after a while."""
        self.processes.append(process)
        self.asleep[process] = None
        if process.handle is not None:
            self._wake_later(process)
        return process

    def place(self, process: Process, handle: Any) -> None:
        """Give a place to a process that had none.

        Args:
            process: the process.
            handle: a member, from `launch`.
        """
        process.handle, process.machine = handle, ""
        self._wake_later(process)

    def at(self, time: float, what: Callable[[], None]) -> None:
        """Have something happen at a time.

        Args:
            time: virtual seconds since the beginning.
            what: called then.
        """
        heapq.heappush(self._events, (time, next(self._numbers), what))

    def turn(self) -> None:
        """Let time pass until the next answer, and handle what has arrived."""
        self.num_turns += 1
        self._look_after_sleepers()
        if not self._events:
            raise FleetError("the fleet has come to a stop: nobody has anything left to do")
        waited = 0.0 if self.has_more else max(self._events[0][0] - self._time, 0.0)
        self.has_more = False
        self.has_waited(waited)
        now = self._time = self._time + waited
        while self._events and self._events[0][0] <= now:
            heapq.heappop(self._events)[2]()

    def _look_after_sleepers(self) -> None:
        """Has time pass in short steps while somebody is being started or has no place."""
        if self.asleep and self._time >= self._next_tick:
            self._next_tick = self._time + _SECONDS_BETWEEN_TICKS
            self.at(self._next_tick, lambda: None)
            for process in list(self.asleep):
                is_late = self._time - process.waking_since > self.patience.start
                if process.handle is not None and is_late:
                    self.has_not_started(process)

    def end_all(self) -> None:
        """End all processes, which costs nothing."""

    def lose(self, process: Process) -> None:
        """Have a process die; it starts again in its place."""
        if process.pid is not None:
            self.crash(process, "it was lost")
            self._start(process)

    def lose_machine(self, machine: str) -> None:
        """Have a machine die; it is known to be dead, and its processes start again, after a while.

        Args:
            machine: its name.
        """
        for process in self.processes:
            if process.handle is not None and process.handle.machine == machine:
                process.handle.life += 1  # if it was being started
                if process.pid is not None:
                    self.crash(process, "its machine was lost")
        self.at(self._time + SECONDS_UNTIL_DEAD, lambda: self._bury(machine))

    def _bury(self, machine: str) -> None:
        self.cluster.lose(machine)
        for process in list(self.asleep):
            if process.handle is not None and process.handle.machine == machine:
                self._wake_later(process)

    def stall(self, process: Process, seconds: float) -> None:
        """Have a process do nothing for a while, after what it has been asked to do."""
        process.handle.free_at = max(process.handle.free_at, self._time) + seconds

    def _end(self, handle: VirtualMember) -> None:
        handle.life += 1
        self.cluster.release(handle)

    def _wake_later(self, process: Process) -> None:
        """Starts a process as soon as it has a machine."""
        member: VirtualMember = process.handle
        process.waking_since, member.machine = self._time, ""

        def placed(machine: str) -> None:
            member.machine = machine
            self._start(process)

        if member.place is None:
            self.cluster.claim(member, placed)
        else:
            reservation, number = member.place
            reservation.enter(number, placed)

    def _start(self, process: Process) -> None:
        member: VirtualMember = process.handle
        member.life += 1
        life = member.life

        def wake() -> None:
            if member.life == life:
                self._wake(process, next(self._numbers), member.machine)

        member.forget(self._time)
        self.at(self._time + self.costs.start, wake)

    def _check_later(self, process: Process, seconds: float) -> None:
        """Does nothing: losses are known at once."""

    def _send(
        self, process: Process, method: str, arguments: tuple[Any, ...], num_returns: int
    ) -> list[Any]:
        self.num_asked += 1
        self._time += self.costs.call
        self.busy += self.costs.call
        member: VirtualMember = process.handle
        value, *others = member.answer(method, arguments, self._time + self.costs.latency)
        ref = next(self._numbers)

        def arrive() -> None:
            if ref in self._askers:
                self._take(ref).then(value)

        self.at(member.free_at + self.costs.latency, arrive)
        return [ref, *others]
