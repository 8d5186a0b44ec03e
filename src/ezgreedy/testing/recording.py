"""What was really executed: environments that write down every action they are given.

The record is made where it cannot be wrong, inside the environment. An observation says which lane,
episode and step it belongs to, so that a transition in a library's replay buffer can be looked up.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ezgreedy import requirements as require

NUM_ACTIONS = 5
# Lengths of successive episodes. None is a multiple of five, some are shorter than an option, and
# lanes begin at different places of the list, so that they never end together for long.
_EPISODE_LENGTHS = (7, 1, 13, 4, 18, 3, 9, 22, 2, 11, 6)

Place = tuple[int, int, int]


class Step(NamedTuple):
    """One executed action and the ε in force."""

    action: int
    epsilon: float


class Recording:
    """Everything that the environments of one trial were asked to do.

    Args:
        lanes: number of environments.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes: list[list[list[Step]]] = [[] for _ in range(lanes)]
        self.epsilon: Callable[[int], float] = lambda lane: float("nan")

    def begin(self, lane: int) -> int:
        """Starts an episode of a lane; returns its number."""
        self.lanes[lane].append([])
        return len(self.lanes[lane]) - 1

    def add(self, lane: int, action: int) -> None:
        """Writes down an action of the lane's current episode."""
        self.lanes[lane][-1].append(Step(action, float(self.epsilon(lane))))

    @property
    def num_steps(self) -> list[int]:
        """Steps taken by each lane."""
        return [sum(map(len, episodes)) for episodes in self.lanes]

    def action_at(self, place: Place) -> int | None:
        """The action executed at a lane, episode and step; None if there was none."""
        lane, episode, step = place
        steps = self.lanes[lane][episode]
        return steps[step].action if step < len(steps) else None


class RecordedEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """An environment with five actions that records what it is asked to do.

    Args:
        recording: where to write it down.
        lane: number of this environment.
        shift: moves this environment along the list of episode lengths.
    """

    observation_space = spaces.Box(0.0, 1e6, (3,), np.float32)
    action_space = spaces.Discrete(NUM_ACTIONS)

    def __init__(self, recording: Recording, lane: int, shift: int = 0) -> None:
        self._recording, self._lane, self._shift = recording, lane, shift
        self._episode, self._step, self._length = 0, 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts the next episode."""
        super().reset(seed=seed)
        self._episode = self._recording.begin(self._lane)
        place = self._episode + 4 * self._lane + self._shift
        self._step, self._length = 0, _EPISODE_LENGTHS[place % len(_EPISODE_LENGTHS)]
        return self._observation(), {}

    def step(
        self, action: np.int64
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Records the action; even episodes terminate, odd ones are truncated."""
        if self._step >= self._length:
            received = require.Described("another step")
            raise require.refuse("the library", "reset an environment that has ended", received)
        self._recording.add(self._lane, int(action))
        self._step += 1
        ends = self._step == self._length
        truncates = bool(self._episode % 2)
        reward = float(action == 0)
        return self._observation(), reward, ends and not truncates, ends and truncates, {}

    def _observation(self) -> NDArray[np.float32]:
        return np.array([self._lane, self._episode, self._step], dtype=np.float32)


def place_of(observation: Any) -> Place:
    """The lane, episode and step that an observation of `RecordedEnv` belongs to."""
    numbers = np.asarray(observation, dtype=np.float64).ravel()
    if numbers.shape != (3,):
        rule = "be an observation of RecordedEnv, unchanged"
        raise require.refuse("observation", rule, observation)
    lane, episode, step = (round(float(number)) for number in numbers)
    return lane, episode, step


def observation_at(place: Place) -> NDArray[np.float32]:
    """The observation of a lane, episode and step."""
    return np.array(place, dtype=np.float32)
