"""Which side of its criterion does a number lie on, and what follows for a claim?

An interval decides a criterion if all of it lies on one side. A claim may have several readings,
ways to understand what the paper leaves open; its verdict follows from them and from nothing else.
"""

from collections.abc import Iterable
from typing import Literal

from ezgreedy import requirements as require
from ezgreedy.findings.intervals import Interval

Side = Literal["holds", "undecided", "contradicted"]
Verdict = Literal["reproduced", "reading-dependent", "undecided", "contradicted"]

# With fewer independent seeds (or games, where games are the sample) there is no verdict.
LEAST_FOR_A_VERDICT = 5


def above(interval: Interval, bound: float = 0.0) -> Side:
    """Holds if the whole interval lies above the bound, contradicted if it lies below."""
    if interval.low > bound:
        return "holds"
    return "contradicted" if interval.high < bound else "undecided"


def below(interval: Interval, bound: float = 0.0) -> Side:
    """Holds if the whole interval lies below the bound, contradicted if it lies above."""
    if interval.high < bound:
        return "holds"
    return "contradicted" if interval.low > bound else "undecided"


def all_of(sides: Iterable[Side]) -> Side:
    """A claim in several parts: it holds if all do, and is contradicted if one of them is."""
    parts = list(sides)
    if not parts:
        raise require.refuse("sides", "hold at least one", 0)
    if "contradicted" in parts:
        return "contradicted"
    return "undecided" if "undecided" in parts else "holds"


def verdict_of(readings: Iterable[Side]) -> Verdict:
    """Reproduced if it holds under every reading, reading-dependent if only under some.

    If it holds under none, it is contradicted if the opposite is shown under at least one, and
    undecided otherwise.
    """
    sides = list(readings)
    if not sides:
        raise require.refuse("readings", "hold at least one", 0)
    if "holds" in sides:
        return "reproduced" if set(sides) == {"holds"} else "reading-dependent"
    return "contradicted" if "contradicted" in sides else "undecided"
