import math

import gymnasium
import numpy as np
import pytest

import ezgreedy.envs
from ezgreedy import EZGreedy, Fixed, Zeta
from ezgreedy.agents.features import FourierBasis
from ezgreedy.agents.linear import SarsaLambda, SarsaSettings
from ezgreedy.envs import cartpole
from ezgreedy.kernels.linear import (
    Axis,
    Domain,
    Episodes,
    Exploration,
    first_visits,
    learn_by_sarsa,
)

ENVIRONMENTS = {
    Domain.MOUNTAIN_CAR: "ezgreedy/MountainCarSparse-v0",
    Domain.CARTPOLE: "ezgreedy/CartPoleSwingUpSparse-v0",
}
RANGES = {
    Domain.MOUNTAIN_CAR: [(-1.2, 0.6), (-0.07, 0.07)],
    Domain.CARTPOLE: [(-2.0, 2.0), (-1.0, 1.0), (-1.0, 1.0), (-10.0, 10.0), (-20.0, 20.0)],
}
MOUNTAIN_CAR = SarsaSettings(step_size=0.005, discount=0.99, decay=0.9)
CARTPOLE = SarsaSettings(
    step_size=0.0005, discount=0.99, decay=0.7, scales_step_sizes=False, initial_variance=0.001
)


def changed(settings, **changes):
    return SarsaSettings(**{**vars(settings), **changes})


def plain_run(agent, domain, exploration, episodes):
    """What the kernel does, with a Gymnasium environment, a core policy and an agent object."""
    assert "ezgreedy/MountainCarSparse-v0" in ezgreedy.envs.ENVIRONMENTS
    env = gymnasium.make(ENVIRONMENTS[domain], max_episode_steps=episodes.step_limit)
    explore = EZGreedy(
        3,
        exploration.epsilon,
        exploration.durations,
        seed=agent.seed,
        carries_over_episodes=exploration.carries_over_episodes,
    )
    returns, lengths, step = [], [], 0

    def decide(state):
        nonlocal step
        greedy = agent.greedy(state, step)
        step += 1
        return int(explore(np.array([greedy]))[0])

    for episode in range(episodes.num_episodes):
        state, _ = env.reset(seed=agent.seed if episode == 0 else None)
        explore.reset(np.array([True]))
        action = decide(state)
        agent.begin(state, action)
        total, length = 0.0, 0
        while True:
            state, reward, terminated, truncated, _ = env.step(action)
            total, length = total + reward, length + 1
            if terminated or (truncated and not episodes.bootstraps_at_limit):
                agent.learn(reward, None)
            else:
                action = decide(state)
                agent.learn(reward, state, action)
            if agent.has_diverged:
                return returns, lengths, episode
            if terminated or truncated:
                break
        returns.append(total)
        lengths.append(length)
    return returns, lengths, None


@pytest.mark.parametrize(
    ("domain", "settings", "exploration", "episodes", "coupling"),
    [
        (Domain.MOUNTAIN_CAR, MOUNTAIN_CAR, (0.05, Zeta()), (4, 1500), None),
        (Domain.MOUNTAIN_CAR, MOUNTAIN_CAR, (0.05, Fixed(1)), (2, 800), None),
        (Domain.MOUNTAIN_CAR, changed(MOUNTAIN_CAR, ties="first"), (0.3, Zeta()), (2, 800), None),
        (
            Domain.MOUNTAIN_CAR,
            changed(MOUNTAIN_CAR, bounds_step_size=True, initial_variance=0.1, step_size=0.5),
            (0.05, Zeta(), True),
            (3, 700, False),
            None,
        ),
        (Domain.CARTPOLE, CARTPOLE, (0.01, Zeta()), (3, 500), 2),
        (Domain.CARTPOLE, CARTPOLE, (1.0, Zeta(), True), (3, 300, False), 2),
        (
            Domain.CARTPOLE,
            changed(CARTPOLE, bounds_step_size=True, scales_step_sizes=True, precision=32),
            (0.05, Zeta()),
            (2, 200),
            3,
        ),
        (Domain.CARTPOLE, changed(CARTPOLE, step_size=0.1), (0.01, Zeta()), (2, 500), 2),
    ],
)
def test_the_kernel_equals_its_plain_twin_bit_for_bit(
    domain, settings, exploration, episodes, coupling
):
    order = 5 if domain == Domain.MOUNTAIN_CAR else 4
    basis = FourierBasis(order, RANGES[domain], coupling)
    fast, plain = (SarsaLambda(basis, 3, settings, seed=3) for _ in range(2))
    run = domain, Exploration(*exploration), Episodes(*episodes)
    learning = learn_by_sarsa(fast, *run)
    returns, lengths, diverged_in = plain_run(plain, *run)
    assert learning.returns.tolist() == returns
    assert learning.lengths.tolist() == lengths
    assert learning.diverged_in == diverged_in
    assert fast.has_diverged == plain.has_diverged
    assert fast.weights.tobytes() == plain.weights.tobytes()
    assert fast.step_size == plain.step_size


