import gymnasium
import numpy as np
import pytest

from ezgreedy.envs import mountain_car
from ezgreedy.envs.mountain_car import BACK, FORTH, MountainCar


def gymnasium_step(env, position, velocity, action):
    env.state = (position, velocity)
    terminated = env.step(action)[2]
    return (*env.state, terminated)


def test_one_step_is_gymnasium_s_from_anywhere():
    theirs = gymnasium.make("MountainCar-v0").unwrapped
    theirs.reset(seed=0)
    rng = np.random.default_rng(0)
    positions = rng.uniform(-1.2, 0.6, size=10_000)
    velocities = rng.uniform(-0.07, 0.07, size=10_000)
    num_walls = num_goals = 0
    for position, velocity in zip(positions.tolist(), velocities.tolist(), strict=True):
        action = int(rng.integers(3))
        ours = mountain_car.step(position, velocity, action)
        expected = gymnasium_step(theirs, position, velocity, action)
        # Two cosines may round differently in the last place, no more.
        np.testing.assert_allclose(ours[:2], expected[:2], rtol=0, atol=1e-15)
        assert ours[3] == expected[2]
        num_walls += ours[0] == -1.2
        num_goals += ours[3]
    assert num_walls > 100
    assert num_goals > 100


def test_equal_seeds_play_the_same_episodes_as_gymnasium():
    ours, theirs = MountainCar(), gymnasium.make("MountainCar-v0").unwrapped
    for seed in range(20):
        first, expected = ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0]
        assert np.array_equal(first.astype(np.float32), expected)
        for action in np.random.default_rng(seed).integers(3, size=200):
            np.testing.assert_allclose(ours.step(action)[0], theirs.step(action)[0], atol=1e-6)


def test_only_reaching_the_goal_pays():
    env = MountainCar()
    observation, _ = env.reset(seed=0)
    rewards, terminated = [], False
    while not terminated:
        # Pushing along with the motion pumps energy until the hill is climbed.
        action = FORTH if observation[1] >= 0.0 else BACK
        observation, reward, terminated, _, _ = env.step(action)
        rewards.append(reward)
    assert len(rewards) < 200
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
    assert observation[0] >= 0.5


def test_the_dense_version_pays_what_gymnasium_s_pays():
    ours = gymnasium.make("ezgreedy/MountainCarDense-v0").unwrapped
    theirs = gymnasium.make("MountainCar-v0").unwrapped
    observation, _ = ours.reset(seed=0)
    theirs.reset(seed=0)
    steps, terminated = 0, False
    while not terminated:
        action = FORTH if observation[1] >= 0.0 else BACK
        observation, reward, terminated, _, _ = ours.step(action)
        assert (reward, terminated) == theirs.step(action)[1:3]
        steps += 1
    assert 100 < steps < 200


def test_unknown_rewards_are_refused():
    with pytest.raises(ValueError, match="rewards must be one of 'sparse', 'dense'; got 'shaped'"):
        MountainCar(rewards="shaped")


def test_full_throttle_alone_never_climbs_the_hill():
    env = MountainCar()
    env.reset(seed=0)
    assert not any(env.step(FORTH)[2] for _ in range(1000))


def test_first_states_fill_their_interval_at_rest():
    env = MountainCar()
    starts = np.array([env.reset(seed=seed)[0] for seed in range(500)])
    assert not starts[:, 1].any()
    assert -0.6 <= starts[:, 0].min() < -0.59
    assert -0.41 < starts[:, 0].max() < -0.4


def test_episodes_can_begin_in_one_place():
    env = MountainCar(first_position=-0.5)
    for seed in (0, 1):
        assert env.reset(seed=seed)[0].tolist() == [-0.5, 0.0]
    with pytest.raises(ValueError, match="first_position must lie in"):
        MountainCar(first_position=0.7)
