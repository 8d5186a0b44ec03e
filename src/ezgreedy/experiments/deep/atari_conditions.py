"""What did every condition of `atari-exploration` find? Policies by name, and their estimates.

Each game's differences are one family of comparisons per measure, ε and policy, and are corrected
as such: `decided` names those that are more than chance. Over games there are sign tests, which
need no seed's variance; they are one family, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ezgreedy.experiments.deep import atari_measures as measures
from ezgreedy.experiments.experiment import Record, Settings, results_by_cell
from ezgreedy.exploration.durations import DurationLaw, Fixed, Zeta, exploratory_share
from ezgreedy.findings.comparisons import adjusted, decided, sign_test
from ezgreedy.findings.intervals import Interval
from ezgreedy.games.atari.atari57 import game
from ezgreedy.requirements import FloatArray

EPS = "ε-greedy"

# Measures over games, by name: the difference of a game, and whether more of it is better.
OVER_GAMES = {
    "episode": ("more_return", 1),
    "step": ("more_reward_per_1000_steps", 1),
    "first": ("more_first_reward", -1),
}

Place = tuple[str, float, str]  # game, ε and policy


@dataclass(frozen=True)
class Found:
    """What all walks found: `conditions` by game, ε and policy, `overall` by ε and policy."""

    settings: Settings
    num_seeds: int
    conditions: Mapping[Place, Mapping[str, Any]]
    overall: Mapping[tuple[float, str], Mapping[str, Any]]

    @classmethod
    def of(cls, settings: Settings, records: Sequence[Record]) -> "Found":
        """Estimates everything, in the order of the cells."""
        tables = {
            cell: measures.table(walks, settings["num_steps"])
            for cell, walks in results_by_cell(records).items()
        }
        num_seeds = len(next(iter(tables.values())))
        conditions = {
            (name, epsilon, policy): _condition(tables, (name, epsilon, policy))
            for name in settings["games"]
            for epsilon in settings["epsilons"]
            for policy in policies(settings)
        }
        others = [
            (epsilon, policy)
            for epsilon in settings["epsilons"]
            for policy in list(policies(settings))[1:]
        ]
        for epsilon, policy in others:
            _decide([conditions[name, epsilon, policy] for name in settings["games"]])
        overall = {
            (epsilon, policy): _overall(
                [conditions[name, epsilon, policy] for name in settings["games"]],
                [conditions[name, epsilon, EPS] for name in settings["games"]],
            )
            for epsilon, policy in others
        }
        _correct({place: overall[place] for place in others if place[1] in judged(settings)})
        return cls(settings, num_seeds, conditions, overall)

    def as_json(self) -> dict[str, Any]:
        """Rows for figures and pages; intervals as [value, low, high]."""
        return {
            "num_steps": self.settings["num_steps"],
            "num_seeds": self.num_seeds,
            "shares": [
                {"epsilon": epsilon, "policy": policy, "share": share(epsilon, law)}
                for epsilon in self.settings["epsilons"]
                for policy, law in policies(self.settings).items()
            ],
            "conditions": [
                {"game": name, "epsilon": epsilon, "policy": policy, **_rounded(entry)}
                for (name, epsilon, policy), entry in self.conditions.items()
            ],
            "overall": [
                {"epsilon": epsilon, "policy": policy, **_rounded(entry)}
                for (epsilon, policy), entry in self.overall.items()
            ],
        }


def policies(settings: Settings) -> dict[str, tuple[float, int]]:
    """μ and cap of every policy by name; a cap of 1 is ε-greedy for any μ."""
    return {EPS: (settings["judged_mu"], 1)} | {
        _policy_name(mu, cap): (mu, cap) for mu in settings["mus"] for cap in settings["caps"]
    }


def cell_name(name: str, epsilon: float, policy: str) -> str:
    """The name of one condition."""
    return f"{name}, ε = {epsilon:g}, {policy}"


def _policy_name(mu: float, cap: int) -> str:
    return f"μ = {mu:g}, n ≤ {cap:,}"


def judged(settings: Settings) -> list[str]:
    """The names of the policies that claims are about."""
    return [_policy_name(settings["judged_mu"], cap) for cap in settings["caps"]]


def duration_law(mu: float, cap: int) -> DurationLaw:
    """The duration law of a policy; a cap of 1 is ε-greedy's."""
    return Fixed(1) if cap == 1 else Zeta(mu, cap)


