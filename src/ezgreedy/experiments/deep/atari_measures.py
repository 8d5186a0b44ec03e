"""What did walks through a game find, how certain is it, and which policy found more?

Every measure is a ratio of two sums over seeds, so a seed counts by how much it saw (returns per
episode weigh every episode equally). Intervals are t intervals of the ratios' linear approximation;
two policies are compared on the same seeds, pair by pair. Over games, a game is one sample.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ezgreedy.findings.comparisons import difference_p
from ezgreedy.findings.intervals import Interval, linear_interval, mean_interval
from ezgreedy.requirements import FloatArray

_COLUMNS = (
    "returns",
    "episodes",
    "steps",
    "lives_lost",
    "first_reward",
    "memories",
    "cells",
    "without_reward",
    "cut",
    "one",
)


class Measure(NamedTuple):
    """A quantity of a walk: `times` · the sum of one column / the sum of another."""

    above: str
    below: str = "one"
    times: float = 1.0


MEASURES = {
    "return": Measure("returns", "episodes"),
    "reward_per_1000_steps": Measure("returns", "steps", 1000.0),
    "first_reward": Measure("first_reward"),
    "memories": Measure("memories"),
    "cells": Measure("cells"),
    "lives_lost_per_1000_steps": Measure("lives_lost", "steps", 1000.0),
}


def table(walks: Sequence[Mapping[str, Any]], num_steps: int) -> FloatArray:
    """Walks as a table with one row per seed, [seeds, columns].

    A walk without a reward counts as if it found one on its last step, so the mean number of steps
    to the first reward is a lower bound on that of longer walks.
    """
    rows = [
        (
            sum(walk["returns"]),
            len(walk["returns"]),
            sum(walk["lengths"]),
            sum(walk["lives_lost"]),
            num_steps if walk["first_reward"] is None else walk["first_reward"],
            walk["num_memories"],
            walk["num_cells"],
            walk["first_reward"] is None,
            walk["num_cut"],
            1.0,
        )
        for walk in walks
    ]
    return np.array(rows, dtype=np.float64)


def total(seeds: FloatArray, column: str) -> int:
    """The sum of a column over seeds."""
    return int(seeds[:, _COLUMNS.index(column)].sum())


class Difference(NamedTuple):
    """A difference between two policies, and the p-value of none."""

    interval: Interval
    p: float


def estimate(seeds: FloatArray, name: str) -> Interval:
    """A measure of one policy."""
    return linear_interval(*_linear(seeds, name))


def difference(seeds: FloatArray, others: FloatArray, name: str) -> Difference:
    """The difference of a measure between two policies on the same seeds."""
    (value, residuals), (other, others_residuals) = _linear(seeds, name), _linear(others, name)
    errors = residuals - others_residuals
    return Difference(linear_interval(value - other, errors), difference_p(value - other, errors))


def typical_ratio(ratios: Sequence[float]) -> Interval:
    """The geometric mean of positive ratios, with its interval over games."""
    return Interval(*np.exp(mean_interval(np.log(ratios))).tolist())


def _linear(seeds: FloatArray, name: str) -> tuple[float, FloatArray]:
    """A measure, and its linear approximation around it, one for each seed."""
    above, below = _parts(seeds, name).T
    ratio = float(above.sum() / below.sum())  # the denominator is never zero
    times = MEASURES[name].times
    return times * ratio, times * (above - ratio * below) / below.mean()


def _parts(seeds: FloatArray, name: str) -> FloatArray:
    """The two columns of a measure, [seeds, 2]."""
    measure = MEASURES[name]
    return seeds[:, [_COLUMNS.index(measure.above), _COLUMNS.index(measure.below)]]
