"""How first-visit maps look: one panel per policy, one colour scale for all of them.

Dimension 0 of the cells runs along the horizontal axis and dimension 1 upwards; a single dimension
is a strip, or is folded into rows if it numbers the cells of a grid. Cells that no trial visited
are grey, apart from those that were merely visited late. Needs matplotlib.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.visits import FirstVisitTimes
from ezgreedy.requirements import BoolArray, FloatArray

_FIRST_VISIT_COLOURS = "RdYlBu_r"
_VISIT_COLOURS = "cividis"
_NEVER = "#d9d9dc"
_INK = "#30343b"
_PANEL_WIDTH = 3.5  # inches
_KINDS = ("png", "svg")
_STYLE: Any = {
    "font.size": 9.0,
    "axes.titlesize": 11.0,
    "axes.edgecolor": _INK,
    "axes.linewidth": 0.8,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "svg.hashsalt": "ezgreedy",  # the same figure gives the same file
}


@dataclass(frozen=True)
class Layout:
    """How the cells of bins lie on paper.

    Args:
        bins: the cells.
        width: fold a single discrete dimension into rows of so many cells; None for a strip.
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
        # A value stands in the middle of its bin.
        return (low - 0.5, high - 0.5) if self.bins.is_discrete[axis] else (low, high)

    @property
    def panel_height(self) -> float:
        """Of one map, in inches: cells of a grid are square, other axes have no common unit."""
        num_rows, num_columns = self.image(np.zeros(self.bins.counts)).shape
        if self.width is not None:
            return min(max(_PANEL_WIDTH * num_rows / num_columns, 1.6), 7.0)
        return 1.6 if num_rows == 1 else 3.1

    @property
    def labels(self) -> tuple[str, str]:
        """Of the horizontal and the vertical axis."""
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
    """Writes each policy's map by itself, and all of them over their visit counts; the files.

    Args:
        results: by the policy's key, which becomes part of a file's name.
        names: what titles call each policy.
        layout: how cells lie on paper.
        title: of every figure.
        directory: where figures go; must exist.
    """
    named = {names[key]: result for key, result in results.items()}
    scale = Normalize(0.0, max(result.num_steps for result in results.values()))
    files = []
    with matplotlib.rc_context(_STYLE):
        for key, result in results.items():
            figure = _figure({names[key]: result}, layout, title, scale, rows=1)
            files += _saved(figure, directory / f"first_visits_{key}")
        figure = _figure(named, layout, title, scale, rows=2)
        files += _saved(figure, directory / "coverage")
    return files


def _figure(
    results: Mapping[str, FirstVisitTimes],
    layout: Layout,
    title: str,
    scale: Normalize,
    rows: int,
) -> Figure:
    columns = len(results)
    size = (_PANEL_WIDTH * columns + 1.2, layout.panel_height * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    visit_scale = LogNorm(*_visit_range(results))
    first: Any = None
    counts: Any = None
    for column, (name, result) in enumerate(results.items()):
        never = result.never_map() == 1.0
        first = _panel(axes[0, column], result.mean_map(), never, layout, scale)
        axes[0, column].set_title(f"{name}   (mean {result.trial_means().mean():,.0f})")
        if rows == 2:
            counts = _panel(axes[1, column], result.visit_map(), never, layout, visit_scale)
    _label(axes, layout)
    figure.colorbar(first, ax=axes[0].tolist(), label="steps to first visit", pad=0.02)
    if counts is not None:
        figure.colorbar(counts, ax=axes[1].tolist(), label="visits per trial", pad=0.02)
    figure.suptitle(title, fontsize=12, fontweight="bold")
    if any((result.never_map() == 1.0).any() for result in results.values()):
        figure.legend(
            handles=[Patch(facecolor=_NEVER, edgecolor=_INK, linewidth=0.5)],
            labels=[f"never visited in any trial (counted as {scale.vmax:,.0f})"],
            loc="outside lower center",
            frameon=False,
        )
    return figure


def _panel(
    axis: Any, values: FloatArray, never: BoolArray, layout: Layout, scale: Normalize
) -> Any:
    colours = _VISIT_COLOURS if isinstance(scale, LogNorm) else _FIRST_VISIT_COLOURS
    axis.set_facecolor(_NEVER)
    return axis.imshow(
        np.ma.masked_array(layout.image(values), layout.image(never)),
        cmap=colours,
        norm=scale,
        origin="upper" if layout.width is not None else "lower",
        extent=layout.extent,
        aspect="equal" if layout.width is not None else "auto",
        interpolation="nearest",
    )


def _label(axes: Any, layout: Layout) -> None:
    horizontal, vertical = layout.labels
    for axis in axes[-1]:
        axis.set_xlabel(horizontal)
    for axis in axes[:, 0]:
        axis.set_ylabel(vertical)
        if not vertical:
            axis.set_yticks([])


def _visit_range(results: Mapping[str, FirstVisitTimes]) -> tuple[float, float]:
    values = np.concatenate([result.visit_map().ravel() for result in results.values()])
    seen = values[values > 0]
    return float(seen.min()), float(max(seen.max(), seen.min() * 10.0))


def _saved(figure: Figure, stem: Path) -> list[Path]:
    files = [stem.with_suffix(f".{kind}") for kind in _KINDS]
    for file in files:
        metadata = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(file, dpi=160, metadata=metadata)
    return files
