"""How much memory is left? The machine's, or less if a container or a batch system limits it.

Linux limits memory by control groups, of two versions that may be in use side by side. A process is
in a group of each, and the limits of all groups above it hold too. A job of a batch system is often
several groups deep, and only the outer ones have a limit.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple


class _Version(NamedTuple):
    """The files of a group: its limit, its use, and which part of its use can be given back."""

    limit: str
    used: str
    reclaimable: str


# Files that were read stay in memory until it is needed; they count as used.
_FIRST = _Version("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_SECOND = _Version("memory.max", "memory.current", "inactive_file")
_MEMORY = "memory"


def available_bytes(root: Path = Path("/")) -> int:
    """Memory still available to this process.

    Args:
        root: root of the file system, in which /proc and the mounted groups are looked up.
    """
    return min([_machine_bytes(root), *_left_by_groups(root)])


def _machine_bytes(root: Path) -> int:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["MemAvailable"].split()[0]) * 1024


def _left_by_groups(root: Path) -> Iterator[int]:
    """What each group of this process, and each group above, still allows."""
    for version, mount, path in _groups(root):
        # From the group itself up to the top of what is mounted.
        for group in (path, *path.parents):
            with suppress(OSError, ValueError, KeyError):  # no limit: no file, or the word "max"
                yield _left(root / str(mount).lstrip("/") / group, version)


def _left(group: Path, version: _Version) -> int:
    limit = int((group / version.limit).read_text())
    used = int((group / version.used).read_text())
    with suppress(OSError, ValueError, KeyError):
        lines = (group / "memory.stat").read_text().splitlines()
        used -= int(dict(line.split() for line in lines)[version.reclaimable])
    return max(limit - max(used, 0), 0)


def _groups(root: Path) -> Iterator[tuple[_Version, PurePosixPath, PurePosixPath]]:
    """The version, the mount point and the path below it of each group of this process."""
    with suppress(OSError):
        mounts = _mounts(root)
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and _MEMORY not in controllers.split(","):
                continue
            version = _FIRST if controllers else _SECOND
            for top, mount in mounts.get(version, ()):
                yield version, mount, _below(PurePosixPath(path), top)


def _mounts(root: Path) -> dict[_Version, list[tuple[PurePosixPath, PurePosixPath]]]:
    """Which part of the groups is mounted, and where."""
    found: dict[_Version, list[tuple[PurePosixPath, PurePosixPath]]] = {}
    for line in (root / "proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        top, mount = before.split()[3:5]
        kind, _, options = after.split()[:3]
        pair = PurePosixPath(top), PurePosixPath(mount)
        if kind == "cgroup2":
            found.setdefault(_SECOND, []).append(pair)
        elif kind == "cgroup" and _MEMORY in options.split(","):
            found.setdefault(_FIRST, []).append(pair)
    return found


def _below(path: PurePosixPath, top: PurePosixPath) -> PurePosixPath:
    """A group's path below what is mounted; in a container, that is often the group itself."""
    return path.relative_to(top) if path.is_relative_to(top) else PurePosixPath()
