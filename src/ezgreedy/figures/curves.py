"""How does a quantity change with experience, and how certain is it? Curves with bands."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ezgreedy.figures import style
from ezgreedy.findings.panels import Curve, Panel

_FEW_DECADES = 10**2.5  # up to here 2 and 5 are labelled too
_LONG_LABEL = 60  # characters; two such labels do not fit side by side


def learning_curves(
    panels: Sequence[Panel], *, columns: int | None = None, shares_legend: bool = False
) -> Figure:
    """A figure with panels side by side.

    Args:
        panels: panels from left to right.
        columns: most panels in a row; None for all of them in one.
        shares_legend: whether to draw one legend below all panels rather than one in each.
    """
    num_columns = len(panels) if columns is None else min(columns, len(panels))
    num_rows = -(-len(panels) // num_columns)
    with style.voice():
        figure = style.new_figure(3.6 * num_columns + 0.4, 2.9 * num_rows)
        axes = figure.subplots(num_rows, num_columns, squeeze=False).ravel()
        for axis, panel in zip(axes, panels, strict=False):
            draw_panel(axis, panel, has_legend=not shares_legend)
        for axis in axes[len(panels) :]:
            axis.remove()
        if shares_legend:
            _draw_legend_below(figure)
    return figure


def _draw_legend_below(figure: Figure) -> None:
    """One entry for each label; the figure grows so that panels keep their height."""
    lines = {str(line.get_label()): line for axis in figure.axes for line in axis.get_lines()}
    num_columns = 2 if max(map(len, lines)) < _LONG_LABEL else 1
    num_rows = -(-len(lines) // num_columns)
    figure.set_figheight(figure.get_figheight() + 0.2 * num_rows)
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=num_columns)


def draw_panel(axis: Any, panel: Panel, *, has_legend: bool = True) -> None:
    """Draws one panel into existing matplotlib axes, for figures that mix kinds."""
    for curve in panel.curves:
        _draw_curve(axis, curve)
    for curve in panel.references:
        _draw_curve(axis, curve, linewidth=0.9, linestyle="--")
    axis.set(xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
    if panel.log_x:
        axis.set_xscale("log")
        _log_ticks(axis.xaxis)
    if panel.log_y:
        axis.set_yscale("log")
        _log_ticks(axis.yaxis)
    axis.grid(color=style.FAINT_COLOUR, linewidth=0.5)
    axis.set_axisbelow(True)
    axis.margins(x=0.02)
    if has_legend:
        axis.legend()


def _log_ticks(which: Any) -> None:
    """A logarithmic axis on which every label is the number itself: 20, not 2."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = which.get_view_interval()
    is_short = high / max(low, 1e-300) < _FEW_DECADES
    which.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if is_short else (1.0,)))
    which.set_minor_locator(NullLocator())
    which.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.10g}"))


def _draw_curve(axis: Any, curve: Curve, **looks: Any) -> None:
    """Draws the mean as a line, or as a dot if it is one point, and the interval as a band."""
    # A gap is None in a panel; in an array of floats it is NaN.
    mean = np.asarray(curve.mean, dtype=np.float64)
    looks |= {"marker": "o"} if len(mean) == 1 else {}
    (line,) = axis.plot(curve.x, mean, color=curve.colour, label=curve.label, **looks)
    if curve.low is not None and curve.high is not None:
        axis.fill_between(
            np.asarray(curve.x),
            np.asarray(curve.low, dtype=np.float64),
            np.asarray(curve.high, dtype=np.float64),
            color=line.get_color(),
            alpha=0.2,
            linewidth=0,
        )
