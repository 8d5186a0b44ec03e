"""How does a quantity change with experience, and how sure are we? Curves with interval bands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ezgreedy.figures import style


@dataclass(frozen=True, eq=False)
class Series:
    """One labelled curve: its mean, and the ends of its interval if there is one, all [points]."""

    label: str
    x: ArrayLike
    mean: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    colour: str | None = None


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


def learning_curves(panels: Sequence[Panel]) -> Figure:
    """A figure with one panel beside the other."""
    with style.voice():
        figure = style.new_figure(3.6 * len(panels) + 0.4, 2.9)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            draw_panel(axis, panel)
    return figure


def draw_panel(axis: Any, panel: Panel) -> None:
    """Draws one panel into existing matplotlib axes, for figures that mix kinds."""
    for series in panel.series:
        (line,) = axis.plot(series.x, series.mean, color=series.colour, label=series.label)
        if series.low is not None and series.high is not None:
            axis.fill_between(
                np.asarray(series.x),
                np.asarray(series.low),
                np.asarray(series.high),
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
    axis.legend()
