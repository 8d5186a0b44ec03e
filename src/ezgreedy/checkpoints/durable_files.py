"""Files that are whole or absent, and that are recognised by size and SHA-256.

Writing ends with an fsync, so that a file renamed into place survives a power cut. Reading never
follows a symbolic link, and never takes more memory than the caller expects.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

CHUNK_BYTES = 2**22


class DamagedError(Exception):
    """A file that is not as it was written; says which and why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class Digest(NamedTuple):
    """The size and SHA-256 that identify a file."""

    size: int
    sha256: str


def write_file(path: Path, chunks: Iterable[bytes | memoryview]) -> Digest:
    """Write a new file to the disk itself, chunk by chunk."""
    checksum = hashlib.sha256()
    size = 0
    with named_errors(path):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            for chunk in chunks:
                checksum.update(chunk)
                size += len(chunk)
                _write_all(file, memoryview(chunk))
            os.fsync(file)
        finally:
            os.close(file)
    return Digest(size, checksum.hexdigest())


def _write_all(file: int, data: memoryview) -> None:
    while len(data):
        data = data[os.write(file, data) :]


def sync_directory(path: Path) -> None:
    """Return once the names in a directory would survive a power cut."""
    with named_errors(path):
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """A full disk is reported by the system without the file's name; this adds it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A file to read: a regular one, in a real directory, under its own name."""
    if path.parent.is_symlink():
        raise DamagedError(path.parent, "is a symbolic link")
    try:
        # Without O_NONBLOCK, a pipe put in the file's place would make this wait forever.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise DamagedError(path, "is missing") from error
    except OSError as error:
        reason = "is a symbolic link" if path.is_symlink() else str(error.strerror)
        raise DamagedError(path, reason) from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise DamagedError(path, "is not a file")
        yield file
    except OSError as error:
        raise DamagedError(path, str(error.strerror)) from error
    finally:
        os.close(file)


def read_small(path: Path, most: int) -> bytes:
    """The bytes of a file that may have at most `most` of them."""
    with opened(path) as file:
        size = os.fstat(file).st_size
        if size > most:
            raise DamagedError(path, f"has {size} bytes, more than the {most} that are allowed")
        data = bytearray(size)
        _fill(path, file, memoryview(data))
    return bytes(data)


def read_verified(path: Path, digest: Digest, buffers: Iterable[memoryview]) -> None:
    """Fill buffers with a file, one after the other; refuse a file that does not match.

    Args:
        path: the file.
        digest: expected digest; a file of another size is refused before it is read.
        buffers: buffers of bytes, with the digest's size in total.
    """
    checksum = hashlib.sha256()
    with opened(path) as file:
        size = os.fstat(file).st_size
        if size != digest.size:
            raise DamagedError(path, f"has {size} bytes instead of {digest.size}")
        for buffer in buffers:
            _fill(path, file, buffer)
            checksum.update(buffer)
    if checksum.hexdigest() != digest.sha256:
        raise DamagedError(path, "its SHA-256 is wrong")


def scratch(size: int) -> Iterator[memoryview]:
    """Buffers for `size` bytes that are read but not kept."""
    space = memoryview(bytearray(min(size, CHUNK_BYTES)))
    for start in range(0, size, CHUNK_BYTES):
        yield space[: size - start]


def _fill(path: Path, file: int, buffer: memoryview) -> None:
    while len(buffer):
        count = os.readv(file, [buffer])
        if count == 0:
            raise DamagedError(path, "became shorter while it was read")
        buffer = buffer[count:]


def remove(path: Path) -> None:
    """Remove a file, a link or a directory with its contents, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
