"""Which kinds of games are there? The one place that knows; see `plugins` to add your own."""

import re

import numpy as np

from ezgreedy import plugins
from ezgreedy import requirements as require
from ezgreedy.games import deep_sea_images, gymnasium_images, memory_chain, minatar
from ezgreedy.games.atari import emulator
from ezgreedy.games.environment import Environment
from ezgreedy.games.family import GameFamily
from ezgreedy.games.protocol import Protocol

# What Gymnasium's and Gym's ids add to the name of a game.
_SPELLINGS = r"^ALE/|(NoFrameskip|Deterministic)?-v\d+$"

_families: dict[str, GameFamily] = {
    family.name: family
    for family in (
        emulator.FAMILY,
        minatar.FAMILY,
        deep_sea_images.FAMILY,
        memory_chain.FAMILY,
        gymnasium_images.FAMILY,
    )
}


def register(family: GameFamily) -> None:
    """Add a kind of game; refuse a name that is taken."""
    taken = _families.get(family.name)
    if taken is not None and taken != family:
        raise require.refuse(
            "family", f"have a name other than {', '.join(_families)}", family.name
        )
    _families[family.name] = family


def families() -> tuple[GameFamily, ...]:
    """All kinds of games, in the order in which they were registered."""
    plugins.load()
    return tuple(_families.values())


def family_of(game: str) -> GameFamily:
    """The kind of a game by its full name; names without a known prefix are Atari's."""
    if isinstance(game, str) and "/" in game:
        for family in families():
            if family.has_prefix and game.startswith(family.prefix):
                return family
    return emulator.FAMILY


def full_name(game: str) -> str:
    """The name under which a game is known here, from any usual spelling.

    Breakout is also breakout, ALE/Breakout-v5 and BreakoutNoFrameskip-v4; minatar/breakout is also
    MinAtar/Breakout-v1. Other names are returned as they are.
    """
    for family in families():
        known = {name.lower().replace("_", ""): name for name in family.games()}
        plain = re.sub(_SPELLINGS, "", game).lower().replace("_", "")
        if plain in known:
            return known[plain]
    return game


def make(name: str, protocol: Protocol | None = None, *, rng: np.random.Generator) -> Environment:
    """A game by name.

    "Freeway" is played on the emulator, "minatar/freeway" on MinAtar, and "gymnasium/CarRacing-v3"
    is the environment with that id. "deep_sea/20" is DeepSea with 20 rows, and "memory_chain/10"
    shows a cue to remember for 10 steps.
    """
    return family_of(name).make(name, protocol, rng=rng)
