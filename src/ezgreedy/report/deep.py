"""What did the deep agents learn? Runs by game and agent: scores, differences, plain answers.

Runs that differ only in seed form a group. Its numbers are over the runs that got furthest, so that
none mixes an agent at the beginning with the same agent at the end; runs still behind are counted,
not averaged. An interval needs three seeds and an answer five. Questions that are the same in
several games are one family of comparisons, and are corrected as such.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ezgreedy.findings.comparisons import LARGEST_FALSE_SHARE, adjusted, welch_p
from ezgreedy.findings.intervals import LEAST_SEEDS, Interval, difference_interval, mean_interval
from ezgreedy.findings.judging import LEAST_FOR_A_VERDICT
from ezgreedy.findings.paper_tables import PLUMBING
from ezgreedy.findings.scores import Missing
from ezgreedy.findings.training_scores import shared_frames
from ezgreedy.findings.variants import variants
from ezgreedy.games.atari.atari57 import games
from ezgreedy.games.minatar_scores import (
    PUBLISHED_ACCURACY,
    PUBLISHED_FRAMES,
    minatar_scores,
)
from ezgreedy.report import wording
from ezgreedy.results.runs import LATEST, Report, Run, not_begun, read_run, run_directories
from ezgreedy.seeding import role_seed
from ezgreedy.units import counted

LAST_FRAMES = 100_000
_TOO_FEW = f"An answer needs {LEAST_FOR_A_VERDICT} seeds."

# Atari games have no published scores of fewer frames than these, those of Atari-100k.
_LEAST_ATARI_FRAMES = 400_000

PUBLISHED_DQN = {
    name: found.dqn_score for name, found in minatar_scores().items() if found.is_comparable
}

# Agents that differ only in how long exploratory actions last: one step, or longer.
PAIRS = (("rainbow-eps", "rainbow-ez"), ("r2d2", "r2d2-ez"))

Estimate = Interval | float | None  # None if nothing was measured
Reply = Literal["yes", "no", "open"]


@dataclass(frozen=True)
class Group:
    """Runs that differ only in seed.

    Args:
        game: name of the game.
        agent: name of the agent.
        label: name of the agent, with what distinguishes it from other groups of the same agent.
        runs: the runs that got furthest, by seed.
        behind: the other runs.
    """

    game: str
    agent: str
    label: str
    runs: Sequence[Run]
    behind: Sequence[Run]

    @property
    def num_scores(self) -> int:
        """The number of evaluations of every run."""
        return len(self.runs[0].scores)

    @property
    def frames(self) -> int:
        """How far the runs got: to the last evaluation, or report, of the slowest."""
        return min(run.frames for run in self.runs)

    @property
    def frames_to_play(self) -> int:
        """How far the runs are meant to get."""
        return max(run.frames_to_play for run in self.runs)

    @property
    def is_plumbing(self) -> bool:
        """Whether this says no more than that everything works: one seed, or few frames."""
        is_short = self.game in games() and self.frames < _LEAST_ATARI_FRAMES
        return len(self.runs) == 1 or is_short

    @property
    def final_scores(self) -> list[float]:
        """One number for each run: its last evaluation, as in the tables of suites."""
        return [run.scores[-1].mean_return for run in self.runs]

    def evaluated_at(self, frames: int) -> list[float] | None:
        """One number for each run: the evaluation at these frames; None if a run has none there."""
        return _evaluated(self.runs, frames)

    @property
    def compared_runs(self) -> list[Run]:
        """The runs to compare with other agents.

        Where those that are level are too few for a verdict, shorter ones that are finished count.
        """
        is_enough = len(self.runs) >= LEAST_FOR_A_VERDICT
        return [*self.runs, *(run for run in self.behind if run.is_finished and not is_enough)]

    def training_returns(self, frames: int) -> list[float] | None:
        """One number for each run: mean over the episodes of the last 100K frames up to here."""
        found = [_mean_of(_within(run.reports, frames - LAST_FRAMES, frames)) for run in self.runs]
        known = [value for value in found if value is not None]
        return known if len(known) == len(found) else None


class Row(NamedTuple):
    """One row of the table: the numbers of a group."""

    group: Group
    final: Estimate  # the last evaluation of each run
    best: Estimate  # the best evaluation of each run
    training: Estimate  # return of training episodes, last frames
    explored: Estimate  # share of exploratory steps in training


class Answer(NamedTuple):
    """A question that a game's runs can answer, or cannot yet."""

    question: str
    verdict: Reply
    because: str
    p: float | None = None  # of no difference, before correction; None if it is not to be corrected


@dataclass(frozen=True)
class GameStudy:
    """Everything about one game."""

    name: str
    rows: Sequence[Row]
    answers: Sequence[Answer]

    @property
    def slug(self) -> str:
        """The name for files and links."""
        return self.name.lower().replace("/", "-")

    @property
    def is_plumbing(self) -> bool:
        """Whether all its groups are plumbing checks."""
        return all(row.group.is_plumbing for row in self.rows)


