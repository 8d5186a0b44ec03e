"""After how many steps is each state first visited? Rows × columns of maps with one colour bar."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from ezgreedy.figures import style
from ezgreedy.findings.maps import ColourScale
from ezgreedy.requirements import FloatArray


def first_visit_maps(
    maps: Sequence[Sequence[FloatArray]],
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    scale: ColourScale,
    *,
    axis_labels: tuple[str, str] | None = None,
) -> Figure:
    """A figure of maps[row][column], each [height, width], with its mean below it.

    Args:
        maps: mean first-visit times; NaN where there is no state.
        row_labels: label at the left of each row.
        column_labels: label above each column.
        scale: meaning of the colours.
        axis_labels: labels of the horizontal and the vertical axis of every map; None if they are
            just places.
    """
    height, width = np.shape(maps[0][0])
    panel = 1.75
    size = panel * len(column_labels) + 1.2, (panel * height / width + 0.26) * len(row_labels) + 0.3
    with style.voice():
        figure = style.new_figure(*size)
        axes = figure.subplots(len(row_labels), len(column_labels), squeeze=False)
        image: Any = None
        for row, values in zip(axes, maps, strict=True):
            for axis, cells in zip(row, values, strict=True):
                image = _draw_map(axis, np.asarray(cells), scale, axis_labels)
        for axis, label in zip(axes[0], column_labels, strict=True):
            axis.set_title(label)
        for axis, label in zip(axes[:, 0], row_labels, strict=True):
            vertical = "" if axis_labels is None else f"\n{axis_labels[1]}"
            axis.set_ylabel(label + vertical, fontsize=10)
        bar = figure.colorbar(image, ax=axes, shrink=0.85, aspect=30, pad=0.015)
        bar.set_label(scale.label)
        bar.outline.set_visible(False)
    return figure


def _draw_map(
    axis: Any, cells: FloatArray, scale: ColourScale, axis_labels: tuple[str, str] | None
) -> Any:
    shown = np.maximum(cells, 1.0) if scale.is_log else cells
    image = axis.imshow(shown, cmap=style.SOON_TO_NEVER, norm=_norm(scale), interpolation="nearest")
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    horizontal = "" if axis_labels is None else f"{axis_labels[0]}\n"
    axis.set_xlabel(f"{horizontal}mean {np.nanmean(cells):,.0f}", fontsize=8.5, labelpad=3)
    return image


def _norm(scale: ColourScale) -> Normalize:
    """Maps steps to shares of the colour bar."""
    return LogNorm(1.0, scale.most) if scale.is_log else Normalize(0.0, scale.most)
