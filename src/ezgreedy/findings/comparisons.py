"""Which of many comparisons are more than chance? Sign tests, and false discoveries controlled.

With 57 games compared at 5 %, three look decided where nothing differs. Within a family of
comparisons, p-values are therefore adjusted after Benjamini and Hochberg: of those at or below q,
at most a share of q is expected to be false.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ezgreedy import requirements as require
from ezgreedy.findings.judging import Side
from ezgreedy.requirements import FloatArray

Key = TypeVar("Key")

LARGEST_FALSE_SHARE = 0.1  # q of Benjamini and Hochberg within a family of comparisons
LEVEL = 0.05  # of a single test


class SignTest(NamedTuple):
    """How many of independent comparisons went each way; ties count for neither.

    Args:
        num_up: comparisons with a positive difference.
        num_down: comparisons with a negative difference.
        p: two-sided p-value of equal chances; 1 if all are ties.
    """

    num_up: int
    num_down: int
    p: float

    def side(self, p: float | None = None) -> Side:
        """Holds if more go up than chance explains, contradicted if more go down.

        Args:
            p: adjusted p-value, if the test is one of a family.
        """
        if (self.p if p is None else p) >= LEVEL:
            return "undecided"
        return "holds" if self.num_up > self.num_down else "contradicted"


def sign_test(differences: ArrayLike) -> SignTest:
    """The sign test of differences, one for each game or seed."""
    from scipy.stats import binomtest

    signs = np.sign(np.asarray(differences, dtype=np.float64))
    up, down = int((signs > 0).sum()), int((signs < 0).sum())
    p = float(binomtest(up, up + down).pvalue) if up + down else 1.0
    return SignTest(up, down, p)


def adjusted(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """p-values of one family, adjusted after Benjamini and Hochberg."""
    if not p_values:
        return {}
    raw = np.array(list(p_values.values()), dtype=np.float64)
    if not ((raw >= 0.0) & (raw <= 1.0)).all():
        raise require.refuse("p-values", "lie in [0, 1]", raw.tolist())
    order = np.argsort(raw)
    ranks = np.arange(1, len(raw) + 1)
    steps = raw[order] * len(raw) / ranks
    made = np.empty_like(raw)
    made[order] = np.minimum.accumulate(steps[::-1])[::-1]
    return dict(zip(p_values, np.minimum(made, 1.0).tolist(), strict=True))


def difference_p(value: float, residuals: FloatArray) -> float:
    """The two-sided p-value of a difference whose error is the mean of these residuals.

    If all residuals are equal the t test would be certain; the sign-flip test, whose smallest
    p-value is 2^(1 − n), then stands in for it.

    Args:
        value: the difference.
        residuals: its linear approximation, one for each seed, [seeds].
    """
    from scipy.stats import t

    num_seeds = len(residuals)
    if num_seeds < 2 or value == 0.0:
        return 1.0
    error = float(residuals.std(ddof=1)) / num_seeds**0.5
    smallest = 2.0 ** (1 - num_seeds)
    if error == 0.0:
        return smallest
    return float(2.0 * t.sf(abs(value) / error, num_seeds - 1))


def welch_p(above: ArrayLike, below: ArrayLike) -> float:
    """The two-sided p-value of equal means of independent samples, two or more a side.

    Sides without any spread have the smallest p-value of a permutation test.
    """
    from math import comb

    from scipy.stats import ttest_ind

    first, second = (np.asarray(side, dtype=np.float64) for side in (above, below))
    if np.ptp(first) == np.ptp(second) == 0.0:
        if first[0] == second[0]:
            return 1.0
        return min(2.0 / comb(len(first) + len(second), len(first)), 1.0)
    return float(ttest_ind(first, second, equal_var=False).pvalue)


def decided(
    values: Mapping[Key, float], p_values: Mapping[Key, float], q: float = LARGEST_FALSE_SHARE
) -> dict[Key, int]:
    """1 or −1 for each difference of a family that is more than chance, else 0."""
    corrected = adjusted(p_values)
    return {key: int(np.sign(values[key])) if corrected[key] <= q else 0 for key in values}
