"""Q-learning on a finite environment, explored with any options that fit into tables.

`q_learning_runs` has the loop for action repeats; this one plays rows of `OptionTables` instead,
such as eigenoptions or weighted actions. A run is lane 0 of its seed's streams and equals the plain
loop with a `TemporallyExtended`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.agents.q_learning import learn, target, weighted_greedy_action
from ezgreedy.compilation import jit, place
from ezgreedy.exploration.compiled import LaneStream, lane_stream
from ezgreedy.exploration.option_tables import OptionTables, explore_options
from ezgreedy.kernels.q_learning_runs import Budget, FiniteTask, QRule
from ezgreedy.requirements import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ExploredRun:
    """The result of one run.

    Args:
        returns: undiscounted return of every whole episode.
        lengths: steps of every whole episode.
        values: the table at the end.
        num_steps: steps of the run.
        num_explored: steps on which exploration chose the action.
    """

    returns: FloatArray
    lengths: IntArray
    values: FloatArray
    num_steps: int
    num_explored: int

    @property
    def explored_share(self) -> float:
        """The share of exploratory steps."""
        return self.num_explored / max(self.num_steps, 1)


def run_options(
    seed: int,
    task: FiniteTask,
    tables: OptionTables,
    epsilon: float,
    how: QRule,
    budget: Budget,
    tie_weights: FloatArray | None = None,
) -> ExploredRun:
    """Q-learning with temporally-extended ε-greedy over an option set; options end with episodes.

    Args:
        seed: random seed of the run.
        task: the environment.
        tables: the options.
        epsilon: probability of starting an option.
        how: how to learn; ties must be random.
        budget: episodes and steps.
        tie_weights: as for `QLearning`.
    """
    if not how.has_random_ties:
        raise require.refuse("how", "break ties at random", tuple(how))
    epsilon = require.number("epsilon", epsilon, 0.0, 1.0)
    if tables.actions.shape[1] != len(task.successors):
        raise require.refuse("tables", f"have {len(task.successors)} states", tables.actions.shape)
    values = np.full(task.successors.shape, how.initial_value)
    kept = np.zeros(budget.num_episodes), np.zeros(budget.num_episodes, dtype=np.int64)
    weights = np.ones(task.successors.shape[1]) if tie_weights is None else tie_weights
    num_episodes, num_steps, num_explored = _options_loop(
        lane_stream(seed, 0), task, tables, epsilon, how, budget, (values, weights), kept
    )
    returns, lengths = kept[0][:num_episodes], kept[1][:num_episodes]
    return ExploredRun(returns, lengths, values, num_steps, num_explored)


@jit
def _options_loop(
    stream: LaneStream,
    task: FiniteTask,
    tables: OptionTables,
    epsilon: float,
    how: QRule,
    budget: Budget,
    learned: tuple[FloatArray, FloatArray],
    kept: tuple[FloatArray, NDArray[np.int64]],
) -> tuple[int, int, int]:
    """Fills the returns and the lengths; returns whole episodes, steps and exploratory steps."""
    values, weights = learned
    num_actions = task.successors.shape[1]
    num_episodes, step, num_explored, option, remaining = 0, 0, 0, 0, 0
    while num_episodes < budget.num_episodes and step < budget.num_steps:
        state, gained, taken, terminated = place(task.start), 0.0, 0, False
        remaining = 0
        while not terminated and taken < task.step_limit and step < budget.num_steps:
            option, remaining, explores = explore_options(
                stream, step, epsilon, tables, state, option, remaining
            )
            action = place(
                tables.actions[option, state]
                if explores
                else weighted_greedy_action(values, state, weights, stream, step)
            )
            num_explored += explores
            step += 1
            taken += 1
            after, reward = place(task.successors[state, action]), task.rewards[state, action]
            terminated = task.terminal[after]
            aim = target(values, reward, after, terminated, num_actions, how.discount)
            learn(values, state, action, aim, how.step_size)
            gained += reward
            state = after
        if terminated or taken == task.step_limit:
            kept[0][num_episodes] = gained
            kept[1][num_episodes] = taken
            num_episodes += 1
    return num_episodes, step, num_explored
