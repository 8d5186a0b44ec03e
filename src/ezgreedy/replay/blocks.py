"""Where the observations of sequences are kept: in compressed blocks that windows share.

A block is a stretch of one episode: a number of steps, the observations they started from and the
one after the last step, which is thereby in two blocks. It costs a fortieth more, and a window of
steps never needs a block that is still being filled. Pictures of codes are stored as ranks among
the codes of their block, one byte each. All blocks share one ring of bytes, addressed by the number
of bytes ever written, so the changes since an earlier save are always one stretch of it.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.compilation import jit, jit_unlocked
from ezgreedy.replay.frames import ByteArray
from ezgreedy.replay.sequence_sizes import (
    BLOCK_HEAD,
    NUM_RANKS,
    most_block_bytes,
    raw_block_bytes,
)
from ezgreedy.requirements import IntArray

DTYPES = (np.uint8, np.uint16, np.float32)
LEVEL = 3  # zstd's level: higher ones take longer and save little


class BlockCodec:
    """Turns up to `num_steps` + 1 consecutive observations into bytes, and back.

    Needs zstandard. Works in its own buffers, so each thread needs its own codec.

    Args:
        observation_shape: shape of one observation.
        dtype: uint8, uint16 or float32.
        num_steps: number of steps in a block, unless its episode ends earlier.
    """

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        dtype: type[np.generic] | np.dtype[Any] = np.uint8,
        num_steps: int = 40,
    ) -> None:
        from zstandard import ZstdCompressor, ZstdDecompressor

        self.observation_shape = tuple(
            require.integer("observation_shape", size, least=1) for size in observation_shape
        )
        self.dtype = np.dtype(dtype)
        if self.dtype not in DTYPES:
            raise require.refuse("dtype", "be uint8, uint16 or float32", dtype)
        self.num_steps = require.integer("num_steps", num_steps, least=1)
        self.size = prod(self.observation_shape)  # numbers in an observation
        self._has_codes = self.dtype == np.uint16
        self._compressor = ZstdCompressor(level=LEVEL)
        self._decompressor = ZstdDecompressor()
        self._work = np.empty(self.most_raw_bytes, dtype=np.uint8)
        self._ranks = np.zeros(1 << 16, dtype=np.int64)
        self._table = np.zeros(NUM_RANKS, dtype=np.uint16)

    def another(self) -> "BlockCodec":
        """A codec like this one with its own buffers, for another thread."""
        return BlockCodec(self.observation_shape, self.dtype, self.num_steps)

    @property
    def observation_bytes(self) -> int:
        """The bytes of an observation before compression."""
        return self.size * self.dtype.itemsize

    @property
    def most_raw_bytes(self) -> int:
        """The bytes of a full block before compression."""
        return raw_block_bytes(self.num_steps, self.observation_bytes)

    @property
    def most_bytes(self) -> int:
        """The most bytes of a block, however badly it compresses: zstd's bound, rounded up."""
        return most_block_bytes(self.num_steps, self.observation_bytes)

    def encode(self, observations: NDArray[Any]) -> bytes:
        """The bytes of a block.

        Args:
            observations: those of all steps, and the one after the last step.
        """
        shape = observations.shape
        if observations.dtype != self.dtype or shape[1:] != self.observation_shape:
            rule = f"be {self.dtype} of shape {self.observation_shape} each"
            received = require.Described(f"{observations.dtype} of shape {shape[1:]}")
            raise require.refuse("observations", rule, received)
        if not 2 <= len(observations) <= self.num_steps + 1:
            rule = f"be of 1 to {self.num_steps} steps, and the last of them"
            raise require.refuse("observations", rule, require.Described(f"{shape[0]} of them"))
        flat = np.ascontiguousarray(observations).reshape(-1)
        raw = self._ranked(flat) if self._has_codes else flat.view(np.uint8)
        return self._compressor.compress(raw.data)

    def decode(self, payload: ByteArray | bytes, first: int, out: NDArray[Any]) -> None:
        """Write observations of a block into a buffer, as many as it has room for.

        Args:
            payload: the block.
            first: index of the first observation to write.
            out: a contiguous buffer, [count, *observation_shape].
        """
        target = out.reshape(-1)
        raw = self._decompressed(payload)
        begin, end = first * self.size, (first + len(out)) * self.size
        if not self._has_codes:
            raw = raw.view(self.dtype)
        elif num_codes := int(raw[:BLOCK_HEAD].view(np.uint16)[0]):
            table_end = BLOCK_HEAD + 2 * num_codes
            self._table[:num_codes] = raw[BLOCK_HEAD:table_end].view(np.uint16)
            _check_end(end, len(raw) - table_end, self.size)
            _look_up(raw[table_end + begin : table_end + end], self._table, target)
            return
        else:
            raw = raw[BLOCK_HEAD:].view(np.uint16)
        _check_end(end, len(raw), self.size)
        target[:] = raw[begin:end]

    def _ranked(self, codes: NDArray[np.uint16]) -> ByteArray:
        """The number of codes, the codes, and their ranks; or none, and the codes as they are."""
        self._ranks[:] = 0
        _mark(codes, self._ranks)
        table = np.flatnonzero(self._ranks).astype(np.uint16)
        if len(table) > NUM_RANKS:
            table = table[:0]
        head = np.concatenate([np.array([len(table)], dtype=np.uint16), table]).view(np.uint8)
        length = len(codes) if len(table) else codes.nbytes
        raw = self._work[: len(head) + length]
        raw[: len(head)] = head
        if len(table):
            self._ranks[table] = np.arange(len(table))
            _rank(codes, self._ranks, raw[len(head) :])
        else:
            raw[len(head) :] = codes.view(np.uint8)
        return raw

    def _decompressed(self, payload: ByteArray | bytes) -> ByteArray:
        """The block in this object's own buffer, which the next block overwrites."""
        from zstandard import frame_content_size

        view = self._work.data
        source = payload if isinstance(payload, bytes) else payload.data
        length = 0
        with self._decompressor.stream_reader(source) as reader:
            while count := reader.readinto(view[length:]):
                length += count
        if length != frame_content_size(source):
            received = require.Described(f"{len(source)} bytes that are not")
            raise require.refuse("payload", "be a whole block", received)
        return self._work[:length]


