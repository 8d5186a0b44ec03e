"""Who follows a run while it goes on: a bar in the terminal, and TensorBoard.

They are told what also goes into results.jsonl, and add the only numbers that depend on the
machine: speeds and times.
"""

import importlib.util
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

_SECONDS_BETWEEN_LINES = 10.0
_SMOOTHING = 0.3

# The names under which other libraries show the same things.
_TAGS = {
    ("training", "mean_return"): "charts/episodic_return",
    ("evaluation", "mean_return"): "evaluation/mean_return",
    ("evaluation", "episodes"): "evaluation/episodes",
    ("training", "explored_share"): "explore/fraction",
}


class Spectator(Protocol):
    """Is told what happens."""

    def see_progress(self, frames: int) -> None:
        """So many frames have been played."""

    def see_record(self, record: dict[str, Any]) -> None:
        """This line goes into the results."""

    def see_status(self, status: Mapping[str, float], frames: int) -> None:
        """The engine is doing like this, after so many frames."""

    def say(self, text: str) -> None:
        """Something that a person should know."""


class Bar:
    """A bar on a terminal, a line now and then elsewhere; nothing if it is to be quiet.

    Args:
        label: what is running.
        frames: of the whole run.
        begun: frames that were played before.
        is_quiet: whether to show warnings alone.
    """

    def __init__(self, label: str, frames: int, begun: int = 0, *, is_quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._is_quiet = is_quiet
        self._label, self._total = label, frames
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}% {task.fields[speed]} left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[news]}"),
            console=self._console,
            disable=is_quiet or not self._console.is_terminal,
        )
        self._task: TaskID = self._bar.add_task(
            escape(label), total=frames, completed=begun, speed="", news=""
        )
        self._speed: float | None = None
        self._seen = (time.monotonic(), begun)
        self._last_line = time.monotonic()
        self._evaluation: str = ""
        self._share: str = ""
        self._status: str = ""

    def see_progress(self, frames: int) -> None:
        """Moves the bar, at most a few times a second."""
        now = time.monotonic()
        elapsed = now - self._seen[0]
        if elapsed < 0.5:
            return
        speed = (frames - self._seen[1]) / elapsed
        self._speed = (
            speed if self._speed is None else _SMOOTHING * speed + (1.0 - _SMOOTHING) * self._speed
        )
        self._seen = (now, frames)
        news = ", ".join(part for part in (self._evaluation, self._share, self._status) if part)
        self._bar.update(
            self._task, completed=frames, speed=f"{self._speed:,.0f} frames/s", news=news
        )
        if self._bar.disable and now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = now
            line = f"{frames:,} of {self._total:,} frames, {self._speed:,.0f} frames/s"
            if self._speed > 0.0:  # it is not while processes are being started
                left = max(self._total - frames, 0) / self._speed
                line += f", about {_duration(left)} left"
            self._tell(line + (f", {news}" if news else ""))

    def see_record(self, record: dict[str, Any]) -> None:
        """Takes the last evaluation and the share of exploratory steps from it."""
        if record["kind"] == "evaluation":
            self._evaluation = f"evaluation {record['mean_return']:,.1f}"
            over = f"{record['episodes']} episodes"
            if not record["episodes"]:
                over = f"{len(record['unfinished'])} episodes, none of which was over"
            found = f"{record['mean_return']:,.2f} over {over}"
            self._tell(f"evaluation at {record['frames']:,} frames: {found}")
        elif "explored_share" in record:
            self._share = f"{record['explored_share']:.1%} exploratory"

    def see_status(self, status: Mapping[str, float], frames: int) -> None:
        """Shows it with the speed: who waits for whom, and who is there."""
        self._status = (
            f"{status['updates_per_second']:,.1f} updates/s, "
            f"{status['samples_per_insert']:.2f} of {status['target_samples_per_insert']:.2f} "
            f"samples per insert, lag {status['parameter_lag']:,.0f}, "
            f"queues {status['plays_in_flight']:.0f}/{status['deliveries_waiting']:.0f}/"
            f"{status['updates_in_flight']:.0f}, learner waits {status['learner_wait_share']:.0%}, "
            f"{status['live_actors']:.0f} of {status['actors']:.0f} actors"
        )

    def say(self, text: str) -> None:
        """A line of its own, also when quiet."""
        self._console.print(escape(f"{self._label}: {text}"))

    def _tell(self, text: str) -> None:
        if not self._is_quiet:
            self.say(text)

    def __enter__(self) -> "Bar":
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


class TensorBoard:
    """Event files that TensorBoard reads.

    Args:
        directory: where they go.
        frames: where the run continues; what earlier files say of later frames is hidden.
    """

    def __init__(self, directory: Path, frames: int) -> None:
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(directory), purge_step=frames)
        self._seen: tuple[float, int] | None = None

    @staticmethod
    def is_installed() -> bool:
        """Whether the package that writes the files is there."""
        return importlib.util.find_spec("tensorboardX") is not None

    def see_progress(self, frames: int) -> None:
        """Nothing: speeds are shown with the records."""

    def see_record(self, record: dict[str, Any]) -> None:
        """Every number of it, at its frame."""
        kind, frames = record["kind"], record["frames"]
        for name, value in record.items():
            if name != "frames" and isinstance(value, (int, float)):
                tag = _TAGS.get((kind, name), f"{kind}/{name}")
                self._writer.add_scalar(tag, value, frames)
        if kind == "training":
            now = time.monotonic()
            if self._seen is not None and now > self._seen[0]:
                speed = (frames - self._seen[1]) / (now - self._seen[0])
                self._writer.add_scalar("charts/frames_per_second", speed, frames)
            self._seen = (now, frames)

    def see_status(self, status: Mapping[str, float], frames: int) -> None:
        """Every number of it."""
        for name, value in status.items():
            self._writer.add_scalar(f"fleet/{name}", value, frames)

    def say(self, text: str) -> None:
        """Nothing: words are for the terminal."""

    def close(self) -> None:
        """Writes what is still in memory."""
        self._writer.close()


def _duration(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
