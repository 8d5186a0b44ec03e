"""When is each state first visited if nothing is learned and ε = 1?

The first-visit maps of Figure 3: of cells in the two tabular environments, of bins in the two with
continuous states. With ε = 1 the greedy policy is never called, so a walk needs no values; where
states are finite, it ends early once every state has been seen. `analysis.environment_walks`
defines what counts as a first visit, and tests bind these loops to it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.compilation import jit, jit_borrowing
from ezgreedy.envs import deep_sea
from ezgreedy.exploration.compiled import LaneStream, explore, lane_stream
from ezgreedy.kernels.policies import Exploration
from ezgreedy.kernels.q_learning_runs import FiniteTask, Sea
from ezgreedy.kernels.sarsa_runs import NUM_ACTIONS, Domain, State, advance, first_states
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

_SEA_ACTIONS = deep_sea.NUM_ACTIONS
_SURFACE_ROW, _SURFACE_COLUMN = deep_sea.FIRST_ROW, deep_sea.FIRST_COLUMN

# First states drawn for a walk; a walk with more episodes than this starts over with the first.
_MOST_STARTS = 256


# DeepSea.


def deep_sea_first_visits(
    seed: int, lane: int, sea: Sea, policy: Exploration, num_steps: int
) -> IntArray:
    """Step of the first visit to every cell, [size, size]; −1 above the diagonal.

    Paper: a cell that is never seen counts the whole walk.
    """
    size = len(sea.mapping)
    first = np.full((size, size), num_steps)
    _deep_sea_walk(lane_stream(seed, lane), sea, policy, num_steps, first)
    first[np.triu_indices(size, 1)] = -1
    return first


@jit
def _deep_sea_walk(
    stream: LaneStream, sea: Sea, policy: Exploration, num_steps: int, first: IntArray
) -> None:
    size = sea.mapping.shape[0]
    unseen = size * (size + 1) // 2
    row, column, option_action, remaining = _SURFACE_ROW, _SURFACE_COLUMN, 0, 0
    for step in range(num_steps):
        if first[row, column] == num_steps:
            first[row, column] = step
            unseen -= 1
            if unseen == 0:
                return
        option_action, remaining, _ = explore(
            stream, step, 1.0, policy.durations, _SEA_ACTIONS, option_action, remaining
        )
        row, column, _, terminated = deep_sea.step(
            row, column, option_action, sea.mapping, 0.0, 0.0, sea.left_shift
        )
        if terminated:
            row, column = _SURFACE_ROW, _SURFACE_COLUMN
            if not policy.carries_over_episodes:
                remaining = 0


# Any other finite environment, such as GridWorld.


def finite_first_visits(
    seed: int, lane: int, task: FiniteTask, policy: Exploration, num_steps: int
) -> IntArray:
    """Step of the first visit to every state, [states].

    Only a terminal state ends an episode, and the next begins at the start.
    """
    first = np.full(len(task.terminal), num_steps)
    _finite_walk(lane_stream(seed, lane), task, policy, num_steps, first)
    return first


@jit
def _finite_walk(
    stream: LaneStream, task: FiniteTask, policy: Exploration, num_steps: int, first: IntArray
) -> None:
    num_actions, unseen = task.successors.shape[1], int(np.sum(task.reachable))
    state, option_action, remaining = task.start, 0, 0
    for step in range(num_steps):
        if first[state] == num_steps:
            first[state] = step
            unseen -= 1
            if unseen == 0:
                return
        option_action, remaining, _ = explore(
            stream, step, 1.0, policy.durations, num_actions, option_action, remaining
        )
        state = task.successors[state, option_action]
        if task.terminal[state]:
            if first[state] == num_steps:
                first[state] = step + 1
                unseen -= 1
            state = task.start
            if not policy.carries_over_episodes:
                remaining = 0


# MountainCar and CartPole.


class Axis(NamedTuple):
    """One direction of a first-visit map: a coordinate of the state, binned.

    Args:
        coordinate: index of the coordinate in the state.
        low: lower end of the first bin; values below are counted in it.
        high: upper end of the last bin; values above are counted in it.
        num_bins: number of bins.
        is_angle: whether the coordinate is an angle, and wraps round.
    """

    coordinate: int
    low: float
    high: float
    num_bins: int
    is_angle: bool = False


@dataclass(frozen=True, eq=False)
class BinnedVisits:
    """First-visit times of a number of trials.

    Args:
        times: steps before each bin was first visited, [trials, vertical, horizontal]; the number
            of steps where it never was.
        rewarded: whether each trial ever saw a reward, [trials].
    """

    times: IntArray
    rewarded: BoolArray


def binned_first_visits(
    domain: Domain,
    policy: Exploration,
    axes: tuple[Axis, Axis],
    num_steps: int,
    lanes: Sequence[int],
    seed: int,
) -> BinnedVisits:
    """Explores without greedy steps and records when each bin of two coordinates is first seen.

    Args:
        domain: the environment; an episode that ends is followed by another.
        policy: how to explore; its ε must be 1.
        axes: the horizontal and the vertical coordinate.
        num_steps: steps of a trial, over all its episodes.
        lanes: lane of each trial: its stream, and its number among the first states.
        seed: random seed of the streams and the first states.
    """
    if policy.epsilon != 1.0:
        raise require.refuse("epsilon", "be 1 where no greedy policy is given", policy.epsilon)
    horizontal, vertical = axes
    shape = len(lanes), vertical.num_bins, horizontal.num_bins
    times = np.full(shape, num_steps, dtype=np.int64)
    rewarded = np.zeros(len(lanes), dtype=np.bool_)
    for trial, lane in enumerate(lanes):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2, lane)))
        walk = lane_stream(seed, lane), first_states(domain, rng, _MOST_STARTS), num_steps
        rewarded[trial] = _binned_walk(int(domain), policy, axes, walk, times[trial])
    return BinnedVisits(times, rewarded)


@jit_borrowing
def _binned_walk(
    domain: int,
    policy: Exploration,
    axes: tuple[Axis, Axis],
    walk: tuple[LaneStream, FloatArray, int],
    times: IntArray,
) -> bool:
    """One trial; lowers `times` to its first visits and returns whether it saw a reward."""
    stream, starts, num_steps = walk
    horizontal, vertical = axes
    row = starts[0]
    state = (row[0], row[1], row[2], row[3])
    option_action, remaining, num_episodes, is_rewarded = 0, 0, 1, False
    times[bin_of(vertical, state), bin_of(horizontal, state)] = 0
    for step in range(num_steps):
        option_action, remaining, _ = explore(
            stream, step, 1.0, policy.durations, NUM_ACTIONS, option_action, remaining
        )
        state, reward, is_end = advance(domain, state, option_action)
        is_rewarded = is_rewarded or reward > 0.0
        place = bin_of(vertical, state), bin_of(horizontal, state)
        times[place] = min(times[place], step + 1)
        if is_end:
            row = starts[num_episodes % len(starts)]
            state = (row[0], row[1], row[2], row[3])
            num_episodes += 1
            remaining = remaining if policy.carries_over_episodes else 0
            place = bin_of(vertical, state), bin_of(horizontal, state)
            times[place] = min(times[place], step + 1)
    return is_rewarded


@jit_borrowing
def bin_of(axis: Axis, state: State) -> int:
    """The number of the bin that a state lies in."""
    value = state[axis.coordinate]
    if axis.is_angle:
        value = (value + math.pi) % (2.0 * math.pi) - math.pi
    share = (value - axis.low) / (axis.high - axis.low)
    return min(max(math.floor(share * axis.num_bins), 0), axis.num_bins - 1)
