"""Which games does a sweep's command line mean? Its own before others."""

from collections.abc import Sequence

from ezgreedy import requirements as require
from ezgreedy.games.registry import families, family_of, full_name


def game_of(name: str, own: Sequence[str]) -> str:
    """A game by name; for an unknown one, the sweep's own are suggested, if any is close."""
    found = _short(own).get(name, full_name(name))
    known = family_of(found).games()
    if not name or not known or found in known:
        return found
    others = [game for family in families() for game in family.games() if game not in own]
    close = _nearest_of(name, own) or require.nearest(name, others)
    if not close:
        return found  # refused with the rule for names when it is made
    raise require.refuse("--games", f"name known games{require.suggested(close)}", name)


def of_other_kinds(games: Sequence[str], own: Sequence[str]) -> list[str]:
    """A line for each game that is of another kind than a sweep's own games."""
    kinds = dict.fromkeys(family_of(game).name for game in own)
    lines = []
    for game in games:
        kind = family_of(game).name
        if kind not in kinds:
            meant = require.suggested(_nearest_of(game, own))
            told = f"{game} is a game of {kind}; those of this sweep are of {' and '.join(kinds)}"
            lines.append(told + meant)
    return lines


def _short(games: Sequence[str]) -> dict[str, str]:
    return {name.rpartition("/")[2]: name for name in games}


def _nearest_of(name: str, own: Sequence[str]) -> list[str]:
    """The games of a sweep closest to a name, whether or not it says their kind."""
    short = _short(own)
    return [short[close] for close in require.nearest(name.rpartition("/")[2], short)]
