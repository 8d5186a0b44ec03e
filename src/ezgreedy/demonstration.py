"""Why repeat an action? First-visit maps of ε- against εz-greedy on an open grid (Figure 1).

The agent starts at the top centre, its greedy policy walks straight down, and hitting the bottom
wall ends the episode. Many walks run side by side, one to a lane, for a fixed number of steps; a
map shows after how many steps each cell was first visited, on average over walks.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import Zeta
from ezgreedy.exploration.ez_greedy import EpsilonGreedy, EZGreedy
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

UP, DOWN, LEFT, RIGHT = range(4)
_ROW_CHANGE = np.array([-1, 1, 0, 0])
_COLUMN_CHANGE = np.array([0, 0, -1, 1])

# From soon to never visited: 256-colour terminal codes, and shades where colour is unwelcome.
_COLOURS = (21, 27, 33, 39, 45, 51, 50, 49, 48, 154, 190, 226, 220, 214, 208, 202, 196)
_SHADES = "█▓▒░ "


@dataclass(frozen=True)
class DemoSettings:
    """What the demonstration runs; the defaults are the paper's Figure 1.

    Args:
        size: cells along each side of the grid.
        num_steps: steps of each walk.
        num_walks: walks averaged over.
        epsilons: values of ε to compare at.
        mu: exponent of the zeta law.
        seed: of both policies, which share their coins.
    """

    size: int = 23
    num_steps: int = 5000
    num_walks: int = 100
    epsilons: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)
    mu: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        require.integer("size", self.size, least=3, most=200)
        require.integer("num_steps", self.num_steps, least=1)
        require.integer("num_walks", self.num_walks, least=1)
        for epsilon in self.epsilons:
            require.number("epsilon", epsilon, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class FirstVisits:
    """Mean first-visit times of both policies at one ε, each [size, size]."""

    epsilon: float
    eps: FloatArray
    ez: FloatArray


def run(settings: DemoSettings) -> list[FirstVisits]:
    """Walks the grid with both policies at every ε."""
    durations = Zeta(settings.mu)
    maps = []
    for epsilon in settings.epsilons:
        eps = EpsilonGreedy(4, epsilon, settings.num_walks, settings.seed)
        ez = EZGreedy(4, epsilon, durations, settings.num_walks, settings.seed)
        maps.append(FirstVisits(epsilon, _walk(eps, settings), _walk(ez, settings)))
    return maps


def _walk(explore: EZGreedy, settings: DemoSettings) -> FloatArray:
    """Mean first-visit time of every cell; a cell never visited counts the whole walk."""
    size, lanes = settings.size, np.arange(settings.num_walks)
    first = np.full((settings.num_walks, size, size), settings.num_steps)
    rows, columns = np.zeros_like(lanes), np.full_like(lanes, size // 2)
    greedy = np.full_like(lanes, DOWN)
    for step in range(settings.num_steps):
        seen = first[lanes, rows, columns]
        first[lanes, rows, columns] = np.minimum(seen, step)
        actions = explore(greedy)
        finished = (rows == size - 1) & (actions == DOWN)
        rows, columns = _moved(rows, columns, actions, finished, size)
        explore.reset(finished)
    return first.mean(axis=0)


def _moved(
    rows: IntArray, columns: IntArray, actions: IntArray, finished: BoolArray, size: int
) -> tuple[IntArray, IntArray]:
    """Where the walks are next: within the walls, or back at the top centre."""
    rows = np.clip(rows + _ROW_CHANGE[actions], 0, size - 1)
    columns = np.clip(columns + _COLUMN_CHANGE[actions], 0, size - 1)
    return np.where(finished, 0, rows), np.where(finished, size // 2, columns)


def summary(maps: list[FirstVisits], settings: DemoSettings) -> str:
    """A table of mean first-visit times, over the grid and in the bottom corners."""
    lines = [
        f"mean steps to the first visit ({settings.num_walks} walks of {settings.num_steps} steps)",
        "   ε       all cells: ε   εz   ratio    bottom corners: ε   εz   ratio",
    ]
    for item in maps:
        cells = item.eps.mean(), item.ez.mean()
        corners = item.eps[-1, [0, -1]].mean(), item.ez[-1, [0, -1]].mean()
        lines.append(
            f"{item.epsilon:5.2f} {cells[0]:15.0f} {cells[1]:6.0f} {cells[1] / cells[0]:6.2f}"
            f" {corners[0]:20.0f} {corners[1]:6.0f} {corners[1] / corners[0]:6.2f}"
        )
    return "\n".join(lines)


def terminal_map(item: FirstVisits, num_steps: int, *, colour: bool) -> str:
    """Both maps of one ε side by side, two characters to a cell."""
    width = 2 * len(item.eps)
    lines = [f"ε = {item.epsilon:g}", f"{'ε-greedy':<{width + 3}}εz-greedy"]
    for left, right in zip(item.eps, item.ez, strict=True):
        lines.append(
            _painted(left / num_steps, colour=colour)
            + "   "
            + _painted(right / num_steps, colour=colour)
        )
    return "\n".join(lines)


def legend(*, colour: bool) -> str:
    """What the terminal maps' colours or shades mean."""
    scale = np.linspace(0.0, 1.0, len(_COLOURS) if colour else len(_SHADES))
    return f"soon {_painted(scale, colour=colour)} never"


def _painted(levels: FloatArray, *, colour: bool) -> str:
    steps = len(_COLOURS) if colour else len(_SHADES)
    indices = np.minimum((levels * steps).astype(int), steps - 1).tolist()
    if colour:
        return "".join(f"\x1b[48;5;{_COLOURS[i]}m  " for i in indices) + "\x1b[0m"
    return "".join(2 * _SHADES[i] for i in indices)


def draw(maps: list[FirstVisits], settings: DemoSettings, directory: Path) -> list[Path]:
    """Writes the maps as a figure, PNG and SVG; returns the files. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    columns = len(maps)
    figure, axes = plt.subplots(
        2, columns, figsize=(2.1 * columns + 1.1, 4.6), squeeze=False, layout="constrained"
    )
    image: Any = None
    for column, item in enumerate(maps):
        for axis, values in zip(axes[:, column], (item.eps, item.ez), strict=True):
            image = axis.imshow(values, cmap="RdYlBu_r", vmin=0, vmax=settings.num_steps)
            axis.set(xticks=[], yticks=[])
            axis.set_xlabel(f"mean {values.mean():,.0f}", fontsize=9)
        axes[0, column].set_title(f"ε = {item.epsilon:g}", fontsize=11)
    axes[0, 0].set_ylabel("ε-greedy", fontsize=11)
    axes[1, 0].set_ylabel("εz-greedy", fontsize=11)
    bar = figure.colorbar(image, ax=axes, shrink=0.85, aspect=30)
    bar.set_label("mean steps to first visit")
    directory.mkdir(parents=True, exist_ok=True)
    files = [directory / f"first_visits.{kind}" for kind in ("png", "svg")]
    for file in files:
        figure.savefig(file, dpi=150)
    plt.close(figure)
    return files
