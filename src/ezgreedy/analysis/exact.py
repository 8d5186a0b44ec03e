"""How many steps until a state is first visited? Exact expectations by a linear solve.

The process lives on (state, option action, plays remaining), but only the states in which it
decides need be unknowns: the effect of an option between two decisions is a power series of its
action's transition matrix, Σ z(n) Pⁿ, with the visited target and finished episodes taken out. This
keeps the system as small as the MDP for any cap on durations.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from ezgreedy import requirements as require
from ezgreedy.analysis.process import ExplorationProcess
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

Matrix = Any  # a NumPy array or a SciPy sparse array, [states, states]

# Limits on walked positions held before they are summed into a matrix, and on numbers in powers.
_LARGEST_WALK = 2**22
_LARGEST_POWERS = 2**25


class EpisodeLaw(NamedTuple):
    """What happens from each state, when deciding there, until a visit or the episode's end.

    Args:
        steps: expected steps until either, [states]; infinite where possibly neither happens.
        visits: probability that the visit comes first, [states].
        ends: probability that the episode ends first, [states].
    """

    steps: FloatArray
    visits: FloatArray
    ends: FloatArray


def expected_first_visits(
    process: ExplorationProcess, targets: Sequence[int] | IntArray | None = None
) -> FloatArray:
    """Expected steps from the start distribution until each target is first visited, [targets].

    A start state counts as 0, a state that may never be visited as infinity. All states are
    targets if None.
    """
    numbers = range(process.mdp.num_states) if targets is None else targets
    return np.array([expected_first_visit(process, int(target)) for target in numbers])


def expected_first_visit(process: ExplorationProcess, target: int) -> float:
    """Expected steps from the start distribution until one state is first visited.

    Episodes are independent attempts, so this is the expected length of an attempt divided by the
    probability that it succeeds: no difference of near-equal numbers is taken, and a probability
    of 2⁻⁵⁰ is as exact as one of 1/2.
    """
    law = episode_law(process, target)
    start = process.mdp.start
    started = start > 0
    success = float(start[started] @ law.visits[started])
    if success == 0.0:
        return math.inf
    return float(start[started] @ law.steps[started]) / success


def visit_probability(process: ExplorationProcess, target: int) -> float:
    """The probability that an episode visits a state.

    If options carry over, later episodes differ from the first, and this is the probability that
    the state is ever visited.
    """
    return float(process.mdp.start @ episode_law(process, target).visits)


def episode_law(process: ExplorationProcess, target: int) -> EpisodeLaw:
    """Solves for the law of every state until a visit to the target or the episode's end."""
    target = require.integer("target", target, least=0, most=process.mdp.num_states - 1)
    between = _between_decisions(process, target)
    deciding = ~process.mdp.ends
    deciding[target] = False
    leaves = (between.visits + between.ends) > 0
    # From an unsettled state neither a visit nor an end can be reached. States that may lead to one
    # can wait forever; without unsettled states, the equations have exactly one solution.
    unsettled = deciding & ~can_reach(between.moves, leaves)
    endless = can_reach(between.moves, unsettled)
    settled = np.flatnonzero(deciding & ~unsettled)
    law = EpisodeLaw(*np.zeros((3, len(deciding))))
    law.visits[target] = 1.0
    law.ends[process.mdp.ends] = 1.0
    law.ends[target] = 0.0
    for values, solution in zip(law, _solved(between, settled).T, strict=True):
        values[settled] = solution
    law.steps[endless] = np.inf
    return law


class _Between(NamedTuple):
    """What happens between a decision in each state and the next decision."""

    moves: Matrix  # probability of deciding next in each state, [states, states]
    steps: FloatArray  # expected steps until then, or until a visit or an end, [states]
    visits: FloatArray  # probability of visiting the target before that, [states]
    ends: FloatArray  # probability that the episode ends before that, [states]


def _between_decisions(process: ExplorationProcess, target: int) -> _Between:
    mdp, epsilon = process.mdp, process.epsilon
    law = process.durations.pmf(np.arange(process.durations.cap + 1))
    lasts = np.cumsum(law[::-1])[::-1][1:]  # entry k: the probability of more than k plays
    total: _Between | None = None
    for action, transitions in enumerate(process.action_matrices):
        chances = _one_play(process, transitions, target)
        if epsilon > 0.0:
            option = _repeated(chances, law, lasts)
            total = _plus(total, option, np.full(mdp.num_states, epsilon / mdp.num_actions))
        if epsilon < 1.0:
            chosen = (process.greedy_actions == action) * (1.0 - epsilon)
            total = _plus(total, chances, chosen)
    assert total is not None
    return total


def _one_play(process: ExplorationProcess, transitions: Matrix, target: int) -> _Between:
    """What one play of an action does, from every state in which it can be played."""
    ends = process.mdp.ends.copy()
    ends[target] = False  # a visit comes before the end of the episode it may bring
    ended = transitions @ ends.astype(np.float64)
    if process.carries_over_episodes:
        restarted = sparse.csr_array(ended[:, None]) @ sparse.csr_array(process.mdp.start[None])
        transitions, ended = transitions + restarted, np.zeros_like(ended)
    plays = (~process.mdp.ends).astype(np.float64)
    plays[target] = 0.0
    within = sparse.diags_array(plays)
    visits = transitions @ (np.arange(len(plays)) == target).astype(np.float64)
    goes_on = (within @ transitions @ within).tocsr()
    goes_on.eliminate_zeros()
    return _Between(goes_on, plays, visits * plays, ended * plays)


