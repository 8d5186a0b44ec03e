"""How sure are numbers over many games? Intervals by resampling runs within each game.

The stratified bootstrap of Agarwal et al. (2021), from a generator that the caller gives, all
resamples in one call of the statistic.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.requirements import FloatArray
from ezgreedy.results.intervals import Interval
from ezgreedy.results.scores import (
    Complete,
    Missing,
    Scores,
    complete,
    human_gap,
    human_gap_of_runs,
    interquartile_mean,
    mean,
    median,
    probability_of_improvement,
)

Statistic = Callable[..., FloatArray]  # arrays [..., seeds, games] to [...] or [..., numbers]

# Resampled numbers held at once: bounds memory whatever the number of runs.
_LARGEST_BATCH = 2**21


class Band(NamedTuple):
    """Numbers with the ends of their intervals, all of one shape."""

    values: FloatArray
    low: FloatArray
    high: FloatArray


class Summary(NamedTuple):
    """One agent over a suite, by human-normalised scores."""

    median: Interval
    mean: Interval
    human_gap: Interval
    interquartile_mean: Interval
    num_games: int
    num_seeds: int  # in every game
    missing: Missing


class Improvement(NamedTuple):
    """How likely a run of one agent beats a run of another, over the games that both played."""

    probability: Interval
    games: tuple[str, ...]
    missing: Mapping[str, Missing]  # of either agent


def stratified_bootstrap(
    statistic: Statistic, *tables: FloatArray, rng: np.random.Generator, repeats: int = 2000
) -> FloatArray:
    """A statistic of resamples, [repeats, ...].

    Runs are drawn with replacement within each game; axes before the seeds, the points of a curve
    say, go with their run. Games are not resampled: they are all there are.

    Args:
        statistic: of as many arrays as there are tables.
        tables: [..., seeds, games] without gaps; each is resampled on its own.
        rng: where resamples are drawn from.
        repeats: how many.
    """
    repeats = require.integer("repeats", repeats, least=1)
    for table in tables:
        if table.ndim < 2 or not table.size or not np.isfinite(table).all():
            raise require.refuse("tables", "be [..., seeds, games] without gaps", table.shape)
    held = tables[0].size * math.prod(table.shape[-2] for table in tables[1:])
    batch = max(_LARGEST_BATCH // held, 1)
    return np.concatenate(
        [
            statistic(*(_resampled(table, min(batch, repeats - done), rng) for table in tables))
            for done in range(0, repeats, batch)
        ]
    )


def stratified_band(
    statistic: Statistic,
    *tables: FloatArray,
    rng: np.random.Generator,
    level: float = 0.95,
    repeats: int = 2000,
) -> Band:
    """A statistic with percentile intervals from `stratified_bootstrap`.

    With one seed a game resamples only to itself: an interval of no width, which says nothing.

    Args:
        statistic: of as many arrays as there are tables.
        tables: [..., seeds, games] without gaps.
        rng: where resamples are drawn from.
        level: the intervals' nominal coverage, each by itself.
        repeats: how many resamples.
    """
    level = require.number("level", level, 0.0, 1.0)
    values = stratified_bootstrap(statistic, *tables, rng=rng, repeats=repeats)
    low = np.quantile(values, (1.0 - level) / 2.0, axis=0, method="lower")
    high = np.quantile(values, (1.0 + level) / 2.0, axis=0, method="higher")
    return Band(statistic(*tables), low, high)


def stratified_interval(
    statistic: Statistic,
    *tables: FloatArray,
    rng: np.random.Generator,
    level: float = 0.95,
    repeats: int = 2000,
) -> Interval:
    """`stratified_band` of a statistic that is one number."""
    return _intervals(stratified_band(statistic, *tables, rng=rng, level=level, repeats=repeats))[0]


def summary(
    scores: Scores,
    *,
    rng: np.random.Generator,
    clips_runs: bool = False,
    least_seeds: int = 1,
    repeats: int = 2000,
) -> Summary:
    """Everything that is told of one agent, with what it was not computed from.

    Args:
        scores: human-normalised, over the whole suite.
        rng: where resamples are drawn from.
        clips_runs: whether the human-gap cuts off each run at 1, rather than their mean.
        least_seeds: a game with fewer runs than this counts as missing.
        repeats: how many resamples.
    """
    found = complete(scores, least_seeds)
    statistics = (
        median,
        mean,
        human_gap_of_runs if require.flag("clips_runs", clips_runs) else human_gap,
        interquartile_mean,
    )

    def together(values: FloatArray) -> FloatArray:
        return np.stack([statistic(values) for statistic in statistics], axis=-1)

    band = stratified_band(together, found.values, rng=rng, repeats=repeats)
    num_seeds, num_games = found.values.shape
    middle, average, gap, trimmed = _intervals(band)
    return Summary(middle, average, gap, trimmed, num_games, num_seeds, found.missing)


def improvement(
    above: Scores,
    below: Scores,
    *,
    rng: np.random.Generator,
    least_seeds: int = 1,
    repeats: int = 2000,
) -> Improvement:
    """`probability_of_improvement` over the games that both agents have runs enough of.

    Args:
        above: of the agent that may be better. Normalised or not: ranks within games decide.
        below: of the other.
        rng: where resamples are drawn from.
        least_seeds: a game with fewer runs than this counts as missing.
        repeats: how many resamples.
    """
    first, second = complete(above, least_seeds), complete(below, least_seeds)
    games = tuple(game for game in first.games if game in second.games)
    if not games:
        raise require.refuse("below", f"share a game with {first.games}", second.games)
    tables = [
        table.values[:, [table.games.index(game) for game in games]] for table in (first, second)
    ]
    band = stratified_band(probability_of_improvement, *tables, rng=rng, repeats=repeats)
    missing = {
        name: table.missing._replace(
            games=(*table.missing.games, *(g for g in other.games if g not in _all_games(table)))
        )
        for name, table, other in (("above", first, second), ("below", second, first))
    }
    return Improvement(_intervals(band)[0], games, missing)


def _all_games(table: Complete) -> set[str]:
    return {*table.games, *table.missing.games}


def _resampled(table: FloatArray, repeats: int, rng: np.random.Generator) -> FloatArray:
    """[..., seeds, games] to [repeats, ..., seeds, games]."""
    *leading, num_seeds, num_games = table.shape
    draws = rng.integers(num_seeds, size=(repeats, num_seeds, num_games))
    draws = draws.reshape(repeats, *(1 for _ in leading), num_seeds, num_games)
    return np.take_along_axis(table[None], draws, axis=-2)


def _intervals(band: Band) -> list[Interval]:
    ends = zip(*(np.atleast_1d(part).tolist() for part in band), strict=True)
    return [Interval(*end) for end in ends]
