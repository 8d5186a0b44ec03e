"""Means since the last call of `take`."""

from typing import NamedTuple

from ezgreedy.exploration.explorer import Explorer
from ezgreedy.exploration.schedules import epsilon_at


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
    """Numbers of steps, exploratory steps, options begun and ended by rules over some time."""

    steps: int
    explored: int
    started: int = 0
    stopped: int = 0

    @property
    def share(self) -> float:
        """Exploratory steps over all steps; 0 if there were none."""
        return self.explored / max(self.steps, 1)

    def plus(self, other: "Explored") -> "Explored":
        """The sum of both."""
        return Explored(*map(sum, zip(self, other, strict=True)))

    def measured(self) -> dict[str, float]:
        """How much was explored, as numbers of a report."""
        numbers = {"explored_share": self.share, "options_started": float(self.started)}
        if self.started:
            numbers["mean_option_length"] = self.explored / self.started
        if self.stopped:
            numbers["options_stopped"] = float(self.stopped)
        return numbers


class ExploredSince:
    """What an explorer has done since the last call of `take`.

    Args:
        explorer: the explorer whose counters are read.
    """

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._before = Explored(0, 0)  # the counters at the last `take`

    def take(self) -> Explored:
        """What has happened since the last call."""
        now, before = self._now(), self._before
        self._before = now
        return Explored(*(late - early for late, early in zip(now, before, strict=True)))

    def measurements(self) -> dict[str, float]:
        """What to report since the last call, and ε now, as a mean over lanes."""
        epsilon = epsilon_at(self._explorer.epsilon, self._explorer.steps)
        return {"epsilon": float(epsilon.mean()), **self.take().measured()}

    def state(self) -> list[int]:
        """State as plain data."""
        return list(self._before)

    def restore(self, state: list[int]) -> None:
        """Continue from `state`, which earlier versions made without the last counts.

        The explorer must have been restored before.
        """
        missing = self._now()[len(state) :]
        self._before = Explored(*map(int, [*state, *missing]))

    def _now(self) -> Explored:
        counters = self._explorer.counters
        return Explored(counters.steps, counters.explored, counters.started, counters.cut_by_caller)
