"""What a disk may hold after a power cut, from a record of everything that was asked of it.

The recorder keeps every write, sync and change of names below a directory. After a cut at any point
of the record, data of a file is certain only up to its last sync: of later writes all, none or a
part may have arrived, block by block. Names are certain only up to the last sync of their
directory. Later changes of names are lost from some point on: in the order of one journal, as file
systems in use do it, or in the order of each directory alone, which is all that POSIX promises.
"""

import builtins
import io
import os
import pathlib
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

BLOCK = 512
JOURNAL, DIRECTORIES = "one journal", "each directory alone"


class Operation(NamedTuple):
    """One thing asked of the disk.

    Args:
        kind: write, cut, sync, sync directory, add, drop, directory or note.
        inode: the file or directory it is about.
        parent: inode of the directory, for changes of names.
        name: the name, for changes of names.
        offset: where data goes, or the length after a cut.
        data: what is written; the words of a note.
    """

    kind: str
    inode: int
    parent: int = 0
    name: str = ""
    offset: int = 0
    data: bytes = b""


@dataclass
class Recorder:
    """Everything asked of the disk below a directory, which must be empty at first."""

    root: Path
    operations: list[Operation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._root = str(self.root.resolve())
        self.root_inode = os.stat(self.root).st_ino
        self._numbers: dict[int, int] = {}
        self._next = 1
        self._dirty: dict[int, str] = {}

    def note(self, words: str) -> None:
        """Remember what the program knew to be true here."""
        self._settle()
        self.operations.append(Operation("note", 0, data=words.encode()))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what this process does, by Python's own functions."""
        wrapped = {
            "open": self._open,
            "write": self._write,
            "fsync": self._fsync,
            "ftruncate": self._ftruncate,
            "rename": self._rename,
            "replace": self._rename,
            "unlink": self._unlink,
            "remove": self._unlink,
            "rmdir": self._unlink,
            "mkdir": self._mkdir,
            "link": self._link,
        }
        originals = {name: getattr(os, name) for name in wrapped}
        opened = io.open
        for name, wrapper in wrapped.items():
            setattr(os, name, _around(wrapper, originals[name]))
        buffered = _around(self._open_buffered, opened)
        io.open = builtins.open = buffered  # type: ignore[assignment]
        pathlib.io.open = buffered  # type: ignore[attr-defined]
        try:
            yield
        finally:
            for name, original in originals.items():
                setattr(os, name, original)
            io.open = builtins.open = opened
            pathlib.io.open = opened  # type: ignore[attr-defined]
            self._settle()

    # Numbers of files: the system uses those of removed files again, we do not.

    def _inode(self, path: str) -> int:
        system = os.lstat(path).st_ino
        if system == self.root_inode:
            return 0
        if system not in self._numbers:
            self._numbers[system] = self._next
            self._next += 1
        return self._numbers[system]

    def _inside(self, path: Any, dir_fd: int | None = None) -> str | None:
        if not isinstance(path, (str, os.PathLike)):
            return None
        text = os.fspath(path)
        if dir_fd is not None:
            text = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), text)
        text = os.path.join(os.path.realpath(os.path.dirname(text) or "."), os.path.basename(text))
        return text if text.startswith(self._root + "/") else None

    def _name(self, kind: str, inode: int, path: str) -> None:
        parent = self._inode(os.path.dirname(path))
        self.operations.append(Operation(kind, inode, parent, os.path.basename(path)))

    # What is asked.

    def _open(self, call: Callable[..., int], path: Any, *more: Any, **named: Any) -> int:
        inside = self._inside(path, named.get("dir_fd"))
        is_new = inside is not None and not os.path.lexists(inside)
        file = call(path, *more, **named)
        if inside is not None and is_new:
            self._name("add", self._inode(inside), inside)
        return file

    def _open_buffered(self, call: Callable[..., Any], path: Any, *more: Any, **named: Any) -> Any:
        inside = self._inside(path)
        is_new = inside is not None and not os.path.lexists(inside)
        file = call(path, *more, **named)
        if inside is not None and any(letter in file.mode for letter in "wax+"):
            inode = self._inode(inside)
            if is_new:
                self._name("add", inode, inside)
            self._dirty[inode] = inside  # written behind our back; read when it matters
        return file

    def _write(self, call: Callable[..., int], file: int, data: Any) -> int:
        path = self._inside(os.readlink(f"/proc/self/fd/{file}"))
        written = call(file, data)
        if path is not None and os.path.lexists(path):
            kept = bytes(memoryview(data).cast("B")[:written])
            offset = os.lseek(file, 0, os.SEEK_CUR) - written
            self.operations.append(Operation("write", self._inode(path), offset=offset, data=kept))
        return written

    def _fsync(self, call: Callable[..., None], file: int) -> None:
        path = os.readlink(f"/proc/self/fd/{file}")
        self._settle()
        call(file)
        if path == self._root or self._inside(path) is not None:
            kind = "sync directory" if os.path.isdir(path) else "sync"
            self.operations.append(Operation(kind, self._inode(path)))

    def _ftruncate(self, call: Callable[..., None], file: int, length: int) -> None:
        path = self._inside(os.readlink(f"/proc/self/fd/{file}"))
        call(file, length)
        if path is not None:
            self.operations.append(Operation("cut", self._inode(path), offset=length))

    def _rename(self, call: Callable[..., None], old: Any, new: Any, **named: Any) -> None:
        before, after = self._inside(old), self._inside(new)
        self._settle()
        inode = self._inode(before) if before is not None else 0
        replaced = os.lstat(after) if after is not None and os.path.lexists(after) else None
        call(old, new, **named)
        if replaced is not None:
            self._forget(replaced)
        if before is not None and after is not None:
            self._name("add", inode, after)
            self._name("drop", inode, before)

    def _unlink(self, call: Callable[..., None], path: Any, **named: Any) -> None:
        inside = self._inside(path, named.get("dir_fd"))
        if inside is None:
            call(path, **named)
            return
        system, inode = os.lstat(inside), self._inode(inside)
        call(path, **named)
        self._name("drop", inode, inside)
        self._dirty.pop(inode, None)
        self._forget(system)

    def _mkdir(self, call: Callable[..., None], path: Any, *more: Any, **named: Any) -> None:
        inside = self._inside(path)
        call(path, *more, **named)
        if inside is not None:
            inode = self._inode(inside)
            self._name("add", inode, inside)
            self.operations.append(Operation("directory", inode))

    def _link(self, call: Callable[..., None], old: Any, new: Any, **named: Any) -> None:
        inside = self._inside(new)
        self._settle()
        call(old, new, **named)
        if inside is not None:
            self._name("add", self._inode(inside), inside)

    def _forget(self, system: os.stat_result) -> None:
        """Let the number of a file go with its last name; a directory has only one."""
        if system.st_nlink <= 1 or stat.S_ISDIR(system.st_mode):
            self._numbers.pop(system.st_ino, None)

    def _settle(self) -> None:
        """Record what files opened the usual way hold by now."""
        for inode, path in list(self._dirty.items()):
            if os.path.lexists(path):
                data = pathlib.Path(path).read_bytes()
                self.operations.append(Operation("cut", inode, offset=0))
                self.operations.append(Operation("write", inode, offset=0, data=data))
            del self._dirty[inode]


