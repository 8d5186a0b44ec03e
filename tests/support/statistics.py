"""Statistical assertions whose size and power are stated, not hoped for.

A χ² test at size α = 10⁻⁶, cells merged to at least ten expected draws. Before testing, the helper
proves that with this many draws each named wrong sampler would be rejected with power above 0.99.
"""

import numpy as np
from scipy import stats

SIZE = 1e-6
POWER = 0.99
LEAST_EXPECTED = 10


def assert_follows(sample, probabilities, rejects=None):
    """Asserts that a sample of 0, 1, … follows a law, and that it could tell it from others.

    Args:
        sample: non-negative ints.
        probabilities: the law of 0, 1, …, len − 1.
        rejects: name ↦ probabilities of a wrong sampler that this test must be able to catch.
    """
    probabilities = np.asarray(probabilities, dtype=float)
    for name, wrong in (rejects or {}).items():
        power = rejection_power(len(sample), probabilities, wrong)
        assert power > POWER, f"{len(sample)} draws catch {name!r} with power {power:.3f} only"
    counts = np.bincount(sample, minlength=len(probabilities))
    assert len(counts) == len(probabilities), f"drew {len(counts) - 1}, outside the support"
    assert not counts[probabilities == 0].any(), "drew something impossible"
    p_value = chi_square_p_value(counts, probabilities)
    assert p_value > SIZE, f"the sample does not follow the law (p = {p_value:.2e})"


def chi_square_p_value(counts, probabilities):
    groups = merged_cells(np.asarray(probabilities) * counts.sum())
    observed = np.add.reduceat(counts, groups)
    expected = np.add.reduceat(np.asarray(probabilities, dtype=float), groups) * counts.sum()
    if len(groups) == 1:
        return 1.0
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def rejection_power(num_draws, probabilities, wrong):
    """The probability that the test rejects draws from `wrong` (non-central χ²)."""
    size = max(len(probabilities), len(wrong))
    right = np.pad(np.asarray(probabilities, dtype=float), (0, size - len(probabilities)))
    wrong = np.pad(np.asarray(wrong, dtype=float), (0, size - len(wrong)))
    if wrong[right == 0].sum() * num_draws > 20:  # something impossible is all but sure to appear
        return 1.0
    groups = merged_cells(right * num_draws)
    p, q = np.add.reduceat(right, groups), np.add.reduceat(wrong, groups)
    noncentrality = num_draws * ((p - q) ** 2 / p).sum()
    degrees = len(groups) - 1
    return stats.ncx2.sf(stats.chi2.isf(SIZE, degrees), degrees, noncentrality)


def merged_cells(expected):
    """Where merged cells begin, so that each expects enough draws."""
    starts, total = [0], 0.0
    to_come = np.cumsum(expected[::-1])[::-1]
    for index, value in enumerate(expected):
        if total >= LEAST_EXPECTED and to_come[index] >= LEAST_EXPECTED:
            starts.append(index)
            total = 0.0
        total += value
    return np.array(starts)
