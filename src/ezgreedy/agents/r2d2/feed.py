"""What a learner is fed with: the next batch is decoded while it learns from the one before.

There are two buffers, of which each holds a batch until it has been learned from. If the networks
are on another device, the buffers cannot be paged out, which makes copies fast, and a batch is
copied to the device as soon as it is decoded. Colours are looked up there. Needs torch.
"""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ezgreedy.agents.agent import GameSpec
from ezgreedy.agents.r2d2.actor import codec
from ezgreedy.agents.r2d2.settings import R2D2Settings
from ezgreedy.learning import tensor_states
from ezgreedy.replay.compressed_batch import BatchDecoder, CompressedBatch
from ezgreedy.replay.sequence_batch import SequenceBatch

NUM_BUFFERS = 2


class BatchFeed:
    """Decodes batches for one learner, called from as many threads as there are buffers.

    Args:
        preset: settings of the agent.
        spec: the game that it plays.
        threads: number of threads that decode a batch together.
        device: device of the learner's networks.
    """

    def __init__(
        self, preset: R2D2Settings, spec: GameSpec, *, threads: int = 1, device: str = "cpu"
    ) -> None:
        self._device = torch.device(device)
        self._decoder = BatchDecoder(codec(preset, spec), preset.sequences, threads)
        self._turn = threading.Lock()
        shape = self._decoder.shape(preset.learner.batch_size)
        self._free: queue.SimpleQueue[NDArray[Any]] = queue.SimpleQueue()
        for _ in range(NUM_BUFFERS):
            self._free.put(_buffer(shape, self._decoder.dtype, self._device))
        self._stream: torch.cuda.Stream | None = None
        if self._device.type == "cuda":
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]

    @contextmanager
    def decoded(self, batch: CompressedBatch) -> Iterator[SequenceBatch]:
        """The batch with its observations, which the next but one overwrites afterwards.

        Args:
            batch: the batch.
        """
        buffer = self._free.get()
        try:
            with self._turn:
                ready = self._decoder(batch, buffer)
                if self._stream is not None:
                    ready = ready._replace(observations=self._copied(buffer, self._stream))
            yield ready
        finally:
            self._free.put(buffer)

    def _copied(self, buffer: NDArray[Any], stream: torch.cuda.Stream) -> torch.Tensor:
        """A copy on the device; this thread waits for it, but not for what the learner does."""
        with torch.cuda.stream(stream):
            copy = tensor_states.tensor(buffer, torch.device("cpu")).to(
                self._device, non_blocking=True
            )
        stream.synchronize()
        return copy


def _buffer(shape: tuple[int, ...], dtype: np.dtype[Any], device: torch.device) -> NDArray[Any]:
    """Memory for a batch."""
    num_bytes = prod(shape) * dtype.itemsize
    cleared = torch.zeros(num_bytes, dtype=torch.uint8, pin_memory=device.type == "cuda")
    # The array keeps the tensor alive.
    return cleared.numpy().view(dtype).reshape(shape)
