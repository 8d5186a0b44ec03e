"""Q-learning on the chain, DeepSea and any finite environment: one compiled loop for each.

A run is lane 0 of its seed's streams. Loops differ only in the environment they step and in the
records they keep of an episode. Budgets are in episodes and in steps, and the first to run out ends
the run, so that runs can be compared after every single step. Each loop spells out the same few
calls: behind one more function they would not be inlined, and a run would take twice as long.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.agents.q_learning import Ties, greedy_action, learn, target
from ezgreedy.compilation import jit, place
from ezgreedy.envs import chain, deep_sea
from ezgreedy.envs.finite import FiniteEnv, finite_model
from ezgreedy.exploration.compiled import LaneStream, explore, lane_stream
from ezgreedy.kernels.policies import Exploration
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

NO_LIMIT = 2**62

_CHAIN_ACTIONS = chain.NUM_ACTIONS
_SEA_ACTIONS = deep_sea.NUM_ACTIONS
_SURFACE_ROW, _SURFACE_COLUMN = deep_sea.FIRST_ROW, deep_sea.FIRST_COLUMN
_CHAIN_START = chain.FIRST_STATE


class QRule(NamedTuple):
    """How a run learns: see `QLearning`."""

    step_size: float
    discount: float = 1.0
    initial_value: float = 0.0
    has_random_ties: bool = True


class Budget(NamedTuple):
    """When a run ends: after a number of episodes or steps, or once it has learned."""

    num_episodes: int
    num_steps: int = NO_LIMIT
    stops_when_learned: bool = False


class Sea(NamedTuple):
    """A DeepSea: see `deep_sea.step`."""

    mapping: deep_sea.ActionMapping
    right_cost: float
    other_cost: float
    left_shift: int


class FiniteTask(NamedTuple):
    """A finite environment as tables, and the longest episode allowed: see `finite_task`."""

    successors: IntArray  # [states, actions]
    rewards: FloatArray  # [states, actions]
    terminal: BoolArray  # [states]
    reachable: BoolArray  # [states]
    start: int
    step_limit: int


def rule(
    step_size: float, discount: float = 1.0, initial_value: float = 0.0, ties: Ties = "random"
) -> QRule:
    """Q-learning's settings, checked."""
    return QRule(
        require.number("step_size", step_size, 0.0, 1.0),
        require.number("discount", discount, 0.0, 1.0),
        require.number("initial_value", initial_value, -np.inf),
        require.one_of("ties", ties, ("random", "first")) == "random",
    )


# Chain.


@dataclass(frozen=True, eq=False)
class ChainRun:
    """The result of one run on the chain.

    Args:
        returns: discounted return of every whole episode.
        rewards: undiscounted return of every whole episode.
        values: the table at the end.
    """

    returns: FloatArray
    rewards: FloatArray
    values: FloatArray

    @property
    def mean_return(self) -> float:
        """The mean discounted return; 0 if no episode was finished."""
        return float(self.returns.mean()) if len(self.returns) else 0.0


def run_chain(
    seed: int, env: chain.Chain, policy: Exploration, how: QRule, budget: Budget
) -> ChainRun:
    """Q-learning on a chain."""
    values = np.full((env.length + 1, _CHAIN_ACTIONS), how.initial_value)
    most_episodes = min(budget.num_episodes, budget.num_steps)
    kept = np.zeros(most_episodes), np.zeros(most_episodes)
    num_episodes = _chain_loop(
        lane_stream(seed, 0), (env.length, env.down), policy, how, budget, values, kept
    )
    return ChainRun(kept[0][:num_episodes], kept[1][:num_episodes], values)


@jit
def _chain_loop(
    stream: LaneStream,
    shape: tuple[int, int],
    policy: Exploration,
    how: QRule,
    budget: Budget,
    values: FloatArray,
    kept: tuple[FloatArray, FloatArray],
) -> int:
    """Fills the discounted and undiscounted returns; returns the number of whole episodes."""
    length, down = shape
    num_episodes, step = 0, 0
    epsilon, table = policy.epsilon, policy.durations
    option_action, remaining = 0, 0
    while num_episodes < budget.num_episodes and step < budget.num_steps:
        state, weight, gained, paid, terminated = _CHAIN_START, 1.0, 0.0, 0.0, False
        while not terminated and step < budget.num_steps:
            option_action, remaining, is_exploring = explore(
                stream, step, epsilon, table, _CHAIN_ACTIONS, option_action, remaining
            )
            action = (
                option_action
                if is_exploring
                else greedy_action(values, state, _CHAIN_ACTIONS, how.has_random_ties, stream, step)
            )
            step += 1
            after, reward, terminated = chain.step(state, action, length, down)
            aim = target(values, reward, after, terminated, _CHAIN_ACTIONS, how.discount)
            learn(values, state, action, aim, how.step_size)
            gained += weight * reward
            paid += reward
            weight *= how.discount
            state = after
        if terminated:
            kept[0][num_episodes] = gained
            kept[1][num_episodes] = paid
            num_episodes += 1
        if not policy.carries_over_episodes:
            remaining = 0
    return num_episodes


# DeepSea.


@dataclass(frozen=True, eq=False)
class DeepSeaRun:
    """The result of one run on DeepSea.

    Args:
        returns: return of every whole episode.
        first_success: the number, from 1, of the first episode that found the treasure; or None.
        learned: episodes until the greedy policy first led to it with certainty; or None.
        values: the table at the end.
    """

    returns: FloatArray
    first_success: int | None
    learned: int | None
    values: FloatArray


