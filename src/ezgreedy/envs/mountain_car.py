"""MountainCar with a sparse reward: will exploration rock the car out of the valley at all?

The dynamics are Sutton and Barto's, as in Gymnasium's MountainCar; only the reward differs. It is 1
on reaching the goal at the top right and 0 before, so nothing hints at the need to build momentum.
The dense version, for comparison, pays −1 on every step, as Gymnasium's does.
"""

import math
from typing import Literal

import numpy as np
from gymnasium.spaces import Box

from ezgreedy import requirements as require
from ezgreedy.compilation import jit
from ezgreedy.envs.drawing import AGENT, GOLD, INK, LEAF, PAPER, STONE, Canvas, Picture, blend
from ezgreedy.envs.study_env import StudyEnv
from ezgreedy.requirements import FloatArray

BACK, COAST, FORTH = 0, 1, 2
NUM_ACTIONS = 3
STEP_LIMIT = 5000

LEAST_POSITION, MOST_POSITION = -1.2, 0.6
MOST_SPEED = 0.07
GOAL_POSITION = 0.5
GOAL_REWARD = 1.0
DENSE_REWARD = -1.0  # of every step, the last included
FORCE = 0.001
GRAVITY = 0.0025
# The first position is uniform on this interval, and the car at rest.
LEAST_START, MOST_START = -0.6, -0.4


@jit
def start(uniform: float) -> tuple[float, float]:
    """The first (position, velocity) from a draw that is uniform on [0, 1)."""
    return LEAST_START + (MOST_START - LEAST_START) * uniform, 0.0


@jit
def step(position: float, velocity: float, action: int) -> tuple[float, float, float, bool]:
    """One step: (position, velocity, sparse reward, terminated)."""
    velocity += (action - 1) * FORCE + math.cos(3 * position) * (-GRAVITY)
    velocity = min(max(velocity, -MOST_SPEED), MOST_SPEED)
    position = min(max(position + velocity, LEAST_POSITION), MOST_POSITION)
    if position == LEAST_POSITION and velocity < 0.0:
        velocity = 0.0  # the wall on the left takes all momentum
    terminated = position >= GOAL_POSITION and velocity >= 0.0
    return position, velocity, GOAL_REWARD if terminated else 0.0, terminated


class MountainCar(StudyEnv[FloatArray]):
    """The car as a Gymnasium environment; it observes its position and velocity as float64.

    Args:
        rewards: "sparse" for 1 at the goal, "dense" for −1 on every step.
        first_position: where episodes begin; drawn anew for each of them if None.
        render_mode: "rgb_array" or None.
    """

    def __init__(
        self,
        rewards: Literal["sparse", "dense"] = "sparse",
        first_position: float | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.is_dense = require.one_of("rewards", rewards, ("sparse", "dense")) == "dense"
        self.first_position = first_position
        if first_position is not None:
            require.number("first_position", first_position, LEAST_POSITION, GOAL_POSITION)
        least = np.array([LEAST_POSITION, -MOST_SPEED])
        most = np.array([MOST_POSITION, MOST_SPEED])
        super().__init__(Box(least, most, dtype=np.float64), NUM_ACTIONS, render_mode)
        self.position, self.velocity = start(0.5)

    def _begin(self) -> None:
        self.position, self.velocity = start(self.np_random.random())
        if self.first_position is not None:
            self.position = self.first_position

    def _advance(self, action: int) -> tuple[float, bool]:
        self.position, self.velocity, reward, terminated = step(
            self.position, self.velocity, action
        )
        return DENSE_REWARD if self.is_dense else reward, terminated

    def _observe(self) -> FloatArray:
        return np.array([self.position, self.velocity])

    def _draw(self) -> Picture:
        """The hills, a flag at the goal, and the car on the slope."""
        width, height = 600, 400
        scale = width / (MOST_POSITION - LEAST_POSITION)
        canvas = Canvas(width, height, blend((196, 220, 235), PAPER, np.linspace(0, 1, height)))

        def ground(positions: FloatArray) -> FloatArray:
            return height - 24 - scale * (0.45 * np.sin(3 * positions) + 0.45)

        columns = LEAST_POSITION + np.arange(0.5, width, dtype=np.float64) / scale
        canvas.below(ground(columns), LEAF)
        canvas.below(ground(columns) + 10.0, (74, 122, 92))
        flag_y, car_y = ground(np.array([GOAL_POSITION, self.position])).tolist()
        flag_x = (GOAL_POSITION - LEAST_POSITION) * scale
        canvas.segment((flag_x, flag_y), (flag_x, flag_y - 56), 1.5, INK)
        canvas.triangle(
            ((flag_x, flag_y - 56), (flag_x, flag_y - 34), (flag_x + 26, flag_y - 45)), GOLD
        )
        self._draw_car(canvas, scale, car_y)
        return canvas.picture()

    def _draw_car(self, canvas: Canvas, scale: float, ground: float) -> None:
        """A body and two wheels, turned with the slope."""
        tilt = math.atan(0.45 * 3 * math.cos(3 * self.position))
        x = (self.position - LEAST_POSITION) * scale

        def at(along: float, up: float) -> tuple[float, float]:
            return (
                x + along * math.cos(tilt) - up * math.sin(tilt),
                ground - along * math.sin(tilt) - up * math.cos(tilt),
            )

        canvas.segment(at(-9, 25), at(7, 25), 8, AGENT)
        canvas.segment(at(-7, 26), at(5, 26), 4, PAPER)
        canvas.segment(at(-24, 14), at(24, 14), 6.5, AGENT)
        for along in (-15.0, 15.0):
            canvas.disc(at(along, 7), 7.5, INK)
            canvas.disc(at(along, 7), 3, STONE)
