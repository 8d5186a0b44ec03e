"""How good is an agent now? Whole games, raw scores, learning frozen.

An evaluation has its own environments and random streams, so training does not depend on when it
happens. Its scores depend only on the agent, the run's seed and the number of the evaluation.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ezgreedy.agents.agent import Policy
from ezgreedy.agents.play import ExploredSteps, FirstEpisodes, FrameCount, Play
from ezgreedy.agents.run_settings import EvaluationSettings, RunSettings
from ezgreedy.games.lanes import Lanes


class Evaluation(NamedTuple):
    """The scores of one evaluation."""

    returns: list[float]  # raw returns of finished episodes, in order of their ends
    unfinished: list[float]  # returns so far of episodes cut off by the end
    frames: int  # emulator frames played
    explored_share: float  # share of exploratory steps

    @property
    def mean_return(self) -> float:
        """Mean over finished episodes; over the unfinished ones if none finished."""
        return float(np.mean(self.returns if self.returns else self.unfinished))

    def record(self) -> dict[str, Any]:
        """The evaluation as a line of results."""
        return {
            "mean_return": self.mean_return,
            "episodes": len(self.returns),
            "returns": self.returns,
            "unfinished": self.unfinished,
            "evaluation_frames": self.frames,
            "explored_share": self.explored_share,
        }


class Played(NamedTuple):
    """What an evaluation has played so far."""

    frames: int  # over all lanes
    episodes: int  # finished ones that count


# Called at every step with what has been played, or None where that is not known; returns whether
# to abandon the evaluation.
Stops = Callable[[Played | None], bool]


def evaluate(
    policy: Policy,
    lanes: Lanes,
    settings: EvaluationSettings,
    stops: Stops | None = None,
) -> Evaluation | None:
    """Plays for the frames (over all lanes together) or episodes given in the settings.

    Args:
        policy: the policy that plays.
        lanes: the games; they are reset.
        settings: settings of the evaluation, with its length.
        stops: says whether to abandon the evaluation.

    Returns:
        The evaluation; None if it was abandoned.
    """
    most_episodes = math.inf if settings.episodes is None else settings.episodes
    frames = FrameCount(lanes.lanes)
    episodes = FirstEpisodes(lanes.lanes, most_episodes)
    explored = ExploredSteps(policy)
    play = Play(policy, lanes, frames, episodes, explored)
    while frames.frames < settings.frames and not episodes.are_complete:
        if stops is not None and stops(Played(frames.frames, len(episodes.returns))):
            return None
        play.step()
    return Evaluation(episodes.returns, episodes.unfinished, frames.frames, explored.share)


class Evaluated(Protocol):
    """Has a policy for evaluations: see `Agent`."""

    def evaluation_policy(self, lanes: int, seed: int, epsilon: float | None = None) -> Policy:
        """The current policy."""


def evaluate_agent(
    settings: RunSettings,
    agent: Evaluated,
    number: int,
    stops: Stops | None = None,
    epsilon: float | None = None,
) -> Evaluation | None:
    """One evaluation of a run; each has its own environments and random streams.

    Args:
        settings: settings of the run.
        agent: the agent that plays.
        number: number of the evaluation.
        stops: says whether to abandon the evaluation.
        epsilon: ε to explore with; None for the agent's evaluation default.

    Returns:
        The evaluation; None if it was abandoned.
    """
    seed = settings.role_seed("evaluation", number)
    num_lanes = settings.evaluation.lanes
    lanes = Lanes(settings.game, num_lanes, settings.protocol, seed=seed)
    policy = agent.evaluation_policy(num_lanes, seed, epsilon)
    return evaluate(policy, lanes, settings.evaluation, stops)
