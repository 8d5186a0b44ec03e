"""Who is best in every one of many readings, and where is the best hyper-parameter?

A square stands for one reading of what a paper leaves open. The same arrangement of squares is
drawn for every measure: the winners above, the best μ below.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ezgreedy.figures import style
from ezgreedy.requirements import FloatArray

_FADED = 0.65  # share of white where nobody clearly leads
_CLEAR = "a lead of more than two standard errors"


class Grid(NamedTuple):
    """Where readings are drawn: their numbers, [rows][columns], with labels of both."""

    order: Sequence[Sequence[int]]
    rows: Sequence[str]
    columns: Sequence[str]


def census(
    grid: Grid, data: Mapping[str, Any], measures: Mapping[str, str], families: Sequence[str]
) -> Figure:
    """A figure with a column for each measure.

    Args:
        grid: arrangement of the readings.
        data: for every measure and reading, in order: the `best` family, whether it `is_clear`,
            the best `mu`, and whether returns over μ have an inverted U (`has_u`).
        measures: measures by key, with their titles.
        families: labels of the families, zeta first.
    """
    colours = dict(zip(("zeta", "geometric", "uniform"), _colours(), strict=True))
    mus = np.array([data["mu"][measure] for measure in measures])
    norm = LogNorm(mus.min(), max(mus.max(), 1.01 * mus.min()))
    height = 0.115 * len(grid.rows) + 1.3
    with style.voice():
        figure = style.new_figure(2.35 * len(measures) + 2.0, 2 * height)
        axes = figure.subplots(2, len(measures), squeeze=False, sharex=True, sharey=True)
        image: Any = None
        for (above, below), (measure, title) in zip(axes.T, measures.items(), strict=True):
            above.imshow(_winners(grid, data, measure, colours), aspect="auto")
            above.set_title(title, fontsize=8.5)
            image = below.imshow(
                _arranged(grid, data["mu"][measure]), aspect="auto", cmap="viridis", norm=norm
            )
            _mark(below, _arranged(grid, data["has_u"][measure]))
            _label(above, grid, has_columns=False)
            _label(below, grid, has_columns=True)
        axes[0, 0].set_ylabel("best family", fontsize=9)
        axes[1, 0].set_ylabel("best μ (dot: inverted U)", fontsize=9)
        bar = figure.colorbar(image, ax=axes[1], shrink=0.8, aspect=20, pad=0.01)
        ticks = sorted({1.25, 2.0, 3.0, 5.0} & set(np.unique(mus).tolist()))
        bar.set_ticks(ticks or [float(mus.min())], labels=[f"{tick:g}" for tick in ticks] or None)
        bar.minorticks_off()
        bar.set_label("best μ")
        bar.outline.set_visible(False)
        figure.legend(
            handles=[Patch(color=c, label=f) for c, f in zip(_colours(), families, strict=True)],
            loc="outside lower center",
            ncols=len(families),
            title=f"strong colour: {_CLEAR}",
            title_fontsize=8,
        )
    return figure


def _colours() -> list[str]:
    return [style.EZ_COLOUR, *style.OTHER_COLOURS[:2]]


def _arranged(grid: Grid, values: Sequence[Any]) -> FloatArray:
    return np.array([[values[number] for number in row] for row in grid.order], dtype=np.float64)


def _winners(
    grid: Grid, data: Mapping[str, Any], measure: str, colours: Mapping[str, str]
) -> FloatArray:
    best, clear = data["best"][measure], data["is_clear"][measure]
    shades = [
        [_shade(colours[best[number]], clear[number]) for number in row] for row in grid.order
    ]
    return np.array(shades)


def _shade(colour: str, is_clear: bool) -> FloatArray:
    full = np.array(to_rgb(colour))
    return full if is_clear else full + _FADED * (1.0 - full)


def _mark(axis: Any, marked: FloatArray) -> None:
    rows, columns = np.nonzero(marked)
    axis.scatter(columns, rows, s=3.5, color="white", edgecolor="black", linewidth=0.3)


def _label(axis: Any, grid: Grid, *, has_columns: bool) -> None:
    axis.set_yticks(range(len(grid.rows)), grid.rows, fontsize=5.5)
    axis.set_xticks(range(len(grid.columns)), grid.columns, fontsize=5.5, rotation=90)
    axis.tick_params(length=0, labelbottom=has_columns)
    axis.label_outer()
    axis.spines[:].set_visible(False)
