"""How good are agents over a suite of games? The paper's table, and comparisons on equal terms.

A row of the table is at the frames that the agent's own runs share. Agents are compared with each
other at frames at which all of them were evaluated, on games that all of them played: anything else
would compare budgets or games. An agent with too few games is left out, so that it does not reduce
the games on which all others are compared. Missing games and runs are named beside each number.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ezgreedy.findings.intervals import LEAST_RESAMPLED, Interval
from ezgreedy.findings.paper_tables import HEADER, TableRow, atari57_table
from ezgreedy.findings.score_intervals import (
    Band,
    improvement,
    stratified_band,
    stratified_interval,
)
from ezgreedy.findings.scores import (
    Missing,
    Scores,
    complete,
    human_normalised,
    interquartile_mean,
    performance_profile,
)
from ezgreedy.findings.suites import suites
from ezgreedy.findings.training_scores import TrainingScores, shared_frames, training_scores
from ezgreedy.findings.variants import variants
from ezgreedy.games.family import NamedSuite
from ezgreedy.report import wording
from ezgreedy.report.deep import Estimate, generator
from ezgreedy.requirements import FloatArray
from ezgreedy.results.runs import Run
from ezgreedy.units import counted

LEAST_GAMES = 2  # for a median over games
LEAST_SHOWN = 5  # games of a suite that a report shows
MEASURES_HEADER = ("game", "becomes 0: random", "becomes 1")

_FEW_GAMES = 8  # at most this many have their scores of 0 and 1 listed

_NUM_THRESHOLDS = 61
_PROFILE_REPEATS = 500
_COMMON_SHARE = 0.95  # of the scores, within the thresholds of a profile


class Standing(NamedTuple):
    """One agent in a comparison, on the games and at the frames of all agents.

    Args:
        interquartile_mean: interquartile mean, without an interval if there are too few seeds.
        profile: share of its runs above each threshold.
        num_seeds: number of seeds of every game.
    """

    interquartile_mean: Estimate
    profile: Band
    num_seeds: int


class Comparison(NamedTuple):
    """Agents on equal terms.

    Args:
        frames: frames at which all of them were evaluated.
        games: games that all of them played.
        thresholds: thresholds of the profiles.
        standings: standing of each agent, by label.
        better: probability that a run of one agent beats one of another, by both labels.
        left_out: why agents are left out, by label.
    """

    frames: int
    games: tuple[str, ...]
    thresholds: FloatArray
    standings: Mapping[str, Standing]
    better: Mapping[tuple[str, str], Estimate]
    left_out: Mapping[str, str]


class SuiteScores(NamedTuple):
    """Everything about one suite.

    Args:
        suite: the suite.
        played: games of the suite that have runs.
        agents: runs by label; runs of an agent may differ in game, seed, length and in how often
            and for how long they are evaluated.
        frames: frames at which each agent's own runs are scored, by label.
        rows: rows of the table, the paper's agents first.
        comparison: comparison of agents; None if no two share a game and an evaluation.
        uncounted: runs that do not count, by the reason.
    """

    suite: NamedSuite
    played: tuple[str, ...]
    agents: Mapping[str, Sequence[Run]]
    frames: Mapping[str, int]
    rows: Sequence[TableRow]
    comparison: Comparison | None
    uncounted: Mapping[str, Sequence[Run]]


def suite_scores(runs: Sequence[Run], least_games: int = LEAST_GAMES) -> list[SuiteScores]:
    """The suites with runs on enough games.

    Args:
        runs: runs of any games.
        least_games: number of games of a suite that must have runs.
    """
    found = []
    for suite in suites():
        own = [run for run in runs if run.game in suite.games]
        trained = [run for run in own if run.last_evaluated > 0]
        if len({run.game for run in trained}) >= least_games:
            found.append(_suite_scores(suite, own))
    return found


def suite_header(found: SuiteScores) -> list[str]:
    """The header of the table, without the missing runs, which are listed below it."""
    return [found.suite.gap if title == "human-gap" else title for title in HEADER[:-1]]


def measures(found: SuiteScores) -> list[tuple[str, str, str]]:
    """Each game with the scores that become 0 and 1; empty for a suite of many games."""
    games = found.suite.games
    return [
        (game, wording.plain(measure.random_score), wording.plain(measure.human_score))
        for game, measure in games.items()
        if len(games) <= _FEW_GAMES
    ]


def made_by(found: SuiteScores) -> str:
    """The versions of the code that made the runs, most used first; empty if there is only one."""
    runs = [run for own in found.agents.values() for run in own]
    counts = Counter(run.code for run in runs).most_common()
    named = [f"{code} ({counted(count, 'run')})" for code, count in counts]
    return f"Made by {len(named)} versions of the code: {'; '.join(named)}." if named[1:] else ""


def lacking(found: SuiteScores) -> dict[str, str]:
    """Games and runs missing from our agents' rows, in words by label."""
    told = {}
    for row in found.rows:
        missing = row.ours.final.missing if row.ours else Missing()
        elsewhere = _not_there(found, row.agent)
        missing = missing._replace(runs=tuple(run for run in missing.runs if run not in elsewhere))
        present = [game for game in found.suite.games if game not in missing.games]
        words = str(missing)
        if len(missing.games) > len(present):
            rest = str(missing._replace(games=()))
            words = "; ".join([f"all games but {', '.join(present)}", *([rest] if rest else [])])
        if elsewhere:
            frames = wording.plain(found.frames[row.agent])
            words += f"; no evaluation at {frames} frames: {Missing(runs=elsewhere)}"
        if words:
            told[row.label] = words
    for reason, runs in found.uncounted.items():
        names = [f"{run.agent} on {run.game}, seed {run.seed}" for run in runs]
        if names:
            told[f"not counted, {reason}"] = "; ".join(names)
    return told


