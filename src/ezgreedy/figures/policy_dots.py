"""How do several policies compare in several worlds? Dots with intervals, a row for each world."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ezgreedy.figures import style

_MARKERS = "osD^vP"
_ROW = 0.5  # inches for one row


def policy_dots(panels: Sequence[Mapping[str, Any]], *, columns: int = 2) -> Figure:
    """A panel for each measure, with a legend of its own if its policies are new.

    Args:
        panels: `title`, `x_label`, `log_x`, `labels` and `colours` of policies, and `rows`: value,
            low and high by row and policy.
        columns: panels side by side.
    """
    num_rows = -(-len(panels) // columns)
    most = max(len(panel["rows"]) for panel in panels)
    with style.voice():
        width = 10.5 if columns > 1 else 4.6
        figure = style.new_figure(width, (_ROW * most + 1.5) * num_rows)
        axes = figure.subplots(num_rows, columns, squeeze=False).ravel()
        labelled: list[Any] = []
        for axis, panel in zip(axes, panels, strict=False):
            _draw(axis, panel)
            if panel["labels"] not in labelled:
                labelled.append(panel["labels"])
                _legend(axis, panel)
        for axis in axes[len(panels) :]:
            axis.remove()
    return figure


def _draw(axis: Any, panel: Mapping[str, Any]) -> None:
    names = list(panel["rows"])
    for number, policy in enumerate(panel["labels"]):
        shift = 0.6 * (number / max(len(panel["labels"]) - 1, 1) - 0.5)
        points = [
            (place + shift, *panel["rows"][name][policy])
            for place, name in enumerate(names)
            if policy in panel["rows"][name]
        ]
        if not points:
            continue
        place, value, low, high = np.array(points).T
        axis.errorbar(
            value,
            place,
            xerr=np.maximum([value - low, high - value], 0.0),
            fmt=_MARKERS[number % len(_MARKERS)],
            markersize=4.5,
            linewidth=1.4,
            color=panel["colours"][number],
        )
    for place in range(len(names) - 1):
        axis.axhline(place + 0.5, color=style.FAINT_COLOUR, linewidth=0.5)
    axis.set_yticks(range(len(names)), names)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set(title=panel["title"], xlabel=panel["x_label"])
    if panel["log_x"]:
        axis.set_xscale("log")
    axis.grid(axis="x", color=style.FAINT_COLOUR, linewidth=0.5)
    axis.set_axisbelow(True)


def _legend(axis: Any, panel: Mapping[str, Any]) -> None:
    """Below its panel: dots reach every corner of it."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=label)
        for label, colour, marker in zip(
            panel["labels"].values(), panel["colours"], _MARKERS, strict=False
        )
    ]
    axis.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