def _around(wrapper: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        return wrapper(original, *arguments, **named)

    return call


def notes_before(operations: Sequence[Operation], cut: int) -> list[str]:
    """What the program knew at a point of the record."""
    return [operation.data.decode() for operation in operations[:cut] if operation.kind == "note"]


def rebuild(
    operations: Sequence[Operation], cut: int, order: str, rng: np.random.Generator, to: Path
) -> None:
    """Write one of the states that the disk may be in after a cut.

    Args:
        operations: the record.
        cut: number of operations before the cut.
        order: JOURNAL or DIRECTORIES.
        rng: which of the possible states.
        to: new directory.
    """
    done = operations[:cut]
    names, directories = _names(done, order, rng)
    contents = {inode: _contents(done, inode, rng) for inode in set(names.values())}
    _write_out(0, names, directories, contents, to)


def _names(
    done: Sequence[Operation], order: str, rng: np.random.Generator
) -> tuple[dict[tuple[int, str], int], set[int]]:
    """Which file each name of each directory stands for."""
    changes = [(place, op) for place, op in enumerate(done) if op.kind in ("add", "drop")]
    directories = {op.inode for op in done if op.kind == "directory"} | {0}
    synced = {parent: -1 for parent in directories}
    for place, operation in enumerate(done):
        if operation.kind == "sync directory":
            synced[operation.inode] = place
    if order == JOURNAL:
        # One journal: what is certain for one directory is certain for what came before.
        certain = max(synced.values())
        last = int(rng.integers(certain, len(done))) if certain < len(done) else certain
        kept = {parent: last for parent in directories}
    else:
        kept = {
            parent: int(rng.integers(place, len(done))) if place < len(done) else place
            for parent, place in sorted(synced.items())
        }
    names: dict[tuple[int, str], int] = {}
    for place, operation in changes:
        if place > kept.get(operation.parent, -1):
            continue
        key = (operation.parent, operation.name)
        if operation.kind == "add":
            names[key] = operation.inode
        elif names.get(key) == operation.inode:
            del names[key]
    return names, directories


def _contents(done: Sequence[Operation], inode: int, rng: np.random.Generator) -> bytes:
    """What a file may hold: everything up to its last sync, and any part of what came later."""
    own = [operation for operation in done if operation.inode == inode]
    synced = max((n for n, op in enumerate(own) if op.kind == "sync"), default=-1)
    data = bytearray()
    fate = rng.random()
    for place, operation in enumerate(own):
        is_certain = place <= synced
        if not is_certain and fate < 0.25:
            break  # nothing later arrived
        if operation.kind == "cut":
            del data[operation.offset :]
            data.extend(bytes(max(operation.offset - len(data), 0)))
        elif operation.kind == "write":
            _apply(data, operation, None if is_certain or fate > 0.75 else rng)
    return bytes(data)


def _apply(data: bytearray, operation: Operation, rng: np.random.Generator | None) -> None:
    """A write as a whole, or of each block what chance decides; lengths arrive before data."""
    end = operation.offset + len(operation.data)
    data.extend(bytes(max(end - len(data), 0)))
    for start in range(0, len(operation.data), BLOCK):
        if rng is None or rng.random() < 0.5:
            block = operation.data[start : start + BLOCK]
            data[operation.offset + start : operation.offset + start + len(block)] = block


def _write_out(
    inode: int,
    names: dict[tuple[int, str], int],
    directories: set[int],
    contents: dict[int, bytes],
    to: Path,
) -> None:
    to.mkdir()
    for (parent, name), child in names.items():
        if parent != inode:
            continue
        if child in directories:
            _write_out(child, names, directories, contents, to / name)
        else:
            (to / name).write_bytes(contents[child])
