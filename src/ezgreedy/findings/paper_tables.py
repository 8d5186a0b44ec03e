"""How do our scores on Atari-57 compare with the paper's? Its tables, and ours in the same form."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ezgreedy.findings.intervals import LEAST_RESAMPLED, Interval
from ezgreedy.findings.score_intervals import SuiteSummary, summary
from ezgreedy.findings.scores import Suite, human_normalised
from ezgreedy.findings.training_scores import TrainingScores

HEADER = (
    "agent",
    "source",
    "frames",
    "games",
    "seeds",
    "median",
    "mean",
    "human-gap",
    "median (best)",
    "mean (best)",
    "missing",
)
NOTHING = "–"
PLUMBING = "plumbing check"  # a run too small to say more than that everything works


class PaperScores(NamedTuple):
    """One line of the paper's tables of Atari-57, 57 games each."""

    agent: str  # our name
    label: str  # the paper's
    frames: int
    seeds: int
    median: float
    mean: float
    human_gap: float
    best_median: float
    best_mean: float


# Paper: both tables of Atari-57, the appendix's includes the other; seeds from its text.
PAPER_GAMES = 57
PAPER_SCORES = (
    PaperScores("r2d2", "R2D2", 30 * 10**9, 3, 16.44, 39.55, 0.102, 19.36, 46.98),
    PaperScores("r2d2-rnd", "R2D2+RND", 30 * 10**9, 3, 11.14, 42.17, 0.151, 14.34, 48.02),
    PaperScores(
        "r2d2-bootstrap", "R2D2+Bootstrap", 30 * 10**9, 3, 16.62, 37.69, 0.096, 19.35, 43.87
    ),
    PaperScores("r2d2-ez", "R2D2+εz-greedy", 30 * 10**9, 3, 17.77, 40.16, 0.077, 22.63, 45.33),
    PaperScores("rainbow", "Rainbow", 200 * 10**6, 5, 2.03, 8.82, 0.139, 2.20, 12.24),
    PaperScores("rainbow-eps", "Rainbow+ε-greedy", 200 * 10**6, 5, 2.26, 9.16, 0.143, 2.56, 12.23),
    PaperScores("rainbow-cts", "Rainbow+CTS", 200 * 10**6, 5, 1.73, 6.67, 0.150, 2.09, 7.62),
    PaperScores("rainbow-ez", "Rainbow+εz-greedy", 200 * 10**6, 5, 2.30, 9.34, 0.130, 2.74, 12.28),
)


class OurScores(NamedTuple):
    """The same numbers for our own runs."""

    frames: int
    final: SuiteSummary
    best: SuiteSummary


class TableRow(NamedTuple):
    """One agent: the paper's numbers, if it has any, and ours, if there are runs."""

    agent: str
    label: str
    paper: PaperScores | None
    ours: OurScores | None

    @property
    def is_comparable(self) -> bool:
        """Whether ours may stand beside the paper's line: as many frames and seeds, or no line."""
        if self.ours is None or self.paper is None:
            return True
        seeds = self.ours.final.num_seeds
        return self.ours.frames >= self.paper.frames and seeds >= self.paper.seeds


def atari57_table(
    ours: Mapping[str, TrainingScores],
    *,
    rng: np.random.Generator,
    suite: Suite | None = None,
    repeats: int = 2000,
) -> list[TableRow]:
    """The paper's eight agents in its order, then our others, with the paper's numbers and ours.

    Numbers are comparable only where frames, games and seeds agree, so each row states its own.

    Args:
        ours: our scores by agent name.
        rng: random generator of the resamples.
        suite: reference scores of each game; by default the 57 games of Atari, the only ones with
            the paper's numbers.
        repeats: number of resamples.
    """
    paper = {line.agent: line for line in PAPER_SCORES} if suite is None else {}
    names = [*paper, *(name for name in ours if name not in paper)]
    rows = []
    for name in names:
        line = paper.get(name)
        label = name if line is None else line.label
        found = _our_scores(ours[name], rng, suite, repeats) if name in ours else None
        rows.append(TableRow(name, label, line, found))
    return rows


def table_cells(rows: Sequence[TableRow]) -> list[tuple[str, ...]]:
    """Rows as text under `HEADER`: for each agent the paper's line, then ours.

    Ours with fewer frames or seeds than the paper's come after all others, as plumbing checks.
    """
    cells = []
    for row in rows:
        if row.paper is not None:
            cells.append(_paper_cells(row.paper))
        cells.append(_our_cells(row if row.is_comparable else row._replace(ours=None)))
    return [*cells, *(_our_cells(row, PLUMBING) for row in rows if not row.is_comparable)]


def _our_scores(
    scores: TrainingScores, rng: np.random.Generator, suite: Suite | None, repeats: int
) -> OurScores:
    final, best = (
        summary(human_normalised(table, suite), rng=rng, repeats=repeats)
        for table in (scores.final, scores.best)
    )
    return OurScores(scores.frames, final, best)


def _paper_cells(line: PaperScores) -> tuple[str, ...]:
    return (
        line.label,
        "paper",
        _frames(line.frames),
        str(PAPER_GAMES),
        str(line.seeds),
        f"{line.median:.2f}",
        f"{line.mean:.2f}",
        f"{line.human_gap:.3f}",
        f"{line.best_median:.2f}",
        f"{line.best_mean:.2f}",
        "",
    )


def _our_cells(row: TableRow, source: str = "ours") -> tuple[str, ...]:
    ours = row.ours
    if ours is None:
        return (row.label, source, "not run", *([NOTHING] * (len(HEADER) - 4)), "")
    final, best = ours.final, ours.best

    def told(interval: Interval, digits: int) -> str:
        return _told(interval, digits, has_ends=final.num_seeds >= LEAST_RESAMPLED)

    return (
        row.label,
        source,
        _frames(ours.frames),
        str(final.num_games),
        str(final.num_seeds),
        told(final.median, 2),
        told(final.mean, 2),
        told(final.human_gap, 3),
        told(best.median, 2),
        told(best.mean, 2),
        str(final.missing),
    )


def _told(interval: Interval, digits: int, *, has_ends: bool) -> str:
    # Adding 0 turns a negative zero, which rounding leaves, into a plain one.
    value, low, high = (
        f"{round(number, digits) + 0.0:.{digits}f}"
        for number in (interval.value, interval.low, interval.high)
    )
    return f"{value} [{low}, {high}]" if has_ends else f"{value} [–]"


def _frames(frames: int) -> str:
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if frames >= size:
            return f"{frames / size:g}{unit}"
    return str(frames)
