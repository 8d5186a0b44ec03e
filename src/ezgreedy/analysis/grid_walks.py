"""When does a walk first visit each cell of an open grid?

The room of the paper's Figure 1: the agent starts at the top centre, its greedy policy walks
straight down, and hitting the bottom wall ends the episode. Many walks run side by side, one per
lane of the policy.
"""

from dataclasses import dataclass

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.analysis.visits import VisitTally
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.requirements import BoolArray, IntArray

UP, DOWN, LEFT, RIGHT = range(4)
NUM_ACTIONS = 4
_ROW_CHANGE = np.array([-1, 1, 0, 0])
_COLUMN_CHANGE = np.array([0, 0, -1, 1])


@dataclass(frozen=True)
class OpenGrid:
    """A square room, where walks start in it, and how long they last.

    Args:
        size: cells along each side.
        num_steps: steps of each walk, over any number of episodes.
        start_row: rows between the start and the top wall; its column is the middle one.
    """

    size: int = 23
    num_steps: int = 5000
    start_row: int = 0

    def __post_init__(self) -> None:
        require.integer("size", self.size, least=3, most=200)
        require.integer("num_steps", self.num_steps, least=1)
        require.integer("start_row", self.start_row, least=0, most=self.size - 1)


def first_visits(explore: EZGreedy, grid: OpenGrid) -> IntArray:
    """Step of the first visit to every cell, [lanes, size, size].

    Paper: a cell never visited counts as the length of the walk.
    """
    lanes = np.arange(explore.lanes)
    tally = VisitTally(explore.lanes, (grid.size, grid.size))
    rows, columns = np.full_like(lanes, grid.start_row), np.full_like(lanes, grid.size // 2)
    greedy = np.full_like(lanes, DOWN)
    for step in range(grid.num_steps):
        tally.add(step, lanes, rows * grid.size + columns)
        actions = explore(greedy)
        finished = (rows == grid.size - 1) & (actions == DOWN)
        rows, columns = _moved(rows, columns, actions, finished, grid)
        explore.reset(finished)
    return tally.result(grid.num_steps).first.reshape(explore.lanes, grid.size, grid.size)


def _moved(
    rows: IntArray, columns: IntArray, actions: IntArray, finished: BoolArray, grid: OpenGrid
) -> tuple[IntArray, IntArray]:
    """Where the walks are next: within the walls, or back at the start."""
    rows = np.clip(rows + _ROW_CHANGE[actions], 0, grid.size - 1)
    columns = np.clip(columns + _COLUMN_CHANGE[actions], 0, grid.size - 1)
    return np.where(finished, grid.start_row, rows), np.where(finished, grid.size // 2, columns)
