"""Which games are told together, and what is 0 and 1 in their scores? Atari-57 and MinAtar."""

from functools import cache
from typing import NamedTuple

from ezgreedy.atari.games import games as atari57
from ezgreedy.atari.minatar_scores import minatar_scores
from ezgreedy.results.scores import Suite


class NamedSuite(NamedTuple):
    """Games that medians and means are over.

    Args:
        name: for people; `slug` is the same for links.
        games: what each is measured by.
        unit: whose score becomes 1, in words.
        gap: what 1 − mean of min(1, score) is called.
        is_papers: whether it is the suite that the paper's tables are of.
    """

    name: str
    slug: str
    games: Suite
    unit: str
    gap: str
    is_papers: bool

    @property
    def measures(self) -> Suite | None:
        """As the functions of scores take it: None for the suite of the paper."""
        return None if self.is_papers else self.games


@cache
def suites() -> tuple[NamedSuite, ...]:
    """All there are; no game is in two."""
    return (
        NamedSuite("Atari-57", "atari57", atari57(), "a person's score", "human-gap", True),
        NamedSuite(
            "MinAtar",
            "minatar",
            minatar_scores(),
            "the training return of DQN at a million frames as published by Young and Tian (2019), "
            "read off their figure to about 5 % (Seaquest's is from before version 1.0.11, which "
            "mended the game, and serves as a unit only)",
            "DQN-gap",
            False,
        ),
    )
