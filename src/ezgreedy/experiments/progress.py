"""How far is it, and how long will it take? A bar on a terminal, a line now and then elsewhere."""

import time
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_SECONDS_BETWEEN_LINES = 10.0


class ProgressReport:
    """Tells standard error about experiments, one after the other."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = TaskID(0)
        self._label, self._num_jobs, self._num_before, self._num_finished = "", 0, 0, 0
        self._begin = self._last_line = 0.0

    def begin(self, label: str, num_jobs: int, num_finished: int) -> None:
        """A new experiment, of whose jobs some were finished in an earlier run."""
        self._label, self._num_jobs = label, num_jobs
        self._num_before = self._num_finished = num_finished
        self._begin = self._last_line = time.monotonic()
        self._task = self._bars.add_task(label, total=num_jobs, completed=num_finished)
        if self._bars.disable:
            self.say(f"{label}: {num_finished} of {num_jobs} jobs done")

    def advance(self) -> None:
        """One more job has finished."""
        self._num_finished += 1
        self._bars.advance(self._task)
        now = time.monotonic()
        is_due = now - self._last_line >= _SECONDS_BETWEEN_LINES
        if self._bars.disable and (is_due or self._num_finished == self._num_jobs):
            self._last_line = now
            pace = (now - self._begin) / (self._num_finished - self._num_before)
            left = pace * (self._num_jobs - self._num_finished)
            self.say(
                f"{self._label}: {self._num_finished} of {self._num_jobs} jobs done, "
                f"about {left:.0f} s left"
            )

    def say(self, text: str) -> None:
        """A line of its own, above the bars."""
        self._console.print(escape(text))

    def __enter__(self) -> "ProgressReport":
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()
