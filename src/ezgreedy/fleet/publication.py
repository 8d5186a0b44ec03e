"""Weights on their way from the learner to everybody: one object for each version."""

from typing import Any

from ezgreedy.fleet.staff import Staff

STEPS_PER_WEIGHT_PULL = 100  # table of the paper: 400 environment steps, read as frames


class Publication:
    """The newest weights, and who has which.

    Args:
        staff: learner and actors.
        steps_per_call: what an actor plays at once.
    """

    def __init__(self, staff: Staff, steps_per_call: int) -> None:
        self._staff = staff
        self._steps_per_call = steps_per_call
        self.weights: Any = None  # a reference; older objects go with their last reader
        self.version = -1  # how many updates they have seen; −1 if they are nobody's
        self._is_asked = False
        self._given = [-1] * staff.fleet.actors
        self._steps = [0] * staff.fleet.actors  # since an actor had its last ones

    @property
    def is_newest(self) -> bool:
        """Whether no update was made since."""
        return self.version == self._staff.num_updates

    def forget(self) -> None:
        """The learner has begun anew: what was published is not its own."""
        self.version = -1

    def forget_actor(self, number: int) -> None:
        """An actor has begun anew, and has no weights."""
        self._given[number] = -1

    def ask(self, *, is_urgent: bool = False) -> None:
        """Ask the learner for new weights, if there are any that somebody is waiting for."""
        learner = self._staff.learner
        is_wanted = is_urgent or self.version < 0 or max(self._steps) >= STEPS_PER_WEIGHT_PULL
        if self._is_asked or not learner.is_ready or self.is_newest or not is_wanted:
            return
        self._is_asked = True
        refs: list[Any] = []

        def then(version: int) -> None:
            self._is_asked = False
            self.version, self.weights = version, refs[0]

        def lost() -> None:
            self._is_asked = False

        ask = self._staff.crew.ask
        refs += ask(learner, "weights", then=then, lost=lost, num_returns=2)

    def take(self, number: int) -> tuple[int, Any]:
        """Version and weights for an actor's next call; None for weights that it has, or may keep.

        Args:
            number: of the actor.
        """
        weights = None
        is_due = self._steps[number] >= STEPS_PER_WEIGHT_PULL
        if self._given[number] < 0 or (is_due and self._given[number] != self.version):
            weights, self._given[number], self._steps[number] = self.weights, self.version, 0
        self._steps[number] += self._steps_per_call
        return max(self._given[number], 0), weights
