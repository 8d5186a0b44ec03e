"""How do two policies compare under many conditions? Dots with intervals, a row each."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ezgreedy.figures import style

Rows = Mapping[str, Mapping[str, Any]]

_ROW = 0.36  # inches for one condition
_SHADE = "#f3dede"


def paired_dots(
    panels: Mapping[str, Rows],
    looks: Mapping[str, tuple[str, str]],
    *,
    log_from: int,
    columns: int,
    note: str,
) -> Figure:
    """A panel for each question, a row for each condition; conditions that fail are shaded.

    Args:
        panels: title ↦ condition ↦ `value`, `low` and `high` of every policy, and whether it
            `holds`.
        looks: label and colour of each policy.
        log_from: number of the first panel with a logarithmic axis.
        columns: panels side by side: all of them, or 1 for a narrow screen.
        note: meaning of the shade.
    """
    names = list(dict.fromkeys(name for rows in panels.values() for name in rows))
    num_rows = -(-len(panels) // columns)
    width = 11.0 if columns > 1 else 4.2
    with style.voice():
        figure = style.new_figure(width, (_ROW * len(names) + 0.7) * num_rows + 0.6)
        axes = figure.subplots(num_rows, columns, squeeze=False, sharey=True).ravel()
        for place, (axis, (title, rows)) in enumerate(zip(axes, panels.items(), strict=True)):
            _draw(axis, rows, names, looks)
            axis.set_title(title)
            if place >= log_from:
                axis.set_xscale("log")
        handles, labels = axes[0].get_legend_handles_labels()
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=2, title=note)
        legend.get_title().set_fontsize(8.5)
    return figure


def _draw(axis: Any, rows: Rows, names: list[str], looks: Mapping[str, tuple[str, str]]) -> None:
    places = np.array([names.index(name) for name in rows])
    for shift, (policy, (label, colour)) in zip((-0.14, 0.14), looks.items(), strict=True):
        value, low, high = (
            np.array([row[policy][part] for row in rows.values()])
            for part in ("value", "low", "high")
        )
        axis.errorbar(
            value,
            places + shift,
            xerr=np.maximum([value - low, high - value], 0.0),
            fmt="o",
            markersize=4.5,
            linewidth=1.6,
            color=colour,
            label=label,
        )
    for place, row in zip(places, rows.values(), strict=True):
        if not row["holds"]:
            axis.axhspan(place - 0.45, place + 0.45, color=_SHADE, linewidth=0, zorder=0)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.grid(axis="x", color=style.FAINT_COLOUR, linewidth=0.5)
    axis.set_axisbelow(True)
