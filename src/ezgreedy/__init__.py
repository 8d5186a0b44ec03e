"""Temporally-extended ε-greedy exploration (Dabney, Ostrovski & Barreto).

    from ezgreedy import EZGreedy

    explore = EZGreedy(num_actions=18, epsilon=0.1, lanes=8, seed=0)
    actions = explore(greedy_actions)
"""

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

__version__ = "0.1.0"

__all__ = [
    "DurationLaw",
    "EZGreedy",
    "EpsilonGreedy",
    "Fixed",
    "Geometric",
    "Linear",
    "PlusOne",
    "Uniform",
    "Zeta",
    "exploratory_share",
    "ladder",
    "matched_epsilon",
]
