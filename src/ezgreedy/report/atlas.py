"""In which games does exploration alone find more with εz- than with ε-greedy? A table to sort.

Made from the summary of `atari-exploration`: a line for each game, a column for each measure, and
one such table for every ε and every law of durations that was tried.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ezgreedy.experiments.atari_findings import sign
from ezgreedy.report import wording
from ezgreedy.results.intervals import Interval

Entry = Mapping[str, Any]  # of one condition of one game

KEY = "conditions"  # of a summary's data, if it has an atlas

# What a summary calls it, and what a reader does; all are differences εz − ε.
_COLUMNS = {
    "gain": "gain, % of human − random",
    "more_return": "more return per episode",
    "more_reward_per_1000_steps": "more reward per 1000 steps",
    "more_first_reward": "more steps to the first reward",
    "more_cells": "more screen cells",
    "more_memories": "more memory contents",
    "more_lives_lost_per_1000_steps": "more lives lost per 1000 steps",
}
_PAPERS = "μ = 2, n ≤ 10,000"  # the law that a reader asks for first
_DIFFERENCE = "more_"


class Cell(NamedTuple):
    """A number with its interval, as it is sorted and as it is read.

    Args:
        number: all its digits.
        value: written.
        interval: written, in brackets.
        sign: 1 or −1 if the whole interval lies on that side of 0 and seeds are enough, else 0.
        both: what it is the difference of, ε-greedy's number before εz-greedy's.
        early: how many of them ended too early to tell, in the same order; empty if none did.
    """

    number: float
    value: str
    interval: str
    sign: int
    both: str
    early: str


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
    num_seeds: int
    num_steps: int


def atlas_from_json(data: Mapping[str, Any]) -> Atlas | None:
    """The atlas in a summary's data, if there is one; what cannot be read raises."""
    if KEY not in data:
        return None
    entries = data[KEY]
    differing = [entry for entry in entries if "gain" in entry]
    if not differing:
        return None
    num_seeds = int(data["num_seeds"])
    others = {(entry["game"], entry["epsilon"]): entry for entry in entries if "gain" not in entry}
    shares = {(entry["epsilon"], entry["policy"]): entry["share"] for entry in data["shares"]}
    conditions = list(dict.fromkeys((entry["epsilon"], entry["policy"]) for entry in differing))
    return Atlas(
        list(_COLUMNS.values()),
        [
            Condition(
                _label(*condition, shares[condition]),
                _rows(
                    [entry for entry in differing if _condition(entry) == condition],
                    others,
                    num_seeds,
                ),
            )
            for condition in conditions
        ],
        next((place for place, (_, policy) in enumerate(conditions) if policy == _PAPERS), 0),
        len({entry["game"] for entry in differing}),
        num_seeds,
        int(data["num_steps"]),
    )


def _condition(entry: Entry) -> tuple[float, str]:
    return entry["epsilon"], entry["policy"]


def _label(epsilon: float, policy: str, share: float) -> str:
    """With how much of it is exploration, which equal ε do not make equal."""
    told = "" if epsilon == 1.0 else f" ({100.0 * share:.0f} % of steps exploratory)"
    return f"ε = {epsilon:g}, {policy}{told}"


def _rows(
    entries: Sequence[Entry], others: Mapping[tuple[str, float], Entry], num_seeds: int
) -> dict[str, list[Cell]]:
    in_order = sorted(entries, key=lambda entry: (-entry["gain"][0], entry["game"]))
    return {
        entry["game"]: [
            _cell(name, entry, others[entry["game"], entry["epsilon"]], num_seeds)
            for name in _COLUMNS
        ]
        for entry in in_order
    }


def _cell(name: str, entry: Entry, other: Entry, num_seeds: int) -> Cell:
    interval = Interval(*map(float, entry[name]))
    value, low, high = wording.number_parts(interval)
    both, early = _both(name.removeprefix(_DIFFERENCE), [other, entry], num_seeds)
    return Cell(interval.value, value, f"[{low}, {high}]", sign(interval, num_seeds), both, early)


def _both(measure: str, entries: Sequence[Entry], num_seeds: int) -> tuple[str, str]:
    """`0.2 → 2.4`, and how many walks or episodes ended too early to tell, if any did."""
    if not all(measure in entry for entry in entries):
        return "", ""
    key, words = {
        "first_reward": ("walks_without_reward", f"of {num_seeds} walks without"),
        "return": ("cut_episodes", "episodes cut"),
    }.get(measure, ("", ""))
    counts = [int(entry[key]) if key else 0 for entry in entries]
    told = [
        ("≥ " if count and measure == "first_reward" else "")
        + wording.plain(float(entry[measure][0]))
        for entry, count in zip(entries, counts, strict=True)
    ]
    early = f"{counts[0]} → {counts[1]} {words}" if any(counts) else ""
    return " → ".join(told), early
