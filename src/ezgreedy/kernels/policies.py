"""How does a compiled run explore? With some ε and some law of durations."""

from typing import NamedTuple

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw, InverseTable


class Exploration(NamedTuple):
    """How a run explores, as compiled code takes it; see `exploration`."""

    epsilon: float
    durations: InverseTable
    carries_over_episodes: bool


def exploration(
    epsilon: float, durations: DurationLaw, carries_over_episodes: bool = False
) -> Exploration:
    """εz-greedy with this law; with `Fixed(1)` it is ε-greedy.

    Args:
        epsilon: probability of starting an option.
        durations: law of the option's length.
        carries_over_episodes: whether options survive episode ends.
    """
    return Exploration(
        require.number("epsilon", epsilon, 0.0, 1.0),
        durations.inverse,
        require.flag("carries_over_episodes", carries_over_episodes),
    )
