"""How good are agents over a suite of games? The paper's table, and comparisons on equal terms.

A line of the table is at the frames that the agent's own runs share. Agents are compared with each
other at frames that all of them reached, on games that all of them played: anything else would
compare budgets or games. What a number was not computed from is named beside it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ezgreedy.report.deep import Estimate, generator
from ezgreedy.report.variants import variants
from ezgreedy.requirements import FloatArray
from ezgreedy.results.intervals import LEAST_SEEDS, Interval
from ezgreedy.results.paper_tables import HEADER, TableRow, atari57_table
from ezgreedy.results.runs import Run
from ezgreedy.results.score_intervals import (
    Band,
    improvement,
    stratified_band,
    stratified_interval,
)
from ezgreedy.results.scores import (
    Missing,
    Scores,
    complete,
    human_normalised,
    interquartile_mean,
    performance_profile,
)
from ezgreedy.results.suites import NamedSuite, suites
from ezgreedy.results.training_scores import TrainingScores, shared_frames, training_scores

LEAST_GAMES = 2  # for a median over games to say anything

_NUM_THRESHOLDS = 61
_PROFILE_REPEATS = 500
_COMMON_SHARE = 0.95  # of the scores lies within the thresholds of a profile


class Standing(NamedTuple):
    """One agent among others, on the games and at the frames of all.

    Args:
        interquartile_mean: without an interval if there are too few seeds for one.
        profile: the share of its runs above each threshold.
        num_seeds: in every game.
        missing: what it was not computed from.
    """

    interquartile_mean: Estimate
    profile: Band
    num_seeds: int
    missing: Missing


class Better(NamedTuple):
    """How likely a run of one agent beats one of another, on the games that both played."""

    probability: Estimate
    num_games: int


class Comparison(NamedTuple):
    """Agents on equal terms.

    Args:
        frames: that all of them reached.
        games: that all of them played.
        thresholds: of the profiles.
        standings: by label.
        better: by the labels of the one above and the one below, where both share a game.
    """

    frames: int
    games: tuple[str, ...]
    thresholds: FloatArray
    standings: Mapping[str, Standing]
    better: Mapping[tuple[str, str], Better]


class SuiteScores(NamedTuple):
    """Everything about one suite.

    Args:
        suite: which.
        played: its games that have runs.
        agents: runs by label; one agent's may differ in game, seed, length and evaluation.
        frames: by label, at which the agent's own runs are scored.
        rows: of the table, the paper's agents first.
        comparison: None if no two agents share a game.
    """

    suite: NamedSuite
    played: tuple[str, ...]
    agents: Mapping[str, Sequence[Run]]
    frames: Mapping[str, int]
    rows: Sequence[TableRow]
    comparison: Comparison | None


def suite_scores(runs: Sequence[Run]) -> list[SuiteScores]:
    """The suites of which at least two games have runs."""
    found = []
    for suite in suites():
        own = [run for run in runs if run.game in suite.games]
        if len({run.game for run in own}) >= LEAST_GAMES:
            found.append(_suite_scores(suite, own))
    return found


def suite_header(found: SuiteScores) -> list[str]:
    """Of the table, without what is missing: that is told below it."""
    return [found.suite.gap if title == "human-gap" else title for title in HEADER[:-1]]


def lacking(found: SuiteScores) -> dict[str, str]:
    """What the rows of our agents were not computed from, in words by label."""
    told = {}
    for row in found.rows:
        missing = row.ours.final.missing if row.ours else Missing()
        present = [game for game in found.suite.games if game not in missing.games]
        words = str(missing)
        if len(missing.games) > len(present):
            rest = str(missing._replace(games=()))
            words = "; ".join([f"all games but {', '.join(present)}", *([rest] if rest else [])])
        if words:
            told[row.label] = words
    return told


def _suite_scores(suite: NamedSuite, runs: Sequence[Run]) -> SuiteScores:
    in_order = sorted(runs, key=lambda run: (run.agent, run.game, run.seed))
    agents = variants(in_order, across_games=True)
    scores = {label: training_scores(own) for label, own in agents.items()}
    rows = atari57_table(scores, rng=generator(f"{suite.name} table"), suite=suite.measures)
    return SuiteScores(
        suite,
        tuple(game for game in suite.games if any(run.game == game for run in runs)),
        agents,
        {label: found.frames for label, found in scores.items()},
        rows,
        _comparison(suite, agents, scores),
    )


def _comparison(
    suite: NamedSuite, agents: Mapping[str, Sequence[Run]], scores: Mapping[str, TrainingScores]
) -> Comparison | None:
    frames = shared_frames(
        [run for label, own in agents.items() for run in _counted(own, scores[label].frames)]
    )
    if not frames:
        return None
    tables = {
        label: human_normalised(training_scores(own, frames).final, suite.measures)
        for label, own in agents.items()
    }
    games = tuple(
        game
        for game in suite.games
        if all(game in complete(table).games for table in tables.values())
    )
    if len(tables) < 2 or not games:
        return None
    alike = {label: complete(_only(table, games)) for label, table in tables.items()}
    every = np.concatenate([found.values.ravel() for found in alike.values()])
    thresholds = np.linspace(0.0, max(1.0, np.quantile(every, _COMMON_SHARE)), _NUM_THRESHOLDS)
    standings = {
        label: _standing(
            f"{suite.name} {label}", found.values, thresholds, complete(tables[label]).missing
        )
        for label, found in alike.items()
    }
    return Comparison(frames, games, thresholds, standings, _better(suite, tables))


def _counted(runs: Sequence[Run], frames: int) -> list[Run]:
    return [run for run in runs if run.score_at(frames) is not None]


def _only(scores: Scores, games: Sequence[str]) -> Scores:
    columns = [scores.games.index(game) for game in games]
    return Scores(tuple(games), scores.seeds, scores.values[:, columns])


def _standing(
    purpose: str, values: FloatArray, thresholds: FloatArray, missing: Missing
) -> Standing:
    trimmed = stratified_interval(interquartile_mean, values, rng=generator(f"{purpose} middle"))
    profile = stratified_band(
        lambda runs: performance_profile(runs, thresholds),
        values,
        rng=generator(f"{purpose} profile"),
        repeats=_PROFILE_REPEATS,
    )
    return Standing(_surely(trimmed, len(values)), profile, len(values), missing)


def _better(suite: NamedSuite, tables: Mapping[str, Scores]) -> dict[tuple[str, str], Better]:
    """Every pair once computed: the other way round it is 1 − the same."""
    found: dict[tuple[str, str], Better] = {}
    labels = list(tables)
    for place, below in enumerate(labels):
        for above in labels[place + 1 :]:
            first, second = complete(tables[above]), complete(tables[below])
            if not {*first.games} & {*second.games}:
                continue
            rng = generator(f"{suite.name} {above} over {below}")
            told = improvement(tables[above], tables[below], rng=rng)
            value, low, high = told.probability
            num_seeds = min(len(first.values), len(second.values))
            for pair, estimate in (
                ((above, below), told.probability),
                ((below, above), Interval(1.0 - value, 1.0 - high, 1.0 - low)),
            ):
                found[pair] = Better(_surely(estimate, num_seeds), len(told.games))
    return found


def _surely(interval: Interval, num_seeds: int) -> Estimate:
    """An interval over too few seeds would claim what nobody knows."""
    return interval if num_seeds >= LEAST_SEEDS else interval.value
