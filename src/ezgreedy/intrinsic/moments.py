"""Mean and variance of a stream that never ends, batch by batch."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require


class RunningMoments:
    """Mean and variance of all numbers seen so far, each counted once.

    Batches are merged with what came before as pairs of means and sums of squares, which loses
    nothing to cancellation however long the stream is.
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self._squares = 0.0  # Σ(x − mean)²

    @property
    def variance(self) -> float:
        """Of the numbers seen, divided by their count; 0 before the first."""
        return self._squares / self.count if self.count else 0.0

    @property
    def std(self) -> float:
        """The variance's root."""
        return math.sqrt(self.variance)

    def update(self, values: NDArray[Any]) -> None:
        """Count these numbers in; an empty batch changes nothing.

        Args:
            values: finite, of any shape.
        """
        values = np.asarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            raise require.refuse("values", "be finite", values)
        if not values.size:
            return
        total = self.count + values.size
        mean = float(values.mean())
        shift = mean - self.mean
        self._squares += float(np.square(values - mean).sum())
        self._squares += shift * shift * self.count * values.size / total
        self.mean += shift * values.size / total
        self.count = total

    def state_dict(self) -> dict[str, Any]:
        """Three numbers."""
        return {"count": self.count, "mean": self.mean, "squares": self._squares}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from other moments."""
        count = require.integer("count", state["count"], least=0)
        mean = require.number("mean", state["mean"], -math.inf)
        squares = require.number("squares", state["squares"], 0.0)
        self.count, self.mean, self._squares = count, mean, squares
