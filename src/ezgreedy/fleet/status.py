"""How a fleet is doing, in numbers: who is fast, and who waits."""

import time
from dataclasses import dataclass, field

SECONDS_BETWEEN_VIEWS = 2.0


@dataclass
class Gauges:
    """What is counted over a stretch of time, and what is so at its end."""

    frames: int = 0
    updates: int = 0
    inserted: int = 0
    sampled: int = 0
    lags: list[int] = field(default_factory=list)  # updates that the weights of each stretch lacked
    learner_waited: float = 0.0
    learner_worked: float = 0.0
    since: float = field(default_factory=time.monotonic)

    def view(self) -> dict[str, float]:
        """Rates and means over the stretch so far."""
        seconds = max(time.monotonic() - self.since, 1e-9)
        learning = self.learner_waited + self.learner_worked
        return {
            "frames_per_second": self.frames / seconds,
            "updates_per_second": self.updates / seconds,
            "parameter_lag": sum(self.lags) / max(len(self.lags), 1),
            "learner_wait_share": self.learner_waited / learning if learning else 0.0,
        }
