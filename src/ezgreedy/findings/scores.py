"""How good is an agent over many games? Human-normalised scores and their summary statistics.

Paper, appendix: score = (agent − random) / (human − random) and human-gap = 1 − E min(1, score);
the median and the mean are over games. Interquartile means, performance profiles and probabilities
of improvement are those of Agarwal et al. (2021). A statistic is a function of an array without
gaps, [..., seeds, games], so that one call takes all resamples, or all points of a curve. Gaps
never reach a statistic: `complete` leaves them out by name.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.games.atari.atari57 import games as atari57
from ezgreedy.games.family import Measured
from ezgreedy.requirements import BoolArray, FloatArray


class Reference(NamedTuple):
    """The reference scores of a game outside Atari."""

    random_score: float
    human_score: float


Suite = Mapping[str, Measured]  # the games of an average, played or not


@dataclass(frozen=True, eq=False)
class Scores:
    """One agent's scores.

    Args:
        games: names of the columns.
        seeds: names of the rows.
        values: [seeds, games]; NaN where there is no run.
    """

    games: tuple[str, ...]
    seeds: tuple[int, ...]
    values: FloatArray

    def __post_init__(self) -> None:
        for name in ("games", "seeds"):
            twice = [item for item, count in Counter(getattr(self, name)).items() if count > 1]
            if twice:
                raise require.refuse(name, "name each once", twice[0])
        shape = len(self.seeds), len(self.games)
        if self.values.shape != shape:
            raise require.refuse("values", f"have shape {shape}", self.values.shape)
        if np.isinf(self.values).any():
            raise require.refuse("values", "be finite, or NaN where there is no run", np.inf)


class Missing(NamedTuple):
    """Games and runs that a number leaves out, by name.

    Args:
        games: games of the suite with too few runs to count.
        runs: game and seed of missing runs, in games that count.
        unused: game and seed of unused runs: in games that do not count, or beyond the number of
            runs of the game with fewest.
    """

    games: tuple[str, ...] = ()
    runs: tuple[tuple[str, int], ...] = ()
    unused: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        parts = [", ".join(self.games)] if self.games else []
        parts += _told_by_game(self.runs)
        parts += [f"{words} (not used)" for words in _told_by_game(self.unused)]
        return "; ".join(parts)


class Complete(NamedTuple):
    """Scores without gaps.

    Args:
        games: names of the columns.
        values: [seeds, games]. A row may mix seeds, as seeds of different games are unrelated.
        missing: games and runs left out.
    """

    games: tuple[str, ...]
    values: FloatArray
    missing: Missing


def scores_of(
    entries: Iterable[tuple[str, int, float | None]], seeds: Iterable[int] = ()
) -> Scores:
    """Scores from a list; duplicates of a game and seed are refused.

    Args:
        entries: game, seed and score, in any order; None for a missing run.
        seeds: seeds expected in every game; those without a run count as missing.
    """
    found: dict[tuple[str, int], float] = {}
    for game, seed, value in entries:
        if (game, seed) in found:
            raise require.refuse("entries", "hold each game and seed once", (game, seed))
        found[game, seed] = (
            math.nan if value is None else require.number(f"score of {game}", value, -math.inf)
        )
    games = tuple(sorted({game for game, _ in found}))
    seeds = tuple(sorted({*seeds, *(seed for _, seed in found)}))
    rows = [[found.get((game, seed), math.nan) for game in games] for seed in seeds]
    return Scores(games, seeds, np.array(rows, dtype=np.float64).reshape(len(seeds), len(games)))


def human_normalised(scores: Scores, suite: Suite | None = None) -> Scores:
    """(score − random) / (human − random), for all games of a suite, NaN for those not played.

    Args:
        scores: raw scores.
        suite: reference scores of each game; the 57 games of Atari if None. Games outside it are
            refused.
    """
    measures: Suite = atari57() if suite is None else suite
    for game in scores.games:
        if game not in measures:
            raise require.refuse_name("game", "be one of the suite", game, measures)
    values = np.full((len(scores.seeds), len(measures)), np.nan)
    for column, (game, measure) in enumerate(measures.items()):
        span = measure.human_score - measure.random_score
        if span == 0.0:
            raise require.refuse(f"human_score of {game}", "differ from its random score", span)
        if game in scores.games:
            raw = scores.values[:, scores.games.index(game)]
            values[:, column] = (raw - measure.random_score) / span
    return Scores(tuple(measures), scores.seeds, values)


def complete(scores: Scores, least_seeds: int = 1) -> Complete:
    """The games with enough runs, each with as many runs as the game with fewest.

    If a game has more, those of its last seeds are left out, by name: with them it would weigh
    more than other games in some statistics and less in others.

    Args:
        scores: scores, with or without gaps.
        least_seeds: a game with fewer runs than this counts as missing.
    """
    least = require.integer("least_seeds", least_seeds, least=1)
    known = np.isfinite(scores.values)
    counts = known.sum(axis=0)
    columns = np.flatnonzero(counts >= least)
    if not len(columns):
        rule = f"hold a game with at least {least} run{'s'[: least > 1]}"
        raise require.refuse("scores", rule, scores.games)
    num_seeds = int(counts[columns].min())
    place = np.cumsum(known, axis=0)  # rank of a run within its game, from 1
    used = known & (place <= num_seeds) & (counts >= least)
    rows = np.argsort(~used, axis=0, kind="stable")[:num_seeds]
    values = np.take_along_axis(scores.values, rows, axis=0)[:, columns]
    absent = ~known & (counts >= least)
    missing = Missing(
        tuple(game for game, count in zip(scores.games, counts, strict=True) if count < least),
        _named(scores, absent),
        _named(scores, known & ~used),
    )
    return Complete(tuple(scores.games[column] for column in columns), values, missing)


def median(values: FloatArray) -> FloatArray:
    """Median over games of the mean over seeds."""
    return np.median(values.mean(axis=-2), axis=-1)


def mean(values: FloatArray) -> FloatArray:
    """Mean over games and seeds. A single game, such as VideoPinball, can dominate it."""
    return values.mean(axis=(-2, -1))


def human_gap(values: FloatArray) -> FloatArray:
    """1 − mean over games of min(1, mean over seeds): 0 if no game is below human level.

    Paper: the gap is of "the per-game scores for the agent", which are "averaged over 5 random
    seeds", so seeds are averaged before scores are clipped at 1. With one seed this equals
    `human_gap_of_runs`; otherwise it is at most that.
    """
    return 1.0 - np.minimum(values.mean(axis=-2), 1.0).mean(axis=-1)


def human_gap_of_runs(values: FloatArray) -> FloatArray:
    """1 − mean over runs of min(1, score): each run is clipped at 1 by itself.

    The other reading of the paper, and the optimality gap of Agarwal et al.
    """
    return 1.0 - np.minimum(values, 1.0).mean(axis=(-2, -1))


def interquartile_mean(values: FloatArray) -> FloatArray:
    """Mean over the runs of all games, without the lowest and the highest quarter."""
    runs = np.sort(_flat(values), axis=-1)
    cut = runs.shape[-1] // 4
    return runs[..., cut : runs.shape[-1] - cut].mean(axis=-1)


def performance_profile(values: FloatArray, thresholds: FloatArray) -> FloatArray:
    """The share of the runs of all games that score above each threshold, [..., thresholds].

    The area under it from 0 to 1 is 1 − `human_gap_of_runs`, if no run is below 0.
    """
    runs = _flat(values)
    return np.stack([(runs > threshold).mean(axis=-1) for threshold in thresholds], axis=-1)


def probability_of_improvement(above: FloatArray, below: FloatArray) -> FloatArray:
    """Mean over games of P(a run of the first scores higher than one of the second).

    A tie counts half. Both have the same games; the numbers of seeds may differ.
    """
    first, second = above[..., :, None, :], below[..., None, :, :]
    wins = (first > second) + 0.5 * (first == second)
    return wins.mean(axis=(-3, -2, -1))


def _told_by_game(runs: Iterable[tuple[str, int]]) -> list[str]:
    seeds: dict[str, list[str]] = {}
    for game, seed in runs:
        seeds.setdefault(game, []).append(str(seed))
    return [f"{game} seed{'s'[: len(own) > 1]} {', '.join(own)}" for game, own in seeds.items()]


def _named(scores: Scores, chosen: BoolArray) -> tuple[tuple[str, int], ...]:
    places = np.argwhere(chosen.T)
    return tuple((scores.games[column], scores.seeds[row]) for column, row in places)


def _flat(values: FloatArray) -> FloatArray:
    return values.reshape(*values.shape[:-2], -1)
