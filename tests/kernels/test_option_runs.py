"""Kernels of options and of skips equal the plain loops."""

import numpy as np
import pytest

from ezgreedy import ActionRepeats, FiniteMDP, Primitives, TemporallyExtended, Zeta, eigenoptions
from ezgreedy.agents.q_learning import QLearning
from ezgreedy.agents.skip_learning import SkipLearning
from ezgreedy.envs.deep_sea import DeepSea
from ezgreedy.envs.finite import finite_model
from ezgreedy.envs.grid_map import GridMap
from ezgreedy.exploration.durations import Fixed
from ezgreedy.exploration.option_tables import option_tables
from ezgreedy.kernels.option_runs import run_options
from ezgreedy.kernels.policies import exploration
from ezgreedy.kernels.q_learning_runs import Budget, finite_task, rule, run_finite
from ezgreedy.kernels.skip_runs import run_skips

NUM_STEPS, LIMIT = 250, 17
ENVS = {
    "a map": GridMap(["S..#", ".#..", "...G"]),
    "DeepSea": DeepSea(4, action_seed=1),
    "equal actions": GridMap(["S..", "..G"], ["up", "down", "left", "right", "up", "up"]),
}
each_env = pytest.mark.parametrize("name", ENVS)


def mdp_of(env):
    model = finite_model(env)
    return FiniteMDP(model.transitions(), model.start, model.terminal)


def plain_loop(env, choose, learn, num_steps):
    """Returns and lengths of whole episodes, with episodes cut after LIMIT steps."""
    returns, lengths = [], []
    (state, _), gained, taken = env.reset(), 0.0, 0
    for _ in range(num_steps):
        action = choose(state)
        after, reward, terminated, _, _ = env.step(action)
        gained, taken = gained + reward, taken + 1
        is_over = terminated or taken == LIMIT
        learn(state, action, reward, after, terminated, is_over)
        state = after
        if is_over:
            returns.append(gained)
            lengths.append(taken)
            (state, _), gained, taken = env.reset(), 0.0, 0
    return returns, lengths


@each_env
@pytest.mark.parametrize("kind", ["eigenoptions", "weighted repeats"])
def test_the_kernel_of_options_is_the_plain_loop(name, kind):
    env, seed, epsilon = ENVS[name], 3, 0.3
    weights = np.linspace(1.0, 2.0, env.num_actions)
    options = (
        eigenoptions(mdp_of(env), 2)
        if kind == "eigenoptions"
        else ActionRepeats(env.num_actions, Zeta(), weights)
    )
    explore = TemporallyExtended(options, epsilon, seed=seed)
    agent = QLearning(
        env.num_states, env.num_actions, 0.5, 0.9, streams=explore.streams, tie_weights=weights
    )

    def choose(state):
        greedy = agent.greedy(np.array([state]), explore.steps)
        return int(explore(greedy, observations=[state])[0])

    def learn(state, action, reward, after, terminated, is_over):
        agent.update([state], [action], [reward], [after], np.array([terminated]))
        explore.reset(np.array([is_over]))

    returns, lengths = plain_loop(env, choose, learn, NUM_STEPS)
    run = run_options(
        seed,
        finite_task(env, LIMIT),
        option_tables(options, env.num_states),
        epsilon,
        rule(0.5, 0.9),
        Budget(NUM_STEPS, NUM_STEPS),
        weights,
    )
    np.testing.assert_array_equal(run.values, agent.values)
    assert run.returns.tolist() == returns
    assert run.lengths.tolist() == lengths
    assert (run.num_steps, run.num_explored) == (NUM_STEPS, explore.counters.explored)
    assert run.explored_share == run.num_explored / NUM_STEPS


@each_env
def test_without_weights_it_is_the_kernel_of_action_repeats(name):
    env, budget = ENVS[name], Budget(NUM_STEPS, NUM_STEPS)
    task, how = finite_task(env, LIMIT), rule(0.5, 0.9)
    for options, law in (
        (ActionRepeats(env.num_actions), Zeta()),
        (Primitives(env.num_actions), Fixed(1)),
    ):
        tables = option_tables(options, env.num_states)
        found = run_options(1, task, tables, 0.3, how, budget)
        expected = run_finite(1, task, exploration(0.3, law), how, budget)
        np.testing.assert_array_equal(found.values, expected.values)
        assert found.returns.tolist() == expected.returns.tolist()


@each_env
def test_the_kernel_of_skips_is_the_plain_loop(name):
    env, seed = ENVS[name], 5
    agent = SkipLearning(
        env.num_states, env.num_actions, 0.5, 0.9, epsilon=0.3, longest_skip=4, seed=seed
    )

    def learn(state, action, reward, after, terminated, is_over):
        agent.update(reward, after, terminated, is_over and not terminated)

    returns, lengths = plain_loop(env, agent.act, learn, NUM_STEPS)
    task, budget = finite_task(env, LIMIT), Budget(NUM_STEPS, NUM_STEPS)
    run, skip_values = run_skips(seed, task, 0.3, rule(0.5, 0.9), budget, 4)
    np.testing.assert_array_equal(run.values, agent.values)
    np.testing.assert_array_equal(skip_values, agent.skip_values)
    assert run.returns.tolist() == returns
    assert run.lengths.tolist() == lengths
    assert 0.1 < run.explored_share < 0.6


def test_bad_arguments_are_refused_by_name():
    env = ENVS["a map"]
    task, budget = finite_task(env, LIMIT), Budget(5)
    tables = option_tables(Primitives(4), env.num_states)
    for call, message in (
        (
            lambda: run_options(0, task, option_tables(Primitives(4), 3), 0.1, rule(0.5), budget),
            "tables must have 12 states",
        ),
        (
            lambda: run_options(0, task, tables, 0.1, rule(0.5, ties="first"), budget),
            "how must break ties at random",
        ),
        (lambda: run_options(0, task, tables, 2.0, rule(0.5), budget), "epsilon must lie in"),
        (
            lambda: run_skips(0, task, 0.1, rule(0.5, 1.0, 1.0), budget),
            "how must begin at 0 and break ties at random",
        ),
        (lambda: run_skips(0, task, 0.1, rule(0.5), budget, 0), "longest_skip must be at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
