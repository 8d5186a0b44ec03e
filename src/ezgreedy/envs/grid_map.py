"""Grids drawn as text: what do narrow ways, walls and mines do to exploration?

A map is a list of rows of equal length, and everything outside it is wall:

    .  floor                    G  the goal: pays 1 and ends the episode
    S  floor, the first cell    *  a mine: ends the episode and pays nothing
    #  wall

Paper: "GridWorld with many obstacles that immediately end the episode ('mines')" is one of its
examples of where εz-greedy should do worse than ε-greedy. It gives no map; those here are ours.
"""

from collections.abc import Sequence

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.envs.drawing import AGENT, GOLD, INK, MIST, PAPER, STONE, Canvas, Picture
from ezgreedy.envs.finite import FiniteEnv
from ezgreedy.requirements import IntArray

FLOOR, START, WALL, END, MINE = ".S#G*"
GOAL_REWARD = 1.0
LARGEST_SIDE = 4096

# What each move adds to row and column, in the order of GridWorld's actions.
MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

MAPS: dict[str, tuple[str, ...]] = {
    "corridor": ("S......................................G",),
    "four-rooms": (
        ".......#.......",
        ".......#.......",
        ".......#.......",
        "...S...........",
        ".......#.......",
        ".......#.......",
        ".......#.......",
        "##.########.###",
        ".......#.......",
        ".......#.......",
        ".......#.......",
        "...............",
        ".......#....G..",
        ".......#.......",
        ".......#.......",
    ),
    "mines": (
        ".......*.......",
        "...............",
        "..*.......*....",
        "......*.......*",
        "...............",
        ".*.......*.....",
        ".....*.......*.",
        ".......S.......",
        "...*.......*...",
        "...............",
        ".*.....*.......",
        "..........*..*.",
        "....*..........",
        "...............",
        "*......*....*..",
    ),
}


class GridMap(FiniteEnv):
    """A map as a Gymnasium environment; its state is row · columns + column.

    Args:
        rows: the map, see the module's docstring; or the name of one of `MAPS`.
        moves: names of the moves, in the order of the actions.
        render_mode: "rgb_array" or None.
    """

    num_columns: int

    def __init__(
        self,
        rows: Sequence[str] = "four-rooms",
        moves: Sequence[str] = tuple(MOVES),
        render_mode: str | None = None,
    ) -> None:
        self.rows = _checked_rows(rows)
        self.moves = tuple(require.one_of("moves", move, tuple(MOVES)) for move in moves)
        require.integer("the number of moves", len(self.moves), least=1)
        self.num_columns = len(self.rows[0])
        cells = "".join(self.rows)
        self.first_state = cells.index(START)
        self._cells = cells
        self._successors = _successors(self.rows, self.moves)
        super().__init__(len(cells), len(self.moves), render_mode)

    def transition(self, state: int, action: int) -> tuple[int, float, bool]:
        """The cell that a move leads to, what it pays, and whether it ends the episode."""
        successor = int(self._successors[state, action])
        cell = self._cells[successor]
        return successor, GOAL_REWARD if cell == END else 0.0, cell in (END, MINE)

    def _draw(self) -> Picture:
        """Walls dark, mines as dark discs, the goal golden, the agent coral."""
        num_rows, num_columns = len(self.rows), self.num_columns
        cell = max(480 // max(num_rows, num_columns), 1)
        # A narrow map is drawn within a wall high enough to be an image.
        margin = max(cell // 2, 4), max(cell // 2, (200 - num_rows * cell + 1) // 2, 4)
        canvas = Canvas(num_columns * cell + 2 * margin[0], num_rows * cell + 2 * margin[1], INK)
        canvas.box(margin, (num_columns * cell, num_rows * cell), MIST)
        floor = [[INK if kind == WALL else PAPER for kind in row] for row in self.rows]
        canvas.cells(np.array(floor, dtype=np.float64), margin, cell)

        def centre(state: int) -> tuple[float, float]:
            row, column = divmod(state, num_columns)
            return margin[0] + (column + 0.5) * cell - 0.5, margin[1] + (row + 0.5) * cell - 0.5

        for state, kind in enumerate(self._cells):
            if kind == MINE:
                canvas.disc(centre(state), max(0.3 * cell, 1.0), STONE)
            elif kind == END:
                x, y = centre(state)
                side = 0.84 * cell
                canvas.box((x - side / 2, y - side / 2), (side, side), GOLD, 0.15 * cell)
        start = centre(self.first_state)
        canvas.ring(start, max(0.42 * cell, 1.0), max(cell / 10, 1.0), STONE)
        canvas.disc(centre(self.state), max(0.34 * cell, 1.0), AGENT)
        return canvas.picture()


def _checked_rows(rows: Sequence[str]) -> tuple[str, ...]:
    if isinstance(rows, str):
        return MAPS[require.one_of("rows", rows, tuple(MAPS))]
    checked = tuple(rows)
    kinds = set().union(*checked) if all(isinstance(row, str) for row in checked) else {None}
    if not checked or not kinds <= {FLOOR, START, WALL, END, MINE}:
        raise require.refuse("rows", f"be strings of {FLOOR}{START}{WALL}{END}{MINE}", rows)
    lengths = {len(row) for row in checked}
    if len(lengths) != 1 or not 1 <= max(*lengths, len(checked)) <= LARGEST_SIDE:
        raise require.refuse("rows", f"have one length, at most {LARGEST_SIDE}", sorted(lengths))
    if (starts := "".join(checked).count(START)) != 1:
        raise require.refuse("rows", f"hold one {START}", starts)
    return checked


def _successors(rows: tuple[str, ...], moves: tuple[str, ...]) -> IntArray:
    """The state that each move leads to, [states, moves]; walls stop it."""
    num_rows, num_columns = len(rows), len(rows[0])
    is_wall = np.array([[kind == WALL for kind in row] for row in rows]).ravel()
    row, column = np.divmod(np.arange(num_rows * num_columns), num_columns)
    successors = []
    for down, right in (MOVES[move] for move in moves):
        beyond = np.clip(row + down, 0, num_rows - 1) * num_columns
        beyond += np.clip(column + right, 0, num_columns - 1)
        successors.append(np.where(is_wall[beyond], row * num_columns + column, beyond))
    return np.stack(successors, axis=1)
