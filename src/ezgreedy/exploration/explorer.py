"""What every exploration policy shares: lanes, ε, counters, the record of the last decision.

A lane is one environment of a batch. It has its own coin, its own option and its own stream, and
takes a step whenever the policy is called with the lane active. Policies differ only in what an
option is; `EZGreedy` is the vectorised one, `TemporallyExtended` takes any option set.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.schedules import Epsilon, Linear, checked_epsilon
from ezgreedy.exploration.streams import LARGEST_STEP, Streams
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

Greedy = IntArray | Callable[[IntArray], IntArray]
STATE_FORMAT = 1
_REMADE_WITH = {"lanes", "seed", "first_lane", "carries_over_episodes"}
_NEWER_COUNTERS = {"cut_by_caller"}  # not in every state of this format


@dataclass
class Counters:
    """What a policy has done since it was made, summed over its lanes.

    Args:
        steps: decisions and continuations, frozen lanes not counted.
        explored: steps on which an option acted.
        started: options begun.
        cut_by_episode_ends: options stopped by an episode end with plays still to come.
        cut_by_masks: options that stopped because their action became illegal.
        cut_by_caller: options that the caller's `ends` stopped with plays still to come.
        plays_cut: plays left when options were cut short.
        durations: number of options begun with each duration (for options that know it).
    """

    steps: int = 0
    explored: int = 0
    started: int = 0
    cut_by_episode_ends: int = 0
    cut_by_masks: int = 0
    cut_by_caller: int = 0
    plays_cut: int = 0
    durations: dict[int, int] = field(default_factory=dict)

    def add_durations(self, durations: IntArray) -> None:
        """Counts options begun with these durations."""
        self.started += len(durations)
        counts = np.bincount(durations)
        for duration in np.flatnonzero(counts).tolist():
            self.durations[duration] = self.durations.get(duration, 0) + int(counts[duration])


class Decision(NamedTuple):
    """The decision for all lanes on one call, as `probabilities` needs it.

    Args:
        exploring: −1 on lanes on which an option acts, else 0.
        running: plays that each lane's option had left before the call; 0 on deciding lanes.
        active: lanes that took a step.
        agrees: lanes whose action equals the greedy one (any value where not deciding).
        epsilon: the ε in force, broadcastable to [lanes].
        chance: probability that exploration, once decided on, draws the played action.
        inside: probability of the played action on lanes within an option.
    """

    exploring: IntArray
    running: IntArray
    active: BoolArray | None
    agrees: BoolArray
    epsilon: FloatArray
    chance: FloatArray | float
    inside: FloatArray | float = 1.0


class Masks(NamedTuple):
    """The masks of one call, checked; None where not given."""

    starts: BoolArray | None
    active: BoolArray | None
    legal: BoolArray | None
    ends: BoolArray | None


class Ended(NamedTuple):
    """Numbers of options that one call ended early, and of the plays that they had left."""

    by_episode_ends: int = 0
    by_caller: int = 0
    by_masks: int = 0
    plays_cut: int = 0


class Explorer(ABC):
    """A per-lane ε-coin in front of options; subclasses define what an option is.

    Args:
        num_actions: number of actions.
        epsilon: probability of starting an option on a step that is not inside one: a number,
            one number per lane, or a function of the lane's absolute step count.
        lanes: number of environments stepped together.
        seed: any non-negative int; with the lane's number it determines the lane's tape.
        first_lane: the fleet-wide number of this batch's first lane.
        carries_over_episodes: let options survive episode ends (a reading of Algorithm 1).
    """

    num_actions: int

    def __init__(
        self,
        epsilon: object,
        lanes: int,
        seed: int,
        first_lane: int,
        carries_over_episodes: bool,
    ) -> None:
        self.lanes = require.integer("lanes", lanes, least=1)
        self.streams = Streams(seed, self.lanes, first_lane)
        self.carries_over_episodes = require.flag("carries_over_episodes", carries_over_episodes)
        self._epsilon: Epsilon = checked_epsilon(epsilon, self.lanes)
        self._counters = Counters()
        self._decision: Decision | None = None

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        done = self.counters
        return (
            f"{type(self).__name__}({settings}) after {done.steps:,} steps, "
            f"{done.explored:,} of them exploratory"
        )

    def _settings(self) -> dict[str, Any]:
        """The arguments by name, without those that have their default."""
        lanes = {"epsilon": self._epsilon, "lanes": self.lanes, "seed": self.streams.seed}
        rare = {
            "first_lane": self.streams.first_lane,
            "carries_over_episodes": self.carries_over_episodes,
        }
        return lanes | {name: value for name, value in rare.items() if value}

    # What the last call did.

    @property
    def exploring(self) -> BoolArray:
        """Which lanes an option acted on in the last decision, [lanes]."""
        if self._decision is None:
            return np.zeros(self.lanes, dtype=np.bool_)
        return np.not_equal(self._decision.exploring, 0)

    @property
    @abstractmethod
    def remaining(self) -> IntArray:
        """Plays of the running option still to come after the last one, [lanes].

        0 without an option; −1 for an option that does not know its length in advance.
        """

    @property
    def probabilities(self) -> FloatArray:
        """The probability with which the last decision played each lane's action, [lanes].

        When deciding it is (1 − ε)·1[a = greedy] + ε·(chance that exploration draws a); inside an
        option it is the option policy's (1 for action repeats); NaN for lanes that took no step.
        """
        last = self._decision
        if last is None:
            return np.full(self.lanes, np.nan)
        decided = (1.0 - last.epsilon) * last.agrees + last.epsilon * last.chance
        result: FloatArray = np.where(last.running == 0, decided, last.inside)
        return result if last.active is None else np.where(last.active, result, np.nan)

    @property
    def epsilon(self) -> Epsilon:
        """The ε that was given (a number, an array [lanes], a function of the step); assignable."""
        return self._epsilon

    @epsilon.setter
    def epsilon(self, value: object) -> None:
        self._epsilon = checked_epsilon(value, self.lanes)
        self._epsilon_changed()

    def _epsilon_changed(self) -> None:  # noqa: B027 (only look-ahead policies need to know)
        pass

    @property
    def counters(self) -> Counters:
        """Counts of what has happened so far, summed over lanes."""
        return self._counters

    @property
    @abstractmethod
    def steps(self) -> IntArray:
        """Total steps taken by each lane, across episodes and restarts, [lanes]."""

    # Episode ends.

    def reset(self, finished: BoolArray) -> None:
        """Ends the options of lanes whose episode has ended.

        Call it with `terminated | truncated` after each step, or pass `starts` to the next call
        instead. A life lost in Atari ends neither the episode nor the option.
        """
        finished = require.mask("finished", finished, (self.lanes,))
        if not self.carries_over_episodes:
            self._end_options(finished)

    @abstractmethod
    def _end_options(self, finished: BoolArray) -> None: ...

    # Checkpoints.

    def state_dict(self) -> dict[str, Any]:
        """Everything a later process needs to continue the same tape, as plain JSON-able data."""
        counters = asdict(self.counters)
        counters["durations"] = [[n, count] for n, count in sorted(counters["durations"].items())]
        return {
            "format": STATE_FORMAT,
            **self._identity(),
            "epsilon": _plain_epsilon(self._epsilon),
            "steps": self.steps.tolist(),
            "counters": counters,
            **self._option_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a `state_dict` of a policy made with the same arguments."""
        if not isinstance(state, Mapping):
            raise require.refuse_type("state", "be a mapping from state_dict()", state)
        expected = self.state_dict()
        missing, unknown = (
            sorted(expected.keys() - state.keys()),
            sorted(state.keys() - expected.keys()),
        )
        if missing or unknown:
            raise require.refuse(
                "state",
                f"have the keys of a {type(self).__name__} state_dict",
                require.Described(f"missing {missing}, unknown {unknown}"),
            )
        for key in ("format", *self._identity()):
            if state[key] != expected[key]:
                raise refuse_saved(key, state[key], expected[key], "policy")
        epsilon = _restored_epsilon(self._epsilon, state["epsilon"], self.lanes)
        steps = checked_ints("state['steps']", state["steps"], self.lanes, 0, LARGEST_STEP)
        counters = _restored_counters(state["counters"])
        restore = self._checked_option_state(state)
        # Nothing above has changed anything; nothing below can fail.
        self._epsilon, self._counters, self._decision = epsilon, counters, None
        restore(steps)

    @abstractmethod
    def _identity(self) -> dict[str, Any]:
        """The arguments that a state and the policy it is loaded into must share."""

    @abstractmethod
    def _option_state(self) -> dict[str, Any]:
        """The running options, as plain data."""

    @abstractmethod
    def _checked_option_state(self, state: Mapping[str, Any]) -> Callable[[IntArray], None]:
        """Checks what `_option_state` wrote; returns the function that puts it in force."""

    def _shared_identity(self) -> dict[str, Any]:
        return {
            "policy": type(self).__name__,
            "num_actions": self.num_actions,
            "lanes": self.lanes,
            "first_lane": self.streams.first_lane,
            "seed": self.streams.seed,
            "carries_over_episodes": self.carries_over_episodes,
        }

    # Arguments of a call.

    def _checked_masks(
        self, starts: object, active: object, legal: object, ends: object
    ) -> "Masks":
        lanes = self.lanes
        return Masks(
            None if starts is None else require.mask("starts", starts, (lanes,)),
            # A copy, since `probabilities` may ask for it after the caller has reused the array.
            None if active is None else require.mask("active", active, (lanes,)).copy(),
            None if legal is None else require.mask("legal", legal, (lanes, self.num_actions)),
            None if ends is None else require.mask("ends", ends, (lanes,)),
        )

    @staticmethod
    def _deciding(running: IntArray, active: BoolArray | None) -> BoolArray:
        """Lanes that toss the coin: those taking a step outside an option."""
        idle: BoolArray = running == 0
        return idle if active is None else idle & active

    def _ask_greedy(
        self, greedy: Callable[[IntArray], IntArray], needed: BoolArray, filler: IntArray
    ) -> IntArray:
        """Greedy actions [lanes]; the function is called for the needed lanes only."""
        lanes = np.flatnonzero(needed)
        if not lanes.size:
            return filler
        answer = require.actions(
            "greedy(lanes)", greedy(lanes), lanes.size, self.num_actions, "lane asked for"
        )
        known = filler.copy()
        known[lanes] = answer
        return known


