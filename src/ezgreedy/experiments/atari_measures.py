"""What did walks through a game find, how certain is it, and which policy found more?

Every measure is a ratio of two sums over seeds, so a seed counts by how much it saw (returns per
episode weigh every episode equally). Intervals resample seeds; two policies are compared on the
same seeds, resampled together. Over games, a game is one sample.

With few seeds, much is chance: if two policies differ only by symmetric noise, the interval of
three seeds lies on one side of zero in one game of four (whenever all three agree), that of five
seeds in about one of seven. Rare, large rewards do worse, on the side of less.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ezgreedy.findings.intervals import Interval, bootstrap_interval
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


def estimate(seeds: FloatArray, name: str, rng: np.random.Generator) -> Interval:
    """A measure of one policy."""
    times = MEASURES[name].times
    return bootstrap_interval(_parts(seeds, name), rng, lambda samples: times * _ratios(samples))


def difference(
    seeds: FloatArray, others: FloatArray, name: str, rng: np.random.Generator
) -> Interval:
    """The difference of a measure between two policies on the same seeds."""
    times = MEASURES[name].times
    pairs = np.stack([_parts(seeds, name), _parts(others, name)], axis=1)
    return bootstrap_interval(
        pairs,
        rng,
        lambda samples: times * (_ratios(samples[:, :, 0]) - _ratios(samples[:, :, 1])),
    )


def balance(signs: Sequence[int], rng: np.random.Generator) -> Interval:
    """(Games with more − games with less) / games, with its interval over games."""
    return bootstrap_interval(signs, rng)


def typical_ratio(ratios: Sequence[float], rng: np.random.Generator) -> Interval:
    """The geometric mean of positive ratios, with its interval over games."""
    return bootstrap_interval(
        np.log(ratios), rng, lambda samples: np.asarray(np.exp(samples.mean(axis=1)))
    )


def _parts(seeds: FloatArray, name: str) -> FloatArray:
    """The two columns of a measure, [seeds, 2]."""
    measure = MEASURES[name]
    return seeds[:, [_COLUMNS.index(measure.above), _COLUMNS.index(measure.below)]]


def _ratios(samples: FloatArray) -> FloatArray:
    """Ratios of sums, [repeats, seeds, 2] to [repeats]; the denominator is never zero."""
    sums = samples.sum(axis=1)
    return np.asarray(sums[:, 0] / sums[:, 1])
