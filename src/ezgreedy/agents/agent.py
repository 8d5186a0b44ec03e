"""What a training loop asks of an agent, whichever it is."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from ezgreedy.atari.lanes import LaneSteps
from ezgreedy.atari.protocol import Frames
from ezgreedy.requirements import BoolArray, IntArray


class Surface(NamedTuple):
    """What an agent must know about the game that it plays."""

    num_actions: int
    frame_shape: tuple[int, ...]  # of a single frame: (planes, height, width), or (features,)
    stacked_frames: int
    largest_pixel: float
    frame_dtype: np.dtype[Any] = np.dtype(np.uint8)  # uint16 for codes of colours

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """(stacked_frames · planes, height, width), or (stacked_frames · features,)."""
        planes, *sides = self.frame_shape
        return self.stacked_frames * planes, *sides


class Policy(Protocol):
    """Acts in a batch of lanes, call by call, and learns nothing."""

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes].

        Args:
            observations: what each lane shows, [lanes, …].
            starts: where that is the first observation of an episode, [lanes].
        """

    def hear(self, steps: LaneSteps) -> None:
        """Learn what came of the actions: policies with a memory see rewards in this way."""

    @property
    def exploring(self) -> BoolArray:
        """Which lanes the last actions explored in, [lanes]."""


class Agent(Protocol):
    """Acts in a batch of lanes, remembers what came of it and learns from it."""

    @property
    def num_updates(self) -> int:
        """How often it has learned so far."""

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes]; as in `Policy`."""

    def observe(self, steps: LaneSteps) -> None:
        """Take in what the last actions led to, and learn whenever it is time to."""

    def evaluation_policy(self, lanes: int, seed: int, epsilon: float | None = None) -> Policy:
        """The agent as it is now, acting with the settings of evaluation.

        Nothing that it does or draws changes the agent.

        Args:
            lanes: how many environments.
            seed: of everything random in it.
            epsilon: in place of the ε of evaluation.
        """

    def measurements(self) -> dict[str, float]:
        """What happened since the last call, as numbers to be reported."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that the future depends on: plain data, bytes, arrays and `Tail`s."""

    def load_policy(self, state: Mapping[str, Any]) -> None:
        """Take from such a state what `evaluation_policy` depends on, and leave the rest."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of an agent with the same settings."""
