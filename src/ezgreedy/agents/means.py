"""Means since the last call of `take`."""

from typing import NamedTuple

from ezgreedy.exploration.explorer import Explorer


class Mean:
    """The running mean of a stream of numbers."""

    def __init__(self) -> None:
        self.count = 0
        self._total = 0.0

    def add(self, value: float) -> None:
        """Add one number."""
        self.count += 1
        self._total += value

    def take(self) -> float:
        """The mean since the last call."""
        mean = self._total / self.count
        self.count, self._total = 0, 0.0
        return mean

    def state(self) -> list[float]:
        """State as plain data."""
        return [self.count, self._total]

    def restore(self, state: list[float]) -> None:
        """Continue from `state`."""
        self.count, self._total = int(state[0]), float(state[1])


class Explored(NamedTuple):
    """Numbers of steps and exploratory steps over some time."""

    steps: int
    explored: int

    @property
    def share(self) -> float:
        """Exploratory steps over all steps; 0 if there were none."""
        return self.explored / max(self.steps, 1)

    def plus(self, other: "Explored") -> "Explored":
        """The sum of both."""
        return Explored(self.steps + other.steps, self.explored + other.explored)


class ExploredSince:
    """Steps and exploratory steps of an explorer since the last call of `take`.

    Args:
        explorer: the explorer whose counters are read.
    """

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._steps = self._explored = 0  # at the last `take`

    def take(self) -> Explored:
        """Steps and exploratory steps since the last call."""
        counters = self._explorer.counters
        taken = Explored(counters.steps - self._steps, counters.explored - self._explored)
        self._steps, self._explored = counters.steps, counters.explored
        return taken

    def state(self) -> list[int]:
        """State as plain data."""
        return [self._steps, self._explored]

    def restore(self, state: list[int]) -> None:
        """Continue from `state`."""
        self._steps, self._explored = int(state[0]), int(state[1])
