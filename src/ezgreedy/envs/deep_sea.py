"""DeepSea: one action sequence out of 2ᴺ finds the treasure; every other dive finds nothing.

An N × N grid, entered at the top left; each step goes one row down, and either right or not. Only
going right N times earns the reward 1 in the far corner. Transitions and rewards agree with
bsuite's DeepSea, in which the other action moves left and only moves to the right cost 0.01/N.

Paper: its appendix says instead that the other action goes straight down and that every step costs
0.01/N. Both are settings here. The geometry matters little; the cost decides the result, because
untried actions look better than tried ones when every step costs.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.compilation import jit, place
from ezgreedy.envs.drawing import AGENT, DEEP, GOLD, INK, PAPER, SHALLOW, Canvas, Picture, blend
from ezgreedy.envs.finite import FiniteEnv

NUM_ACTIONS = 2
FIRST_ROW = FIRST_COLUMN = 0
GOAL_REWARD = 1.0
MOVE_COST = 0.01  # over N moves: the best return is 0.99
LARGEST_SIZE = 4096

ActionMapping = NDArray[np.int8]

_SAND = (226, 208, 170)


@jit
def move(
    row: int,
    column: int,
    goes_right: bool,
    size: int,
    right_cost: float,
    other_cost: float,
    left_shift: int,
) -> tuple[int, int, float, bool]:
    """One step down whose sideways effect is known: (row, column, reward, terminated).

    Args:
        row: 0 at the surface; `size` is the sea bed, where the episode is over.
        column: 0 at the left.
        goes_right: whether the action means right in this state.
        size: N.
        right_cost: cost of a move to the right.
        other_cost: cost of the other move.
        left_shift: columns by which the other move goes left: 1 in bsuite, 0 in the paper.
    """
    if goes_right:
        reward = (GOAL_REWARD if column == size - 1 else 0.0) - right_cost
        column = min(column + 1, size - 1)
    else:
        reward = 0.0 - other_cost
        column = max(column - left_shift, 0)
    return row + 1, column, reward, row + 1 == size


@jit
def step(
    row: int,
    column: int,
    action: int,
    mapping: ActionMapping,
    right_cost: float,
    other_cost: float,
    left_shift: int,
) -> tuple[int, int, float, bool]:
    """One step: (row, column, reward, terminated). `mapping` is each state's action for right."""
    goes_right = action == mapping[place(row), place(column)]
    return move(row, column, goes_right, mapping.shape[0], right_cost, other_cost, left_shift)


def consistent_mapping(size: int) -> ActionMapping:
    """Action 1 is right in every state, [size, size]."""
    return np.ones((size, size), dtype=np.int8)


def random_mapping(size: int, seed: int) -> ActionMapping:
    """The action that means right in each state, [size, size]: a fair coin each, from a seed.

    The paper's adversarial variant: drawn once for a training run and kept through all episodes.
    """
    return np.random.default_rng(seed).integers(0, 2, size=(size, size), dtype=np.int8)


def move_costs(
    size: int, cost_on: Literal["right", "step"] = "right", move_cost: float = MOVE_COST
) -> tuple[float, float]:
    """`step`'s right_cost and other_cost, such that N moves to the right cost `move_cost`."""
    require.one_of("cost_on", cost_on, ("right", "step"))
    cost = require.number("move_cost", move_cost, least=0.0) / size
    return cost, cost if cost_on == "step" else 0.0


class DeepSea(FiniteEnv):
    """DeepSea as a Gymnasium environment; its state is row · size + column, the sea bed last.

    Args:
        size: N, the number of rows and columns; an episode lasts N steps.
        action_seed: None for actions that mean the same everywhere (1 is right); a seed for
            action effects drawn at random for each state.
        cost_on: which moves cost: "right" as in bsuite, or every "step" as the appendix says.
        move_cost: the cost of N moves; the best return is 1 − move_cost.
        other_move: direction of the other action: down and "left" as in bsuite, or straight "down".
        render_mode: "rgb_array" or None.
    """

    first_state = 0

    def __init__(
        self,
        size: int = 20,
        action_seed: int | None = None,
        cost_on: Literal["right", "step"] = "right",
        move_cost: float = MOVE_COST,
        other_move: Literal["left", "down"] = "left",
        render_mode: str | None = None,
    ) -> None:
        self.size = require.integer("size", size, least=1, most=LARGEST_SIZE)
        self.right_cost, self.other_cost = move_costs(self.size, cost_on, move_cost)
        require.one_of("other_move", other_move, ("left", "down"))
        self.left_shift = 1 if other_move == "left" else 0
        self.mapping = consistent_mapping(self.size)
        if action_seed is not None:
            seed = require.integer("action_seed", action_seed, least=0, most=None)
            self.mapping = random_mapping(self.size, seed)
        self.num_columns = self.size
        super().__init__((self.size + 1) * self.size, NUM_ACTIONS, render_mode)

    def transition(self, state: int, action: int) -> tuple[int, float, bool]:
        """See `step`."""
        row, column = divmod(state, self.size)
        row, column, reward, terminated = step(
            row,
            column,
            action,
            self.mapping,
            self.right_cost,
            self.other_cost,
            self.left_shift,
        )
        return row * self.size + column, reward, terminated

    def _draw(self) -> Picture:
        """Water that darkens with depth, the treasure in the corner, sand at the bottom."""
        size, margin = self.size, 16
        cell = max(440 // (size + 1), 1)
        depth = np.linspace(0.0, 1.0, size)[:, None]
        rows, columns = np.arange(size)[:, None], np.arange(size)[None, :]
        water = blend(SHALLOW, DEEP, np.broadcast_to(depth, (size, size)))
        # No dive gets above the diagonal: that part is drawn faintly, as paper.
        colours = np.where((columns <= rows)[..., None], water, blend(PAPER, SHALLOW, 0.25))
        bed = np.broadcast_to(np.array(_SAND, dtype=np.float64), (1, size, 3))
        side = 2 * margin + size * cell
        canvas = Canvas(side, side + cell)
        canvas.cells(np.concatenate([colours, bed]), (margin, margin), cell)

        def centre(row: int, column: int) -> tuple[float, float]:
            return margin + (column + 0.5) * cell - 0.5, margin + (row + 0.5) * cell - 0.5

        x, y = centre(size - 1, size - 1)
        chest = max(0.62 * cell, 1.0)
        canvas.box((x - chest / 2, y - chest / 2), (chest, chest), GOLD, rounding=chest / 6)
        canvas.segment((x - chest / 2, y), (x + chest / 2, y), cell / 30, INK)
        diver = centre(*divmod(self.state, size))
        canvas.disc(diver, max(0.34 * cell, 1.0), PAPER)
        canvas.disc(diver, max(0.28 * cell, 0.8), AGENT)
        return canvas.picture()