def run_deep_sea(
    seed: int, sea: Sea, policy: Exploration, how: QRule, budget: Budget
) -> DeepSeaRun:
    """Q-learning on one DeepSea."""
    size = len(sea.mapping)
    values = np.full(((size + 1) * size, _SEA_ACTIONS), how.initial_value)
    returns = np.zeros(budget.num_episodes)
    num_episodes, success, learned = _deep_sea_loop(
        lane_stream(seed, 0), sea, policy, how, budget, values, returns
    )
    return DeepSeaRun(returns[:num_episodes], success or None, learned or None, values)


def sea_of(env: deep_sea.DeepSea) -> Sea:
    """A DeepSea as compiled code takes it."""
    return Sea(env.mapping, env.right_cost, env.other_cost, env.left_shift)


@jit
def _deep_sea_loop(
    stream: LaneStream,
    sea: Sea,
    policy: Exploration,
    how: QRule,
    budget: Budget,
    values: FloatArray,
    returns: FloatArray,
) -> tuple[int, int, int]:
    """Fills `returns`; returns whole episodes, first success and learning, 0 if there was none."""
    size = sea.mapping.shape[0]
    num_episodes, success, learned, step = 0, 0, 0, 0
    epsilon, table = policy.epsilon, policy.durations
    option_action, remaining = 0, 0
    while num_episodes < budget.num_episodes and step < budget.num_steps:
        row, column, gained, terminated = _SURFACE_ROW, _SURFACE_COLUMN, 0.0, False
        while not terminated and step < budget.num_steps:
            state = place(row * size + column)
            option_action, remaining, is_exploring = explore(
                stream, step, epsilon, table, _SEA_ACTIONS, option_action, remaining
            )
            action = (
                option_action
                if is_exploring
                else greedy_action(values, state, _SEA_ACTIONS, how.has_random_ties, stream, step)
            )
            step += 1
            row, column, reward, terminated = deep_sea.step(
                row, column, action, sea.mapping, sea.right_cost, sea.other_cost, sea.left_shift
            )
            after = place(row * size + column)
            aim = target(values, reward, after, terminated, _SEA_ACTIONS, how.discount)
            learn(values, state, place(action), aim, how.step_size)
            gained += reward
            if reward > 0.0 and success == 0:
                success = num_episodes + 1
        if terminated:
            returns[num_episodes] = gained
            num_episodes += 1
        if not policy.carries_over_episodes:
            remaining = 0
        if learned == 0 and terminated and leads_to_treasure(values, sea.mapping, how):
            learned = num_episodes
            if budget.stops_when_learned:
                break
    return num_episodes, success, learned


@jit
def leads_to_treasure(values: FloatArray, mapping: deep_sea.ActionMapping, how: QRule) -> bool:
    """Whether the greedy policy goes right all along the diagonal, however ties are broken.

    Called after every episode, and cheap: values spread back from the treasure, so until all is
    learned one of the first few states usually says no.
    """
    size = mapping.shape[0]
    for depth in range(size):
        state, right = depth * size + depth, mapping[depth, depth]
        right_value, other_value = values[state, right], values[state, 1 - right]
        wins_ties = right == 0 and not how.has_random_ties
        if right_value < other_value or (right_value == other_value and not wins_ties):
            return False
    return True


# Any other finite environment, such as GridWorld.


def finite_task(env: FiniteEnv, step_limit: int = NO_LIMIT) -> FiniteTask:
    """A finite environment as compiled code takes it."""
    model = finite_model(env)
    return FiniteTask(
        model.successors,
        model.rewards,
        model.terminal,
        model.reachable,
        env.first_state,
        require.integer("step_limit", step_limit, least=1, most=NO_LIMIT),
    )


@dataclass(frozen=True, eq=False)
class FiniteRun:
    """The result of one run: returns and lengths of whole episodes, and the table."""

    returns: FloatArray
    lengths: IntArray
    values: FloatArray


def run_finite(
    seed: int, task: FiniteTask, policy: Exploration, how: QRule, budget: Budget
) -> FiniteRun:
    """Q-learning on one finite environment."""
    values = np.full(task.successors.shape, how.initial_value)
    returns = np.zeros(budget.num_episodes)
    lengths = np.zeros(budget.num_episodes, dtype=np.int64)
    num_episodes = _finite_loop(
        lane_stream(seed, 0), task, policy, how, budget, values, (returns, lengths)
    )
    return FiniteRun(returns[:num_episodes], lengths[:num_episodes], values)


@jit
def _finite_loop(
    stream: LaneStream,
    task: FiniteTask,
    policy: Exploration,
    how: QRule,
    budget: Budget,
    values: FloatArray,
    kept: tuple[FloatArray, NDArray[np.int64]],
) -> int:
    """Fills the returns and the lengths; returns the number of whole episodes."""
    num_actions = task.successors.shape[1]
    num_episodes, step = 0, 0
    epsilon, table = policy.epsilon, policy.durations
    option_action, remaining = 0, 0
    while num_episodes < budget.num_episodes and step < budget.num_steps:
        state, gained, taken, terminated = place(task.start), 0.0, 0, False
        while not terminated and taken < task.step_limit and step < budget.num_steps:
            option_action, remaining, is_exploring = explore(
                stream, step, epsilon, table, num_actions, option_action, remaining
            )
            action = place(
                option_action
                if is_exploring
                else greedy_action(values, state, num_actions, how.has_random_ties, stream, step)
            )
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
        if not policy.carries_over_episodes:
            remaining = 0
    return num_episodes