def _not_there(found: SuiteScores, label: str) -> tuple[tuple[str, int], ...]:
    """Game and seed of an agent's runs without an evaluation at the frames of its row."""
    return tuple(
        (run.game, run.seed)
        for run in found.agents.get(label, ())
        if run.score_at(found.frames[label]) is None
    )


def left_out_told(equal: Comparison) -> str:
    """Agents that are not compared, and why."""
    return ", ".join(f"{label} ({why})" for label, why in equal.left_out.items())


def _suite_scores(suite: NamedSuite, runs: Sequence[Run]) -> SuiteScores:
    in_order = sorted(runs, key=lambda run: (run.agent, run.game, run.seed))
    trained = [run for run in in_order if run.last_evaluated > 0]
    every = variants(trained, across_games=True)
    agents = {label: _longest(own) for label, own in every.items()}
    used = {id(run) for own in agents.values() for run in own}
    scores = {label: training_scores(own) for label, own in agents.items()}
    rows = atari57_table(scores, rng=generator(f"{suite.name} table"), suite=suite.measures)
    return SuiteScores(
        suite,
        tuple(game for game in suite.games if any(run.game == game for run in trained)),
        agents,
        {label: found.frames for label, found in scores.items()},
        rows,
        _comparison(suite, agents, scores),
        {
            "without an evaluation after frame 0": [r for r in in_order if r.last_evaluated <= 0],
            "shorter than another run of the game and seed, which differs only in evaluation": [
                run for run in trained if id(run) not in used
            ],
        },
    )


def _longest(runs: Sequence[Run]) -> list[Run]:
    """The longest run of each game and seed; others may differ in how often it is evaluated."""
    longest: dict[tuple[str, int], Run] = {}
    for run in runs:
        place = (run.game, run.seed)
        longest[place] = max(longest.get(place, run), run, key=lambda run: run.last_evaluated)
    return list(longest.values())


def _comparison(
    suite: NamedSuite, agents: Mapping[str, Sequence[Run]], scores: Mapping[str, TrainingScores]
) -> Comparison | None:
    own = {label: _counted(runs, scores[label].frames) for label, runs in agents.items()}
    terms = _terms(suite, own)
    if terms is None:
        return None
    tables = {
        label: _only(
            human_normalised(training_scores(agents[label], terms.frames).final, suite.measures),
            terms.games,
        )
        for label in terms.labels
    }
    alike = {label: complete(table).values for label, table in tables.items()}
    every = np.concatenate([values.ravel() for values in alike.values()])
    thresholds = np.linspace(0.0, max(1.0, np.quantile(every, _COMMON_SHARE)), _NUM_THRESHOLDS)
    return Comparison(
        terms.frames,
        terms.games,
        thresholds,
        {
            label: _standing(f"{suite.name} {label}", values, thresholds)
            for label, values in alike.items()
        },
        _better(suite, tables),
        {label: _why(runs, terms) for label, runs in own.items() if label not in terms.labels},
    )


