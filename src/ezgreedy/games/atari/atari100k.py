"""Atari-100k: 26 games, 100,000 agent steps each, and the scores of others.

The scores in `atari100k.csv` were published game by game: data-efficient Rainbow (DER) by van
Hasselt, Hessel and Aslanides (2019), which is Rainbow with other settings, and DrQ(ε), means of 100
runs, by Agarwal et al. (2021). Random and human scores are those of all Atari tables.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

NUM_STEPS = 100_000
NUM_FRAMES = 4 * NUM_STEPS
SCALES = ("atari100k", "atari100k-dopamine")  # as on a command line


@dataclass(frozen=True)
class Published:
    """Scores of a game after 100,000 agent steps, and the scores that count as 0 and 1."""

    game: str
    random_score: float
    human_score: float
    der: float
    drq_eps: float

    def human_normalised(self, score: float) -> float:
        """(score − random) / (human − random): 0 for a random agent, 1 for a person."""
        return (score - self.random_score) / (self.human_score - self.random_score)

    def share_of_der(self, score: float) -> float:
        """(score − random) / (DER − random): 1 for DER's published score."""
        return (score - self.random_score) / (self.der - self.random_score)


@cache
def published() -> dict[str, Published]:
    """The 26 games by name, in alphabetical order."""
    table = (
        resources.files("ezgreedy.games.atari")
        .joinpath("atari100k.csv")
        .read_text(encoding="utf-8")
    )
    return {
        row["game"]: Published(
            row["game"],
            *(float(row[name]) for name in ("random", "human", "der_2019", "drq_eps")),
        )
        for row in csv.DictReader(table.splitlines())
    }
