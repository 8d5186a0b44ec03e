"""How certain is a number? Percentile bootstrap intervals over trials or seeds.

Whole trials are resampled with replacement, with the caller's generator: the same generator gives
the same interval. A single trial resamples only to itself: its interval is a point, and the caller
must say that there was only one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ezgreedy import requirements as require
from ezgreedy.requirements import FloatArray

Statistic = Callable[[FloatArray], FloatArray]

LEAST_SEEDS = 3  # for an interval over seeds to be shown; the bootstrap of fewer says nothing
# Resampled numbers held at once: bounds memory for any number of samples.
_LARGEST_BATCH = 2**22


class Interval(NamedTuple):
    """A number with the ends of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def sign(interval: Interval, num_seeds: int) -> int:
    """1 if the whole interval lies above zero, −1 if below; 0 otherwise or with too few seeds."""
    if num_seeds < LEAST_SEEDS:
        return 0
    return int(interval.low > 0.0) - int(interval.high < 0.0)


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


def mean_interval(
    samples: ArrayLike, rng: np.random.Generator, level: float = 0.95, repeats: int = 2000
) -> Interval:
    """The mean of samples [samples] with its bootstrap interval."""
    return bootstrap_interval(samples, rng, level=level, repeats=repeats)


def ratio_interval(
    numerator: ArrayLike,
    denominator: ArrayLike,
    rng: np.random.Generator,
    level: float = 0.95,
    repeats: int = 2000,
) -> Interval:
    """The ratio of two means with its bootstrap interval, resampled in pairs.

    Entry i of both is the same trial or seed, and they stay together. A denominator with mean zero
    makes the ratio infinite, or NaN if the numerator's mean is zero as well.

    Args:
        numerator: samples of the numerator, [samples].
        denominator: samples of the denominator, [samples].
        rng: random generator of the resamples.
        level: nominal coverage of the interval.
        repeats: number of resamples.
    """
    above, below = _checked("numerator", numerator), _checked("denominator", denominator)
    if above.ndim != 1 or above.shape != below.shape:
        raise require.refuse(
            "denominator", f"have the numerator's shape {above.shape}", below.shape
        )
    pairs = np.stack([above, below], axis=1)
    return bootstrap_interval(pairs, rng, _ratio_of_means, level, repeats)


def difference_interval(
    above: ArrayLike,
    below: ArrayLike,
    rng: np.random.Generator,
    level: float = 0.95,
    repeats: int = 2000,
) -> Interval:
    """mean(above) − mean(below) with its bootstrap interval, each side resampled separately.

    Args:
        above: independent samples, [samples].
        below: independent samples, [samples]; their number may differ.
        rng: random generator of the resamples.
        level: nominal coverage of the interval.
        repeats: number of resamples.
    """
    first, second = _checked("above", above), _checked("below", below)
    if first.ndim != 1 or second.ndim != 1:
        raise require.refuse("above and below", "be rows", (first.shape, second.shape))
    level = require.number("level", level, 0.0, 1.0)
    repeats = require.integer("repeats", repeats, least=1)
    means = [row[rng.integers(len(row), size=(repeats, len(row)))] for row in (first, second)]
    values = means[0].mean(axis=1) - means[1].mean(axis=1)
    low = np.quantile(values, (1.0 - level) / 2.0, method="lower")
    high = np.quantile(values, (1.0 + level) / 2.0, method="higher")
    return Interval(float(first.mean() - second.mean()), float(low), float(high))


def _ratio_of_means(resamples: FloatArray) -> FloatArray:
    means = resamples.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return means[:, 0] / means[:, 1]


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
    from scipy.stats import t

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
    half = float(t.ppf((1.0 + level) / 2.0, variance**2 / denominator)) * variance**0.5
    return Interval(value, value - half, value + half)