def _repeated(play: _Between, law: FloatArray, lasts: FloatArray) -> _Between:
    """What an option does: the same play, repeated as often as the law says."""
    during = _applied_series(play.moves, lasts, np.stack(play[1:], axis=1))
    return _Between(_power_series(play.moves, law), *during.T)


def _plus(total: _Between | None, addition: _Between, weights: FloatArray) -> _Between:
    moves = addition.moves
    weighted = _Between(
        sparse.diags_array(weights) @ moves if sparse.issparse(moves) else weights[:, None] * moves,
        *(weights * values for values in addition[1:]),
    )
    if total is None:
        return weighted
    return _Between(*(old + new for old, new in zip(total, weighted, strict=True)))


# Power series of a matrix.


def _power_series(matrix: Matrix, coefficients: FloatArray) -> Matrix:
    """Σ coefficients[n]·matrixⁿ, by walking if rows have one successor, else by products."""
    coefficients = np.trim_zeros(coefficients, "b")
    successors = _only_successors(matrix)
    if successors is not None:
        return _walked_series(successors, coefficients)
    if len(coefficients) > 2:
        return _multiplied_series(matrix, coefficients)
    constant, slope = np.append(coefficients, [0.0, 0.0])[:2]
    return sparse.eye_array(matrix.shape[0], format="csr") * constant + matrix * slope


def _applied_series(matrix: Matrix, coefficients: FloatArray, vectors: FloatArray) -> FloatArray:
    """(Σ coefficients[n]·matrixⁿ)·vectors, [states, columns]."""
    successors = _only_successors(matrix)
    if successors is not None:
        return _walked_series(successors, np.trim_zeros(coefficients, "b")) @ vectors
    total = np.zeros_like(vectors)
    for coefficient in np.trim_zeros(coefficients, "b")[::-1]:
        total = coefficient * vectors + matrix @ total
    return total


def _only_successors(matrix: Matrix) -> IntArray | None:
    """The one successor of each row, −1 if it leads out; None if some row has several."""
    counts = np.diff(matrix.indptr)
    if (counts > 1).any() or not (matrix.data == 1.0).all():
        return None
    successors = np.full(len(counts), -1)
    successors[counts == 1] = matrix.indices
    return successors


def _walked_series(successors: IntArray, coefficients: FloatArray) -> Matrix:
    """The series of a matrix that leads every state to one successor, or out (−1)."""
    size = len(successors)
    series = sparse.csr_array((size, size))
    for rows, columns, values in _walk(successors, coefficients):
        series = series + sparse.csr_array((values, (rows, columns)), shape=(size, size))
    return series


def _walk(
    successors: IntArray, coefficients: FloatArray
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Entries of the series, in pieces that fit into memory."""
    rest = np.cumsum(coefficients[::-1])[::-1]
    rows = columns = np.arange(len(successors))
    most = max(_LARGEST_WALK // len(successors), 1)
    walked: list[tuple[IntArray, IntArray, FloatArray]] = []
    for power, coefficient in enumerate(coefficients):
        further = successors[columns]
        is_still = bool((further == columns).all())  # e.g. at the walls: all later powers are equal
        weight = rest[power] if is_still else coefficient
        walked.append((rows, columns, np.full(len(rows), weight)))
        going = further >= 0
        rows, columns = rows[going], further[going]
        if is_still or not rows.size:
            break
        if len(walked) == most:
            yield _joined(walked)
            walked = []
    if walked:
        yield _joined(walked)


def _joined(
    pieces: list[tuple[IntArray, IntArray, FloatArray]],
) -> tuple[IntArray, IntArray, FloatArray]:
    rows, columns, values = zip(*pieces, strict=True)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(values)


def _multiplied_series(matrix: Matrix, coefficients: FloatArray) -> FloatArray:
    """Paterson and Stockmeyer's scheme: about 2·√len(coefficients) products of dense matrices."""
    size = matrix.shape[0]
    width = min(math.isqrt(len(coefficients) - 1) + 1, max(_LARGEST_POWERS // size**2, 2))
    powers = np.empty((width, size, size))
    powers[0] = np.eye(size)
    for power in range(1, width):
        powers[power] = matrix @ powers[power - 1]
    stride = matrix @ powers[-1]
    series = np.zeros((size, size))
    for first in reversed(range(0, len(coefficients), width)):
        chunk = coefficients[first : first + width]
        series = series @ stride + np.tensordot(chunk, powers[: len(chunk)], axes=1)
    return series


# Linear algebra over some of the states.


def can_reach(moves: Matrix, goal: BoolArray) -> BoolArray:
    """States from which the goal can be reached, including the goal itself, [states]."""
    backwards = sparse.csr_array(moves).T.tocsr()
    backwards.eliminate_zeros()
    reached = fresh = goal
    while fresh.any():
        sources = np.zeros_like(goal)
        sources[backwards[np.flatnonzero(fresh)].indices] = True
        fresh = sources & ~reached
        reached = reached | fresh
    return reached


def _solved(between: _Between, states: IntArray) -> FloatArray:
    """The x with x = constants + moves·x over these states, for all constants, [states, 3]."""
    constants = np.stack(between[1:], axis=1)[states]
    if sparse.issparse(between.moves):
        system = sparse.eye_array(len(states)) - between.moves[states][:, states]
        return splu(system.tocsc()).solve(constants)
    system = np.eye(len(states)) - between.moves[np.ix_(states, states)]
    return np.linalg.solve(system, constants)
