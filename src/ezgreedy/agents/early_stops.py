"""How an agent ends options early: its rules, and what they see of its steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy.exploration.stops import Situation, StopSettings, rule_of
from ezgreedy.requirements import BoolArray, FloatArray


class EarlyStops:
    """The stopping rules of an agent in training; without rules it does nothing.

        ends = stops(frames, starts, values)
        ...
        stops.observe(rewards)

    Rules see the newest frame of every lane, so that stacking frames changes nothing, and the
    rewards that the agent learns from, without bonuses.

    Args:
        settings: the rules.
        situation: lanes, seed and discount.
    """

    def __init__(self, settings: Sequence[StopSettings], situation: Situation) -> None:
        self._rule = rule_of(settings, situation)
        self._rewards: FloatArray = np.zeros(situation.lanes)

    @property
    def read_values(self) -> bool:
        """Whether the rules need the value of every observation, also within options."""
        return self._rule is not None and "values" in self._rule.reads

    def __call__(
        self, frames: NDArray[Any], starts: BoolArray, values: NDArray[Any] | None
    ) -> BoolArray | None:
        """Where options end now, [lanes]; None without rules.

        Args:
            frames: the newest frames, [lanes, …].
            starts: whether they are the first of an episode, [lanes].
            values: the values of the observations, [lanes]; may be None unless `read_values`.
        """
        if self._rule is None:
            return None
        return self._rule(observations=frames, rewards=self._rewards, values=values, starts=starts)

    def observe(self, rewards: NDArray[Any]) -> None:
        """Remember the rewards of the last actions, [lanes]."""
        if self._rule is not None:
            self._rewards = rewards.astype(np.float64)

    def state_dict(self) -> dict[str, Any] | None:
        """What later calls depend on; None without rules."""
        if self._rule is None:
            return None
        return {"rule": _with_arrays(self._rule.state_dict()), "rewards": self._rewards.copy()}

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Continue from a state with the same rules."""
        if self._rule is not None and state is not None:
            self._rule.load_state_dict(state["rule"])
            self._rewards = np.array(state["rewards"], dtype=np.float64)


def _with_arrays(state: Any) -> Any:
    """A rule's state with observations as arrays: a fleet's frames would be millions of numbers."""
    if isinstance(state, Mapping):
        if state.keys() == {"dtype", "shape", "data"}:
            return np.array(state["data"], dtype=state["dtype"]).reshape(state["shape"])
        return {name: _with_arrays(value) for name, value in state.items()}
    if isinstance(state, list):
        return [_with_arrays(item) for item in state]
    return state
