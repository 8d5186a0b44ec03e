import gymnasium
import numpy as np
import pytest

from ezgreedy.envs.finite import finite_model
from ezgreedy.envs.grid_world import DOWN, LEFT, RIGHT, UP, GridWorld

CORNERS = [(0, 0), (0, 22), (22, 0), (22, 22)]


def place_after(env, actions):
    env.reset()
    for action in actions:
        state = env.step(action)[0]
    return divmod(state, env.size)


def test_it_starts_at_the_top_centre_one_row_off_the_wall():
    env = gymnasium.make("ezgreedy/GridWorld-v0")
    assert divmod(env.reset()[0], 23) == (1, 11)
    assert env.observation_space.n == 23 * 23


@pytest.mark.parametrize(
    ("action", "place"), [(UP, (0, 11)), (DOWN, (2, 11)), (LEFT, (1, 10)), (RIGHT, (1, 12))]
)
def test_each_action_moves_one_cell_its_way(action, place):
    assert place_after(GridWorld(), [action]) == place


@pytest.mark.parametrize(
    ("action", "place"), [(UP, (0, 11)), (DOWN, (22, 11)), (LEFT, (1, 0)), (RIGHT, (1, 22))]
)
def test_walls_stop_the_agent(action, place):
    assert place_after(GridWorld(), [action] * 30) == place


def test_the_goal_pays_1_and_ends_the_episode_and_nothing_else_pays():
    model = finite_model(GridWorld())
    paying = np.argwhere(model.rewards != 0.0).tolist()
    goal = 20 * 23 + 20
    neighbours = [(goal - 23, DOWN), (goal - 1, RIGHT), (goal + 1, LEFT), (goal + 23, UP)]
    assert sorted(map(tuple, paying)) == sorted(neighbours)
    assert set(model.rewards.flat) == {0.0, 1.0}
    assert np.flatnonzero(model.terminal).tolist() == [goal]


def test_the_goal_can_be_elsewhere():
    env = GridWorld(goal=(3, 11))
    env.reset()
    assert [env.step(DOWN)[1:3] for _ in range(2)] == [(0.0, False), (1.0, True)]


def test_every_cell_can_be_reached():
    assert finite_model(GridWorld()).reachable.all()


def test_the_shortest_way_to_the_goal_takes_28_steps():
    env = GridWorld()
    env.reset()
    ends = [env.step(action)[2] for action in [DOWN] * 19 + [RIGHT] * 9]
    assert ends == [False] * 27 + [True]


def test_uniform_play_takes_2559_3_steps_to_the_goal_on_average():
    # The expectation solves h(s) = 1 + mean of h over the four successors, with h(goal) = 0.
    model = finite_model(GridWorld())
    inner = ~model.terminal
    walk = model.transitions().mean(axis=1)[np.ix_(inner, inner)]
    steps = np.linalg.solve(np.eye(len(walk)) - walk, np.ones(len(walk)))
    assert model.start[inner] @ steps == pytest.approx(2559.3, abs=0.05)


def test_in_figure_1_hitting_the_bottom_wall_ends_the_episode_unpaid():
    env = gymnasium.make("ezgreedy/GridWorldDown-v0")
    env.reset()
    steps = [env.step(DOWN)[1:3] for _ in range(22)]
    assert steps == [(0.0, False)] * 21 + [(0.0, True)]


def test_in_figure_1_the_bottom_row_may_be_walked_along():
    env = gymnasium.make("ezgreedy/GridWorldDown-v0")
    env.reset()
    for action in [DOWN] * 21 + [LEFT] * 11:
        state, _, terminated, _, _ = env.step(action)
    assert (divmod(state, 23), terminated) == ((22, 0), False)


def test_in_figure_1_there_is_no_reward_and_only_the_bottom_ends():
    model = finite_model(gymnasium.make("ezgreedy/GridWorldDown-v0").unwrapped)
    assert not model.rewards.any()
    assert np.flatnonzero(model.terminal).tolist() == list(range(23 * 23, 24 * 23))


@pytest.mark.parametrize("corner", CORNERS)
def test_corners_hold_against_both_of_their_walls(corner):
    env = GridWorld(start=corner)
    vertical, horizontal = UP if corner[0] == 0 else DOWN, LEFT if corner[1] == 0 else RIGHT
    assert place_after(env, [vertical, horizontal]) == corner


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"goal": (23, 0)}, "goal's row must be at most 22; got 23"),
        ({"start": (0, -1)}, "start's column must be at least 0; got -1"),
        ({"goal": 20}, r"goal must be a \(row, column\) pair; got 20"),
        ({"goal": (1, 11)}, r"goal must differ from start; got \(1, 11\)"),
        ({"size": 0}, "size must be at least 1; got 0"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        GridWorld(**settings)
