"""How to draw one of finitely many outcomes: uniformly or by weight, among the legal ones.

The paper draws exploratory actions uniformly over all actions, the greedy one included. Weights are
held as integers, so that their running sums are exact in any order of addition and every backend
makes the same pick from the same uniform.
"""

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

_WEIGHT_UNITS = 2**40


class Choice:
    """A distribution over 0 … size − 1 (actions, or options) that a mask can narrow.

    Args:
        size: number of outcomes.
        weights: one number for each, proportional to its probability; None for uniform.
        name: name of the weights in error messages.
    """

    def __init__(self, size: int, weights: object = None, name: str = "action_weights") -> None:
        self.size = size
        self.weights: FloatArray | None = None
        self.units: IntArray = np.ones(size, dtype=np.int64)
        if weights is not None:
            self.weights = require.probabilities(name, weights, size)
            units = np.rint(self.weights / self.weights.sum() * _WEIGHT_UNITS).astype(np.int64)
            # A weight too small to count must not become impossible.
            self.units = np.where(self.weights > 0, np.maximum(units, 1), 0)
        self.cumulative: IntArray = np.cumsum(self.units)
        self.total = int(self.cumulative[-1])

    def pick(self, uniforms: FloatArray) -> IntArray:
        """The outcome that each uniform draws when all are legal."""
        if self.weights is None:
            return (uniforms * self.size).astype(np.int64)
        return np.searchsorted(self.cumulative, uniforms * self.total, side="right")

    def pick_legal(self, uniforms: FloatArray, legal: BoolArray) -> IntArray:
        """The outcome each uniform draws among its row's legal ones; `pick` if all are legal."""
        cumulative = np.cumsum(self.units * legal, axis=1)
        targets = uniforms * cumulative[:, -1]
        return np.count_nonzero(cumulative <= targets[:, None], axis=1)

    def chance(self, picks: IntArray, legal: BoolArray | None = None) -> FloatArray:
        """The probability of each of these picks."""
        if legal is None:
            return self.units[picks] / self.total
        units = self.units * legal
        totals = np.maximum(units.sum(axis=1), 1)
        return units[np.arange(len(picks)), picks] / totals

    def check_legal(self, legal: BoolArray, lanes: IntArray) -> None:
        """Refuses rows of these lanes in which no action could be drawn."""
        stuck = lanes[~(legal[lanes] & (self.units > 0)).any(axis=1)]
        if stuck.size:
            rule = "leave every active lane an action" + (
                "" if self.weights is None else " of positive weight"
            )
            raise require.refuse("legal", rule, require.Described(f"none at position {stuck[0]}"))
