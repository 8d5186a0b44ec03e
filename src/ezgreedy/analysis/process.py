"""Which walk is analysed? A finite MDP explored by ε- or εz-greedy with a fixed greedy policy.

Exploration induces a stochastic process over states (Section 4.1 of the paper); exact solutions
and simulations of it take the same description, so that one can be checked against the other.
After an episode ends, the next begins from the start distribution without a step in between.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw, Zeta
from ezgreedy.finite_mdp import FiniteMDP
from ezgreedy.requirements import IntArray


@dataclass(frozen=True, eq=False)
class ExplorationProcess:
    """εz-greedy in a finite MDP; with durations `Fixed(1)` it is ε-greedy.

    Args:
        mdp: the MDP to explore.
        epsilon: probability of starting an option on a step that is not inside one.
        durations: law of the number of plays.
        greedy: the greedy action of every state, [states]; may be None if ε = 1.
        carries_over_episodes: whether options survive episode ends.
    """

    mdp: FiniteMDP
    epsilon: float = 1.0
    durations: DurationLaw = field(default_factory=Zeta)
    greedy: IntArray | None = None
    carries_over_episodes: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.mdp, FiniteMDP):
            raise require.refuse_type("mdp", "be a FiniteMDP", self.mdp)
        if not isinstance(self.durations, DurationLaw):
            raise require.refuse_type(
                "durations", "be a duration law such as Zeta()", self.durations
            )
        require.number("epsilon", self.epsilon, 0.0, 1.0)
        require.flag("carries_over_episodes", self.carries_over_episodes)
        if self.greedy is None and self.epsilon < 1.0:
            raise require.refuse("greedy", "be given when epsilon is below 1", None)
        greedy = np.zeros(self.mdp.num_states, dtype=np.int64)
        if self.greedy is not None:
            greedy = require.actions(
                "greedy", self.greedy, self.mdp.num_states, self.mdp.num_actions, "state"
            )
        object.__setattr__(self, "greedy", greedy)

    @property
    def greedy_actions(self) -> IntArray:
        """The greedy action of every state, [states]; arbitrary if ε = 1."""
        assert self.greedy is not None
        return self.greedy

    @cached_property
    def action_matrices(self) -> tuple[Any, ...]:
        """P(x' | x, a) of each action without rows of terminal states, sparse [states, states]."""
        going = ~self.mdp.ends[:, None]
        return tuple(
            sparse.csr_array(self.mdp.transitions[:, action] * going)
            for action in range(self.mdp.num_actions)
        )
