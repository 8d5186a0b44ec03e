import itertools

import numpy as np
import pytest

from ezgreedy.agents.features import FourierBasis
from ezgreedy.agents.sarsa_lambda import LARGEST_ERROR, SarsaLambda, SarsaSettings, greedy_action
from ezgreedy.exploration.streams import Purpose
from support.twins import uniform

RANGES = [(0.0, 1.0), (-1.0, 1.0)]
SETTINGS = SarsaSettings(step_size=0.1, discount=0.9, decay=0.8)
NUM_ACTIONS = 3


def changed(**changes):
    return SarsaSettings(**{**vars(SETTINGS), **changes})


def episodes(num_episodes=6, num_steps=40, seed=0):
    """Made-up experience: lists of (state, action, reward), and whether the end was terminal."""
    rng = np.random.default_rng(seed)
    for episode in range(num_episodes):
        steps = [
            (rng.uniform(-0.2, 1.2, 2), int(rng.integers(NUM_ACTIONS)), float(rng.random()))
            for _ in range(num_steps)
        ]
        yield steps, episode % 2 == 0


def teach(agent, **experience):
    for steps, is_terminal in episodes(**experience):
        agent.begin(*steps[0][:2])
        for (_, _, reward), (state, action, _) in itertools.pairwise(steps):
            agent.learn(reward, state, action)
        if is_terminal:
            agent.learn(steps[-1][2], None)
    return agent


def textbook_weights(basis, settings, weights, **experience):
    """Linear SARSA(λ) with accumulating traces, as Sutton and Barto print it, one number at a time.

    Also Dabney and Barto's bound, from its definition.
    """
    scales = basis.scales if settings.scales_step_sizes else np.ones(basis.num_features)
    alpha = settings.step_size
    for steps, is_terminal in episodes(**experience):
        traces = np.zeros_like(weights)
        for place, (state, action, reward) in enumerate(steps):
            is_last = place + 1 == len(steps)
            if is_last and not is_terminal:
                break
            gradient = np.zeros_like(weights)
            gradient[action] = basis(state)
            traces += gradient
            next_gradient = np.zeros_like(weights)
            if not is_last:
                next_gradient[steps[place + 1][1]] = basis(steps[place + 1][0])
            difference = settings.discount * next_gradient - gradient
            delta = reward + (weights * difference).sum()
            slope = (scales * traces * difference).sum()
            if settings.bounds_step_size and slope < 0.0:
                alpha = min(alpha, -1.0 / slope)
            weights = weights + alpha * delta * scales * traces
            traces *= settings.discount * settings.decay
    return weights, alpha


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"scales_step_sizes": False},
        {"bounds_step_size": True},
        {"bounds_step_size": True, "scales_step_sizes": False, "step_size": 1.0},
        {"decay": 0.0},
        {"decay": 1.0, "step_size": 0.01},
        {"initial_variance": 0.5},
    ],
    ids=str,
)
def test_updates_equal_the_textbook(changes):
    settings = changed(**changes)
    basis = FourierBasis(3, RANGES)
    agent = SarsaLambda(basis, NUM_ACTIONS, settings, seed=5)
    expected, alpha = textbook_weights(basis, settings, agent.weights)
    teach(agent)
    np.testing.assert_allclose(agent.weights, expected, rtol=1e-9, atol=1e-10)
    assert agent.step_size == pytest.approx(alpha, rel=1e-12)


def test_single_precision_with_forgotten_traces_stays_near_the_textbook():
    settings = changed(precision=32, decay=0.5, step_size=0.02)
    basis = FourierBasis(3, RANGES)
    agent = SarsaLambda(basis, NUM_ACTIONS, settings)
    assert settings.horizon == 21  # 0.45^21 is the first power below half of float32's epsilon
    expected, _ = textbook_weights(basis, settings, agent.weights, num_steps=400)
    teach(agent, num_steps=400)
    np.testing.assert_allclose(agent.weights, expected, atol=2e-5)


def test_the_bound_stays_finite_where_the_raw_step_size_diverges():
    def taught(bounds):
        settings = changed(step_size=2.0, scales_step_sizes=False, bounds_step_size=bounds)
        return teach(SarsaLambda(FourierBasis(3, RANGES), NUM_ACTIONS, settings), num_steps=300)

    raw, bounded = taught(bounds=False), taught(bounds=True)
    assert raw.has_diverged
    assert np.isfinite(raw.weights).all()
    assert not bounded.has_diverged
    assert np.abs(bounded.weights).max() < 100.0
    assert bounded.step_size < 0.5


def test_a_diverged_agent_says_so_and_learns_no_more():
    agent = SarsaLambda(FourierBasis(1, RANGES), NUM_ACTIONS, SETTINGS)
    agent.begin([0.5, 0.5], 0)
    assert agent.learn(2.0 * LARGEST_ERROR, [0.5, 0.4], 1) is None
    assert agent.has_diverged
    assert agent.learn(1.0, [0.5, 0.3], 1) is None
    assert not agent.weights.any()


def test_random_ties_are_the_streams_and_first_ties_the_first():
    basis = FourierBasis(1, RANGES)
    agent = SarsaLambda(basis, NUM_ACTIONS, SETTINGS, seed=9)
    first = SarsaLambda(basis, NUM_ACTIONS, changed(ties="first"), seed=9)
    for step in range(50):
        u = uniform(9, 0, step, Purpose.GREEDY_TIE)
        assert agent.greedy([0.1, 0.2], step) == int(u * NUM_ACTIONS)
        assert first.greedy([0.1, 0.2], step) == 0


@pytest.mark.parametrize(
    ("values", "tie", "expected"),
    [([1, 3, 2], 0.99, 1), ([3, 1, 3], 0.49, 0), ([3, 1, 3], 0.5, 2), ([np.nan] * 3, 0.5, 0)],
)
def test_greedy_actions_are_the_best_ones(values, tie, expected):
    assert greedy_action(np.array(values, dtype=np.float64), tie) == expected


def test_first_weights_have_the_variance_and_depend_on_the_seed():
    basis = FourierBasis(20, RANGES)
    settings = changed(initial_variance=0.001)
    weights = SarsaLambda(basis, NUM_ACTIONS, settings, seed=1).weights
    assert weights.var() == pytest.approx(0.001, rel=0.15)
    assert (weights == SarsaLambda(basis, NUM_ACTIONS, settings, seed=1).weights).all()
    assert (weights != SarsaLambda(basis, NUM_ACTIONS, settings, seed=2).weights).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step_size": -1.0}, "step_size must"),
        ({"discount": 1.1}, "discount must"),
        ({"decay": float("nan")}, "decay must"),
        ({"initial_variance": -1.0}, "initial_variance must"),
        ({"ties": "last"}, "ties must be one of"),
        ({"precision": 16}, "precision must be 32 or 64"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        changed(**changes)


def test_learning_needs_an_episode_and_legal_actions():
    agent = SarsaLambda(FourierBasis(1, RANGES), NUM_ACTIONS, SETTINGS)
    with pytest.raises(ValueError, match="no episode has begun"):
        agent.learn(0.0, [0.0, 0.0], 0)
    with pytest.raises(ValueError, match="action must be at most 2; got 3"):
        agent.begin([0.0, 0.0], 3)
    with pytest.raises(TypeError, match="action must be an int"):
        agent.begin([0.0, 0.0], None)
    with pytest.raises(ValueError, match=r"state must have shape \(2,\)"):
        agent.values([0.0])
