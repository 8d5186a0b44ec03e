"""Which receptive fields of a batch of frames are the same? Each distinct one gets a number.

Most of an Atari screen does not change from one frame to the next, and many parts of it look the
same: a batch of 32 transitions has 14,400 fields of 5 × 5 pixels in four frames, of which in most
games fewer than one in five differs from all others. A convolution that computes each distinct
field once therefore gives the same result, up to the order of sums, for a fraction of the work.

A field of the first layer is a patch of bytes, or of two-byte codes of colours. A field of a deeper
layer is a patch of the numbers of the fields below it, so one function numbers them all: it hashes
a patch, looks it up in a table of the distinct ones, and compares it byte for byte with the one
found there. Two patches with one hash are therefore distinguished, and a collision costs only a
little time. A patch that equals the one at the same place of an earlier frame needs no hash. Needs
numba.
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
from ezgreedy.requirements import IntArray

Ids = NDArray[np.int32]
Origins = NDArray[np.uint64]
_Words = NDArray[np.uint64]

_WORD = 8  # bytes
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: bits all over
_HALF = np.uint64(32)
_FIRST_ROOM = 1 << 12  # patches; a table grows when it is full


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
        frames: the frames, [any number, planes, height, width].
        split: number of states in the first group.
        layers: fields of each layer, first to last.
    """

    frames: NDArray[Any]
    split: int
    layers: tuple[LayerFields, ...]

    @property
    def num_states(self) -> int:
        """Number of states in both groups."""
        return len(self.layers[0].ids)


def find_fields(
    frames: NDArray[Any],
    torso: Sequence[Convolution],
    split: int | None = None,
    largest_share: float = 1.0,
    *,
    rows: IntArray | None = None,
    lanes: int = 1,
) -> Fields | None:
    """Number the distinct fields of every layer; None if there are too many in the first.

    Args:
        frames: the frames, of one or two bytes a pixel, [any number, planes, height, width].
        torso: the convolutions, first to last.
        split: number of states in the first group; all of them if None.
        largest_share: give up if more than this share of the first layer's fields are distinct,
            since there is then little to gain.
        rows: which frames are the states, in their order; all of them if None.
        lanes: a state is probably most like the one so many before it. Matters only for speed.
    """
    if frames.dtype.kind not in "iu" or frames.itemsize > 2 or frames.ndim != 4:
        rule = "have one or two bytes a pixel, [states, planes, height, width]"
        received = require.Described(f"{frames.dtype} of shape {frames.shape}")
        raise require.refuse("frames", rule, received)
    rows = np.arange(len(frames)) if rows is None else rows
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(frames)):
        raise require.refuse("rows", f"lie in [0, {len(frames)})", rows)
    split = len(rows) if split is None else require.integer("split", split, 0, len(rows))
    frames = np.ascontiguousarray(frames)
    places = used_places(frames.shape[2:], tuple(torso))
    order = _Order(split, require.integer("lanes", lanes, least=1))
    layers: list[LayerFields] = []
    below: NDArray[Any] = frames
    for row, (height, width) in zip(torso, places, strict=True):
        most = len(rows) * height * width
        most = most if layers else int(largest_share * most)
        layer = _number(below, rows, row, (height, width), order._replace(most=most))
        if layer.num_distinct > most:
            return None
        layers.append(layer)
        below, rows = layer.ids[:, None], np.arange(len(rows))
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


class _Order(NamedTuple):
    """In which order states are numbered, and how far."""

    split: int  # states in the first group
    lanes: int  # states from one of an episode to the next
    most: int = 0  # with more distinct fields than this, numbering stops


