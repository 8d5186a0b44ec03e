"""Where does a run stand? Frames played, reports and evaluations due, and their result lines.

Every engine keeps a `Ledger`. Only this decides when an evaluation or a report is due, and makes
their lines of results.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.runs.evaluation import Evaluation


class Ledger:
    """The frames, episodes, evaluations and reports of a run so far.

    Args:
        settings: settings of the run.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        self.frames = 0  # training frames, over all lanes
        self.num_evaluations = 0  # including those left out
        self.num_reports = 0
        self.returns: list[float] = []  # episodes finished since the last report
        self.lengths: list[int] = []  # in frames, of the same episodes, if they are known
        self._notices: list[str] = []
        self._has_warned = False  # about measurements; again in a resumed process

    def add(self, frames: int, returns: Sequence[float], lengths: Sequence[int] = ()) -> None:
        """Count frames and finished episodes.

        Args:
            frames: number of frames.
            returns: raw returns of finished episodes.
            lengths: frames of finished episodes; empty if they are not known.
        """
        self.frames += frames
        self.returns += returns
        self.lengths += lengths

    @property
    def is_finished(self) -> bool:
        """Whether all frames have been played."""
        return self.frames >= self._settings.frames

    @property
    def num_evaluations_due(self) -> int:
        """Number of evaluations due by now; the last one is at the very end."""
        return self._settings.evaluation.num_due(self.frames, self._settings.frames)

    @property
    def evaluation_is_due(self) -> bool:
        """Whether another evaluation is due."""
        return self.num_evaluations < self.num_evaluations_due

    @property
    def report_is_due(self) -> bool:
        """Whether another report is due."""
        return self.frames >= (self.num_reports + 1) * self._settings.frames_per_report

    def evaluation(
        self, found: Evaluation, frames: int, number: int | None = None
    ) -> dict[str, Any]:
        """Count an evaluation and return its line of results.

        Args:
            found: scores of the evaluation.
            frames: frames of training when it began.
            number: number of the evaluation, if earlier ones were left out; None for the next.
        """
        self.num_evaluations = (self.num_evaluations if number is None else number) + 1
        asked = self._settings.evaluation.episodes
        if asked is not None and len(found.returns) < asked:
            self._notices.append(
                f"the evaluation ended after {found.frames:,} frames with {len(found.returns)} of "
                f"{asked} episodes finished (evaluation.frames is the limit)"
            )
        return {"kind": "evaluation", "frames": frames, **found.record()}

    def report(self, measured: Mapping[str, float]) -> dict[str, Any]:
        """Count a report and return its line of results.

        Args:
            measured: measurements of the engine since the last report.
        """
        self.num_reports += 1
        returns, self.returns = self.returns, []
        lengths, self.lengths = self.lengths, []
        record: dict[str, Any] = {"kind": "training", "frames": self.frames}
        record["episodes"] = len(returns)
        if returns:
            record["mean_return"] = float(np.mean(returns))
        if lengths:
            record["mean_length"] = float(np.mean(lengths))
        if not self._has_warned and (warning := self._settings.agent.warning(measured)):
            self._notices.append(warning)
            self._has_warned = True
        return {**record, **measured}

    def take_notices(self) -> list[str]:
        """Take the messages about evaluations and reports for the user; each is returned once."""
        notices, self._notices = self._notices, []
        return notices

    def state_dict(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "frames": self.frames,
            "num_evaluations": self.num_evaluations,
            "num_reports": self.num_reports,
            "returns": list(self.returns),
            "lengths": list(self.lengths),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a run with the same settings."""
        self.frames = int(state["frames"])
        # In an extended run, the evaluation at its former end is not one of the schedule.
        self.num_evaluations = min(int(state["num_evaluations"]), self.num_evaluations_due)
        self.num_reports = int(state["num_reports"])
        self.returns = list(state["returns"])
        self.lengths = list(state.get("lengths", ()))  # earlier versions did not count them
