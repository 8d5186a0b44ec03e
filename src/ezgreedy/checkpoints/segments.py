"""How can a ring of millions of rows be saved often while each row is written once?

Rows added since the last checkpoint go into a segment, a file that never changes and is named after
its place in the state, its first and end item and its contents. A checkpoint lists the segments
that cover its ring. When there are many, some neighbours are rewritten as one: from memory, since
everything a checkpoint may need is still in the ring.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.checkpoints.durable_files import (
    CHUNK_BYTES,
    DamagedError,
    Digest,
    read_verified,
    scratch,
)
from ezgreedy.checkpoints.state_tree import checked_layout, require_finite

MOST_SEGMENTS = 256
# Merging this many at a time bounds the work of one save by that of as many saves.
MERGED_SEGMENTS = 16
# A segment is on disk as long as one of its rows is needed; parts of a ring keep that waste small.
PARTS_OF_RING = 16
SMALLEST_PART_BYTES = 2**20

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}\.\d{1,19}-\d{1,19}\.[0-9a-f]{16}\.rows")


class Segment(NamedTuple):
    """Items [first, end) of a tail, in the file of this name."""

    first: int
    end: int
    name: str


@dataclass(frozen=True)
class Coverage:
    """The segments that hold a tail's window, in order, each beginning where the last one ends."""

    dtype: str
    shape: tuple[int, ...]
    num_written: int
    segments: tuple[Segment, ...]

    def as_data(self) -> dict[str, Any]:
        """The coverage as JSON."""
        return {
            "dtype": self.dtype,
            "shape": list(self.shape),
            "num_written": self.num_written,
            "segments": [list(segment) for segment in self.segments],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Coverage":
        """The inverse of `as_data`; raises ValueError, TypeError or KeyError for anything else."""
        dtype, shape = checked_layout(data["dtype"], data["shape"])
        segments = tuple(Segment(*segment) for segment in data["segments"])
        coverage = cls(dtype.str, shape, data["num_written"], segments)
        coverage._check()
        return coverage

    def _check(self) -> None:
        numbers = [self.num_written, *(n for segment in self.segments for n in segment[:2])]
        if not all(type(number) is int for number in numbers):
            raise ValueError("items of a tail are not numbered by ints")
        if not all(is_segment_name(segment.name) for segment in self.segments):
            raise ValueError("a segment has a strange name")
        first = max(0, self.num_written - self.shape[0])
        ends = [min(first, self.segments[0].first if self.segments else first)]
        for segment in self.segments:
            if segment.first != ends[-1] or segment.end <= segment.first:
                raise ValueError("the segments of a tail do not follow one another")
            ends.append(segment.end)
        if ends[-1] != self.num_written or ends[0] < 0:
            raise ValueError("the segments of a tail do not cover its window")


def is_segment_name(name: object) -> bool:
    """Whether a file of this name is one of ours: no slash, no dots that lead elsewhere."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def segment_name(path: str, items: range, sha256: str) -> str:
    """The name of a segment, which differs if its contents do."""
    place = re.sub(r"[^A-Za-z0-9_]+", "-", path).strip("-")[:80]
    return f"{place}.{items.start}-{items.stop}.{sha256[:16]}.rows"


def parts_to_write(tail: AppendOnlyRing, known: Coverage | None) -> list[Segment | range]:
    """Segments to keep and ranges of items to write, in order; together they cover the window.

    Args:
        tail: the ring to cover.
        known: segments that are certain to hold this tail's earlier items.
    """
    kept = _usable(tail, known)
    window = tail.window
    start = kept[-1].end if kept else window.start
    row_bytes = tail.array.nbytes // len(tail.array)
    step = max(math.ceil(len(tail.array) / PARTS_OF_RING), SMALLEST_PART_BYTES // row_bytes, 1)
    parts: list[Segment | range] = [
        *kept,
        *(
            range(first, min(first + step, window.stop))
            for first in range(start, window.stop, step)
        ),
    ]
    while len(parts) > MOST_SEGMENTS:
        parts = _with_cheapest_merged(parts, window.start)
    return parts


def _usable(tail: AppendOnlyRing, known: Coverage | None) -> list[Segment]:
    layout = (tail.array.dtype.str, tail.array.shape)
    if known is None or (known.dtype, known.shape) != layout:
        return []
    # A sequence that is shorter than before was restarted: its items differ.
    if known.num_written > tail.num_written:
        return []
    return [segment for segment in known.segments if segment.end > tail.window.start]


def _with_cheapest_merged(parts: Sequence[Segment | range], least: int) -> list[Segment | range]:
    bounds = [_bounds(part) for part in parts]
    last = MERGED_SEGMENTS - 1
    sizes = [bounds[i + last][1] - bounds[i][0] for i in range(len(parts) - last)]
    place = sizes.index(min(sizes))
    merged = range(max(bounds[place][0], least), bounds[place + last][1])
    return [*parts[:place], merged, *parts[place + MERGED_SEGMENTS :]]


def _bounds(part: Segment | range) -> tuple[int, int]:
    return (part.start, part.stop) if isinstance(part, range) else (part.first, part.end)


def require_new_rows_finite(
    path: str, tail: AppendOnlyRing, parts: Sequence[Segment | range]
) -> None:
    """Refuse NaN and infinities in rows about to be written."""
    for part in parts:
        if isinstance(part, range):
            for rows in tail.rows(part):
                require_finite(path, rows)


def row_chunks(tail: AppendOnlyRing, items: range) -> Iterator[memoryview]:
    """The bytes of consecutive items, a few MB at a time; the ring's own, if it is contiguous."""
    per_chunk = max(CHUNK_BYTES * len(tail.array) // tail.array.nbytes, 1)
    for rows in tail.rows(items):
        for start in range(0, len(rows), per_chunk):
            chunk = np.ascontiguousarray(rows[start : start + per_chunk])
            yield chunk.reshape(-1).view(np.uint8).data


def read_tail(folder: Path, coverage: Coverage, digests: Mapping[str, Digest]) -> AppendOnlyRing:
    """Rebuild a ring, each item in its row, from segments that are verified on the way.

    Args:
        folder: directory of the segments.
        coverage: the segments to read.
        digests: digests of the segments, by name.
    """
    dtype, shape = np.dtype(coverage.dtype), coverage.shape
    row_bytes = dtype.itemsize * math.prod(shape[1:])
    for first, end, name in coverage.segments:
        if digests[name].size != (end - first) * row_bytes:
            raise DamagedError(folder / name, "is listed with a size that its items do not have")
    # Rows without an item are never touched, so that they take no memory yet.
    tail = AppendOnlyRing(np.zeros(shape, dtype), coverage.num_written)
    for first, end, name in coverage.segments:
        held = range(max(first, tail.window.start), end)
        expired = scratch((held.start - first) * row_bytes)
        read_verified(folder / name, digests[name], chain(expired, row_chunks(tail, held)))
    return tail
