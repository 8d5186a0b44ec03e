"""Which actors have a place? The learner, the memories and the evaluators come first.

Their places are reserved, so nobody takes them while they are restarted. If a machine is lost, the
actors on it give up their claims, and if the cluster then lacks CPUs for those who come first, as
many other actors as it takes give way. The lanes of an actor without a place wait. It gets a place
as soon as there is a free CPU, which is also how actors start at the beginning.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ezgreedy.fleet.places import Places, Reserved
from ezgreedy.fleet.supervision import FleetError, Process, Supervisor

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_BETWEEN_HEAD_CHECKS = 5.0
# Time in which free CPUs may be counted wrong, after processes were started or ended.
_SETTLING_SECONDS = 3.0
_SECONDS_BEFORE_WORDS = 2.0  # what is over by then is not worth a message
# Time for Ray to find free places, after which the GPU's machine may have no free CPU.
_SECONDS_WITHOUT_GPU = 10.0
# Ray ends this process after 60 s; before that, the run can still say why.
MOST_SECONDS_WITHOUT_HEAD = 45.0


class HeadWatch:
    """Notices that the head of the cluster does not answer, which Ray does not report.

    Args:
        supervisor: supervisor that is connected to the cluster.
        say: called with messages for the user.
    """

    def __init__(self, supervisor: Supervisor, say: Callable[[str], None]) -> None:
        self._supervisor, self._say = supervisor, say
        self.is_lost = False
        self._last_seen = supervisor.now()
        self._next_check = self._last_seen + _SECONDS_BETWEEN_HEAD_CHECKS

    def turn(self, now: float) -> None:
        """Check from time to time; raises if the head has been lost for too long.

        Args:
            now: the time.
        """
        if now < self._next_check:
            return
        self._next_check = now + _SECONDS_BETWEEN_HEAD_CHECKS
        was_lost, self.is_lost = self.is_lost, not self._supervisor.head_answers()
        if not self.is_lost:
            self._last_seen = now
            if was_lost:
                self._say("the head of the Ray cluster answers again")
            return
        told = f"the head of the Ray cluster, {self._supervisor.head()}, does not answer"
        if now - self._last_seen > MOST_SECONDS_WITHOUT_HEAD:
            raise FleetError(f"{told}; start the cluster again and resume the run")
        if not was_lost:
            self._say(f"{told}; waiting for it for {MOST_SECONDS_WITHOUT_HEAD:g} s")


class Roster:
    """The places of a fleet's processes.

    Args:
        supervisor: supervisor of the processes.
        actors: the actors, which have no places at the beginning.
        reservations: places of all others.
        launch: starts the process of an actor and returns its handle.
        say: called with messages for the user.
        needs_gpu: whether one of the reserved places needs a GPU.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        actors: Sequence[Process],
        reservations: Sequence[Reserved],
        launch: Callable[[], Any],
        say: Callable[[str], None],
        *,
        needs_gpu: bool = False,
    ) -> None:
        self._supervisor, self._actors, self._reservations = supervisor, actors, reservations
        self._launch, self._say, self._needs_gpu = launch, say, needs_gpu
        self._head = HeadWatch(supervisor, say)
        self._next_look = self._settled_at = self._had_actors = supervisor.now()
        self._short_since: float | None = None
        self._said: tuple[Any, ...] = ()
        supervisor.has_not_started = self._has_not_started

    def turn(self) -> None:
        """Look after places from time to time; costs nothing while all have theirs."""
        now = self._supervisor.now()
        self._head.turn(now)
        if not self._supervisor.asleep:
            self._end_shortage()
        elif now >= self._next_look and not self._head.is_lost:
            self._next_look = now + _SECONDS_BETWEEN_LOOKS
            self._look(now)

    def _look(self, now: float) -> None:
        places = self._supervisor.places()
        if self._dismiss_displaced(places):
            self._settled_at = now + _SETTLING_SECONDS
        num_lacking = sum(reserved.num_lacking for reserved in self._reservations)
        if now >= self._settled_at:
            has_changed = (
                self._make_room(num_lacking, places, now) if num_lacking else self._fill(places)
            )
            if has_changed:
                self._settled_at = now + _SETTLING_SECONDS
        if not num_lacking and not self._away:
            self._end_shortage()
            return
        self._short_since = now if self._short_since is None else self._short_since
        if now - self._short_since >= _SECONDS_BEFORE_WORDS:
            self._tell(num_lacking, places)
        self._require_actors(num_lacking, places, now)

    @property
    def _away(self) -> list[Process]:
        """Actors without a place."""
        return [actor for actor in self._actors if actor.handle is None]

    @property
    def _starting(self) -> list[Process]:
        """Actors that were launched and have not answered yet."""
        return [a for a in self._actors if a.handle is not None and a.pid is None]

    def _dismiss_displaced(self, places: Places) -> bool:
        """Withdraws actors whose machine is gone; whether there were any.

        Ray is about to start them elsewhere, perhaps before those who come first.
        """
        displaced = [
            actor
            for actor in self._starting
            if actor.machine and actor.machine not in places.machines
        ]
        for actor in displaced:
            self._supervisor.withdraw(actor)
        return bool(displaced)

    def _make_room(self, num_lacking: int, places: Places, now: float) -> bool:
        """Withdraws actors as long as reserved places are lacking; whether there were any."""
        lack = num_lacking - places.free
        if lack <= 0 and self._needs_gpu and self._short_since is not None:
            # There are free CPUs, but perhaps none on a machine with a GPU.
            lack = int(now - self._short_since > _SECONDS_WITHOUT_GPU)
        leaving = (self._starting or self._last_to_stay(places)[:lack]) if lack > 0 else []
        for actor in leaving:
            self._supervisor.withdraw(actor)
        return bool(leaving)

    def _last_to_stay(self, places: Places) -> list[Process]:
        """Living actors, those first whose machine is the most useful to those who come first."""
        living = [actor for actor in self._actors if actor.pid is not None]
        together: dict[str, int] = {}
        for actor in living:
            together[actor.machine] = together.get(actor.machine, 0) + 1

        def order(actor: Process) -> tuple[bool, int, str, int]:
            has_gpu = self._needs_gpu and actor.machine in places.with_gpus
            return not has_gpu, -together[actor.machine], actor.machine, -actor.number

        return sorted(living, key=order)

    def _fill(self, places: Places) -> bool:
        """Gives the free places to actors that have none; whether there were any."""
        joining = self._away[: max(places.free, 0)]
        for actor in joining:
            self._supervisor.place(actor, self._launch())
        return bool(joining)

    def _waiting(self, num_lacking: int) -> list[str]:
        """Names of those without a place who come first."""
        actors = set(self._actors)
        asleep = self._supervisor.asleep if num_lacking else ()
        return [one.name for one in asleep if one not in actors]

    def _tell(self, num_lacking: int, places: Places) -> None:
        """Names what is missing, once for each shortage."""
        num_away, waiting = len(self._away), self._waiting(num_lacking)
        shortage = (tuple(waiting), num_away, places.cpus)
        if shortage == self._said:
            return
        self._said = shortage
        told = f"{self._wanted}, and {places}"
        if waiting:
            told = f"no place for {', '.join(waiting)}: {told}"
        if num_away:
            told += f"; {num_away} of {len(self._actors)} actors give way until there are more"
        self._say(told)

    def _end_shortage(self) -> None:
        self._had_actors = self._supervisor.now()
        self._short_since = None
        if self._said:
            self._said = ()
            self._say(f"all {len(self._supervisor.processes)} processes have places again")

    def _require_actors(self, num_lacking: int, places: Places, now: float) -> None:
        """Fails if no actor has had a place for too long."""
        if len(self._away) < len(self._actors):
            self._had_actors = now
        seconds = self._supervisor.patience.start
        if now - self._had_actors > seconds:
            whom = ", ".join([*self._waiting(num_lacking), "any actor"])
            told = f"{self._wanted}, and {places}"
            raise FleetError(f"no place for {whom} for {seconds:g} s: {told}")

    def _has_not_started(self, process: Process) -> None:
        """Waits longer for an actor, if others play; fails for anybody else."""
        seconds = self._supervisor.patience.start
        told = f"{process.name} did not start within {seconds:g} s"
        if process.last_reason:
            told += f" after: {process.last_reason}"
        others = [actor for actor in self._actors if actor.pid is not None]
        if process in self._actors and others:
            self._supervisor.withdraw(process)
            self._say(f"{told}; trying again")
            return
        if not self._head.is_lost and any(one.num_lacking for one in self._reservations):
            told += f"; {self._wanted}, and {self._supervisor.places()}"
        raise FleetError(told)

    @property
    def _wanted(self) -> str:
        gpu = " and a GPU" if self._needs_gpu else ""
        return f"the run wants {len(self._supervisor.processes)} CPUs{gpu}"
