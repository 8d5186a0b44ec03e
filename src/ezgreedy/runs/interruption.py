"""Ctrl-C, SIGTERM and SIGHUP as a flag that a loop checks, instead of an exception anywhere."""

import signal
from types import FrameType, TracebackType
from typing import Any


class StoppedAtOnce(KeyboardInterrupt):
    """A second signal, after which nothing more is saved.

    Args:
        number: number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


class Interruption:
    """Within its block, remembers the first signal; the second one stops immediately.

    with Interruption() as interruption:
        while not interruption.requested: ...
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

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
            raise StoppedAtOnce(number)
        self.signal = number

    def __enter__(self) -> "Interruption":
        for number in self.SIGNALS:
            # A process that was started with nohup outlives its terminal.
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
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
