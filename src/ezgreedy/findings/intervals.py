"""How certain is a number? Intervals over trials or seeds that cover also with few of them.

Means, differences and ratios have t intervals, shares Wilson's. A single trial says nothing about
its spread: its interval is a point, and the caller must say that there was only one. The percentile
bootstrap is for other statistics of many samples; of few it covers too little
(docs/interval_coverage.md has the coverage of all of them).
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ezgreedy import requirements as require
from ezgreedy.requirements import FloatArray

Statistic = Callable[[FloatArray], FloatArray]

LEAST_SEEDS = 3  # for a t interval over seeds to be shown
LEAST_RESAMPLED = 5  # for a bootstrap interval over seeds to be shown
# Resampled numbers held at once: bounds memory for any number of samples.
_LARGEST_BATCH = 2**22


class Interval(NamedTuple):
    """A number with the ends of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def mean_over_samples(resamples: FloatArray) -> FloatArray:
    """The mean of each resample; [repeats, samples, …] to [repeats, …]."""
    return resamples.mean(axis=1)


def bootstrap_interval(
    samples: ArrayLike,
    rng: np.random.Generator,
    statistic: Statistic = mean_over_samples,
    level: float = 0.95,
    repeats: int = 2000,
) -> Interval:
    """The percentile bootstrap interval of a statistic.

    Args:
        samples: independent samples along the first axis, [samples, …].
        rng: random generator of the resamples.
        statistic: maps [repeats, samples, …] to one number per repeat.
        level: nominal coverage of the interval.
        repeats: number of resamples.
    """
    array = _checked("samples", samples)
    level = require.number("level", level, 0.0, 1.0)
    repeats = require.integer("repeats", repeats, least=1)
    batch = max(_LARGEST_BATCH // array.size, 1)
    values = np.concatenate(
        [
            statistic(
                array[rng.integers(len(array), size=(min(batch, repeats - done), len(array)))]
            )
            for done in range(0, repeats, batch)
        ]
    )
    # Without interpolation: no number between two resamples was seen, least of all next to an
    # infinite one.
    low = np.quantile(values, (1.0 - level) / 2.0, method="lower")
    high = np.quantile(values, (1.0 + level) / 2.0, method="higher")
    return Interval(float(statistic(array[None])[0]), float(low), float(high))


def mean_interval(samples: ArrayLike, level: float = 0.95) -> Interval:
    """The mean of independent samples [samples], with Student's t interval."""
    row = _row("samples", samples)
    return linear_interval(float(row.mean()), row - row.mean(), level)


def paired_difference_interval(above: ArrayLike, below: ArrayLike, level: float = 0.95) -> Interval:
    """mean(above) − mean(below) with its t interval over pairs: entry i of both is one seed."""
    first, second = _pair("above", above, "below", below)
    return mean_interval(first - second, level)


def difference_interval(above: ArrayLike, below: ArrayLike, level: float = 0.95) -> Interval:
    """mean(above) − mean(below) of independent samples with Welch's interval.

    Args:
        above: independent samples, [samples], two or more.
        below: independent samples, [samples], two or more; their number may differ.
        level: nominal coverage of the interval.
    """
    return stratified_difference_interval([(_row("above", above), _row("below", below))], level)


def ratio_interval(numerator: ArrayLike, denominator: ArrayLike, level: float = 0.95) -> Interval:
    """The ratio of two means over pairs, with a t interval of its linear approximation.

    Entry i of both is the same trial or seed. A denominator with mean zero makes the ratio
    infinite, or NaN if the numerator's mean is zero as well.

    Args:
        numerator: samples of the numerator, [samples].
        denominator: samples of the denominator, [samples].
        level: nominal coverage of the interval.
    """
    above, below = _pair("numerator", numerator, "denominator", denominator)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(above.mean() / below.mean())
    if not np.isfinite(ratio):
        return Interval(ratio, ratio, ratio)
    return linear_interval(ratio, (above - ratio * below) / below.mean(), level)


def geometric_ratio_interval(
    numerator: ArrayLike, denominator: ArrayLike, level: float = 0.95
) -> Interval:
    """The ratio of two geometric means over pairs, with a t interval on the logarithmic scale.

    For positive numbers that spread over orders of magnitude, such as numbers of episodes until
    something is learned.
    """
    above, below = _pair("numerator", numerator, "denominator", denominator)
    if min(above.min(), below.min()) <= 0.0:
        raise require.refuse("numerator and denominator", "be positive", 0.0)
    logs = mean_interval(np.log(above) - np.log(below), level)
    return Interval(*np.exp(logs).tolist())


def share_interval(num_found: int, num_trials: int, level: float = 0.95) -> Interval:
    """A share of independent trials with Wilson's interval, which also covers near 0 and 1."""
    from scipy.stats import norm

    num_trials = require.integer("num_trials", num_trials, least=1)
    num_found = require.integer("num_found", num_found, least=0, most=num_trials)
    level = require.number("level", level, 0.0, 1.0)
    z2 = float(norm.ppf((1.0 + level) / 2.0)) ** 2
    share = num_found / num_trials
    middle = (share + z2 / (2 * num_trials)) / (1 + z2 / num_trials)
    spread = share * (1 - share) / num_trials + z2 / (4 * num_trials**2)
    half = (z2 * spread) ** 0.5 / (1 + z2 / num_trials)
    # Rounding must not put an end beyond the share itself, as with 0 of 10.
    return Interval(share, min(middle - half, share), max(middle + half, share))


def share_difference_interval(
    above: tuple[int, int], below: tuple[int, int], level: float = 0.95
) -> Interval:
    """The difference of two shares of independent trials, with Newcombe's hybrid score interval.

    Args:
        above: found and all trials of the first share.
        below: found and all trials of the share that is taken from it.
        level: nominal coverage of the interval.
    """
    first, second = share_interval(*above, level), share_interval(*below, level)
    value = first.value - second.value
    return Interval(
        value,
        value - math.hypot(first.value - first.low, second.high - second.value),
        value + math.hypot(first.high - first.value, second.value - second.low),
    )


def linear_interval(value: float, residuals: FloatArray, level: float = 0.95) -> Interval:
    """The t interval of a value whose error is the mean of these residuals, one for each seed."""
    level = require.number("level", level, 0.0, 1.0)
    num_samples = len(residuals)
    if num_samples < 2:
        return Interval(value, value, value)
    error = float(residuals.std(ddof=1)) / num_samples**0.5
    half = _t_quantile(num_samples - 1.0, level) * error
    return Interval(value, value - half, value + half)


@lru_cache(maxsize=4096)
def _t_quantile(freedom: float, level: float) -> float:
    """Half the width of a two-sided interval of Student's t distribution."""
    from scipy.stats import t

    return float(t.ppf((1.0 + level) / 2.0, freedom))


def _row(name: str, samples: ArrayLike) -> FloatArray:
    array = _checked(name, samples)
    if array.ndim != 1:
        raise require.refuse(name, "be a row", array.shape)
    return array


def _pair(
    name: str, samples: ArrayLike, other_name: str, others: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    first, second = _row(name, samples), _row(other_name, others)
    if first.shape != second.shape:
        raise require.refuse(other_name, f"have the shape of {name}, {first.shape}", second.shape)
    return first, second


def _checked(name: str, samples: ArrayLike) -> FloatArray:
    array = np.asarray(samples)
    if array.dtype.kind not in "biuf":
        raise require.refuse_type(name, f"hold numbers, not {array.dtype}", samples)
    if array.ndim == 0 or array.size == 0:
        raise require.refuse(name, "hold at least one sample", array.tolist())
    return array.astype(np.float64)


def stratified_difference_interval(
    strata: Sequence[tuple[ArrayLike, ArrayLike | None]], level: float = 0.95
) -> Interval:
    """The mean over strata of mean(above) − mean(below), with a t interval over samples.

    Variances are estimated within each stratum and each side, and the degrees of freedom are
    Welch's and Satterthwaite's, so that coverage holds even with few samples per side. With a
    single stratum this is Welch's interval; without a side below, Student's.

    Args:
        strata: independent samples above and below, two or more per side; None for no side below.
        level: nominal coverage of the interval.
    """
    level = require.number("level", level, 0.0, 1.0)
    if not strata:
        raise require.refuse("strata", "hold at least one", 0)
    value = variance = denominator = 0.0
    for above, below in strata:
        for sign, side in ((1.0, above), (-1.0, below)):
            if side is None:
                continue
            samples = _checked("strata", side)
            if len(samples) < 2:
                raise require.refuse("strata", "hold two samples or more a side", len(samples))
            value += sign * float(samples.mean()) / len(strata)
            part = float(samples.var(ddof=1)) / len(samples) / len(strata) ** 2
            variance += part
            denominator += part**2 / (len(samples) - 1)
    if variance == 0.0:
        return Interval(value, value, value)
    half = _t_quantile(variance**2 / denominator, level) * variance**0.5
    return Interval(value, value - half, value + half)
