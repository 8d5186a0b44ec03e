"""How likely is a given sequence of exploratory actions? Exact probabilities.

Paper: with ε-greedy every sequence of k exploratory actions has probability (ε/|A|)^k, so that none
can be favoured; temporally extended exploration favours some over others (Section 4.1).
"""

from collections.abc import Sequence

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw


def sequence_probability(
    actions: Sequence[int], num_actions: int, epsilon: float, durations: DurationLaw
) -> float:
    """The probability that the next steps are all exploratory and play exactly these actions.

    It counts from a step on which no option runs. Every way to cut the sequence into options is
    added up, from the last step to the first; the last option may outlast the sequence.

    Args:
        actions: the sequence, one action or more.
        num_actions: number of actions, all equally likely.
        epsilon: probability of starting an option.
        durations: duration law; `Fixed(1)` is ε-greedy.
    """
    num_actions = require.integer("num_actions", num_actions, least=1)
    epsilon = require.number("epsilon", epsilon, 0.0, 1.0)
    played = [require.integer("actions", action, 0, num_actions - 1) for action in actions]
    if not played:
        raise require.refuse("actions", "hold at least one action", list(actions))
    num_steps = len(played)
    law = durations.pmf(np.arange(num_steps + 1))
    lasting = 1.0 - np.concatenate([[0.0], np.cumsum(law)[:-1]])  # entry n: n plays or more
    rest = np.ones(num_steps + 1)  # entry i: what follows from a decision on step i on
    for first in reversed(range(num_steps)):
        total = 0.0
        for last in range(first, _end_of_run(played, first)):
            plays = last - first + 1
            chance = lasting[plays] if last == num_steps - 1 else law[plays]
            total += chance * rest[last + 1]
        rest[first] = epsilon / num_actions * total
    return float(rest[0])


def _end_of_run(actions: Sequence[int], first: int) -> int:
    """The step after the last that repeats the action of this one without a break."""
    last = first
    while last < len(actions) and actions[last] == actions[first]:
        last += 1
    return last
