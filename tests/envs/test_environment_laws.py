"""Laws that hold for every environment of the study, whatever it is about."""

import copy
import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from ezgreedy.envs import (
    ENVIRONMENTS,
    cartpole,
    chain,
    grid_world,
    mountain_car,
    obstacle_maps,
    register,
)

NAMES = sorted(ENVIRONMENTS)
CARS = ["ezgreedy/MountainCarDense-v0", "ezgreedy/MountainCarSparse-v0"]
WITH_RANDOM_STARTS = ["ezgreedy/CartPoleSwingUpSparse-v0", *CARS]
# For each limited environment the limit its kernels use, and an action that never terminates.
LIMITED = {
    "ezgreedy/GridWorld-v0": (grid_world.STEP_LIMIT, grid_world.UP),
    "ezgreedy/MineField-v0": (obstacle_maps.STEP_LIMIT, grid_world.UP),
    "ezgreedy/TurningMaze-v0": (obstacle_maps.STEP_LIMIT, grid_world.LEFT),
    "ezgreedy/RepeatedActions-v0": (obstacle_maps.STEP_LIMIT, grid_world.UP),
    **dict.fromkeys(CARS, (mountain_car.STEP_LIMIT, mountain_car.COAST)),
    "ezgreedy/CartPoleSwingUpSparse-v0": (cartpole.STEP_LIMIT, 1),
}

# Actions that lead from the start, or in the car's case from just below the goal, to the end.
TERMINATING = {
    "ezgreedy/Chain-v0": [chain.DOWN],
    "ezgreedy/Corridor-v0": [1] * 39,
    "ezgreedy/DeepSea-v0": [0] * 20,
    "ezgreedy/FourRooms-v0": [3] * 8 + [1] * 9 + [3],
    "ezgreedy/Mines-v0": [grid_world.DOWN] * 3,
    "ezgreedy/GridWorld-v0": [grid_world.DOWN] * 19 + [grid_world.RIGHT] * 9,
    "ezgreedy/GridWorldDown-v0": [grid_world.DOWN] * 22,
    "ezgreedy/RepeatedActions-v0": [grid_world.DOWN] * 19 + [grid_world.RIGHT] * 9,
    **{name: [mountain_car.FORTH] for name in CARS},
}

every_environment = pytest.mark.parametrize("name", NAMES)


def make(name, **settings):
    return gymnasium.make(name, **settings)


def tape(env, seed, num_steps=200):
    """Everything that happens in so many steps of random play, over as many episodes as needed."""
    rng = np.random.default_rng(7)
    events = [env.reset(seed=seed)[0]]
    for _ in range(num_steps):
        observation, reward, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
        events += [observation, reward, terminated, truncated]
        if terminated or truncated:
            events.append(env.reset()[0])
    return np.hstack(events)


def global_generator():
    return pickle.dumps(np.random.get_state())  # noqa: NPY002 -- that nobody uses it is the law


@every_environment
# The rail's ends are soft and speeds unbounded, which the checker finds unusual.
@pytest.mark.filterwarnings("ignore:.*Box observation space m.*infinity:UserWarning")
def test_the_checker_of_gymnasium_accepts_it(name):
    check_env(make(name).unwrapped)


@every_environment
def test_equal_seeds_give_equal_tapes(name):
    assert np.array_equal(tape(make(name), seed=3), tape(make(name), seed=3))


@pytest.mark.parametrize("name", WITH_RANDOM_STARTS)
def test_other_seeds_and_later_episodes_start_elsewhere(name):
    env = make(name)
    first, later = env.reset(seed=3)[0], env.reset()[0]
    assert not np.array_equal(first, later)
    assert not np.array_equal(first, env.reset(seed=4)[0])
    assert np.array_equal(first, env.reset(seed=3)[0])


@every_environment
def test_playing_leaves_the_global_generator_alone(name):
    before = global_generator()
    tape(make(name), seed=None)
    assert global_generator() == before


@every_environment
def test_observations_lie_in_the_space(name):
    env = make(name)
    observation, _ = env.reset(seed=0)
    for action in [0, *np.random.default_rng(0).integers(env.action_space.n, size=300)]:
        assert env.observation_space.contains(observation)
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            assert env.observation_space.contains(observation)
            observation, _ = env.reset()


@pytest.mark.parametrize("name", WITH_RANDOM_STARTS)
def test_an_observation_is_the_caller_s_to_keep_or_change(name):
    env, undisturbed = make(name), make(name)
    kept, _ = env.reset(seed=0)
    undisturbed.reset(seed=0)
    kept[:] = 0.0
    observation = env.step(0)[0]
    assert np.array_equal(observation, undisturbed.step(0)[0])
    before = observation.copy()
    env.step(0)
    assert np.array_equal(observation, before)


