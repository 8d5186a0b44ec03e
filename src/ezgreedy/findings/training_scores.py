"""What did training runs score at the end, at their best and along the way?

Paper: tables report "the final trained agents", and "best (instead of final) evaluation scores for
each training run". The final score is a run's evaluation at a number of frames at which all runs
have one, the best score its highest evaluation until then. Both are taken within a run, before
averaging over seeds. Runs without an evaluation there count as missing, by name.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.findings.scores import (
    Complete,
    Missing,
    Scores,
    Suite,
    complete,
    human_normalised,
    scores_of,
)
from ezgreedy.requirements import FloatArray, IntArray
from ezgreedy.results.runs import LATEST, Run


@dataclass(frozen=True)
class TrainingScores:
    """One agent's raw scores after the same number of frames in every run.

    Args:
        frames: training frames of each run.
        final: the evaluation at these frames.
        best: the highest evaluation until then, including the one at frame 0.
    """

    frames: int
    final: Scores
    best: Scores


class ScoreCurves(NamedTuple):
    """Human-normalised scores over training, for any statistic: `median(curves.values)`.

    Args:
        frames: training frames, [points].
        games: the games that count, at every point.
        values: [points, seeds, games]; a row is the same run at every point.
        missing: games and runs left out, at every point.
    """

    frames: IntArray
    games: tuple[str, ...]
    values: FloatArray
    missing: Missing


def by_agent(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs by the names of their agents, in order of game and seed.

    Runs of one name that differ in more than game, seed and length are refused, with the settings
    that differ; so are duplicate runs.
    """
    found: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (run.agent, run.game, run.seed)):
        found.setdefault(run.agent, []).append(run)
    for together in found.values():
        _check_alike(together)
    return found


def shared_frames(runs: Sequence[Run]) -> int:
    """The largest number of frames at which every run has an evaluation; 0 if there is none."""
    return _shared([_Line.of(run) for run in runs])


def training_scores(
    runs: Sequence[Run], frames: int | None = None, seeds: Sequence[int] = ()
) -> TrainingScores:
    """Final and best scores of one agent's runs.

    Args:
        runs: runs of one agent, see `by_agent`.
        frames: frames at which runs are scored. By default the largest number at which every run
            has an evaluation; runs behind the length of the shortest do not count once another
            run has reached it. If runs share no evaluation, the end that most of them have.
        seeds: expected seeds, if more than those of the runs.
    """
    _check_alike(runs)
    lines = [_Line.of(run) for run in runs]
    until = _common_end(lines) if frames is None else require.integer("frames", frames, least=0)
    if all(line.place(until) is None for line in lines):
        raise require.refuse("frames", "be those of an evaluation of a run", until)
    return TrainingScores(
        until,
        scores_of(((line.game, line.seed, line.final(until)) for line in lines), seeds),
        scores_of(((line.game, line.seed, line.best(until)) for line in lines), seeds),
    )


def score_curves(
    runs: Sequence[Run],
    frames: int | None = None,
    suite: Suite | None = None,
    least_seeds: int = 1,
    most_points: int | None = None,
) -> ScoreCurves:
    """Normalised scores at every evaluation that runs share, for the runs that reach the end.

    Games and runs are the same at every point, those of the last one: otherwise a curve would rise
    and fall as runs come and go.

    Args:
        runs: runs of one agent, see `by_agent`.
        frames: where curves end; see `training_scores`.
        suite: reference scores of each game; the 57 games of Atari if None.
        least_seeds: a game with fewer runs than this counts as missing.
        most_points: number of points above which they are thinned evenly; None for all points.
    """
    until = training_scores(runs, frames).frames
    lines = [_Line.of(run) for run in runs]
    shared = _shared_points(lines, until)
    points = shared if most_points is None else shared[thinned(len(shared), most_points)]
    tables = [_table(lines, (int(point), until), suite, least_seeds) for point in points]
    return ScoreCurves(
        points,
        tables[-1].games,
        np.stack([table.values for table in tables]),
        tables[-1].missing,
    )


def raw_curves(runs: Sequence[Run], frames: int | None = None) -> tuple[IntArray, FloatArray]:
    """Scores of one game's runs at every evaluation that those which reach the end share.

    Args:
        runs: runs of one agent in one game.
        frames: where curves end; see `training_scores`.

    Returns:
        Training frames, [points], and scores, [points, runs].
    """
    until = training_scores(runs, frames).frames
    lines = [line for line in map(_Line.of, runs) if line.place(until) is not None]
    points = _shared_points(lines, until)
    values = [[line.final(int(point)) for line in lines] for point in points]
    return points, np.array(values, dtype=np.float64)


