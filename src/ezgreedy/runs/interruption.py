"""Ctrl-C and SIGTERM as a flag that a loop checks, instead of an exception anywhere."""

import signal
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """Within its block, remembers the first signal; the second one stops immediately.

    with Interruption() as interruption:
        while not interruption.requested: ...
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether to stop soon."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """Exit code that shells expect of a process ended by a signal."""
        return 128 + (self.signal or 0)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.signal = number

    def __enter__(self) -> "Interruption":
        for number in self.SIGNALS:
            self._previous[number] = signal.signal(number, self._remember)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
