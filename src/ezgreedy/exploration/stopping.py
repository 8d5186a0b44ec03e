"""When should a running option end early? Rules that turn what a loop knows into `ends`.

    stop = StopOnUnchanged(lanes=8)
    ...
    ends = stop(observations=observations, starts=starts)
    actions = explore(greedy, starts=starts, ends=ends)

A rule is called once per step, before the policy, with what led to the present observation. It says
for every lane whether an option that runs there should end; lanes without an option are told too,
and the policy ignores that. Like a policy, a rule has lanes, is reset at episode ends, and is saved
and continued exactly. NumPy is all it needs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.exploration.explorer import refuse_saved
from ezgreedy.exploration.homeostasis import Homeostat
from ezgreedy.exploration.seen import Seen
from ezgreedy.exploration.streams import Purpose, Streams
from ezgreedy.exploration.temporally_extended import plain_observation, restored_observation
from ezgreedy.exploration.value_promise import ValuePromise
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_ALL_EQUAL = np.ones(8, dtype=np.bool_)
_STEPS_AHEAD = 32  # draws made at a time
_NO_DRAWS: FloatArray = np.zeros((0, 0))


class StoppingRule(ABC):
    """Says on every step where options should end; subclasses define when.

    Args:
        lanes: number of environments stepped together.
    """

    reads: tuple[str, ...] = ()  # arguments of a call that the rule cannot do without

    def __init__(self, lanes: int = 1) -> None:
        self.lanes = require.integer("lanes", lanes, least=1)

    def __call__(
        self,
        *,
        observations: object = None,
        rewards: object = None,
        values: object = None,
        starts: BoolArray | None = None,
        active: BoolArray | None = None,
    ) -> BoolArray:
        """Where a running option should end now, bool [lanes]; never at an episode's start.

        Args:
            observations: the present observations, [lanes, ...].
            rewards: rewards of the step that led here, [lanes]; any number at an episode's start.
            values: the agent's estimates of the present observations' values, [lanes].
            starts: bool [lanes], true where the observation is the first of an episode. The
                alternative to `reset`.
            active: bool [lanes], the lanes that take a step now. The others are left as they are.
        """
        seen = Seen.checked(self.lanes, observations, rewards, values, starts, active)
        for name in self.reads:
            if getattr(seen, name) is None:
                raise require.refuse(name, f"be given: {type(self).__name__} reads them", None)
        self.check(seen)
        # Everything is checked before anything changes.
        if np.count_nonzero(seen.starts):
            self._forget(seen.starts)
        return self.judge(seen)

    def check(self, seen: Seen) -> None:  # noqa: B027 (few rules ask for more)
        """Refuses what the rule cannot judge, before anything changes."""

    @abstractmethod
    def judge(self, seen: Seen) -> BoolArray:
        """Where options should end, [lanes], given checked arguments; false at starts."""

    def reset(self, finished: BoolArray) -> None:
        """Forgets the episodes of these lanes, which have ended."""
        self._forget(require.mask("finished", finished, (self.lanes,)))

    def _forget(self, finished: BoolArray) -> None:  # noqa: B027 (few rules remember)
        """Overridden by rules that remember something."""

    def state_dict(self) -> dict[str, Any]:
        """What a later process needs to continue, as plain JSON-able data."""
        return {"rule": type(self).__name__, "lanes": self.lanes}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of a rule made with the same arguments."""
        expected = self.state_dict()
        if not isinstance(state, Mapping) or state.keys() != expected.keys():
            raise require.refuse("state", f"have the keys {sorted(expected)}", state)
        for key in ("rule", "lanes"):
            if state[key] != expected[key]:
                raise refuse_saved(key, state[key], expected[key], "rule")
        self._restore(state)

    def _restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027 (few rules remember)
        """Overridden by rules that remember something."""


