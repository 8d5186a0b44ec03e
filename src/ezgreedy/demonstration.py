"""Why repeat an action? First-visit maps of ε- and εz-greedy on an open grid (Figure 1).

A small, quick version of the experiment `fig1-gridworld-coverage`, for the terminal and with only
NumPy: a map shows how many steps it took to first visit each cell, averaged over walks.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.analysis.grid_walks import NUM_ACTIONS, OpenGrid, first_visits
from ezgreedy.exploration.durations import Zeta
from ezgreedy.exploration.ez_greedy import EpsilonGreedy, EZGreedy
from ezgreedy.requirements import FloatArray

# From soon to never visited: 256-colour terminal codes, and shades where colour is off.
_COLOURS = (21, 27, 33, 39, 45, 51, 50, 49, 48, 154, 190, 226, 220, 214, 208, 202, 196)
_SHADES = "█▓▒░ "


@dataclass(frozen=True)
class DemoSettings:
    """Settings of the demonstration; the defaults are those of the paper's Figure 1.

    Args:
        size: cells along each side of the grid.
        num_steps: steps of each walk.
        num_walks: number of walks to average.
        epsilons: values of ε to compare.
        mu: exponent of the zeta law.
        seed: random seed of both policies, which share their coins.
    """

    size: int = 23
    num_steps: int = 5000
    num_walks: int = 100
    epsilons: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)
    mu: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        OpenGrid(self.size, self.num_steps)
        require.integer("num_walks", self.num_walks, least=1)
        for epsilon in self.epsilons:
            require.number("epsilon", epsilon, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class PolicyMaps:
    """Mean first-visit times of both policies at one ε, each [size, size]."""

    epsilon: float
    eps: FloatArray
    ez: FloatArray


def run(settings: DemoSettings) -> list[PolicyMaps]:
    """Walks the grid with both policies at every ε."""
    grid, durations = OpenGrid(settings.size, settings.num_steps), Zeta(settings.mu)
    maps = []
    for epsilon in settings.epsilons:
        eps = EpsilonGreedy(NUM_ACTIONS, epsilon, settings.num_walks, settings.seed)
        ez = EZGreedy(NUM_ACTIONS, epsilon, durations, settings.num_walks, settings.seed)
        means = (first_visits(policy, grid).mean(axis=0) for policy in (eps, ez))
        maps.append(PolicyMaps(epsilon, *means))
    return maps


def summary(maps: list[PolicyMaps], settings: DemoSettings) -> str:
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


def terminal_map(item: PolicyMaps, num_steps: int, *, colour: bool) -> str:
    """Both maps of one ε side by side, two characters per cell."""
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
    """The meaning of the colours or shades in terminal maps."""
    scale = np.linspace(0.0, 1.0, len(_COLOURS) if colour else len(_SHADES))
    return f"soon {_painted(scale, colour=colour)} never"


def _painted(levels: FloatArray, *, colour: bool) -> str:
    steps = len(_COLOURS) if colour else len(_SHADES)
    indices = np.minimum((levels * steps).astype(int), steps - 1).tolist()
    if colour:
        return "".join(f"\x1b[48;5;{_COLOURS[i]}m  " for i in indices) + "\x1b[0m"
    return "".join(2 * _SHADES[i] for i in indices)


def draw(maps: list[PolicyMaps], settings: DemoSettings, directory: Path) -> list[Path]:
    """Writes the maps as a figure, PNG and SVG; returns the files. Needs matplotlib."""
    from ezgreedy.figures import heatmaps, style
    from ezgreedy.findings.maps import ColourScale

    figure = heatmaps.first_visit_maps(
        [[item.eps for item in maps], [item.ez for item in maps]],
        row_labels=("ε-greedy", "εz-greedy"),
        column_labels=[f"ε = {item.epsilon:g}" for item in maps],
        scale=ColourScale(settings.num_steps),
    )
    return style.save(figure, directory / "first_visits")
