"""Temporally-extended ε-greedy exploration (Dabney, Ostrovski & Barreto).

    from ezgreedy import EZGreedy

    explore = EZGreedy(num_actions=18, epsilon=0.1, lanes=8, seed=0)
    actions = explore(greedy_actions)

A lane is one environment of a batch of environments that are stepped together.
NumPy is all it needs; compiled code, tensors, environments and figures come as extras.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ezgreedy.exploration.durations import (
    DurationLaw,
    Fixed,
    Geometric,
    PlusOne,
    Uniform,
    Zeta,
    exploratory_share,
    matched_epsilon,
)
from ezgreedy.exploration.ez_greedy import EpsilonGreedy, EZGreedy
from ezgreedy.exploration.schedules import Linear, ladder

if TYPE_CHECKING:
    from ezgreedy.exploration.eigenoptions import eigenoptions
    from ezgreedy.exploration.full_coverage import CoverageReport, full_coverage
    from ezgreedy.exploration.held_actions import HeldActions
    from ezgreedy.exploration.homeostasis import Homeostat
    from ezgreedy.exploration.noise import (
        ActionNoise,
        ColouredNoise,
        HeldNoise,
        OrnsteinUhlenbeck,
        WhiteNoise,
    )
    from ezgreedy.exploration.options import (
        ActionRepeats,
        FiniteOptions,
        History,
        Option,
        OptionSet,
        Primitives,
        TimedPolicies,
        follow,
        primitive,
        repeat,
        sequence,
    )
    from ezgreedy.exploration.stopping import (
        AnyStop,
        StopOnDiscrepancy,
        StopOnReward,
        StopOnUnchanged,
        StoppingRule,
        StopWhen,
    )
    from ezgreedy.exploration.temporally_extended import TemporallyExtended
    from ezgreedy.exploration.triggers import DiscrepancyTrigger
    from ezgreedy.finite_mdp import FiniteMDP

__version__ = "0.1.0"

__all__ = [
    "ActionNoise",
    "ActionRepeats",
    "AnyStop",
    "ColouredNoise",
    "CoverageReport",
    "DiscrepancyTrigger",
    "DurationLaw",
    "EZGreedy",
    "EpsilonGreedy",
    "FiniteMDP",
    "FiniteOptions",
    "Fixed",
    "Geometric",
    "HeldActions",
    "HeldNoise",
    "History",
    "Homeostat",
    "Linear",
    "Option",
    "OptionSet",
    "OrnsteinUhlenbeck",
    "PlusOne",
    "Primitives",
    "StopOnDiscrepancy",
    "StopOnReward",
    "StopOnUnchanged",
    "StopWhen",
    "StoppingRule",
    "TemporallyExtended",
    "TimedPolicies",
    "Uniform",
    "WhiteNoise",
    "Zeta",
    "eigenoptions",
    "exploratory_share",
    "follow",
    "full_coverage",
    "ladder",
    "matched_epsilon",
    "primitive",
    "repeat",
    "sequence",
]

# The general form is loaded when first asked for, which keeps the import of the rest light.
_LOADED_ON_DEMAND = {
    "ezgreedy.exploration.eigenoptions": ("eigenoptions",),
    "ezgreedy.exploration.full_coverage": ("CoverageReport", "full_coverage"),
    "ezgreedy.exploration.options": (
        "ActionRepeats",
        "FiniteOptions",
        "History",
        "Option",
        "OptionSet",
        "Primitives",
        "TimedPolicies",
        "follow",
        "primitive",
        "repeat",
        "sequence",
    ),
    "ezgreedy.exploration.held_actions": ("HeldActions",),
    "ezgreedy.exploration.homeostasis": ("Homeostat",),
    "ezgreedy.exploration.noise": (
        "ActionNoise",
        "ColouredNoise",
        "HeldNoise",
        "OrnsteinUhlenbeck",
        "WhiteNoise",
    ),
    "ezgreedy.exploration.stopping": (
        "AnyStop",
        "StopOnDiscrepancy",
        "StopOnReward",
        "StopOnUnchanged",
        "StopWhen",
        "StoppingRule",
    ),
    "ezgreedy.exploration.temporally_extended": ("TemporallyExtended",),
    "ezgreedy.exploration.triggers": ("DiscrepancyTrigger",),
    "ezgreedy.finite_mdp": ("FiniteMDP",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LOADED_ON_DEMAND.items():
        if name in names:
            value = getattr(import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'ezgreedy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
