"""How well does SARSA(λ) do on MountainCar and CartPole, and what does chance see of them? Fast.

One kernel for both domains, composed of the environments' compiled steps, the policy's compiled
decision and the agent's compiled update. With the same seed it does what a plain loop over the
Gymnasium environment, an `EZGreedy` with one lane and a `SarsaLambda` does, action by action.
A state is four numbers and an observation five; MountainCar uses the first two of each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.agents.features import Evaluator, evaluate
from ezgreedy.agents.linear import (
    Memory,
    NextStep,
    Rule,
    SarsaLambda,
    dot,
    fill_values,
    forget,
    greedy_action,
    is_sound,
    learn,
    tie_of,
)
from ezgreedy.compilation import jit_borrowing
from ezgreedy.envs import cartpole, mountain_car
from ezgreedy.exploration.compiled import LaneStream, explore, lane_stream
from ezgreedy.exploration.durations import DurationLaw, InverseTable
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

NUM_ACTIONS = 3

State = tuple[float, float, float, float]
Observation = tuple[float, float, float, float, float]


class Domain(IntEnum):
    """Which environment; its number is what compiled code takes."""

    MOUNTAIN_CAR = 0
    CARTPOLE = 1


_MOUNTAIN_CAR = int(Domain.MOUNTAIN_CAR)

# First states drawn for a walk; one that ends more episodes than this begins with the first again.
_MOST_STARTS = 256


@dataclass(frozen=True)
class Exploration:
    """How a run explores.

    Args:
        epsilon: probability of starting an option.
        durations: the law of its length.
        carries_over_episodes: whether options survive episode ends.
    """

    epsilon: float
    durations: DurationLaw
    carries_over_episodes: bool = False


@dataclass(frozen=True)
class Episodes:
    """How long a run is.

    Args:
        num_episodes: how many episodes.
        step_limit: after how many steps an episode is cut off.
        bootstraps_at_limit: whether the value of the state where it is cut off still counts, as
            it should where the state does not tell the time; else the cut is taken for an end.
    """

    num_episodes: int
    step_limit: int
    bootstraps_at_limit: bool = True


@dataclass(frozen=True, eq=False)
class Learning:
    """What became of a run.

    Args:
        returns: undiscounted, one for each episode that was finished.
        lengths: in steps.
        diverged_in: the episode in which the agent diverged, counted from 0; None if it did not.
    """

    returns: FloatArray
    lengths: IntArray
    diverged_in: int | None


class _Policy(NamedTuple):
    stream: LaneStream
    epsilon: float
    table: InverseTable
    carries_over: bool


class _Option(NamedTuple):
    """The state of exploration in one lane: decisions made, and the running option."""

    step: int
    action: int
    remaining: int


def learn_by_sarsa(
    agent: SarsaLambda, domain: Domain, exploration: Exploration, episodes: Episodes
) -> Learning:
    """Runs an agent, which afterwards holds what it has learned.

    First states are drawn as the Gymnasium environment draws them if it is seeded once with the
    agent's seed; exploration is lane 0 of that seed.
    """
    starts = first_states(domain, np.random.default_rng(agent.seed), episodes.num_episodes)
    returns = np.zeros(episodes.num_episodes)
    lengths = np.zeros(episodes.num_episodes, dtype=np.int64)
    num_finished = _run(
        (agent.memory, agent.rule, agent.evaluator),
        _policy(exploration, agent.seed, lane=0),
        (int(domain), int(episodes.step_limit), bool(episodes.bootstraps_at_limit)),
        starts,
        (returns, lengths),
    )
    agent.has_diverged = num_finished < episodes.num_episodes
    return Learning(
        returns[:num_finished],
        lengths[:num_finished],
        num_finished if agent.has_diverged else None,
    )


def first_states(domain: Domain, rng: np.random.Generator, num_episodes: int) -> FloatArray:
    """The first states of episodes, [episodes, 4], as the environment with this generator has."""
    if domain == Domain.MOUNTAIN_CAR:
        states = [(*mountain_car.start(u), 0.0, 0.0) for u in rng.random(num_episodes)]
    else:
        states = [cartpole.start(*row) for row in rng.standard_normal((num_episodes, 4))]
    return np.array(states).reshape(num_episodes, 4)


@jit_borrowing
def advance(domain: int, state: State, action: int) -> tuple[State, float, bool]:
    """One step of either environment: the state, the reward, whether the episode terminated."""
    first, second, third, fourth = state
    if domain == _MOUNTAIN_CAR:
        first, second, reward, terminated = mountain_car.step(first, second, action)
    else:
        first, second, third, fourth, reward, terminated = cartpole.step(
            first, second, third, fourth, action
        )
    return (first, second, third, fourth), reward, terminated


@jit_borrowing
def observe(domain: int, state: State) -> Observation:
    """What is seen of a state of either environment."""
    first, second, third, fourth = state
    if domain == _MOUNTAIN_CAR:
        return first, second, 0.0, 0.0, 0.0
    return cartpole.observe(first, second, third, fourth)


@jit_borrowing
def _run(
    agent: tuple[Memory, Rule, Evaluator],
    policy: _Policy,
    episodes: tuple[int, int, bool],
    starts: FloatArray,
    records: tuple[FloatArray, IntArray],
) -> int:
    """Runs episodes until the last or until one diverges; returns how many were finished."""
    memory, rule, basis = agent
    domain, step_limit, bootstraps = episodes
    returns, lengths = records
    option = _Option(0, 0, 0)
    now = 0
    for episode in range(len(starts)):
        row = starts[episode]
        state = (row[0], row[1], row[2], row[3])
        if not policy.carries_over:
            option = _Option(option.step, 0, 0)
        forget(memory)
        evaluate(basis, observe(domain, state), memory.features, now)
        action, value, option = _decide(memory, rule, policy, option, now)
        for step in range(1, step_limit + 1):
            state, reward, is_end = advance(domain, state, action)
            is_end = is_end or (step == step_limit and not bootstraps)
            next_action, value = 0, 0.0
            if not is_end:
                evaluate(basis, observe(domain, state), memory.features, 1 - now)
                next_action, value, option = _decide(memory, rule, policy, option, 1 - now)
            error = learn(memory, rule, now, action, reward, NextStep(next_action, value, is_end))
            if not is_sound(error):
                return episode
            returns[episode] += reward
            lengths[episode] = step
            now, action = 1 - now, next_action
            if is_end:
                break
    return len(starts)


@jit_borrowing
def _decide(
    memory: Memory, rule: Rule, policy: _Policy, option: _Option, now: int
) -> tuple[int, float, _Option]:
    """The action in the state whose features are at `now`, its value, and the option after it."""
    step = option.step
    option_action, remaining, is_exploring = explore(
        policy.stream,
        step,
        policy.epsilon,
        policy.table,
        NUM_ACTIONS,
        option.action,
        option.remaining,
    )
    option = _Option(step + 1, option_action, remaining)
    if is_exploring:
        return option_action, dot(memory.weights, option_action, memory.features, now), option
    fill_values(memory, now)
    tie = tie_of(policy.stream, step) if rule.has_random_ties else 0.0
    action = greedy_action(memory.values, tie)
    return action, memory.values[action], option


class Axis(NamedTuple):
    """One direction of a first-visit map: a coordinate of the state, binned.

    Args:
        coordinate: its place in the state.
        low: where the first bin begins; values below are counted in it.
        high: where the last bin ends; values above are counted in it.
        num_bins: how many bins.
        is_angle: whether the coordinate is an angle, and wraps round.
    """

    coordinate: int
    low: float
    high: float
    num_bins: int
    is_angle: bool = False


@dataclass(frozen=True, eq=False)
class FirstVisits:
    """First-visit times of a number of trials.

    Args:
        times: steps before each bin was first visited, [trials, vertical, horizontal]; the number
            of steps where it never was.
        rewarded: whether each trial ever saw a reward, [trials].
    """

    times: IntArray
    rewarded: BoolArray


def first_visits(
    domain: Domain,
    exploration: Exploration,
    axes: tuple[Axis, Axis],
    num_steps: int,
    lanes: Sequence[int],
    seed: int,
) -> FirstVisits:
    """Explores without ever being greedy and notes when each bin of two coordinates is first seen.

    Args:
        domain: where; an episode that ends is followed by another.
        exploration: how; its ε must be 1.
        axes: the horizontal and the vertical coordinate.
        num_steps: of a trial, over all its episodes.
        lanes: one for each trial: its stream, and its number among the first states.
        seed: of the streams and the first states.
    """
    if exploration.epsilon != 1.0:
        raise require.refuse("epsilon", "be 1 where no greedy policy is given", exploration.epsilon)
    horizontal, vertical = axes
    shape = len(lanes), vertical.num_bins, horizontal.num_bins
    times = np.full(shape, num_steps, dtype=np.int64)
    rewarded = np.zeros(len(lanes), dtype=np.bool_)
    for trial, lane in enumerate(lanes):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2, lane)))
        starts = first_states(domain, rng, _MOST_STARTS)
        policy = _policy(exploration, seed, lane)
        rewarded[trial] = _walk(int(domain), policy, axes, (starts, num_steps), times[trial])
    return FirstVisits(times, rewarded)


def _policy(exploration: Exploration, seed: int, lane: int) -> _Policy:
    return _Policy(
        lane_stream(seed, lane),
        require.number("epsilon", exploration.epsilon, 0.0, 1.0),
        exploration.durations.inverse,
        bool(exploration.carries_over_episodes),
    )


@jit_borrowing
def _walk(
    domain: int,
    policy: _Policy,
    axes: tuple[Axis, Axis],
    walk: tuple[FloatArray, int],
    times: IntArray,
) -> bool:
    """One trial; lowers `times` to its first visits and returns whether it saw a reward."""
    starts, num_steps = walk
    horizontal, vertical = axes
    row = starts[0]
    state = (row[0], row[1], row[2], row[3])
    option_action, remaining, num_episodes, is_rewarded = 0, 0, 1, False
    times[_bin_of(vertical, state), _bin_of(horizontal, state)] = 0
    for step in range(num_steps):
        option_action, remaining, _ = explore(
            policy.stream, step, 1.0, policy.table, NUM_ACTIONS, option_action, remaining
        )
        state, reward, is_end = advance(domain, state, option_action)
        is_rewarded = is_rewarded or reward > 0.0
        place = _bin_of(vertical, state), _bin_of(horizontal, state)
        times[place] = min(times[place], step + 1)
        if is_end:
            row = starts[num_episodes % len(starts)]
            state = (row[0], row[1], row[2], row[3])
            num_episodes += 1
            remaining = remaining if policy.carries_over else 0
            place = _bin_of(vertical, state), _bin_of(horizontal, state)
            times[place] = min(times[place], step + 1)
    return is_rewarded


@jit_borrowing
def _bin_of(axis: Axis, state: State) -> int:
    value = state[axis.coordinate]
    if axis.is_angle:
        value = (value + math.pi) % (2.0 * math.pi) - math.pi
    share = (value - axis.low) / (axis.high - axis.low)
    return min(max(math.floor(share * axis.num_bins), 0), axis.num_bins - 1)
