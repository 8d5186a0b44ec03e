"""How soon does your own policy see an environment? Maps beside those of ε- and εz-greedy.

The policy needs `lanes`, a call and a `reset`. The same class works on the command line, from this
folder: `ezgreedy coverage FrozenLake-v1 --policy coverage_of_your_policy:Sweeping --out out/lake`.
"""

import tempfile
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np

from ezgreedy import EpsilonGreedy, EZGreedy, Zeta
from ezgreedy.analysis import Bins, Layout, draw_maps, first_visits, grid_width

TRIALS, STEPS = 20, 400


class Sweeping:
    """Repeats each action a little longer than the one before; starts over with every episode."""

    def __init__(self, num_actions, epsilon=1.0, lanes=1, seed=0):
        self.num_actions, self.lanes, self.seed = num_actions, lanes, seed
        self.steps_taken = np.zeros(lanes, dtype=np.int64)
        self.first_actions = np.random.default_rng(seed).integers(num_actions, size=lanes)

    def __call__(self, greedy):
        """The actions to execute, given the greedy ones (which this policy never plays)."""
        num_sweeps = (np.sqrt(8 * self.steps_taken + 1).astype(np.int64) - 1) // 2
        self.steps_taken += 1
        return (self.first_actions + num_sweeps) % self.num_actions

    def reset(self, finished):
        """Learns which episodes have ended."""
        self.steps_taken[finished] = 0
        self.first_actions[finished] += 1


def compare(directory):
    """Runs three policies in one environment, prints what they reach and draws maps."""
    make = partial(gymnasium.make, "FrozenLake-v1", map_name="8x8", is_slippery=False)
    env = make()
    bins = Bins.of(env.observation_space)
    policies = {
        "sweeping": Sweeping(4, lanes=TRIALS),
        "ez": EZGreedy(4, 1.0, Zeta(cap=100), lanes=TRIALS),
        "eps": EpsilonGreedy(4, 1.0, lanes=TRIALS),
    }
    results = {name: first_visits(make, explore, STEPS, bins) for name, explore in policies.items()}
    for name, visits in results.items():
        print(
            f"{name}: {visits.trial_means().mean():.0f} steps to the first visit of a cell, "
            f"{visits.trial_never().mean():.0%} of cells never seen"
        )
    layout = Layout(bins, grid_width(env, bins))
    titles = {"sweeping": "sweeping", "ez": "εz-greedy", "eps": "ε-greedy"}
    return draw_maps(results, titles, layout, "FrozenLake 8 × 8", directory)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        files = compare(Path(place))
        print("drew", ", ".join(sorted(file.name for file in files if file.suffix == ".png")))
