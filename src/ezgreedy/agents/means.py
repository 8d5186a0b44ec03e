"""Means of what happened since somebody last asked."""


class Mean:
    """The mean of numbers that come one by one."""

    def __init__(self) -> None:
        self.count = 0
        self._total = 0.0

    def add(self, value: float) -> None:
        """One more."""
        self.count += 1
        self._total += value

    def take(self) -> float:
        """The mean since the last time it was taken."""
        mean = self._total / self.count
        self.count, self._total = 0, 0.0
        return mean

    def state(self) -> list[float]:
        """Plain data."""
        return [self.count, self._total]

    def restore(self, state: list[float]) -> None:
        """Continue from `state`."""
        self.count, self._total = int(state[0]), float(state[1])
