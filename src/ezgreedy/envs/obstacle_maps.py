"""Where should repeating an action not pay? Mines, turns, and actions that do the same.

The paper's section on limitations names environments in which εz-greedy should do badly: a room
with many obstacles that end the episode ("mines"), a maze that changes direction every few steps,
and action spaces in which many actions have the same effect. It gives no maps. Those here are drawn
at random from a seed, with as much of the obstacle as asked for, and are maps of `GridMap`.
"""

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.envs import grid_world
from ezgreedy.envs.grid_map import END, FLOOR, LARGEST_SIDE, MINE, MOVES, START, WALL, GridMap
from ezgreedy.requirements import BoolArray

STEP_LIMIT = grid_world.STEP_LIMIT

_ROOM_START = grid_world.FIRST_ROW, grid_world.FIRST_COLUMN
_MOST_DRAWS = 1000

Rows = tuple[str, ...]


def mined_room(share: float, seed: int) -> Rows:
    """The paper's open room with mines in a share of its cells, drawn at random.

    The start, the goal and the cells next to them have none, and a way to the goal is left: rooms
    without one are drawn again.

    Args:
        share: share of the room's cells with a mine.
        seed: random seed of the mines.
    """
    share = require.number("share", share, 0.0, 1.0)
    rng = np.random.default_rng(require.integer("seed", seed, least=0, most=None))
    near = np.zeros((grid_world.SIZE, grid_world.SIZE), dtype=np.bool_)
    for row, column in (_ROOM_START, grid_world.GOAL):
        near[row - 1 : row + 2, column - 1 : column + 2] = True
    places = np.argwhere(~near)
    num_mines = round(share * near.size)
    if num_mines > len(places):
        raise require.refuse("share", f"leave the {near.sum()} cells at start and goal", share)
    for _ in range(_MOST_DRAWS):
        is_mine = np.zeros_like(near)
        is_mine[tuple(rng.permutation(places)[:num_mines].T)] = True
        if _is_way(~is_mine, _ROOM_START, grid_world.GOAL):
            cells = np.where(is_mine, MINE, FLOOR)
            cells[_ROOM_START], cells[grid_world.GOAL] = START, END
            return _rows(cells)
    raise require.refuse("share", f"leave a way to the goal in {_MOST_DRAWS} draws", share)


def turning_corridor(steps_between_turns: int, length: int, seed: int) -> Rows:
    """A corridor that turns every few steps: right, then up or down by a coin, then right again.

    The map is the smallest that it fits into. It begins in the left column, and its other end is
    the goal.

    Args:
        steps_between_turns: length of every straight piece, in steps; at least 2, so that pieces
            do not touch.
        length: steps from one end to the other, a multiple of it.
        seed: random seed of the turns.
    """
    piece = require.integer("steps_between_turns", steps_between_turns, least=2)
    length = require.integer("length", length, least=piece, most=LARGEST_SIDE - 1)
    if length % piece:
        raise require.refuse("length", f"be a multiple of {piece}", length)
    rng = np.random.default_rng(require.integer("seed", seed, least=0, most=None))
    path = [(0, 0)]
    for number in range(length // piece):
        downwards = 1 if rng.random() < 0.5 else -1
        down, right = (downwards, 0) if number % 2 else (0, 1)
        for _ in range(piece):
            path.append((path[-1][0] + down, path[-1][1] + right))
    places = np.array(path) - np.min(path, axis=0)
    cells = np.full(places.max(axis=0) + 1, WALL)
    cells[tuple(places.T)] = FLOOR
    cells[tuple(places[0])], cells[tuple(places[-1])] = START, END
    return _rows(cells)


def repeated_moves(num_copies: int, move: str = "up") -> tuple[str, ...]:
    """Each move once, then further copies of one of them, 4 + num_copies in all."""
    num_copies = require.integer("num_copies", num_copies, least=0, most=1000)
    return (*MOVES, *[require.one_of("move", move, tuple(MOVES))] * num_copies)


# As environments.


def mine_field(share: float = 0.1, seed: int = 0, render_mode: str | None = None) -> GridMap:
    """GridWorld with mines; see `mined_room`."""
    return GridMap(mined_room(share, seed), render_mode=render_mode)


def turning_maze(
    steps_between_turns: int = 3, length: int = 48, seed: int = 0, render_mode: str | None = None
) -> GridMap:
    """A maze that turns every few steps; see `turning_corridor`."""
    return GridMap(turning_corridor(steps_between_turns, length, seed), render_mode=render_mode)


def repeated_actions(
    num_copies: int = 4, move: str = "up", render_mode: str | None = None
) -> GridMap:
    """GridWorld with several actions of the same effect; see `repeated_moves`."""
    moves = repeated_moves(num_copies, move)
    return GridMap(mined_room(0.0, 0), moves, render_mode=render_mode)


def _is_way(passable: BoolArray, start: tuple[int, int], goal: tuple[int, int]) -> bool:
    """Whether steps between passable cells lead from the start to the goal."""
    reached = np.zeros_like(passable)
    reached[start] = True
    while True:
        wider = reached.copy()
        wider[1:] |= reached[:-1]
        wider[:-1] |= reached[1:]
        wider[:, 1:] |= reached[:, :-1]
        wider[:, :-1] |= reached[:, 1:]
        wider &= passable
        if (wider == reached).all():
            return bool(reached[goal])
        reached = wider


def _rows(cells: "np.ndarray[tuple[int, int], np.dtype[np.str_]]") -> Rows:
    return tuple("".join(row) for row in cells.tolist())
