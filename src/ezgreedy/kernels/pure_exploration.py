"""When is each state first visited if nothing is learned and ε = 1?

The first-visit maps of Figure 3 for the two tabular environments. With ε = 1 the greedy policy is
never asked, so a walk needs no values; it ends early once every state has been seen.
"""

import numpy as np

from ezgreedy.compilation import jit
from ezgreedy.envs import deep_sea, grid_world
from ezgreedy.exploration.compiled import LaneStream, explore, lane_stream
from ezgreedy.kernels.tabular import Exploration, Room, Sea
from ezgreedy.requirements import IntArray

_SEA_ACTIONS = deep_sea.NUM_ACTIONS
_ROOM_ACTIONS = grid_world.NUM_ACTIONS
_SURFACE_ROW, _SURFACE_COLUMN = deep_sea.FIRST_ROW, deep_sea.FIRST_COLUMN
_NO_GOAL_ROW, _NO_GOAL_COLUMN = grid_world.NO_GOAL


def deep_sea_first_visits(
    seed: int, lane: int, sea: Sea, policy: Exploration, num_steps: int
) -> IntArray:
    """Step of the first visit to every cell, [size, size]; −1 above the diagonal.

    Paper: a cell never seen counts the whole walk.
    """
    size = len(sea.mapping)
    first = np.full((size, size), num_steps)
    _deep_sea_walk(lane_stream(seed, lane), sea, policy, num_steps, first)
    first[np.triu_indices(size, 1)] = -1
    return first


@jit
def _deep_sea_walk(
    stream: LaneStream, sea: Sea, policy: Exploration, num_steps: int, first: IntArray
) -> None:
    size = sea.mapping.shape[0]
    unseen = size * (size + 1) // 2
    row, column, option_action, remaining = _SURFACE_ROW, _SURFACE_COLUMN, 0, 0
    for step in range(num_steps):
        if first[row, column] == num_steps:
            first[row, column] = step
            unseen -= 1
            if unseen == 0:
                return
        option_action, remaining, _ = explore(
            stream, step, 1.0, policy.durations, _SEA_ACTIONS, option_action, remaining
        )
        row, column, _, terminated = deep_sea.step(
            row, column, option_action, sea.mapping, 0.0, 0.0, sea.left_shift
        )
        if terminated:
            row, column = _SURFACE_ROW, _SURFACE_COLUMN
            if not policy.carries_over_episodes:
                remaining = 0


def grid_world_first_visits(
    seed: int, lane: int, room: Room, policy: Exploration, num_steps: int
) -> IntArray:
    """Step of the first visit to every cell of a room without a goal, [size, size]."""
    first = np.full((room.size, room.size), num_steps)
    _grid_world_walk(lane_stream(seed, lane), room, policy, num_steps, first)
    return first


@jit
def _grid_world_walk(
    stream: LaneStream, room: Room, policy: Exploration, num_steps: int, first: IntArray
) -> None:
    unseen = room.size * room.size
    row, column, option_action, remaining = room.start_row, room.start_column, 0, 0
    for step in range(num_steps):
        if first[row, column] == num_steps:
            first[row, column] = step
            unseen -= 1
            if unseen == 0:
                return
        option_action, remaining, _ = explore(
            stream, step, 1.0, policy.durations, _ROOM_ACTIONS, option_action, remaining
        )
        row, column, _, _ = grid_world.step(
            row, column, option_action, room.size, _NO_GOAL_ROW, _NO_GOAL_COLUMN, False
        )
