"""Did the last steps keep what their values promised?

The value promise discrepancy of Pislar et al. (*When should agents explore?*, 2021): the difference
between the value of a state k steps ago and what has come of it since.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.seen import Seen
from ezgreedy.requirements import BoolArray, FloatArray, IntArray


class ValuePromise:
    """The value promise discrepancy over the last k steps of every lane.

    Args:
        lanes: number of environments stepped together.
        discount: γ.
        steps: k.
        reading: "consistent" or "printed", see `StopOnDiscrepancy`.
    """

    def __init__(self, lanes: int, *, discount: float, steps: int, reading: str) -> None:
        self.lanes = require.integer("lanes", lanes, least=1)
        self.discount = require.number("discount", discount, 0.0, 1.0)
        self.steps = require.integer("steps", steps, least=1)
        self.reading = require.one_of("reading", reading, ("consistent", "printed"))
        # Values of the last k + 1 states, and the rewards that led to them: a ring of rows for
        # each, in one array, so that a discrepancy is a single product with the ring's weights.
        self._rows = self.steps + 1
        self._ring: FloatArray = np.zeros((2 * self._rows, self.lanes))
        self._newest = self.steps  # row of the newest values
        self._weights = self._weights_by_row()
        self._length: IntArray = np.zeros(self.lanes, dtype=np.int64)  # states of this episode
        self._is_known: BoolArray | None = np.zeros(self.lanes, dtype=np.bool_)  # None for all

    def _weights_by_row(self) -> FloatArray:
        """Weights of the ring's rows for every row that may be the newest, [k + 1, 2(k + 1)]."""
        powers = self.discount ** np.arange(self.steps)  # of the oldest reward first
        is_consistent = self.reading == "consistent"
        values, rewards = np.zeros(self._rows), np.zeros(self._rows)
        values[0] = 1.0
        values[-1] = -(self.discount**self.steps if is_consistent else 1.0)
        rewards[1:] = -(powers if is_consistent else powers[::-1])
        return np.array(
            [
                np.concatenate([np.roll(values, row + 1), np.roll(rewards, row + 1)])
                for row in range(self._rows)
            ]
        )

    def __call__(self, seen: Seen) -> tuple[FloatArray, BoolArray | None]:
        """The discrepancy, [lanes], and where it is known; None for everywhere.

        It is unknown within the first k steps of an episode, and in lanes that take no step.
        """
        assert seen.rewards is not None and seen.values is not None  # noqa: PT018
        is_whole = np.count_nonzero(seen.active) == self.lanes
        if is_whole:
            self._newest = (self._newest + 1) % self._rows
            self._ring[self._newest] = seen.values
            self._ring[self._newest + self._rows] = seen.rewards
        else:
            self._push_some(seen.active, seen.values, seen.rewards)
        if self._is_known is not None:
            self._length = np.minimum(self._length + seen.active, self._rows)
            known = self._length > self.steps
            self._is_known = None if np.count_nonzero(known) == self.lanes else known
        if is_whole:
            return self._sizes(), self._is_known
        return self._sizes(), seen.active if self._is_known is None else known & seen.active

    def _push_some(self, active: BoolArray, values: FloatArray, rewards: FloatArray) -> None:
        """Adds a step to some lanes; the ring is turned so that its first row is the oldest."""
        for half, newest in zip(self._straightened(), (values, rewards), strict=True):
            half[:-1, active] = half[1:, active]
            half[-1, active] = newest[active]

    def _straightened(self) -> FloatArray:
        """The ring as [values or rewards, k + 1, lanes], oldest first."""
        ring = self._ring.reshape(2, self._rows, self.lanes)
        if self._newest != self.steps:
            ring[...] = np.roll(ring, self.steps - self._newest, axis=1)
            self._newest = self.steps
        return ring

    def _sizes(self) -> FloatArray:
        found: FloatArray = self._weights[self._newest] @ self._ring
        return np.abs(found, out=found)

    def discrepancies(self) -> FloatArray:
        """The discrepancy at the last step of every lane, [lanes]; NaN early in an episode."""
        return np.where(self._length > self.steps, self._sizes(), np.nan)

    def forget(self, finished: BoolArray) -> None:
        """Forgets the episodes of these lanes."""
        if np.count_nonzero(finished):
            self._length = np.where(finished, 0, self._length)
            self._is_known = self._length > self.steps

    def _arguments(self) -> dict[str, Any]:
        return {"discount": self.discount, "reading": self.reading}

    def state_dict(self) -> dict[str, Any]:
        """The last k steps of every lane."""
        values, rewards = self._straightened()
        return {
            **self._arguments(),
            "values": values.T.tolist(),
            "rewards": rewards[1:].T.tolist(),
            "length": self._length.tolist(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of a promise made with the same arguments."""
        for name, value in self._arguments().items():
            if state[name] != value:
                raise require.refuse(f"state[{name!r}]", f"equal {value!r}", state[name])
        values, rewards = np.array(state["values"]), np.array(state["rewards"])
        shape = (self.lanes, self._rows)
        if values.shape != shape:
            raise require.refuse("state['values']", f"have shape {shape}", values.shape)
        ring = self._straightened()
        ring[0], ring[1, 1:] = values.T, rewards.T
        self._length = np.array(state["length"], dtype=np.int64)
        self._is_known = self._length > self.steps
