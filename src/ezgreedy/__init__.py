"""Temporally-extended ε-greedy exploration (Dabney, Ostrovski & Barreto).

from ezgreedy import EZGreedy

explore = EZGreedy(num_actions=18, epsilon=0.1, lanes=8, seed=0)
actions = explore(greedy_actions)
"""

from ezgreedy.exploration.coverage import CoverageReport, full_coverage
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
from ezgreedy.exploration.schedules import Linear, ladder
from ezgreedy.exploration.temporally_extended import TemporallyExtended
from ezgreedy.finite_mdp import FiniteMDP

__version__ = "0.1.0"

__all__ = [
    "ActionRepeats",
    "CoverageReport",
    "DurationLaw",
    "EZGreedy",
    "EpsilonGreedy",
    "FiniteMDP",
    "FiniteOptions",
    "Fixed",
    "Geometric",
    "History",
    "Linear",
    "Option",
    "OptionSet",
    "PlusOne",
    "Primitives",
    "TemporallyExtended",
    "TimedPolicies",
    "Uniform",
    "Zeta",
    "exploratory_share",
    "follow",
    "full_coverage",
    "ladder",
    "matched_epsilon",
    "primitive",
    "repeat",
    "sequence",
]
