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
        powers = self.discount ** np.arange(self.steps)  # of the oldest reward first
        self._weights = powers if self.reading == "consistent" else powers[::-1]
        self._last = self.discount**self.steps if self.reading == "consistent" else 1.0
        # One row per step of an episode: values of the last k + 1 states, rewards between them.
        self._values: FloatArray = np.zeros((self.lanes, self.steps + 1))
        self._rewards: FloatArray = np.zeros((self.lanes, self.steps))
        self._length: IntArray = np.zeros(self.lanes, dtype=np.int64)

    def __call__(self, seen: Seen) -> FloatArray:
        """The discrepancy, [lanes]; NaN within the first k steps of an episode."""
        assert seen.rewards is not None and seen.values is not None  # noqa: PT018
        active = seen.active
        if np.count_nonzero(active) == self.lanes:
            _push(self._values, seen.values)
            _push(self._rewards, seen.rewards)
        else:
            for rows, newest in ((self._values, seen.values), (self._rewards, seen.rewards)):
                moved = rows[active]
                _push(moved, newest[active])
                rows[active] = moved
        self._length = np.minimum(self._length + active, self.steps + 1)
        return self.discrepancies()

    def discrepancies(self) -> FloatArray:
        """The discrepancy at the last step of every lane, [lanes]; NaN early in an episode."""
        met = self._rewards @ self._weights + self._last * self._values[:, -1]
        return np.where(self._length > self.steps, np.abs(self._values[:, 0] - met), np.nan)

    def forget(self, finished: BoolArray) -> None:
        """Forgets the episodes of these lanes."""
        self._length = np.where(finished, 0, self._length)

    def _arguments(self) -> dict[str, Any]:
        return {"discount": self.discount, "reading": self.reading}

    def state_dict(self) -> dict[str, Any]:
        """The last k steps of every lane."""
        return {
            **self._arguments(),
            "values": self._values.tolist(),
            "rewards": self._rewards.tolist(),
            "length": self._length.tolist(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of a promise made with the same arguments."""
        for name, value in self._arguments().items():
            if state[name] != value:
                raise require.refuse(f"state[{name!r}]", f"equal {value!r}", state[name])
        values, rewards = np.array(state["values"]), np.array(state["rewards"])
        if values.shape != self._values.shape:
            raise require.refuse(
                "state['values']", f"have shape {self._values.shape}", values.shape
            )
        self._values, self._rewards = values, rewards
        self._length = np.array(state["length"], dtype=np.int64)


def _push(rows: FloatArray, newest: FloatArray) -> None:
    """Drops the oldest column and adds the newest, in place."""
    rows[:, :-1] = rows[:, 1:]
    rows[:, -1] = newest
