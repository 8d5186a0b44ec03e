"""Compiled walks see each place when the plain reference, `analysis.environment_walks`, does."""

import math

import numpy as np
import pytest
from gymnasium import ObservationWrapper, Wrapper, spaces

from ezgreedy import EZGreedy, Fixed, Zeta
from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.environment_walks import first_visits
from ezgreedy.envs.cartpole import CartPoleSwingUpSparse
from ezgreedy.envs.deep_sea import DeepSea
from ezgreedy.envs.grid_world import GridWorld
from ezgreedy.envs.mountain_car import MountainCar
from ezgreedy.envs.obstacle_maps import mine_field, repeated_actions, turning_maze
from ezgreedy.kernels.policies import exploration
from ezgreedy.kernels.pure_exploration import (
    Axis,
    binned_first_visits,
    deep_sea_first_visits,
    finite_first_visits,
)
from ezgreedy.kernels.q_learning_runs import finite_task, sea_of
from ezgreedy.kernels.sarsa_runs import Domain

SEED = 5
switches = pytest.mark.parametrize(
    ("law", "carries"), [(Fixed(1), False), (Fixed(1), True), (Zeta(), False), (Zeta(), True)]
)


def plain_walks(make, num_actions, law, carries, num_steps, bins=None, first_lane=0):
    """First visits of three lanes, [3, cells]."""
    explore = EZGreedy(
        num_actions, 1.0, law, 3, SEED, first_lane=first_lane, carries_over_episodes=carries
    )
    return first_visits(make, explore, num_steps, bins).first


@switches
@pytest.mark.parametrize("num_steps", [7, 400])
def test_deep_sea(law, carries, num_steps) -> None:
    size = 6
    env = DeepSea(size, action_seed=1 if carries else None)
    expected = plain_walks(
        lambda: DeepSea(size, action_seed=1 if carries else None), 2, law, carries, num_steps
    )
    reachable = np.tri(size, dtype=np.bool_)
    for lane in range(3):
        first = deep_sea_first_visits(
            SEED, lane, sea_of(env), exploration(1.0, law, carries), num_steps
        )
        # The plain walk sees the bed as well, one more row.
        cells = expected[lane].reshape(size + 1, size)[:size]
        np.testing.assert_array_equal(first[reachable], cells[reachable])
        assert (first[~reachable] == -1).all()


@switches
@pytest.mark.parametrize("num_steps", [7, 400])
@pytest.mark.parametrize("goal", [None, (5, 4)])
def test_grid_world(law, carries, num_steps, goal) -> None:
    size = 7
    expected = plain_walks(lambda: GridWorld(size, (1, 3), goal), 4, law, carries, num_steps)
    for lane in range(3):
        task = finite_task(GridWorld(size, (1, 3), goal))
        first = finite_first_visits(SEED, lane, task, exploration(1.0, law, carries), num_steps)
        np.testing.assert_array_equal(first, expected[lane])


@switches
@pytest.mark.parametrize(
    "make", [mine_field, turning_maze, repeated_actions], ids=lambda make: make.__name__
)
def test_grid_maps(law, carries, make) -> None:
    env = make()
    expected = plain_walks(make, env.num_actions, law, carries, 1500)
    for lane in range(3):
        first = finite_first_visits(
            SEED, lane, finite_task(env), exploration(1.0, law, carries), 1500
        )
        np.testing.assert_array_equal(first, expected[lane])
        assert (first == 1500).any()


class States(ObservationWrapper):
    """CartPole's position and angle as observations."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,))

    def observation(self, observation):
        x, theta = self.unwrapped.physics_state[:2]
        return np.array([x, math.atan2(math.sin(theta), math.cos(theta))])


class StartsOfLane(Wrapper):
    """First states from the kernel's stream of a lane, whatever seed a reset is given."""

    def __init__(self, env, lane):
        super().__init__(env)
        self.unwrapped.np_random = np.random.default_rng(
            np.random.SeedSequence(SEED, spawn_key=(2, lane))
        )

    def reset(self, *, seed=None, options=None):
        return self.env.reset(options=options)


def makes_lanes(make, first_lane):
    """A maker of environments, of which each stands for the next lane."""
    lanes = iter(range(first_lane, first_lane + 3))
    return lambda: StartsOfLane(make(), next(lanes))


@switches
def test_mountain_car(law, carries) -> None:
    axes = (Axis(0, -1.2, 0.6, 12), Axis(1, -0.07, 0.07, 12))
    bins = Bins((1, 0), (-0.07, -1.2), (0.07, 0.6), (12, 12), (False, False))
    make = makes_lanes(MountainCar, first_lane=3)
    expected = plain_walks(make, 3, law, carries, 4000, bins, first_lane=3)
    fast = binned_first_visits(
        Domain.MOUNTAIN_CAR, exploration(1.0, law, carries), axes, 4000, range(3, 6), SEED
    )
    np.testing.assert_array_equal(fast.times.reshape(3, -1), expected)
    assert fast.rewarded.any() == isinstance(law, Zeta)  # so that episodes end, and others begin


@switches
def test_cartpole(law, carries) -> None:
    axes = (Axis(0, -1.8, 1.8, 20), Axis(1, -math.pi, math.pi, 20, True))
    bins = Bins((1, 0), (-math.pi, -1.8), (math.pi, 1.8), (20, 20), (False, False))
    make = makes_lanes(lambda: States(CartPoleSwingUpSparse()), first_lane=3)
    expected = plain_walks(make, 3, law, carries, 1500, bins, first_lane=3)
    fast = binned_first_visits(
        Domain.CARTPOLE, exploration(1.0, law, carries), axes, 1500, range(3, 6), SEED
    )
    assert fast.times.shape == (3, 20, 20)
    np.testing.assert_array_equal(fast.times.reshape(3, -1), expected)


def test_walks_that_reach_the_goal_are_rewarded_and_begin_again() -> None:
    axes = (Axis(0, -1.2, 0.6, 12), Axis(1, -0.07, 0.07, 12))
    walks = axes, 5000, range(40), 0
    visits = binned_first_visits(Domain.MOUNTAIN_CAR, exploration(1.0, Zeta()), *walks)
    plain = binned_first_visits(Domain.MOUNTAIN_CAR, exploration(1.0, Fixed(1)), *walks)
    assert visits.rewarded.mean() > 0.7 > 0.3 > plain.rewarded.mean()
    assert visits.times.mean() < plain.times.mean()
    # The goal is at 0.5; its bin is seen in the trials that saw the reward.
    assert ((visits.times[:, :, -1] < 5000).any(axis=1) >= visits.rewarded).all()


def test_walks_without_a_greedy_policy_need_epsilon_1() -> None:
    axes = (Axis(0, -1.2, 0.6, 12), Axis(1, -0.07, 0.07, 12))
    with pytest.raises(ValueError, match="epsilon must be 1"):
        binned_first_visits(Domain.MOUNTAIN_CAR, exploration(0.5, Zeta()), axes, 10, [0], 0)
