"""GridWorld: an open room of 23 × 23 cells. How soon does exploration cross it?

The agent starts at the top centre, one row from the wall, and moves up, down, left or right; walls
stop it. In the learning experiments a reward of 1 lies diagonally across, off the walls and in
another column, and ends the episode. In Figure 1's variant there is no goal: the greedy action is
always "down", and the episode ends when the agent hits the bottom wall.
"""

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.compilation import jit
from ezgreedy.envs.drawing import AGENT, GOLD, INK, MIST, PAPER, STONE, Canvas, Picture
from ezgreedy.envs.finite import FiniteEnv

UP, DOWN, LEFT, RIGHT = 0, 1, 2, 3
NUM_ACTIONS = 4
SIZE = 23
FIRST_ROW, FIRST_COLUMN = 1, 11
GOAL = (20, 20)
NO_GOAL = (-1, -1)
GOAL_REWARD = 1.0
STEP_LIMIT = 1000
LARGEST_SIZE = 4096

_EXIT = (246, 214, 205)


@jit
def step(
    row: int,
    column: int,
    action: int,
    size: int,
    goal_row: int,
    goal_column: int,
    bottom_ends: bool,
) -> tuple[int, int, float, bool]:
    """One step: (row, column, reward, terminated).

    Args:
        row: 0 at the top; `size` once the agent has gone through a bottom that ends.
        column: 0 at the left.
        action: UP, DOWN, LEFT or RIGHT.
        size: rows and columns of the room.
        goal_row: row of the goal; −1 if there is none.
        goal_column: column of the goal; −1 if there is none.
        bottom_ends: whether going down from the last row terminates, rather than being stopped.
    """
    if action == UP:
        row = max(row - 1, 0)
    elif action == DOWN:
        row = min(row + 1, size if bottom_ends else size - 1)
    elif action == LEFT:
        column = max(column - 1, 0)
    else:
        column = min(column + 1, size - 1)
    if row == goal_row and column == goal_column:
        return row, column, GOAL_REWARD, True
    return row, column, 0.0, row == size


class GridWorld(FiniteEnv):
    """The room as a Gymnasium environment; its state is row · size + column.

    Where the bottom ends the episode, one more row of states stands for having gone through it.

    Args:
        size: rows and columns of the room.
        start: row and column of the first state.
        goal: row and column of the reward, or None for a room without one.
        bottom_ends: whether hitting the bottom wall ends the episode.
        render_mode: "rgb_array" or None.
    """

    def __init__(
        self,
        size: int = SIZE,
        start: tuple[int, int] = (FIRST_ROW, FIRST_COLUMN),
        goal: tuple[int, int] | None = GOAL,
        bottom_ends: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.size = require.integer("size", size, least=1, most=LARGEST_SIZE)
        self.start = _cell("start", start, self.size)
        self.goal = NO_GOAL if goal is None else _cell("goal", goal, self.size)
        self.bottom_ends = require.flag("bottom_ends", bottom_ends)
        if self.start == self.goal:
            raise require.refuse("goal", "differ from start", goal)
        self.first_state = self.start[0] * self.size + self.start[1]
        self.num_columns = self.size
        num_rows = self.size + 1 if self.bottom_ends else self.size
        super().__init__(num_rows * self.size, NUM_ACTIONS, render_mode)

    def transition(self, state: int, action: int) -> tuple[int, float, bool]:
        """See `step`."""
        row, column = divmod(state, self.size)
        row, column, reward, terminated = step(
            row, column, action, self.size, *self.goal, self.bottom_ends
        )
        return row * self.size + column, reward, terminated

    def _draw(self) -> Picture:
        """The room within its walls; a bottom that ends is open, the goal golden."""
        size = self.size
        cell = max(440 // size, 1)
        wall = max(cell // 2, 4)
        side = size * cell
        floor = np.full((size, size, 3), PAPER, dtype=np.float64)
        bottom = cell if self.bottom_ends else wall
        canvas = Canvas(side + 2 * wall, wall + side + bottom, INK)
        if self.bottom_ends:
            canvas.box((wall, wall + side), (side, bottom), _EXIT)
        canvas.box((wall, wall), (side, side), MIST)
        canvas.cells(floor, (wall, wall), cell)

        def centre(row: int, column: int) -> tuple[float, float]:
            return wall + (column + 0.5) * cell - 0.5, wall + (row + 0.5) * cell - 0.5

        if self.goal != NO_GOAL:
            x, y = centre(*self.goal)
            canvas.box(
                (x - 0.42 * cell, y - 0.42 * cell), (0.84 * cell, 0.84 * cell), GOLD, 0.15 * cell
            )
        canvas.ring(centre(*self.start), max(0.42 * cell, 1.0), max(cell / 10, 1.0), STONE)
        canvas.disc(centre(*divmod(self.state, size)), max(0.34 * cell, 1.0), AGENT)
        return canvas.picture()


def _cell(name: str, value: object, size: int) -> tuple[int, int]:
    """A (row, column) within the room."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise require.refuse(name, "be a (row, column) pair", value)
    row = require.integer(f"{name}'s row", value[0], least=0, most=size - 1)
    return row, require.integer(f"{name}'s column", value[1], least=0, most=size - 1)
