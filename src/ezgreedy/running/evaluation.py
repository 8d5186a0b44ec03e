"""How good is an agent now? Whole games, raw scores, learning frozen.

An evaluation has environments and streams of its own, so nothing in training depends on whether
and when there was one; what it finds depends on the agent, the run's seed and its number alone.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ezgreedy.agents.agent import Policy
from ezgreedy.atari.lanes import Lanes
from ezgreedy.requirements import IntArray
from ezgreedy.running.settings import EvaluationSettings


class Evaluation(NamedTuple):
    """The scores of one evaluation."""

    returns: list[float]  # of finished episodes, raw, in the order in which they finished
    unfinished: list[float]  # what the episodes had earned that were cut off by the end
    frames: int  # emulator frames played
    explored_share: float  # of steps

    @property
    def mean_return(self) -> float:
        """Over finished episodes; over the unfinished ones if none finished."""
        return float(np.mean(self.returns if self.returns else self.unfinished))

    def record(self) -> dict[str, Any]:
        """As a line of results."""
        return {
            "mean_return": self.mean_return,
            "episodes": len(self.returns),
            "returns": self.returns,
            "unfinished": self.unfinished,
            "evaluation_frames": self.frames,
            "explored_share": self.explored_share,
        }


def evaluate(
    policy: Policy,
    lanes: Lanes,
    settings: EvaluationSettings,
    stops: Callable[[], bool] | None = None,
) -> Evaluation | None:
    """Plays for as many frames, over all lanes together, or as many episodes as the settings say.

    Episodes count in the order in which they begin. Counting them as they end would prefer short
    ones, of which lanes that play side by side finish more.

    Args:
        policy: who plays.
        lanes: what is played; fresh ones.
        settings: for how long.
        stops: asked at every step; once it says True the evaluation is given up.

    Returns:
        None if it was given up.
    """
    observations = lanes.reset()
    starts = np.ones(lanes.lanes, dtype=np.bool_)
    returns: list[float] = []
    running = np.zeros(lanes.lanes)
    counted: IntArray = np.zeros(lanes.lanes, dtype=np.int64)  # frames of the running episodes
    most_episodes = math.inf if settings.episodes is None else settings.episodes
    numbers = np.arange(lanes.lanes)  # of the running episodes, in the order of their beginnings
    num_begun = lanes.lanes
    num_frames = num_steps = num_explored = 0
    while num_frames < settings.frames and len(returns) < most_episodes:
        if stops is not None and stops():
            return None
        steps = lanes.step(policy.act(observations, starts))
        policy.hear(steps)
        num_explored += int(policy.exploring.sum())
        num_steps += lanes.lanes
        num_frames += int((steps.episode_frames - counted).sum())
        counts = numbers < most_episodes
        returns += steps.episode_returns[steps.finished & counts].tolist()
        for lane in np.flatnonzero(steps.finished).tolist():
            numbers[lane] = num_begun
            num_begun += 1
        running = np.where(steps.finished, 0.0, steps.episode_returns)
        counted = np.where(steps.finished, 0, steps.episode_frames)
        observations, starts = steps.observations, steps.finished
    unfinished = running[numbers < most_episodes].tolist()
    return Evaluation(returns, unfinished, num_frames, num_explored / num_steps)
