"""What did walks through a game find, how sure is that, and did one policy find more than another?

Every measure is a ratio of two sums over seeds, so that a seed counts by what it saw (returns per
episode weigh each episode alike). Intervals resample seeds; two policies are compared on the same
seeds, resampled together. Over games, a game is one sample.

With few seeds chance decides much: where two policies differ by nothing but symmetric noise, the
interval of three seeds lies on one side of zero in one game of four (whenever all three agree), of
five in about one of seven. Rewards that are rare and large do worse, on the side of less.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ezgreedy.requirements import FloatArray
from ezgreedy.results.intervals import LEAST_SEEDS, Interval, bootstrap_interval

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
    """What walks found, a row for each seed: [seeds, columns].

    A walk without a reward counts as one that found it on its last step, so that the mean number
    of steps to the first reward is at most what it would be if all walks went on.
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
    """A measure of one policy less that of another, on the same seeds."""
    times = MEASURES[name].times
    pairs = np.stack([_parts(seeds, name), _parts(others, name)], axis=1)
    return bootstrap_interval(
        pairs,
        rng,
        lambda samples: times * (_ratios(samples[:, :, 0]) - _ratios(samples[:, :, 1])),
    )


def sign(interval: Interval, num_seeds: int) -> int:
    """1 if the whole interval lies above zero, −1 if below; 0 if neither, or of too few seeds."""
    if num_seeds < LEAST_SEEDS:
        return 0
    return int(interval.low > 0.0) - int(interval.high < 0.0)


def balance(signs: Sequence[int], rng: np.random.Generator) -> Interval:
    """(Games with more − games with less) / games, its interval over games."""
    return bootstrap_interval(signs, rng)


def typical_ratio(ratios: Sequence[float], rng: np.random.Generator) -> Interval:
    """The geometric mean of positive ratios, its interval over games."""
    return bootstrap_interval(
        np.log(ratios), rng, lambda samples: np.asarray(np.exp(samples.mean(axis=1)))
    )


def _parts(seeds: FloatArray, name: str) -> FloatArray:
    """The two columns of a measure, [seeds, 2]."""
    measure = MEASURES[name]
    return seeds[:, [_COLUMNS.index(measure.above), _COLUMNS.index(measure.below)]]


def _ratios(samples: FloatArray) -> FloatArray:
    """Ratios of sums, [repeats, seeds, 2] to [repeats]; what is below is never zero."""
    sums = samples.sum(axis=1)
    return np.asarray(sums[:, 0] / sums[:, 1])
