"""Temporally-extended ε-greedy over any option set: the paper's general form (Section 4.1).

On each step outside an option, follow the greedy policy with probability 1 − ε, or draw an option
and follow it until it ends. Lanes are handled one by one, because an option may be any code; for
action repeats `EZGreedy` does the same, vectorised, with the same tape.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.exploration.choice import Choice
from ezgreedy.exploration.explorer import (
    Counters,
    Decision,
    Explorer,
    Greedy,
    check_greedy_legal,
)
from ezgreedy.exploration.options import History, Option, OptionSet, action_law
from ezgreedy.exploration.schedules import epsilon_at
from ezgreedy.exploration.streams import Purpose
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

LENGTH_UNKNOWN = -1


@dataclass(frozen=True)
class _Running:
    """An option in progress. It can be drawn again from where it began, so code is never saved."""

    option: Option
    began_at: int
    legal_then: BoolArray | None
    length: int
    observations: tuple[Any, ...] = ()
    actions: tuple[int, ...] = ()

    def history(self, observation: Any) -> History:
        if self.option.memory == "history":
            seen = (*self.observations, observation)
            return History(self.length, observation, seen, self.actions)
        return History(self.length, None if self.option.memory == "length" else observation)

    def played(self, observation: Any, action: int) -> "_Running":
        if self.option.memory != "history":
            return replace(self, length=self.length + 1)
        return replace(
            self,
            length=self.length + 1,
            observations=(*self.observations, observation),
            actions=(*self.actions, action),
        )

    @property
    def remaining(self) -> int:
        return LENGTH_UNKNOWN if self.option.length is None else self.option.length - self.length


class _Play(NamedTuple):
    """An option's play in one lane on one step."""

    running: _Running
    action: int
    probability: float
    begins: bool


class _Lane(NamedTuple):
    """One lane's circumstances on one call."""

    number: int
    step: int
    word: NDArray[np.uint64]  # of shape [1]
    says_explore: bool
    observation: Any
    legal: BoolArray | None


