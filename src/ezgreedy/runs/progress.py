"""How is a run's progress shown? As a bar in the terminal, and in TensorBoard.

Spectators get the lines that go into results.jsonl, and add the only numbers that depend on the
machine: speeds and times.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.results.field_names import FRAMES_PER_SECOND, STEPS_PER_SECOND, named_numbers
from ezgreedy.runs.evaluation import Played
from ezgreedy.runs.pace import RecentSpeed
from ezgreedy.runs.progress_bar import ProgressBar
from ezgreedy.units import counted, duration

_SECONDS_BETWEEN_MOVES = 0.5
_SECONDS_BETWEEN_LINES = 20.0  # of a long evaluation

# What the progress line shows of a report.
_SHOWN = {
    "mean_return": "return {:,.1f}",
    "loss": "loss {:.3g}",
    "epsilon": "ε {:.2g}",
    "explored_share": "{:.1%} exploratory",
}


class Spectator(Protocol):
    """Follows the progress of a run."""

    def see_progress(self, frames: int, *, is_learning: bool = True) -> None:
        """Show the number of frames played so far, and the time left if it can be known."""

    def see_record(self, record: dict[str, Any]) -> None:
        """Show a new line of results."""

    def see_evaluation(
        self, seconds: float, settings: EvaluationSettings, played: Played | None
    ) -> None:
        """Show that an evaluation has been going on for this long, and what it has played."""

    def see_status(self, status: Mapping[str, float], frames: int) -> None:
        """Show the status of the engine after this many frames."""

    def say(self, text: str) -> None:
        """Show a message to the user."""


class Bar:
    """Progress of a run on standard error; only messages if quiet.

    Args:
        label: name of the run.
        frames: total frames of the run.
        begun: frames played before this process.
        is_quiet: whether to show only warnings.
    """

    def __init__(self, label: str, frames: int, begun: int = 0, *, is_quiet: bool = False) -> None:
        self._bar = ProgressBar("frames", is_quiet=is_quiet)
        self._is_quiet = is_quiet
        self._label, self._total = label, frames
        self._begun, self._last_move = begun, time.monotonic()
        self._speed = RecentSpeed(begun, self._last_move)
        self._is_learning = True
        self._evaluation: str = ""
        self._next_line = _SECONDS_BETWEEN_LINES
        self._report: str = ""
        self._status: str = ""

    def see_progress(self, frames: int, *, is_learning: bool = True) -> None:
        """Moves the bar, at most a few times a second."""
        now = time.monotonic()
        if is_learning and not self._is_learning:
            self._speed = RecentSpeed(frames, now)
        self._is_learning = is_learning
        if now - self._last_move < _SECONDS_BETWEEN_MOVES:
            return
        self._last_move = now
        news = ", ".join(part for part in (self._report, self._evaluation, self._status) if part)
        self._bar.show(frames, self._speed.see(frames, now), news, shows_left=is_learning)

    def see_evaluation(
        self, seconds: float, settings: EvaluationSettings, played: Played | None
    ) -> None:
        """Writes a line from time to time, as the bar stands still meanwhile."""
        if seconds >= self._next_line:
            self._next_line += _SECONDS_BETWEEN_LINES
            unit, most = "episodes", settings.episodes
            if most is None:
                unit, most = "frames", settings.frames
            done = "" if played is None else f", {getattr(played, unit):,} of {most:,} {unit}"
            length = f"evaluation.{unit} is {most:,}"
            so_far = f"{duration(seconds)} so far{done}"
            self.tell(f"evaluating, {so_far} ({length}; Ctrl-C saves and stops)")

    def see_record(self, record: dict[str, Any]) -> None:
        """Shows the last evaluation and the last report."""
        if record["kind"] == "evaluation":
            self._next_line = _SECONDS_BETWEEN_LINES
            at = f"at {record['frames']:,} frames"
            self._evaluation = f"evaluation {record['mean_return']:,.1f} {at}"
            # The time that it took says nothing about the speed of training.
            self._speed = RecentSpeed(record["frames"], time.monotonic())
            over = counted(record["episodes"], "episode")
            if not record["episodes"]:
                over = counted(len(record["unfinished"]), "unfinished episode")
            found = f"{record['mean_return']:,.2f} over {over}"
            self.tell(f"evaluation {at}: {found}")
        else:
            shown = [form.format(record[name]) for name, form in _SHOWN.items() if name in record]
            self._report = ", ".join(shown)

    def see_status(self, status: Mapping[str, float], frames: int) -> None:
        """Shows rates, queues, waiting times and live actors next to the speed."""
        self._status = (
            f"{status['updates_per_second']:,.1f} updates/s, "
            f"{status['samples_per_insert']:.2f} of {status['target_samples_per_insert']:.2f} "
            f"samples per insert, lag {status['parameter_lag']:,.0f}, "
            f"queues {status['plays_in_flight']:.0f}/{status['deliveries_waiting']:.0f}/"
            f"{status['updates_in_flight']:.0f}, learner waits {status['learner_wait_share']:.0%}, "
            f"{status['live_actors']:.0f} of {status['actors']:.0f} actors"
        )

    def say(self, text: str) -> None:
        """Writes a separate line, even if quiet."""
        self._bar.say(f"{self._label}: {text}")

    def tell(self, text: str) -> None:
        """Writes a separate line, unless quiet."""
        if not self._is_quiet:
            self.say(text)

    def __enter__(self) -> "Bar":
        self._bar.begin(self._label, self._total, self._begun, writes_line=False)
        self._bar.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.__exit__(kind, error, trace)


class TensorBoard:
    """Event files that TensorBoard reads.

    Args:
        directory: directory of the files.
        first_frame: first frame to be written; this and later frames in earlier files are hidden.
        frame_skip: frames that one action lasts.
    """

    def __init__(self, directory: Path, first_frame: int, frame_skip: int = 1) -> None:
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(directory), purge_step=first_frame)
        self._frame_skip = frame_skip
        self._seen: tuple[float, int] | None = None

    def see_progress(self, frames: int, *, is_learning: bool = True) -> None:
        """Does nothing: speeds are shown with the records."""

    def see_evaluation(
        self, seconds: float, settings: EvaluationSettings, played: Played | None
    ) -> None:
        """Does nothing: the evaluation is written once it is done."""

    def see_record(self, record: dict[str, Any]) -> None:
        """Writes every number of the record at its frame."""
        kind, frames = record["kind"], record["frames"]
        for tag, value in named_numbers(record).items():
            self._writer.add_scalar(tag, value, frames)
        if kind == "training":
            now = time.monotonic()
            if self._seen is not None and now > self._seen[0]:
                speed = (frames - self._seen[1]) / (now - self._seen[0])
                self._writer.add_scalar(FRAMES_PER_SECOND, speed, frames)
                self._writer.add_scalar(STEPS_PER_SECOND, speed / self._frame_skip, frames)
            self._seen = (now, frames)

    def see_status(self, status: Mapping[str, float], frames: int) -> None:
        """Writes every number of the status."""
        for name, value in status.items():
            self._writer.add_scalar(f"fleet/{name}", value, frames)

    def say(self, text: str) -> None:
        """Does nothing: messages are for the terminal."""

    def close(self) -> None:
        """Writes everything still in memory."""
        self._writer.close()
