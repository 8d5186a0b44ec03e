"""Says why a process ended that could not say so itself.

Ray ends a driver from within, without a word, once the head of the cluster or Ray on the driver's
own machine is gone. This runs as a separate process that waits for its standard input to close; if
nobody said farewell before, it writes a message. Needs only the standard library.
"""

import signal
import subprocess
import sys

_FAREWELL = b"."
_WORDS = (
    "ezgreedy: Ray ended this process, or it was killed. If the head of the cluster or Ray on this "
    "machine is gone, start it again; `ezgreedy resume RUN`, or the same sweep, continues from the "
    "last checkpoint."
)


class LastWords:
    """Has a message written if this process ends before `withdraw` is called."""

    def __init__(self) -> None:
        self._speaker = subprocess.Popen(
            [sys.executable, "-I", __file__],
            stdin=subprocess.PIPE,
            start_new_session=True,  # not reached by Ctrl-C in a terminal
        )

    def withdraw(self) -> None:
        """Have nothing written."""
        self._speaker.communicate(_FAREWELL)


def main() -> None:
    """Waits for the end of whoever holds the other end of standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not sys.stdin.buffer.read():
        sys.stderr.write(f"{_WORDS}\n")


if __name__ == "__main__":
    main()