def thinned(length: int, most: int) -> IntArray:
    """Indices of at most `most` of `length` points, evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(np.int64))


class _Line(NamedTuple):
    """A run's evaluations, [evaluations], in order of their frames, and its intended length."""

    game: str
    seed: int
    meant: int
    frames: IntArray
    returns: FloatArray

    @classmethod
    def of(cls, run: Run) -> "_Line":
        scores = sorted(run.scores, key=lambda score: score.frames)
        return cls(
            run.game,
            run.seed,
            run.frames_to_play,
            np.array([score.frames for score in scores], dtype=np.int64),
            np.array([score.mean_return for score in scores], dtype=np.float64),
        )

    @property
    def last(self) -> int:
        return int(self.frames[-1]) if len(self.frames) else -1

    @property
    def end(self) -> int:
        """Frames of the last evaluation, without overshoot of the intended length."""
        return self.last if self.place(self.meant) is None else self.meant

    def place(self, frames: int) -> int | None:
        """Index of the evaluation at these frames, which a run can overshoot by a little."""
        found = int(np.searchsorted(self.frames, frames))
        is_there = found < len(self.frames) and self.frames[found] <= LATEST * frames
        return found if is_there else None

    def before(self, frames: int) -> int:
        """Frames of the last evaluation before these; 0 if there is none."""
        found = int(np.searchsorted(self.frames, frames))
        return int(self.frames[found - 1]) if found else 0

    def final(self, frames: int) -> float | None:
        found = self.place(frames)
        return None if found is None else float(self.returns[found])

    def best(self, frames: int) -> float | None:
        found = self.place(frames)
        return None if found is None else float(self.returns[: found + 1].max())


def _table(
    lines: Sequence[_Line], frames: tuple[int, int], suite: Suite | None, least_seeds: int
) -> Complete:
    """Scores at the first of two frame counts, for the runs that reach the second."""
    point, until = frames
    scores = scores_of(
        (line.game, line.seed, None if line.place(until) is None else line.final(point))
        for line in lines
    )
    return complete(human_normalised(scores, suite), least_seeds)


def _common_end(lines: Sequence[_Line]) -> int:
    """Where an agent's runs are scored: see `training_scores`."""
    length = min(line.meant for line in lines)
    counted = [line for line in lines if line.last >= length]
    counted = counted or [line for line in lines if line.last > 0]
    shared = _shared(counted)
    if shared or not counted:
        return shared
    ends = {line.end for line in counted}
    return max(ends, key=lambda end: (sum(line.place(end) is not None for line in counted), end))


def _shared(lines: Sequence[_Line]) -> int:
    """The largest number of frames at which every line has an evaluation; 0 if there is none.

    Searches downwards from the end of the shortest: if a line has no evaluation there, nothing
    above its previous one is shared.
    """
    frames = min((line.end for line in lines), default=0)
    while frames > 0:
        absent = [line.before(frames) for line in lines if line.place(frames) is None]
        if not absent:
            return frames
        frames = min(absent)
    return 0


def _shared_points(lines: Sequence[_Line], until: int) -> IntArray:
    """Frames at which all runs evaluated at the end were evaluated, and the end."""
    there = [line for line in lines if line.place(until) is not None]
    points = np.unique(np.concatenate([line.frames for line in there]))
    points = points[points < until]
    for line in there:
        places = np.searchsorted(line.frames, points)  # never past its last evaluation
        points = points[line.frames[places] <= LATEST * points]
    return np.append(points, until)


def _check_alike(runs: Sequence[Run]) -> None:
    if not runs:
        raise require.refuse("runs", "hold at least one", runs)
    seen: dict[tuple[str, int], Run] = {}
    for run in runs:
        other = seen.setdefault((run.game, run.seed), run)
        if other is not run:
            raise require.refuse(
                "runs",
                "hold each game and seed of an agent once",
                require.Described(f"{run.game}, seed {run.seed}, in {other.path} and {run.path}"),
            )
        names = _differences(runs[0], run)
        if names:
            rule = "differ only in game, seed, length and how often they are evaluated"
            differ = f"{runs[0].path} and {run.path}, which differ in {', '.join(names)}"
            raise require.refuse("runs", rule, require.Described(differ))


def _differences(*runs: Run) -> list[str]:
    first, second = (run.telling(has_seed=False, has_game=False) for run in runs)
    names = sorted({*first, *second})
    return [name for name in names if _plain(first, name) != _plain(second, name)]


def _plain(settings: Mapping[str, Any], name: str) -> str:
    return json.dumps(settings.get(name), sort_keys=True)
