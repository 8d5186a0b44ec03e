"""Real and written Gymnasium environments; each written one breaks a single promise."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

from ezgreedy.games import GYMNASIUM, EnvironmentFault, GymnasiumImages, Lanes, Protocol, make
from ezgreedy.games.atari.emulator import grey, shrink
from support.written_environments import BREACHES, Forgetful, Frugal, Loud, Walk


@pytest.fixture
def registered():
    """Makes a written environment known to Gymnasium for one test; returns our name of it."""
    names = []

    def register(entry_point=Walk, limit=None, **arguments):
        names.append(f"written/Walk{len(names)}-v0")
        gymnasium.register(
            names[-1], entry_point=entry_point, max_episode_steps=limit, kwargs=arguments
        )
        return f"gymnasium/{names[-1]}"

    yield register
    for name in names:
        del gymnasium.registry[name]


def made(name, protocol=None, seed=0):
    return make(name, protocol, rng=np.random.default_rng(seed))


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


def test_an_environment_is_played_as_gymnasium_plays_it(registered):
    name = registered()
    env, bare = made(name, seed=5), gymnasium.make(name.removeprefix("gymnasium/"))
    seeds = np.random.default_rng(5)
    observation = env.reset()
    screen, _ = bare.reset(seed=int(seeds.integers(2**31 - 1, endpoint=True)))
    assert observation.shape == env.observation_shape == (4, 84, 84)
    assert not observation[:3].any()
    total, episodes = 0.0, 0
    for action in actions_for(env, 100):
        assert np.array_equal(observation[-1], shrink(grey(screen), 84))
        assert np.array_equal(env.picture(), screen)
        step = env.step(action)
        screen, reward, terminated, truncated, _ = bare.step(action)
        total += reward
        assert (step.reward, step.clipped_reward) == (reward, min(reward, 1.0))
        assert (step.terminated, step.truncated) == (terminated, truncated)
        assert (step.discount, step.lives) == (1.0 - terminated, 0)
        assert step.episode_return == pytest.approx(total)
        observation = step.observation
        if terminated:
            observation, total, episodes = env.reset(), 0.0, episodes + 1
            screen, _ = bare.reset(seed=int(seeds.integers(2**31 - 1, endpoint=True)))
    assert episodes == 2


@pytest.mark.parametrize("shape", [(20, 30), (20, 30, 1)])
def test_grey_images_are_only_resized(registered, shape):
    env = made(registered(shape=shape), replace(GYMNASIUM, screen_size=15))
    observation = env.reset()
    screen = env._machine.observation.reshape(20, 30)
    assert np.array_equal(observation[-1], shrink(screen, 15))
    assert np.array_equal(env.picture(), np.repeat(screen[..., None], 3, axis=2))


def test_binary_planes_stay_as_they_are(registered):
    name = registered(shape=(12, 12, 5), dtype=np.bool_)
    env = made(name)
    assert env.protocol == replace(GYMNASIUM, screen_size=12)
    assert env.observation_shape == (20, 12, 12)
    observation = env.reset()
    for action in (0, 0, 0, 1):
        assert np.array_equal(observation[-5:], env._machine.observation.transpose(2, 0, 1))
        assert observation.max() == 1
        observation = env.step(action).observation
    assert env.picture().shape == (156, 156, 3)
    with pytest.raises(ValueError, match=r"both sides of the binary planes, which are 12 × 12"):
        made(name, GYMNASIUM)


def test_the_packages_own_minatar_ids_are_binary_planes():
    package = pytest.importorskip("minatar.gym", reason="MinAtar is not installed")
    if "MinAtar/Breakout-v1" not in gymnasium.registry:
        package.register_envs()
    env = made("gymnasium/MinAtar/Breakout-v1", replace(GYMNASIUM, screen_size=10))
    assert (env.num_actions, env.frame_shape) == (3, (4, 10, 10))
    env.reset()
    actions = actions_for(env, 60)
    tape(env, actions[:20])
    state = env.state_dict()
    continued = tape(env, actions[20:])
    other = made("gymnasium/MinAtar/Breakout-v1", replace(GYMNASIUM, screen_size=10), seed=3)
    other.load_state_dict(state)
    assert tape(other, actions[20:]) == continued


def test_time_limits_truncate_and_bootstrap_from_what_was_last_seen(registered):
    protocol = replace(GYMNASIUM, frame_skip=4, screen_size=16)
    env = made(registered(limit=6), protocol)
    env.reset()
    first, second = env.step(0), env.step(0)
    assert (first.terminated, first.truncated, first.episode_frames) == (False, False, 4)
    assert (second.terminated, second.truncated, second.episode_frames) == (False, True, 6)
    assert second.discount == 1.0
    assert np.array_equal(second.observation[-1], shrink(grey(env._machine.observation), 16))
    with pytest.raises(RuntimeError, match="is over; call reset before step"):
        env.step(0)


def test_the_cap_truncates_environments_that_never_end(registered):
    env = made(registered(length=10**9), replace(GYMNASIUM, most_episode_frames=5))
    env.reset()
    assert [env.step(0).truncated for _ in range(5)] == [False] * 4 + [True]


def test_pooled_frames_are_merged_even_where_memory_is_reused(registered):
    protocol = replace(GYMNASIUM, frame_skip=2, pooled_frames=2, screen_size=30)
    env = made(registered(Frugal), protocol)
    env.reset()
    env.step(1)
    last = env._machine.observation.copy()
    before_last = np.roll(last, -1, axis=0)  # the square had come from above
    merged = shrink(grey(np.maximum(last, before_last)), 30)
    assert np.array_equal(env._stack[-1, 0], merged)
    assert not np.array_equal(merged, shrink(grey(last), 30))


def test_actions_are_counted_from_zero_wherever_the_environment_begins(registered):
    env = made(registered(actions=Discrete(4, start=7)))
    env.reset()
    env.step(3)
    with pytest.raises(ValueError, match="action must be at most 3; got 4"):
        env.step(4)


@pytest.mark.parametrize(("played", "kind"), [(0, Walk), (17, Loud), (40, Walk), (57, Walk)])
def test_a_restored_environment_continues_bit_for_bit(registered, played, kind):
    settings = replace(GYMNASIUM, sticky_probability=0.25, screen_size=20)
    name = registered(kind)
    env = made(name, settings)
    env.reset()
    actions = actions_for(env, 120)
    tape(env, actions[:played])
    state = env.state_dict()
    continued = tape(env, actions[played:])
    for other in (made(name, settings, seed=9), env):
        other.load_state_dict(state)
        assert tape(other, actions[played:]) == continued


def test_a_state_from_before_or_after_an_episode_is_restored_too(registered):
    env = made(registered(length=2))
    unbegun = env.state_dict()
    first = env.reset()
    env.step(0), env.step(0)
    over = env.state_dict()
    second = env.reset()
    env.load_state_dict(unbegun)
    with pytest.raises(RuntimeError, match="has not begun; call reset before step"):
        env.step(0)
    assert np.array_equal(env.reset(), first)
    env.load_state_dict(over)
    with pytest.raises(RuntimeError, match="is over; call reset before step"):
        env.step(0)
    assert np.array_equal(env.reset(), second)


def test_what_the_seed_does_not_determine_is_not_resumed_silently(registered):
    name = registered(Forgetful)
    env = made(name)
    env.reset()
    tape(env, [0, 1, 2])
    state, before = env.state_dict(), env._machine
    with pytest.raises(EnvironmentFault, match=r"Walk0-v0 .*replay of 3 actions .*seed does not"):
        env.load_state_dict(state)
    assert env._machine is before
    env.step(0)


def test_foreign_states_are_refused(registered):
    env = made(registered())
    env.reset()
    env.step(0)
    state = env.state_dict()
    pieces = {
        "seed": -1,
        "actions": np.array([4]),
        "digest": "",
        "total_reward": 0.0,
    }
    for key, piece in pieces.items():
        with pytest.raises(ValueError, match="must"):
            env.load_state_dict({**state, "machine": {**state["machine"], key: piece}})
    for machine in (b"bytes", {"seed": 3}):
        with pytest.raises(ValueError, match=r"state\['machine'\] must have the keys"):
            env.load_state_dict({**state, "machine": machine})
    with pytest.raises(ValueError, match=r"state\['name'\] must equal"):
        env.load_state_dict({**state, "name": "Pong"})


def test_lanes_play_environments_each_with_its_own_seeds(registered):
    lanes = Lanes(registered(), 3, seed=0)
    first = lanes.reset()
    assert first.shape == (3, 4, 84, 84)
    assert len({lane.tobytes() for lane in first}) == 3
    finished = sum(lanes.step([0, 1, 2]).finished.sum() for _ in range(80))
    assert finished == 6


@pytest.mark.parametrize("breach", BREACHES)
def test_the_first_broken_promise_is_named_with_its_step(registered, breach):
    third, words = BREACHES[breach]
    env = made(registered(third=third))
    env.reset()
    env.step(0), env.step(1)
    with pytest.raises(EnvironmentFault, match=words) as raised:
        env.step(2)
    assert "written/Walk0-v0 at step 3 of the episode with seed" in str(raised.value)


def test_broken_promises_of_reset_are_named_too(registered):
    picture = np.zeros((20, 30, 3), np.uint8)
    for first in (picture, (picture, {}, 0), (picture[..., 0], {})):
        with pytest.raises(EnvironmentFault, match=r"at step 0 .* must (return|be uint8)"):
            made(registered(first=first)).reset()


@pytest.mark.parametrize("actions", [Box(-1, 1, (2,)), MultiDiscrete([2, 3]), MultiBinary(3)])
def test_actions_that_are_not_discrete_are_refused(registered, actions):
    with pytest.raises(
        ValueError, match=r"^written/Walk0-v0: .*actions must be discrete .*; got (Box|Multi)"
    ):
        made(registered(actions=actions))


def test_observations_that_are_no_images_are_refused(registered):
    with pytest.raises(ValueError, match=r"observations must be images: .*; got Box\(.*float32"):
        made("gymnasium/CartPole-v1")
    for shape in [(5,), (8, 8, 2), (8, 8, 4), (2, 8, 8, 3)]:
        with pytest.raises(ValueError, match="observations must be images"):
            made(registered(shape=shape))
    for shape, dtype in [((8, 8, 3), np.float32), ((8, 8, 65), np.bool_), ((8, 8), np.int32)]:
        with pytest.raises(ValueError, match="observations must be images"):
            made(registered(shape=shape, dtype=dtype))


@pytest.mark.parametrize("space", [Discrete(5), Dict(), MultiBinary(9)])
def test_spaces_that_are_no_arrays_of_bytes_are_refused(registered, space):
    class Other(Walk):
        def __init__(self):
            self.observation_space, self.action_space = space, Discrete(2)

    with pytest.raises(ValueError, match=r"^written/Walk0-v0: .*observations must be images"):
        made(registered(Other))


def test_unknown_ids_are_refused_with_the_nearest(registered):
    with pytest.raises(ValueError, match=r"did you mean .*CarRacing-v3.*got 'CarRacing-v99'"):
        made("gymnasium/CarRacing-v99")
    with pytest.raises(ValueError, match=r"Gymnasium knows.*CartPole-v1.*; got 'CartPoel-v1'"):
        made("gymnasium/CartPoel-v1")
    with pytest.raises(ValueError, match="environment that Gymnasium knows; got 'zz/qqqq-v0'"):
        made("gymnasium/zz/qqqq-v0")
    with pytest.raises(ValueError, match="not an id! cannot be made: Malformed environment ID"):
        made("gymnasium/not an id!")
    with pytest.raises(ValueError, match="nosuchmodule:Walk-v0 cannot be made: No module named"):
        made("gymnasium/nosuchmodule:Walk-v0")
    with pytest.raises(ValueError, match="game must begin with 'gymnasium/'; got 'CartPole-v1'"):
        GymnasiumImages("CartPole-v1", rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", ["ALE/Pong-v5", "ale_py:ALE/Pong-v5", "Renamed-v0"])
def test_atari_games_by_id_are_sent_to_the_emulator(name, monkeypatch):
    # These ids stick with probability 1/4 and skip frames without a word.
    spec = gymnasium.envs.registration.EnvSpec("Renamed-v0", entry_point="ale_py.env:AtariEnv")
    monkeypatch.setitem(gymnasium.registry, "Renamed-v0", spec)
    monkeypatch.delitem(gymnasium.registry, "ALE/Pong-v5", raising=False)  # known or not
    with pytest.raises(ValueError, match=r"named as the game is, such as 'Pong'.* sticky"):
        made(f"gymnasium/{name}")


def test_settings_that_mean_nothing_here_are_refused(registered):
    name = registered()
    with pytest.raises(ValueError, match=r"most_noop_frames must be 0: .*; got 30"):
        made(name, Protocol())
    with pytest.raises(ValueError, match=r"has_full_action_set must be False: .*; got True"):
        made(name, replace(GYMNASIUM, has_full_action_set=True))
