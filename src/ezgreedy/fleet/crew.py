"""Processes with roles, and what becomes of them: calls, heartbeats, crashes, new beginnings.

A call is given to a process and settled later: with what it returned, or as lost if the process
died, went silent or was killed. Nobody ever waits for one without end. A process that died is
started again by Ray, with nothing in its head; as soon as it answers, it is told to begin.
"""

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ezgreedy.fleet.settings import Patience
from ezgreedy.running.driver import FailedTrainingError

_SECONDS_BETWEEN_CALLS_TO_WAKE = 0.3
_LONGEST_WAIT = 0.5
# What would happen again; other failures are answered with a new process.
_FINAL = (ArithmeticError, LookupError, ValueError, TypeError, OSError)


class FleetError(FailedTrainingError):
    """A fleet that cannot go on; its run can, from the last checkpoint."""


@dataclass(eq=False)
class Call:
    """Something a member was asked to do."""

    member: "Member"
    ref: Any
    sent: float
    then: Callable[[Any], None]
    lost: Callable[[], None]
    limit: float


@dataclass(eq=False)
class Member:
    """One process and what is known of it."""

    name: str
    handle: Any
    begin: Callable[["Member"], None]  # asks it to begin; `Crew.is_ready` once that is done
    incarnation: int = 0
    is_ready: bool = False
    pid: int | None = None
    dead_pids: set[int] = field(default_factory=set)
    crashes: deque[float] = field(default_factory=deque)  # when
    last_reason: str = ""
    waking_since: float = field(default_factory=time.monotonic)
    ping: Any = None
    ping_sent: float = 0.0
    last_settled: float = 0.0  # when it was last done with something


def recruit(role: type, num_cpus: float = 1.0, num_gpus: float = 0.0, **options: Any) -> Any:
    """A process with a role, and with a heart that beats while it works."""
    import ray

    class Recruited(role):  # type: ignore[misc]
        @ray.method(concurrency_group="heart")  # type: ignore[untyped-decorator]
        def ping(self) -> int:
            return os.getpid()

    Recruited.__name__ = Recruited.__qualname__ = role.__name__
    remote = ray.remote(
        max_restarts=-1,
        max_task_retries=0,  # play is not to be done twice
        concurrency_groups={"heart": 1},
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        **options,
    )
    return remote(Recruited).remote()


