"""Runs in which rules end options early or a trigger starts them: Q-learning, and walks at ε = 1.

They are apart from `q_learning_runs` and `pure_exploration` so that runs without rules stay as fast
as they are; without rules the results are the same. DeepSea, the chain, corridors and rooms are all
finite tasks here. A run is lane 0 of its seed's streams, a walk the lane that it is given.
"""

from dataclasses import dataclass

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.agents.q_learning import best_value, greedy_action, learn, target
from ezgreedy.compilation import jit
from ezgreedy.exploration.compiled import LaneStream, explore, lane_stream
from ezgreedy.kernels.policies import Exploration
from ezgreedy.kernels.pure_exploration import Axis, bin_of
from ezgreedy.kernels.q_learning_runs import Budget, FiniteTask, QRule
from ezgreedy.kernels.rules import Rules, Seen, judge, new_memory
from ezgreedy.kernels.sarsa_runs import NUM_ACTIONS, Domain, advance, first_states
from ezgreedy.requirements import FloatArray, IntArray

_MOST_STARTS = 256  # first states drawn for a walk, as in `pure_exploration`
_STEPS, _EXPLORED, _STARTED, _STOPPED = 0, 1, 2, 3  # places of counts


@dataclass(frozen=True, eq=False)
class RuledRun:
    """The result of one run.

    Args:
        returns: return of every whole episode.
        lengths: length of every whole episode.
        values: the table at the end.
        num_steps: steps in all.
        num_explored: exploratory steps.
        num_started: options started.
        num_stopped: options ended by a rule.
    """

    returns: FloatArray
    lengths: IntArray
    values: FloatArray
    num_steps: int
    num_explored: int
    num_started: int
    num_stopped: int

    @property
    def explored_share(self) -> float:
        """Exploratory steps over all steps."""
        return self.num_explored / max(self.num_steps, 1)

    @property
    def mean_option_length(self) -> float:
        """Exploratory steps for each option started; 0 without options."""
        return self.num_explored / max(self.num_started, 1)


def run_finite_with_rules(
    seed: int, task: FiniteTask, policy: Exploration, made: Rules, how: QRule, budget: Budget
) -> RuledRun:
    """Q-learning on one finite environment; a trigger of the rules replaces the policy's ε."""
    values = np.full(task.successors.shape, how.initial_value)
    returns = np.zeros(budget.num_episodes)
    lengths = np.zeros(budget.num_episodes, dtype=np.int64)
    counts = np.zeros(4, dtype=np.int64)
    num_episodes = _finite_loop(
        lane_stream(seed, 0), task, policy, made, how, budget, (values, returns, lengths, counts)
    )
    return RuledRun(
        returns[:num_episodes], lengths[:num_episodes], values, *(int(n) for n in counts)
    )


@jit
def _finite_loop(
    stream: LaneStream,
    task: FiniteTask,
    policy: Exploration,
    made: Rules,
    how: QRule,
    budget: Budget,
    kept: tuple[FloatArray, FloatArray, IntArray, IntArray],
) -> int:
    """Fills values, returns, lengths and counts; returns the number of whole episodes."""
    values, returns, lengths, counts = kept
    num_actions = task.successors.shape[1]
    num_episodes, step, option_action, remaining = 0, 0, 0, 0
    memory = new_memory(made)
    while num_episodes < budget.num_episodes and step < budget.num_steps:
        state, before, reward, gained, taken, terminated = task.start, 0, 0.0, 0.0, 0, False
        while not terminated and taken < task.step_limit and step < budget.num_steps:
            value = best_value(values, state, num_actions)
            seen = Seen(taken == 0, state == before, reward, value)
            epsilon, remaining, stopped = judge(
                made, memory, seen, (stream, step), policy.epsilon, remaining
            )
            starts = remaining == 0
            option_action, remaining, explores = explore(
                stream, step, epsilon, policy.durations, num_actions, option_action, remaining
            )
            action = option_action
            if not explores:
                action = greedy_action(
                    values, state, num_actions, how.has_random_ties, stream, step
                )
            counts[_EXPLORED] += explores
            counts[_STARTED] += starts and explores
            counts[_STOPPED] += stopped
            step += 1
            taken += 1
            before, state = state, task.successors[state, action]
            reward, terminated = task.rewards[before, action], task.terminal[state]
            aim = target(values, reward, state, terminated, num_actions, how.discount)
            learn(values, before, action, aim, how.step_size)
            gained += reward
        if terminated or taken == task.step_limit:
            returns[num_episodes] = gained
            lengths[num_episodes] = taken
            num_episodes += 1
        if not policy.carries_over_episodes:
            remaining = 0
    counts[_STEPS] = step
    return num_episodes


