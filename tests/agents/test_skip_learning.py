"""TempoRL's skip values: the equation, values known in closed form, and what it is at one step."""

import numpy as np
import pytest

from ezgreedy.agents.q_learning import QLearning
from ezgreedy.agents.skip_learning import SkipLearning
from ezgreedy.envs.grid_map import GridMap
from ezgreedy.exploration.ez_greedy import EpsilonGreedy

LENGTH, DISCOUNT = 9, 0.9


def corridor():
    return GridMap(["S" + "." * (LENGTH - 2) + "G"], ("left", "right"))


def trained(num_steps, step_limit=200, **settings):
    env = corridor()
    agent = SkipLearning(env.num_states, env.num_actions, 1.0, DISCOUNT, **settings)
    state, _ = env.reset()
    lengths, taken, actions = [], 0, []
    for _ in range(num_steps):
        action = agent.act(state)
        state, reward, terminated, _, _ = env.step(action)
        taken += 1
        truncated = taken == step_limit
        agent.update(reward, state, terminated, truncated)
        actions.append(action)
        if terminated or truncated:
            lengths.append(taken)
            state, taken = env.reset()[0], 0
    return agent, lengths, actions


def test_pieces_of_a_repeat_have_their_returns_as_targets():
    agent = SkipLearning(5, 1, 0.5, 0.5, epsilon=0.0, longest_skip=3)
    agent.values[:, 0] = [0.0, 0.0, 8.0, 0.0, 0.0]
    agent.skip_values[0, 0, 2] = 1.0  # so that three plays are chosen
    agent.act(0)
    agent.update(1.0, 1, False, False)
    agent.act(1)
    agent.update(2.0, 2, False, False)
    # Single plays: r + γ max Q(x'), halfway from 0; then both together: 1 + 0.5 · (2 + 0.5 · 8).
    assert agent.values[:2, 0].tolist() == [0.5 * 1.0, 0.5 * (2.0 + 0.5 * 8.0)]
    assert agent.skip_values[0, 0].tolist() == [0.5 * 1.0, 0.5 * 4.0, 1.0]
    assert agent.skip_values[1, 0].tolist() == [0.5 * 6.0, 0.0, 0.0]


def test_an_end_teaches_all_longer_skips_and_a_truncation_none():
    for terminated, expected in ((True, [1.0, 1.0, 1.0]), (False, [1.0, 0.0, 0.0])):
        agent = SkipLearning(2, 1, 1.0, 0.5, longest_skip=3)
        agent.act(0)
        agent.update(1.0, 1, terminated, not terminated)
        assert agent.skip_values[0, 0].tolist() == expected


def test_values_of_a_corridor_are_those_known_in_closed_form():
    """Right pays γ^(d−1) from d steps away; j plays of right the same, up to the end."""
    agent, _, _ = trained(6000, epsilon=0.3, seed=1)
    away = LENGTH - 1 - np.arange(LENGTH - 1)
    best = DISCOUNT ** (away - 1.0)
    np.testing.assert_allclose(agent.values[:-1, 1], best)
    np.testing.assert_allclose(agent.skip_values[:-1, 1], np.repeat(best[:, None], 7, axis=1))
    # j plays of left: back to the wall, and from there the best.
    back = np.maximum(np.arange(LENGTH - 1)[:, None] - np.arange(1, 8), 0)
    left = DISCOUNT ** np.arange(1, 8) * best[back]
    seen = agent.skip_values[:-1, 0] != 0.0
    assert seen.mean() > 0.7
    np.testing.assert_allclose(agent.skip_values[:-1, 0][seen], left[seen])


def test_learned_skips_cross_a_corridor_without_looking():
    agent, lengths, _ = trained(6000, epsilon=0.1, seed=0)
    assert np.median(lengths[-100:]) <= LENGTH
    assert (agent.values[:-1].argmax(axis=1) == 1).all()


def test_with_skips_of_one_it_is_epsilon_greedy_q_learning():
    env, epsilon, seed = corridor(), 0.3, 7
    agent, _, actions = trained(400, epsilon=epsilon, longest_skip=1, seed=seed, step_limit=50)
    explore = EpsilonGreedy(env.num_actions, epsilon, seed=seed)
    twin = QLearning(env.num_states, env.num_actions, 1.0, DISCOUNT, streams=explore.streams)
    (state, _), taken = env.reset(), 0
    for action in actions:
        states = np.array([state])
        assert explore(twin.greedy(states, explore.steps)).tolist() == [action]
        state, reward, terminated, _, _ = env.step(action)
        twin.update(states, [action], [reward], [state], np.array([terminated]))
        taken += 1
        if terminated or taken == 50:
            state, taken = env.reset()[0], 0
    np.testing.assert_array_equal(agent.values, twin.values)
    np.testing.assert_array_equal(agent.skip_values[:, :, 0], twin.values)


def test_bad_arguments_are_refused_by_name_and_change_nothing():
    agent = SkipLearning(3, 2, 0.5)
    for call, message in (
        (lambda: SkipLearning(3, 2, 0.5, longest_skip=0), "longest_skip must be at least 1; got 0"),
        (lambda: SkipLearning(3, 2, 0.5, epsilon=2.0), "epsilon must lie in"),
        (lambda: SkipLearning(3, 2, 1.5), "step_size must lie in"),
        (lambda: agent.act(3), "state must"),
        (lambda: agent.update(0.0, 1, False, False), "update must follow a call of act"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()
    agent.act(0)
    for call, message in (
        (lambda: agent.act(0), "act must be called once for each update"),
        (lambda: agent.update(float("nan"), 1, False, False), "reward must"),
        (lambda: agent.update(0.0, 5, False, False), "next_state must"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()
    assert agent.steps == 0
    assert not agent.values.any()
    agent.update(1.0, 1, True, False)
    assert agent.steps == 1
