"""Which receptive fields of a batch of frames are the same? Each distinct one gets a number.

Most of an Atari screen does not change from one frame to the next, and many parts of it look the
same: a batch of 32 transitions has 14,400 fields of 5 × 5 pixels in four frames, of which in most
games fewer than one in five differs from all others. A convolution that computes each distinct
field once therefore gives the same result, up to the order of sums, for a fraction of the work.

A field of the first layer is a patch of bytes. A field of a deeper layer is a patch of the numbers
of the fields below it, so one function numbers them all: it hashes a patch, looks it up in a table
of the distinct ones, and compares it byte for byte with the one found there. Two patches with one
hash are therefore distinguished, and a collision costs only a little time. Needs numba.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.compilation import jit, jit_borrowing
from ezgreedy.learning.settings import Convolution

Ids = NDArray[np.int32]
Origins = NDArray[np.uint64]
_Words = NDArray[np.uint64]

_WORD = 8  # bytes
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: bits all over
_HALF = np.uint64(32)


@dataclass(frozen=True)
class LayerFields:
    """The distinct fields of one layer.

    The states of a batch come in two groups, and fields are numbered so that each group has a
    range: first the fields of the first group only, then those of both, then the rest.

    Args:
        ids: the number of the field at every place, [states, height, width].
        origins: start of the first field with each number, in elements of the array below it.
        first: number of fields in the first group; they are numbers 0, 1, …
        second: the first number in the second group; all later numbers are in it too.
    """

    ids: Ids
    origins: Origins
    first: int
    second: int

    @property
    def num_distinct(self) -> int:
        """Number of distinct fields."""
        return len(self.origins)

    @property
    def share(self) -> float:
        """Distinct fields per place."""
        return self.num_distinct / max(self.ids.size, 1)


@dataclass(frozen=True)
class Fields:
    """The distinct fields of a batch of frames, layer by layer.

    Args:
        frames: the frames, uint8, [states, planes, height, width].
        split: number of states in the first group.
        layers: fields of each layer, first to last.
    """

    frames: NDArray[np.uint8]
    split: int
    layers: tuple[LayerFields, ...]


def find_fields(
    frames: NDArray[np.uint8],
    torso: Sequence[Convolution],
    split: int | None = None,
    largest_share: float = 1.0,
) -> Fields | None:
    """Number the distinct fields of every layer; None if there are too many in the first.

    Args:
        frames: the frames, uint8, [states, planes, height, width].
        torso: the convolutions, first to last.
        split: number of states in the first group; all of them if None.
        largest_share: give up if more than this share of the first layer's fields are distinct,
            since there is then little to gain.
    """
    if frames.dtype != np.uint8 or frames.ndim != 4:
        received = require.Described(f"{frames.dtype} of shape {frames.shape}")
        raise require.refuse("frames", "be uint8, [states, planes, height, width]", received)
    split = len(frames) if split is None else require.integer("split", split, 0, len(frames))
    frames = np.ascontiguousarray(frames)
    places = used_places(frames.shape[2:], tuple(torso))
    layers: list[LayerFields] = []
    below: NDArray[Any] = frames
    for row, (height, width) in zip(torso, places, strict=True):
        layer = _number(below, row, height, width, split)
        if not layers and layer.share > largest_share:
            return None
        layers.append(layer)
        below = layer.ids[:, None]
    return Fields(frames, split, tuple(layers))


@cache
def used_places(
    sides: tuple[int, ...], torso: tuple[Convolution, ...]
) -> tuple[tuple[int, int], ...]:
    """The number of places in each layer that the layers above read, (height, width) each.

    A layer may compute rows and columns at its far edges that the next one's stride leaves out.
    """
    used_sides: list[list[int]] = []
    for side in sides:
        sizes = [side]
        for row in torso:
            sizes.append((sizes[-1] - row.size) // row.stride + 1)
        used = [sizes[-1]]
        for row in reversed(torso[1:]):
            used.append((used[-1] - 1) * row.stride + row.size)
        used_sides.append(used[::-1])
    heights, widths = used_sides
    return tuple(zip(heights, widths, strict=True))


def _number(
    below: NDArray[Any], row: Convolution, height: int, width: int, split: int
) -> LayerFields:
    """The fields of one layer over an array [states, planes, rows, columns]."""
    item = below.itemsize
    origins = _origins(below.shape, row.stride, height, width)
    field = _words_of_field(below.shape, item, row.size)
    data = below.reshape(-1).view(np.uint8)
    last = int(origins[-1]) * item + int(field.offsets[-1]) + _WORD
    if last > len(data):  # the last words reach past the end
        data = np.concatenate([data, np.zeros(last - len(data), np.uint8)])
    words = np.ndarray((len(data) - _WORD + 1,), np.uint64, data, strides=(1,))
    ids, found, first, second = _numbered(
        words, origins * np.uint64(item), field, split * height * width
    )
    shape = (len(below), height, width)
    return LayerFields(ids.reshape(shape), origins[found], first, second)


@cache
def _origins(shape: tuple[int, ...], stride: int, height: int, width: int) -> Origins:
    """The starts of the fields at all places of all states, in elements."""
    columns, pitch = shape[-1], int(np.prod(shape[1:]))
    grid = (np.arange(height)[:, None] * columns + np.arange(width)) * stride
    origins = np.arange(shape[0])[:, None] * pitch + grid.reshape(-1)
    return origins.reshape(-1).astype(np.uint64)


class _WordsOfField(NamedTuple):
    """The 64-bit words that make up a field."""

    offsets: NDArray[np.uint64]  # in bytes from the field's origin
    multipliers: NDArray[np.uint64]  # the factor of each in the field's hash
    mask: np.uint64  # the bits of them that count


@cache
def _words_of_field(shape: tuple[int, ...], item: int, size: int) -> _WordsOfField:
    """The words of fields of this size, over elements of `item` bytes.

    Words of one row of a field may overlap; those of a row shorter than a word are masked.
    """
    _, planes, rows, columns = shape
    num_bytes = size * item
    starts = list(range(0, num_bytes - _WORD + 1, _WORD)) or [0]
    if num_bytes > _WORD and num_bytes % _WORD:
        starts.append(num_bytes - _WORD)
    offsets = [
        (plane * rows + row) * columns * item + start
        for plane in range(planes)
        for row in range(size)
        for start in starts
    ]
    mask = 2 ** (8 * min(num_bytes, _WORD)) - 1
    # Random, odd, and the same everywhere.
    rng = np.random.default_rng(0)
    multipliers = rng.integers(0, 2**64, len(offsets), dtype=np.uint64) | np.uint64(1)
    return _WordsOfField(np.array(offsets, dtype=np.uint64), multipliers, np.uint64(mask))


class _Table(NamedTuple):
    """The distinct patches met so far, by their hashes: open addressing."""

    slots: Ids  # numbers of patches; −1 where a slot is empty
    hashes: NDArray[np.uint64]  # by number
    found: NDArray[np.int64]  # by number: the position at which a patch was first met
    shift: np.uint64  # turns a 64-bit hash into a slot


@jit
def _numbered(
    words: _Words, origins: Origins, field: _WordsOfField, split: int
) -> tuple[Ids, NDArray[np.int64], int, int]:
    """Number the patches that begin at some origins.

    Returns the number of each patch, the position at which each number was first met, the count of
    numbers met before position `split`, and the first number met from there on.
    """
    table = _empty_table(len(origins))
    ids = np.empty(len(origins), dtype=np.int32)
    is_in_second = np.zeros(len(origins), dtype=np.bool_)
    num_found = num_first = 0
    for position in range(len(origins)):
        if position == split:
            num_first = num_found
        code = _hash(words, origins[position], field)
        slot = _slot(table, words, origins, field, position, code)
        number = table.slots[slot]
        if number < 0:
            number = np.int32(num_found)
            table.slots[slot], table.hashes[number], table.found[number] = number, code, position
            num_found += 1
        ids[position] = number
        if position >= split:
            is_in_second[number] = True
    if split >= len(origins):
        num_first = num_found
    second = _sort_groups(ids, table.found, is_in_second, num_first)
    return ids, table.found[:num_found].copy(), num_first, second


@jit
def _empty_table(size: int) -> _Table:
    """An empty table with room for twice as many patches."""
    num_slots, shift = 1, np.uint64(64)
    while num_slots < 2 * size:
        num_slots *= 2
        shift -= np.uint64(1)
    slots = np.full(num_slots, -1, dtype=np.int32)
    return _Table(slots, np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.int64), shift)


@jit_borrowing
def _hash(words: _Words, origin: np.uint64, field: _WordsOfField) -> np.uint64:
    code = np.uint64(0)
    for index in range(len(field.offsets)):
        code += (words[origin + field.offsets[index]] & field.mask) * field.multipliers[index]
    return code ^ (code >> _HALF)


@jit_borrowing
def _slot(
    table: _Table,
    words: _Words,
    origins: Origins,
    field: _WordsOfField,
    position: int,
    code: np.uint64,
) -> np.uint64:
    """The slot that holds the patch at a position, or the empty one where it belongs."""
    slot = (code * _MULTIPLIER) >> table.shift
    while True:
        number = table.slots[slot]
        if number < 0:
            return slot
        if table.hashes[number] == code:
            other = origins[table.found[number]]
            if _same(words, origins[position], other, field):
                return slot
        slot += np.uint64(1)
        if slot == np.uint64(len(table.slots)):
            slot = np.uint64(0)


@jit_borrowing
def _same(words: _Words, one: np.uint64, other: np.uint64, field: _WordsOfField) -> bool:
    difference = np.uint64(0)
    for offset in field.offsets:
        difference |= words[one + offset] ^ words[other + offset]
    return bool((difference & field.mask) == np.uint64(0))


@jit
def _sort_groups(
    ids: Ids, found: NDArray[np.int64], is_in_second: NDArray[np.bool_], num_first: int
) -> int:
    """Renumber the first group's fields: those of that group only, then those of both."""
    second = num_first
    for number in range(num_first):
        second -= is_in_second[number]
    renumbered = np.empty(num_first, dtype=np.int32)
    origins = found[:num_first].copy()
    places = np.array([0, second])
    for number in range(num_first):
        group = np.int64(is_in_second[number])
        renumbered[number] = places[group]
        found[places[group]] = origins[number]
        places[group] += 1
    for position in range(len(ids)):
        if ids[position] < num_first:
            ids[position] = renumbered[ids[position]]
    return second