class BlockStore:
    """The newest blocks, as numbered bytes: block n is the n-th ever written.

    Args:
        num_blocks: the most blocks kept.
        num_bytes: the most bytes they may take together; the oldest make room.
    """

    def __init__(self, num_blocks: int, num_bytes: int) -> None:
        self.num_blocks = require.integer("num_blocks", num_blocks, least=1)
        self._bytes = np.zeros(require.integer("num_bytes", num_bytes, least=1), dtype=np.uint8)
        # Where blocks begin, in bytes ever written; a block ends where the next one begins.
        self._begins = np.zeros(self.num_blocks, dtype=np.int64)
        self.first = 0  # the oldest block still stored
        self.num_written = 0  # blocks ever
        self.num_bytes_written = 0

    @property
    def most_bytes(self) -> int:
        """The most bytes that the stored blocks may take."""
        return len(self._bytes)

    @property
    def num_bytes(self) -> int:
        """The bytes that the stored blocks take."""
        return self.num_bytes_written - self._begin(self.first)

    def append(self, payload: bytes) -> int:
        """Write a block over the oldest ones; return its number. Blocks below `first` are lost."""
        length = len(payload)
        if not 0 < length <= len(self._bytes):
            rule = f"take 1 to {len(self._bytes)} bytes"
            raise require.refuse("payload", rule, require.Described(f"{length} bytes"))
        end = self.num_bytes_written + length
        least_begin = end - len(self._bytes)
        while self.first < self.num_written and (
            self._begin(self.first) < least_begin
            or self.num_written - self.first >= self.num_blocks
        ):
            self.first += 1
        position = self.num_bytes_written % len(self._bytes)
        fitting = min(length, len(self._bytes) - position)
        written = np.frombuffer(payload, dtype=np.uint8)
        self._bytes[position : position + fitting] = written[:fitting]
        self._bytes[: length - fitting] = written[fitting:]
        self._begins[self.num_written % self.num_blocks] = self.num_bytes_written
        self.num_written += 1
        self.num_bytes_written = end
        return self.num_written - 1

    def read(self, number: int) -> ByteArray:
        """The bytes of a block; a view, unless the block lies across the ring's end."""
        if not self.first <= number < self.num_written:
            rule = f"lie in [{self.first}, {self.num_written}), where blocks are"
            raise require.refuse("number", rule, number)
        begin, end = self._begin(number), self._begin(number + 1)
        position, length = begin % len(self._bytes), end - begin
        view = self._bytes[position : position + length]
        if len(view) == length:
            return view
        return np.concatenate([view, self._bytes[: length - len(view)]])

    def state_dict(self) -> dict[str, Any]:
        """The store's own arrays, not copies, as append-only rings; and the oldest block."""
        return {
            "bytes": AppendOnlyRing(self._bytes, self.num_bytes_written),
            "begins": AppendOnlyRing(self._begins, self.num_written),
            "first": self.first,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the blocks of a store of the same sizes."""
        for name, array in (("bytes", self._bytes), ("begins", self._begins)):
            check_tail(name, state[name], array)
        self._bytes[:] = state["bytes"].array
        self._begins[:] = state["begins"].array
        self.num_written = state["begins"].num_written
        self.num_bytes_written = state["bytes"].num_written
        self.first = int(state["first"])

    def _begin(self, number: int) -> int:
        if number == self.num_written:
            return self.num_bytes_written
        return int(self._begins[number % self.num_blocks])


def check_tail(name: str, tail: AppendOnlyRing, array: NDArray[Any]) -> None:
    """Refuse a saved ring whose shape or type differs from this one's."""
    saved = tail.array
    if saved.shape != array.shape or saved.dtype != array.dtype:
        rule = f"hold {name} of shape {array.shape} and type {array.dtype}"
        raise require.refuse("state", rule, saved.shape)


def _check_end(end: int, length: int, size: int) -> None:
    if end > length:
        rule = f"ask for observations that the block has, which are {length // size}"
        raise require.refuse("out", rule, end // size)


@jit
def _mark(codes: NDArray[np.uint16], marks: IntArray) -> None:
    for position in range(len(codes)):
        marks[codes[position]] = 1


@jit
def _rank(codes: NDArray[np.uint16], ranks: IntArray, out: ByteArray) -> None:
    for position in range(len(codes)):
        out[position] = ranks[codes[position]]


@jit_unlocked
def _look_up(ranks: ByteArray, table: NDArray[np.uint16], out: NDArray[np.uint16]) -> None:
    for position in range(len(ranks)):
        out[position] = table[ranks[position]]