@dataclass(frozen=True)
class DeepStudy:
    """All runs by game.

    Args:
        games: games in order of their names, those with nothing but plumbing checks last.
        runs: all runs read, without those left out.
        left_out: runs not used, or not begun by a sweep, and why, in words.
    """

    games: Sequence[GameStudy]
    runs: Sequence[Run]
    left_out: Sequence[str]

    @property
    def best_known(self) -> GameStudy | None:
        """The game with the most runs, which a reader sees first."""
        return max(
            self.games, key=lambda game: sum(len(row.group.runs) for row in game.rows), default=None
        )


def read_deep_study(sources: Sequence[Path]) -> DeepStudy:
    """The study of the runs in some directories; see `deep_study`.

    Runs that a sweep among them has not begun are left out by name as well.
    """
    directories = [path for source in sources for path in run_directories(source)]
    study = deep_study([read_run(directory) for directory in directories])
    absent = [words for source in dict.fromkeys(sources) for words in _not_begun(source)]
    return replace(study, left_out=[*study.left_out, *absent])


def deep_study(runs: Sequence[Run]) -> DeepStudy:
    """Runs by game; duplicates and runs without an evaluation are left out by name."""
    kept: dict[str, Run] = {}
    left_out = []
    for run in runs:
        if not run.scores:
            left_out.append(f"{run.path.name}: no evaluation yet")
            continue
        other = kept.get(run.identity())
        is_longer = other is None or _length(run) > _length(other)
        first, second = (run, other) if is_longer else (other, run)
        assert first is not None
        kept[first.identity()] = first
        if second is not None and second.path.resolve() != first.path.resolve():
            left_out.append(
                f"{_place(second)}: the same run as {_place(first)}, which has as much or more"
            )
    used = sorted(kept.values(), key=lambda run: (run.game, run.agent, run.seed))
    by_game: dict[str, list[Run]] = {}
    for run in used:
        by_game.setdefault(run.game, []).append(run)
    games = _corrected([_game(name, _groups(name, own)) for name, own in by_game.items()])
    return DeepStudy(sorted(games, key=lambda game: game.is_plumbing), used, left_out)


def estimate(samples: Sequence[float] | None) -> Estimate:
    """The mean over seeds, one number each, with a t interval if there are enough seeds."""
    if not samples:
        return None
    if len(samples) < LEAST_SEEDS:
        return float(np.mean(samples))
    return mean_interval(samples)


def generator(purpose: str) -> np.random.Generator:
    """The random generator of the resamples for one purpose."""
    return np.random.default_rng(role_seed(0, purpose))


def _not_begun(sweep: Path) -> list[str]:
    return [
        f"{sweep.name}: {counted(len(runs), 'run')} of {agent} not begun "
        f"({Missing(runs=tuple(runs))})"
        for agent, runs in not_begun(sweep).items()
    ]


def _length(run: Run) -> tuple[int, int]:
    return len(run.scores), len(run.reports)


def _place(run: Run) -> str:
    return f"{run.path.parent.name}/{run.path.name}"


def _groups(game: str, runs: Sequence[Run]) -> list[Group]:
    groups: list[Group] = []
    for label, alike in variants(runs).items():
        first = max(alike, key=_progress)
        ahead = [run for run in alike if _is_level(run, first)]
        behind = [run for run in alike if not _is_level(run, first)]
        groups.append(Group(game, alike[0].agent, label, ahead, behind))
    return groups


def _progress(run: Run) -> tuple[int, int]:
    return len(run.scores), run.last_evaluated


def _is_level(run: Run, first: Run) -> bool:
    """Whether a run has as many evaluations as the first, the last one at the same frames.

    Runs of other lengths may have as many, with the last at 500K frames rather than 600K.
    """
    is_near = first.last_evaluated <= LATEST * run.last_evaluated
    return len(run.scores) == len(first.scores) and is_near


def _evaluated(runs: Sequence[Run], frames: int) -> list[float] | None:
    """One number for each run: the evaluation at these frames; None if a run has none there."""
    found = [run.score_at(frames) for run in runs]
    known = [score for score in found if score is not None]
    return known if len(known) == len(found) else None


def _within(reports: Sequence[Report], after: int, until: int) -> list[Report]:
    return [report for report in reports if after < report.frames <= until]


def _mean_of(reports: Sequence[Report]) -> float | None:
    """The mean over the episodes of all reports."""
    counted = [report for report in reports if report.mean_return is not None]
    if not counted:
        return None
    returns = [report.mean_return for report in counted]
    return float(np.average(np.array(returns), weights=[report.episodes for report in counted]))


def _game(name: str, groups: Sequence[Group]) -> GameStudy:
    rows = [_row(group) for group in groups]
    answers = [*_published_answers(name, groups), *_pair_answers(groups)]
    return GameStudy(name, rows, answers)


def _row(group: Group) -> Row:
    return Row(
        group,
        estimate(group.final_scores),
        estimate([max(score.mean_return for score in run.scores) for run in group.runs]),
        estimate(group.training_returns(group.frames)),
        estimate(_explored(group)),
    )


