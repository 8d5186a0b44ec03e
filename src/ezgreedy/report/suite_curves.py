"""How do medians, means and gaps over a suite grow with frames, and how are scores spread?

Every point of a curve uses the same runs, those of the agent's row in the table.
"""

import numpy as np

from ezgreedy.figures.colours import colours_of
from ezgreedy.findings.intervals import LEAST_RESAMPLED
from ezgreedy.findings.panels import Curve, Panel
from ezgreedy.findings.score_intervals import stratified_band
from ezgreedy.findings.scores import human_gap, mean, median
from ezgreedy.findings.training_scores import score_curves
from ezgreedy.report import wording
from ezgreedy.report.deep import generator
from ezgreedy.report.deep_curves import X_LABEL
from ezgreedy.report.suite_scores import Comparison, SuiteScores
from ezgreedy.requirements import FloatArray
from ezgreedy.units import counted

_MOST_POINTS = 40
_REPEATS = 500


def panels(found: SuiteScores) -> list[Panel]:
    """Median, mean and gap over frames, and the performance profile if agents can be compared."""
    made = _over_frames(found)
    if found.comparison is not None:
        made.append(_profile(found, found.comparison))
    return made


def _over_frames(found: SuiteScores) -> list[Panel]:
    colours = _colours(found)
    by_agent = [_three_curves(found, label, colours[label]) for label in found.agents]
    titles = "median", "mean", found.suite.gap
    return [
        Panel(
            f"{found.suite.name}: {title} over games",
            curves,
            x_label=X_LABEL,
            y_label=title if title == found.suite.gap else f"{title} normalised score",
        )
        for title, curves in zip(titles, zip(*by_agent, strict=True), strict=True)
    ]


def _three_curves(found: SuiteScores, label: str, colour: str) -> list[Curve]:
    """Median, mean and gap of one agent."""
    scores = score_curves(
        found.agents[label],
        found.frames[label],
        found.suite.measures,
        most_points=_MOST_POINTS,
    )
    x, values = scores.frames / 1e6, scores.values
    named = f"{label}, {counted(len(scores.games), 'game')}"
    if values.shape[1] < LEAST_RESAMPLED:
        return [Curve(named, x, row, colour=colour) for row in _together(values).T]
    rng = generator(f"{found.suite.name} {label} curves")
    band = stratified_band(_together, values, rng=rng, repeats=_REPEATS)
    return [
        Curve(named, x, row, low, high, colour)
        for row, low, high in zip(*(part.T for part in band), strict=True)
    ]


def _together(values: FloatArray) -> FloatArray:
    return np.stack([statistic(values) for statistic in (median, mean, human_gap)], axis=-1)


def _profile(found: SuiteScores, comparison: Comparison) -> Panel:
    colours = _colours(found)
    lines = []
    for label, standing in comparison.standings.items():
        has_band = standing.num_seeds >= LEAST_RESAMPLED
        values, low, high = standing.profile if has_band else (standing.profile.values, None, None)
        lines.append(Curve(label, comparison.thresholds, values, low, high, colours[label]))
    frames = wording.plain(comparison.frames)
    games = counted(len(comparison.games), "game")
    return Panel(
        f"{found.suite.name}: performance profile at {frames} frames, {games}",
        lines,
        x_label="normalised score",
        y_label="share of runs above it",
    )


def _colours(found: SuiteScores) -> dict[str, str]:
    return colours_of({label: runs[0].agent for label, runs in found.agents.items()})
