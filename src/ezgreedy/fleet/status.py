"""How is a fleet doing? Rates, lags and waiting times."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

SECONDS_BETWEEN_VIEWS = 2.0


@dataclass
class Gauges:
    """Counts over a period of time."""

    frames: int = 0
    updates: int = 0
    inserted: int = 0
    sampled: int = 0
    plays: int = 0
    lags: int = 0  # updates missing from the weights of each call, added up
    ages: float = 0.0  # age of the weights at each frame, added up
    largest_age: float = 0.0
    learner_waited: float = 0.0
    learner_worked: float = 0.0
    since: float = field(default_factory=time.monotonic)

    def view(self, now: float | None = None) -> dict[str, float]:
        """Rates and means over the period so far.

        Args:
            now: time on the clock of `since`; None for the usual clock.
        """
        seconds = max((time.monotonic() if now is None else now) - self.since, 1e-9)
        learning = self.learner_waited + self.learner_worked
        return {
            "frames_per_second": self.frames / seconds,
            "updates_per_second": self.updates / seconds,
            "parameter_lag": self.lags / max(self.plays, 1),
            "weight_age_in_frames": self.ages / max(self.frames, 1),
            "largest_weight_age_in_frames": self.largest_age,
            "learner_wait_share": self.learner_waited / learning if learning else 0.0,
        }


class Status:
    """Gauges since the last view and since the last report.

    Args:
        clock: returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.recent, self._since_report = Gauges(since=clock()), Gauges(since=clock())
        self._viewed = clock()

    def played(self, frames: int, lag: int, youngest: int = 0, oldest: int = 0) -> None:
        """Count one call to play.

        Args:
            frames: number of frames.
            lag: number of updates missing from its weights.
            youngest: age of the weights at its first step, in environment frames of a lane.
            oldest: the same at its last step.
        """
        for gauges in (self.recent, self._since_report):
            gauges.frames += frames
            gauges.plays += 1
            gauges.lags += lag
            gauges.ages += frames * (youngest + oldest) / 2
            gauges.largest_age = max(gauges.largest_age, oldest)

    def updated(self, waited: float, worked: float) -> None:
        """Count an update.

        Args:
            waited: seconds that the learner waited before it.
            worked: seconds that it took.
        """
        for gauges in (self.recent, self._since_report):
            gauges.updates += 1
            gauges.learner_waited += waited
            gauges.learner_worked += worked

    def take_view(self) -> dict[str, float]:
        """Rates and means since the last view; empty if that was a moment ago."""
        now = self._clock()
        if now - self._viewed < SECONDS_BETWEEN_VIEWS:
            return {}
        self._viewed = now
        gauges, self.recent = self.recent, Gauges(since=now)
        return gauges.view(now)

    def take_report(self) -> dict[str, float]:
        """Rates and means since the last report."""
        now = self._clock()
        gauges, self._since_report = self._since_report, Gauges(since=now)
        return gauges.view(now)
