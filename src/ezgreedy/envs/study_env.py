"""What every environment of the study shares: Gymnasium's contract around a compiled step.

A subclass defines how an episode begins, how an action advances it, what is observed and how it is
drawn. Legal actions and running episodes are checked here, once. Time limits are Gymnasium's:
registration names them, and `gymnasium.make` reports them as `truncated`.
"""

from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete, Space

from ezgreedy import requirements as require
from ezgreedy.envs.drawing import Picture

Observation = TypeVar("Observation")

RENDERING: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}


class StudyEnv(gymnasium.Env[Observation, np.int64]):
    """An environment with a few discrete actions that draws itself with NumPy only."""

    metadata = RENDERING

    def __init__(
        self, observations: Space[Observation], num_actions: int, render_mode: str | None
    ) -> None:
        if render_mode is not None:
            require.one_of("render_mode", render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode
        self.observation_space = observations
        self.action_space = Discrete(num_actions)
        self._num_actions = num_actions
        self._has_begun = False
        self._is_running = False

    def _begin(self) -> None:
        """Puts the first state of an episode in place, drawing from `np_random` only."""
        raise NotImplementedError

    def _advance(self, action: int) -> tuple[float, bool]:
        """Moves the state on; returns the reward and whether the episode terminated."""
        raise NotImplementedError

    def _observe(self) -> Observation:
        """The observation of the state; shares no memory with it."""
        raise NotImplementedError

    def _draw(self) -> Picture:
        """The state as an image."""
        raise NotImplementedError

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode; a seed restarts the stream that first states are drawn from."""
        if options:
            raise require.refuse("options", "be empty: episodes begin in one way", options)
        super().reset(seed=seed)
        self._begin()
        self._has_begun = self._is_running = True
        return self._observe(), {}

    def step(self, action: object) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Takes one action; `truncated` is always False here, see the module's docstring."""
        if not self._is_running:
            # A compiled step does not check its bounds, so a state past the end must not enter it.
            state = "terminated" if self._has_begun else "has not begun"
            raise gymnasium.error.ResetNeeded(f"the episode {state}; call reset before step")
        action = require.integer("action", action, least=0, most=self._num_actions - 1)
        reward, terminated = self._advance(action)
        self._is_running = not terminated
        return self._observe(), reward, terminated, False, {}

    def render(self) -> Picture:
        """The current state as an RGB image, uint8 [height, width, 3]."""
        if self.render_mode is None:
            raise require.refuse("render_mode", "be 'rgb_array' to render", None)
        if not self._has_begun:
            raise gymnasium.error.ResetNeeded("the episode has not begun; call reset before render")
        return self._draw()