def check_greedy_legal(greedy: IntArray, legal: BoolArray, played: BoolArray) -> None:
    """Refuses a greedy action that is about to be played although the mask forbids it."""
    lanes = np.flatnonzero(played)
    illegal = lanes[~legal[lanes, greedy[lanes]]]
    if illegal.size:
        lane = illegal[0]
        received = require.Described(f"action {greedy[lane]} in lane {lane}")
        raise require.refuse("greedy", "be legal where it is played", received)


def refuse_saved(key: str, saved: object, ours: object, whose: str) -> ValueError:
    """The exception for a saved state of something that was made with other arguments.

    Args:
        key: the argument.
        saved: its value in the state.
        ours: its value in what the state is loaded into.
        whose: what that is, such as "policy".
    """
    is_given = key in _REMADE_WITH and type(saved) in (int, bool)
    way = f"make the {whose} with {key}={saved}" if is_given else ""
    return require.refuse(f"state[{key!r}]", f"equal {ours!r}", saved, way)


def checked_ints(name: str, value: object, lanes: int, least: int, most: int) -> IntArray:
    """A list of `lanes` ints within [least, most], as an array."""
    if not isinstance(value, list) or len(value) != lanes:
        raise require.refuse(name, f"be a list of {lanes} ints", value)
    return np.array([require.integer(name, item, least, most) for item in value], dtype=np.int64)


