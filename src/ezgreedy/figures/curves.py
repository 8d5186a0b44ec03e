"""How does a quantity change with experience, and how sure are we? Curves with interval bands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ezgreedy.figures import style

_LONG_LABEL = 60  # characters of which two do not fit side by side


@dataclass(frozen=True, eq=False)
class Series:
    """One labelled curve: its mean, and the ends of its interval if there is one, all [points].

    A reference is a curve of others, for comparison; it is drawn thin and dashed.
    """

    label: str
    x: ArrayLike
    mean: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    colour: str | None = None
    is_reference: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes and the curves in it."""

    series: Sequence[Series]
    x_label: str
    y_label: str
    title: str = ""
    is_log_x: bool = False
    is_log_y: bool = False


def panel_of(block: Mapping[str, Any]) -> Panel:
    """The panel of a block of curves, as `experiments.interactive` makes it for pages."""
    return Panel(
        [Series(**series) for series in block["series"]],
        block["x_label"],
        block["y_label"],
        block["title"],
        is_log_x=block["log_x"],
        is_log_y=block["log_y"],
    )


def learning_curves(panels: Sequence[Panel], *, shares_legend: bool = False) -> Figure:
    """A figure with one panel beside the other.

    Args:
        panels: from left to right.
        shares_legend: whether one legend below stands for all, rather than one within each.
    """
    with style.voice():
        figure = style.new_figure(3.6 * len(panels) + 0.4, 2.9)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            draw_panel(axis, panel, has_legend=not shares_legend)
        if shares_legend:
            _draw_legend_below(figure)
    return figure


def _draw_legend_below(figure: Figure) -> None:
    """One entry for each label, in a row of its own height so that the panels keep theirs."""
    lines = {str(line.get_label()): line for axis in figure.axes for line in axis.get_lines()}
    num_columns = 2 if max(map(len, lines)) < _LONG_LABEL else 1
    num_rows = -(-len(lines) // num_columns)
    figure.set_figheight(figure.get_figheight() + 0.2 * num_rows)
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=num_columns)


def draw_panel(axis: Any, panel: Panel, *, has_legend: bool = True) -> None:
    """Draws one panel into existing matplotlib axes, for figures that mix kinds."""
    for series in panel.series:
        # JSON holds a gap as None; as an array of floats it is one.
        mean = np.asarray(series.mean, dtype=np.float64)
        looks = {"linewidth": 0.9, "linestyle": "--"} if series.is_reference else {}
        looks |= {"marker": "o"} if len(mean) == 1 else {}
        (line,) = axis.plot(series.x, mean, color=series.colour, label=series.label, **looks)
        if series.low is not None and series.high is not None:
            axis.fill_between(
                np.asarray(series.x),
                np.asarray(series.low, dtype=np.float64),
                np.asarray(series.high, dtype=np.float64),
                color=line.get_color(),
                alpha=0.2,
                linewidth=0,
            )
    axis.set(xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
    axis.set_xscale("log" if panel.is_log_x else "linear")
    axis.set_yscale("log" if panel.is_log_y else "linear")
    axis.grid(color=style.FAINT_COLOUR, linewidth=0.5)
    axis.set_axisbelow(True)
    axis.margins(x=0.02)
    if has_legend:
        axis.legend()
