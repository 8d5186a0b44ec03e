"""The next steps of every lane, drawn many at a time.

Every draw is a hash of (seed, lane, step, purpose), so what a lane would do on its coming steps if
it were free to decide is already fixed. Computing whole blocks of it spreads NumPy's cost per call
over many steps. A block is only a cache of pure functions: dropping it changes nothing but speed.
"""

from typing import NamedTuple

import numpy as np

from ezgreedy.exploration.choice import Choice
from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.exploration.schedules import Epsilon, Linear, epsilon_at
from ezgreedy.exploration.streams import Purpose, Streams
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

# A block beyond this size would leave the processor's cache; more rows would gain nothing.
_LARGEST_BLOCK = 2**16
_MOST_ROWS = 64


class Beginnings(NamedTuple):
    """The lanes whose coin says explore on a step, with the option each would begin.

    `lanes`, `actions` and `further_plays` (durations less one) have one entry for each such lane;
    `epsilon` is the ε of the step, broadcastable to [lanes]. Lanes inside an option ignore this.
    """

    epsilon: FloatArray
    lanes: IntArray
    actions: IntArray
    further_plays: IntArray


class Lookahead:
    """Blocks of draws, and where in them the lanes are.

    Args:
        choice: the distribution of exploratory actions.
        durations: the law of the number of plays.
        steps: absolute step counts to begin from, [lanes].
    """

    def __init__(self, choice: Choice, durations: DurationLaw, steps: IntArray) -> None:
        self._choice = choice
        self._durations = durations
        self.forget(steps)

    @property
    def steps(self) -> IntArray:
        """Absolute step counts, [lanes]."""
        return self._block_start + self._row

    def forget(self, steps: IntArray) -> None:
        """Drops the draws ahead and continues from these step counts."""
        self._block_start = steps
        self._block: list[Beginnings] = []
        self._row = 0

    def current(self, streams: Streams, epsilon: Epsilon) -> Beginnings:
        """The options that lanes would begin on their current step."""
        if self._row == len(self._block):
            self._draw_block(streams, epsilon)
        return self._block[self._row]

    def advance(self, active: BoolArray | None) -> None:
        """Moves the active lanes (all if None) on by one step."""
        if active is None or active.all():
            self._row += 1
        else:
            self.forget(self.steps + active)

    def _draw_block(self, streams: Streams, epsilon: Epsilon) -> None:
        start = self.steps
        num_lanes = len(start)
        # Twice as far each time: a policy whose ε is reset on every step never looks far ahead.
        most = max(1, min(_MOST_ROWS, _LARGEST_BLOCK // num_lanes))
        if callable(epsilon) and not isinstance(epsilon, Linear):
            most = 1  # a user's function may read outside state: it is called when its step comes
        num_rows = min(max(1, 2 * len(self._block)), most)
        # One column serves all lanes while they are in step.
        columns = start[:1] if (start == start[0]).all() else start
        steps = columns + np.arange(num_rows)[:, None]
        epsilons = epsilon_at(epsilon, steps)
        words = np.empty(0, dtype=np.uint64)
        positions = np.empty(0, dtype=np.int64)
        if epsilons.any():  # nothing is drawn when ε = 0
            words = streams.words(steps)
            positions = np.flatnonzero(streams.heads(words, epsilons))
            words = words.reshape(-1)[positions]
        rows, lanes = np.divmod(positions, num_lanes)
        actions = self._choice.pick(streams.uniforms(words, Purpose.ACTION))
        further_plays = np.zeros(len(lanes), dtype=np.int64)
        if self._durations.cap > 1:
            further_plays = self._durations.quantile(streams.uniforms(words, Purpose.DURATION)) - 1
        bounds = np.searchsorted(rows, np.arange(num_rows + 1)).tolist()
        self._block = [
            Beginnings(
                epsilons if epsilons.ndim < 2 else epsilons[row],
                lanes[bounds[row] : bounds[row + 1]],
                actions[bounds[row] : bounds[row + 1]],
                further_plays[bounds[row] : bounds[row + 1]],
            )
            for row in range(num_rows)
        ]
        self._block_start, self._row = start, 0