@every_environment
def test_every_random_episode_ends(name):
    env = make(name)
    rng = np.random.default_rng(1)
    for _ in range(3):
        env.reset(seed=1)
        for _ in range(20_000):
            _, _, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
            if terminated or truncated:
                break
        assert terminated or truncated


@pytest.mark.parametrize("name", sorted(LIMITED))
def test_the_limit_of_the_kernels_is_where_gymnasium_truncates(name):
    limit, idle = LIMITED[name]
    env = make(name)
    env.reset(seed=0)
    ends = [env.step(idle)[2:4] for _ in range(limit)]
    assert ends == [(False, False)] * (limit - 1) + [(False, True)]


def test_the_environments_without_a_limit_are_those_that_terminate_by_themselves():
    unlimited = {name for name, entry in ENVIRONMENTS.items() if entry.step_limit is None}
    assert unlimited == set(NAMES) - set(LIMITED)


@every_environment
def test_a_pickled_copy_continues_the_same_tape(name):
    env = make(name).unwrapped
    env.reset(seed=5)
    env.step(0)
    twin = pickle.loads(pickle.dumps(env))
    assert np.array_equal(tape(env, None), tape(twin, None))


@every_environment
def test_a_step_needs_a_running_episode(name):
    env = make(name).unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded, match="has not begun"):
        env.step(0)
    env.reset(seed=0)
    env.step(0)


@pytest.mark.parametrize("name", sorted(TERMINATING))
def test_no_step_follows_the_one_that_terminates(name):
    env = make(name).unwrapped
    env.reset(seed=0)
    if name in CARS:
        env.position, env.velocity = 0.49, 0.07
    ends = [env.step(action)[2] for action in TERMINATING[name]]
    assert ends == [False] * (len(ends) - 1) + [True]
    with pytest.raises(gymnasium.error.ResetNeeded, match="terminated"):
        env.step(0)
    env.reset()
    env.step(0)


@every_environment
@pytest.mark.parametrize("action", [-1, "number of actions", 2**70])
def test_an_action_outside_the_space_is_refused_and_changes_nothing(name, action):
    env = make(name).unwrapped
    env.reset(seed=0)
    action = int(env.action_space.n) if isinstance(action, str) else action
    untouched = copy.deepcopy(env)
    with pytest.raises(ValueError, match="action must be at"):
        env.step(action)
    assert np.array_equal(env.step(0)[0], untouched.step(0)[0])


@every_environment
@pytest.mark.parametrize("action", [1.0, True, None, "up", np.array([0])])
def test_an_action_that_is_no_int_is_refused(name, action):
    env = make(name).unwrapped
    env.reset(seed=0)
    with pytest.raises(TypeError, match="action must be an int"):
        env.step(action)


@every_environment
def test_options_of_reset_are_refused_rather_than_ignored(name):
    with pytest.raises(ValueError, match="options must be empty"):
        make(name).unwrapped.reset(options={"low": 0.0})


@every_environment
def test_it_renders_an_image_that_shows_the_state(name):
    env = make(name, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert first.shape[2] == 3
    assert min(first.shape[:2]) >= 200
    assert np.array_equal(first, env.render())
    for _ in range(3):
        env.step(0)
    env.step(env.action_space.n - 1)
    second = env.render()
    assert second.shape == first.shape
    assert not np.array_equal(first, second)


@every_environment
def test_the_end_of_an_episode_can_be_rendered(name):
    env = make(name, render_mode="rgb_array")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    while not any(env.step(rng.integers(env.action_space.n))[2:4]):
        pass
    assert env.render().dtype == np.uint8


@every_environment
def test_rendering_without_a_mode_or_an_episode_is_refused(name):
    with pytest.raises(ValueError, match="render_mode must be 'rgb_array' to render; got None"):
        make(name).unwrapped.render()
    with pytest.raises(gymnasium.error.ResetNeeded, match="has not begun"):
        make(name, render_mode="rgb_array").unwrapped.render()
    with pytest.raises(ValueError, match="render_mode must be one of 'rgb_array'; got 'human'"):
        type(make(name).unwrapped)(render_mode="human")


@every_environment
def test_gymnasium_steps_many_of_them_together(name):
    env = gymnasium.make_vec(name, num_envs=3, vectorization_mode="sync")
    env.reset(seed=0)
    for _ in range(60):
        observations, rewards, *_ = env.step(np.array([0, 1, 1]))
    assert len(observations) == len(rewards) == 3
    env.close()


def test_registering_again_changes_nothing():
    before = dict(gymnasium.registry)
    register()
    assert gymnasium.registry == before


def test_registering_needs_no_compiler():
    program = (
        "import sys, ezgreedy.envs, gymnasium;"
        "assert 'ezgreedy/Chain-v0' in gymnasium.registry;"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
