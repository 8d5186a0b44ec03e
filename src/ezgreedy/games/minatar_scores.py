"""What do a random agent and a published one score on MinAtar? The scale of its results.

In `minatar_scores.csv`, random scores are our own: `random_returns(game, 500, seed=0)`, all six
actions equally likely under `MINATAR`, with minatar 1.0.15; the error is that of their mean. DQN's
are those of Young and Tian (2019): 30 seeds, mean return of training episodes after a million
frames, read off their figure to 5 % at best. Seaquest's is from before version 1.0.11, which fixed
its oxygen bar: good enough as a unit, but not for comparison.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.games.lanes import lane_rng
from ezgreedy.games.minatar import GAMES, PREFIX, MinAtar

PUBLISHED_FRAMES = 1_000_000
PUBLISHED_ACCURACY = 0.05


@dataclass(frozen=True)
class MinAtarScores:
    """The scores by which one game's results are measured.

    Args:
        random_score: mean score of an agent that picks actions at random.
        random_error: the standard error of that mean.
        dqn_score: DQN's published score at a million frames.
        is_comparable: whether that was on the game in its current version.
    """

    random_score: float
    random_error: float
    dqn_score: float
    is_comparable: bool

    @property
    def human_score(self) -> float:
        """The score that becomes 1 when normalised: DQN's, as there is no person's."""
        return self.dqn_score


@cache
def minatar_scores() -> dict[str, MinAtarScores]:
    """The five games by name, in alphabetical order."""
    table = resources.files("ezgreedy.games").joinpath("minatar_scores.csv")
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    return {
        PREFIX + row["game"]: MinAtarScores(
            float(row["random"]),
            float(row["random_error"]),
            float(row["dqn_at_1m"]),
            row["is_comparable"] == "yes",
        )
        for row in rows
    }


def random_returns(name: str, num_episodes: int, seed: int) -> list[float]:
    """Returns of whole episodes of uniformly random actions; needs the package.

    Args:
        name: "minatar/" and one of `GAMES`.
        num_episodes: number of episodes.
        seed: random seed of the game and of the actions.
    """
    require.integer("num_episodes", num_episodes, least=1)
    lane = GAMES.index(name.removeprefix(PREFIX))
    played = MinAtar(name, rng=lane_rng(seed, lane))
    rng = np.random.default_rng([seed, lane])
    returns = []
    for _ in range(num_episodes):
        played.reset()
        total, is_running = 0.0, True
        while is_running:
            step = played.step(int(rng.integers(played.num_actions)))
            total += step.reward
            is_running = not (step.terminated or step.truncated)
        returns.append(total)
    return returns
