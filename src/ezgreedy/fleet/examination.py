"""Evaluations that go on while the fleet plays: which are due, asked for, and done."""

from collections import deque
from typing import Any

from ezgreedy.fleet.staff import Staff
from ezgreedy.running.settings import RunSettings


class Examination:
    """The evaluations of a run, made one at a time by the evaluator.

    Args:
        settings: of the run.
        staff: who does it.
    """

    def __init__(self, settings: RunSettings, staff: Staff) -> None:
        self._settings, self._staff = settings, staff
        self.num_asked = 0
        self.records: deque[dict[str, Any]] = deque()  # of evaluations that nobody has taken yet

    def num_due(self, frames: int) -> int:
        """How many there should have been by now; the last one is at the very end."""
        return self._settings.evaluation.num_due(frames, self._settings.frames)

    def is_behind(self, frames: int) -> bool:
        """Whether the evaluator has not even begun with what is due."""
        return self.num_due(frames) > self.num_asked

    def ask(self, frames: int, weights: Any) -> None:
        """Begin the next one that is due, if the evaluator is free.

        Args:
            frames: that were played so far.
            weights: a reference.
        """
        evaluator, crew = self._staff.evaluator, self._staff.crew
        if not self.is_behind(frames) or not evaluator.is_ready or crew.num_calls(evaluator):
            return

        def then(record: dict[str, Any]) -> None:
            self.records.append({"kind": record.pop("kind"), "frames": frames, **record})

        def lost() -> None:
            self.num_asked -= 1

        number, self.num_asked = self.num_asked, self.num_asked + 1
        # It takes as long as it takes; that it lives is seen by its heart.
        crew.ask(evaluator, "evaluate", number, weights, then=then, lost=lost, limit=float("inf"))