def _plain_epsilon(epsilon: Epsilon) -> Any:
    if isinstance(epsilon, Linear):
        numbers = [epsilon.start, epsilon.end, epsilon.steps]
        return {"Linear": numbers + ([epsilon.first_step] if epsilon.first_step else [])}
    if callable(epsilon):
        return "function"
    return epsilon.tolist() if isinstance(epsilon, np.ndarray) else epsilon


def _restored_epsilon(current: Epsilon, saved: Any, lanes: int) -> Epsilon:
    """Numbers are state and come back; a schedule is code and must be the same."""
    if callable(current) or isinstance(saved, (str, dict)):
        if saved != _plain_epsilon(current):
            raise require.refuse("state['epsilon']", f"equal {_plain_epsilon(current)!r}", saved)
        return current
    return checked_epsilon(saved, lanes)


def _restored_counters(saved: Any) -> Counters:
    name = "state['counters']"
    known = asdict(Counters()).keys()
    if not isinstance(saved, Mapping) or not known - _NEWER_COUNTERS <= saved.keys() <= known:
        raise require.refuse(name, f"have the keys {sorted(known)}", saved)
    totals = {
        key: require.integer(f"{name}[{key!r}]", value, least=0)
        for key, value in saved.items()
        if key != "durations"
    }
    durations = saved["durations"]
    if not isinstance(durations, list) or not all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in durations
    ):
        raise require.refuse(f"{name}['durations']", "be a list of [duration, count]", durations)
    pairs = {
        require.integer("duration", n, least=1): require.integer("count", count, least=0)
        for n, count in durations
    }
    return Counters(**totals, durations=pairs)
