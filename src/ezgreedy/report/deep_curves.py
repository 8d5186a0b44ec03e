"""How do the deep agents' scores grow? Curves over frames, to hover over and as figures."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ezgreedy.experiments.interactive import Curve, curves_block
from ezgreedy.figures import palette
from ezgreedy.report.deep import (
    LEAST_SEEDS,
    PUBLISHED_DQN,
    Game,
    Group,
    generator,
    seeds_told,
)
from ezgreedy.requirements import FloatArray
from ezgreedy.results.intervals import mean_interval

X_LABEL = "million frames"
REFERENCE_LABEL = "DQN at 1M frames (Young & Tian)"

_MOST_POINTS = 150
_REPEATS = 500

Points = tuple[FloatArray, FloatArray]  # frames and values, [runs, points]; NaN is a gap


def blocks(game: Game) -> list[dict[str, Any]]:
    """Scores of evaluations, and returns of training episodes if any finished."""
    groups = [row.group for row in game.rows]
    made = [
        _block(game, groups, "evaluation score", score_points),
        _block(game, groups, "training return", training_points),
    ]
    return [block for block in made if block is not None]


def figure_svg(game: Game) -> str:
    """The same curves side by side, as the text of an SVG file."""
    from ezgreedy.figures import curves, style

    panels = [curves.panel_of(block) for block in blocks(game)]
    return style.svg(curves.learning_curves(panels, shares_legend=True))


def score_points(group: Group) -> Points:
    """The evaluations of a group's runs."""
    frames = [[score.frames for score in run.scores] for run in group.runs]
    values = [[score.mean_return for score in run.scores] for run in group.runs]
    return np.array(frames, dtype=np.float64), np.array(values, dtype=np.float64)


def training_points(group: Group) -> Points:
    """The training reports of a group's runs, neighbours put together until they are few enough.

    Means are over episodes, so that a report counts by how many of them finished in it.
    """
    length = min(len(run.reports) for run in group.runs)
    shape = len(group.runs), length
    reports = [report for run in group.runs for report in run.reports[:length]]
    frames = np.array([report.frames for report in reports], dtype=np.float64).reshape(shape)
    episodes = np.array([report.episodes for report in reports], dtype=np.float64).reshape(shape)
    returns = np.array([report.mean_return or 0.0 for report in reports]).reshape(shape)
    together = max(-(-length // _MOST_POINTS), 1)
    starts = np.arange(0, length, together)
    counts = np.add.reduceat(episodes, starts, axis=1) if length else episodes
    sums = np.add.reduceat(returns * episodes, starts, axis=1) if length else returns
    ends = np.minimum(starts + together, length) - 1
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return frames[:, ends], means


def _block(
    game: Game, groups: Sequence[Group], quantity: str, points: Callable[[Group], Points]
) -> dict[str, Any] | None:
    colours = _colours(groups)
    drawn = [
        curve
        for group, colour in zip(groups, colours, strict=True)
        if (curve := _curve(group, quantity, points(group), colour)) is not None
    ]
    if not drawn:
        return None
    return curves_block(
        f"{game.name}: {quantity}",
        drawn,
        x_label=X_LABEL,
        y_label=quantity,
        references=[_reference(game.name, drawn)] if game.name in PUBLISHED_DQN else (),
    )


def _curve(group: Group, quantity: str, points: Points, colour: str) -> Curve | None:
    frames, values = points
    # Where one run has nothing to tell, the mean of the others would be that of another group.
    known = np.isfinite(values).all(axis=0)
    if not known.any():
        return None
    x, values = frames.mean(axis=0)[known] / 1e6, values[:, known]
    label = f"{group.label}, {_seeds(group)}"
    if len(values) < LEAST_SEEDS:
        return Curve(label, x, values.mean(axis=0), colour=colour)
    rng = generator(f"{group.game} {group.label} {quantity} curve")
    ends = [mean_interval(column, rng, repeats=_REPEATS) for column in values.T]
    low, high = [end.low for end in ends], [end.high for end in ends]
    return Curve(label, x, values.mean(axis=0), low, high, colour)


def _reference(game: str, drawn: Sequence[Curve]) -> Curve:
    value = PUBLISHED_DQN[game]
    last = max(float(np.max(np.asarray(curve.x))) for curve in drawn)
    return Curve(
        REFERENCE_LABEL,
        [0.0, max(last, 1e-6)],
        [value, value],
        colour=palette.REFERENCE_COLOUR,
    )


def _seeds(group: Group) -> str:
    told = seeds_told(group)
    return f"{told} seed" if told == "1" else f"{told} seeds"


def _colours(groups: Sequence[Group]) -> list[str]:
    """Each agent its own; a second group of the same agent takes one that nobody has."""
    known = palette.AGENT_COLOURS
    owned = {known.get(group.agent) for group in groups}
    spare = [colour for colour in (*palette.OTHER_COLOURS, *known.values()) if colour not in owned]
    taken: list[str] = []
    for group in groups:
        wanted = [known[group.agent], *spare] if group.agent in known else spare
        free = [colour for colour in wanted if colour not in taken]
        taken.append(free[0] if free else palette.REFERENCE_COLOUR)
    return taken
