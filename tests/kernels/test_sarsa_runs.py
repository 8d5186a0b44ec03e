import math

import gymnasium
import numpy as np
import pytest

import ezgreedy.envs
from ezgreedy import EZGreedy, Fixed, Zeta
from ezgreedy.agents.features import FourierBasis
from ezgreedy.agents.sarsa_lambda import SarsaLambda, SarsaSettings
from ezgreedy.kernels.policies import exploration
from ezgreedy.kernels.sarsa_runs import Domain, Episodes, learn_by_sarsa

ENVIRONMENTS = {
    Domain.MOUNTAIN_CAR: ("ezgreedy/MountainCarSparse-v0", {}),
    Domain.MOUNTAIN_CAR_DENSE: ("ezgreedy/MountainCarDense-v0", {}),
    Domain.CARTPOLE: ("ezgreedy/CartPoleSwingUpSparse-v0", {}),
    Domain.CARTPOLE_STATE: ("ezgreedy/CartPoleSwingUpSparse-v0", {"observes": "state"}),
}
CAR_RANGES = [(-1.2, 0.6), (-0.07, 0.07)]
SPEED_RANGES = [(-10.0, 10.0), (-20.0, 20.0)]
RANGES = {
    Domain.MOUNTAIN_CAR: CAR_RANGES,
    Domain.MOUNTAIN_CAR_DENSE: CAR_RANGES,
    Domain.CARTPOLE: [(-2.0, 2.0), (-1.0, 1.0), (-1.0, 1.0), *SPEED_RANGES],
    Domain.CARTPOLE_STATE: [(-2.0, 2.0), (-math.pi, math.pi), *SPEED_RANGES],
}
MOUNTAIN_CAR = SarsaSettings(step_size=0.005, discount=0.99, decay=0.9)
CARTPOLE = SarsaSettings(
    step_size=0.0005, discount=0.99, decay=0.7, scales_step_sizes=False, initial_variance=0.001
)


def changed(settings, **changes):
    return SarsaSettings(**{**vars(settings), **changes})


def plain_run(agent, domain, policy, episodes):
    """What the kernel does, with a Gymnasium environment, a core policy and an agent object."""
    assert "ezgreedy/MountainCarSparse-v0" in ezgreedy.envs.ENVIRONMENTS
    name, options = ENVIRONMENTS[domain]
    env = gymnasium.make(name, max_episode_steps=episodes.step_limit, **options)
    epsilon, durations, *carries_over = policy
    explore = EZGreedy(
        3, epsilon, durations, seed=agent.seed, carries_over_episodes=bool(carries_over)
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
    ("domain", "settings", "policy", "episodes", "coupling"),
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
        (Domain.MOUNTAIN_CAR_DENSE, MOUNTAIN_CAR, (0.05, Zeta()), (3, 1200), None),
        (
            Domain.MOUNTAIN_CAR_DENSE,
            changed(MOUNTAIN_CAR, discount=1.0, step_size=0.001),
            (0.0, Fixed(1)),
            (3, 1200),
            None,
        ),
        (
            Domain.CARTPOLE_STATE,
            changed(CARTPOLE, scales_step_sizes=True, precision=32),
            (0.01, Zeta()),
            (2, 400),
            None,
        ),
        (Domain.CARTPOLE_STATE, CARTPOLE, (1.0, Zeta(), True), (2, 300, False), 2),
    ],
)
def test_the_kernel_equals_its_plain_twin_bit_for_bit(domain, settings, policy, episodes, coupling):
    order = 5 if domain.is_car else 4
    basis = FourierBasis(order, RANGES[domain], coupling)
    fast, plain = (SarsaLambda(basis, 3, settings, seed=3) for _ in range(2))
    learning = learn_by_sarsa(fast, domain, exploration(*policy), Episodes(*episodes))
    returns, lengths, diverged_in = plain_run(plain, domain, policy, Episodes(*episodes))
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
        learn_by_sarsa(agent, Domain.CARTPOLE, exploration(0.01, Zeta()), Episodes(1, 150))
    np.testing.assert_allclose(single.weights, double.weights, atol=1e-5)
    assert single.step_size == pytest.approx(double.step_size, rel=1e-5)


def test_a_diverging_run_ends_with_the_episode_in_which_it_diverged():
    basis = FourierBasis(7, RANGES[Domain.CARTPOLE], 2)
    agent = SarsaLambda(basis, 3, changed(CARTPOLE, step_size=0.05))
    episodes = Episodes(20, 1000)
    run = learn_by_sarsa(agent, Domain.CARTPOLE, exploration(0.01, Zeta()), episodes)
    assert run.diverged_in is not None
    assert len(run.returns) == len(run.lengths) == run.diverged_in < 20
    assert np.isfinite(agent.weights).all()


def test_seeds_matter_and_are_enough():
    basis = FourierBasis(5, RANGES[Domain.MOUNTAIN_CAR])

    def lengths(seed):
        agent = SarsaLambda(basis, 3, MOUNTAIN_CAR, seed)
        run = (Domain.MOUNTAIN_CAR, exploration(0.05, Zeta()), Episodes(10, 5000))
        return learn_by_sarsa(agent, *run).lengths.tolist()

    assert lengths(1) == lengths(1) != lengths(2)
