"""What passes from a replay of sequences to a learner: windows of episodes, padded to one shape.

A window is a prefix, which only warms up recurrent states, followed by the trained steps. Prefixes
end, and trained steps begin, at the same position in every row; short prefixes are padded before
their first step and short windows after their last. No window crosses the end of an episode.
Padded places are never read.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

Float32Array = NDArray[np.float32]
NO_ACTION = -1  # stands for the action before the first of an episode


class SequenceBatch(NamedTuple):
    """Windows of one batch, each row a window; `steps` is the longest prefix + trained steps."""

    # Bytes, codes or float32 vectors, [batch, steps + 1, ...]; a tensor if the learner computes on
    # another device.
    observations: Any
    actions: IntArray  # [batch, steps]
    rewards: Float32Array  # after those actions, to learn from, [batch, steps]
    previous_action: IntArray  # before the first observation used; −1 if there was none, [batch]
    previous_reward: Float32Array  # at the same time; 0 if there was none, [batch]
    # The state before the first observation used is consumed, [batch, hidden], or with one state
    # for each head [batch, heads, hidden].
    state_h: Float32Array
    state_c: Float32Array
    prefix_lengths: IntArray  # [batch]
    lengths: IntArray  # trained steps, at least 1, [batch]
    terminated: BoolArray  # whether the last trained step ended the game, [batch]
    weights: FloatArray  # weight of each window's loss, [batch]
    masks: NDArray[np.uint8]  # bit k: whether head k learns from the step, [batch, steps]
    behaviour_probabilities: Float32Array  # of those actions when chosen, [batch, steps]
    slots: IntArray  # [batch]
    generations: IntArray  # [batch]
    # The rewards that the actor's network saw, if they differ from `rewards`; [batch, steps].
    seen_rewards: Float32Array | None = None

    @property
    def inputs(self) -> Float32Array:
        """The rewards that networks see, [batch, steps]."""
        return self.rewards if self.seen_rewards is None else self.seen_rewards

    def is_trained(self, burn_in: int) -> BoolArray:
        """Which steps are learned from, [batch, steps]."""
        positions = np.arange(self.actions.shape[1]) - burn_in
        return (positions >= 0) & (positions < self.lengths[:, None])

    def is_used(self, burn_in: int) -> BoolArray:
        """Which steps are learned from or warmed up with, [batch, steps]."""
        positions = np.arange(self.actions.shape[1]) - burn_in
        return (positions >= -self.prefix_lengths[:, None]) & (positions < self.lengths[:, None])


def check(batch: SequenceBatch, *, burn_in: int, length: int, num_actions: int) -> None:
    """Refuse a batch that is not made of windows of this shape.

    Args:
        batch: the batch; places that are not used may hold anything.
        burn_in: length of the longest prefix.
        length: the most trained steps.
        num_actions: actions are ints in [0, num_actions).
    """
    size, steps = len(batch.actions), burn_in + length
    _require_shapes(batch, size, steps)
    _require_range("prefix_lengths", batch.prefix_lengths, 0, burn_in)
    _require_range("lengths", batch.lengths, 1, length)
    _require_range("previous_action", batch.previous_action, NO_ACTION, num_actions - 1)
    _require_range("actions", batch.actions[batch.is_used(burn_in)], 0, num_actions - 1)


def _require_shapes(batch: SequenceBatch, size: int, steps: int) -> None:
    if batch.observations.shape[:2] != (size, steps + 1):
        rule = f"have shape [{size}, {steps + 1}, ...]"
        raise require.refuse("observations", rule, batch.observations.shape)
    each_step = ("actions", "rewards", "inputs", "masks", "behaviour_probabilities")
    each_row = ("previous_action", "previous_reward", "prefix_lengths", "lengths", "terminated")
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(each_step, (size, steps))
    shapes |= dict.fromkeys((*each_row, "weights"), (size,))
    for name, shape in shapes.items():
        received = getattr(batch, name).shape
        if received != shape:
            raise require.refuse(
                "seen_rewards" if name == "inputs" else name, f"have shape {shape}", received
            )
    for name in ("state_h", "state_c"):
        if len(getattr(batch, name)) != size:
            raise require.refuse(name, f"hold {size} rows", len(getattr(batch, name)))


def _require_range(name: str, values: IntArray, least: int, most: int) -> None:
    if values.size and not (least <= values.min() and values.max() <= most):
        outside = values[(values < least) | (values > most)][0]
        raise require.refuse(name, f"lie in [{least}, {most}]", int(outside))
