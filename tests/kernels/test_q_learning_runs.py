"""Kernels equal the plain loop, and find what is known about the environments they train on."""

from itertools import product

import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from ezgreedy.agents.q_learning import QLearning, greedy_return
from ezgreedy.envs.chain import Chain
from ezgreedy.envs.deep_sea import DeepSea
from ezgreedy.envs.grid_map import GridMap
from ezgreedy.envs.grid_world import GridWorld
from ezgreedy.envs.obstacle_maps import turning_maze
from ezgreedy.exploration.durations import Fixed, Geometric, PlusOne, Zeta
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.kernels.policies import exploration
from ezgreedy.kernels.q_learning_runs import (
    NO_LIMIT,
    Budget,
    finite_task,
    leads_to_treasure,
    rule,
    run_chain,
    run_deep_sea,
    run_finite,
    sea_of,
)
from support.q_learning_twin import train

NUM_STEPS = 240
LAWS = [Fixed(1), Zeta(), PlusOne(Zeta(1.5, 100)), Geometric(0.8), Zeta(2.0, 5, "clip")]
LIMIT = 17

switches = pytest.mark.parametrize(
    ("law", "carries", "ties"),
    list(product(LAWS, [False, True], ["random", "first"])),
    ids=str,
)


def twin(env, law, carries, ties, *, initial_value, epsilon=0.3, seed=3, num_steps=NUM_STEPS):
    explore = EZGreedy(
        env.unwrapped.num_actions, epsilon, law, 1, seed, carries_over_episodes=carries
    )
    agent = QLearning(
        env.unwrapped.num_states,
        env.unwrapped.num_actions,
        0.5,
        0.9,
        initial_value,
        ties,
        explore.streams,
    )
    return train(env, explore, agent, num_steps), explore


def check(run, kernel):
    """The tables are equal after every step, and the actions were told apart by them.

    With values and a discount that are not 0 nearly every update leaves a trace.
    """
    for step in range(1, NUM_STEPS + 1):
        result = kernel(Budget(NUM_STEPS, step))
        np.testing.assert_array_equal(result.values, run.tables[step - 1], f"step {step}")
    return result


@switches
@pytest.mark.parametrize("initial_value", [0.0, 1.0])
def test_the_chain_kernel_is_the_plain_loop(law, carries, ties, initial_value) -> None:
    env = Chain(7, down=0 if carries else 1)
    run, _ = twin(env, law, carries, ties, initial_value=initial_value)
    result = check(
        run,
        lambda budget: run_chain(
            3, env, exploration(0.3, law, carries), rule(0.5, 0.9, initial_value, ties), budget
        ),
    )
    assert result.returns.tolist() == run.discounted_returns
    assert result.rewards.tolist() == run.returns
    assert result.mean_return == pytest.approx(np.mean(run.discounted_returns))


@switches
@pytest.mark.parametrize("cost_on", ["right", "step"])
def test_the_deep_sea_kernel_is_the_plain_loop(law, carries, ties, cost_on) -> None:
    env = DeepSea(5, action_seed=1 if carries else None, cost_on=cost_on)
    run, _ = twin(env, law, carries, ties, initial_value=0.25)
    result = check(
        run,
        lambda budget: run_deep_sea(
            3, sea_of(env), exploration(0.3, law, carries), rule(0.5, 0.9, 0.25, ties), budget
        ),
    )
    assert result.returns.tolist() == run.returns
    successes = [number for number, gained in enumerate(run.returns, 1) if gained > 0.5]
    assert result.first_success == (successes[0] if successes else None)


@switches
def test_the_grid_world_kernel_is_the_plain_loop(law, carries, ties) -> None:
    env = TimeLimit(GridWorld(5, (1, 2), (3, 4)), LIMIT)
    run, _ = twin(env, law, carries, ties, initial_value=0.25)
    room = finite_task(GridWorld(5, (1, 2), (3, 4)), LIMIT)
    result = check(
        run,
        lambda budget: run_finite(
            3, room, exploration(0.3, law, carries), rule(0.5, 0.9, 0.25, ties), budget
        ),
    )
    assert result.returns.tolist() == run.returns
    assert result.lengths.tolist() == run.lengths
    assert LIMIT in run.lengths or ties == "random"


MAPS = {
    "mines": GridMap(["S...", ".*.*", "...G"]),
    "a maze": turning_maze(2, 6, seed=1),
    "equal actions": GridMap(["S..", "..G"], ["up", "down", "left", "right", "up", "up"]),
}


