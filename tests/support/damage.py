"""Damage to files: what a disk, a hand or a crash may do to them."""

import os
import shutil
from pathlib import Path


def flip(path: Path, position: int | None = None, bit: int = 2) -> None:
    """Turn one bit around, in the middle if no position is given."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if position is None else position] ^= 1 << bit
    path.write_bytes(data)


def truncate(path: Path, length: int = -1) -> None:
    """Cut a file to a length, which counts from the end if it is negative."""
    path.write_bytes(path.read_bytes()[:length])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def extend(path: Path, more: bytes = b"\0") -> None:
    path.write_bytes(path.read_bytes() + more)


def zero_block(path: Path, start: int = 100) -> None:
    """Lose a block of the disk; of a small file, half of what is there."""
    data = path.read_bytes()
    block = min(4096, len(data) // 2)
    path.write_bytes(data[:start] + bytes(block) + data[start + block :])


def link(path: Path) -> None:
    """Same contents, but somewhere else."""
    outside = path.parents[2] / "outside"
    path.rename(outside)
    path.symlink_to(outside)


def become_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replaced_by(path: Path, other: Path) -> None:
    shutil.copy(other, path)
