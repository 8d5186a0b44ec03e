"""A finite Markov decision process as arrays, for exact analyses."""

from dataclasses import dataclass

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.requirements import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """Transition probabilities, where episodes begin, and where they end.

    Args:
        transitions: P(x' | x, a), [states, actions, states]; rows of terminal states are ignored.
        start: the distribution of the first state, [states].
        terminal: states that end the episode when entered, [states]; none if None.
    """

    transitions: FloatArray
    start: FloatArray
    terminal: BoolArray | None = None

    def __post_init__(self) -> None:
        array = np.asarray(self.transitions)
        if array.ndim != 3 or array.shape[0] != array.shape[2]:
            raise require.refuse("transitions", "have shape [states, actions, states]", array.shape)
        num_states = len(array)
        terminal = np.zeros(num_states, dtype=np.bool_)
        if self.terminal is not None:
            terminal = require.mask("terminal", self.terminal, (num_states,))
        totals = array.sum(axis=2)[~terminal]
        if not (np.isfinite(array).all() and (array >= 0).all() and np.allclose(totals, 1.0)):
            raise require.refuse("transitions", "hold probabilities that sum to 1", totals)
        start = require.probabilities("start", self.start, num_states)
        if not np.isclose(start.sum(), 1.0) or start[terminal].any():
            raise require.refuse("start", "sum to 1 over non-terminal states", start.tolist())
        object.__setattr__(self, "transitions", array.astype(np.float64))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "terminal", terminal)

    @property
    def num_states(self) -> int:
        """Number of states, terminal ones included."""
        return self.transitions.shape[0]

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return self.transitions.shape[1]

    @property
    def ends(self) -> BoolArray:
        """Which states are terminal, [states]."""
        assert self.terminal is not None
        return self.terminal

    def reachable_states(self) -> BoolArray:
        """States that some sequence of actions reaches, terminal ones included, [states]."""
        edges = (self.transitions > 0).any(axis=1) & ~self.ends[:, None]
        reached = fresh = self.start > 0
        while fresh.any():
            fresh = edges[fresh].any(axis=0) & ~reached
            reached = reached | fresh
        return reached
