"""How do the deep agents' scores grow? Curves over frames, interactive and as figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ezgreedy.figures.colours import REFERENCE_COLOUR, colours_of
from ezgreedy.findings.intervals import mean_interval
from ezgreedy.findings.judging import LEAST_FOR_A_VERDICT
from ezgreedy.findings.panels import Curve, Panel
from ezgreedy.findings.training_scores import thinned
from ezgreedy.report.deep import (
    PUBLISHED_DQN,
    GameStudy,
    Group,
    seeds_told,
)
from ezgreedy.requirements import FloatArray

X_LABEL = "million frames"
REFERENCE_LABEL = "DQN at 1M frames (Young & Tian)"

QUANTITIES = ("evaluation score", "training return")

_MOST_POINTS, _LEAST_POINTS = 150, 20
_POINTS_OF_A_PAGE = 1200  # for one agent and quantity, over all games

Points = tuple[FloatArray, FloatArray]  # frames and values, [runs, points]; NaN is a gap


def panels(game: GameStudy) -> list[Panel]:
    """Scores of evaluations, and returns of training episodes if any finished."""
    colours = colours_of({row.group.label: row.group.agent for row in game.rows})
    made = [_panel(game, quantity, colours, _MOST_POINTS) for quantity in QUANTITIES]
    return [panel for panel in made if panel is not None]


def island(games: Sequence[GameStudy]) -> dict[str, Any]:
    """The curves of all games as data for a page, small enough for 57 games of 8 agents.

    An agent has the same colour in all games. Curves of one game with the same x share it, and the
    more games there are, the fewer points each curve has.
    """
    agents = {row.group.label: row.group.agent for game in games for row in game.rows}
    colours = colours_of(agents)
    most = min(max(_POINTS_OF_A_PAGE // max(len(games), 1), _LEAST_POINTS), _MOST_POINTS)
    return {
        "x_label": X_LABEL,
        "reference": REFERENCE_LABEL,
        "quantities": QUANTITIES,
        "agents": [{"label": label, "colour": colours[label]} for label in agents],
        "games": {
            game.name: [
                _compact(_panel(game, quantity, colours, most), game, list(agents))
                for quantity in QUANTITIES
            ]
            for game in games
        },
    }


def figure_svg(game: GameStudy) -> str:
    """The same curves side by side, as the text of an SVG file."""
    from ezgreedy.figures import curves, style

    return style.svg(curves.learning_curves(panels(game), shares_legend=True))


def score_points(group: Group, most: int = _MOST_POINTS) -> Points:
    """The evaluations of a group's runs, thinned to `most` with the first and the last."""
    frames = [[score.frames for score in run.scores] for run in group.runs]
    values = [[score.mean_return for score in run.scores] for run in group.runs]
    chosen = thinned(group.num_scores, most)
    return (
        np.array(frames, dtype=np.float64)[:, chosen],
        np.array(values, dtype=np.float64)[:, chosen],
    )


def training_points(group: Group, most: int = _MOST_POINTS) -> Points:
    """The training reports of a group's runs, neighbours merged until there are few enough.

    Means are over episodes, so a report counts by how many of them finished in it.
    """
    length = min(len(run.reports) for run in group.runs)
    shape = len(group.runs), length
    reports = [report for run in group.runs for report in run.reports[:length]]
    frames = np.array([report.frames for report in reports], dtype=np.float64).reshape(shape)
    episodes = np.array([report.episodes for report in reports], dtype=np.float64).reshape(shape)
    returns = np.array([report.mean_return or 0.0 for report in reports]).reshape(shape)
    together = max(-(-length // most), 1)
    starts = np.arange(0, length, together)
    counts = np.add.reduceat(episodes, starts, axis=1) if length else episodes
    sums = np.add.reduceat(returns * episodes, starts, axis=1) if length else returns
    ends = np.minimum(starts + together, length) - 1
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return frames[:, ends], means


def _panel(game: GameStudy, quantity: str, colours: Mapping[str, str], most: int) -> Panel | None:
    points = score_points if quantity == QUANTITIES[0] else training_points
    drawn = [
        curve
        for group in (row.group for row in game.rows)
        if (curve := _curve(group, points(group, most), colours[group.label])) is not None
    ]
    if not drawn:
        return None
    return Panel(
        f"{game.name}: {quantity}",
        drawn,
        x_label=X_LABEL,
        y_label=quantity,
        references=[_reference(game.name, drawn)] if game.name in PUBLISHED_DQN else (),
    )


def _compact(panel: Panel | None, game: GameStudy, agents: Sequence[str]) -> dict[str, Any] | None:
    """The parts of a panel that the page cannot derive."""
    if panel is None:
        return None
    groups = {_named(row.group): row.group for row in game.rows}
    x = panel.curves[0].x
    made: dict[str, Any] = {
        "x": x,
        "series": [
            {"agent": agents.index(groups[curve.label].label), "mean": curve.mean}
            | {"seeds": _seeds(groups[curve.label])}
            | ({"x": curve.x} if curve.x != x else {})
            | ({"low": curve.low, "high": curve.high} if curve.low else {})
            for curve in panel.curves
        ],
    }
    if game.name in PUBLISHED_DQN:
        made["reference"] = PUBLISHED_DQN[game.name]
    return made


def _curve(group: Group, points: Points, colour: str) -> Curve | None:
    frames, values = points
    # Where one run has no value, the mean of the others would be that of another group.
    known = np.isfinite(values).all(axis=0)
    if not known.any():
        return None
    x, values = frames.mean(axis=0)[known] / 1e6, values[:, known]
    label = _named(group)
    if len(values) < LEAST_FOR_A_VERDICT:
        return Curve(label, x, values.mean(axis=0), colour=colour)
    mean, low, high = zip(*(mean_interval(column) for column in values.T), strict=True)
    return Curve(label, x, mean, low, high, colour)


def _reference(game: str, drawn: Sequence[Curve]) -> Curve:
    value = PUBLISHED_DQN[game]
    last = max(float(np.max(np.asarray(curve.x))) for curve in drawn)
    return Curve(
        REFERENCE_LABEL,
        [0.0, max(last, 1e-6)],
        [value, value],
        colour=REFERENCE_COLOUR,
    )


def _named(group: Group) -> str:
    return f"{group.label}, {_seeds(group)}"


def _seeds(group: Group) -> str:
    told = seeds_told(group)
    return f"{told} seed" if told == "1" else f"{told} seeds"
