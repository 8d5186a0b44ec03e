"""Batches on their way from a replay to a learner: observations are still compressed.

At full size a batch of 64 windows takes 434 MB decoded, and some 2 MB as the blocks of the replay.
So these travel, and the learner decodes them: by several threads, each with some of the windows,
into memory that is used again for the next batch.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.replay.blocks import BlockCodec
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.frames import ByteArray
from ezgreedy.replay.sequence_batch import SequenceBatch
from ezgreedy.requirements import IntArray

# Steps of a window that are in one block: the block, the first of them in it, their number, and the
# position of the first in the window.
Part = tuple[int, int, int, int]


class CompressedBatch(NamedTuple):
    """A batch of windows, and the blocks with their observations, each once."""

    rest: dict[str, NDArray[Any]]  # everything of a `SequenceBatch` but the observations
    payloads: ByteArray  # all blocks, one after another
    ends: IntArray  # where each of them ends
    parts: IntArray  # those of all windows, in order, [parts, 4]
    part_ends: IntArray  # where those of each window end

    @classmethod
    def of(
        cls,
        rest: dict[str, NDArray[Any]],
        parts: Sequence[Sequence[Part]],
        read: Callable[[int], ByteArray],
    ) -> "CompressedBatch":
        """Lay out a batch for the journey, as a few flat arrays.

        Args:
            rest: everything but the observations.
            parts: parts of each window, in order.
            read: returns the bytes of a block.
        """
        flat = np.array([part for window in parts for part in window], dtype=np.int64)
        numbers, flat[:, 0] = np.unique(flat[:, 0], return_inverse=True)
        blocks = [read(number) for number in numbers.tolist()]
        ends = np.cumsum([len(block) for block in blocks])
        part_ends = np.cumsum([len(window) for window in parts])
        return cls(rest, np.concatenate(blocks), ends, flat, part_ends)

    @property
    def num_windows(self) -> int:
        """Number of windows."""
        return len(self.part_ends)

    @property
    def num_bytes(self) -> int:
        """Size of the data, without the small overhead of names and types."""
        arrays = (*self.rest.values(), self.payloads, self.ends, self.parts, self.part_ends)
        return sum(array.nbytes for array in arrays)


class BatchDecoder:
    """Decodes the observations of batches; one batch at a time.

    Args:
        codec: codec of the blocks; others like it are made for further threads.
        settings: how windows were cut.
        threads: number of threads. Results do not depend on it.
    """

    def __init__(self, codec: BlockCodec, settings: SequenceSettings, threads: int = 1) -> None:
        require.integer("threads", threads, least=1)
        # A codec works in its own buffers.
        self._codecs = [codec, *(codec.another() for _ in range(threads - 1))]
        self._num_observations = settings.burn_in + settings.length + 1
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def shape(self, batch_size: int) -> tuple[int, ...]:
        """Shape of the observations of a batch.

        Args:
            batch_size: number of windows.
        """
        return (batch_size, self._num_observations, *self._codecs[0].observation_shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the observations."""
        return self._codecs[0].dtype

    def __call__(self, batch: CompressedBatch, out: NDArray[Any]) -> SequenceBatch:
        """The batch with its observations; zeros before and after those of a window.

        Args:
            batch: the batch.
            out: memory for the observations; the returned batch refers to it.
        """
        if out.shape != self.shape(batch.num_windows) or out.dtype != self.dtype:
            rule = f"be {self.dtype} of shape {self.shape(batch.num_windows)}"
            raise require.refuse("out", rule, require.Described(f"{out.dtype} of {out.shape}"))
        others = [
            self._pool.submit(self._decode, number, batch, out)
            for number in range(1, len(self._codecs))
            if self._pool is not None
        ]
        self._decode(0, batch, out)
        for other in others:
            other.result()
        return SequenceBatch(observations=out, **batch.rest)

    def _decode(self, number: int, batch: CompressedBatch, out: NDArray[Any]) -> None:
        """Decodes every n-th window, from this number on."""
        codec, step = self._codecs[number], len(self._codecs)
        part_ends, block_ends = batch.part_ends.tolist(), batch.ends.tolist()
        for row in range(number, batch.num_windows, step):
            begin = part_ends[row - 1] if row else 0
            parts = batch.parts[begin : part_ends[row]].tolist()
            end = 0
            for block, first, count, position in parts:
                block_begin = block_ends[block - 1] if block else 0
                payload = batch.payloads[block_begin : block_ends[block]]
                # The observation after a block's last step is overwritten by the next block's
                # first.
                end = position + count + 1
                codec.decode(payload, first, out[row, position:end])
            out[row, : parts[0][3]] = 0
            out[row, end:] = 0
