"""Ctrl-C and SIGTERM as a question that a loop asks, rather than an exception anywhere."""

import signal
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """Within its block, the first signal is remembered; the second one stops at once.

    with Interruption() as interruption:
        while not interruption.requested: ...
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether to come to an end soon."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process that a signal ended."""
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
