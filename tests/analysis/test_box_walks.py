"""First visits in boxes of actions: equal to a naive loop, and bad input named."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ezgreedy import (
    ColouredNoise,
    EZGreedy,
    HeldActions,
    HeldNoise,
    OrnsteinUhlenbeck,
    WhiteNoise,
    Zeta,
)
from ezgreedy.analysis.bins import Bins
from ezgreedy.analysis.box_walks import box_first_visits


class Sledge(gymnasium.Env):
    """A point in the plane that is moved by its action; a step from the right edge pays."""

    def __init__(self, action_space=None, observed=None):
        self.action_space = action_space or spaces.Box(-2.0, 4.0, (2,), np.float64)
        self.observation_space = spaces.Box(-10.0, 10.0, (2,), np.float64)
        self.actions, self.observed = [], observed
        self.place = np.zeros(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1.0, 1.0, 2)
        return self.place.copy(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.actions.append(action)
        self.place = np.clip(self.place + 0.3 * (action - 1.0), -10.0, 10.0)
        reward = 1.0 if self.place[0] > 3.0 else 0.0
        ends = bool(np.abs(self.place).max() > 6.0)
        return self.place.copy(), reward, ends, False, {}


KINDS = {
    "white": lambda lanes, first: WhiteNoise(2, 1.5, lanes, 9, first_lane=first),
    "held": lambda lanes, first: HeldNoise(2, 1.5, Zeta(cap=16), lanes, 9, first_lane=first),
    "ou": lambda lanes, first: OrnsteinUhlenbeck(2, 1.5, lanes, 9, first_lane=first),
    "pink": lambda lanes, first: ColouredNoise(2, 1.5, lanes, 9, first_lane=first, length=40),
    "uniform": lambda lanes, first: HeldActions(
        [-2.0, -2.0], [4.0, 4.0], 0.8, Zeta(), lanes, 9, first_lane=first
    ),
}
each_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def naive(explore, bins, num_steps, seed, greedy):
    """One trial in the most obvious way; the noise has a single lane."""
    first, first_reward, squares = [num_steps] * bins.num_cells, num_steps, []
    env = gymnasium.wrappers.TimeLimit(Sledge(), 50)

    def see(observation, step):
        cell = int(bins.cells([observation])[0])
        first[cell] = min(first[cell], step)

    observation, _ = env.reset(seed=seed)
    see(observation, 0)
    starts = np.array([True])
    for step in range(1, num_steps + 1):
        chosen = greedy(observation)[None]
        if isinstance(explore, HeldActions):
            action = explore(chosen, starts=starts)[0]
        else:
            action = (chosen + explore(starts=starts))[0]
        action = np.minimum(np.maximum(action, -2.0), 4.0)
        squares.append(np.mean(((action - 1.0) / 3.0) ** 2))
        observation, reward, terminated, truncated, _ = env.step(action)
        see(observation, step)
        if reward > 0:
            first_reward = min(first_reward, step)
        starts = np.array([terminated or truncated])
        if starts[0]:
            observation, _ = env.reset()
            see(observation, step)
    return first, first_reward, np.mean(squares)


@each_kind
def test_trials_equal_a_naive_loop_of_one_lane_each(make):
    def greedy(observation):
        return 1.0 - 0.1 * observation

    bins = Bins.of(Sledge().observation_space, 15)
    walks = box_first_visits(Sledge, make(3, 0), 200, bins, max_episode_steps=50, greedy=greedy)
    for trial in range(3):
        seed = int(np.random.SeedSequence(9, spawn_key=(trial,)).generate_state(1)[0])
        first, reward, power = naive(make(1, trial), bins, 200, seed, greedy)
        assert walks.visits.first[trial].tolist() == first
        assert walks.first_rewards[trial] == reward
        assert walks.powers[trial] == pytest.approx(power, rel=1e-12)


def test_without_a_greedy_action_noise_is_added_to_the_middle_of_the_box():
    envs = []

    def make():
        envs.append(Sledge())
        return envs[-1]

    box_first_visits(make, WhiteNoise(2, 0.01, lanes=2, seed=1), 30)
    assert np.abs(np.array(envs[0].actions) - 1.0).max() < 0.1


def test_clipping_takes_power_away_and_nothing_else_does():
    small, large = (
        box_first_visits(Sledge, WhiteNoise(2, scale, 4, 3), 500).powers.mean()
        for scale in (0.6, 30.0)
    )
    # 4,000 draws: the standard error is 2 %. In halves of the box's width the scale is 0.2.
    assert small == pytest.approx(0.04, rel=0.12)
    assert 0.9 < large < 1.0


def test_gymnasium_s_own_car_is_walked():
    pink = ColouredNoise(1, 0.5, lanes=2, seed=0, length=999)
    walks = box_first_visits("MountainCarContinuous-v0", pink, 300, max_episode_steps=100)
    assert (walks.visits.visits.sum(axis=1) >= 301).all()
    assert walks.visits.shape == (12, 12)


class Broken:
    lanes = 1

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, greedy):
        return np.array(self.answer)

    def reset(self, finished):
        pass


def used(noise):
    noise()
    return noise


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: box_first_visits("CartPole-v1", WhiteNoise(1), 5), "have a box of actions; got D"),
        (lambda: box_first_visits(Sledge, WhiteNoise(3), 5), "explore.size must equal 2, as in"),
        (lambda: box_first_visits(Sledge, WhiteNoise(2), 0), "num_steps must be at least 1; got 0"),
        (lambda: box_first_visits(Sledge, used(WhiteNoise(2)), 5), "explore must be fresh"),
        (lambda: box_first_visits(Sledge, object(), 5), "explore must have lanes, a call and a"),
        (lambda: box_first_visits(Sledge, EZGreedy(3, 1.0), 5), "greedy must hold ints"),
        (
            lambda: box_first_visits(Sledge, Broken([[1.0]]), 5),
            r"\(greedy\) must have shape \(1, 2",
        ),
        (
            lambda: box_first_visits(Sledge, Broken([[np.nan, 0.0]]), 5),
            r"\(greedy\) must be finite",
        ),
        (
            lambda: box_first_visits(Sledge, WhiteNoise(2), 5, greedy=lambda _: [np.inf, 0]),
            r"greedy\(observation\) must be finite",
        ),
        (
            lambda: box_first_visits(
                lambda: Sledge(spaces.Box(-np.inf, 1.0, (2,))), WhiteNoise(2), 5
            ),
            "actions must be a bounded row of numbers",
        ),
        (
            lambda: box_first_visits(lambda: Sledge(spaces.Box(0, 1, (2, 2))), WhiteNoise(2), 5),
            "actions must be a bounded row of numbers",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
