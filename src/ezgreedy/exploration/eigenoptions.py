"""Directions of a finite MDP as options: follow a slow coordinate of the state space to its end.

The paper asks for problem-specific notions of direction. Eigenoptions (Machado et al., 2017) are
one answer: an eigenvector of the graph Laplacian that changes slowly over the state space is like a
coordinate, and an option that climbs it until no action leads further crosses the space. Where
actions are directions already they resemble long repeats; where they are not, as in a maze that
turns, they are what repeats cannot be.
"""

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.options import FiniteOptions, History, Option, primitive
from ezgreedy.finite_mdp import FiniteMDP
from ezgreedy.requirements import FloatArray

_SMALLEST_GAIN = 1e-9  # what rounding leaves of no improvement


def slow_directions(mdp: FiniteMDP, count: int) -> FloatArray:
    """The smoothest non-constant eigenvectors of the graph Laplacian, [count, states].

    The graph joins states that a uniformly random action leads between, in either direction, with
    the mean of both probabilities as weight; terminal and unreachable states are left out, and are
    0 in the result. Eigenvectors of one eigenvalue may come in any basis.

    Args:
        mdp: the process; its states must hang together.
        count: number of directions, at most the number of states less one.
    """
    if not isinstance(mdp, FiniteMDP):
        raise require.refuse_type("mdp", "be a FiniteMDP", mdp)
    acting = np.flatnonzero(mdp.reachable_states() & ~mdp.ends)
    require.integer("count", count, least=1, most=max(len(acting) - 1, 1))
    walk = mdp.transitions.mean(axis=1)[np.ix_(acting, acting)]
    weights = (walk + walk.T) / 2.0
    np.fill_diagonal(weights, 0.0)
    values, vectors = np.linalg.eigh(np.diag(weights.sum(axis=1)) - weights)
    if len(acting) < 2 or values[1] < _SMALLEST_GAIN:
        received = require.Described(f"{len(acting)} states in several parts")
        raise require.refuse("mdp", "have two states or more that hang together", received)
    directions = np.zeros((count, mdp.num_states))
    directions[:, acting] = vectors[:, 1 : count + 1].T
    return directions


def eigenoptions(
    mdp: FiniteMDP, count: int = 4, *, has_primitives: bool = True, shuffled_by: int | None = None
) -> FiniteOptions:
    """Options that climb or descend the slowest directions of an MDP, for `TemporallyExtended`.

    An option takes the action with the largest expected gain and ends where none gains anything.
    Observations must be the numbers of states.

    Args:
        mdp: the process.
        count: number of directions; each gives two options.
        has_primitives: whether single actions are options too, each as likely as a direction, so
            that every state-action pair can be visited.
        shuffled_by: seed of a permutation of the states within each direction, as a control: the
            same options without their meaning. None for none.
    """
    directions = slow_directions(mdp, count)
    if shuffled_by is not None:
        directions = _shuffled(directions, require.integer("shuffled_by", shuffled_by, least=0))
    options = [
        _climb(mdp, sign * direction, f"{'up' if sign > 0 else 'down'} direction {number}")
        for number, direction in enumerate(directions)
        for sign in (1.0, -1.0)
    ]
    if has_primitives:
        options += [primitive(action) for action in range(mdp.num_actions)]
    return FiniteOptions(mdp.num_actions, options)


def _climb(mdp: FiniteMDP, heights: FloatArray, name: str) -> Option:
    """Goes where the heights rise most, and ends where they do not."""
    # Ends have no height of their own: entering one gains nothing.
    going_on = mdp.transitions * ~mdp.ends
    gains = going_on @ heights - going_on.sum(axis=2) * heights[:, None]
    # Equal gains must be equal on every machine, or ties would be broken by rounding.
    best = np.round(gains, 9).argmax(axis=1)
    is_top = gains.max(axis=1) <= _SMALLEST_GAIN

    def policy(history: History) -> int:
        return int(best[history.observation])

    def termination(history: History) -> float:
        return float(is_top[history.observation])

    return Option(policy, termination, None, "observation", name)


def _shuffled(directions: FloatArray, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    shuffled = directions.copy()
    for row in shuffled:
        inside = np.flatnonzero(row)
        row[inside] = row[rng.permutation(inside)]
    return shuffled
