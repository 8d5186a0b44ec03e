"""In which games does exploration alone find more with εz- than with ε-greedy? A sortable table.

Made from the summary of `atari-exploration`: a row for each game, a column for each measure, and a
table for every ε and every duration law.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ezgreedy.findings.intervals import Interval
from ezgreedy.report import wording

Entry = Mapping[str, Any]  # one condition of one game

KEY = "conditions"  # key of an atlas in a summary's data

# Name in the summary ↦ heading of the column; all are differences εz − ε.
_COLUMNS = {
    "gain": "gain, % of human − random",
    "more_return": "more return per episode",
    "more_reward_per_1000_steps": "more reward per 1000 steps",
    "more_first_reward": "more steps to the first reward",
    "more_cells": "more screen cells",
    "more_memories": "more memory contents",
    "more_lives_lost_per_1000_steps": "more lives lost per 1000 steps",
}
_PAPERS = "μ = 2, n ≤ 10,000"  # the law to show first
_DIFFERENCE = "more_"
_PER_STEP = "more_reward_per_1000_steps"


class Difference(NamedTuple):
    """A difference with its interval, for sorting and for reading.

    Args:
        number: value with all its digits.
        value: value as text.
        interval: interval as text, in brackets.
        sign: 1 or −1 if it is more than chance, corrected for the number of games, else 0.
        both: the two numbers, ε-greedy's before εz-greedy's.
        early: numbers of walks or episodes that ended too early, in the same order; may be empty.
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
    rows: Mapping[str, Sequence[Difference]]


class Atlas(NamedTuple):
    """All conditions, with the same columns; `first` is the index of the one shown first.

    `sentence` says what it shows.
    """

    columns: Sequence[str]
    conditions: Sequence[Condition]
    first: int
    num_games: int
    num_seeds: int
    num_steps: int
    sentence: str


def atlas_from_json(data: Mapping[str, Any]) -> Atlas | None:
    """The atlas in a summary's data, if there is one; raises if it cannot be read."""
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
        _sentence(
            differing, _PAPERS if _PAPERS in {p for _, p in conditions} else conditions[0][1]
        ),
    )


def _sentence(entries: Sequence[Entry], policy: str) -> str:
    """On how many games a policy finds more reward per step than ε-greedy, and on how many less."""
    told = []
    for epsilon in dict.fromkeys(entry["epsilon"] for entry in entries):
        own = [entry[_PER_STEP] for entry in entries if _condition(entry) == (epsilon, policy)]
        up, down = (sum(sign * value > 0 for value, *_ in own) for sign in (1, -1))
        told.append(f"more on {up} of {len(own)} games and less on {down} at ε = {epsilon:g}")
    return f"Per step, εz-greedy with {policy} finds {'; '.join(told)}."


def _condition(entry: Entry) -> tuple[float, str]:
    return entry["epsilon"], entry["policy"]


def _label(epsilon: float, policy: str, share: float) -> str:
    """With the share of exploratory steps, which differs at equal ε."""
    told = "" if epsilon == 1.0 else f" ({100.0 * share:.0f} % of steps exploratory)"
    return f"ε = {epsilon:g}, {policy}{told}"


def _rows(
    entries: Sequence[Entry], others: Mapping[tuple[str, float], Entry], num_seeds: int
) -> dict[str, list[Difference]]:
    in_order = sorted(entries, key=lambda entry: (-entry["gain"][0], entry["game"]))
    return {
        entry["game"]: [
            _difference(name, entry, others[entry["game"], entry["epsilon"]], num_seeds)
            for name in _COLUMNS
        ]
        for entry in in_order
    }


def _difference(name: str, entry: Entry, other: Entry, num_seeds: int) -> Difference:
    interval = Interval(*map(float, entry[name]))
    value, low, high = wording.number_parts(interval)
    both, early = _both(name.removeprefix(_DIFFERENCE), [other, entry], num_seeds)
    # A gain is the return, in other units.
    measure = "more_return" if name == "gain" else name
    sign = int(entry["decided"].get(measure, 0))
    return Difference(interval.value, value, f"[{low}, {high}]", sign, both, early)


def _both(measure: str, entries: Sequence[Entry], num_seeds: int) -> tuple[str, str]:
    """`0.2 → 2.4`, and how many walks or episodes ended too early, if any did."""
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