class StopOnUnchanged(StoppingRule):
    """Ends an option once nothing has changed for some steps, as at a wall.

    Args:
        lanes: number of environments stepped together.
        steps: steps in a row after which the observation must have been the same. Having fired,
            the rule counts from zero.
    """

    reads = ("observations",)

    def __init__(self, lanes: int = 1, steps: int = 1) -> None:
        super().__init__(lanes)
        self.steps = require.integer("steps", steps, least=1)
        self._before: NDArray[Any] | None = None
        self._knows: BoolArray = np.zeros(self.lanes, dtype=np.bool_)
        self._unchanged: IntArray = np.zeros(self.lanes, dtype=np.int64)

    def check(self, seen: Seen) -> None:
        """Refuses observations of another shape than before."""
        now, before = seen.observations, self._before
        if now is not None and before is not None and now.shape != before.shape:
            raise require.refuse("observations", f"have shape {before.shape}", now.shape)

    def judge(self, seen: Seen) -> BoolArray:
        """True where the last `steps` steps have changed nothing."""
        now = seen.observations
        assert now is not None
        if self._before is None:
            self._before = now.copy()
        fires = _equal_rows(now, self._before)
        fires &= self._knows
        counted = self._unchanged
        if self.steps > 1:  # else nothing is ever counted
            counted = (counted + 1) * fires
            fires = counted >= self.steps
        if np.count_nonzero(seen.active) == self.lanes:
            self._unchanged = counted * ~fires if self.steps > 1 else counted
            self._before[...] = now
            self._knows.fill(True)
            return fires
        fires &= seen.active
        self._unchanged = np.where(seen.active, counted * ~fires, self._unchanged)
        self._before[seen.active] = now[seen.active]
        self._knows = self._knows | seen.active
        return fires

    def _forget(self, finished: BoolArray) -> None:
        self._knows = self._knows & ~finished
        self._unchanged = np.where(finished, 0, self._unchanged)

    def state_dict(self) -> dict[str, Any]:
        """What a later process needs to continue, as plain JSON-able data."""
        return super().state_dict() | {
            "steps": self.steps,
            "before": None if self._before is None else plain_observation(self._before),
            "knows": self._knows.tolist(),
            "unchanged": self._unchanged.tolist(),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        if state["steps"] != self.steps:
            raise require.refuse("state['steps']", f"equal {self.steps}", state["steps"])
        before = None if state["before"] is None else restored_observation(state["before"])
        knows = require.mask("state['knows']", state["knows"], (self.lanes,))
        unchanged = np.array(state["unchanged"], dtype=np.int64)
        self._before, self._knows, self._unchanged = before, knows, unchanged


def _equal_rows(one: NDArray[Any], other: NDArray[Any]) -> BoolArray:
    """Whether the entries of each row are equal, [rows]."""
    equal = (one == other).reshape(len(one), -1)
    word = _WORDS.get(equal.shape[1])
    if word is None:
        return equal.all(axis=1)
    # Reducing short rows is slow; a few flags together are one number.
    flags: BoolArray = equal.view(word)[:, 0] == _ALL_EQUAL.view(word)[0]
    return flags


class StopOnReward(StoppingRule):
    """Ends an option once a step is rewarded: food is found, so foraging can end.

    Args:
        lanes: number of environments stepped together.
        above: rewards above this end an option.
    """

    reads = ("rewards",)

    def __init__(self, lanes: int = 1, above: float = 0.0) -> None:
        super().__init__(lanes)
        self.above = require.number("above", above, -np.inf)

    def judge(self, seen: Seen) -> BoolArray:
        """True where the last reward was above the bound."""
        assert seen.rewards is not None
        rewarded: BoolArray = seen.rewards > self.above
        return rewarded & seen.active & ~seen.starts

    def state_dict(self) -> dict[str, Any]:
        """What a later process needs to continue, as plain JSON-able data."""
        return super().state_dict() | {"above": self.above}

    def _restore(self, state: Mapping[str, Any]) -> None:
        if state["above"] != self.above:
            raise require.refuse("state['above']", f"equal {self.above:g}", state["above"])


class StopOnDiscrepancy(StoppingRule):
    """Ends options when the value that was promised differs from what was met, at a given rate.

    The value promise discrepancy of Pislar et al. (2021) over the last k steps,
    |V(s₋ₖ) − Σ γⁱ r₋ₖ₊ᵢ₊₁ − γᵏ V(s)|, goes through a homeostat that fires on a share `rate` of
    steps, on those with large discrepancies above all.

    Args:
        lanes: number of environments stepped together.
        rate: share of steps on which to fire, in (0, 1).
        discount: γ.
        steps: k; within an episode's first k steps the rule is silent.
        reading: "consistent", or "printed": γᵏ left out, and rewards discounted from the newest
            to the oldest, as the formula is printed.
        seed: any non-negative int; with the lane's number it determines the lane's draws.
        first_lane: the fleet-wide number of this batch's first lane.
    """

    reads = ("rewards", "values")

    def __init__(
        self,
        lanes: int = 1,
        *,
        rate: float = 0.1,
        discount: float = 0.99,
        steps: int = 5,
        reading: str = "consistent",
        seed: int = 0,
        first_lane: int = 0,
    ) -> None:
        super().__init__(lanes)
        self.promise = ValuePromise(lanes, discount=discount, steps=steps, reading=reading)
        self.homeostat = Homeostat(lanes, rate=rate)
        self.streams = Streams(seed, self.lanes, first_lane)
        self._steps: IntArray = np.zeros(self.lanes, dtype=np.int64)
        self._draws, self._num_drawn = _NO_DRAWS, 0  # of coming steps, and how many are spent

    def judge(self, seen: Seen) -> BoolArray:
        """True where the homeostat fires on the discrepancy."""
        discrepancy, known = self.promise(seen)
        # A draw is below 1, so that chances above 1 need no bound.
        chances = self.homeostat.unbounded(discrepancy, known)
        fires: BoolArray = self._uniforms(seen.active) < chances
        return fires if known is None else fires & known

    def _uniforms(self, active: BoolArray) -> FloatArray:
        """The draws of this step, [lanes]; those of many steps are made at a time."""
        if np.count_nonzero(active) < self.lanes:
            self._draws, self._num_drawn = _NO_DRAWS, 0
            words = self.streams.words(self._steps)
            self._steps = self._steps + active
            return self.streams.uniforms(words, Purpose.STOP)
        if self._num_drawn == len(self._draws):
            steps = self._steps + np.arange(_STEPS_AHEAD)[:, None]
            self._draws = self.streams.uniforms(self.streams.words(steps), Purpose.STOP)
            self._num_drawn = 0
        self._num_drawn += 1
        self._steps += 1
        return self._draws[self._num_drawn - 1]

    def _forget(self, finished: BoolArray) -> None:
        self.promise.forget(finished)

    def state_dict(self) -> dict[str, Any]:
        """What a later process needs to continue, as plain JSON-able data."""
        return super().state_dict() | {
            "seed": self.streams.seed,
            "first_lane": self.streams.first_lane,
            "steps": self._steps.tolist(),
            "promise": self.promise.state_dict(),
            "homeostat": self.homeostat.state_dict(),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        for key, value in (("seed", self.streams.seed), ("first_lane", self.streams.first_lane)):
            if state[key] != value:
                raise require.refuse(f"state[{key!r}]", f"equal {value}", state[key])
        self.promise.load_state_dict(state["promise"])
        self.homeostat.load_state_dict(state["homeostat"])
        self._steps = np.array(state["steps"], dtype=np.int64)
        self._draws, self._num_drawn = _NO_DRAWS, 0


class StopWhen(StoppingRule):
    """Ends options where a function of yours says so.

    Args:
        function: takes a `Seen` and returns bool [lanes]. If it has the methods `reset`,
            `state_dict` and `load_state_dict`, they are called as this rule's are.
        lanes: number of environments stepped together.
    """

    def __init__(self, function: Callable[[Seen], BoolArray], lanes: int = 1) -> None:
        super().__init__(lanes)
        if not callable(function):
            raise require.refuse_type("function", "be callable", function)
        self.function = function

    def judge(self, seen: Seen) -> BoolArray:
        """What the function says, except at starts and in inactive lanes."""
        ends = require.mask("function(seen)", self.function(seen), (self.lanes,))
        return ends & seen.active & ~seen.starts

    def _forget(self, finished: BoolArray) -> None:
        if hasattr(self.function, "reset"):
            self.function.reset(finished)

    def state_dict(self) -> dict[str, Any]:
        """The function's own state, if it has one."""
        own = self.function.state_dict() if hasattr(self.function, "state_dict") else None
        return super().state_dict() | {"function": own}

    def _restore(self, state: Mapping[str, Any]) -> None:
        if hasattr(self.function, "load_state_dict"):
            self.function.load_state_dict(state["function"])


class AnyStop(StoppingRule):
    """Ends an option when any of several rules says so.

    Args:
        *rules: rules with the same number of lanes.
    """

    def __init__(self, *rules: StoppingRule) -> None:
        for rule in rules:
            if not isinstance(rule, StoppingRule):
                raise require.refuse_type("rules", "be stopping rules", rule)
        if len({rule.lanes for rule in rules}) != 1:
            lanes = [rule.lanes for rule in rules]
            raise require.refuse("rules", "be one or more, with the same number of lanes", lanes)
        super().__init__(rules[0].lanes)
        self.rules = rules
        self.reads = tuple(dict.fromkeys(name for rule in rules for name in rule.reads))

    def check(self, seen: Seen) -> None:
        """Asks every rule before any of them sees the step."""
        for rule in self.rules:
            rule.check(seen)

    def judge(self, seen: Seen) -> BoolArray:
        """True where at least one rule says so; all of them see every step."""
        return np.any([rule.judge(seen) for rule in self.rules], axis=0)

    def _forget(self, finished: BoolArray) -> None:
        for rule in self.rules:
            rule.reset(finished)

    def state_dict(self) -> dict[str, Any]:
        """The states of all rules."""
        return super().state_dict() | {"rules": [rule.state_dict() for rule in self.rules]}

    def _restore(self, state: Mapping[str, Any]) -> None:
        if len(state["rules"]) != len(self.rules):
            length = f"have {len(self.rules)} entries"
            raise require.refuse("state['rules']", length, len(state["rules"]))
        for rule, saved in zip(self.rules, state["rules"], strict=True):
            rule.load_state_dict(saved)
