"""Which games are summarised together, and which scores become 0 and 1?"""

from functools import cache

from ezgreedy.games.family import NamedSuite
from ezgreedy.games.registry import families


@cache
def suites() -> tuple[NamedSuite, ...]:
    """The suites of all game families that have one; no game is in two."""
    return tuple(family.suite() for family in families() if family.suite is not None)
