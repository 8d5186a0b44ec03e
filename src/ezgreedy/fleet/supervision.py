"""Supervision of processes with roles: calls, heartbeats, crashes and restarts.

A call is sent to a process and settled later: with its return value, or as lost if the process
died, stopped answering or was killed. No call is waited for indefinitely. Ray restarts a process
that died, without its state; as soon as it answers, it is asked to begin.

A process may also have no place, because the cluster lacks CPUs (`fleet.roster` decides that): it
then has no handle, and is not waited for.

A turn costs as much as what has happened since the last one: results arrive in a queue, and each
process is checked from time to time, however many others there are.
"""

import functools
import heapq
import itertools
import os
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ezgreedy.fleet import places
from ezgreedy.fleet.fleet_settings import Patience
from ezgreedy.fleet.places import Places, Reservation, Reserved
from ezgreedy.runs.run_loop import FailedTrainingError

_SECONDS_BETWEEN_CALLS_TO_WAKE = 0.3
_LONGEST_WAIT = 0.5
_LONGEST_BETWEEN_CHECKS = 1.0
# Errors that would recur; after others, the process is restarted.
_FINAL = (ArithmeticError, LookupError, ValueError, TypeError, OSError)


class FleetError(FailedTrainingError):
    """A fleet that cannot continue; its run can be resumed from the last checkpoint."""


@dataclass(eq=False)
class Call:
    """A pending call to a process."""

    process: "Process"
    ref: Any
    sent: float
    then: Callable[[Any], None]
    lost: Callable[[], None]
    limit: float


@dataclass(eq=False)
class Process:
    """One process and its known state."""

    name: str
    handle: Any  # None while it has no place
    begin: Callable[["Process"], None]  # asks it to begin; sets `is_ready` once it has
    number: int = 0  # among those with the same role
    incarnation: int = 0
    is_ready: bool = False
    pid: int | None = None
    machine: str = ""  # id of the one where it last lived in its place
    past_lives: set[tuple[str, int]] = field(default_factory=set)  # machines and pids
    crashes: deque[float] = field(default_factory=deque)  # times
    last_reason: str = ""
    waking_since: float = field(default_factory=time.monotonic)
    ping: Any = None
    ping_sent: float = 0.0
    last_settled: float = 0.0  # time at which it last settled a call
    calls: dict[Any, Call] = field(default_factory=dict)  # pending ones by reference, oldest first
    check_at: float = 0.0  # time of its next check


def launch(role: type, num_cpus: float = 1.0, num_gpus: float = 0.0, **options: Any) -> Any:
    """A process with a role, and with heartbeats while it works.

    A role works on one call at a time, except for the methods that its `calls_at_once` names.
    """
    import ray

    class Supervised(role):  # type: ignore[misc]
        @ray.method(concurrency_group="heart")  # type: ignore[untyped-decorator]
        def ping(self) -> tuple[int, str]:
            return os.getpid(), ray.get_runtime_context().get_node_id()

    Supervised.__name__ = Supervised.__qualname__ = role.__name__
    at_once: Mapping[str, int] = getattr(role, "calls_at_once", {})
    for name in at_once:
        method = ray.method(concurrency_group=name)
        setattr(Supervised, name, method(_forwarded(getattr(role, name))))
    remote = ray.remote(
        max_restarts=-1,
        max_task_retries=0,  # play must not be repeated
        concurrency_groups={"heart": 1, **at_once},
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        **options,
    )
    return remote(Supervised).remote()


