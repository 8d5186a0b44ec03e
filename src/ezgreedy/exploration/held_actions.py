"""εz-greedy for continuous actions: with probability ε, hold one random action for n ~ z steps.

The literal translation of the paper's method to a box of actions. When options start, how long they
last and when they end is decided by an `EZGreedy` that knows a single action, "hold"; this module
only says what is held. NumPy is all it needs.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.exploration.explorer import Counters
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.exploration.streams import Streams
from ezgreedy.requirements import BoolArray, FloatArray, IntArray


class Holding:
    """Which lanes hold a draw, and when a new one is due.

    Args:
        size: numbers in a draw.
        epsilon: probability of beginning to hold, as for `EZGreedy`.
        durations: law of the number of steps for which a draw is held.
        lanes: number of environments stepped together.
        seed: any non-negative int.
        first_lane: the fleet-wide number of this batch's first lane.
    """

    def __init__(
        self,
        size: int,
        epsilon: object,
        durations: DurationLaw | None,
        lanes: int,
        seed: int,
        first_lane: int,
    ) -> None:
        self.options = EZGreedy(1, epsilon, durations, lanes, seed, first_lane=first_lane)
        self.size = require.integer("size", size, least=1)
        self.held: FloatArray = np.zeros((self.options.lanes, self.size))
        self._nothing: IntArray = np.zeros(self.options.lanes, dtype=np.int64)

    def begins(
        self, starts: BoolArray | None, active: BoolArray | None, ends: BoolArray | None
    ) -> tuple[IntArray, IntArray]:
        """Takes one step; returns the lanes that need a new draw, and the step of each lane."""
        steps, running = self.options.steps, self.options.remaining > 0
        self.options(self._nothing, starts, active, None, ends)
        for mask in (starts, ends):
            if mask is not None:
                running &= ~np.asarray(mask)
        return np.flatnonzero(self.options.exploring & ~running), steps

    def state_dict(self) -> dict[str, Any]:
        """The running options and what they hold."""
        return {"options": self.options.state_dict(), "held": self.held.tolist()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state with the same arguments."""
        if not isinstance(state, Mapping) or not {"options", "held"} <= state.keys():
            raise require.refuse("state", "have the keys ['held', 'options']", state)
        held = np.array(state["held"], dtype=np.float64)
        if held.shape != self.held.shape or not np.isfinite(held).all():
            rule = f"be finite numbers of shape {self.held.shape}"
            raise require.refuse("state['held']", rule, held.shape)
        self.options.load_state_dict(state["options"])
        self.held = held


class HeldActions:
    """εz-greedy over a box: hold a uniform action for n steps, or follow the greedy action.

        explore = HeldActions(low=[-1, -1], high=[1, 1], epsilon=0.1, lanes=8, seed=0)
        actions = explore(policy_actions, starts=starts)

    Args:
        low: least value of every dimension of an action.
        high: largest value of every dimension.
        epsilon: probability of *starting* an option on a step that is not inside one: a number,
            one number per lane, or a function of the lane's absolute step count.
        durations: the law of the number of plays; `Zeta()` by default.
        lanes: number of environments stepped together.
        seed: any non-negative int; with the lane's number it determines the lane's tape.
        first_lane: the fleet-wide number of this batch's first lane.
    """

    def __init__(
        self,
        low: object,
        high: object,
        epsilon: object,
        durations: DurationLaw | None = None,
        lanes: int = 1,
        seed: int = 0,
        *,
        first_lane: int = 0,
    ) -> None:
        self.low, self.high = _bounds(low, high)
        self._holding = Holding(len(self.low), epsilon, durations, lanes, seed, first_lane)
        self.lanes = self._holding.options.lanes

    def __call__(
        self,
        greedy: object,
        starts: BoolArray | None = None,
        active: BoolArray | None = None,
        ends: BoolArray | None = None,
    ) -> FloatArray:
        """The actions to execute, [lanes, size].

        Args:
            greedy: the agent's own actions, [lanes, size]; they may lie outside the box.
            starts: as for `EZGreedy`.
            active: as for `EZGreedy`.
            ends: as for `EZGreedy`.
        """
        chosen = np.asarray(greedy, dtype=np.float64)
        shape = (self.lanes, len(self.low))
        if chosen.shape != shape:
            raise require.refuse("greedy", f"have shape {shape}", chosen.shape)
        if not np.isfinite(chosen).all():
            raise require.refuse("greedy", "be finite", chosen.tolist())
        holding = self._holding
        fresh, steps = holding.begins(starts, active, ends)
        streams = holding.options.streams
        uniforms = streams.noise_uniforms(streams.words(steps[fresh], fresh), len(self.low))
        holding.held[fresh] = self.low + uniforms * (self.high - self.low)
        return np.where(holding.options.exploring[:, None], holding.held, chosen)

    @property
    def steps(self) -> IntArray:
        """Steps that each lane has taken, [lanes]."""
        return self._holding.options.steps

    @property
    def streams(self) -> Streams:
        """The streams that all draws come from."""
        return self._holding.options.streams

    @property
    def exploring(self) -> BoolArray:
        """Which lanes an option acted on in the last decision, [lanes]."""
        return self._holding.options.exploring

    @property
    def remaining(self) -> IntArray:
        """Plays of the running option still to come after the last one, [lanes]."""
        return self._holding.options.remaining

    @property
    def epsilon(self) -> object:
        """The ε that was given; assignable."""
        return self._holding.options.epsilon

    @epsilon.setter
    def epsilon(self, value: object) -> None:
        self._holding.options.epsilon = value

    @property
    def counters(self) -> Counters:
        """Counts of what has happened so far, summed over lanes."""
        return self._holding.options.counters

    def reset(self, finished: BoolArray) -> None:
        """Ends the options of lanes whose episode has ended."""
        self._holding.options.reset(finished)

    def state_dict(self) -> dict[str, Any]:
        """Everything a later process needs to continue the same tape, as plain JSON-able data."""
        return self._holding.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a `state_dict` of a policy made with the same arguments."""
        self._holding.load_state_dict(state)


def _bounds(low: object, high: object) -> tuple[FloatArray, FloatArray]:
    lows, highs = (np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in (low, high))
    if lows.ndim != 1 or lows.shape != highs.shape:
        shapes = require.Described(f"shapes {lows.shape} and {highs.shape}")
        raise require.refuse("low and high", "be lists of the same length", shapes)
    if not (np.isfinite(lows).all() and np.isfinite(highs).all() and (lows <= highs).all()):
        bounds = require.Described(f"{lows.tolist()} and {highs.tolist()}")
        raise require.refuse("low and high", "be finite, low below high", bounds)
    return lows, highs
