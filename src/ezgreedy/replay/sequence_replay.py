"""The replay of a recurrent agent: windows go in, batches of sequences come out.

Windows are kept first in, first out, and drawn in proportion to their priorities, which come with
them and change when they are learned from. Their observations stay compressed, in blocks that
overlapping windows share, until a batch needs them. The oldest make room when the slots of windows
are full or, if observations compress worse than assumed, the bytes of blocks; a window that loses
a block is dropped.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.replay.blocks import BlockCodec, BlockStore, check_tail
from ezgreedy.replay.compressed_batch import BatchDecoder, CompressedBatch, Part
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.frames import require_fit
from ezgreedy.replay.importance import ImportanceExponent
from ezgreedy.replay.prioritized import Priorities
from ezgreedy.replay.sequence_batch import SequenceBatch
from ezgreedy.replay.sequence_sizes import BYTES_PER_OBSERVATION, STEP_BYTES, sequence_sizes
from ezgreedy.replay.sequences import Block, Window
from ezgreedy.requirements import FloatArray, IntArray

# TD errors are on the scale of rescaled values. None is so small that it is never drawn again.
PRIORITY_BOUNDS = (1e-6, 1e3)
_KEPT_AS_THEY_COME = (
    "length",
    "prefix_length",
    "terminated",
    "previous_action",
    "previous_reward",
    "state_h",
    "state_c",
)
_WINDOW_BYTES = 8 * 13  # its place and probability, and a sum tree's nodes


class SequenceReplay:
    """Windows, the blocks they share, and their priorities, in step with each other.

    Args:
        capacity: capacity in observations; there is one window for each stride of them.
        codec: codec of the blocks.
        settings: how windows were cut.
        state_shape: shape of each half of a recurrent state.
        exponent: exponent of the priorities.
        importance_exponent: exponent of the weights that correct for priorities.
        bytes_per_observation: bytes to set aside for each observation, compressed.
        rng: random generator of the draws; its state is part of this object's.
    """

    def __init__(
        self,
        capacity: int,
        codec: BlockCodec,
        settings: SequenceSettings | None = None,
        state_shape: tuple[int, ...] = (512,),
        exponent: float = 0.9,  # Paper
        importance_exponent: float = 0.6,  # Paper
        bytes_per_observation: int = BYTES_PER_OBSERVATION,
        *,
        rng: np.random.Generator,
    ) -> None:
        self.settings = settings or SequenceSettings()
        stride = self.settings.stride
        if codec.num_steps != stride:
            raise require.refuse("codec", f"have blocks of {stride} steps", codec.num_steps)
        sizes = sequence_sizes(
            capacity,
            self.settings,
            codec.observation_bytes,
            prod(state_shape),
            bytes_per_observation,
        )
        per_window, num_blocks = self.settings.blocks_per_window, sizes.num_blocks
        beside = per_window * STEP_BYTES + (8 * prod(state_shape) + _WINDOW_BYTES) / stride
        require_fit(capacity, sizes.bytes_each + beside)
        self.capacity = sizes.num_windows
        self._blocks = BlockStore(num_blocks, sizes.block_bytes)
        self._steps: dict[str, NDArray[Any]] = {
            "actions": np.zeros((num_blocks, stride), dtype=np.int32),
            "rewards": np.zeros((num_blocks, stride), dtype=np.float32),
            "masks": np.zeros((num_blocks, stride), dtype=np.uint8),
            "behaviour_probabilities": np.zeros((num_blocks, stride), dtype=np.float32),
        }
        self._windows: dict[str, NDArray[Any]] = {
            # The block of the prefix, then those of the trained steps; −1 for none.
            "blocks": np.zeros((self.capacity, per_window + 1), dtype=np.int64),
            "oldest_block": np.zeros(self.capacity, dtype=np.int64),
            "length": np.zeros(self.capacity, dtype=np.int64),
            "prefix_length": np.zeros(self.capacity, dtype=np.int64),
            "terminated": np.zeros(self.capacity, dtype=np.bool_),
            "previous_action": np.zeros(self.capacity, dtype=np.int64),
            "previous_reward": np.zeros(self.capacity, dtype=np.float32),
            "state_h": np.zeros((self.capacity, *state_shape), dtype=np.float32),
            "state_c": np.zeros((self.capacity, *state_shape), dtype=np.float32),
        }
        self.num_windows = 0  # ever kept
        self.num_lost = 0  # came without the blocks they share with earlier ones
        self._priorities = Priorities(
            self.capacity,
            exponent,
            0.0,
            ImportanceExponent(importance_exponent, importance_exponent),
            PRIORITY_BOUNDS,
            rng=rng,
        )
        # For each lane: its episode, the start of the next window, the blocks of the last one, −1
        # for those that did not come.
        self._links: dict[int, tuple[int, int, list[int]]] = {}
        self._decoder = BatchDecoder(codec, self.settings)
        self._buffer: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self._priorities)

    @property
    def total_priority(self) -> float:
        """The sum over all windows, with the exponent, for draws among several memories."""
        return self._priorities.total

    @property
    def num_bytes(self) -> int:
        """The bytes that the observations take."""
        return self._blocks.num_bytes

    @property
    def effective_capacity(self) -> int:
        """The observations that fit, up to `capacity` windows, if all compress as these do."""
        stored, come = self._blocks.num_written - self._blocks.first, self.num_windows
        if not come:
            return self.capacity * self.settings.stride
        fitting_blocks = self._blocks.most_bytes * stored / self._blocks.num_bytes
        # Short episodes have more blocks to a window.
        fitting = int(fitting_blocks * (come + self.num_lost) / self._blocks.num_written)
        return min(self.capacity, fitting) * self.settings.stride

    def add(self, window: Window) -> int | None:
        """Keep a window in place of the oldest; return its slot, or None if blocks are missing.

        A window finds the blocks that came with earlier ones of its episode. It is dropped if
        some of those never came, or are so old that they have been overwritten. Its own block is
        stored nevertheless: after a gap, windows are kept again from the first whose blocks are
        all here, with a burn-in the third after the gap.

        Args:
            window: a complete window with its priority; None for the largest so far.
        """
        self._check_window(window)
        shared = self._shared_blocks(window)
        if shared is None:
            self.num_lost += 1
            return None
        oldest = self._blocks.first
        numbers = shared + [self._append(block) for block in window.blocks]
        own = numbers[1:] if window.start else numbers
        self._links[window.lane] = (window.episode, window.start + self.settings.stride, own)
        if self._blocks.first > oldest:
            self._drop_windows_that_begin_in(oldest, self._blocks.first)
        used = numbers if window.prefix_length else own
        if min(used) < self._blocks.first:
            self.num_lost += 1
            return None
        return self._keep(window, used)

    def draw(self, batch_size: int) -> CompressedBatch:
        """Draw windows with replacement; their observations stay compressed.

        Padding is zeros, but behaviour probabilities of 1.

        Args:
            batch_size: number of windows.
        """
        slots, _, weights = self._priorities.sample(batch_size)
        time = self.settings.burn_in + self.settings.length
        steps: dict[str, NDArray[Any]] = {
            "actions": np.zeros((batch_size, time), dtype=np.int64),
            "rewards": np.zeros((batch_size, time), dtype=np.float32),
            "masks": np.zeros((batch_size, time), dtype=np.uint8),
            "behaviour_probabilities": np.ones((batch_size, time), dtype=np.float32),
        }
        parts = [self._parts(slot) for slot in slots.tolist()]
        for row, own in enumerate(parts):
            self._assemble(own, {name: array[row] for name, array in steps.items()})
        windows = self._windows
        rest = {
            "previous_action": windows["previous_action"][slots],
            "previous_reward": windows["previous_reward"][slots],
            "state_h": windows["state_h"][slots],
            "state_c": windows["state_c"][slots],
            "prefix_lengths": windows["prefix_length"][slots],
            "lengths": windows["length"][slots],
            "terminated": windows["terminated"][slots],
            "weights": weights,
            "slots": slots,
            "generations": self._generations(slots),
            **steps,
        }
        return CompressedBatch.of(rest, parts, self._blocks.read)

    def sample(self, batch_size: int) -> SequenceBatch:
        """Draw windows as `draw` does, and decode them.

        The observations are a buffer that the next batch of this size overwrites.

        Args:
            batch_size: number of windows.
        """
        drawn = self.draw(batch_size)
        if self._buffer is None or len(self._buffer) != batch_size:
            self._buffer = np.zeros(self._decoder.shape(batch_size), dtype=self._decoder.dtype)
        return self._decoder(drawn, self._buffer)

    def update_priorities(self, slots: IntArray, generations: IntArray, losses: FloatArray) -> None:
        """Set the priorities of a batch, except for windows overwritten since.

        Args:
            slots: slots as sampled, [batch].
            generations: generations as sampled, [batch].
            losses: 0.9·max|δ| + 0.1·mean|δ| of each, or other values for priorities, [batch].
        """
        slots = require.actions("slots", slots, np.size(slots), self.capacity)
        losses = np.asarray(losses, dtype=np.float64)
        if np.shape(generations) != slots.shape or losses.shape != slots.shape:
            rule = f"have shape {slots.shape}, like generations"
            raise require.refuse("losses", rule, losses.shape)
        stays = self._generations(slots) == generations
        self._priorities.update(slots[stays], losses[stays])

    def state_dict(self) -> dict[str, Any]:
        """Everything that later batches depend on; the largest arrays are not copies.

        Data that never changes once written is in append-only rings, so that a checkpoint writes
        it once: bytes of blocks, steps of blocks, windows.
        """
        return {
            "blocks": self._blocks.state_dict(),
            "steps": _tails(self._steps, self._blocks.num_written),
            "windows": _tails(self._windows, self.num_windows),
            "num_lost": self.num_lost,
            "links": [
                [lane, episode, start, list(numbers)]
                for lane, (episode, start, numbers) in self._links.items()
            ],
            "priorities": self._priorities.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of a replay of the same sizes."""
        parts = {"steps": self._steps, "windows": self._windows}
        for part, arrays in parts.items():
            for name, array in arrays.items():
                check_tail(name, state[part][name], array)
        self._blocks.load_state_dict(state["blocks"])
        self._priorities.load_state_dict(state["priorities"])
        for part, arrays in parts.items():
            for name, array in arrays.items():
                array[...] = state[part][name].array
        self.num_windows = state["windows"]["length"].num_written
        self.num_lost = int(state["num_lost"])
        self._links = {
            int(lane): (int(episode), int(start), [int(number) for number in numbers])
            for lane, episode, start, numbers in state["links"]
        }

    def _check_window(self, window: Window) -> None:
        shape = self._windows["state_h"].shape[1:]
        if window.state_h.shape != shape or window.state_c.shape != shape:
            raise require.refuse("window", f"have states of shape {shape}", window.state_h.shape)
        if window.priority is not None:
            require.number("window.priority", window.priority, 0.0)

    def _shared_blocks(self, window: Window) -> list[int] | None:
        """Numbers of the blocks that earlier windows of the episode bring; −1 for missing ones.

        None if a later window of the episode has come before this one.
        """
        if window.start == 0:
            return []
        count = self.settings.blocks_per_window
        missing = [-1] * count
        episode, start, numbers = self._links.get(window.lane, (-1, 0, []))
        if episode != window.episode or len(numbers) < count:
            return missing
        if window.start < start:
            return None
        # Every window but an episode's first brings one block.
        gap = min((window.start - start) // self.settings.stride, count)
        return (numbers + missing)[gap : gap + count]

    def _append(self, block: Block) -> int:
        number = self._blocks.append(block.payload)
        row = number % self._blocks.num_blocks
        for name, array in self._steps.items():
            values = getattr(block, name)
            array[row, : len(values)] = values
        return number

    def _drop_windows_that_begin_in(self, first: int, end: int) -> None:
        """Blocks leave in order, so a window is incomplete once its oldest block has left."""
        oldest = self._windows["oldest_block"]
        for slot in np.flatnonzero((oldest >= first) & (oldest < end)):
            self._priorities.remove(int(slot))

    def _keep(self, window: Window, used: list[int]) -> int:
        slot = self.num_windows % self.capacity
        self._priorities.remove(slot)
        numbers = used if window.prefix_length else [-1, *used]
        self._windows["blocks"][slot] = -1
        self._windows["blocks"][slot, : len(numbers)] = numbers
        self._windows["oldest_block"][slot] = min(used)
        for name in _KEPT_AS_THEY_COME:
            self._windows[name][slot] = getattr(window, name)
        self._priorities.add(slot, window.priority)
        self.num_windows += 1
        return slot

    def _generations(self, slots: IntArray) -> IntArray:
        """The number of windows kept before the one in each slot."""
        newest = self.num_windows - 1
        return newest - (newest - slots) % self.capacity

    def _parts(self, slot: int) -> list[Part]:
        """A window's parts, in order."""
        settings, windows = self.settings, self._windows
        prefix_block, *blocks = windows["blocks"][slot].tolist()
        prefix_length, length = int(windows["prefix_length"][slot]), int(windows["length"][slot])
        parts = []
        if prefix_length:
            first = settings.stride - prefix_length
            parts.append((prefix_block, first, prefix_length, settings.burn_in - prefix_length))
        for begin in range(0, length, settings.stride):
            count = min(settings.stride, length - begin)
            parts.append((blocks[begin // settings.stride], 0, count, settings.burn_in + begin))
        return parts

    def _assemble(self, parts: list[Part], steps: dict[str, NDArray[Any]]) -> None:
        """Everything about the steps of a window except their observations."""
        for number, first, count, position in parts:
            block = number % self._blocks.num_blocks
            for name, array in self._steps.items():
                steps[name][position : position + count] = array[block, first : first + count]


def _tails(arrays: dict[str, NDArray[Any]], num_written: int) -> dict[str, AppendOnlyRing]:
    return {name: AppendOnlyRing(array, num_written) for name, array in arrays.items()}
