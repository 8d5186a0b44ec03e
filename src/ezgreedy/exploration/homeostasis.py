"""Switching at a target rate, whatever the scale of the signal that says when.

The homeostat of Pislar et al. (*When should agents explore?*, 2021): a signal is compared with its
own recent mean and spread, and a step is chosen with a probability that grows with the signal. As
published, it misses its rate where the signal has a long tail: a probability cannot exceed 1, but
the average it is divided by counts large signals in full, and so all the others get too little
(rate 0.01, gamma-distributed signal of shape 0.3: 0.0029). Here no signal counts for more than
certainty, which holds the rate for any signal once the averages have settled, after a few hundred
switches.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.requirements import BoolArray, FloatArray

MEMORY = 100.0  # the averages reach back over this many switches at the target rate
LARGEST_EXPONENT = 700.0  # beyond it, floats overflow
LEAST_SPREAD = 1e-150  # squares below it underflow, as differences from the mean then do
_AVERAGES = ("counts", "means", "variances", "exponentials")


class Homeostat:
    """Turns a signal into probabilities whose average is a given rate.

    Every lane has averages of its own. For each value x of the signal, with τ the smaller of the
    number of values so far and 100/rate, and x̄, v and ē beginning at 0, 1 and 1:

        x̄ ← x̄ + (x − x̄)/τ,   v ← v + ((x − x̄)² − v)/τ,   e = exp((x − x̄)/√v),
        ē ← ē + (min(e, ē/rate) − ē)/τ,    probability = min(1, rate·e/ē)

    Args:
        lanes: number of environments stepped together.
        rate: the target rate, in (0, 1).
        as_published: whether large signals count in full: e in place of min(e, ē/rate).
    """

    def __init__(self, lanes: int = 1, *, rate: float, as_published: bool = False) -> None:
        self.lanes = require.integer("lanes", lanes, least=1)
        self.rate = require.number("rate", rate, 0.0, 1.0)
        if self.rate in (0.0, 1.0):
            raise require.refuse("rate", "lie strictly between 0 and 1", rate)
        self.as_published = require.flag("as_published", as_published)
        # One row each for counts, means, variances and exponentials.
        self._averages: FloatArray = np.repeat([[0.0], [0.0], [1.0], [1.0]], self.lanes, axis=1)
        self._work: FloatArray = np.empty((3, self.lanes))
        # Operations on a few hundred numbers are quicker with arrays than with Python's numbers.
        self._rates, self._spreads, self._shares = (
            np.full(self.lanes, number)
            for number in (self.rate, LEAST_SPREAD, 1.0 / (MEMORY / self.rate))
        )
        self._memory = MEMORY / self.rate
        # |x − x̄| is at most √(τv), since v counts x, too.
        self._may_overflow = self._memory > LARGEST_EXPONENT**2
        self._is_settled = False  # every lane has seen as many values as the averages reach back

    def __call__(self, signal: FloatArray, known: BoolArray | None = None) -> FloatArray:
        """The probability of switching now, [lanes].

        Args:
            signal: finite numbers, [lanes].
            known: lanes with a signal; the others keep their averages and get the rate itself.
        """
        if np.shape(signal) != (self.lanes,):
            raise require.refuse("signal", f"have shape {(self.lanes,)}", np.shape(signal))
        finite = np.isfinite(signal)
        if known is not None:
            known = require.mask("known", known, (self.lanes,))
            finite |= ~known
        if np.count_nonzero(finite) < self.lanes:
            raise require.refuse("signal", "be finite", signal[~finite].tolist())
        chances = self.unbounded(signal, known)
        return np.minimum(chances, 1.0, out=chances)

    def unbounded(self, signal: FloatArray, known: BoolArray | None) -> FloatArray:
        """The probabilities before they are bounded by 1, without checks of the arguments."""
        if known is None:
            return self._switches(signal, self._averages, self._work)
        lanes = known.nonzero()[0]
        averages = self._averages[:, lanes]
        chances = self._rates.copy()
        chances[lanes] = self._switches(signal[lanes], averages, self._work[:, : len(lanes)])
        self._averages[:, lanes] = averages
        return chances

    def _switches(self, x: FloatArray, averages: FloatArray, work: FloatArray) -> FloatArray:
        """Probabilities of switching; updates the averages in place, with rows to work in."""
        counts, means, variances, exponentials = averages
        share, gap, change = work
        rates, spreads = self._rates[: len(x)], self._spreads[: len(x)]
        if self._is_settled:
            share = self._shares[: len(x)]
        else:
            self._count(counts, share)
        np.subtract(x, means, out=gap)
        gap *= share
        means += gap
        np.subtract(x, means, out=gap)
        np.multiply(gap, gap, out=change)
        change -= variances
        change *= share
        variances += change
        # A signal that has never varied is as large as it always was.
        np.sqrt(variances, out=change)
        np.maximum(change, spreads, out=change)
        e = np.divide(gap, change)
        if self._may_overflow:
            np.minimum(e, LARGEST_EXPONENT, out=e)
        np.exp(e, out=e)
        if self.as_published:
            change[:] = e
        else:
            np.divide(exponentials, rates, out=change)
            np.minimum(e, change, out=change)
        change -= exponentials
        change *= share
        exponentials += change
        e *= rates
        e /= exponentials
        return e

    def _count(self, counts: FloatArray, share: FloatArray) -> None:
        """Counts one more value of these lanes; writes 1/τ."""
        counts += 1.0
        np.minimum(counts, self._memory, out=counts)
        np.divide(1.0, counts, out=share)
        all_counts = self._averages[0]
        self._is_settled = bool(all_counts.min() >= self._memory)

    def state_dict(self) -> dict[str, Any]:
        """The averages, as plain JSON-able data."""
        return {
            "rate": self.rate,
            "as_published": self.as_published,
            **{name: row.tolist() for name, row in zip(_AVERAGES, self._averages, strict=True)},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state with the same rate and number of lanes."""
        for name in ("rate", "as_published"):
            if state[name] != getattr(self, name):
                rule = f"equal {getattr(self, name)!r}"
                raise require.refuse(f"state[{name!r}]", rule, state[name])
        arrays = []
        for name in _AVERAGES:
            array = np.array(state[name], dtype=np.float64)
            if array.shape != (self.lanes,) or not np.isfinite(array).all():
                raise require.refuse(f"state[{name!r}]", f"be {self.lanes} numbers", state[name])
            arrays.append(array)
        self._averages = np.stack(arrays)
        self._is_settled = False
