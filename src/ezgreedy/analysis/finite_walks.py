"""Exploration of a finite MDP, simulated by compiled code.

One run is one lane: its decisions are those of an `EZGreedy` with the same seed and lane, step by
step. The MDP's own draws (first states, successors) come from a second stream of the same lane, so
that two policies have the same luck as long as they act alike.
"""

from typing import NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.analysis.process import ExplorationProcess
from ezgreedy.analysis.visits import FirstVisitTimes
from ezgreedy.compilation import jit
from ezgreedy.exploration.compiled import (
    LaneStream,
    coin,
    explore,
    step_word,
    uniform,
)
from ezgreedy.exploration.durations import InverseTable
from ezgreedy.exploration.streams import Purpose, UInt64Array, lane_keys
from ezgreedy.finite_mdp import FiniteMDP
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

# The MDP's seed has one more word than the policy's, so that no lane shares its stream.
_WORLD = 0x574F524C44
_FIRST_STATE = np.uint64(Purpose.ACTION)


class Walk(NamedTuple):
    """An exploration process, in the form that compiled code takes."""

    successors: IntArray  # [states, actions, most successors]
    successor_cdf: FloatArray  # the same shape; the last is 1
    first_states: IntArray  # [first states]
    first_cdf: FloatArray
    ends: BoolArray  # [states]
    greedy: IntArray  # [states]
    epsilon: float
    durations: InverseTable
    carries_over_episodes: bool


class Place(NamedTuple):
    """Where a run is: its state, its option, its step count within the episode."""

    state: int
    option_action: int
    remaining: int
    episode_steps: int


class WalkStream(NamedTuple):
    """The two streams of a run: the policy's draws and the MDP's."""

    policy: LaneStream
    world: LaneStream


class WalkStreams(NamedTuple):
    """The streams of many runs, each [runs]."""

    policy_offsets: UInt64Array
    policy_multipliers: UInt64Array
    world_offsets: UInt64Array
    world_multipliers: UInt64Array


def compiled_walk(process: ExplorationProcess) -> Walk:
    """The process as arrays: successors and first states with their cumulative probabilities."""
    mdp = process.mdp
    successors, successor_cdf = _successor_tables(mdp)
    first_states = np.flatnonzero(mdp.start)
    return Walk(
        successors,
        successor_cdf,
        first_states,
        _cumulative(mdp.start[first_states]),
        mdp.ends,
        process.greedy_actions,
        float(process.epsilon),
        process.durations.inverse,
        process.carries_over_episodes,
    )


def world_seed(seed: int) -> int:
    """The seed of the MDP's draws, given the policy's."""
    return (seed << 64) | _WORLD


def run_streams(seed: int, runs: int) -> WalkStreams:
    """The streams of runs 0 … runs − 1."""
    require.integer("seed", seed, least=0, most=None)
    require.integer("runs", runs, least=1)
    return WalkStreams(*lane_keys(seed, runs), *lane_keys(world_seed(seed), runs))


def tabular_first_visits(
    process: ExplorationProcess,
    num_trials: int,
    num_steps: int,
    seed: int = 0,
    max_episode_steps: int | None = None,
) -> FirstVisitTimes:
    """First-visit times of every state, by simulation; `first_visits` takes any environment.

    Args:
        process: the MDP and its exploration.
        num_trials: number of runs averaged over, one lane each.
        num_steps: steps of each run, over any number of episodes.
        seed: random seed of all runs.
        max_episode_steps: an episode is truncated after this many steps; never if None.
    """
    require.integer("num_trials", num_trials, least=1)
    require.integer("num_steps", num_steps, least=1)
    limit = np.iinfo(np.int64).max
    if max_episode_steps is not None:
        limit = require.integer("max_episode_steps", max_episode_steps, least=1)
    first, visits = _first_visits(
        compiled_walk(process), run_streams(seed, num_trials), num_steps, limit
    )
    return FirstVisitTimes(first, visits, num_steps, (process.mdp.num_states,))


