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
        source: where the scores that become 0 and 1 are from, in a sentence.
        gap: what 1 − mean of min(1, score) is called.
        is_papers: whether it is the suite that the paper's tables are of.
    """

    name: str
    slug: str
    games: Suite
    unit: str
    source: str
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
        NamedSuite(
            "Atari-57",
            "atari57",
            atari57(),
            "a person's score",
            "Random and human scores are those of dqn_zoo's atari_data.py, which nearly every "
            "table since 2015 shares.",
            "human-gap",
            True,
        ),
        NamedSuite(
            "MinAtar",
            "minatar",
            minatar_scores(),
            "the training return of DQN at a million frames",
            "Random scores are our own, means of 500 episodes of minatar 1.0.15. DQN's are those "
            "of Young and Tian (2019), 30 seeds, read off their figure to about 5 %; Seaquest's is "
            "from before version 1.0.11, which mended the game, and serves as a unit only.",
            "DQN-gap",
            False,
        ),
    )
