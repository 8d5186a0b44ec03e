import inspect
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from ezgreedy.games import MINATAR, Lanes, MinAtar, make, pictures
from ezgreedy.games.minatar import GAMES, PREFIX
from ezgreedy.packages import install_command

pytest.importorskip("minatar", reason="MinAtar is not installed")

each_game = pytest.mark.parametrize("name", [PREFIX + item for item in GAMES])
CALM = replace(MINATAR, sticky_probability=0.0)


def tape(env, actions):
    seen = []
    for action in actions:
        step = env.step(action)
        seen.append((step.observation.tobytes(), *step[1:]))
        if step.terminated or step.truncated:
            seen.append(env.reset().tobytes())
    return seen


def actions_for(env, count):
    return np.random.default_rng(1).integers(env.num_actions, size=count).tolist()


@each_game
def test_a_game_is_that_of_the_package(name):
    from minatar import Environment

    env = make(name, CALM, rng=np.random.default_rng(4))
    bare = Environment(name.removeprefix(PREFIX), sticky_action_prob=0.0)
    bare.env.random = np.random.RandomState(np.random.default_rng(4).bit_generator)
    bare.reset()  # as when a game is made
    bare.reset()
    observation = env.reset()
    assert env.frame_shape == env.observation_shape == (bare.n_channels, 10, 10)
    for action in actions_for(env, 300):
        assert np.array_equal(observation, bare.state().transpose(2, 0, 1))
        assert observation.dtype == np.uint8
        step = env.step(action)
        reward, is_over = bare.act(action)
        assert (step.reward, step.terminated, step.truncated) == (reward, is_over, False)
        assert step.discount == (0.0 if is_over else 1.0)
        observation = step.observation
        if is_over:
            bare.reset()
            observation = env.reset()


@each_game
def test_a_restored_game_continues_bit_for_bit(name):
    env = make(name, rng=np.random.default_rng(0))
    env.reset()
    actions = actions_for(env, 600)
    tape(env, actions[:211])
    state = env.state_dict()
    continued = tape(env, actions[211:])
    for other in (env, make(name, rng=np.random.default_rng(9))):
        other.load_state_dict(state)
        assert tape(other, actions[211:]) == continued


def test_all_six_actions_or_the_minimal_ones_are_on_offer():
    rng = np.random.default_rng(0)
    assert make("minatar/freeway", rng=rng).num_actions == 6
    minimal = replace(MINATAR, has_full_action_set=False)
    assert make("minatar/freeway", minimal, rng=rng).num_actions == 3


def test_actions_stick_one_time_in_ten():
    env = make("minatar/breakout", rng=np.random.default_rng(0))
    env.reset()
    executed = []
    act = env._act
    env._act = lambda action: (executed.append(action), act(action))[1]
    actions = [1 + count % 2 for count in range(4000)]  # never the same twice
    for action in actions:
        if env.step(action).terminated:
            env.reset()
    share = np.mean(np.array(executed) != np.array(actions))
    # A stuck action is the one before: different here, unless that one had stuck itself.
    assert 0.07 < share < 0.12


def test_the_protocol_is_the_packages_own():
    from minatar import Environment

    defaults = {
        key: parameter.default
        for key, parameter in inspect.signature(Environment).parameters.items()
    }
    assert defaults["sticky_action_prob"] == MINATAR.sticky_probability == 0.1
    assert defaults["difficulty_ramping"] is True
    for name in GAMES:
        env = make(PREFIX + name, rng=np.random.default_rng(0))
        assert getattr(env._machine, "ramping", True)
        assert env.num_actions == Environment(name).num_actions() == 6


@each_game
def test_pictures_show_every_square_in_the_colour_of_its_last_plane(name):
    env = make(name, rng=np.random.default_rng(0))
    env.reset()
    tape(env, actions_for(env, 30))
    picture, planes = env.picture(), env.state_dict()["stack"][-1]
    assert (picture.shape, picture.dtype) == ((160, 160, 3), np.uint8)
    squares = picture.reshape(10, 16, 10, 16, 3)
    assert (squares == squares[:, :1, :, :1]).all()  # each a block of one colour
    colours = {}
    for row, column in np.ndindex(10, 10):
        planes_here = np.flatnonzero(planes[:, row, column])
        on_top = planes_here[-1] if planes_here.size else -1
        colours.setdefault(on_top, set()).add(tuple(squares[row, 0, column, 0].tolist()))
    assert colours[-1] == {(0, 0, 0)}
    assert all(len(shades) == 1 for shades in colours.values())
    assert len(set.union(*colours.values())) == len(colours) > 2


def test_later_planes_lie_on_top_of_others():
    planes = np.zeros((2, 5, 12), dtype=np.bool_)
    planes[0, 0, 3] = planes[0, 1, 7] = True
    planes[1, 2, [3, 7]] = True
    picture = pictures.of_planes(planes)
    assert picture.shape == (64, 160, 3)
    assert np.array_equal(picture[32, 64], picture[0, 32])
    assert not np.array_equal(picture[32, 64], picture[0, 0])
    assert np.array_equal(pictures.of_planes(np.ones((300, 1, 1), np.bool_)).shape, (300, 1, 3))


def test_without_the_package_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "minatar", None)
    for loaded in [item for item in sys.modules if item.startswith("minatar.")]:
        monkeypatch.delitem(sys.modules, loaded)
    words = rf"minatar/breakout needs minatar, .* \({re.escape(install_command('minatar'))}\)"
    with pytest.raises(ValueError, match=words):
        make("minatar/breakout", rng=np.random.default_rng(0))


def test_lanes_play_minatar_too():
    lanes = Lanes("minatar/asterix", 3, seed=0)
    assert lanes.reset().shape == (3, *lanes.observation_shape)
    finished = 0
    for row in np.random.default_rng(0).integers(6, size=(300, 3)):
        steps = lanes.step(row)
        finished += steps.finished.sum()
        assert (steps.discounts == ~steps.terminated).all()
    assert finished > 3


def test_unknown_games_and_screens_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="did you mean minatar/breakout"):
        make("minatar/Breakout", rng=rng)
    with pytest.raises(ValueError, match="screen_size must be 10 for MinAtar; got 84"):
        MinAtar("minatar/breakout", replace(MINATAR, screen_size=84), rng=rng)
    env = make("minatar/breakout", rng=rng)
    with pytest.raises(ValueError, match="must have the keys"):
        env.load_state_dict({**env.state_dict(), "machine": {"ball_x": 1}})
