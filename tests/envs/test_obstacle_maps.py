"""Rooms have their share of mines, mazes turn, and equal actions are equal."""

import gymnasium
import numpy as np
import pytest

from ezgreedy.envs.finite import finite_model
from ezgreedy.envs.grid_map import GridMap
from ezgreedy.envs.grid_world import DOWN, LEFT, RIGHT, UP, GridWorld
from ezgreedy.envs.obstacle_maps import (
    mine_field,
    mined_room,
    repeated_actions,
    repeated_moves,
    turning_corridor,
    turning_maze,
)


def cells(rows):
    return np.array([list(row) for row in rows])


def test_a_room_without_mines_is_grid_world():
    ours, theirs = finite_model(mine_field(0.0)), finite_model(GridWorld())
    for name in ours._fields:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_a_mined_room_has_its_share_of_mines_and_a_way_through(share, seed):
    room = cells(mined_room(share, seed))
    assert (room == "*").sum() == round(share * 23 * 23)
    assert (room[1, 11], room[20, 20]) == ("S", "G")
    for row, column in ((1, 11), (20, 20)):
        assert (room[row - 1 : row + 2, column - 1 : column + 2] != "*").all()
    assert finite_model(GridMap(mined_room(share, seed))).reachable[20 * 23 + 20]


def test_mines_differ_between_seeds_and_not_between_calls():
    assert mined_room(0.1, 3) == mined_room(0.1, 3) != mined_room(0.1, 4)


def test_a_room_that_mines_would_close_is_drawn_again_or_refused():
    assert finite_model(mine_field(0.42)).reachable[20 * 23 + 20]
    with pytest.raises(ValueError, match=r"share must leave a way to the goal in 1000 draws"):
        mined_room(0.8, 0)
    with pytest.raises(ValueError, match="share must leave the 18 cells at start and goal"):
        mined_room(1.0, 0)


def walked(rows):
    """The directions from a corridor's start to its goal, by following its only way."""
    room = cells(rows)
    (start,) = np.argwhere(room == "S").tolist()
    place, previous, directions = tuple(start), None, []
    while room[place] != "G":
        for direction, change in ((UP, (-1, 0)), (DOWN, (1, 0)), (LEFT, (0, -1)), (RIGHT, (0, 1))):
            ahead = place[0] + change[0], place[1] + change[1]
            inside = 0 <= ahead[0] < room.shape[0] and 0 <= ahead[1] < room.shape[1]
            if inside and ahead != previous and room[ahead] != "#":
                place, previous = ahead, place
                directions.append(direction)
                break
    return directions


@pytest.mark.parametrize("piece", [2, 3, 4, 6, 12, 24, 48])
def test_a_corridor_turns_every_few_steps(piece):
    for seed in range(3):
        rows = turning_corridor(piece, 48, seed)
        directions = walked(rows)
        assert len(directions) == 48
        pieces = np.reshape(directions, (-1, piece))
        assert (pieces == pieces[:, :1]).all()
        assert (pieces[::2, 0] == RIGHT).all()
        assert np.isin(pieces[1::2, 0], (UP, DOWN)).all()
        assert (cells(rows) != "#").sum() == 49
        assert "S" in cells(rows)[:, 0]


def test_no_two_pieces_of_a_corridor_touch():
    for seed in range(20):
        env = turning_maze(2, 24, seed)
        model = finite_model(env)
        moves = (model.successors != np.arange(env.num_states)[:, None]).sum(axis=1)
        assert moves[model.reachable].max() == 2


def test_turns_go_both_ways_and_differ_between_seeds():
    turns = np.concatenate([np.array(walked(turning_corridor(2, 48, s)))[2::4] for s in range(40)])
    assert 0.4 < (turns == UP).mean() < 0.6
    assert turning_corridor(2, 48, 0) != turning_corridor(2, 48, 1)


def test_copies_of_an_action_do_what_it_does():
    env = repeated_actions(3, "left")
    assert env.num_actions == 7
    for state in (0, 34, 300):
        assert {env.transition(state, action) for action in (LEFT, 4, 5, 6)} == {
            env.transition(state, LEFT)
        }
    assert repeated_moves(0) == ("up", "down", "left", "right")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mine_field(1.5), r"share must lie in \[0, 1\]; got 1.5"),
        (lambda: turning_maze(1), "steps_between_turns must be at least 2; got 1"),
        (lambda: turning_maze(5, 48), "length must be a multiple of 5; got 48"),
        (lambda: repeated_actions(4, "north"), "move must be one of"),
        (lambda: repeated_actions(-1), "num_copies must be at least 0; got -1"),
    ],
)
def test_bad_settings_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_settings_go_through_gymnasium():
    env = gymnasium.make("ezgreedy/TurningMaze-v0", steps_between_turns=6, seed=2)
    assert env.unwrapped.rows == turning_corridor(6, 48, 2)
    env = gymnasium.make("ezgreedy/MineField-v0", share=0.2)
    assert "".join(env.unwrapped.rows).count("*") == round(0.2 * 23 * 23)
    assert gymnasium.make("ezgreedy/RepeatedActions-v0").action_space.n == 8