def test_the_full_basis_in_single_precision_stays_near_double_precision():
    """The same first episode, as long as rounding has not yet changed a greedy action."""
    basis = FourierBasis(7, RANGES[Domain.CARTPOLE])
    settings = changed(CARTPOLE, scales_step_sizes=True, bounds_step_size=True)
    single = SarsaLambda(basis, 3, changed(settings, precision=32))
    double = SarsaLambda(basis, 3, settings)
    for agent in (single, double):
        learn_by_sarsa(agent, Domain.CARTPOLE, Exploration(0.01, Zeta()), Episodes(1, 150))
    np.testing.assert_allclose(single.weights, double.weights, atol=1e-5)
    assert single.step_size == pytest.approx(double.step_size, rel=1e-5)


def test_a_diverging_run_ends_with_the_episode_in_which_it_diverged():
    basis = FourierBasis(7, RANGES[Domain.CARTPOLE], 2)
    agent = SarsaLambda(basis, 3, changed(CARTPOLE, step_size=0.05))
    episodes = Episodes(20, 1000)
    run = learn_by_sarsa(agent, Domain.CARTPOLE, Exploration(0.01, Zeta()), episodes)
    assert run.diverged_in is not None
    assert len(run.returns) == len(run.lengths) == run.diverged_in < 20
    assert np.isfinite(agent.weights).all()


def test_seeds_matter_and_are_enough():
    basis = FourierBasis(5, RANGES[Domain.MOUNTAIN_CAR])

    def lengths(seed):
        agent = SarsaLambda(basis, 3, MOUNTAIN_CAR, seed)
        run = (Domain.MOUNTAIN_CAR, Exploration(0.05, Zeta()), Episodes(10, 5000))
        return learn_by_sarsa(agent, *run).lengths.tolist()

    assert lengths(1) == lengths(1) != lengths(2)


def plain_first_visits(lane, seed, axes, num_steps, durations):
    """A walk over CartPole, with the core's policy and the environment's step."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2, lane)))
    state = cartpole.start(*rng.standard_normal((256, 4))[0])
    explore = EZGreedy(3, 1.0, durations, seed=seed, first_lane=lane)
    times = np.full((axes[1].num_bins, axes[0].num_bins), num_steps)
    for step in range(num_steps + 1):
        place = []
        for axis in reversed(axes):
            value = state[axis.coordinate]
            if axis.is_angle:
                value = math.atan2(math.sin(value), math.cos(value))
            edges = np.linspace(axis.low, axis.high, axis.num_bins + 1)[1:-1]
            place.append(int(np.searchsorted(edges, value, side="right")))
        times[tuple(place)] = min(times[tuple(place)], step)
        *state, _, _ = cartpole.step(*state, int(explore(np.array([0]))[0]))
    return times


def test_first_visits_equal_a_plain_walk():
    axes = (Axis(0, -1.8, 1.8, 20), Axis(1, -math.pi, math.pi, 20, True))
    fast = first_visits(Domain.CARTPOLE, Exploration(1.0, Zeta()), axes, 1500, range(3, 6), 7)
    assert fast.times.shape == (3, 20, 20)
    for times, lane in zip(fast.times, range(3, 6), strict=True):
        np.testing.assert_array_equal(times, plain_first_visits(lane, 7, axes, 1500, Zeta()))


def test_walks_that_reach_the_goal_are_rewarded_and_begin_again():
    axes = (Axis(0, -1.2, 0.6, 12), Axis(1, -0.07, 0.07, 12))
    visits = first_visits(Domain.MOUNTAIN_CAR, Exploration(1.0, Zeta()), axes, 5000, range(40), 0)
    plain = first_visits(Domain.MOUNTAIN_CAR, Exploration(1.0, Fixed(1)), axes, 5000, range(40), 0)
    assert visits.rewarded.mean() > 0.7 > 0.3 > plain.rewarded.mean()
    assert visits.times.mean() < plain.times.mean()
    # The goal is at 0.5; its bin is seen in the trials that saw the reward.
    assert ((visits.times[:, :, -1] < 5000).any(axis=1) >= visits.rewarded).all()


def test_walks_without_a_greedy_policy_need_epsilon_1():
    axes = (Axis(0, -1.2, 0.6, 12), Axis(1, -0.07, 0.07, 12))
    with pytest.raises(ValueError, match="epsilon must be 1"):
        first_visits(Domain.MOUNTAIN_CAR, Exploration(0.5, Zeta()), axes, 10, [0], 0)
