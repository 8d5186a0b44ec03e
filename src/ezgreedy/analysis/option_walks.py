"""How soon do options visit a finite MDP? Cover times by simulation, first visits exactly.

Like `cover_time` and `exact`, for any option set that fits into tables, exploring on every step
(ε = 1). Before anything is computed, the set must have full coverage: a pair that is never visited
would make a cover time infinite, and the refusal says which pair it is and why.
"""

import math
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from ezgreedy import requirements as require
from ezgreedy.analysis.cover_time import CoverTimes, pairs_to_visit
from ezgreedy.analysis.exact import can_reach
from ezgreedy.analysis.finite_walks import (
    Place,
    Walk,
    WalkStreams,
    arrive,
    beginning,
    compiled_walk,
    lane_of,
    run_streams,
    successor,
)
from ezgreedy.analysis.process import ExplorationProcess
from ezgreedy.compilation import jit
from ezgreedy.exploration.durations import Fixed
from ezgreedy.exploration.full_coverage import full_coverage
from ezgreedy.exploration.option_tables import (
    ENDLESS,
    OptionTables,
    explore_options,
    option_tables,
)
from ezgreedy.exploration.options import OptionSet
from ezgreedy.finite_mdp import FiniteMDP
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

_NO_LIMIT = np.iinfo(np.int64).max
_ALWAYS = 1.0  # ε of pure exploration
_LONGEST_FOLLOWED = 10_000  # plays of an option of drawn length
_ROUNDING = 1e-12  # of a sum of probabilities


def option_cover_times(
    mdp: FiniteMDP, options: OptionSet, runs: int, horizon: int, seed: int = 0
) -> CoverTimes:
    """Simulates the cover time of an option set that explores on every step.

    Args:
        mdp: the process; options see the state's number.
        options: the option set; see `option_tables`. It must have full coverage.
        runs: number of runs, one lane each.
        horizon: a run that has not visited every pair after this many steps is given up.
        seed: random seed of all runs; run i has the tape of a `TemporallyExtended`'s lane i.
    """
    require.integer("horizon", horizon, least=1)
    tables = _covering_tables(mdp, options)
    process = ExplorationProcess(mdp, durations=Fixed(1))
    times = _simulated(
        compiled_walk(process), tables, run_streams(seed, runs), pairs_to_visit(process), horizon
    )
    counts = np.bincount(times, minlength=horizon + 2)[: horizon + 1]
    return CoverTimes(np.cumsum(counts) / runs, times)


def expected_option_visit(mdp: FiniteMDP, options: OptionSet, target: int) -> float:
    """Exact expected steps from the start until a state is first visited, exploring always.

    Options end with the episode. Their lengths must not be drawn; `expected_first_visits` has the
    answer for action repeats.

    Args:
        mdp: the process; options see the state's number.
        options: the option set; see `option_tables`. It must have full coverage.
        target: number of the state.
    """
    tables = _covering_tables(mdp, options)
    target = require.integer("target", target, least=0, most=mdp.num_states - 1)
    if not np.isin(tables.lengths, (1, ENDLESS)).all():
        rule = "have options that play once or until a state ends them, for an exact answer"
        raise require.refuse("options", rule, options)
    if not mdp.reachable_states()[target]:
        return math.inf
    if mdp.start[target] == 1.0:
        return 0.0
    # Attempts are independent: the expected length of one over its chance of success.
    steps, success = _attempt(mdp, tables, target)
    return steps / success


def _covering_tables(mdp: FiniteMDP, options: OptionSet) -> OptionTables:
    """The options as tables, or a refusal that says what they never visit."""
    if not isinstance(mdp, FiniteMDP):
        raise require.refuse_type("mdp", "be a FiniteMDP", mdp)
    if options.num_actions != mdp.num_actions:
        raise require.refuse("options", f"have {mdp.num_actions} actions", options.num_actions)
    tables = option_tables(options, mdp.num_states)
    # Options that act and end by the state alone are anywhere they can be within this many plays.
    is_timed = not np.isin(tables.lengths, (1, ENDLESS)).all()
    horizon = _LONGEST_FOLLOWED if is_timed else mdp.num_states
    report = full_coverage(mdp, options, horizon=horizon)
    reachable = mdp.reachable_states()
    missing = {pair: why for pair, why in report.missing.items() if reachable[pair[0]]}
    if missing:
        (state, action), why = next(iter(missing.items()))
        what = f"state {state}, action {action}: {why}"
        raise require.refuse("options", "have full coverage", require.Described(what))
    return tables


@jit
def _simulated(
    walk: Walk, tables: OptionTables, lanes: WalkStreams, needed: BoolArray, horizon: int
) -> IntArray:
    num_runs = len(lanes.policy_offsets)
    times = np.full(num_runs, horizon + 1)
    # The run that last visited a pair: fresh marks for every run without clearing any.
    visited_by = np.full(needed.shape, -1)
    for run in range(num_runs):
        lane = lane_of(lanes, run)
        # The place holds the option's number where action repeats hold their action.
        place = Place(beginning(walk, lane, 0), 0, 0, 0)
        missing = needed.sum()
        for step in range(horizon):
            option, remaining, _ = explore_options(
                lane.policy,
                step,
                _ALWAYS,
                tables,
                place.state,
                place.option_action,
                place.remaining,
            )
            action = tables.actions[option, place.state]
            if visited_by[place.state, action] != run:
                visited_by[place.state, action] = run
                missing -= 1
                if missing == 0:
                    times[run] = step + 1
                    break
            state = successor(walk, lane, step, place.state, action)
            place = Place(place.state, option, remaining, place.episode_steps)
            place = arrive(walk, lane, step + 1, place, state, _NO_LIMIT)
    return times


def _attempt(mdp: FiniteMDP, tables: OptionTables, target: int) -> tuple[float, float]:
    """Expected steps of an episode up to a visit or its end, and the chance of the visit.

    Unknowns are deciding in each state, and each option at its next play in each state.
    """
    acting = mdp.reachable_states() & ~mdp.ends
    acting[target] = False
    states = np.flatnonzero(acting)
    nowhere = sparse.csr_array((len(states), len(states)))
    first, gained = [nowhere], [np.zeros((len(states), 2))]
    rows = []
    for option, chance in enumerate(tables.probabilities):
        moves = mdp.transitions[states, tables.actions[option, states]]
        within = moves[:, states]
        is_over = tables.ends[option, states] | (tables.lengths[option] == 1)
        decides, goes_on = sparse.csr_array(within * is_over), sparse.csr_array(within * ~is_over)
        rows.append([decides, *[nowhere] * option, goes_on])
        rows[-1] += [nowhere] * (len(tables.actions) + 1 - len(rows[-1]))
        first[0] = first[0] + chance * decides
        first.append(chance * goes_on)
        gained.append(np.stack([np.ones(len(states)), moves[:, target]], axis=1))
        gained[0] = gained[0] + chance * gained[-1]
    solved = _solved(sparse.block_array([first, *rows], format="csr"), np.concatenate(gained))
    steps, success = mdp.start[states] @ solved[: len(states)]
    return float(steps), float(success + mdp.start[target])


def _solved(moves: Any, gained: FloatArray) -> FloatArray:
    """The x with x = gained + moves·x, if every walk ends."""
    leaves = moves.sum(axis=1) < 1.0 - _ROUNDING
    if not can_reach(moves, leaves).all():
        received = require.Described("an option that runs forever from some state")
        raise require.refuse("options", "end, or lead out of the episode", received)
    return splu((sparse.eye_array(moves.shape[0]) - moves).tocsc()).solve(gained)
