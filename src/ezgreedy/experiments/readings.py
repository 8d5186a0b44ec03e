"""Which policy do these settings name, and how do two policies compare?

Shared by the tabular experiments: settings that name the paper's open choices about εz-greedy, and
curves with intervals.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ezgreedy import requirements as require
from ezgreedy.experiments.experiment import Settings
from ezgreedy.exploration.durations import DurationLaw, Fixed, PlusOne, Zeta, matched_epsilon
from ezgreedy.findings.intervals import Interval, mean_interval
from ezgreedy.findings.panels import Curve

if TYPE_CHECKING:
    from ezgreedy.kernels.policies import Exploration

POLICIES = {"eps": "ε-greedy", "ez": "εz-greedy"}
# A control: εz-greedy with an ε at which it takes as many exploratory steps as ε-greedy.
EQUAL_BUDGET = "ez, equal budget"
POLICIES_AND_CONTROL = {**POLICIES, EQUAL_BUDGET: "εz-greedy, equal budget"}

# εz-greedy as in the paper's text, with a name for every choice.
EZ_SETTINGS: dict[str, Any] = {
    "mu": 2.0,
    "cap": 10_000,  # Paper: all experiments but Rainbow's
    "tail": "truncate",  # or "clip": what the cap does to longer durations
    "plays": "n",  # or "n+1", as Algorithm 1 is printed
    "carries_over_episodes": False,  # True if Algorithm 1, which never resets, is taken literally
}


def law_of(settings: Settings) -> DurationLaw:
    """The duration law of `settings["policy"]`; ε-greedy plays once under every reading."""
    if settings["policy"] == "eps":
        return Fixed(1)
    law = Zeta(settings["mu"], settings["cap"], settings["tail"])
    plays = require.one_of("plays", settings["plays"], ("n", "n+1"))
    return PlusOne(law) if plays == "n+1" else law


def policy_of(settings: Settings, epsilon: float) -> "Exploration":
    """The policy of `settings["policy"]` as kernels take it; ε is ε-greedy's."""
    from ezgreedy.kernels.policies import exploration

    law = law_of(settings)
    if settings["policy"] == EQUAL_BUDGET:
        epsilon = matched_epsilon(epsilon, law)
    return exploration(epsilon, law, settings["carries_over_episodes"])


def binned(values: ArrayLike, num_bins: int) -> list[float]:
    """Means over successive equal parts of a row, [num_bins]; a remainder is left out."""
    row = np.asarray(values, dtype=np.float64)
    width = len(row) // num_bins
    means: list[float] = row[: width * num_bins].reshape(num_bins, width).mean(axis=1).tolist()
    return means


def middles(num_episodes: int, num_bins: int) -> list[float]:
    """The episodes in the middle of equal parts of a run, [num_bins]."""
    width = num_episodes // num_bins
    return [(index + 0.5) * width for index in range(num_bins)]


def mean_curve(
    label: str,
    x: ArrayLike,
    rows: Sequence[Sequence[float]],
    colour: str | None = None,
) -> Curve:
    """The mean of curves, one for each seed, with its interval at every point."""
    points = [mean_interval(column) for column in np.asarray(rows).T]
    mean, low, high = ([round(point[part], 6) for point in points] for part in range(3))
    return Curve(label, x, mean, low, high, colour)


def interval_curve(
    label: str, x: ArrayLike, points: Sequence[Interval], colour: str | None = None
) -> Curve:
    """A curve through numbers that have intervals."""
    value, low, high = (list(part) for part in zip(*points, strict=True))
    return Curve(label, x, value, low, high, colour)