def _explored(group: Group) -> list[float] | None:
    shares = [[report.explored_share for report in run.reports] for run in group.runs]
    return [float(np.mean(row)) for row in shares] if all(shares) else None


def _published_answers(game: str, groups: Sequence[Group]) -> list[Answer]:
    if game not in PUBLISHED_DQN:
        return []
    return [_published_answer(group, PUBLISHED_DQN[game]) for group in groups]


def _published_answer(group: Group, published: float) -> Answer:
    question = (
        f"Does {group.label} reach the published DQN figure (about {published:g} at 1M frames)?"
    )
    if group.frames < PUBLISHED_FRAMES:
        came = f"{wording.plain(group.frames)} of {wording.plain(PUBLISHED_FRAMES)} frames"
        return Answer(question, "open", f"It has played {came}.")
    found = estimate(group.training_returns(PUBLISHED_FRAMES))
    if found is None:
        return Answer(question, "open", "No training episode finished there.")
    value, low = (found.value, found.low) if isinstance(found, Interval) else (found, found)
    least = (1.0 - PUBLISHED_ACCURACY) * published
    doubt = "; the mean does, the interval reaches below" if low < least <= value else ""
    there = estimate(group.evaluated_at(PUBLISHED_FRAMES))
    because = (
        f"Training return of the 100K frames before: {told(found)}{_seeds(group)}{doubt}. "
        f"Evaluated there: {told(there)}."
    )
    if len(group.runs) < LEAST_FOR_A_VERDICT:
        return Answer(question, "open", f"{because} {_TOO_FEW}")
    if isinstance(found, Interval) and found.low < least <= found.high:
        return Answer(question, "open", because)
    return Answer(question, "yes" if value >= least else "no", because)


def _pair_answers(groups: Sequence[Group]) -> list[Answer]:
    return [
        _pair_answer(below, above)
        for without, with_durations in PAIRS
        for below in groups
        for above in groups
        if below.agent == without and above.agent == with_durations
    ]


def _pair_answer(below: Group, above: Group) -> Answer:
    question = f"Does {above.label} score higher than {below.label}?"
    shared = shared_frames([*above.compared_runs, *below.compared_runs])
    first, second = (_evaluated(group.compared_runs, shared) for group in (above, below))
    if not shared or first is None or second is None:
        return Answer(question, "open", "They share no evaluation in training at the same frames.")
    frames = wording.plain(shared)
    num_seeds = min(len(first), len(second))
    if num_seeds < LEAST_SEEDS:
        difference = float(np.mean(first) - np.mean(second))
        return Answer(
            question, "open", f"Difference: {told(difference)} at {frames} frames. {_TOO_FEW}"
        )
    found = difference_interval(first, second)
    because = f"Difference: {told(found)} at {frames} frames, {counted(num_seeds, 'seed')} of each."
    if num_seeds < LEAST_FOR_A_VERDICT:
        return Answer(question, "open", f"{because} {_TOO_FEW}")
    return Answer(question, "yes" if found.value > 0 else "no", because, welch_p(first, second))


def _corrected(games: Sequence[GameStudy]) -> list[GameStudy]:
    """Leaves open what chance may explain, given in how many games the same is asked."""
    families: dict[str, dict[str, float]] = {}
    for game in games:
        for answer in game.answers:
            if answer.p is not None:
                families.setdefault(answer.question, {})[game.name] = answer.p
    ps = {question: adjusted(family) for question, family in families.items()}
    return [
        replace(game, answers=[_settled(answer, ps, game.name) for answer in game.answers])
        for game in games
    ]


def _settled(answer: Answer, ps: Mapping[str, Mapping[str, float]], game: str) -> Answer:
    if answer.p is None:
        return answer
    p = ps[answer.question][game]
    games = counted(len(ps[answer.question]), "game")
    because = f"{answer.because} p = {p:.2g}, corrected for {games}."
    is_open = p > LARGEST_FALSE_SHARE
    return answer._replace(verdict="open" if is_open else answer.verdict, because=because)


def told(found: Estimate) -> str:
    """An estimate as text; a dash if the interval, or everything, is missing."""
    if found is None:
        return "–"
    return wording.written(found) if isinstance(found, Interval) else f"{wording.plain(found)} [–]"


def seeds_told(group: Group) -> str:
    """`3`, or `2 of 3` if one is behind."""
    total = len(group.runs) + len(group.behind)
    return str(total) if not group.behind else f"{len(group.runs)} of {total}"


def label_told(group: Group) -> str:
    """The agent, and that it is a plumbing check if it is."""
    return f"{group.label} ({PLUMBING})" if group.is_plumbing else group.label


def frames_told(group: Group) -> str:
    """Frames played, and of how many if some run is unfinished."""
    frames = wording.plain(group.frames)
    is_whole = all(run.is_finished for run in group.runs)
    return frames if is_whole else f"{frames} of {wording.plain(group.frames_to_play)}"


def _seeds(group: Group) -> str:
    few = len(group.runs) < LEAST_SEEDS
    return f", {counted(len(group.runs), 'seed')} only" if few else ""
