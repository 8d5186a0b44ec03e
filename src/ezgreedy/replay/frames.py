"""Where observations are kept: every frame once, stacked only when a batch asks for it.

A state of Atari is the newest four frames, so storing states would keep each frame eight times over
(56 GB for a million transitions, instead of 7.1). Each lane writes into its own ring. A stack never
reaches back past the start of its episode, where it is padded with zeros, nor past the point at
which its lane overwrites the oldest frames.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.compilation import jit, jit_borrowing
from ezgreedy.replay.available_memory import available_bytes
from ezgreedy.requirements import IntArray
from ezgreedy.units import size

ByteArray = NDArray[np.uint8]

# Left for networks, emulators and everything else.
RESERVED_BYTES = 2**29
# Beside its frame, a slot keeps its history (1), action (8), return and discount (4 each), next
# slot (8), member and place (16), and up to four nodes of a sum tree (32).
_BYTES_BESIDE_FRAME = 73


class FrameStore:
    """The newest frames of several lanes, and stacks of them.

    Args:
        capacity: total number of frames; a transition needs about one of its own.
        frame_shape: shape of one observation, [channels, height, width].
        stack: number of consecutive frames in a state.
        lanes: number of environments that write, each into capacity // lanes slots.
    """

    def __init__(
        self,
        capacity: int,
        frame_shape: tuple[int, int, int] = (1, 84, 84),
        stack: int = 4,
        lanes: int = 1,
    ) -> None:
        self.stack = require.integer("stack", stack, least=1, most=255)
        self.lanes = require.integer("lanes", lanes, least=1)
        least = (self.stack + 1) * self.lanes
        self.length = require.integer("capacity", capacity, least=least) // self.lanes
        self.capacity = self.length * self.lanes
        self.frame_shape = tuple(require.integer("frame_shape", n, least=1) for n in frame_shape)
        if len(self.frame_shape) != 3:
            raise require.refuse("frame_shape", "be [channels, height, width]", frame_shape)
        require_memory(self.capacity, self.frame_shape)
        # The slot of a lane's position p is lane · length + p.
        self._frames = np.zeros((self.capacity, prod(self.frame_shape)), dtype=np.uint8)
        # The number of earlier frames of its episode in a slot's stack.
        self._history = np.zeros(self.capacity, dtype=np.uint8)
        self._num_written = np.zeros(self.lanes, dtype=np.int64)

    @property
    def state_shape(self) -> tuple[int, int, int]:
        """The shape of a stack: oldest frame first, [stack · channels, height, width]."""
        channels, height, width = self.frame_shape
        return self.stack * channels, height, width

    @property
    def num_written(self) -> IntArray:
        """Frames ever written by each lane; shows what changed since an earlier save."""
        return self._num_written.copy()

    def append(self, lane: int, frame: ByteArray, *, starts_episode: bool) -> int:
        """Write a lane's next frame over its oldest one, and name the slot.

        Args:
            lane: number of the environment.
            frame: the frame, uint8, of the store's frame shape.
            starts_episode: whether the frame follows a reset, for any end of the last episode.
        """
        lane = require.integer("lane", lane, 0, self.lanes - 1)
        if frame.dtype != np.uint8 or frame.shape != self.frame_shape:
            rule = f"be uint8 of shape {self.frame_shape}"
            raise require.refuse(
                "frame", rule, require.Described(f"{frame.dtype} of shape {frame.shape}")
            )
        written = int(self._num_written[lane])
        if written == 0 and not starts_episode:
            raise require.refuse("starts_episode", "be True for a lane's first frame", False)
        slot = self._slot(lane, written)
        previous = self._slot(lane, written - 1)
        longer = min(int(self._history[previous]) + 1, self.stack - 1)
        self._history[slot] = 0 if starts_episode else longer
        self._frames[slot] = frame.reshape(-1)
        self._num_written[lane] += 1
        return slot

    def expiring(self, lane: int) -> list[int]:
        """Slots whose stacks are lost with the frame that the lane's next one replaces."""
        written = int(self._num_written[lane])
        if written < self.length:
            return []
        slots = [self._slot(lane, written + distance) for distance in range(self.stack)]
        return [slot for distance, slot in enumerate(slots) if self._history[slot] >= distance]

    def new_batch(self, batch_size: int) -> ByteArray:
        """A reusable buffer for `gather`, [batch, *state_shape]."""
        return np.zeros((batch_size, *self.state_shape), dtype=np.uint8)

    def gather(self, slots: IntArray, out: ByteArray) -> ByteArray:
        """Write the stacks that end in some slots into a buffer, and return it.

        Args:
            slots: the slots, [batch].
            out: a buffer from `new_batch`.
        """
        if out.dtype != np.uint8 or out.shape != (len(slots), *self.state_shape):
            raise require.refuse("out", f"hold {(len(slots), *self.state_shape)} bytes", out.shape)
        if not out.flags.c_contiguous:
            raise require.refuse("out", "be contiguous", out.strides)
        slots = require.actions("slots", slots, len(slots), self.capacity)
        rows = out.reshape(len(slots), self.stack, -1)
        lost = _gather(self._frames, self._history, self._num_written, slots, rows)
        if lost >= 0:
            raise require.refuse("slots", "have their whole stack in the store", int(slots[lost]))
        return out

    def state_dict(self) -> dict[str, Any]:
        """The store's own arrays, not copies: callers copy or write them at once.

        A lane's frames are an `AppendOnlyRing`, so that a checkpoint need not write them again.
        """
        return {
            name: [
                AppendOnlyRing(self._of_lane(array, lane), int(written))
                for lane, written in enumerate(self._num_written)
            ]
            for name, array in (("frames", self._frames), ("history", self._history))
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the contents of a store of the same sizes."""
        own = self.state_dict()
        for name, tails in own.items():
            shapes = [(tail.array.shape, tail.array.dtype) for tail in state[name]]
            if shapes != [(tail.array.shape, tail.array.dtype) for tail in tails]:
                rule = f"hold {name} of {self.lanes} lanes, {self.length} each, of this shape"
                raise require.refuse("state", rule, shapes)
        for name, tails in own.items():
            for tail, saved in zip(tails, state[name], strict=True):
                tail.array[...] = saved.array
        self._num_written[:] = [tail.num_written for tail in state["frames"]]

    def _of_lane(self, array: ByteArray, lane: int) -> ByteArray:
        return array[lane * self.length : (lane + 1) * self.length]

    def _slot(self, lane: int, written: int) -> int:
        return lane * self.length + written % self.length


@jit
def _gather(
    frames: ByteArray, history: ByteArray, num_written: IntArray, slots: IntArray, out: ByteArray
) -> int:
    """Fill out, [batch, stack, frame]; the position of a slot whose stack is lost, else −1."""
    length = len(frames) // len(num_written)
    stack = out.shape[1]
    for row in range(len(slots)):
        lane, position = divmod(slots[row], length)
        written = num_written[lane]
        # How far the slot lies behind the newest frame of its lane; 0 for the newest itself.
        age = (written - 1 - position) % length
        reach = np.int64(history[slots[row]])
        if age + reach >= min(written, length):
            return row
        for distance in range(stack):
            target = out[row, stack - 1 - distance]
            if distance > reach:
                target[:] = 0
            else:
                _copy(frames[lane * length + (position - distance) % length], target)
    return -1


@jit_borrowing
def _copy(source: ByteArray, target: ByteArray) -> None:
    # Assigning slices goes byte by byte; this is compiled to copy many at a time.
    for index in range(len(target)):
        target[index] = source[index]


def required_bytes(capacity: int, frame_shape: tuple[int, ...]) -> int:
    """Memory for a replay of this capacity: frames and everything stored with them."""
    return capacity * (prod(frame_shape) + _BYTES_BESIDE_FRAME)


def require_memory(
    capacity: int, frame_shape: tuple[int, ...], available: int | None = None
) -> None:
    """Refuse a capacity that does not fit into memory, and say which one would.

    Args:
        capacity: capacity in frames.
        frame_shape: shape of one frame.
        available: available bytes; None to ask the machine.
    """
    require_fit(capacity, required_bytes(1, frame_shape), available)


def require_fit(capacity: int, bytes_each: float, available: int | None = None) -> None:
    """Refuse a capacity of items that take `bytes_each` bytes; see `require_memory`."""
    available = available_bytes() if available is None else available
    needed = capacity * bytes_each
    usable = max(available - RESERVED_BYTES, 0)
    if needed > usable:
        fitting = int(usable // bytes_each)
        rule = (
            f"be at most {fitting} to fit into the {size(usable)} of memory that can be "
            f"used (it needs {size(needed)})"
        )
        raise require.refuse("capacity", rule, capacity)