def _number(
    below: NDArray[Any], rows: IntArray, row: Convolution, places: tuple[int, int], order: _Order
) -> LayerFields:
    """The fields of one layer over some rows of an array [states, planes, rows, columns]."""
    item = np.uint64(below.itemsize)
    states = rows.astype(np.uint64) * np.uint64(below[0].size) * item
    grid = _grid(below.shape[-1], row.stride, *places) * item
    field = _words_of_field(below.shape[1:], below.itemsize, row.size)
    data = below.reshape(-1).view(np.uint8)
    last = int(states.max() + grid[-1] + field.offsets[-1]) + _WORD
    if last > len(data):  # the last words reach past the end
        data = np.concatenate([data, np.zeros(last - len(data), np.uint8)])
    words = np.ndarray((len(data) - _WORD + 1,), np.uint64, data, strides=(1,))
    ids, origins, first, second = _numbered(words, states, grid, field, order)
    return LayerFields(ids.reshape(-1, *places), origins // item, first, second)


@cache
def _grid(columns: int, stride: int, height: int, width: int) -> Origins:
    """The starts of the fields at all places of a state, in elements."""
    grid = (np.arange(height)[:, None] * columns + np.arange(width)) * stride
    return grid.reshape(-1).astype(np.uint64)


class _WordsOfField(NamedTuple):
    """The 64-bit words that make up a field."""

    offsets: NDArray[np.uint64]  # in bytes from the field's origin
    multipliers: NDArray[np.uint64]  # the factor of each in the field's hash
    mask: np.uint64  # the bits of them that count


@cache
def _words_of_field(shape: tuple[int, ...], item: int, size: int) -> _WordsOfField:
    """The words of fields of this size, over states of elements of `item` bytes.

    Words of one row of a field may overlap; those of a row shorter than a word are masked.
    """
    planes, rows, columns = shape
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

    slots: Ids  # numbers of patches, at most half of the slots; −1 where a slot is empty
    shift: np.uint64  # turns a 64-bit hash into a slot
    # By number:
    hashes: NDArray[np.uint64]
    origins: Origins  # where a patch was first met
    is_in_second: NDArray[np.bool_]  # whether it was met in the second group


@jit
def _numbered(
    words: _Words, states: Origins, grid: Origins, field: _WordsOfField, order: _Order
) -> tuple[Ids, Origins, int, int]:
    """Number the patches at all places of a grid in all states.

    Returns the number of each patch, [states, places], where each number was first met, the count
    of numbers met in the first group, and the first number met in the second. Stops after a state
    with which there are too many distinct patches; the rest is then of no use.
    """
    table = _empty_table(_FIRST_ROOM)
    ids = np.zeros((len(states), len(grid)), dtype=np.int32)
    num_found = 0
    for state in range(len(states)):
        if num_found > order.most:
            break
        for place in range(len(grid)):
            origin = states[state] + grid[place]
            likely = state - order.lanes
            if likely >= 0 and _same(words, origin, states[likely] + grid[place], field):
                number = ids[likely, place]
            else:
                if num_found == len(table.hashes):
                    table = _grown(table)
                number = _enter(table, words, origin, field, num_found)
                num_found += number == num_found
            ids[state, place] = number
            if state >= order.split:
                table.is_in_second[number] = True
    first, second = _sort_groups(ids, table, order.split)
    return ids, table.origins[:num_found].copy(), first, second


@jit
def _empty_table(room: int) -> _Table:
    """An empty table with room for this many patches."""
    num_slots, shift = 1, np.uint64(64)
    while num_slots < 2 * room:
        num_slots *= 2
        shift -= np.uint64(1)
    slots = np.full(num_slots, -1, dtype=np.int32)
    hashes, origins = np.empty(room, dtype=np.uint64), np.empty(room, dtype=np.uint64)
    return _Table(slots, shift, hashes, origins, np.zeros(room, dtype=np.bool_))


@jit
def _grown(table: _Table) -> _Table:
    """A full table with room for twice as many patches."""
    grown = _empty_table(2 * len(table.hashes))
    for number in range(len(table.hashes)):
        slot = _first_slot(grown, table.hashes[number])
        while grown.slots[slot] >= 0:
            slot = _next_slot(grown, slot)
        grown.slots[slot] = number
        grown.hashes[number] = table.hashes[number]
        grown.origins[number] = table.origins[number]
        grown.is_in_second[number] = table.is_in_second[number]
    return grown


@jit_borrowing
def _enter(
    table: _Table, words: _Words, origin: np.uint64, field: _WordsOfField, num_found: int
) -> np.int32:
    """The number of a patch; `num_found`, the next one, if it is new."""
    code = _hash(words, origin, field)
    slot = _first_slot(table, code)
    while True:
        number = table.slots[slot]
        if number < 0:
            table.slots[slot], table.hashes[num_found] = num_found, code
            table.origins[num_found] = origin
            return np.int32(num_found)
        if table.hashes[number] == code and _same(words, origin, table.origins[number], field):
            return number
        slot = _next_slot(table, slot)


@jit_borrowing
def _hash(words: _Words, origin: np.uint64, field: _WordsOfField) -> np.uint64:
    code = np.uint64(0)
    for index in range(len(field.offsets)):
        code += (words[origin + field.offsets[index]] & field.mask) * field.multipliers[index]
    return code ^ (code >> _HALF)


@jit_borrowing
def _first_slot(table: _Table, code: np.uint64) -> np.uint64:
    return (code * _MULTIPLIER) >> table.shift


@jit_borrowing
def _next_slot(table: _Table, slot: np.uint64) -> np.uint64:
    slot += np.uint64(1)
    return np.uint64(0) if slot == np.uint64(len(table.slots)) else slot


@jit_borrowing
def _same(words: _Words, one: np.uint64, other: np.uint64, field: _WordsOfField) -> bool:
    for offset in field.offsets:
        if (words[one + offset] ^ words[other + offset]) & field.mask:
            return False
    return True


@jit
def _sort_groups(ids: Ids, table: _Table, split: int) -> tuple[int, int]:
    """Renumber the first group's fields: those of that group only, then those of both.

    Returns the count of numbers in the first group, and the first number in the second.
    """
    num_first = 0  # numbers rise in the order in which patches were met
    for state in range(split):
        for place in range(ids.shape[1]):
            num_first = max(num_first, ids[state, place] + 1)
    second = num_first
    for number in range(num_first):
        second -= table.is_in_second[number]
    renumbered = np.empty(num_first, dtype=np.int32)
    origins = table.origins[:num_first].copy()
    places = np.array([0, second])
    for number in range(num_first):
        group = np.int64(table.is_in_second[number])
        renumbered[number] = places[group]
        table.origins[places[group]] = origins[number]
        places[group] += 1
    for state in range(len(ids)):
        for place in range(ids.shape[1]):
            if ids[state, place] < num_first:
                ids[state, place] = renumbered[ids[state, place]]
    return num_first, second
