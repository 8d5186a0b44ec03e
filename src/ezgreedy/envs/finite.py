"""Which states a finite environment has and where each action leads, as plain arrays.

The arrays are read off the compiled step itself by walking from the first state, so exact analyses
(expected first visits, cover times, optimal values) describe the environment that agents meet.
"""

from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Discrete

from ezgreedy.envs.study_env import StudyEnv
from ezgreedy.requirements import BoolArray, FloatArray, IntArray


class FiniteEnv(StudyEnv[int]):
    """A deterministic environment whose observation is the number of its state.

    Subclasses define `first_state` and `transition`, the whole of the dynamics. If states are the
    cells of a grid, numbered row by row, `num_columns` is the length of a row.
    """

    first_state: int
    num_columns: int | None = None

    def __init__(self, num_states: int, num_actions: int, render_mode: str | None) -> None:
        super().__init__(Discrete(num_states), num_actions, render_mode)  # type: ignore[arg-type]
        self.num_states = num_states
        self.num_actions = num_actions
        self.state = self.previous_state = self.first_state

    def transition(self, state: int, action: int) -> tuple[int, float, bool]:
        """The next state, the reward and whether it terminates, from a non-terminal state."""
        raise NotImplementedError

    def _begin(self) -> None:
        self.state = self.previous_state = self.first_state

    def _advance(self, action: int) -> tuple[float, bool]:
        self.previous_state = self.state
        self.state, reward, terminated = self.transition(self.state, action)
        return reward, terminated

    def _observe(self) -> int:
        return self.state


class FiniteModel(NamedTuple):
    """A finite environment as arrays over S states and A actions.

    Terminal states, and states that cannot be reached, lead to themselves and pay nothing.
    """

    successors: IntArray  # [S, A], the state each action leads to
    rewards: FloatArray  # [S, A]
    start: FloatArray  # [S], the distribution of the first state
    terminal: BoolArray  # [S]
    reachable: BoolArray  # [S], from the start

    @property
    def acting(self) -> BoolArray:
        """States in which an agent can find itself having to act, [S]."""
        return self.reachable & ~self.terminal

    def transitions(self) -> FloatArray:
        """P(s' | s, a) as a dense array [S, A, S']; mind its size."""
        num_states, num_actions = self.successors.shape
        dense = np.zeros((num_states, num_actions, num_states))
        np.put_along_axis(dense, self.successors[:, :, None], 1.0, axis=2)
        return dense


def finite_model(env: FiniteEnv) -> FiniteModel:
    """The arrays of an environment, found by taking every action in every reachable state."""
    num_states, num_actions = env.num_states, env.num_actions
    successors = np.repeat(np.arange(num_states)[:, None], num_actions, axis=1)
    rewards = np.zeros((num_states, num_actions))
    terminal = np.zeros(num_states, dtype=np.bool_)
    reachable = np.zeros(num_states, dtype=np.bool_)
    reachable[env.first_state] = True
    waiting = [env.first_state]
    while waiting:
        state = waiting.pop()
        for action in range(num_actions):
            successor, reward, terminated = env.transition(state, action)
            successors[state, action], rewards[state, action] = successor, reward
            terminal[successor] |= terminated
            if not reachable[successor]:
                reachable[successor] = True
                if not terminated:
                    waiting.append(successor)
    start = (np.arange(num_states) == env.first_state).astype(np.float64)
    return FiniteModel(successors, rewards, start, terminal, reachable)
