"""Evaluations made while the fleet plays: those in progress, those done and those left out.

Play never waits for them. An evaluation that is due starts as soon as an evaluator is free, with
the weights of that moment. If another one is due before that, the older one is skipped and counted,
so at most one is waiting. The last evaluation, after all frames, is always made.
"""

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Any

from ezgreedy.fleet.membership import Membership
from ezgreedy.fleet.supervision import Process
from ezgreedy.runs.evaluation import Evaluation
from ezgreedy.runs.ledger import Ledger


@dataclass(eq=False)
class _Started:
    """An evaluation that has started."""

    number: int
    frames: int  # training frames at its start
    found: Evaluation | None = None


class Evaluations:
    """The evaluations of a run, one at a time on each evaluator.

    Args:
        membership: the processes.
        ledger: decides which evaluations are due.
    """

    def __init__(self, membership: Membership, ledger: Ledger) -> None:
        self._membership, self._ledger = membership, ledger
        self._seconds_between = membership.fleet.evaluation_seconds or 0.0
        self.num_asked = 0  # those that started or were left out
        self.num_skipped = 0
        self._num_early = 0  # those that were due too soon after a start, and all before them
        self._num_told = 0  # skipped ones in the last notice
        self._last_start = -inf
        self._started: deque[_Started] = deque()  # not taken yet, in order of their frames

    @property
    def are_behind(self) -> bool:
        """Whether an evaluation is due that has not started."""
        return self._ledger.num_evaluations_due > self.num_asked

    @property
    def are_done(self) -> bool:
        """Whether the oldest evaluation that has started is done."""
        return bool(self._started) and self._started[0].found is not None

    @property
    def num_running(self) -> int:
        """Number of evaluations in progress."""
        return sum(one.found is None for one in self._started)

    def take(self) -> dict[str, Any]:
        """Take the oldest evaluation, which is done, as a line of results."""
        one = self._started.popleft()
        assert one.found is not None
        return self._ledger.evaluation(one.found, one.frames, one.number)

    def take_notices(self) -> list[str]:
        """Take the message about skipped evaluations; only if their number has doubled."""
        if self.num_skipped < max(2 * self._num_told, 1):
            return []
        self._num_told = self.num_skipped
        are = "evaluation was" if self.num_skipped == 1 else "evaluations were"
        return [
            f"{self.num_skipped:,} {are} skipped so far: the next one was due before an evaluator "
            "was free (--evaluators, --evaluation-seconds or evaluation.frames_between)"
        ]

    def ask(self, weights: Any) -> None:
        """Start the newest evaluation that is due, if an evaluator is free.

        Args:
            weights: a reference to the weights to evaluate; None if they are not known yet.
        """
        if not self.are_behind:
            return
        is_early = self._is_early()
        if is_early:
            self._num_early = self._ledger.num_evaluations_due
        self._leave_out_older()
        if weights is None or is_early:
            return
        evaluator = self._free_evaluator()
        if evaluator is not None:
            self._start(evaluator, weights)

    def state_dict(self) -> dict[str, Any]:
        """The number of skipped evaluations; the ledger has the rest."""
        return {"num_skipped": self.num_skipped}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue after the evaluations that were written; `state` may be empty in old runs."""
        self.num_asked = self._ledger.num_evaluations
        self.num_skipped = self._num_told = int(state.get("num_skipped", 0))

    def _is_early(self) -> bool:
        """Whether too little time has passed since the last start; never at the end of a run."""
        if self._ledger.is_finished:
            return False
        return self._membership.supervisor.now() - self._last_start < self._seconds_between

    def _leave_out_older(self) -> None:
        """Leave out all but the newest evaluation that is due."""
        newest = self._ledger.num_evaluations_due - 1
        # Those that were due too soon after a start are not wanted, and not counted.
        self.num_skipped += max(newest - max(self.num_asked, self._num_early), 0)
        self.num_asked = newest

    def _free_evaluator(self) -> Process | None:
        for one in self._membership.evaluators:
            if one.is_ready and not self._membership.num_calls(one):
                return one
        return None

    def _start(self, evaluator: Process, weights: Any) -> None:
        one = _Started(self.num_asked, self._ledger.frames)
        self._started.append(one)
        self.num_asked += 1
        self._last_start = self._membership.supervisor.now()

        def then(found: Evaluation) -> None:
            one.found = found

        def lost() -> None:
            self._started.remove(one)
            if self.num_asked == one.number + 1:
                self.num_asked -= 1  # it is due again
                self._last_start = -inf
            else:
                self.num_skipped += 1  # a newer one has started or is due

        # No time limit; heartbeats show that the evaluator is alive.
        arguments = (evaluator, "evaluate", one.number, weights)
        ask = self._membership.supervisor.ask
        ask(*arguments, then=then, lost=lost, limit=inf)
