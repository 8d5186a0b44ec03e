"""The recurrent inputs of every lane: LSTM state, last action and last reward.

States are reset to zeros at the start of an episode only. Needs torch.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.agents.r2d2.network import State
from ezgreedy.learning.tensor_states import as_arrays, as_tensors
from ezgreedy.replay.sequence_batch import NO_ACTION
from ezgreedy.requirements import BoolArray, IntArray

Floats = NDArray[np.float32]


class Values(Protocol):
    """A network, as `SequenceLearner.values` evaluates it."""

    def __call__(
        self, observations: NDArray[Any], actions: IntArray, rewards: Floats, state: State, /
    ) -> tuple[Floats, State]:
        """Rescaled values [lanes, (heads,) actions], and the state after the observations."""


class Recurrence:
    """The recurrent inputs of a batch of lanes.

        q = recurrence(observations, starts)
        ...
        recurrence.observe(actions, rewards)

    Args:
        values: the network.
        state_shape: shape of h and of c for one lane.
        lanes: number of lanes.
        device: device of the network.
    """

    def __init__(
        self, values: Values, state_shape: tuple[int, ...], lanes: int, device: str = "cpu"
    ) -> None:
        self._values = values
        self._device = torch.device(device)
        zeros = torch.zeros((lanes, *state_shape), device=self._device)
        self._state = self._following = State(zeros, zeros.clone())
        self._actions: IntArray = np.full(lanes, NO_ACTION, dtype=np.int64)
        self._rewards: Floats = np.zeros(lanes, dtype=np.float32)

    def __call__(self, observations: NDArray[Any], starts: BoolArray) -> Floats:
        """Rescaled values of every lane; the states advance by these observations.

        Args:
            observations: [lanes, …].
            starts: whether it is the first of an episode, [lanes].
        """
        if starts.any():
            self._state = self._state.restarted(torch.as_tensor(starts, device=self._device))
            self._actions = np.where(starts, NO_ACTION, self._actions)
            self._rewards = np.where(starts, np.float32(0.0), self._rewards)
        q, self._following = self._values(observations, self._actions, self._rewards, self._state)
        return q

    @property
    def before(self) -> tuple[Floats, Floats]:
        """The states h and c before the last observations, [lanes, …]; read-only."""
        return self._state.h.cpu().numpy(), self._state.c.cpu().numpy()

    def observe(self, actions: IntArray, rewards: Floats) -> None:
        """Store the actions taken in the last observations and their rewards, [lanes]."""
        self._actions, self._rewards, self._state = actions, rewards, self._following

    def ahead(self, observations: NDArray[Any], lanes: IntArray) -> Floats:
        """Values of the next observations of some lanes, without advancing: for truncated episodes.

        Args:
            observations: observations of these lanes, [count, …].
            lanes: numbers of the lanes.
        """
        rows = torch.as_tensor(lanes, device=self._device)
        state = State(self._state.h[rows], self._state.c[rows])
        return self._values(observations, self._actions[lanes], self._rewards[lanes], state)[0]

    def state_dict(self) -> dict[str, Any]:
        """States, actions and rewards as arrays; call after `observe`."""
        state = as_arrays({"h": self._state.h, "c": self._state.c})
        return {**state, "actions": self._actions, "rewards": self._rewards}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state with the same network and number of lanes."""
        shape = tuple(self._state.h.shape)
        if state["h"].shape != shape or state["c"].shape != shape:
            raise require.refuse("state", f"hold h and c of shape {shape}", state["h"].shape)
        tensors = as_tensors({"h": state["h"], "c": state["c"]})
        self._state = State(tensors["h"].to(self._device), tensors["c"].to(self._device))
        self._following = self._state
        self._actions, self._rewards = state["actions"].copy(), state["rewards"].copy()
