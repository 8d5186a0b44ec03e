"""In which games does exploration alone find more with εz- than with ε-greedy? A table to sort.

Made from the summary of `atari-exploration`: a line for each game, a column for each measure, and
one such table for every ε and every law of durations that was tried.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ezgreedy.experiments.atari_findings import sign
from ezgreedy.report import wording
from ezgreedy.results.intervals import Interval

KEY = "conditions"  # of a summary's data, if it has an atlas

# What a summary calls it, and what a reader does; all but the second are differences εz − ε.
_COLUMNS = {
    "gain": "gain, % of human − random",
    "of_others": "return per episode of ε-greedy",
    "more_return": "more return per episode",
    "more_reward_per_1000_steps": "more reward per 1000 steps",
    "more_first_reward": "more steps to the first reward",
    "more_cells": "more screen cells",
    "more_memories": "more memory contents",
    "more_lives_lost_per_1000_steps": "more lives lost per 1000 steps",
}
_PAPERS = "μ = 2, n ≤ 10,000"  # the law that a reader asks for first
_NO_DIFFERENCE = "of_others"


class Cell(NamedTuple):
    """A number with its interval, as it is sorted and as it is read.

    Args:
        number: all its digits.
        value: written.
        interval: written, in brackets.
        sign: 1 or −1 if it is a difference whose whole interval lies on that side of 0, else 0.
    """

    number: float
    value: str
    interval: str
    sign: int


class Condition(NamedTuple):
    """One ε and one law of durations: the cells of every game, the largest gain first."""

    label: str
    rows: Mapping[str, Sequence[Cell]]


class Atlas(NamedTuple):
    """Every condition under the same columns; `first` is the place of the one to begin with."""

    columns: Sequence[str]
    conditions: Sequence[Condition]
    first: int
    num_games: int
    num_steps: int


def atlas_from_json(data: Mapping[str, Any]) -> Atlas | None:
    """The atlas in a summary's data, if there is one; what cannot be read raises."""
    if KEY not in data:
        return None
    entries = data[KEY]
    differing = [entry for entry in entries if "gain" in entry]
    if not differing:
        return None
    returns = {
        (entry["game"], entry["epsilon"]): entry["return"]
        for entry in entries
        if "gain" not in entry
    }
    complete = [
        {**entry, _NO_DIFFERENCE: returns[entry["game"], entry["epsilon"]]} for entry in differing
    ]
    # Summaries of earlier versions have fewer differences.
    names = [name for name in _COLUMNS if all(name in entry for entry in complete)]
    labels = list(dict.fromkeys(map(_label, complete)))
    return Atlas(
        [_COLUMNS[name] for name in names],
        [
            Condition(label, _rows([entry for entry in complete if _label(entry) == label], names))
            for label in labels
        ],
        next((place for place, label in enumerate(labels) if label.endswith(_PAPERS)), 0),
        len({entry["game"] for entry in complete}),
        int(data["num_steps"]),
    )


def _label(entry: Mapping[str, Any]) -> str:
    return f"ε = {entry['epsilon']:g}, {entry['policy']}"


def _rows(entries: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[Cell]]:
    in_order = sorted(entries, key=lambda entry: (-entry["gain"][0], entry["game"]))
    return {
        entry["game"]: [_cell(entry[name], is_difference=name != _NO_DIFFERENCE) for name in names]
        for entry in in_order
    }


def _cell(parts: Sequence[float], *, is_difference: bool) -> Cell:
    interval = Interval(*map(float, parts))
    value, low, high = wording.number_parts(interval)
    side = sign(interval) if is_difference else 0
    return Cell(interval.value, value, f"[{low}, {high}]", side)
