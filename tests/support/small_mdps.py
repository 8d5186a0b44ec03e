"""Finite MDPs whose answers are known or easily worked out, for tests of exact analyses."""

import numpy as np

from ezgreedy import FiniteMDP


def deterministic(successors, start, terminal=None) -> FiniteMDP:
    """An MDP from its table of successors [states, actions]."""
    successors = np.asarray(successors)
    num_states, num_actions = successors.shape
    transitions = np.zeros((num_states, num_actions, num_states))
    np.put_along_axis(transitions, successors[:, :, None], 1.0, axis=2)
    return FiniteMDP(transitions, np.eye(num_states)[start], terminal)


def corridor(length: int) -> FiniteMDP:
    """Left and right between two walls, from the left one."""
    states = np.arange(length)
    left, right = np.maximum(states - 1, 0), np.minimum(states + 1, length - 1)
    return deterministic(np.stack([left, right], axis=1), 0)


def ring(length: int) -> FiniteMDP:
    """Left and right around a circle: no option ever stands still."""
    states = np.arange(length)
    return deterministic(np.stack([states - 1, states + 1], axis=1) % length, 0)


def room(size: int, start: tuple[int, int]) -> FiniteMDP:
    """Up, down, left, right in an open square; state row · size + column."""
    rows, columns = np.divmod(np.arange(size**2), size)
    moves = [
        np.clip(rows + down, 0, size - 1) * size + np.clip(columns + right, 0, size - 1)
        for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1))
    ]
    return deterministic(np.stack(moves, axis=1), start[0] * size + start[1])


def deep_sea(size: int) -> FiniteMDP:
    """DeepSea: one row down on every step, left or right; below the last row the episode ends."""
    rows, columns = np.divmod(np.arange(size * (size + 1)), size)
    down = np.minimum(rows + 1, size) * size
    moves = [down + np.maximum(columns - 1, 0), down + np.minimum(columns + 1, size - 1)]
    return deterministic(np.stack(moves, axis=1), 0, rows == size)


def random_mdp(seed: int, num_states: int = 5, num_actions: int = 2, ends: int = 1) -> FiniteMDP:
    """A stochastic MDP with a few successors per pair, several first states and `ends` ends."""
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.ones(num_states), size=(num_states, num_actions))
    transitions[transitions < 0.15] = 0.0
    transitions[:, :, 0] += 0.1
    transitions /= transitions.sum(axis=2, keepdims=True)
    terminal = np.arange(num_states) >= num_states - ends
    start = np.where(terminal, 0.0, rng.random(num_states))
    return FiniteMDP(transitions, start / start.sum(), terminal)
