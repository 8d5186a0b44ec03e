"""After how many steps was each cell first visited, over many trials?

The paper's rule (appendix, "First-visit visualizations"): a cell never visited in a trial gets the
maximum step count, and the numbers are averaged over trials. Numbers are kept per trial, so that
intervals can be drawn over trials.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.requirements import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FirstVisitTimes:
    """First visits and visit counts of all cells, trial by trial.

    Times count environment steps: a state seen after k steps is visited at k, the first at 0. When
    an episode ends, its last state and the next one's first are visited at the same k.

    Args:
        first: the step of the first visit, `num_steps` if there was none, [trials, cells].
        visits: how often each cell was visited, [trials, cells].
        num_steps: steps of each trial.
        shape: number of cells along each dimension.
    """

    first: IntArray
    visits: IntArray
    num_steps: int
    shape: tuple[int, ...]

    @property
    def num_trials(self) -> int:
        """The number of trials."""
        return len(self.first)

    def mean_map(self) -> FloatArray:
        """The mean first-visit time of every cell, laid out as `shape`."""
        return self.first.mean(axis=0).reshape(self.shape)

    def visit_map(self) -> FloatArray:
        """The mean number of visits of every cell, laid out as `shape`."""
        return self.visits.mean(axis=0).reshape(self.shape)

    def never_map(self) -> FloatArray:
        """The share of trials that never visited each cell, laid out as `shape`."""
        return (self.visits == 0).mean(axis=0).reshape(self.shape)

    def trial_means(self, cells: BoolArray | None = None) -> FloatArray:
        """Each trial's mean first-visit time over all cells or those of a mask, [trials]."""
        return self.first[:, self._chosen(cells)].mean(axis=1)

    def trial_never(self, cells: BoolArray | None = None) -> FloatArray:
        """Each trial's share of cells never visited, [trials]."""
        return (self.visits[:, self._chosen(cells)] == 0).mean(axis=1)

    def _chosen(self, cells: BoolArray | None) -> BoolArray:
        if cells is None:
            return np.ones(self.first.shape[1], dtype=np.bool_)
        chosen = require.mask("cells", cells, self.shape).ravel()
        if not chosen.any():
            raise require.refuse("cells", "hold at least one cell", cells.tolist())
        return chosen


class VisitTally:
    """First visits and visit counts so far; the reference for what a first visit is.

    Compiled loops count on their own, and tests compare them with this class.

    Args:
        num_trials: number of trials counted side by side.
        shape: number of cells along each dimension.
    """

    def __init__(self, num_trials: int, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.num_cells = math.prod(shape)
        # The largest int stands for "not yet": the maximum step count is known only at the end.
        self._first = np.full(num_trials * self.num_cells, np.iinfo(np.int64).max)
        self._visits = np.zeros_like(self._first)

    def add(self, step: int, trials: IntArray, cells: IntArray) -> None:
        """Counts the cells of these trials after `step` steps."""
        places = trials * self.num_cells + cells
        self._first[places] = np.minimum(self._first[places], step)
        self._visits[places] += 1

    def result(self, num_steps: int) -> FirstVisitTimes:
        """The counts, for trials of this many steps."""
        first = np.minimum(self._first, num_steps).reshape(-1, self.num_cells)
        visits = self._visits.reshape(-1, self.num_cells)
        return FirstVisitTimes(first, visits, num_steps, self.shape)


class PaperSetting(NamedTuple):
    """One row of the paper's table of first-visit settings.

    Args:
        trials: number of runs averaged over.
        steps: steps of each run; for DeepSea, times its size.
        max_episode_steps: limit on the length of episodes; for DeepSea, times its size.
        scale: scale of the colours.
        bins: cells along each dimension of a continuous state; None if states are finite.
        grows_with_size: whether steps and max_episode_steps are multiplied by the size N.
    """

    trials: int
    steps: int
    max_episode_steps: int
    scale: str
    bins: int | None
    grows_with_size: bool = False

    def at_size(self, size: int) -> "PaperSetting":
        """The numbers for an environment of this size; the same if they do not grow with it."""
        require.integer("size", size, least=1)
        if not self.grows_with_size:
            return self
        return self._replace(
            steps=self.steps * size,
            max_episode_steps=self.max_episode_steps * size,
            grows_with_size=False,
        )


# Paper: Table "Settings for experiments used to generate average first-visit visualizations".
PAPER_SETTINGS = {
    "DeepSea": PaperSetting(5, 500_000, 1, "log", None, grows_with_size=True),
    "GridWorld": PaperSetting(100, 5000, 5000, "linear", None),
    "MountainCar": PaperSetting(50, 5000, 5000, "linear", 12),
    "CartPole": PaperSetting(100, 5000, 5000, "linear", 20),
}
