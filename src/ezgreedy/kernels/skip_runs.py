"""TempoRL on a finite environment: `SkipLearning` and its loop, compiled."""

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.agents.q_learning import best_value, learn, target
from ezgreedy.agents.skip_learning import LONGEST_SKIP, choose, learn_skips
from ezgreedy.compilation import jit
from ezgreedy.exploration.compiled import LaneStream, lane_stream
from ezgreedy.kernels.option_runs import ExploredRun
from ezgreedy.kernels.q_learning_runs import Budget, FiniteTask, QRule
from ezgreedy.requirements import FloatArray


def run_skips(
    seed: int,
    task: FiniteTask,
    epsilon: float,
    how: QRule,
    budget: Budget,
    longest_skip: int = LONGEST_SKIP,
) -> tuple[ExploredRun, FloatArray]:
    """One run of TempoRL, and its skip values, [states, actions, skips].

    Args:
        seed: random seed of the run.
        task: the environment.
        epsilon: probability of a random action, and of a random skip.
        how: how to learn; values begin at 0, and ties are broken at random.
        budget: episodes and steps.
        longest_skip: largest number of repeats.
    """
    epsilon = require.number("epsilon", epsilon, 0.0, 1.0)
    longest = require.integer("longest_skip", longest_skip, least=1)
    if how.initial_value != 0.0 or not how.has_random_ties:
        raise require.refuse("how", "begin at 0 and break ties at random", tuple(how))
    values = np.zeros(task.successors.shape)
    skip_values = np.zeros((*task.successors.shape, longest))
    kept = np.zeros(budget.num_episodes), np.zeros(budget.num_episodes, dtype=np.int64)
    num_episodes, num_steps, num_explored = _skips_loop(
        lane_stream(seed, 0), task, epsilon, how, budget, (values, skip_values), kept
    )
    returns, lengths = kept[0][:num_episodes], kept[1][:num_episodes]
    return ExploredRun(returns, lengths, values, num_steps, num_explored), skip_values


@jit
def _skips_loop(
    stream: LaneStream,
    task: FiniteTask,
    epsilon: float,
    how: QRule,
    budget: Budget,
    learned: tuple[FloatArray, FloatArray],
    kept: tuple[FloatArray, NDArray[np.int64]],
) -> tuple[int, int, int]:
    """Fills the returns and the lengths; returns whole episodes, steps and exploratory steps."""
    values, skip_values = learned
    num_actions, longest = skip_values.shape[1], skip_values.shape[2]
    path, rewards = np.zeros(longest, dtype=np.int64), np.zeros(longest)
    rates = (how.step_size, how.discount)
    num_episodes, step, num_explored = 0, 0, 0
    while num_episodes < budget.num_episodes and step < budget.num_steps:
        state, gained, taken, terminated = task.start, 0.0, 0, False
        action, remaining, plays, explores = 0, 0, 0, False
        while not terminated and taken < task.step_limit and step < budget.num_steps:
            if remaining == 0:
                action, remaining, explores = choose(
                    values, skip_values, state, epsilon, stream, step
                )
                plays = 0
            num_explored += explores
            step += 1
            taken += 1
            remaining -= 1
            path[plays], rewards[plays] = state, task.rewards[state, action]
            after = task.successors[state, action]
            terminated = task.terminal[after]
            aim = target(values, rewards[plays], after, terminated, num_actions, how.discount)
            learn(values, state, action, aim, how.step_size)
            bootstrap = 0.0 if terminated else best_value(values, after, num_actions)
            gained += rewards[plays]
            plays += 1
            learn_skips(
                skip_values, path[:plays], rewards[:plays], action, bootstrap, terminated, rates
            )
            state = after
        if terminated or taken == task.step_limit:
            kept[0][num_episodes] = gained
            kept[1][num_episodes] = taken
            num_episodes += 1
    return num_episodes, step, num_explored
