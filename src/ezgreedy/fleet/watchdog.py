"""Ends the remains of a Ray session once its owner is gone, however it ended.

Ray leaves processes behind when a driver is killed. This runs as a separate process that waits for
its standard input to close, which happens when the owner ends for any reason; it then ends the
processes of that session, by process id, and removes the session's directory. No other process is
touched, unlike with `ray stop`, which ends every Ray on the machine. Needs only the standard
library.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

GRACE_SECONDS = 3.0  # most processes end by themselves within this time
_MOST_SECONDS = 25.0


def session_processes(directory: str, owner: int | None = None) -> list[int]:
    """Ray processes of this user that work in a directory, except its owner."""
    spared = (os.getpid(), owner)
    return [pid for pid in _pids() if pid not in spared and _belongs(pid, directory)]


def end_session(
    directory: str, owner: int | None = None, grace_seconds: float = GRACE_SECONDS
) -> list[int]:
    """Ends the processes of a session, removes its directory and returns those ended."""
    ended: list[int] = []
    begun = time.monotonic()
    while processes := session_processes(directory, owner):
        elapsed = time.monotonic() - begun
        if elapsed > _MOST_SECONDS:
            break
        if elapsed >= grace_seconds:
            for pid in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            ended += [pid for pid in processes if pid not in ended]
        time.sleep(0.1)
    shutil.rmtree(directory, ignore_errors=True)
    return ended


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _belongs(pid: int, directory: str) -> bool:
    place = Path(f"/proc/{pid}")
    try:
        if place.stat().st_uid != os.getuid():
            return False
        command = (place / "cmdline").read_bytes()
        if b"ray" not in command or b"watchdog.py" in command:
            return False
        if directory.encode() in command or directory.encode() in (place / "environ").read_bytes():
            return True
        # Processes that rename themselves lose their arguments, but keep their files open.
        return any(_is_within(descriptor, directory) for descriptor in (place / "fd").iterdir())
    except OSError:  # it has ended in the meantime
        return False


def _is_within(descriptor: Path, directory: str) -> bool:
    try:
        return descriptor.readlink().is_relative_to(directory)
    except OSError:
        return False


def main() -> None:
    """`watchdog.py DIRECTORY`, with a pipe from the session's owner as standard input."""
    owner = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(1):
        pass
    end_session(sys.argv[1], owner)


if __name__ == "__main__":
    main()