class Crew:
    """All processes of a fleet, and all that they have been asked to do.

    Args:
        patience: when processes are given up.
    """

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.members: list[Member] = []
        self.num_restarts = 0
        self._calls: dict[Any, Call] = {}

    def join(self, member: Member) -> Member:
        """One more."""
        self.members.append(member)
        return member

    def ask(
        self,
        member: Member,
        method: str,
        *arguments: Any,
        then: Callable[[Any], None],
        lost: Callable[[], None] = lambda: None,
        limit: float | None = None,
        num_returns: int = 1,
    ) -> Any:
        """Ask a member to do something; returns at once.

        Args:
            member: whom.
            method: of its role.
            arguments: of the method; references stand for what they refer to.
            then: called with what it returned.
            lost: called instead if nobody will ever know.
            limit: after so many seconds it is given up, with the process.
            num_returns: if there are several, `then` is called with the first.

        Returns:
            References to the other things that are returned, if there are several.
        """
        options = getattr(member.handle, method).options(num_returns=num_returns)
        refs = options.remote(*arguments)
        first, *others = refs if num_returns > 1 else [refs]
        limit = self.patience.call if limit is None else limit
        self._calls[first] = Call(member, first, time.monotonic(), then, lost, limit)
        return others

    def num_calls(self, member: Member) -> int:
        """How many calls of a member are not settled."""
        return sum(call.member is member for call in self._calls.values())

    @property
    def is_idle(self) -> bool:
        """Whether all calls are settled and everybody is ready."""
        return not self._calls and all(member.is_ready for member in self.members)

    def turn(self) -> None:
        """Wait for something to happen, for at most half a second, and deal with it."""
        import ray

        self._send_heartbeats()
        refs = [*self._calls, *(member.ping for member in self.members if member.ping is not None)]
        ready, _ = ray.wait(refs, num_returns=1, timeout=_LONGEST_WAIT)
        if ready:
            # In the order in which they were asked for.
            ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        for ref in ready:
            if ref in self._calls:
                self._settle(self._calls.pop(ref))
        for member in self.members:
            if member.ping in ready:
                self._hear(member)
            self._lose_patience(member)

    def dismiss(self) -> None:
        """End all processes."""
        import ray

        for member in self.members:
            ray.kill(member.handle)

    def crash(self, member: Member, reason: str) -> None:
        """What to do once a member's process is gone, or is to go."""
        if not member.is_ready and member.pid is None:
            return  # is known
        now = time.monotonic()
        if member.pid is not None:
            member.dead_pids.add(member.pid)
        member.is_ready, member.pid, member.ping = False, None, None
        member.waking_since, member.last_reason = now, reason
        member.crashes.append(now)
        while member.crashes[0] < now - self.patience.crash_period:
            member.crashes.popleft()
        self.num_restarts += 1
        if len(member.crashes) > self.patience.most_crashes:
            raise FleetError(
                f"{member.name} crashed {len(member.crashes)} times within "
                f"{self.patience.crash_period:g} s, at last with: {reason}"
            )
        lost = [call for call in self._calls.values() if call.member is member]
        for call in lost:
            del self._calls[call.ref]
        for call in lost:
            call.lost()

    def _settle(self, call: Call) -> None:
        import ray
        from ray.exceptions import RayActorError, RayError, RayTaskError

        call.member.last_settled = time.monotonic()
        try:
            value = ray.get(call.ref, timeout=self.patience.silence)
        except RayTaskError as error:
            call.lost()
            self._fail(call.member, error)
        except RayActorError as error:
            call.lost()
            self.crash(call.member, _words(error))
        except RayError:
            call.lost()  # something it needed was lost with another process
        else:
            call.then(value)

    def _fail(self, member: Member, error: Any) -> None:
        """A role raised something: its state is in doubt, and numbers that are none are final."""
        from ezgreedy.learning.gradients import NotFiniteError

        if isinstance(error.cause, NotFiniteError):
            raise error.cause from None
        if not isinstance(error.cause, _FINAL):
            self.kill(member, _words(error))
            return
        raise FleetError(f"{member.name} failed: {_words(error)}") from None

    def kill(self, member: Member, reason: str) -> None:
        """End a member's process; Ray starts it again."""
        import ray

        ray.kill(member.handle, no_restart=False)
        self.crash(member, reason)

    def _send_heartbeats(self) -> None:
        now = time.monotonic()
        for member in self.members:
            is_awake = member.pid is not None
            pause = self.patience.heartbeat if is_awake else _SECONDS_BETWEEN_CALLS_TO_WAKE
            if member.ping is None and now - member.ping_sent >= pause:
                member.ping, member.ping_sent = member.handle.ping.remote(), now

    def _hear(self, member: Member) -> None:
        import ray
        from ray.exceptions import ActorDiedError, RayError

        ref, member.ping = member.ping, None
        try:
            pid = ray.get(ref, timeout=self.patience.silence)
        except ActorDiedError as error:
            # With endless restarts it is final: the process could not even be made.
            raise FleetError(f"{member.name} cannot be started: {_words(error)}") from None
        except RayError as error:
            self.crash(member, _words(error))
            return
        if pid == member.pid:
            return
        if pid in member.dead_pids:
            # It lives, but what it was asked to do has been given up: it must not go on with it.
            ray.kill(member.handle, no_restart=False)
            return
        if member.pid is not None:
            # It died and came back between two heartbeats, with nothing in its head.
            self.crash(member, "its process was replaced")
        member.pid = pid
        member.begin(member)

    def _lose_patience(self, member: Member) -> None:
        now, patience = time.monotonic(), self.patience
        if member.pid is None:
            if now - member.waking_since > patience.start:
                why = f" after: {member.last_reason}" if member.last_reason else ""
                raise FleetError(f"{member.name} did not start within {patience.start:g} s{why}")
            return
        if member.ping is not None and now - member.ping_sent > patience.silence:
            self.kill(member, f"no sign of life for {patience.silence:g} s")
            return
        for call in list(self._calls.values()):
            # Not from when it was asked, for it may have had something else to do first.
            begun = max(call.sent, member.last_settled)
            if call.member is member and now - begun > call.limit:
                self.kill(member, f"one task took more than {call.limit:g} s")
                return


def _words(error: BaseException) -> str:
    """The end of what an exception says, which is where Ray has the reason."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[-3:])}"[:600]
