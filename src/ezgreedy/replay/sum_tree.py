"""Sampling in proportion to weights that change all the time: a binary tree of partial sums.

Leaves hold the weights, every other node the sum of its two children, in float64. A write adds up
its ancestors again instead of passing a difference upwards, so sums never drift: they are a
function of the leaves only, and need no rebuilding.
"""

from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.compilation import jit
from ezgreedy.requirements import FloatArray, IntArray


class SumTree:
    """`capacity` non-negative weights, all 0 at first; writing and sampling take O(log capacity).

    Args:
        capacity: number of weights.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = require.integer("capacity", capacity, least=1)
        self._first_leaf = 1 << (self.capacity - 1).bit_length()
        # The children of node k are 2k and 2k + 1; node 1 is the root, node 0 is not used.
        self._nodes = np.zeros(2 * self._first_leaf)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self._nodes[1])

    @property
    def leaves(self) -> FloatArray:
        """All weights, as a view; do not write to it, [capacity]."""
        view = self._nodes[self._first_leaf : self._first_leaf + self.capacity]
        view.flags.writeable = False
        return view

    def get(self, indices: IntArray) -> FloatArray:
        """The weights at some indices, [batch]."""
        return self.leaves[indices]

    def set(self, indices: IntArray, weights: FloatArray) -> None:
        """Write weights; of several for one index, the last one wins.

        Args:
            indices: indices in [0, capacity), [batch].
            weights: finite, non-negative weights, [batch].
        """
        indices = require.actions("indices", indices, np.size(indices), self.capacity)
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != indices.shape:
            raise require.refuse("weights", f"have shape {indices.shape}", weights.shape)
        if not np.isfinite(weights).all() or (weights < 0.0).any():
            raise require.refuse("weights", "be finite and not negative", weights.tolist())
        _set(self._nodes, self._first_leaf, indices, weights)

    def find(self, targets: FloatArray) -> IntArray:
        """The index at which the running sum of weights first exceeds each target, [batch].

        An index with weight 0 is never found, wherever rounding puts a target; a target beyond the
        total finds the last index with a weight.
        """
        if self.total <= 0.0:
            raise ValueError("weights must not all be 0 when sampling from them")
        return _find(self._nodes, self._first_leaf, np.asarray(targets, dtype=np.float64))

    def sample(self, uniforms: FloatArray) -> IntArray:
        """Indices drawn in proportion to their weights, one for each uniform in [0, 1), [batch]."""
        return self.find(np.asarray(uniforms, dtype=np.float64) * self.total)

    def check_valid(self) -> None:
        """Raise unless weights are valid and every node is exactly the sum of its children."""
        leaves = self._nodes[self._first_leaf :]
        if not np.isfinite(leaves).all() or (leaves < 0.0).any() or leaves[self.capacity :].any():
            raise ValueError("the tree holds something that is not a weight")
        children = self._nodes[2:].reshape(-1, 2)
        wrong = np.flatnonzero(self._nodes[1 : self._first_leaf] != children.sum(axis=1))
        if len(wrong) and self._first_leaf > 1:
            raise ValueError(f"node {wrong[0] + 1} is not the sum of its children")

    def state_dict(self) -> dict[str, Any]:
        """The weights; the sums follow from them."""
        return {"leaves": self.leaves.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the weights of a tree with the same capacity."""
        leaves = np.asarray(state["leaves"], dtype=np.float64)
        if leaves.shape != (self.capacity,):
            raise require.refuse("state", f"hold {self.capacity} leaves", leaves.shape)
        self._nodes[self._first_leaf : self._first_leaf + self.capacity] = leaves
        _add_up(self._nodes, self._first_leaf)
        self.check_valid()


@jit
def _set(nodes: FloatArray, first_leaf: int, indices: IntArray, weights: FloatArray) -> None:
    for position in range(len(indices)):
        node = first_leaf + indices[position]
        nodes[node] = weights[position]
        node >>= 1
        while node >= 1:
            nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
            node >>= 1


@jit
def _find(nodes: FloatArray, first_leaf: int, targets: FloatArray) -> IntArray:
    found = np.empty(len(targets), dtype=np.int64)
    for position in range(len(targets)):
        target = targets[position]
        node = 1
        while node < first_leaf:
            node *= 2
            # Into a subtree without weight only if there is no other: its leaves are all 0.
            if target >= nodes[node] and nodes[node + 1] > 0.0:
                target -= nodes[node]
                node += 1
        found[position] = node - first_leaf
    return found


@jit
def _add_up(nodes: FloatArray, first_leaf: int) -> None:
    for node in range(first_leaf - 1, 0, -1):
        nodes[node] = nodes[2 * node] + nodes[2 * node + 1]
