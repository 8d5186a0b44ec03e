"""What does a rule change? Dots with intervals, a row for every rule or condition."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ezgreedy.figures import style
from ezgreedy.figures.colours import EPS_COLOUR, EZ_COLOUR, OTHER_COLOURS, REFERENCE_COLOUR
from ezgreedy.findings.intervals import Interval

Rows = Mapping[str, Mapping[str, Interval]]
_ROW = 0.3  # inches for one dot
_TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)


def scores_by_rule(scores: Mapping[str, Sequence[float]], x_label: str) -> Figure:
    """Every run as a dot and the mean as a bar, a row for each rule.

    Args:
        scores: rule ↦ the score of every seed.
        x_label: label of the scores.
    """
    with style.voice():
        figure = style.new_figure(7.2, 1.1 + 0.45 * len(scores))
        axis = figure.subplots()
        for place, values in enumerate(scores.values()):
            axis.plot(values, np.full(len(values), place), "o", color=EZ_COLOUR, alpha=0.5)
            axis.plot(np.mean(values), place, "|", color=EPS_COLOUR, markersize=16, mew=2.2)
        axis.set_yticks(range(len(scores)), list(scores))
        axis.set_ylim(len(scores) - 0.5, -0.5)
        axis.set_xlabel(f"{x_label}; bar: mean")
        axis.grid(axis="x", color=style.FAINT_COLOUR, linewidth=0.5)
    return figure


def ratios(panels: Mapping[str, Rows], x_labels: Mapping[str, str], *, columns: int) -> Figure:
    """Ratios with intervals: a panel for each question, a row for each world, a dot for each rule.

    Args:
        panels: title ↦ world ↦ rule ↦ its ratio.
        x_labels: title ↦ label of the horizontal axis.
        columns: panels side by side.
    """
    rules = list(dict.fromkeys(r for rows in panels.values() for row in rows.values() for r in row))
    colours = dict(zip(rules, (EPS_COLOUR, EZ_COLOUR, *OTHER_COLOURS), strict=False))
    num_rows = -(-len(panels) // columns)
    most = max(sum(map(len, rows.values())) for rows in panels.values())
    with style.voice():
        figure = style.new_figure(5.4 * columns, (0.62 * _ROW * most + 1.3) * num_rows)
        axes = figure.subplots(num_rows, columns, squeeze=False).ravel()
        for axis, (title, rows) in zip(axes, panels.items(), strict=False):
            _draw(axis, rows, colours)
            axis.set(title=title, xlabel=x_labels[title])
        for axis in axes[len(panels) :]:
            axis.remove()
        handles = {
            label: handle
            for axis in figure.axes
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=3)
    return figure


def _draw(axis: Any, rows: Rows, colours: Mapping[str, str]) -> None:
    axis.axvline(1.0, color=REFERENCE_COLOUR, linewidth=1.0, linestyle="--")
    for place, row in enumerate(rows.values()):
        shifts = np.linspace(-0.32, 0.32, len(row)) if len(row) > 1 else [0.0]
        for shift, (rule, ratio) in zip(shifts, row.items(), strict=True):
            error = [[max(ratio.value - ratio.low, 0.0)], [max(ratio.high - ratio.value, 0.0)]]
            axis.errorbar(
                ratio.value,
                place + shift,
                xerr=error,
                fmt="o",
                markersize=4.0,
                linewidth=1.5,
                color=colours[rule],
                label=rule,
            )
    for place in range(1, len(rows)):
        axis.axhline(place - 0.5, color=style.FAINT_COLOUR, linewidth=0.5)
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.set_yticks(range(len(rows)), list(rows))
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(axis="x", color=style.FAINT_COLOUR, linewidth=0.5)
    axis.set_axisbelow(True)
