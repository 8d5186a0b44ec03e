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
        self._counts: FloatArray = np.zeros(self.lanes)
        self._means: FloatArray = np.zeros(self.lanes)
        self._variances: FloatArray = np.ones(self.lanes)
        self._exponentials: FloatArray = np.ones(self.lanes)

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
        x = signal if known is None else np.where(known, signal, 0.0)
        counts = self._counts + 1.0
        share = 1.0 / np.minimum(counts, MEMORY / self.rate)
        means = self._means + share * (x - self._means)
        variances = self._variances + share * ((x - means) ** 2 - self._variances)
        # A signal that has never varied is as large as it always was.
        spread = np.where(variances > 0.0, np.sqrt(variances), np.inf)
        e = np.exp(np.minimum((x - means) / spread, LARGEST_EXPONENT))
        counted = e if self.as_published else np.minimum(e, self._exponentials / self.rate)
        exponentials = self._exponentials + share * (counted - self._exponentials)
        chances = np.minimum(1.0, self.rate * e / exponentials)
        if known is None or np.count_nonzero(known) == self.lanes:
            self._counts, self._means = counts, means
            self._variances, self._exponentials = variances, exponentials
            return chances
        self._counts = np.where(known, counts, self._counts)
        self._means = np.where(known, means, self._means)
        self._variances = np.where(known, variances, self._variances)
        self._exponentials = np.where(known, exponentials, self._exponentials)
        return np.where(known, chances, self.rate)

    def state_dict(self) -> dict[str, Any]:
        """The averages, as plain JSON-able data."""
        return {
            "rate": self.rate,
            "as_published": self.as_published,
            "counts": self._counts.tolist(),
            "means": self._means.tolist(),
            "variances": self._variances.tolist(),
            "exponentials": self._exponentials.tolist(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state with the same rate and number of lanes."""
        for name in ("rate", "as_published"):
            if state[name] != getattr(self, name):
                rule = f"equal {getattr(self, name)!r}"
                raise require.refuse(f"state[{name!r}]", rule, state[name])
        arrays = []
        for name in ("counts", "means", "variances", "exponentials"):
            array = np.array(state[name], dtype=np.float64)
            if array.shape != (self.lanes,) or not np.isfinite(array).all():
                raise require.refuse(f"state[{name!r}]", f"be {self.lanes} numbers", state[name])
            arrays.append(array)
        self._counts, self._means, self._variances, self._exponentials = arrays
