"""εz-greedy: with probability ε, repeat one random action for n ~ z steps; otherwise act greedily.

The vectorised special case of temporally-extended ε-greedy whose options are all (action, duration)
pairs; an exact test binds it to the general form. One decision of one lane: if an option runs, play
its action; else toss the coin; on heads draw an action and a number of plays; on tails be greedy.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.choice import Choice
from ezgreedy.exploration.durations import DurationLaw, Fixed, Zeta, checked_law
from ezgreedy.exploration.explorer import (
    Counters,
    Decision,
    Ended,
    Explorer,
    Greedy,
    Masks,
    check_greedy_legal,
    checked_ints,
)
from ezgreedy.exploration.lookahead import Beginnings, Lookahead
from ezgreedy.exploration.streams import Purpose
from ezgreedy.requirements import BoolArray, FloatArray, IntArray

# Durations are counted once for many calls; this bounds the backlog.
_CALLS_BETWEEN_COUNTS = 256
_NOTHING_ENDED = Ended()
_FEW_LANES = 64


class EZGreedy(Explorer):
    """εz-greedy exploration over a batch of lanes (the paper's method).

    Call it with the greedy actions; it returns the actions to execute. Store those in replay.

        explore = EZGreedy(num_actions=18, epsilon=0.1, lanes=8, seed=0)
        actions = explore(q_values.argmax(axis=1))
        ...
        explore.reset(terminated | truncated)

    Args:
        num_actions: number of actions, or Gymnasium's `Discrete` space.
        epsilon: probability of *starting* an option on a step that is not inside one: a number,
            one number per lane, or a function of the lane's absolute step count. The share of
            exploratory steps is larger: see `exploratory_share` and `matched_epsilon`.
        durations: the law of the number of plays; `Zeta(mu=2.0, cap=10_000)` by default.
        lanes: number of environments stepped together.
        seed: any non-negative int; with the lane's number it determines the lane's tape.
        first_lane: the fleet-wide number of this batch's first lane.
        action_weights: one number per action, proportional to its chance of being explored;
            uniform if None.
        carries_over_episodes: let options survive episode ends (a reading of Algorithm 1).
    """

    def __init__(
        self,
        num_actions: object,
        epsilon: object,
        durations: DurationLaw | None = None,
        lanes: int = 1,
        seed: int = 0,
        *,
        first_lane: int = 0,
        action_weights: object = None,
        carries_over_episodes: bool = False,
    ) -> None:
        super().__init__(epsilon, lanes, seed, first_lane, carries_over_episodes)
        self.durations = checked_law("durations", Zeta() if durations is None else durations)
        self.num_actions = require.num_actions(num_actions)
        self.choice = Choice(self.num_actions, action_weights)
        self._uniform_chance = 1.0 / self.num_actions
        self._remaining: IntArray = np.zeros(self.lanes, dtype=np.int64)
        self._option_actions: IntArray = np.zeros(self.lanes, dtype=np.int64)
        self._lookahead = Lookahead(
            self.choice, self.durations, np.zeros(self.lanes, dtype=np.int64)
        )
        self._begun: list[IntArray] = []  # further plays of options not yet counted
        self._former_steps = 0  # of lanes that a state was saved with and that are here no longer

    def __call__(
        self,
        greedy: Greedy,
        starts: BoolArray | None = None,
        active: BoolArray | None = None,
        legal: BoolArray | None = None,
        ends: BoolArray | None = None,
    ) -> IntArray:
        """The actions to execute, [lanes].

        Args:
            greedy: greedy actions, int [lanes]; or a function of lane indices, called once with
                the lanes that decide now (not those inside an option), which returns theirs.
            starts: bool [lanes], true where this observation is the first of an episode: a
                running option ends before the decision. The alternative to `reset`.
            active: bool [lanes], the lanes that take a real step now. The others are frozen: they
                consume nothing, and the actions returned for them are meaningless.
            legal: bool [lanes, actions]. Options draw among legal actions; an option whose action
                is no longer legal ends, and its lane decides again.
            ends: bool [lanes], true where the caller ends a running option before the decision,
                such as at a wall; see `exploration.stopping`.
        """
        if not callable(greedy):
            greedy = require.actions("greedy", greedy, self.lanes, self.num_actions)
        running, ended = self._remaining, _NOTHING_ENDED
        if starts is not None or active is not None or legal is not None or ends is not None:
            masks = self._checked_masks(starts, active, legal, ends)
            active, legal = masks.active, masks.legal
            running, ended = self._still_running(masks)
        drawn = self._lookahead.current(self.streams, self._epsilon)
        fresh, further_plays, option_actions = self._begin(drawn, running, active, legal)
        # Masks of all ones and all zeros select without branches, which random masks mispredict.
        exploring = -running >> 63
        if active is not None:
            exploring &= -active.astype(np.int64)
        exploring[fresh] = -1
        if callable(greedy):
            # With ε = 1 nothing depends on the greedy action; with less, `probabilities` does.
            needed = self._deciding(running, active) & (drawn.epsilon < 1.0)
            greedy = self._ask_greedy(greedy, needed, option_actions)
        actions: IntArray = greedy ^ ((greedy ^ option_actions) & exploring)
        if legal is not None:
            check_greedy_legal(greedy, legal, self._deciding(running, active) & (exploring == 0))
        chance = self._chance(actions, legal)
        # From here on nothing can fail, so a refused call has changed nothing.
        if ended.plays_cut:
            self._count_ended(ended)
        remaining = running + exploring
        remaining[fresh] = further_plays
        self._remaining, self._option_actions = remaining, option_actions
        self._decision = Decision(
            exploring, running, active, actions == greedy, drawn.epsilon, chance
        )
        self._lookahead.advance(active)
        self._begun.append(further_plays)
        if len(self._begun) >= _CALLS_BETWEEN_COUNTS:
            self._count_begun()
        return actions

    def _still_running(self, masks: Masks) -> tuple[IntArray, Ended]:
        """Plays left [lanes] once the masks have ended options; numbers ended."""
        starts, active, legal, ends = masks
        running = self._remaining
        num_cut = num_stopped = num_masked = cut = stopped = masked = 0
        if starts is not None and not self.carries_over_episodes:
            running, num_cut, cut = _without(running, starts)
        if ends is not None:
            running, num_stopped, stopped = _without(running, ends)
        if legal is not None:
            stepping = np.arange(self.lanes) if active is None else np.flatnonzero(active)
            self.choice.check_legal(legal, stepping)
            stepping = stepping[running[stepping] > 0]
            illegal = stepping[~legal[stepping, self._option_actions[stepping]]]
            now_illegal = np.zeros(self.lanes, dtype=np.bool_)
            now_illegal[illegal] = True
            running, num_masked, masked = _without(running, now_illegal)
        if running is self._remaining:
            return running, _NOTHING_ENDED
        return running, Ended(num_cut, num_stopped, num_masked, cut + stopped + masked)

    def _begin(
        self,
        drawn: Beginnings,
        running: IntArray,
        active: BoolArray | None,
        legal: BoolArray | None,
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Lanes that begin an option, its plays after the first, and all option actions [lanes]."""
        begins = running[drawn.lanes] == 0
        if active is not None:
            begins &= active[drawn.lanes]
        chosen = begins.nonzero()[0]
        fresh = drawn.lanes[chosen]
        # Nothing reads an idle lane's option action, so it may be written at once; but an option
        # that ends only if this call succeeds must stay as it is until then.
        option_actions = self._option_actions
        if running is not self._remaining:
            option_actions = option_actions.copy()
        option_actions[fresh] = (
            drawn.actions[chosen] if legal is None else self._legal_actions(fresh, legal)
        )
        return fresh, drawn.further_plays[chosen], option_actions

    def _legal_actions(self, lanes: IntArray, legal: BoolArray) -> IntArray:
        """Actions for these lanes among the legal ones, from the same uniforms as without masks."""
        words = self.streams.words(self.steps[lanes], lanes)
        uniforms = self.streams.uniforms(words, Purpose.ACTION)
        return self.choice.pick_legal(uniforms, legal[lanes])

    def _chance(self, actions: IntArray, legal: BoolArray | None) -> FloatArray | float:
        if legal is None and self.choice.weights is None:
            return self._uniform_chance
        return self.choice.chance(actions, legal)

    # Episode ends, counters, checkpoints.

    def _settings(self) -> dict[str, Any]:
        shared = {"num_actions": self.num_actions, **super()._settings()}
        if self.choice.weights is not None:
            shared["action_weights"] = self.choice.weights.tolist()
        return shared | {"durations": self.durations}

    @property
    def remaining(self) -> IntArray:
        """Plays of the running option still to come after the last one, [lanes]."""
        return self._remaining.copy()

    @property
    def steps(self) -> IntArray:
        """Total steps taken by each lane, [lanes]."""
        return self._lookahead.steps

    def _epsilon_changed(self) -> None:
        self._lookahead.forget(self.steps)

    @property
    def counters(self) -> Counters:
        """Counts of what has happened so far, summed over lanes."""
        self._count_begun()
        counters = self._counters
        counters.steps = int(self.steps.sum()) + self._former_steps
        planned = sum(n * count for n, count in counters.durations.items())
        counters.explored = planned - counters.plays_cut - int(self._remaining.sum())
        return replace(counters, durations=dict(counters.durations))

    def _count_begun(self) -> None:
        if self._begun:
            self._counters.add_durations(np.concatenate(self._begun) + 1)
            self._begun.clear()

    def _count_ended(self, ended: Ended) -> None:
        self._counters.cut_by_episode_ends += ended.by_episode_ends
        self._counters.cut_by_caller += ended.by_caller
        self._counters.cut_by_masks += ended.by_masks
        self._counters.plays_cut += ended.plays_cut

    def _end_options(self, finished: BoolArray) -> None:
        self._remaining, num_cut, cut = _without(self._remaining, finished)
        self._count_ended(Ended(num_cut, plays_cut=cut))

    def _identity(self) -> dict[str, Any]:
        weights = self.choice.weights
        return self._shared_identity() | {
            "durations": self.durations.describe(),
            "action_weights": None if weights is None else weights.tolist(),
        }

    def _option_state(self) -> dict[str, Any]:
        return {
            "remaining": self._remaining.tolist(),
            "option_actions": np.where(self._remaining > 0, self._option_actions, 0).tolist(),
        }

    def _checked_option_state(self, state: Mapping[str, Any]) -> Callable[[IntArray], None]:
        most, lanes = self.durations.cap, self.lanes
        remaining = checked_ints("state['remaining']", state["remaining"], lanes, 0, most)
        actions = checked_ints(
            "state['option_actions']", state["option_actions"], lanes, 0, self.num_actions - 1
        )

        def restore(steps: IntArray) -> None:
            self._remaining, self._option_actions = remaining, actions
            self._begun.clear()
            self._former_steps = max(self._counters.steps - int(steps.sum()), 0)
            self._lookahead.forget(steps)

        return restore


def _without(running: IntArray, ended: BoolArray) -> tuple[IntArray, int, int]:
    """Plays left [lanes] once the options of ended lanes are gone; how many options and plays.

    The array is a new one only if something ended: most masks end nothing.
    """
    lanes = ended.nonzero()[0]
    left = running[lanes]
    # For the usual handful of lanes, Python's sum takes a tenth of the time of NumPy's.
    num_plays = sum(left.tolist()) if len(left) < _FEW_LANES else int(left.sum())
    if not num_plays:
        return running, 0, 0
    running = running.copy()
    running[lanes] = 0
    return running, int(np.count_nonzero(left)), num_plays


class EpsilonGreedy(EZGreedy):
    """Plain ε-greedy: the case of εz-greedy in which every option lasts one step.

    With the same seed it tosses the same coins and draws the same actions as any `EZGreedy`, which
    makes paired comparisons fair. Arguments are those of `EZGreedy`, without durations.
    """

    def __init__(
        self,
        num_actions: object,
        epsilon: object,
        lanes: int = 1,
        seed: int = 0,
        *,
        first_lane: int = 0,
        action_weights: object = None,
    ) -> None:
        super().__init__(
            num_actions,
            epsilon,
            Fixed(1),
            lanes,
            seed,
            first_lane=first_lane,
            action_weights=action_weights,
        )

    def _settings(self) -> dict[str, Any]:
        return {name: value for name, value in super()._settings().items() if name != "durations"}
