"""How fast is a run, and how often is it saved? Never for more than a share of its time."""

import time
from collections import deque
from collections.abc import Callable

from ezgreedy import requirements as require

_SPEED_SECONDS = 30.0
_STANDSTILL_SECONDS = 15.0


class RecentSpeed:
    """Frames per second over the last half minute; 0 while nothing moves.

    Args:
        frames: frames played so far.
        now: the time in seconds.
    """

    def __init__(self, frames: int, now: float) -> None:
        self._seen = deque([(now, frames)])
        self._moved = now
        self._stands_still = False

    def see(self, frames: int, now: float) -> float:
        """The speed, after this many frames at this time."""
        if frames > self._seen[-1][1]:
            self._moved = now
            if self._stands_still:
                self._stands_still = False
                self._seen.clear()  # what was before says nothing about the speed from now on
        elif now - self._moved >= _STANDSTILL_SECONDS:
            self._stands_still = True
        self._seen.append((now, frames))
        while len(self._seen) > 2 and self._seen[0][0] < now - _SPEED_SECONDS:
            self._seen.popleft()
        begun, before = self._seen[0]
        if self._stands_still or not now > begun:
            return 0.0
        return (frames - before) / (now - begun)


class SavingPace:
    """Says when a checkpoint is due, by the clock and by what checkpoints cost.

    A checkpoint is due once `least_seconds` have passed since the last one, if with it the time
    spent saving would stay below `largest_share` of all time. It is expected to take as long as the
    last one, and the first to take no time.

        pace = SavingPace(60.0, 0.02)
        ...
        if pace.is_due:
            pace.save(write)

    Args:
        least_seconds: least time from the end of a checkpoint to the start of the next.
        largest_share: bound on the share of time spent saving; 1 for no limit, 0 for never.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        least_seconds: float,
        largest_share: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._least_seconds = require.number("least_seconds", least_seconds, 0.0)
        self._largest_share = require.number("largest_share", largest_share, 0.0, 1.0)
        self._clock = clock
        self._begun = self._last = clock()
        self._spent = self._last_cost = 0.0

    @property
    def is_due(self) -> bool:
        """Whether to save now."""
        now = self._clock()
        if now - self._last < self._least_seconds:
            return False
        cost = self._last_cost
        return self._spent + cost < self._largest_share * (now - self._begun + cost)

    def save(self, write: Callable[[], None]) -> None:
        """Save by calling a function, and measure how long it takes."""
        begun = self._clock()
        write()
        self._last = self._clock()
        self._last_cost = self._last - begun
        self._spent += self._last_cost