def _forwarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method as another object, which Ray may mark."""

    @functools.wraps(method)
    def call(*arguments: Any) -> Any:
        return method(*arguments)

    return call


class Supervisor:
    """All processes of a fleet and their pending calls.

    Args:
        patience: time limits for processes.
    """

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.processes: list[Process] = []
        self.asleep: dict[Process, None] = {}  # those that have not answered since they started
        self.has_lost: Callable[[Process], None] = lambda process: None  # called after a crash
        self.has_not_started: Callable[[Process], None] = self._fail_to_start
        self.num_restarts = 0
        self.num_turns = 0
        self.has_more = False  # requests are left for the next turn, so this one must not wait
        self.num_pending = 0  # calls to all processes together
        self._askers: dict[Any, Process] = {}  # processes by the references of pending calls
        self._pinged: dict[Any, Process] = {}
        self._arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._checks: list[tuple[float, int, Process]] = []  # a heap
        self._numbers = itertools.count()

    def now(self) -> float:
        """Seconds of the clock that this supervisor lives by."""
        return time.monotonic()

    def launch(self, role: type, **options: Any) -> Any:
        """A handle of a new process with a role; see `launch`."""
        return launch(role, **options)

    def reserve(self, bundles: Sequence[Mapping[str, float]], strategy: str) -> Reserved:
        """Places that are kept free for processes; see `Reservation`."""
        return Reservation(bundles, strategy)

    def places(self) -> Places:
        """Places of the cluster; see `places.places`."""
        return places.places()

    def head(self) -> str:
        """Address of the cluster's head."""
        return places.head_address()

    def head_answers(self) -> bool:
        """Whether the cluster's head can be reached."""
        return places.answers(self.head())

    def add(self, process: Process) -> Process:
        """Supervise one more process, which may have no place yet."""
        self.processes.append(process)
        self.asleep[process] = None
        if process.handle is not None:
            self._check_later(process, 0.0)
        return process

    def place(self, process: Process, handle: Any) -> None:
        """Give a place to a process that had none.

        Args:
            process: the process.
            handle: its handle, from `launch`.
        """
        process.handle, process.machine, process.waking_since = handle, "", self.now()
        self._check_later(process, 0.0)

    def withdraw(self, process: Process) -> None:
        """End a process that has to give up its place; this is not a crash."""
        handle, process.handle = process.handle, None
        self._end(handle)
        self._leave(process)

    def ask(
        self,
        process: Process,
        method: str,
        *arguments: Any,
        then: Callable[[Any], None],
        lost: Callable[[], None] = lambda: None,
        limit: float | None = None,
        num_returns: int = 1,
    ) -> Any:
        """Call a method of a process; returns immediately.

        Args:
            process: the process.
            method: name of a method of its role.
            arguments: arguments of the method; Ray resolves references.
            then: called with the return value.
            lost: called instead if the call is lost.
            limit: seconds after which the process is killed.
            num_returns: number of values returned; if several, `then` gets the first.

        Returns:
            References to the other return values, if there are several.
        """
        first, *others = self._send(process, method, arguments, num_returns)
        limit = self.patience.call if limit is None else limit
        self._register(Call(process, first, self.now(), then, lost, limit))
        return others

    def num_calls(self, process: Process) -> int:
        """Number of pending calls to a process."""
        return len(process.calls)

    def turn(self) -> None:
        """Wait for results for at most half a second, and handle them."""
        self.num_turns += 1
        # Before anybody is found silent: this process may have been busy for a while.
        has_come = self._handle(self._arrivals(0.0))
        self._check_those_due()
        is_hurried, self.has_more = self.has_more, False
        if not (has_come or is_hurried):
            pause = self._checks[0][0] - self.now() if self._checks else _LONGEST_WAIT
            self._handle(self._arrivals(min(max(pause, 0.0), _LONGEST_WAIT)))

    def end_all(self) -> None:
        """End all processes."""
        for process in self.processes:
            if process.handle is not None:
                self._end(process.handle)

    def crash(self, process: Process, reason: str) -> None:
        """Give up the pending calls of a process that is gone or about to go."""
        if not process.is_ready and process.pid is None:
            return  # already known
        now = self.now()
        process.last_reason = reason
        process.crashes.append(now)
        while process.crashes[0] < now - self.patience.crash_period:
            process.crashes.popleft()
        self.num_restarts += 1
        if len(process.crashes) > self.patience.most_crashes:
            raise FleetError(
                f"{process.name} crashed {len(process.crashes)} times within "
                f"{self.patience.crash_period:g} s, at last with: {reason}"
            )
        self._check_later(process, _SECONDS_BETWEEN_CALLS_TO_WAKE)
        self._leave(process)
        self.has_lost(process)

    def _leave(self, process: Process) -> None:
        """Gives up the pending calls of a process, which may come back in a new life."""
        if process.pid is not None:
            process.past_lives.add((process.machine, process.pid))
        process.is_ready, process.pid, process.ping = False, None, None
        process.waking_since = self.now()
        self.asleep[process] = None
        for call in [self._take(ref) for ref in list(process.calls)]:
            call.lost()

    def _end(self, handle: Any) -> None:
        import ray

        ray.kill(handle)

    def _send(
        self, process: Process, method: str, arguments: tuple[Any, ...], num_returns: int
    ) -> list[Any]:
        """Sends a call; returns references to its results."""
        options = getattr(process.handle, method).options(num_returns=num_returns)
        refs = options.remote(*arguments)
        refs = list(refs) if num_returns > 1 else [refs]
        self._watch(refs[0])
        return refs

    def _watch(self, ref: Any) -> None:
        """Has a reference put into the queue, by a thread of Ray's, once its value is there."""
        ref.future().add_done_callback(lambda _: self._arrived.put(ref))

    def _register(self, call: Call) -> None:
        call.process.calls[call.ref] = call
        self._askers[call.ref] = call.process
        self.num_pending += 1

    def _take(self, ref: Any) -> Call:
        """A call that is no longer pending."""
        self.num_pending -= 1
        return self._askers.pop(ref).calls.pop(ref)

    def _handle(self, refs: Iterator[Any]) -> bool:
        """Handles results; whether there were any."""
        has_come = False
        for ref in refs:
            has_come = True
            # Answers to calls that were given up are ignored.
            if ref in self._askers:
                self._settle(self._take(ref))
            elif ref in self._pinged:
                self._read_ping(self._pinged.pop(ref), ref)
        return has_come

    def _arrivals(self, seconds: float) -> Iterator[Any]:
        """References whose values have come; waits up to this long for the first."""
        try:
            yield self._arrived.get(timeout=seconds) if seconds else self._arrived.get_nowait()
            for _ in range(self._arrived.qsize()):
                yield self._arrived.get_nowait()
        except queue.Empty:
            return

    def _settle(self, call: Call) -> None:
        import ray
        from ray.exceptions import RayActorError, RayError, RayTaskError

        call.process.last_settled = self.now()
        try:
            value = ray.get(call.ref, timeout=self.patience.silence)
        except RayTaskError as error:
            call.lost()
            self._fail(call.process, error)
        except RayActorError as error:
            call.lost()
            self.crash(call.process, _words(error))
        except RayError:
            call.lost()  # an argument was lost with another process
        else:
            call.then(value)

    def _fail(self, process: Process, error: Any) -> None:
        """Handle an exception of a role: raise if it is final, otherwise restart the process."""
        from ezgreedy.learning.gradients import NotFiniteError

        if isinstance(error.cause, NotFiniteError):
            raise error.cause from None
        if not isinstance(error.cause, _FINAL):
            self.kill(process, _words(error))
            return
        raise FleetError(f"{process.name} failed: {_words(error)}") from None

    def kill(self, process: Process, reason: str) -> None:
        """Kill a process; Ray restarts it."""
        import ray

        ray.kill(process.handle, no_restart=False)
        self.crash(process, reason)

    def _check_later(self, process: Process, seconds: float) -> None:
        process.check_at = self.now() + seconds
        heapq.heappush(self._checks, (process.check_at, next(self._numbers), process))

    def _check_those_due(self) -> None:
        now = self.now()
        while self._checks and self._checks[0][0] <= now:
            at, _, process = heapq.heappop(self._checks)
            if at != process.check_at or process.handle is None:
                continue  # it was put off or brought forward, or has no place
            self._lose_patience(process)
            if process.handle is None:
                continue
            self._send_heartbeat(process)
            pause = min(self.patience.heartbeat / 2, _LONGEST_BETWEEN_CHECKS)
            self._check_later(
                process, _SECONDS_BETWEEN_CALLS_TO_WAKE if process.pid is None else pause
            )

    def _send_heartbeat(self, process: Process) -> None:
        is_awake, now = process.pid is not None, self.now()
        pause = self.patience.heartbeat if is_awake else _SECONDS_BETWEEN_CALLS_TO_WAKE
        if process.ping is None and now - process.ping_sent >= pause:
            process.ping, process.ping_sent = process.handle.ping.remote(), now
            self._pinged[process.ping] = process
            self._watch(process.ping)

    def _read_ping(self, process: Process, ref: Any) -> None:
        import ray
        from ray.exceptions import ActorDiedError, RayError

        if ref is not process.ping:
            return  # it was sent before a crash
        process.ping = None
        try:
            pid, machine = ray.get(ref, timeout=self.patience.silence)
        except ActorDiedError as error:
            # Restarts are unlimited, so this is final: the process could not be created.
            raise FleetError(f"{process.name} cannot be started: {_words(error)}") from None
        except RayError as error:
            self.crash(process, _words(error))
            return
        if (machine, pid) == (process.machine, process.pid):
            return
        if (machine, pid) in process.past_lives:
            # It is alive, but its calls were given up, so it must not continue them.
            ray.kill(process.handle, no_restart=False)
            return
        if process.pid is not None:
            # It died and was restarted between two heartbeats, without its state.
            self.crash(process, "its process was replaced")
        self._wake(process, pid, machine)

    def _wake(self, process: Process, pid: int, machine: str = "") -> None:
        """Has a process begin that has answered for the first time in its new life."""
        process.pid, process.machine = pid, machine
        self.asleep.pop(process, None)
        process.begin(process)

    def _fail_to_start(self, process: Process) -> None:
        why = f" after: {process.last_reason}" if process.last_reason else ""
        seconds = self.patience.start
        raise FleetError(f"{process.name} did not start within {seconds:g} s{why}")

    def _lose_patience(self, process: Process) -> None:
        now, patience = self.now(), self.patience
        if process.pid is None:
            if now - process.waking_since > patience.start:
                self.has_not_started(process)
            return
        if process.ping is not None and now - process.ping_sent > patience.silence:
            self.kill(process, f"no sign of life for {patience.silence:g} s")
            return
        for call in process.calls.values():
            # Not since the call was made: others may have come first.
            begun = max(call.sent, process.last_settled)
            if now - begun > call.limit:
                self.kill(process, f"one task took more than {call.limit:g} s")
                return


def _words(error: BaseException) -> str:
    """The end of an exception's message, where Ray puts the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[-3:])}"[:600]