def share(epsilon: float, law: tuple[float, int]) -> float:
    """The share of exploratory steps in the long run."""
    return float(f"{exploratory_share(epsilon, duration_law(*law)):.4g}")


def _condition(tables: Mapping[str, FloatArray], place: Place) -> dict[str, Any]:
    """All measures of one condition and, for εz-greedy, how they differ from ε-greedy's."""
    name, epsilon, policy = place
    seeds = tables[cell_name(*place)]
    entry: dict[str, Any] = {
        measure: measures.estimate(seeds, measure) for measure in measures.MEASURES
    }
    entry["episodes"] = measures.total(seeds, "episodes")
    entry["cut_episodes"] = measures.total(seeds, "cut")
    entry["walks_without_reward"] = measures.total(seeds, "without_reward")
    if policy == EPS:
        return entry
    others = tables[cell_name(name, epsilon, EPS)]
    entry["p"] = {}
    for measure in measures.MEASURES:
        difference = measures.difference(seeds, others, measure)
        entry[f"more_{measure}"] = difference.interval
        entry["p"][f"more_{measure}"] = float(f"{difference.p:.4g}")
    scores = game(name)
    percent = 100.0 / (scores.human_score - scores.random_score)
    entry["gain"] = Interval(*(percent * part for part in entry["more_return"]))
    return entry


def _decide(entries: Sequence[dict[str, Any]]) -> None:
    """Notes in each game's entry which differences are more than chance, and their sign."""
    for entry in entries:
        entry["decided"] = {}
    for measure in entries[0]["p"]:
        values = {place: entry[measure].value for place, entry in enumerate(entries)}
        p_values = {place: entry["p"][measure] for place, entry in enumerate(entries)}
        for place, sign in decided(values, p_values).items():
            if sign:
                entries[place]["decided"][measure] = sign


def _overall(
    entries: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """One εz-greedy policy against ε-greedy at one ε, over games."""
    told: dict[str, Any] = {"games": len(entries)}
    for name, (measure, better) in OVER_GAMES.items():
        test = sign_test([better * entry[measure].value for entry in entries])
        signs = [better * entry["decided"].get(measure, 0) for entry in entries]
        told |= {
            f"{name}_test": test,
            f"{name}_up": test.num_up,
            f"{name}_down": test.num_down,
            f"{name}_p": float(f"{test.p:.4g}"),
            f"{name}_surely_up": signs.count(1),
            f"{name}_surely_down": signs.count(-1),
        }
    lives = sign_test([entry["more_lives_lost_per_1000_steps"].value for entry in entries])
    told |= {"lives_up": lives.num_up, "lives_down": lives.num_down}
    for measure in ("cells", "memories"):
        ratios = [
            entry[measure].value / other[measure].value
            for entry, other in zip(entries, others, strict=True)
        ]
        told[f"{measure}_ratio"] = measures.typical_ratio(ratios)
    return told


def _correct(overall: Mapping[tuple[float, str], dict[str, Any]]) -> None:
    """Adjusts the sign tests that claims rest on, as one family."""
    raw = {
        (place, name): told[f"{name}_test"].p
        for place, told in overall.items()
        for name in OVER_GAMES
    }
    for (place, name), p in adjusted(raw).items():
        overall[place][f"{name}_adjusted_p"] = float(f"{p:.4g}")


def _rounded(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Intervals with six digits, more than any reader needs; tests only by their numbers."""
    return {
        name: [float(f"{part:.6g}") for part in value] if isinstance(value, Interval) else value
        for name, value in entry.items()
        if not name.endswith("_test")
    }
