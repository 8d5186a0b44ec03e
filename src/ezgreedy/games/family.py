"""A kind of game: how are its games named, made, presented and measured?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from typing import Protocol as Interface

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.games.environment import Environment
from ezgreedy.games.protocol import Protocol

LARGEST_SMALL_SCREEN = 20  # Atari's convolutions need 36


class Measured(Interface):
    """Two scores of a game: a random agent's, which becomes 0, and one that becomes 1."""

    @property
    def random_score(self) -> float:
        """Becomes 0."""

    @property
    def human_score(self) -> float:
        """Becomes 1."""


class NamedSuite(NamedTuple):
    """Games whose scores are summarised together, by medians and means.

    Args:
        name: name shown to people; `slug` is the same for links.
        games: random and reference score of each game.
        unit: the score that becomes 1, in words.
        source: source of those scores, in a sentence.
        gap: name of 1 − mean of min(1, score).
        is_papers: whether this is the suite of the paper's tables.
    """

    name: str
    slug: str
    games: Mapping[str, Measured]
    unit: str
    source: str
    gap: str
    is_papers: bool

    @property
    def measures(self) -> Mapping[str, Measured] | None:
        """The measures that functions of scores take: None for the suite of the paper."""
        return None if self.is_papers else self.games


class Maker(Interface):
    """Makes a game by its full name: a class of `Environment`, usually."""

    def __call__(
        self, name: str, protocol: Protocol | None = None, *, rng: np.random.Generator
    ) -> Environment:
        """One game, under its usual protocol if `protocol` is None."""


@dataclass(frozen=True)
class GameFamily:
    """A kind of game.

        registry.register(GameFamily("corridor", Corridor, lambda name: SMALL_WORLD, "corridor/N"))

    Args:
        name: short, unique name; a game's full name begins with it and a slash.
        make: makes a game by its full name.
        protocol: usual protocol of a game by its full name.
        shown_as: the games' names as `--help` shows them, such as "minatar/NAME".
        is_small: whether small networks are enough; None to decide by the size of the screen.
        has_pictures: False if observations are vectors; networks then have no convolutions.
        has_prefix: False only for Atari's games, whose names are bare.
        games: full names, if there is a list of them.
        suite: published scores, if there are any.
    """

    name: str
    make: Maker
    protocol: Callable[[str], Protocol]
    shown_as: str
    is_small: bool | None = None
    has_pictures: bool = True
    has_prefix: bool = True
    games: Callable[[], Sequence[str]] = tuple
    suite: Callable[[], NamedSuite] | None = None

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name:
            raise require.refuse("name", "be a word without a slash", self.name)

    @property
    def prefix(self) -> str:
        """The beginning of full names."""
        return f"{self.name}/" if self.has_prefix else ""

    def needs_small_network(self, protocol: Protocol) -> bool:
        """Whether Atari's networks would be too large, or would not even fit."""
        if self.is_small is not None:
            return self.is_small
        return protocol.screen_size <= LARGEST_SMALL_SCREEN
