"""How much is done, and how much time is left? A bar in terminals, occasional lines elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ezgreedy.units import duration

_SECONDS_BETWEEN_LINES = 10.0


class ProgressBar:
    """Reports progress on standard error, one task after another.

        with ProgressBar("jobs done") as bar:
            bar.begin("fig1", total=20, done=3)
            bar.show(4)

    Args:
        unit: unit of progress, in words that follow a number.
        is_quiet: whether to show only messages.
    """

    def __init__(self, unit: str, *, is_quiet: bool = False) -> None:
        self._unit = unit
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        is_terminal = self._console.is_terminal
        self._writes_lines = not is_quiet and not is_terminal
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}% {task.fields[count]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[news]}"),
            console=self._console,
            disable=is_quiet or not is_terminal,
        )
        self._task = TaskID(0)
        self._label, self._total = "", 0
        self._first: tuple[float, int] | None = None  # when news first came, and of how many
        self._last_line = 0.0

    def begin(self, label: str, total: int, done: int = 0, *, writes_line: bool = True) -> None:
        """Starts a bar for a task.

        Args:
            label: name of the task.
            total: total number of units.
            done: number of units already done.
            writes_line: whether to write a first line where there is no bar.
        """
        self._label, self._total, self._first = label, total, None
        self._last_line = time.monotonic()
        count = self._counted(done)
        self._task = self._bars.add_task(
            escape(label), total=total, completed=done, count=escape(count), left="", news=""
        )
        if self._writes_lines and writes_line:
            self.say(f"{label}: {count}")

    def show(
        self, done: int, speed: float | None = None, news: str = "", *, shows_left: bool = True
    ) -> None:
        """Moves the bar; where there is none, writes a line if one is due.

        Args:
            done: number of units done so far.
            speed: units per second; None for the mean since this was first called. The time until
                then goes into starting processes and compiling.
            news: further text.
            shows_left: whether the speed says how long the rest will take.
        """
        now = time.monotonic()
        count = self._counted(done)
        if speed is None:
            self._first = self._first or (now, done)
            begin, done_before = self._first
            speed = (done - done_before) / max(now - begin, 1e-9)
        else:
            count += f", {speed:,.0f} {self._unit}/s"
        left = self._left(done, speed) if shows_left else ""
        self._bars.update(
            self._task, completed=done, count=escape(count), left=left, news=escape(news)
        )
        is_due = now - self._last_line >= _SECONDS_BETWEEN_LINES or done == self._total
        if self._writes_lines and is_due:
            self._last_line = now
            parts = [count, left, news]
            self.say(f"{self._label}: {', '.join(part for part in parts if part)}")

    def say(self, text: str) -> None:
        """Writes a separate line above the bars, even if quiet."""
        self._console.print(escape(text))

    def _counted(self, done: int) -> str:
        return f"{done:,} of {self._total:,} {self._unit}"

    def _left(self, done: int, speed: float) -> str:
        """The remaining time in words; "" while there is no progress."""
        remaining = max(self._total - done, 0)
        return f"about {duration(remaining / speed)} left" if speed > 0.0 else ""

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()
