"""Weights in transit from the learner to other processes: one object for each version.

How old are the weights that an actor acts with? As many steps as it has begun since they were last
known to be the learner's newest. Steps of a call that was in progress then all count, because the
coordinator does not know how many of them came before. Each call gets the newest weights that are
here when it is made, and no more steps than keep their age below the paper's limit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ezgreedy.fleet.membership import Membership

STEPS_PER_WEIGHT_PULL = 100  # table of the paper: 400 environment steps, read as frames


def calls_in_flight(steps_per_call: int) -> int:
    """Calls that an actor may have at a time: two if weights last for a third one after them.

    Args:
        steps_per_call: largest number of steps of a call.
    """
    return 2 if 3 * steps_per_call <= STEPS_PER_WEIGHT_PULL else 1


class Allowance(NamedTuple):
    """What an actor may play in one call."""

    version: int  # number of updates of its weights
    weights: Any  # a reference to them; None if the actor has them
    age: int  # steps begun since they were the newest
    steps: int


class PublishedWeights:
    """The newest weights, and how old they are for each actor.

    Args:
        membership: the processes.
        steps_per_call: largest number of steps that an actor plays in one call.
    """

    def __init__(self, membership: Membership, steps_per_call: int) -> None:
        self._membership = membership
        self._steps_per_call = steps_per_call
        self.calls_in_flight = calls_in_flight(steps_per_call)
        self.weights: Any = None  # a reference; older objects are freed with their last reader
        self.version = -1  # number of updates; −1 before there are weights
        self.has_come: Callable[[], None] = lambda: None  # called when there are newer weights
        self._is_asked = False
        self._is_wanted = False
        num_actors = membership.fleet.actors
        self._given = [-1] * num_actors
        self._begun = [0] * num_actors  # steps asked of each actor
        self._ended = [0] * num_actors  # steps of its calls that were settled
        self._ended_now: list[tuple[int, int]] = []  # those of one turn: actors and steps
        self._turn = -1
        self._ended_before: list[int] | None = None  # as long as the weights were the newest

    @property
    def is_newest(self) -> bool:
        """Whether no update was made since these weights."""
        return self.version == self._membership.num_updates

    def forget(self) -> None:
        """Discard the version after a restart of the learner; actors may use up the weights."""
        self.version = -1
        self.note_update()

    def forget_actor(self, number: int) -> None:
        """Record that an actor has restarted and has no weights."""
        self._given[number] = -1

    def note_update(self) -> None:
        """Record that there may be newer weights, as soon as that is known."""
        if self._ended_before is None and not self.is_newest:
            # The update came after the turn before this one. What ended before that turn did so
            # with the newest weights, but what ended in this turn may have been later.
            self._ended_before = list(self._ended)
            if self._turn == self._membership.supervisor.num_turns:
                for number, steps in self._ended_now:
                    self._ended_before[number] -= steps

    def ask(self, *, is_urgent: bool = False) -> None:
        """Ask the learner for new weights, if there are any and a process needs them."""
        learner = self._membership.learner
        is_wanted = is_urgent or self.version < 0 or self._is_wanted
        if self._is_asked or not learner.is_ready or self.is_newest or not is_wanted:
            return
        self._is_asked = True
        refs: list[Any] = []

        def then(version: int) -> None:
            self._is_asked = self._is_wanted = False
            self.version, self.weights = version, refs[0]
            self._ended_before = None
            self.note_update()
            self.has_come()

        def lost() -> None:
            self._is_asked = False

        ask = self._membership.supervisor.ask
        refs += ask(learner, "weights", then=then, lost=lost, num_returns=2)

    def age(self, number: int) -> int:
        """Age, in steps, that the weights have for the next step of an actor.

        Args:
            number: number of the actor.
        """
        ended = self._ended if self._ended_before is None else self._ended_before
        return self._begun[number] - ended[number]

    def take(self, number: int) -> Allowance | None:
        """What an actor may play now; None if it has to wait for newer weights.

        Args:
            number: number of the actor.
        """
        age = self.age(number)
        steps = min(self._steps_per_call, STEPS_PER_WEIGHT_PULL - age)
        if age + steps + self._steps_per_call > STEPS_PER_WEIGHT_PULL:
            self._is_wanted = True  # or the next call would be shorter
        if steps <= 0:
            return None
        weights = None
        if self._given[number] != self.version:
            weights, self._given[number] = self.weights, self.version
        self._begun[number] += steps
        return Allowance(max(self.version, 0), weights, age, steps)

    def give_back(self, number: int, steps: int) -> None:
        """Record that a call has ended or was lost.

        Args:
            number: number of the actor.
            steps: number of steps that it was allowed.
        """
        self._ended[number] += steps
        turn = self._membership.supervisor.num_turns
        if turn != self._turn:
            self._turn, self._ended_now = turn, []
        self._ended_now.append((number, steps))
