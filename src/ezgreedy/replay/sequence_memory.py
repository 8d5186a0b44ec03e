"""The memory of a recurrent agent: windows go in, batches of sequences come out.

Windows are kept first in, first out, and drawn in proportion to their priorities, which come with
them and change when they are learned from. Their observations stay compressed, in blocks that
overlapping windows share, until a batch needs them. Whatever is full makes room: the slots of
windows, or, where observations compress worse than was assumed, the bytes of blocks; a window that
loses a block leaves with it.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.replay.blocks import BlockCodec, BlockStore, check_tail
from ezgreedy.replay.cutting import SequenceSettings
from ezgreedy.replay.frames import require_fit
from ezgreedy.replay.prioritized import ImportanceExponent, Priorities
from ezgreedy.replay.sequence_batch import SequenceBatch
from ezgreedy.replay.sequences import Block, Window
from ezgreedy.requirements import FloatArray, IntArray
from ezgreedy.tail import Tail

# What an observation may take: the 57 games need 323 on average under mixed play, the worst of
# them 1,700, and play that gets further needs more than random play.
BYTES_PER_OBSERVATION = 700
# TD errors live on the scale of rescaled values. None is so small that it is never looked at again.
PRIORITY_BOUNDS = (1e-6, 1e3)
# Lanes take turns, so that blocks of a window may be older than those of windows before it.
_SPARE_BLOCKS = 256
_KEPT_AS_THEY_COME = (
    "length",
    "prefix_length",
    "terminated",
    "previous_action",
    "previous_reward",
    "state_h",
    "state_c",
)
_STEP_BYTES = 13  # action (4), reward (4), mask (1), behaviour probability (4)
_WINDOW_BYTES = 8 * 13  # numbers that say where it is and how likely, and a sum tree's nodes


class SequenceMemory:
    """Windows, the blocks they share, and their priorities, in step with each other.

    Args:
        capacity: in observations; windows are one for each stride of them.
        codec: of the blocks.
        settings: how windows were cut.
        state_shape: of each half of a recurrent state.
        exponent: of priorities.
        importance_exponent: of the weights that make up for them.
        bytes_per_observation: how much memory to set aside for each; None for its size before
            compression or 700, whichever is less.
        rng: what the draws come from; its state is part of this object's.
    """

    def __init__(
        self,
        capacity: int,
        codec: BlockCodec,
        settings: SequenceSettings | None = None,
        state_shape: tuple[int, ...] = (512,),
        exponent: float = 0.9,  # Paper
        importance_exponent: float = 0.6,  # Paper
        bytes_per_observation: int | None = None,
        *,
        rng: np.random.Generator,
    ) -> None:
        self.settings = settings or SequenceSettings()
        stride = self.settings.stride
        if codec.num_steps != stride:
            raise require.refuse("codec", f"have blocks of {stride} steps", codec.num_steps)
        self.capacity = require.integer("capacity", capacity, least=stride) // stride
        self._codec = codec
        bytes_each = _bytes_per_observation(codec, bytes_per_observation)
        per_window = self.settings.blocks_per_window
        beside = per_window * _STEP_BYTES + (8 * prod(state_shape) + _WINDOW_BYTES) / stride
        require_fit(capacity, bytes_each + beside)
        # Blocks take what they take; a few of them must fit even if they do not compress at all.
        num_bytes = max(
            self.capacity * stride * bytes_each, 2 * (per_window + 1) * codec.most_bytes
        )
        num_blocks = per_window * self.capacity + _SPARE_BLOCKS
        self._blocks = BlockStore(num_blocks, num_bytes)
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
        self.num_lost = 0  # that came without the blocks they share with earlier ones
        self._priorities = Priorities(
            self.capacity,
            exponent,
            0.0,
            ImportanceExponent(importance_exponent, importance_exponent),
            PRIORITY_BOUNDS,
            rng=rng,
        )
        # Of each lane: its episode, the start of the window to come, the blocks of the last one.
        self._links: dict[int, tuple[int, int, list[int]]] = {}
        self._buffer: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self._priorities)

    @property
    def num_bytes(self) -> int:
        """How many bytes the observations take."""
        return self._blocks.num_bytes

    def add(self, window: Window) -> int | None:
        """Keep a window in place of the oldest one; its slot, or None if blocks of it are missing.

        A window finds the blocks that came with earlier ones of its episode. It is dropped if
        those never came, or are so old that they have been overwritten.

        Args:
            window: complete, and with the priority it is to have; None for the largest so far.
        """
        self._check_window(window)
        shared = self._shared_blocks(window)
        if shared is None:
            self._links.pop(window.lane, None)
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

    def sample(self, batch_size: int) -> SequenceBatch:
        """Draw windows with replacement, and decode them.

        Padding is zeros, but behaviour probabilities of 1. The observations are a buffer that the
        next batch of this size overwrites.
        """
        slots, _, weights = self._priorities.sample(batch_size)
        settings = self.settings
        time = settings.burn_in + settings.length
        if self._buffer is None or len(self._buffer) != batch_size:
            shape = (batch_size, time + 1, *self._codec.observation_shape)
            self._buffer = np.zeros(shape, dtype=self._codec.dtype)
        steps: dict[str, NDArray[Any]] = {
            "actions": np.zeros((batch_size, time), dtype=np.int64),
            "rewards": np.zeros((batch_size, time), dtype=np.float32),
            "masks": np.zeros((batch_size, time), dtype=np.uint8),
            "behaviour_probabilities": np.ones((batch_size, time), dtype=np.float32),
        }
        for row, slot in enumerate(slots):
            self._decode(int(slot), self._buffer[row])
            self._assemble(int(slot), row, steps)
        windows = self._windows
        return SequenceBatch(
            observations=self._buffer,
            previous_action=windows["previous_action"][slots],
            previous_reward=windows["previous_reward"][slots],
            state_h=windows["state_h"][slots],
            state_c=windows["state_c"][slots],
            prefix_lengths=windows["prefix_length"][slots],
            lengths=windows["length"][slots],
            terminated=windows["terminated"][slots],
            weights=weights,
            slots=slots,
            generations=self._generations(slots),
            **steps,
        )

    def update_priorities(self, slots: IntArray, generations: IntArray, losses: FloatArray) -> None:
        """Set the priorities of a batch; windows that were overwritten since are left out.

        Args:
            slots: as sampled, [batch].
            generations: as sampled, [batch].
            losses: 0.9·max|δ| + 0.1·mean|δ| of each, or what else priorities are made of, [batch].
        """
        slots = require.actions("slots", slots, np.size(slots), self.capacity)
        losses = np.asarray(losses, dtype=np.float64)
        if np.shape(generations) != slots.shape or losses.shape != slots.shape:
            rule = f"have shape {slots.shape}, like generations"
            raise require.refuse("losses", rule, losses.shape)
        stays = self._generations(slots) == generations
        self._priorities.update(slots[stays], losses[stays])

    def state_dict(self) -> dict[str, Any]:
        """Everything that later batches depend on; the largest arrays are no copies.

        What was written and never changes is in `Tail`s, so that a checkpoint need not write it
        again: bytes of blocks, steps of blocks, windows.
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
        """Continue from a state of a memory of the same sizes."""
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
        """Numbers of the blocks that came with earlier windows of the episode; None if missing."""
        if window.start == 0:
            return []
        episode, start, numbers = self._links.get(window.lane, (-1, -1, []))
        return numbers if (episode, start) == (window.episode, window.start) else None

    def _append(self, block: Block) -> int:
        number = self._blocks.append(block.payload)
        row = number % self._blocks.num_blocks
        for name, array in self._steps.items():
            values = getattr(block, name)
            array[row, : len(values)] = values
        return number

    def _drop_windows_that_begin_in(self, first: int, end: int) -> None:
        """Blocks leave in order, so a window is incomplete as soon as its oldest one has left."""
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
        """How many windows were kept before the one that is in each slot."""
        newest = self.num_windows - 1
        return newest - (newest - slots) % self.capacity

    def _parts(self, slot: int) -> list[tuple[int, int, int, int]]:
        """(block, its first step to be used, how many, their first position) of a window."""
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

    def _decode(self, slot: int, out: NDArray[Any]) -> None:
        """The observations of a window, with zeros before and after them."""
        parts = self._parts(slot)
        for number, first, count, position in parts:
            # The one that a block's last step led to is written over by the next block's first.
            end = position + count + 1
            self._codec.decode(self._blocks.read(number), first, out[position:end])
        out[: parts[0][3]] = 0
        out[end:] = 0

    def _assemble(self, slot: int, row: int, steps: dict[str, NDArray[Any]]) -> None:
        """Everything about the steps of a window but their observations."""
        for number, first, count, position in self._parts(slot):
            block = number % self._blocks.num_blocks
            for name, array in self._steps.items():
                steps[name][row, position : position + count] = array[block, first : first + count]


def _bytes_per_observation(codec: BlockCodec, asked: int | None) -> int:
    if asked is not None:
        return require.integer("bytes_per_observation", asked, least=1)
    return min(BYTES_PER_OBSERVATION, codec.most_bytes // codec.num_steps + 1)


def _tails(arrays: dict[str, NDArray[Any]], num_written: int) -> dict[str, Tail]:
    return {name: Tail(array, num_written) for name, array in arrays.items()}
