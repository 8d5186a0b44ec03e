"""A process that ends itself, as by SIGKILL, at a chosen operation on files below a directory.

Operations on names are seen by an audit hook, writes and syncs by wrappers of their functions. The
process dies before the operation, or within a write of which only a part has reached the file.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_NAME_EVENTS = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.truncate"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def die_at(number: int, directory: Path, marker: Path, torn: float) -> None:
    """End this process at the operation with this number, counted from now.

    Args:
        number: number of operations before it.
        directory: only operations on files below it count.
        marker: a file outside that then says which operation it was.
        torn: share of the last write that is still done.
    """
    root = str(directory)
    left = number

    def count(what: str, path: str, before: Callable[[], Any] = lambda: None) -> None:
        nonlocal left
        if not path.startswith(root):
            return
        left -= 1
        if left < 0:
            before()
            place = os.open(marker, 0o101, 0o644)
            _write(place, f"{what} {path[len(root) :]}".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        flags = arguments[2] if event == "open" else 0
        if event in _NAME_EVENTS or (isinstance(flags, int) and flags & _WRITING):
            count(event, _name(arguments[0]))

    def write(file: int, data: Any) -> int:
        part = memoryview(data).cast("B")
        count("write", _path(file), lambda: _write(file, part[: int(torn * len(part))]))
        return _write(file, data)

    def sync(file: int) -> None:
        count("fsync", _path(file))
        _fsync(file)

    _write, _fsync = os.write, os.fsync
    os.write, os.fsync = write, sync  # type: ignore[assignment]
    sys.addaudithook(hook)


def _path(file: int) -> str:
    return os.readlink(f"/proc/self/fd/{file}")


def _name(path: Any) -> str:
    return os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