class _Terms(NamedTuple):
    """Agents that all have runs of the same games, evaluated at the same frames."""

    labels: tuple[str, ...]
    games: tuple[str, ...]
    frames: int

    @property
    def worth(self) -> tuple[int, int, int]:
        """Number of agents × games, then of games, then of frames: more is better."""
        return len(self.labels) * len(self.games), len(self.games), self.frames


def _terms(suite: NamedSuite, agents: Mapping[str, Sequence[Run]]) -> _Terms | None:
    """The best terms for comparing agents: an agent with few games decides little.

    Args:
        suite: suite of the games.
        agents: runs that count in each agent's own row, by label.
    """
    played = {label: {run.game for run in runs} for label, runs in agents.items()}
    shared: set[frozenset[str]] = set()
    for games in played.values():
        shared |= {frozenset(games), *(other & games for other in shared)}
    choices = [
        _Terms(
            tuple(label for label, own in played.items() if games <= own),
            tuple(game for game in suite.games if game in games),
            0,
        )
        for games in shared
    ]
    best: _Terms | None = None
    for choice in sorted(choices, key=lambda choice: (choice.worth, choice.games), reverse=True):
        if best is not None and choice.worth[0] < best.worth[0]:
            break  # for any frames
        for terms in _with_frames(choice, agents):
            if (
                terms.games
                and len(terms.labels) >= 2
                and (best is None or terms.worth > best.worth)
            ):
                best = terms
    return best


def _with_frames(choice: _Terms, agents: Mapping[str, Sequence[Run]]) -> Iterator[_Terms]:
    """The same games at frames that all of the agents share, or where one of them ends."""
    runs = {
        label: [run for run in agents[label] if run.game in choice.games] for label in choice.labels
    }
    together = [run for own in runs.values() for run in own]
    for frames in {shared_frames(own) for own in (together, *runs.values())} - {0}:
        at = {label: {run.game for run in _counted(own, frames)} for label, own in runs.items()}
        labels = tuple(label for label, games in at.items() if games >= {*choice.games})
        yield choice._replace(labels=labels, frames=frames)


def _why(runs: Sequence[Run], terms: _Terms) -> str:
    """Why an agent is left out."""
    games = {run.game for run in runs} & {*terms.games}
    if len(games) == len(terms.games):
        return f"not evaluated at {wording.plain(terms.frames)} frames"
    return f"{len(games) or 'none'} of these games"


def _counted(runs: Sequence[Run], frames: int) -> list[Run]:
    return [run for run in runs if run.score_at(frames) is not None]


def _only(scores: Scores, games: Sequence[str]) -> Scores:
    columns = [scores.games.index(game) for game in games]
    return Scores(tuple(games), scores.seeds, scores.values[:, columns])


def _standing(purpose: str, values: FloatArray, thresholds: FloatArray) -> Standing:
    trimmed = stratified_interval(interquartile_mean, values, rng=generator(f"{purpose} middle"))
    profile = stratified_band(
        lambda runs: performance_profile(runs, thresholds),
        values,
        rng=generator(f"{purpose} profile"),
        repeats=_PROFILE_REPEATS,
    )
    return Standing(_surely(trimmed, len(values)), profile, len(values))


def _better(suite: NamedSuite, tables: Mapping[str, Scores]) -> dict[tuple[str, str], Estimate]:
    """Each pair is computed once; the reverse is 1 − its probability."""
    found: dict[tuple[str, str], Estimate] = {}
    for below, above in itertools.combinations(tables, 2):
        rng = generator(f"{suite.name} {above} over {below}")
        told = improvement(tables[above], tables[below], rng=rng).probability
        num_seeds = min(len(complete(tables[label]).values) for label in (above, below))
        opposite = Interval(1.0 - told.value, 1.0 - told.high, 1.0 - told.low)
        found[above, below] = _surely(told, num_seeds)
        found[below, above] = _surely(opposite, num_seeds)
    return found


def _surely(interval: Interval, num_seeds: int) -> Estimate:
    """The interval, or only its value if there are too few seeds."""
    return interval if num_seeds >= LEAST_RESAMPLED else interval.value
