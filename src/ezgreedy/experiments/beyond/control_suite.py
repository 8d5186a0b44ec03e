"""dm_control's tasks as environments that show two coordinates of their state, for maps."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ezgreedy.requirements import FloatArray

# dm_control looks for a display as soon as it is imported; only its physics is used here.
os.environ.setdefault("MUJOCO_GL", "disabled")

from dm_control import suite

Point = tuple[float, float]


class SuiteTask(gymnasium.Env[FloatArray, NDArray[np.float64]]):
    """A task of dm_control's suite, truncated by its own time limit.

    Args:
        domain: the suite's name of the domain.
        task: the suite's name of the task.
        see: physics ↦ the two coordinates to observe.
        low: lower ends of their ranges.
        high: upper ends of their ranges.
    """

    def __init__(
        self, domain: str, task: str, see: Callable[[Any], Point], low: Point, high: Point
    ) -> None:
        self.suite_env = suite.load(domain, task, task_kwargs={"random": 0})
        actions = self.suite_env.action_spec()
        self.action_space = spaces.Box(actions.minimum, actions.maximum, dtype=np.float64)
        self.observation_space = spaces.Box(np.array(low), np.array(high), dtype=np.float64)
        self._see = see

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Starts an episode; a seed restarts the task's own random stream."""
        super().reset(seed=seed)
        if seed is not None:
            self.suite_env.task.random.seed(seed)
        self.suite_env.reset()
        return self._observation(), {}

    def step(
        self, action: NDArray[np.float64]
    ) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Takes one step of the task's control; dm_control says by the discount what an end is."""
        outcome = self.suite_env.step(action)
        is_terminal = outcome.last() and outcome.discount == 0.0
        is_cut = outcome.last() and not is_terminal
        return self._observation(), float(outcome.reward), is_terminal, is_cut, {}

    def _observation(self) -> FloatArray:
        return np.array(self._see(self.suite_env.physics))


def _pole(physics: Any) -> Point:
    """The pole's angle, 0 upright, and its velocity."""
    angle = float(physics.data.qpos[1])
    return (angle + np.pi) % (2.0 * np.pi) - np.pi, float(physics.data.qvel[1])


def _ball(physics: Any) -> Point:
    """The ball as seen from the cup's end of the string: its angle, 0 above, and its distance."""
    places = physics.named.data.site_xpos
    x, _, z = places["ball"] - places["cup"]
    return float(np.arctan2(x, z)), float(np.hypot(x, z))


# The pole's velocities are those of the maps of Figure 3; the string is 0.3 long.
swing_up = partial(
    SuiteTask, "cartpole", "swingup_sparse", _pole, low=(-np.pi, -15.0), high=(np.pi, 15.0)
)
catch = partial(SuiteTask, "ball_in_cup", "catch", _ball, low=(-np.pi, 0.0), high=(np.pi, 0.3))
