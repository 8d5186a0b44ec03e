"""Mean and variance of a stream that never ends, batch by batch."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require


class RunningMoments:
    """Mean and variance of all numbers seen so far, or of those that are not yet forgotten.

    Batches are merged with earlier ones as pairs of means and sums of squares, which loses nothing
    to cancellation however long the stream is.

    Args:
        memory: number of batches n after which a batch weighs 1/e of what it did: every new batch
            takes the share 1/n from the weight of all earlier ones. None to count all numbers
            alike.
    """

    def __init__(self, memory: int | None = None) -> None:
        if memory is not None:
            require.integer("memory", memory, least=1)
        self.memory = memory
        self.count: float = 0  # weight of the numbers seen; an int if nothing is forgotten
        self.mean = 0.0
        self._squares = 0.0  # Σ(x − mean)², weighted

    @property
    def variance(self) -> float:
        """Variance of the numbers seen, divided by their weight; 0 before the first."""
        return self._squares / self.count if self.count else 0.0

    @property
    def std(self) -> float:
        """Standard deviation of the numbers seen."""
        return math.sqrt(self.variance)

    def update(self, values: NDArray[Any]) -> None:
        """Include these numbers; an empty batch changes nothing.

        Args:
            values: finite numbers, in any shape.
        """
        values = np.asarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            raise require.refuse("values", "be finite", values)
        if not values.size:
            return
        if self.memory is not None:
            kept = 1.0 - 1.0 / self.memory
            self.count, self._squares = kept * self.count, kept * self._squares
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
        count: float
        if self.memory is None:
            count = require.integer("count", state["count"], least=0)
        else:
            count = require.number("count", state["count"], 0.0)
        mean = require.number("mean", state["mean"], -math.inf)
        squares = require.number("squares", state["squares"], 0.0)
        self.count, self.mean, self._squares = count, mean, squares
