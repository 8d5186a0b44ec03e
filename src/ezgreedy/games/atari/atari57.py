"""Which games are in Atari-57, and how well do a random agent and a person play them?

The scores in `games.csv` are those of dqn_zoo's `atari_data.py`, which nearly every table since
2015 shares; the sizes of the minimal action sets were counted in the sources of the Arcade Learning
Environment, and a test compares them with the installed one. Names are those of ale-py.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ezgreedy import requirements as require

# Paper: "games such as Montezuma's Revenge, Pitfall!, Private Eye, and Venture have been identified
# as 'hard exploration games'".
HARD_EXPLORATION = ("MontezumaRevenge", "Pitfall", "PrivateEye", "Venture")

NUM_FULL_ACTIONS = 18


@dataclass(frozen=True)
class Game:
    """A game with the scores by which its results are measured."""

    name: str
    random_score: float
    human_score: float
    num_minimal_actions: int

    @property
    def rom(self) -> str:
        """ale-py's name of the cartridge: montezuma_revenge for MontezumaRevenge."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()

    @property
    def is_hard_exploration(self) -> bool:
        """Whether the paper names it among the hard exploration games."""
        return self.name in HARD_EXPLORATION

    def human_normalised(self, score: float) -> float:
        """(score − random) / (human − random): 0 for a random agent, 1 for a person."""
        return (score - self.random_score) / (self.human_score - self.random_score)


@cache
def games() -> dict[str, Game]:
    """The 57 games by name, in alphabetical order."""
    table = (
        resources.files("ezgreedy.games.atari").joinpath("atari57.csv").read_text(encoding="utf-8")
    )
    rows = csv.DictReader(table.splitlines())
    return {
        row["game"]: Game(
            row["game"], float(row["random"]), float(row["human"]), int(row["minimal_actions"])
        )
        for row in rows
    }


def game(name: str) -> Game:
    """The game of that name; refuses an unknown name and suggests the nearest ones."""
    if not isinstance(name, str):
        raise require.refuse_type("game", "be the name of a game", name)
    known = games()
    if name not in known:
        raise require.refuse_name(
            "game",
            "be one of the 57 Atari games, or FAMILY/NAME as in minatar/breakout and gymnasium/ID",
            name,
            known,
        )
    return known[name]