class TemporallyExtended(Explorer):
    """Temporally-extended ε-greedy over an option set.

        explore = TemporallyExtended(ActionRepeats(num_actions=4), epsilon=0.1, lanes=8, seed=0)
        actions = explore(greedy_actions, observations=observations)

    Args:
        options: Ω and its sampling distribution.
        epsilon: probability of starting an option on a step that is not inside one: a number,
            one number per lane, or a function of the lane's absolute step count.
        lanes: number of environments stepped together.
        seed: any non-negative int; with the lane's number it determines the lane's tape.
        first_lane: the fleet-wide number of this batch's first lane.
        carries_over_episodes: let options survive episode ends (a reading of Algorithm 1).
    """

    def __init__(
        self,
        options: OptionSet,
        epsilon: object,
        lanes: int = 1,
        seed: int = 0,
        *,
        first_lane: int = 0,
        carries_over_episodes: bool = False,
    ) -> None:
        _check_options(options)
        super().__init__(epsilon, lanes, seed, first_lane, carries_over_episodes)
        self.options = options
        self.num_actions = options.num_actions
        self._all_actions = Choice(self.num_actions)
        self._steps: IntArray = np.zeros(self.lanes, dtype=np.int64)
        self._running: list[_Running | None] = [None] * self.lanes
        self._decided_on: list[tuple[_Lane, int]] = []

    def __call__(
        self,
        greedy: Greedy,
        starts: BoolArray | None = None,
        active: BoolArray | None = None,
        legal: BoolArray | None = None,
        observations: Any = None,
        ends: BoolArray | None = None,
    ) -> IntArray:
        """The actions to execute, [lanes].

        Args:
            greedy: as for `EZGreedy`.
            starts: as for `EZGreedy`.
            active: as for `EZGreedy`.
            legal: as for `EZGreedy`. An option that would play an illegal action ends instead; if
                that happens on its first step, the lane acts greedily.
            observations: the lanes' observations, indexable by lane; needed by options that read
                them.
            ends: as for `EZGreedy`.
        """
        starts, active, legal, ends = self._checked_masks(starts, active, legal, ends)
        if not callable(greedy):
            greedy = require.actions("greedy", greedy, self.lanes, self.num_actions)
        epsilon = np.broadcast_to(epsilon_at(self._epsilon, self._steps), (self.lanes,))
        lanes = self._lanes_stepping(active, legal, observations, epsilon)
        counters = replace(self._counters, durations=dict(self._counters.durations))
        if self.carries_over_episodes:
            starts = None
        running, num_cut = self._without(starts, list(self._running), counters)
        counters.cut_by_episode_ends += num_cut
        running, num_stopped = self._without(ends, running, counters)
        counters.cut_by_caller += num_stopped
        plays = {
            lane.number: play
            for lane in lanes
            if (play := self._play(lane, running[lane.number], counters)) is not None
        }
        deciding = np.zeros(self.lanes, dtype=np.bool_)
        deciding[[i for i, *_ in lanes if i not in plays or plays[i].begins]] = True
        if callable(greedy):
            filler = np.zeros(self.lanes, dtype=np.int64)
            greedy = self._ask_greedy(greedy, deciding & (epsilon < 1.0), filler)
        actions, exploring, inside = greedy.copy(), np.zeros_like(greedy), np.ones(self.lanes)
        for index, play in plays.items():
            actions[index], exploring[index], inside[index] = play.action, -1, play.probability
        if legal is not None:
            check_greedy_legal(greedy, legal, deciding & (exploring == 0))
        # From here on nothing can fail, so a refused call has changed nothing.
        for lane in lanes:
            running[lane.number] = _left_running(plays.get(lane.number), lane.observation)
        self._count(counters, plays, len(lanes))
        self._running, self._counters = running, counters
        self._steps = self._steps + (1 if active is None else active)
        agrees = actions == greedy
        self._decision = Decision(
            exploring, (~deciding).astype(np.int64), active, agrees, epsilon, np.nan, inside
        )
        self._decided_on = [
            (lane, int(actions[lane.number])) for lane in lanes if deciding[lane.number]
        ]
        return actions

    @property
    def probabilities(self) -> FloatArray:
        """As for every policy; inside an option, the probability its own policy gave the action.

        Calls the first-step policy of every option in the set, so it costs more than a decision.
        """
        if self._decision is None:
            return super().probabilities
        chance = np.ones(self.lanes)
        for lane, action in self._decided_on:
            first = self.options.first_actions(
                History(0, lane.observation, (lane.observation,)), lane.legal
            )
            # An option that may not play its first action leaves the step to the greedy policy.
            left_over = (1.0 - first.sum()) * self._decision.agrees[lane.number]
            chance[lane.number] = first[action] + left_over
        self._decision = self._decision._replace(chance=chance)
        return super().probabilities

    # One lane.

    def _play(self, lane: _Lane, running: _Running | None, counters: Counters) -> _Play | None:
        """The play of the running option, or of one that begins; None to be greedy."""
        if running is not None:
            play = self._continued(lane, running, counters)
            if play is not None:
                return play
        return self._begun(lane) if lane.says_explore else None

    def _continued(self, lane: _Lane, running: _Running, counters: Counters) -> _Play | None:
        history = running.history(lane.observation)
        ends = running.option.ends(history)
        if ends == 1.0 or (
            ends > 0.0 and self._uniform(lane.word, Purpose.OPTION_TERMINATION) < ends
        ):
            return None
        play = self._acted(lane, running, history, begins=False)
        if play is None:
            counters.cut_by_masks += 1
            counters.plays_cut += max(running.remaining, 0)
        return play

    def _begun(self, lane: _Lane) -> _Play | None:
        running = self._drawn(lane.word, lane.step, lane.legal)
        return self._acted(lane, running, running.history(lane.observation), begins=True)

    def _drawn(self, word: NDArray[np.uint64], step: int, legal: BoolArray | None) -> _Running:
        choice = self._uniform(word, Purpose.ACTION)
        duration = self._uniform(word, Purpose.DURATION)
        return _Running(self.options.draw(choice, duration, legal), step, legal, 0)

    def _acted(
        self, lane: _Lane, running: _Running, history: History, *, begins: bool
    ) -> _Play | None:
        """The option's next play; None if that is illegal here."""
        law = action_law(running.option, history, self.num_actions, lane.legal)
        total = law.sum()
        if total == 0.0:
            return None
        action = int(law.argmax())
        if law[action] < total:
            target = self._uniform(lane.word, Purpose.OPTION_POLICY) * total
            action = int(np.searchsorted(np.cumsum(law), target, side="right"))
        return _Play(running, action, float(law[action] / total), begins)

    def _uniform(self, word: NDArray[np.uint64], purpose: Purpose) -> float:
        return float(self.streams.uniforms(word, purpose)[0])

    # All lanes.

    def _lanes_stepping(
        self,
        active: BoolArray | None,
        legal: BoolArray | None,
        observations: Any,
        epsilon: FloatArray,
    ) -> list[_Lane]:
        if observations is None and self.options.reader is not None:
            reader = self.options.reader
            rule = f"be given: option {reader.name!r} reads them, as memory={reader.memory!r} says"
            way = "give the option memory='length' if it reads no more than history.length"
            raise require.refuse("observations", rule, None, way)
        if observations is not None and len(observations) != self.lanes:
            raise require.refuse("observations", f"have {self.lanes} entries", len(observations))
        indices = np.arange(self.lanes) if active is None else np.flatnonzero(active)
        if legal is not None:
            self._all_actions.check_legal(legal, indices)
        words = self.streams.words(self._steps[indices], indices)
        explore = self.streams.heads(words, epsilon[indices])
        return [
            _Lane(
                int(index),
                int(self._steps[index]),
                words[position : position + 1],
                bool(explore[position]),
                None if observations is None else copy(observations[index]),
                None if legal is None else legal[index].copy(),
            )
            for position, index in enumerate(indices)
        ]

    @staticmethod
    def _without(
        ended: BoolArray | None, running: list["_Running | None"], counters: Counters
    ) -> tuple[list["_Running | None"], int]:
        """The running options without those of the ended lanes, and how many these were."""
        if ended is None:
            return running, 0
        stopped = [lane for lane in np.flatnonzero(ended).tolist() if running[lane] is not None]
        left = list(running)
        for lane in stopped:
            option = left[lane]
            counters.plays_cut += 0 if option is None else max(option.remaining, 0)
            left[lane] = None
        return left, len(stopped)

    def _count(self, counters: Counters, plays: dict[int, _Play], num_lanes: int) -> None:
        counters.steps += num_lanes
        counters.explored += len(plays)
        begun = [play.running.option.length for play in plays.values() if play.begins]
        known = [length for length in begun if length is not None]
        counters.started += len(begun) - len(known)
        counters.add_durations(np.array(known, dtype=np.int64))

    @property
    def remaining(self) -> IntArray:
        """Plays still to come after the last one, [lanes]; −1 if the option does not know."""
        return np.array([0 if r is None else r.remaining for r in self._running], dtype=np.int64)

    @property
    def steps(self) -> IntArray:
        """Total steps taken by each lane, [lanes]."""
        return self._steps.copy()

    def _settings(self) -> dict[str, Any]:
        return {"options": self.options} | super()._settings()

    def _end_options(self, finished: BoolArray) -> None:
        self._running, num_cut = self._without(finished, self._running, self._counters)
        self._counters.cut_by_episode_ends += num_cut

    # Checkpoints.

    def _identity(self) -> dict[str, Any]:
        return self._shared_identity() | {"options": self.options.describe()}

    def _option_state(self) -> dict[str, Any]:
        return {"running": [None if r is None else _plain_running(r) for r in self._running]}

    def _checked_option_state(self, state: Mapping[str, Any]) -> Callable[[IntArray], None]:
        saved = state["running"]
        if not isinstance(saved, list) or len(saved) != self.lanes:
            raise require.refuse("state['running']", f"be a list of {self.lanes}", saved)
        running = [
            None if item is None else self._restored(index, item)
            for index, item in enumerate(saved)
        ]

        def restore(steps: IntArray) -> None:
            self._running, self._steps, self._decided_on = running, steps, []

        return restore

    def _restored(self, index: int, saved: Mapping[str, Any]) -> _Running:
        """The option that began in this lane at the saved step, with its history so far."""
        began_at = require.integer("state['running'] began_at", saved["began_at"], least=0)
        legal = saved["legal_then"]
        mask = None if legal is None else require.mask("legal_then", legal, (self.num_actions,))
        word = self.streams.words(np.array([began_at]), np.array([index]))
        return replace(
            self._drawn(word, began_at, mask),
            length=require.integer("state['running'] length", saved["length"], least=1),
            observations=tuple(restored_observation(item) for item in saved["observations"]),
            actions=tuple(saved["actions"]),
        )


