"""How sure are we? Bootstrap intervals of means and of ratios of means.

Samples are drawn anew with replacement many times; the interval holds the middle share `level` of
the resulting statistics. The generator is the caller's, so that a summary can be made again.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ezgreedy import requirements as require
from ezgreedy.requirements import FloatArray


@dataclass(frozen=True)
class Interval:
    """An estimate between the ends of its interval."""

    value: float
    low: float
    high: float


def mean_interval(
    samples: ArrayLike, rng: np.random.Generator, level: float = 0.95, repeats: int = 2000
) -> Interval:
    """The mean of independent samples, [n]."""
    values = _samples("samples", samples)
    means = _resampled_means(values, rng, repeats)
    return _interval(float(values.mean()), means, level)


def ratio_interval(
    numerator: ArrayLike,
    denominator: ArrayLike,
    rng: np.random.Generator,
    level: float = 0.95,
    repeats: int = 2000,
) -> Interval:
    """mean(numerator) / mean(denominator), both [n] independent samples of positive mean."""
    above, below = _samples("numerator", numerator), _samples("denominator", denominator)
    ratios = _resampled_means(above, rng, repeats) / _resampled_means(below, rng, repeats)
    return _interval(float(above.mean() / below.mean()), ratios, level)


def _samples(name: str, samples: ArrayLike) -> FloatArray:
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise require.refuse(name, "be a row of finite numbers, at least one", values)
    return values


def _resampled_means(values: FloatArray, rng: np.random.Generator, repeats: int) -> FloatArray:
    choose: Callable[..., FloatArray] = rng.choice
    return choose(values, size=(repeats, values.size)).mean(axis=1)


def _interval(value: float, resampled: FloatArray, level: float) -> Interval:
    tail = (1.0 - require.number("level", level, 0.0, 1.0)) / 2.0
    low, high = np.quantile(resampled, [tail, 1.0 - tail])
    return Interval(value, float(low), float(high))
