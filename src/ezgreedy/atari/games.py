"""Which games Atari-57 has, and how well a random agent and a person play each of them.

The scores in `games.csv` are those of dqn_zoo's `atari_data.py`, which nearly every table since
2015 shares; the sizes of the minimal action sets were counted in the sources of the Arcade Learning
Environment, and a test compares them with the installed one. Names are those of ale-py.
"""

import csv
import difflib
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
    """A game with the scores that its results are measured by."""

    name: str
    random_score: float
    human_score: float
    num_minimal_actions: int

    @property
    def rom(self) -> str:
        """The name under which ale-py keeps the cartridge: MontezumaRevenge's montezuma_revenge."""
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
    table = resources.files("ezgreedy.atari").joinpath("games.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(table.splitlines())
    return {
        row["game"]: Game(
            row["game"], float(row["random"]), float(row["human"]), int(row["minimal_actions"])
        )
        for row in rows
    }


def game(name: str) -> Game:
    """The game of that name; an unknown name is refused with the nearest ones."""
    if not isinstance(name, str):
        raise require.refuse_type("game", "be the name of a game", name)
    known = games()
    if name not in known:
        raise require.refuse("game", f"be one of the 57 Atari games{near(name, list(known))}", name)
    return known[name]


def near(name: str, known: list[str]) -> str:
    """Words that suggest the known names closest to one that is not known; "" if none is close."""
    plain = {_plain(item): item for item in known}
    within = [item for item in plain if item in _plain(name)]  # Gymnasium's ids hold the name
    close = within or difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(plain[item] for item in close)}?)" if close else ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
