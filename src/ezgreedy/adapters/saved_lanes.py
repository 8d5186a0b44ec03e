"""How a checkpoint of a library brings exploration back, if need be with other environments."""

import warnings
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.exploration.ez_greedy import EZGreedy


def fresh_seed(seed: int | None) -> int:
    """The seed as given, or one from the operating system's entropy."""
    if seed is not None:
        return require.integer("seed", seed, least=0, most=None)
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


class Restorable(Protocol):
    """A policy of any backend, as far as restoring goes."""

    lanes: int

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state."""


def restore(explore: Restorable, state: Mapping[str, Any]) -> None:
    """Continues from a saved state, whose number of lanes may be another.

    Lanes that both have continue their sequences of actions; further lanes begin theirs. Counters
    keep what all saved lanes did; options of lanes that are gone count as cut by an episode end.

    Args:
        explore: a policy made with the same arguments but for the number of lanes.
        state: the state_dict of a policy.
    """
    saved = state["lanes"]
    if saved != explore.lanes:
        warnings.warn(
            f"saved with {saved} environments, continued with {explore.lanes}: "
            "environments that both have continue their exploration, others begin theirs",
            stacklevel=3,
        )
        state = _with_lanes(state, explore.lanes)
    explore.load_state_dict(state)


def continued(
    explore: EZGreedy, state: Mapping[str, Any], durations: DurationLaw | None = None
) -> EZGreedy:
    """A policy like this one that continues from a saved state, with the seed of that state.

    Args:
        explore: the policy, which stays as it is.
        state: the state_dict of a policy with the same settings but for seed and lanes.
        durations: law of the new policy; that of `explore` if None.
    """
    fresh = EZGreedy(
        explore.num_actions,
        0.0,
        explore.durations if durations is None else durations,
        explore.lanes,
        state["seed"],
        first_lane=state["first_lane"],
        action_weights=explore.choice.weights,
        carries_over_episodes=explore.carries_over_episodes,
    )
    restore(fresh, state)
    return fresh


def under_law(explore: EZGreedy, state: Mapping[str, Any], durations: DurationLaw) -> EZGreedy:
    """A policy that continues the steps and counters of this state under another law.

    Options under way belong to the former law, so they end; they count as ended by the caller.

    Args:
        explore: the policy, which stays as it is.
        state: its state_dict.
        durations: law of the options to come.
    """
    counters, ended = state["counters"], [left for left in state["remaining"] if left]
    without_options = dict(state) | {
        "durations": durations.describe(),
        "remaining": [0] * explore.lanes,
        "option_actions": [0] * explore.lanes,
        "counters": dict(counters)
        | {
            "cut_by_caller": counters["cut_by_caller"] + len(ended),
            "plays_cut": counters["plays_cut"] + sum(ended),
        },
    }
    return continued(explore, without_options, durations)


def _with_lanes(state: Mapping[str, Any], lanes: int) -> dict[str, Any]:
    resized = dict(state) | {"lanes": lanes}
    for key in ("steps", "remaining", "option_actions"):
        resized[key] = (state[key] + [0] * lanes)[:lanes]
    counters, gone = state["counters"], [left for left in state["remaining"][lanes:] if left]
    resized["counters"] = dict(counters) | {
        "cut_by_episode_ends": counters["cut_by_episode_ends"] + len(gone),
        "plays_cut": counters["plays_cut"] + sum(gone),
    }
    return resized
