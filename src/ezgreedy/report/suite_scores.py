"""How good are agents over a suite of games? The paper's table, and comparisons on equal terms.

A line of the table is at the frames that the agent's own runs share. Agents are compared with each
other at frames at which all of them were evaluated, on games that all of them played: anything else
would compare budgets or games. An agent with too few games for that is left out, lest it decide on
which few all others are compared. What a number was not computed from is named beside it.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ezgreedy.report import wording
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
MEASURES_HEADER = ("game", "becomes 0: random", "becomes 1")

_FEW_GAMES = 8  # whose scores of 0 and 1 are listed

_NUM_THRESHOLDS = 61
_PROFILE_REPEATS = 500
_COMMON_SHARE = 0.95  # of the scores lies within the thresholds of a profile


class Standing(NamedTuple):
    """One agent among others, on the games and at the frames of all.

    Args:
        interquartile_mean: without an interval if there are too few seeds for one.
        profile: the share of its runs above each threshold.
        num_seeds: in every game.
    """

    interquartile_mean: Estimate
    profile: Band
    num_seeds: int


class Comparison(NamedTuple):
    """Agents on equal terms.

    Args:
        frames: at which all of them were evaluated.
        games: that all of them played.
        thresholds: of the profiles.
        standings: by label.
        better: how likely a run of one beats one of another, by both labels.
        left_out: why agents are not among them, by label.
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
        suite: which.
        played: its games that have runs.
        agents: runs by label; one agent's may differ in game, seed, length and in how often and
            for how long they are evaluated.
        frames: by label, at which the agent's own runs are scored.
        rows: of the table, the paper's agents first.
        comparison: None if no two agents share a game and the frames of an evaluation.
        untrained: runs that count nowhere, as they have no evaluation after frame 0.
    """

    suite: NamedSuite
    played: tuple[str, ...]
    agents: Mapping[str, Sequence[Run]]
    frames: Mapping[str, int]
    rows: Sequence[TableRow]
    comparison: Comparison | None
    untrained: Sequence[Run]


def suite_scores(runs: Sequence[Run]) -> list[SuiteScores]:
    """The suites of which at least two games have runs."""
    found = []
    for suite in suites():
        own = [run for run in runs if run.game in suite.games]
        trained = [run for run in own if run.last_evaluated > 0]
        if len({run.game for run in trained}) >= LEAST_GAMES:
            untrained = [run for run in own if run.last_evaluated <= 0]
            found.append(_suite_scores(suite, trained, untrained))
    return found


def suite_header(found: SuiteScores) -> list[str]:
    """Of the table, without what is missing: that is told below it."""
    return [found.suite.gap if title == "human-gap" else title for title in HEADER[:-1]]


def measures(found: SuiteScores) -> list[tuple[str, str, str]]:
    """Game, and the scores that become 0 and 1 in it; nothing for a suite of many games."""
    games = found.suite.games
    return [
        (game, wording.plain(measure.random_score), wording.plain(measure.human_score))
        for game, measure in games.items()
        if len(games) <= _FEW_GAMES
    ]


def made_by(found: SuiteScores) -> str:
    """Which versions of the code made the runs, the most used first; nothing if it was one."""
    runs = [run for own in found.agents.values() for run in own]
    counts = Counter(run.code for run in runs).most_common()
    named = [f"{code} ({wording.counted(count, 'run')})" for code, count in counts]
    return f"Made by {len(named)} versions of the code: {'; '.join(named)}." if named[1:] else ""


def lacking(found: SuiteScores) -> dict[str, str]:
    """What the rows of our agents were not computed from, in words by label."""
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
    if found.untrained:
        names = [f"{run.agent} on {run.game}, seed {run.seed}" for run in found.untrained]
        told["not counted, without an evaluation after frame 0"] = "; ".join(names)
    return told


def _not_there(found: SuiteScores, label: str) -> tuple[tuple[str, int], ...]:
    """Game and seed of an agent's runs that have no evaluation at the frames of its line."""
    return tuple(
        (run.game, run.seed)
        for run in found.agents.get(label, ())
        if run.score_at(found.frames[label]) is None
    )


def left_out_told(equal: Comparison) -> str:
    """Agents that are not compared, and why."""
    return ", ".join(f"{label} ({why})" for label, why in equal.left_out.items())


def _suite_scores(suite: NamedSuite, runs: Sequence[Run], untrained: Sequence[Run]) -> SuiteScores:
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
        untrained,
    )


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
        """Most cells of agents and games; of equally many the most games, then frames."""
        return len(self.labels) * len(self.games), len(self.games), self.frames


def _terms(suite: NamedSuite, agents: Mapping[str, Sequence[Run]]) -> _Terms | None:
    """On which agents can be compared: the fewer games an agent has, the less it may decide.

    Args:
        suite: which has the games.
        agents: the runs that an agent's own line counts, by label.
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
            break  # whatever its frames are
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
    """Every pair once computed: the other way round it is 1 − the same."""
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
    """An interval over too few seeds would claim what nobody knows."""
    return interval if num_seeds >= LEAST_SEEDS else interval.value
