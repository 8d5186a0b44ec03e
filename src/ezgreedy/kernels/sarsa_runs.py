"""How well does SARSA(λ) do on MountainCar and CartPole? Compiled.

One kernel for all domains, composed of the environments' compiled steps, the policy's compiled
decision and the agent's compiled update. With the same seed it does what a plain loop over the
Gymnasium environment, an `EZGreedy` with one lane and a `SarsaLambda` does, action by action.
A state is four numbers and an observation five; MountainCar uses the first two of each, and a
CartPole that observes its state the first four.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ezgreedy.agents.features import Evaluator, evaluate
from ezgreedy.agents.sarsa_lambda import (
    NextStep,
    SarsaArrays,
    SarsaLambda,
    SarsaRule,
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
from ezgreedy.kernels.policies import Exploration
from ezgreedy.requirements import FloatArray, IntArray

NUM_ACTIONS = 3

State = tuple[float, float, float, float]
Observation = tuple[float, float, float, float, float]


class Domain(IntEnum):
    """The environment, its rewards and its observations; compiled code takes its number."""

    MOUNTAIN_CAR = 0
    CARTPOLE = 1
    MOUNTAIN_CAR_DENSE = 2
    CARTPOLE_STATE = 3

    @property
    def is_car(self) -> bool:
        """Whether it is MountainCar rather than CartPole."""
        return self in (Domain.MOUNTAIN_CAR, Domain.MOUNTAIN_CAR_DENSE)


_DENSE_CAR = int(Domain.MOUNTAIN_CAR_DENSE)
_CARS = (int(Domain.MOUNTAIN_CAR), _DENSE_CAR)
_CARTPOLE_STATE = int(Domain.CARTPOLE_STATE)
_DENSE_REWARD = mountain_car.DENSE_REWARD


@dataclass(frozen=True)
class Episodes:
    """The length of a run.

    Args:
        num_episodes: number of episodes.
        step_limit: number of steps after which an episode is cut off.
        bootstraps_at_limit: whether the value of the state where it is cut off still counts, as
            it should where the state does not show the time; else the cut counts as an end.
    """

    num_episodes: int
    step_limit: int
    bootstraps_at_limit: bool = True


@dataclass(frozen=True, eq=False)
class Learning:
    """The result of a run.

    Args:
        returns: undiscounted return of each finished episode.
        lengths: length of each finished episode, in steps.
        diverged_in: the episode in which the agent diverged, counted from 0; None if it did not.
    """

    returns: FloatArray
    lengths: IntArray
    diverged_in: int | None


class _Policy(NamedTuple):
    """How one lane explores, and the stream of its draws."""

    stream: LaneStream
    exploration: Exploration


class _Option(NamedTuple):
    """The state of exploration in one lane: decisions made, and the running option."""

    step: int
    action: int
    remaining: int


def learn_by_sarsa(
    agent: SarsaLambda, domain: Domain, exploration: Exploration, episodes: Episodes
) -> Learning:
    """Runs an agent, which learns in place.

    First states are drawn as the Gymnasium environment draws them if it is seeded once with the
    agent's seed; exploration is lane 0 of that seed.
    """
    starts = first_states(domain, np.random.default_rng(agent.seed), episodes.num_episodes)
    returns = np.zeros(episodes.num_episodes)
    lengths = np.zeros(episodes.num_episodes, dtype=np.int64)
    num_finished = _run(
        (agent.arrays, agent.rule, agent.evaluator),
        _Policy(lane_stream(agent.seed, 0), exploration),
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
    """The first states of episodes, [episodes, 4], as the environment draws them from `rng`."""
    if domain.is_car:
        states = [(*mountain_car.start(u), 0.0, 0.0) for u in rng.random(num_episodes)]
    else:
        states = [cartpole.start(*row) for row in rng.standard_normal((num_episodes, 4))]
    return np.array(states).reshape(num_episodes, 4)


@jit_borrowing
def advance(domain: int, state: State, action: int) -> tuple[State, float, bool]:
    """One step of an environment: the state, the reward, whether the episode terminated."""
    first, second, third, fourth = state
    if domain in _CARS:
        first, second, reward, terminated = mountain_car.step(first, second, action)
        if domain == _DENSE_CAR:
            reward = _DENSE_REWARD
    else:
        first, second, third, fourth, reward, terminated = cartpole.step(
            first, second, third, fourth, action
        )
    return (first, second, third, fourth), reward, terminated


@jit_borrowing
def observe(domain: int, state: State) -> Observation:
    """The observation of an environment's state; zeros fill it up."""
    first, second, third, fourth = state
    if domain in _CARS:
        return first, second, 0.0, 0.0, 0.0
    if domain == _CARTPOLE_STATE:
        first, second, third, fourth = cartpole.observe_state(first, second, third, fourth)
        return first, second, third, fourth, 0.0
    return cartpole.observe(first, second, third, fourth)


@jit_borrowing
def _run(
    agent: tuple[SarsaArrays, SarsaRule, Evaluator],
    policy: _Policy,
    episodes: tuple[int, int, bool],
    starts: FloatArray,
    records: tuple[FloatArray, IntArray],
) -> int:
    """Runs episodes until the last or until one diverges; returns the number finished."""
    arrays, rule, basis = agent
    domain, step_limit, bootstraps = episodes
    returns, lengths = records
    option = _Option(0, 0, 0)
    now = 0
    for episode in range(len(starts)):
        row = starts[episode]
        state = (row[0], row[1], row[2], row[3])
        if not policy.exploration.carries_over_episodes:
            option = _Option(option.step, 0, 0)
        forget(arrays)
        evaluate(basis, observe(domain, state), arrays.features, now)
        action, value, option = _decide(arrays, rule, policy, option, now)
        for step in range(1, step_limit + 1):
            state, reward, is_end = advance(domain, state, action)
            is_end = is_end or (step == step_limit and not bootstraps)
            next_action, value = 0, 0.0
            if not is_end:
                evaluate(basis, observe(domain, state), arrays.features, 1 - now)
                next_action, value, option = _decide(arrays, rule, policy, option, 1 - now)
            error = learn(arrays, rule, now, action, reward, NextStep(next_action, value, is_end))
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
    arrays: SarsaArrays, rule: SarsaRule, policy: _Policy, option: _Option, now: int
) -> tuple[int, float, _Option]:
    """The action in the state whose features are at `now`, its value, and the option after it."""
    step = option.step
    option_action, remaining, is_exploring = explore(
        policy.stream,
        step,
        policy.exploration.epsilon,
        policy.exploration.durations,
        NUM_ACTIONS,
        option.action,
        option.remaining,
    )
    option = _Option(step + 1, option_action, remaining)
    if is_exploring:
        return option_action, dot(arrays.weights, option_action, arrays.features, now), option
    fill_values(arrays, now)
    tie = tie_of(policy.stream, step) if rule.has_random_ties else 0.0
    action = greedy_action(arrays.values, tie)
    return action, arrays.values[action], option
