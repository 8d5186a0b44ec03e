"""The one loop of play: act, step, observe, and update the trackers.

Training, evaluations, films and the actors of a fleet all use `Play`. The trackers that they pass
to it decide what is counted. Between two steps, play can be saved and continued bit for bit.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from ezgreedy.agents.agent import Player, Policy
from ezgreedy.games.lanes import Lanes, LaneSteps
from ezgreedy.games.protocol import Frames
from ezgreedy.requirements import BoolArray, IntArray


class Tracker(Protocol):
    """Counts something, step by step."""

    def track(self, steps: LaneSteps) -> None:
        """Count one more step of every lane, after the player has observed it."""


class Play:
    """A player in its lanes, starting from the first observations of new episodes.

        frames = FrameCount(lanes.lanes)
        play = Play(policy, lanes, frames)
        for steps in play.steps(100):
            ...

    Args:
        player: the agent or policy that acts.
        lanes: the games; they are reset.
        trackers: trackers, updated in this order.
        check: called with every step before the player observes it; raises to reject the step.
    """

    def __init__(
        self,
        player: Player,
        lanes: Lanes,
        *trackers: Tracker,
        check: Callable[[LaneSteps], None] | None = None,
    ) -> None:
        self.player, self.lanes = player, lanes
        self._trackers, self._check = trackers, check
        self.observations: Frames = lanes.reset()  # the next to act on
        self.starts: BoolArray = np.ones(lanes.lanes, dtype=np.bool_)  # first of an episode?

    def step(self) -> LaneSteps:
        """Take one action in every lane and return the results."""
        steps = self.lanes.step(self.player.act(self.observations, self.starts))
        if self._check is not None:
            self._check(steps)
        self.player.observe(steps)
        for tracker in self._trackers:
            tracker.track(steps)
        self.observations, self.starts = steps.observations, steps.finished
        return steps

    def steps(self, num_steps: int) -> Iterator[LaneSteps]:
        """Take this many steps, yielding each."""
        for _ in range(num_steps):
            yield self.step()

    def state_dict(self) -> dict[str, Any]:
        """State of the games and their observations; players and trackers have their own."""
        return {
            "lanes": self.lanes.state_dict(),
            "observations": self.observations,
            "starts": self.starts,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state with the same game and number of lanes."""
        self.lanes.load_state_dict(state["lanes"])
        self.observations, self.starts = state["observations"], state["starts"]


class FrameCount:
    """Emulator frames over all lanes.

    Args:
        lanes: number of lanes.
    """

    def __init__(self, lanes: int) -> None:
        self.frames = 0  # since the last `take`
        self.counted: IntArray = np.zeros(lanes, dtype=np.int64)  # frames of the running episodes

    def track(self, steps: LaneSteps) -> None:
        """Count the frames of one step."""
        self.frames += int((steps.episode_frames - self.counted).sum())
        self.counted = np.where(steps.finished, 0, steps.episode_frames)

    def take(self) -> int:
        """Frames since the last call."""
        frames, self.frames = self.frames, 0
        return frames


class FinishedReturns:
    """Raw returns and lengths of finished episodes."""

    def __init__(self) -> None:
        self.returns: list[float] = []  # since the last `take`
        self.lengths: list[int] = []  # in frames, since the last `take_lengths`

    def track(self, steps: LaneSteps) -> None:
        """Keep the returns and lengths of the episodes that finished in one step."""
        self.returns += steps.episode_returns[steps.finished].tolist()
        self.lengths += steps.episode_frames[steps.finished].tolist()

    def take_lengths(self) -> list[int]:
        """Lengths since the last call."""
        lengths, self.lengths = self.lengths, []
        return lengths

    def take(self) -> list[float]:
        """Returns since the last call."""
        returns, self.returns = self.returns, []
        return returns


class ExploredSteps:
    """The share of steps on which a policy explored.

    Args:
        policy: the policy that plays.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.num_steps = self.num_explored = 0

    def track(self, steps: LaneSteps) -> None:
        """Count one step of every lane."""
        self.num_explored += int(self._policy.exploring.sum())
        self.num_steps += len(steps.finished)

    @property
    def share(self) -> float:
        """Explored steps over all steps."""
        return self.num_explored / self.num_steps


class FirstEpisodes:
    """Returns of the first episodes, counted in the order in which they begin.

    Counting them as they end would favour short episodes, because lanes that play in parallel
    finish more of those.

    Args:
        lanes: number of lanes.
        most_episodes: number of episodes to count; infinity for all.
    """

    def __init__(self, lanes: int, most_episodes: float) -> None:
        self.returns: list[float] = []  # finished episodes, in the order of their ends
        self._most_episodes = most_episodes
        self._numbers = np.arange(lanes)  # running episodes, numbered as they start
        self._num_begun = lanes
        self._running = np.zeros(lanes)

    def track(self, steps: LaneSteps) -> None:
        """Keep the returns of counted episodes that finished in one step."""
        counts = self._numbers < self._most_episodes
        self.returns += steps.episode_returns[steps.finished & counts].tolist()
        for lane in np.flatnonzero(steps.finished).tolist():
            self._numbers[lane] = self._num_begun
            self._num_begun += 1
        self._running = np.where(steps.finished, 0.0, steps.episode_returns)

    @property
    def are_complete(self) -> bool:
        """Whether all counted episodes have finished."""
        return len(self.returns) >= self._most_episodes

    @property
    def unfinished(self) -> list[float]:
        """Returns so far of the counted episodes still running."""
        returns: list[float] = self._running[self._numbers < self._most_episodes].tolist()
        return returns
