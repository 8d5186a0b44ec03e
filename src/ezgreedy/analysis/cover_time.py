"""After how many steps have all state-action pairs been visited? Definition 1 of the paper.

The cover time is the number of steps within which every pair is visited with probability 1/2. Both
functions here give the whole distribution: simulated by compiled code for any finite MDP, and
exactly, for tiny ones, by propagating probabilities over (pairs visited, state, option, remaining).
Only pairs that some sequence of actions can reach count.
"""

import math
from dataclasses import dataclass

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.analysis.finite_walks import (
    Place,
    Walk,
    WalkStreams,
    arrive,
    beginning,
    compiled_walk,
    decide,
    lane_of,
    run_streams,
    successor,
)
from ezgreedy.analysis.process import ExplorationProcess
from ezgreedy.compilation import jit
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

_NO_LIMIT = np.iinfo(np.int64).max
_LARGEST_EXACT = 2**24


@dataclass(frozen=True, eq=False)
class CoverTimes:
    """The cumulative distribution of the step on which the last pair is visited.

    Args:
        cdf: the probability that t steps have visited every pair, t = 0 … horizon.
        times: the simulated times themselves, [runs]; `horizon + 1` for runs that did not finish.
            None if the distribution is exact.
    """

    cdf: FloatArray
    times: IntArray | None = None

    @property
    def horizon(self) -> int:
        """The largest number of steps considered."""
        return len(self.cdf) - 1

    @property
    def median(self) -> float:
        """The cover time: the first t whose probability is at least 1/2, infinite if beyond."""
        return self.quantile(0.5)

    def quantile(self, probability: float) -> float:
        """The first t within which all pairs are visited with this probability."""
        require.number("probability", probability, 0.0, 1.0)
        steps = int(np.searchsorted(self.cdf, probability))
        return float(steps) if steps <= self.horizon else math.inf


def pairs_to_visit(process: ExplorationProcess) -> BoolArray:
    """The pairs that some sequence of actions reaches, [states, actions]."""
    mdp = process.mdp
    acting = mdp.reachable_states() & ~mdp.ends
    return np.repeat(acting[:, None], mdp.num_actions, axis=1)


def cover_times(process: ExplorationProcess, runs: int, horizon: int, seed: int = 0) -> CoverTimes:
    """Simulates the cover time.

    Args:
        process: the MDP and its exploration.
        runs: number of runs, one lane each.
        horizon: a run that has not visited every pair after this many steps is given up.
        seed: random seed of all runs.
    """
    require.integer("horizon", horizon, least=1)
    times = _simulated(
        compiled_walk(process), run_streams(seed, runs), pairs_to_visit(process), horizon
    )
    counts = np.bincount(times, minlength=horizon + 2)[: horizon + 1]
    return CoverTimes(np.cumsum(counts) / runs, times)


@jit
def _simulated(walk: Walk, lanes: WalkStreams, needed: BoolArray, horizon: int) -> IntArray:
    num_runs = len(lanes.policy_offsets)
    times = np.full(num_runs, horizon + 1)
    # The run that last visited a pair: fresh marks for every run without clearing any.
    visited_by = np.full(needed.shape, -1)
    for run in range(num_runs):
        lane = lane_of(lanes, run)
        place = Place(beginning(walk, lane, 0), 0, 0, 0)
        missing = needed.sum()
        for step in range(horizon):
            action, place = decide(walk, lane, step, place)
            if visited_by[place.state, action] != run:
                visited_by[place.state, action] = run
                missing -= 1
                if missing == 0:
                    times[run] = step + 1
                    break
            state = successor(walk, lane, step, place.state, action)
            place = arrive(walk, lane, step + 1, place, state, _NO_LIMIT)
    return times


def exact_cover_times(process: ExplorationProcess, horizon: int) -> CoverTimes:
    """The cover time's distribution up to a horizon, exactly; for tiny MDPs.

    An option with more plays left than the horizon has steps is equivalent to an endless one, so
    memory grows at most with the horizon, not with the cap on durations.

    Args:
        process: the MDP and its exploration.
        horizon: largest number of steps considered.
    """
    require.integer("horizon", horizon, least=1)
    mass = _Mass(process, horizon)
    cdf = np.zeros(horizon + 1)
    for step in range(1, horizon + 1):
        mass.advance()
        cdf[step] = mass.covered()
    return CoverTimes(np.minimum(cdf, 1.0))


class _Mass:
    """Probability mass over (visited pairs, state, option action, plays remaining)."""

    def __init__(self, process: ExplorationProcess, horizon: int) -> None:
        self.process = process
        mdp = process.mdp
        pairs = pairs_to_visit(process)
        num_pairs = int(pairs.sum())
        self.longest = min(process.durations.cap, horizon)
        per_pair_set = mdp.num_states * (mdp.num_actions * self.longest + 1)
        if num_pairs > 24 or per_pair_set << num_pairs > _LARGEST_EXACT:
            rule = (
                f"have fewer pairs to visit ({num_pairs}) or a shorter horizon for an exact "
                f"distribution; simulate it instead"
            )
            raise require.refuse("process", rule, f"{mdp.num_states} states")
        self.bits = np.where(pairs, np.cumsum(pairs).reshape(pairs.shape) - 1, -1)
        self.num_sets = 1 << num_pairs
        law = process.durations.pmf(np.arange(1, self.longest + 1))
        law[-1] += max(1.0 - law.sum(), 0.0)
        self.beginnings = law * process.epsilon / mdp.num_actions  # of each option, by its plays
        # Deciding in a state; and within an option, with 1 … longest plays left.
        self.deciding = np.zeros((self.num_sets, mdp.num_states))
        self.deciding[0] = mdp.start
        self.running = np.zeros((self.num_sets, mdp.num_states, mdp.num_actions, self.longest))

    def covered(self) -> float:
        """The probability that every pair has been visited."""
        return float(self.deciding[-1].sum() + self.running[-1].sum())

    def advance(self) -> None:
        """Plays one step from everywhere at once."""
        mdp = self.process.mdp
        deciding, running = np.zeros_like(self.deciding), np.zeros_like(self.running)
        for state, action in np.argwhere(self.bits >= 0).tolist():
            plays = self._with_pair(self._plays(state, action), int(self.bits[state, action]))
            ended = float(mdp.transitions[state, action, mdp.ends].sum())
            onward = np.where(mdp.ends, 0.0, mdp.transitions[state, action])
            if self.process.carries_over_episodes:
                onward = onward + ended * mdp.start
            else:
                deciding += ended * plays.sum(axis=1)[:, None] * mdp.start
            for following in np.flatnonzero(onward).tolist():
                deciding[:, following] += onward[following] * plays[:, 0]
                running[:, following, action, :-1] += onward[following] * plays[:, 1:]
        self.deciding, self.running = deciding, running

    def _plays(self, state: int, action: int) -> FloatArray:
        """Mass about to play this pair, by plays remaining afterwards, [sets, longest]."""
        plays = self.running[:, state, action] + np.outer(self.deciding[:, state], self.beginnings)
        if self.process.greedy_actions[state] == action:
            plays[:, 0] += self.deciding[:, state] * (1.0 - self.process.epsilon)
        return plays

    def _with_pair(self, plays: FloatArray, bit: int) -> FloatArray:
        """The same mass once the pair is among those visited."""
        halves = plays.reshape(-1, 2, 1 << bit, plays.shape[1])
        visited = np.zeros_like(halves)
        visited[:, 1] = halves.sum(axis=1)
        return visited.reshape(plays.shape)
