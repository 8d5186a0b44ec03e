"""What do first-visit maps look like? One panel per policy, one colour scale for all of them.

Many policies are laid out in bands, one below the other, and long names in several lines.
Dimension 0 of the cells runs along the horizontal axis and dimension 1 upwards; a single dimension
is a strip, or is folded into rows if it numbers the cells of a grid. Cells that no trial visited
are grey, unlike those visited late. Needs matplotlib.
"""

import math
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.visits import FirstVisitTimes
from ezgreedy.figures import style
from ezgreedy.requirements import BoolArray, FloatArray

_PANEL_WIDTH = 3.5  # inches
_LINE_HEIGHT = 0.17  # inches, of a title's further lines
_MOST_COLUMNS = 4  # of maps; wider figures are hard to read and to place on a page
_TITLE_WIDTH = 34  # characters above one map


@dataclass(frozen=True)
class Layout:
    """The layout of bins' cells in a figure.

    Args:
        bins: the cells.
        width: fold a single discrete dimension into rows of this many cells; None for a strip.
    """

    bins: Bins
    width: int | None = None

    def __post_init__(self) -> None:
        if self.width is None:
            return
        require.integer("width", self.width, least=1)
        if len(self.bins.counts) != 1 or self.bins.num_cells % self.width:
            rule = "divide the number of cells of a single dimension"
            raise require.refuse("width", rule, f"{self.width} for cells {self.bins.counts}")

    def image(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the cells as rows from bottom to top (from top to bottom if folded)."""
        if self.width is not None:
            return values.reshape(-1, self.width)
        return values.reshape(1, -1) if values.ndim == 1 else values.T

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Where the image's edges lie in the units of the axes: left, right, bottom, top."""
        if self.width is not None:
            return -0.5, self.width - 0.5, self.bins.num_cells // self.width - 0.5, -0.5
        edges = [self._edges(axis) for axis in range(len(self.bins.dims))]
        return (*edges[0], *(edges[1] if len(edges) > 1 else (0.0, 1.0)))

    def _edges(self, axis: int) -> tuple[float, float]:
        low, high = self.bins.low[axis], self.bins.high[axis]
        # A value is in the middle of its bin.
        return (low - 0.5, high - 0.5) if self.bins.is_discrete[axis] else (low, high)

    @property
    def panel_height(self) -> float:
        """Height of one map in inches: grid cells are square, other axes have no common unit."""
        num_rows, num_columns = self.image(np.zeros(self.bins.counts)).shape
        if self.width is not None:
            return min(max(_PANEL_WIDTH * num_rows / num_columns, 1.6), 7.0)
        return 1.6 if num_rows == 1 else 3.1

    @property
    def labels(self) -> tuple[str, str]:
        """Labels of the horizontal and the vertical axis."""
        if self.width is not None:
            return "column", "row"
        names = [f"observation[{dim}]" for dim in self.bins.dims]
        if len(names) == 1:
            return "observation" if self.bins.dims == (0,) else names[0], ""
        return names[0], names[1]


def draw_maps(
    results: Mapping[str, FirstVisitTimes],
    names: Mapping[str, str],
    layout: Layout,
    title: str,
    directory: Path,
) -> list[Path]:
    """Writes each policy's map, and all maps above their visit counts; returns the files.

    Args:
        results: first-visit times by policy key, which becomes part of the file name.
        names: name of each policy in titles.
        layout: layout of the cells.
        title: title of every figure.
        directory: where figures go; created if missing.
    """
    named = {names[key]: result for key, result in results.items()}
    scale = Normalize(0.0, max(result.num_steps for result in results.values()))
    files = []
    with style.voice():
        for key, result in results.items():
            figure = _figure({names[key]: result}, layout, title, scale, rows=1)
            files += style.save(figure, directory / f"first_visits_{key}")
        figure = _figure(named, layout, title, scale, rows=2)
        files += style.save(figure, directory / "coverage")
    return files


def _figure(
    results: Mapping[str, FirstVisitTimes],
    layout: Layout,
    title: str,
    scale: Normalize,
    rows: int,
) -> Figure:
    bands = math.ceil(len(results) / _MOST_COLUMNS)
    columns = math.ceil(len(results) / bands)
    titles = [_title(name, result) for name, result in results.items()]
    further_lines = max(text.count("\n") for text in titles)
    figure = style.new_figure(
        _PANEL_WIDTH * columns + 1.2,
        (layout.panel_height * rows + _LINE_HEIGHT * further_lines) * bands + 0.9,
    )
    axes = figure.subplots(bands * rows, columns, squeeze=False, sharex=True, sharey=True)
    visit_scale = LogNorm(*_visit_range(results))
    drawn: list[Any] = [None] * (bands * rows)
    for number, (text, result) in enumerate(zip(titles, results.values(), strict=True)):
        row, column = number // columns * rows, number % columns
        never = result.never_map() == 1.0
        drawn[row] = _panel(axes[row, column], result.mean_map(), never, layout, scale)
        axes[row, column].set_title(text)
        if rows == 2:
            visits = result.visit_map()
            drawn[row + 1] = _panel(axes[row + 1, column], visits, never, layout, visit_scale)
    num_last = len(results) - (bands - 1) * columns  # maps in the last band
    for unused in axes[-rows:, num_last:].flat:
        unused.set_axis_off()  # and keeps its place, so that all bands have the same columns
    _label(axes, layout, rows, num_last)
    for row, image in enumerate(drawn):
        label = "visits per trial" if row % rows else "steps to first visit"
        figure.colorbar(image, ax=axes[row].tolist(), label=label, pad=0.02)
    figure.suptitle(title, fontsize=11)
    if any((result.never_map() == 1.0).any() for result in results.values()):
        figure.legend(
            handles=[
                Patch(facecolor=style.NEVER_COLOUR, edgecolor=style.TEXT_COLOUR, linewidth=0.5)
            ],
            labels=[f"never visited in any trial (counted as {scale.vmax:,.0f})"],
            loc="outside lower center",
        )
    return figure


def _title(name: str, result: FirstVisitTimes) -> str:
    """A policy and its mean: in one line if they fit, else its parts and the mean in several."""
    mean = f"mean {result.trial_means().mean():,.0f}"
    if len(name) + len(mean) + 5 <= _TITLE_WIDTH:
        return f"{name}   ({mean})"
    lines = [""]
    for part in re.split(r", (?![^(]*\))", name):  # not at commas between brackets
        longer = f"{lines[-1]}, {part}" if lines[-1] else part
        lines[-1:] = [longer] if len(longer) <= _TITLE_WIDTH else [lines[-1], part]
    shown = [piece for line in lines for piece in textwrap.wrap(line, _TITLE_WIDTH)]
    return "\n".join([*shown, mean])


def _panel(
    axis: Any, values: FloatArray, never: BoolArray, layout: Layout, scale: Normalize
) -> Any:
    colours = style.FEW_TO_MANY if isinstance(scale, LogNorm) else style.SOON_TO_NEVER
    axis.set_facecolor(style.NEVER_COLOUR)
    return axis.imshow(
        np.ma.masked_array(layout.image(values), layout.image(never)),
        cmap=colours,
        norm=scale,
        origin="upper" if layout.width is not None else "lower",
        extent=layout.extent,
        aspect="equal" if layout.width is not None else "auto",
        interpolation="nearest",
    )


def _label(axes: Any, layout: Layout, rows: int, num_last: int) -> None:
    horizontal, vertical = layout.labels
    if layout.width is not None:
        for axis in axes.flat:
            axis.locator_params(integer=True)  # rows and columns have whole numbers
    for column in range(axes.shape[1]):
        lowest = axes[-1 if column < num_last else -1 - rows, column]
        lowest.set_xlabel(horizontal)
        lowest.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel(vertical)
        if not vertical:
            axis.set_yticks([])


def _visit_range(results: Mapping[str, FirstVisitTimes]) -> tuple[float, float]:
    values = np.concatenate([result.visit_map().ravel() for result in results.values()])
    seen = values[values > 0]
    return float(seen.min()), float(max(seen.max(), seen.min() * 10.0))
