"""Which transitions to learn from: more often those that were surprising when last seen.

Prioritised replay as in Rainbow: P(i) = (1 − η)·pᵢ^α/Σp^α + η/N with p the unweighted loss, drawn
with replacement, and importance weights (N·P(i))^−β divided by the largest of the batch. A new
transition gets the largest priority seen so far, so that it is soon drawn once, unless its loss is
given.
"""

from typing import Any, NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.replay.importance import ImportanceExponent
from ezgreedy.replay.sum_tree import SumTree
from ezgreedy.requirements import FloatArray, IntArray

LARGEST_LOSS = 100.0


class Sample(NamedTuple):
    """Slots to learn from, their probabilities and their weights; all [batch]."""

    slots: IntArray
    probabilities: FloatArray
    weights: FloatArray


class Priorities:
    """A changing set of slots, drawn in proportion to their priorities.

    Args:
        capacity: slots are ints in [0, capacity).
        exponent: α, applied once, when a loss becomes a priority. With 0 all are equally likely.
        uniform_share: η, the probability that a draw ignores priorities.
        importance_exponent: β. With β = 0 all weights are 1.
        bounds: least and largest loss; others are clipped to them.
        rng: random generator of the draws; its state is part of this object's.
    """

    def __init__(
        self,
        capacity: int,
        exponent: float = 0.5,
        uniform_share: float = 1e-3,
        importance_exponent: ImportanceExponent | None = None,
        bounds: tuple[float, float] = (0.0, LARGEST_LOSS),
        *,
        rng: np.random.Generator,
    ) -> None:
        self._tree = SumTree(capacity)
        self.capacity = self._tree.capacity
        self.exponent = require.number("exponent", exponent, 0.0)
        self.uniform_share = require.number("uniform_share", uniform_share, 0.0, 1.0)
        self.importance_exponent = importance_exponent or ImportanceExponent()
        least = require.number("bounds", bounds[0], 0.0)
        self.bounds = (least, require.number("bounds", bounds[1], least))
        self.largest_loss = 1.0
        self.num_added = 0
        self._rng = rng
        # The member slots, in no particular order, and the place of each slot (−1: not a member).
        self._members = np.zeros(self.capacity, dtype=np.int64)
        self._places = np.full(self.capacity, -1, dtype=np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, slot: int) -> bool:
        return bool(self._places[slot] >= 0)

    @property
    def total(self) -> float:
        """The sum of all priorities, with their exponent."""
        return self._tree.total

    @property
    def beta(self) -> float:
        """The importance exponent of the next sample."""
        return self.importance_exponent(self.num_added)

    def add(self, slot: int, loss: float | None = None) -> None:
        """Add a slot that is not a member, with its loss or else the largest one seen so far."""
        slot = require.integer("slot", slot, 0, self.capacity - 1)
        if slot in self:
            raise require.refuse("slot", "be removed before it is added again", slot)
        if loss is not None:
            loss = float(np.clip(require.number("loss", loss, 0.0), *self.bounds))
            self.largest_loss = max(self.largest_loss, loss)
        self._members[self._size] = slot
        self._places[slot] = self._size
        self._size += 1
        self.num_added += 1
        known = self.largest_loss if loss is None else loss
        self._tree.set(np.array([slot]), np.array([known**self.exponent]))

    def remove(self, slot: int) -> None:
        """Remove a slot; does nothing if it is not a member."""
        slot = require.integer("slot", slot, 0, self.capacity - 1)
        place = self._places[slot]
        if place < 0:
            return
        self._size -= 1
        moved = self._members[self._size]
        self._members[place] = moved
        self._places[moved] = place
        self._places[slot] = -1
        self._tree.set(np.array([slot]), np.zeros(1))

    def update(self, slots: IntArray, losses: FloatArray) -> None:
        """Set priorities from losses; slots removed since they were drawn stay out.

        Args:
            slots: slots as sampled, [batch].
            losses: loss of each transition, not multiplied by its importance weight, [batch].
        """
        slots = require.actions("slots", slots, np.size(slots), self.capacity)
        losses = np.asarray(losses, dtype=np.float64)
        if losses.shape != slots.shape:
            raise require.refuse("losses", f"have shape {slots.shape}", losses.shape)
        if not np.isfinite(losses).all():
            raise require.refuse("losses", "be finite", losses.tolist())
        if not len(losses):
            return
        losses = losses.clip(*self.bounds)
        self.largest_loss = max(self.largest_loss, float(losses.max()))
        stays = self._places[slots] >= 0
        self._tree.set(slots[stays], losses[stays] ** self.exponent)

    def probabilities(self, slots: IntArray) -> FloatArray:
        """P(i) of member slots, [batch]."""
        even = 1.0 / self._size
        if self._tree.total <= 0.0:
            return np.full(len(slots), even)
        proportional = self._tree.get(slots) / self._tree.total
        return (1.0 - self.uniform_share) * proportional + self.uniform_share * even

    def sample(self, batch_size: int) -> Sample:
        """Draw slots with replacement; each draw always uses three uniforms.

        Args:
            batch_size: number of draws.
        """
        batch_size = require.integer("batch_size", batch_size, least=1)
        if self._size == 0:
            raise ValueError("slots must be added before they can be sampled")
        coins, targets, places = self._rng.random((3, batch_size))
        slots = self._members[(places * self._size).astype(np.int64)]
        is_proportional = coins >= self.uniform_share
        if self._tree.total > 0.0:
            slots[is_proportional] = self._tree.sample(targets[is_proportional])
        probabilities = self.probabilities(slots)
        weights = (self._size * probabilities) ** -self.beta
        return Sample(slots, probabilities, weights / weights.max())

    def check_valid(self) -> None:
        """Raise unless members, places and priorities agree."""
        self._tree.check_valid()
        members = self._members[: self._size]
        if not (self._places[members] == np.arange(self._size)).all():
            raise ValueError("members and places disagree")
        outside = self._places < 0
        if outside.sum() != self.capacity - self._size or self._tree.leaves[outside].any():
            raise ValueError("a slot that is out has a place or a priority")

    def state_dict(self) -> dict[str, Any]:
        """Priorities, members in their order, counters and the generator's state."""
        return {
            "tree": self._tree.state_dict(),
            "members": self._members[: self._size].copy(),
            "largest_loss": self.largest_loss,
            "num_added": self.num_added,
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of an object with the same capacity."""
        self._tree.load_state_dict(state["tree"])
        members = np.asarray(state["members"], dtype=np.int64)
        self._size = len(members)
        self._members[: self._size] = members
        self._places[:] = -1
        self._places[members] = np.arange(self._size)
        self.largest_loss = float(state["largest_loss"])
        self.num_added = int(state["num_added"])
        self._rng.bit_generator.state = state["rng"]
        self.check_valid()
