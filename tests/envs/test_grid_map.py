import gymnasium
import numpy as np
import pytest

from ezgreedy.envs import grid_world
from ezgreedy.envs.finite import finite_model
from ezgreedy.envs.grid_map import MAPS, MOVES, GridMap
from ezgreedy.envs.grid_world import GridWorld

TO_FROZEN_LAKE = str.maketrans(".*", "FH")
FROZEN_LAKE_ACTIONS = {"left": 0, "down": 1, "right": 2, "up": 3}

SMALL = ["S#G", "..*"]


def test_mines_are_the_holes_of_gymnasium_s_frozen_lake():
    ours = finite_model(GridMap("mines"))
    rows = [row.translate(TO_FROZEN_LAKE) for row in MAPS["mines"]]
    theirs = gymnasium.make("FrozenLake-v1", desc=rows, is_slippery=False).unwrapped
    for state in np.flatnonzero(ours.acting).tolist():
        for action, move in enumerate(MOVES):
            ((_, successor, reward, terminated),) = theirs.P[state][FROZEN_LAKE_ACTIONS[move]]
            assert ours.successors[state, action] == successor
            assert ours.rewards[state, action] == reward
            assert ours.terminal[successor] == terminated
    assert theirs.initial_state_distrib.argmax() == ours.start.argmax()


def test_a_map_without_obstacles_is_grid_world():
    rows = [["."] * 7 for _ in range(7)]
    rows[1][3], rows[5][6] = "S", "G"
    ours, theirs = (
        finite_model(env)
        for env in (GridMap(["".join(row) for row in rows]), GridWorld(7, (1, 3), (5, 6)))
    )
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_moves_are_named_in_the_order_of_grid_world():
    for name, action in zip(MOVES, range(4), strict=True):
        assert getattr(grid_world, name.upper()) == action


def test_walls_stop_moves_the_goal_pays_and_mines_do_not():
    env = GridMap(SMALL)
    assert env.transition(0, grid_world.RIGHT) == (0, 0.0, False)
    assert env.transition(0, grid_world.UP) == (0, 0.0, False)
    assert env.transition(0, grid_world.DOWN) == (3, 0.0, False)
    assert env.transition(4, grid_world.RIGHT) == (5, 0.0, True)
    assert GridMap(["SG"]).transition(0, grid_world.RIGHT) == (1, 1.0, True)


def test_actions_are_the_moves_in_their_order():
    env = GridMap(SMALL, moves=["down", "left"])
    assert env.num_actions == 2
    assert env.transition(0, 0)[0] == 3
    assert env.transition(4, 1)[0] == 3


@pytest.mark.parametrize("name", MAPS)
def test_every_cell_that_is_not_wall_can_be_reached(name):
    is_wall = np.array([kind == "#" for kind in "".join(MAPS[name])])
    np.testing.assert_array_equal(finite_model(GridMap(name)).reachable, ~is_wall)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rows": []}, "rows must be strings of"),
        ({"rows": [1]}, "rows must be strings of"),
        ({"rows": ["S?"]}, "rows must be strings of"),
        ({"rows": ["S.", "."]}, "rows must have one length"),
        ({"rows": ["S" + "." * 5000]}, "at most 4096"),
        ({"rows": ["..", ".."]}, "rows must hold one S; got 0"),
        ({"rows": ["SS"]}, "rows must hold one S; got 2"),
        ({"rows": "maze"}, "rows must be one of 'corridor'"),
        ({"moves": ["jump"]}, "moves must be one of 'up'"),
        ({"moves": []}, "the number of moves must be at least 1"),
    ],
)
def test_bad_maps_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        GridMap(**settings)