def _successor_tables(mdp: FiniteMDP) -> tuple[IntArray, FloatArray]:
    """Possible successors first, in order, padded with the last one; [states, actions, most]."""
    possible = mdp.transitions > 0
    counts = np.maximum(possible.sum(axis=2), 1)
    order = np.argsort(~possible, axis=2, kind="stable")[:, :, : counts.max()]
    last = np.minimum(np.arange(counts.max()), counts[:, :, None] - 1)
    successors = np.take_along_axis(order, last, axis=2)
    probabilities = np.take_along_axis(mdp.transitions, order, axis=2)
    return successors, _cumulative(probabilities)


def _cumulative(probabilities: FloatArray) -> FloatArray:
    """Running sums, with 1 from the last possible entry on: rounding must leave no gap."""
    totals = np.cumsum(probabilities, axis=-1)
    totals[probabilities[..., ::-1].cumsum(axis=-1)[..., ::-1] - probabilities <= 0.0] = 1.0
    return totals


@jit
def lane_of(lanes: WalkStreams, run: int) -> WalkStream:
    """The streams of one run."""
    return WalkStream(
        LaneStream(lanes.policy_offsets[run], lanes.policy_multipliers[run]),
        LaneStream(lanes.world_offsets[run], lanes.world_multipliers[run]),
    )


@jit
def pick(cdf: FloatArray, u: float) -> int:
    """The index drawn by a uniform number."""
    index = 0
    while cdf[index] <= u:
        index += 1
    return index


@jit
def beginning(walk: Walk, lane: WalkStream, step: int) -> int:
    """The first state of an episode that begins after `step` steps of the run."""
    if len(walk.first_states) == 1:
        return walk.first_states[0]
    u = uniform(step_word(lane.world, step), _FIRST_STATE)
    return walk.first_states[pick(walk.first_cdf, u)]


@jit
def decide(walk: Walk, lane: WalkStream, step: int, place: Place) -> tuple[int, Place]:
    """The action to play now, and the place with its option advanced."""
    option_action, remaining, explores = explore(
        lane.policy,
        step,
        walk.epsilon,
        walk.durations,
        walk.successors.shape[1],
        place.option_action,
        place.remaining,
    )
    action = option_action if explores else walk.greedy[place.state]
    return action, Place(place.state, option_action, remaining, place.episode_steps)


@jit
def successor(walk: Walk, lane: WalkStream, step: int, state: int, action: int) -> int:
    """The state that an action played at `step` leads to."""
    if walk.successors.shape[2] == 1:
        return walk.successors[state, action, 0]
    u = coin(step_word(lane.world, step))
    return walk.successors[state, action, pick(walk.successor_cdf[state, action], u)]


@jit
def arrive(walk: Walk, lane: WalkStream, step: int, place: Place, state: int, limit: int) -> Place:
    """The place after `step` steps: in the state arrived in, or at the start of an episode."""
    if not walk.ends[state] and place.episode_steps + 1 < limit:
        return Place(state, place.option_action, place.remaining, place.episode_steps + 1)
    remaining = place.remaining if walk.carries_over_episodes else 0
    return Place(beginning(walk, lane, step), place.option_action, remaining, 0)


@jit
def _first_visits(
    walk: Walk, lanes: WalkStreams, num_steps: int, limit: int
) -> tuple[IntArray, IntArray]:
    num_runs, num_states = len(lanes.policy_offsets), len(walk.ends)
    first = np.full((num_runs, num_states), num_steps)
    visits = np.zeros((num_runs, num_states), dtype=np.int64)
    for run in range(num_runs):
        lane = lane_of(lanes, run)
        place = Place(beginning(walk, lane, 0), 0, 0, 0)
        first[run, place.state] = 0
        visits[run, place.state] = 1
        for step in range(num_steps):
            action, place = decide(walk, lane, step, place)
            state = successor(walk, lane, step, place.state, action)
            first[run, state] = min(first[run, state], step + 1)
            visits[run, state] += 1
            place = arrive(walk, lane, step + 1, place, state, limit)
            if place.episode_steps == 0:
                first[run, place.state] = min(first[run, place.state], step + 1)
                visits[run, place.state] += 1
    return first, visits
