"""The whole replay of an agent: steps go in, batches of n-step transitions come out.

A transition lives in the slot of the frame in which it starts. Frames that start none, because
their episode ended there or their return is still accumulating, are never drawn. A transition is
no longer drawn once its lane overwrites a frame of its stack. Its next state is newer than its
first, so it is always there.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.replay.accumulate import Accumulator
from ezgreedy.replay.frames import ByteArray, FrameStore
from ezgreedy.replay.prioritized import Priorities
from ezgreedy.requirements import FloatArray, IntArray


class Batch(NamedTuple):
    """The data of one update; frames live in a buffer that the next batch overwrites."""

    frames: ByteArray  # states, then next states: [2, batch, stack · channels, height, width]
    actions: IntArray
    returns: NDArray[np.float32]
    discounts: NDArray[np.float32]
    weights: FloatArray
    slots: IntArray

    @property
    def states(self) -> ByteArray:
        """The states in which the actions were taken, [batch, stack · channels, height, width]."""
        return self.frames[0]

    @property
    def next_states(self) -> ByteArray:
        """The states in which the returns end, shaped like `states`."""
        return self.frames[1]


class TransitionReplay:
    """Frames, the transitions between them, and their priorities, in step with each other.

    Args:
        frames: store of the observations.
        accumulator: turns steps into transitions.
        priorities: selects transitions to draw; its capacity is that of the frames.
    """

    def __init__(
        self, frames: FrameStore, accumulator: Accumulator, priorities: Priorities
    ) -> None:
        if accumulator.lanes != frames.lanes:
            raise require.refuse("accumulator", f"have {frames.lanes} lanes", accumulator.lanes)
        if priorities.capacity != frames.capacity:
            rule = f"have capacity {frames.capacity}"
            raise require.refuse("priorities", rule, priorities.capacity)
        if frames.length < frames.stack + accumulator.num_steps:
            rule = f"hold at least {frames.stack + accumulator.num_steps} frames per lane"
            raise require.refuse("frames", rule, frames.length)
        self._frames = frames
        self._accumulator = accumulator
        self._priorities = priorities
        self._actions = np.zeros(frames.capacity, dtype=np.int64)
        self._returns = np.zeros(frames.capacity, dtype=np.float32)
        self._discounts = np.zeros(frames.capacity, dtype=np.float32)
        self._next_slots = np.zeros(frames.capacity, dtype=np.int64)
        self._buffer: ByteArray | None = None

    def __len__(self) -> int:
        return len(self._priorities)

    def begin(self, lane: int, frame: ByteArray) -> None:
        """Start an episode of a lane with its first frame."""
        self._accumulator.require_between_episodes(lane)
        self._accumulator.begin(lane, self._write(lane, frame, starts_episode=True))

    def step(
        self,
        lane: int,
        action: int,
        reward: float,
        frame: ByteArray,
        *,
        terminated: bool = False,
        truncated: bool = False,
        life_lost: bool = False,
    ) -> None:
        """Remember one step of a lane: see `Accumulator.step`.

        Args:
            lane: number of the environment.
            action: the executed action.
            reward: the reward to learn from.
            frame: the frame after the step, even if it ended the episode.
            terminated: the game is over.
            truncated: the game was cut off.
            life_lost: later rewards do not count, but episode and stacks continue.
        """
        self._accumulator.require_inside_episode(lane)
        if not np.isfinite(reward):
            raise require.refuse("reward", "be finite", reward)
        next_slot = self._write(lane, frame, starts_episode=False)
        for transition in self._accumulator.step(
            lane,
            action,
            reward,
            next_slot,
            terminated=terminated,
            truncated=truncated,
            life_lost=life_lost,
        ):
            slot = transition.slot
            self._actions[slot] = transition.action
            self._returns[slot] = transition.n_step_return
            self._discounts[slot] = transition.discount
            self._next_slots[slot] = transition.next_slot
            self._priorities.add(slot)

    def sample(self, batch_size: int) -> Batch:
        """Draw transitions; the array of frames is reused for the next batch of this size."""
        slots, _, weights = self._priorities.sample(batch_size)
        if self._buffer is None or self._buffer.shape[1] != batch_size:
            self._buffer = np.stack([self._frames.new_batch(batch_size) for _ in range(2)])
        self._frames.gather(slots, self._buffer[0])
        self._frames.gather(self._next_slots[slots], self._buffer[1])
        return Batch(
            self._buffer,
            self._actions[slots],
            self._returns[slots],
            self._discounts[slots],
            weights,
            slots,
        )

    def update_priorities(self, slots: IntArray, losses: FloatArray) -> None:
        """Set the priorities of a batch from its unweighted losses."""
        self._priorities.update(slots, losses)

    def state_dict(self) -> dict[str, Any]:
        """Everything that later batches depend on; the largest arrays are not copies."""
        return {
            "frames": self._frames.state_dict(),
            "accumulator": self._accumulator.state_dict(),
            "priorities": self._priorities.state_dict(),
            "transitions": self._transitions(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of a replay of the same sizes."""
        for name, array in self._transitions().items():
            if state["transitions"][name].shape != array.shape:
                rule = f"hold {name} of shape {array.shape}"
                raise require.refuse("state", rule, state["transitions"][name].shape)
        self._frames.load_state_dict(state["frames"])
        self._accumulator.load_state_dict(state["accumulator"])
        self._priorities.load_state_dict(state["priorities"])
        for name, array in self._transitions().items():
            array[...] = state["transitions"][name]

    def _write(self, lane: int, frame: ByteArray, *, starts_episode: bool) -> int:
        expiring = self._frames.expiring(lane)
        slot = self._frames.append(lane, frame, starts_episode=starts_episode)
        for lost in expiring:
            self._priorities.remove(lost)
        return slot

    def _transitions(self) -> dict[str, NDArray[Any]]:
        return {
            "actions": self._actions,
            "returns": self._returns,
            "discounts": self._discounts,
            "next_slots": self._next_slots,
        }