@switches
@pytest.mark.parametrize("name", MAPS)
def test_the_kernel_of_finite_environments_is_the_plain_loop_on_maps(
    law, carries, ties, name
) -> None:
    run, _ = twin(TimeLimit(MAPS[name], LIMIT), law, carries, ties, initial_value=0.25)
    task = finite_task(MAPS[name], LIMIT)
    result = check(
        run,
        lambda budget: run_finite(
            3, task, exploration(0.3, law, carries), rule(0.5, 0.9, 0.25, ties), budget
        ),
    )
    assert result.returns.tolist() == run.returns
    assert result.lengths.tolist() == run.lengths


def test_learning_is_dated_by_a_rollout_after_every_episode() -> None:
    env = DeepSea(5)
    policy, how = exploration(0.2, Zeta()), rule(1.0)
    run = run_deep_sea(0, sea_of(env), policy, how, Budget(2000, stops_when_learned=True))
    assert run.learned == len(run.returns)
    assert greedy_return(env, run.values, 1.0, 5) == pytest.approx(0.99)
    before = run_deep_sea(0, sea_of(env), policy, how, Budget(run.learned - 1))
    assert before.learned is None
    assert not leads_to_treasure(before.values, env.mapping, how)
    longer = run_deep_sea(0, sea_of(env), policy, how, Budget(2000))
    assert longer.learned == run.learned
    assert run.first_success is not None
    assert run.first_success < run.learned


def test_a_tie_on_the_way_is_no_learned_policy_unless_ties_favour_right() -> None:
    values = np.zeros((12, 2))
    ones = np.ones((3, 3), dtype=np.int8)
    assert not leads_to_treasure(values, ones, rule(1.0))
    assert not leads_to_treasure(values, ones, rule(1.0, ties="first"))
    assert not leads_to_treasure(values, 1 - ones, rule(1.0))
    assert leads_to_treasure(values, 1 - ones, rule(1.0, ties="first"))


def test_deep_sea_is_learned_as_soon_as_published() -> None:
    """Medians of five seeds lie within what such medians spanned in a prototype.

    40 repeats with another generator gave [1139, 2556] at N = 10 and [8920, 17210] at N = 20;
    their ends are widened by a fifth.
    """
    for size, low, high in ((10, 1139, 2556), (20, 8920, 17210)):
        policy = exploration(1 / (size + 1), Zeta())
        budget = Budget(100_000, stops_when_learned=True)
        runs = [
            run_deep_sea(seed, sea_of(DeepSea(size)), policy, rule(1.0), budget)
            for seed in range(5)
        ]
        median = np.median([run.learned for run in runs])
        assert 0.8 * low < median < 1.2 * high


def test_after_learning_deep_sea_pays_what_exploration_leaves_of_it() -> None:
    """The plateau is 0.99·(1 − ε/2)^N: a coin leads off the path with chance ε/2 a step.

    εz gets a little more, because options to the right stay on it.
    """
    size, epsilon = 20, 1 / 21
    run = run_deep_sea(
        0, sea_of(DeepSea(size)), exploration(epsilon, Zeta()), rule(1.0), Budget(120_000)
    )
    plateau = run.returns[-50_000:].mean()
    assert plateau == pytest.approx(0.99 * (1 - epsilon / 2) ** size, abs=0.02)


def test_the_chain_is_solved_when_long_options_show_all_of_it() -> None:
    """With α = 1 and enough exploration the greedy policy stops at the best state, 53."""
    policy, how = exploration(0.5, Zeta(1.5)), rule(1.0, 0.99)
    run = run_chain(0, Chain(100), policy, how, Budget(NO_LIMIT, 200_000))
    assert greedy_return(Chain(100), run.values, 0.99, 101) == pytest.approx(9 * 0.99**53)
    assert int(run.values.argmax(axis=1)[:101].argmax()) == 53


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exploration(1.5, Zeta()), "epsilon must lie in [0, 1]; got 1.5"),
        (lambda: exploration(0.5, Zeta(), 1), "carries_over_episodes must be a bool"),  # type: ignore[arg-type]
        (lambda: rule(2.0), "step_size must lie in [0, 1]; got 2.0"),
        (lambda: rule(1.0, ties="last"), "ties must be one of 'random', 'first'"),  # type: ignore[arg-type]
    ],
)
def test_bad_settings_are_refused_by_name(call, message) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert message in str(caught.value)