# Pure exploration.


def finite_first_visits_with_rules(
    seed: int, lane: int, task: FiniteTask, policy: Exploration, made: Rules, num_steps: int
) -> IntArray:
    """Step of the first visit to every state at ε = 1, [states]; values are 0 throughout."""
    _require_no_values(made)
    first = np.full(len(task.terminal), num_steps)
    _finite_walk(lane_stream(seed, lane), task, policy, made, num_steps, first)
    return first


@jit
def _finite_walk(
    stream: LaneStream,
    task: FiniteTask,
    policy: Exploration,
    made: Rules,
    num_steps: int,
    first: IntArray,
) -> None:
    num_actions, unseen = task.successors.shape[1], int(np.sum(task.reachable))
    state, before, reward, is_start, option_action, remaining = task.start, 0, 0.0, True, 0, 0
    memory = new_memory(made)
    for step in range(num_steps):
        if first[state] == num_steps:
            first[state] = step
            unseen -= 1
            if unseen == 0:
                return
        seen = Seen(is_start, state == before, reward, 0.0)
        _, remaining, _ = judge(made, memory, seen, (stream, step), 1.0, remaining)
        option_action, remaining, _ = explore(
            stream, step, 1.0, policy.durations, num_actions, option_action, remaining
        )
        before, state = state, task.successors[state, option_action]
        reward, is_start = task.rewards[before, option_action], task.terminal[state]
        if is_start:
            if first[state] == num_steps:
                first[state] = step + 1
                unseen -= 1
            state = task.start
            if not policy.carries_over_episodes:
                remaining = 0


def binned_first_visits_with_rules(
    domain: Domain,
    policy: Exploration,
    made: Rules,
    axes: tuple[Axis, Axis],
    num_steps: int,
    lane: int,
    seed: int,
) -> IntArray:
    """Steps before each bin is first seen at ε = 1, [vertical, horizontal].

    See `binned_first_visits`; an observation is unchanged if the whole state is.
    """
    _require_no_values(made)
    horizontal, vertical = axes
    times = np.full((vertical.num_bins, horizontal.num_bins), num_steps, dtype=np.int64)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2, lane)))
    walk = lane_stream(seed, lane), first_states(domain, rng, _MOST_STARTS), num_steps
    _binned_walk(int(domain), policy, made, axes, walk, times)
    return times


@jit
def _binned_walk(
    domain: int,
    policy: Exploration,
    made: Rules,
    axes: tuple[Axis, Axis],
    walk: tuple[LaneStream, FloatArray, int],
    times: IntArray,
) -> None:
    stream, starts, num_steps = walk
    horizontal, vertical = axes
    row = starts[0]
    state = (row[0], row[1], row[2], row[3])
    before, reward, is_start = state, 0.0, True
    option_action, remaining, num_episodes = 0, 0, 1
    memory = new_memory(made)
    times[bin_of(vertical, state), bin_of(horizontal, state)] = 0
    for step in range(num_steps):
        seen = Seen(is_start, state == before, reward, 0.0)
        _, remaining, _ = judge(made, memory, seen, (stream, step), 1.0, remaining)
        option_action, remaining, _ = explore(
            stream, step, 1.0, policy.durations, NUM_ACTIONS, option_action, remaining
        )
        before = state
        state, reward, is_start = advance(domain, state, option_action)
        place = bin_of(vertical, state), bin_of(horizontal, state)
        times[place] = min(times[place], step + 1)
        if is_start:
            row = starts[num_episodes % len(starts)]
            state = (row[0], row[1], row[2], row[3])
            num_episodes += 1
            remaining = remaining if policy.carries_over_episodes else 0
            place = bin_of(vertical, state), bin_of(horizontal, state)
            times[place] = min(times[place], step + 1)


def _require_no_values(made: Rules) -> None:
    """Without learning there are no values whose promises could be broken."""
    if made.stop_rate or made.trigger_rate:
        rule = "be StopOnUnchanged or StopOnReward where nothing is learned"
        raise require.refuse("rules", rule, "StopOnDiscrepancy or a trigger")
