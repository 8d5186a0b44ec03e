"""How certain are numbers over many games? Intervals by resampling runs within each game.

The stratified bootstrap of Agarwal et al. (2021), with the caller's generator and many resamples
in one call of the statistic.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.findings.intervals import Interval
from ezgreedy.findings.scores import (
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
from ezgreedy.requirements import FloatArray

Statistic = Callable[..., FloatArray]  # arrays [..., seeds, games] to [...] or [..., numbers]

# Resampled numbers held at once: bounds memory for any number of runs.
_LARGEST_BATCH = 2**21


class Band(NamedTuple):
    """Numbers with the ends of their intervals, all of one shape."""

    values: FloatArray
    low: FloatArray
    high: FloatArray


class SuiteSummary(NamedTuple):
    """One agent over a suite, by human-normalised scores."""

    median: Interval
    mean: Interval
    human_gap: Interval
    interquartile_mean: Interval
    num_games: int
    num_seeds: int  # in every game
    missing: Missing


class Improvement(NamedTuple):
    """The probability that a run of one agent beats a run of another, over shared games."""

    probability: Interval
    games: tuple[str, ...]
    missing: Mapping[str, Missing]  # by agent: above and below


def stratified_bootstrap(
    statistic: Statistic, *tables: FloatArray, rng: np.random.Generator, repeats: int = 2000
) -> FloatArray:
    """A statistic of resamples, [repeats, ...].

    Runs are drawn with replacement within each game; leading axes, such as the points of a curve,
    stay with their run. Games are not resampled: they are not a sample.

    Args:
        statistic: function of as many arrays as there are tables.
        tables: [..., seeds, games] without gaps; each is resampled separately.
        rng: random generator of the resamples.
        repeats: number of resamples.
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

    A game with one seed resamples only to itself: its interval has no width and says nothing.

    Args:
        statistic: function of as many arrays as there are tables.
        tables: [..., seeds, games] without gaps.
        rng: random generator of the resamples.
        level: nominal coverage of each interval.
        repeats: number of resamples.
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
) -> SuiteSummary:
    """The summary statistics of one agent, with the games and runs that they leave out.

    Args:
        scores: human-normalised scores over the whole suite.
        rng: random generator of the resamples.
        clips_runs: whether the human-gap clips each run at 1 rather than their mean.
        least_seeds: a game with fewer runs than this counts as missing.
        repeats: number of resamples.
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
    return SuiteSummary(middle, average, gap, trimmed, num_games, num_seeds, found.missing)


def improvement(
    above: Scores,
    below: Scores,
    *,
    rng: np.random.Generator,
    least_seeds: int = 1,
    repeats: int = 2000,
) -> Improvement:
    """`probability_of_improvement` over the games for which both agents have enough runs.

    Args:
        above: scores of the agent that may be better; normalised or not, as only ranks count.
        below: scores of the other agent.
        rng: random generator of the resamples.
        least_seeds: a game with fewer runs than this counts as missing.
        repeats: number of resamples.
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