def _check_options(options: object) -> None:
    if isinstance(options, OptionSet):
        return
    is_listed = isinstance(options, (Option, list, tuple))
    way = "wrap them: FiniteOptions(num_actions, [...])" if is_listed else ""
    raise require.refuse_type("options", "be an option set", options, way)


def _left_running(play: _Play | None, observation: Any) -> _Running | None:
    """The option after this play; None once its known length is played out."""
    if play is None:
        return None
    running = play.running.played(observation, play.action)
    return None if running.remaining == 0 else running


def _plain_running(running: _Running) -> dict[str, Any]:
    legal = running.legal_then
    return {
        "began_at": running.began_at,
        "legal_then": None if legal is None else legal.tolist(),
        "length": running.length,
        "observations": [plain_observation(item) for item in running.observations],
        "actions": list(running.actions),
    }


def plain_observation(observation: Any) -> Any:
    """An observation as JSON-able data; arrays keep their type and shape."""
    if isinstance(observation, (np.ndarray, np.generic)):
        array = np.asarray(observation)
        return {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "data": array.ravel().tolist(),
        }
    if observation is None or isinstance(observation, (bool, int, float, str)):
        return observation
    raise require.refuse_type("observations", "be arrays or plain numbers to be saved", observation)


def restored_observation(saved: Any) -> Any:
    """The inverse of `plain_observation`."""
    if not isinstance(saved, dict):
        return saved
    array = np.array(saved["data"], dtype=saved["dtype"]).reshape(saved["shape"])
    return array if saved["shape"] else array[()]
