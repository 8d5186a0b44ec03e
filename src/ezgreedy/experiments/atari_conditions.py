"""What did every condition of `atari-exploration` find? Policies by name, and their estimates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ezgreedy.experiments import atari_measures as measures
from ezgreedy.experiments.experiment import Record, Settings, results_by_cell
from ezgreedy.exploration.durations import DurationLaw, Fixed, Zeta, exploratory_share
from ezgreedy.findings.intervals import Interval, sign
from ezgreedy.games.atari.atari57 import game
from ezgreedy.requirements import FloatArray

EPS = "ε-greedy"


@dataclass(frozen=True)
class Found:
    """What all walks found: `conditions` by game, ε and policy, `overall` by ε and policy."""

    settings: Settings
    num_seeds: int
    conditions: Mapping[tuple[str, float, str], Mapping[str, Any]]
    overall: Mapping[tuple[float, str], Mapping[str, Any]]

    @classmethod
    def of(cls, settings: Settings, records: Sequence[Record]) -> "Found":
        """Estimates everything, in the order of the cells."""
        rng = np.random.default_rng(settings["bootstrap_seed"])
        tables = {
            cell: measures.table(walks, settings["num_steps"])
            for cell, walks in results_by_cell(records).items()
        }
        num_seeds = len(next(iter(tables.values())))
        conditions = {
            (name, epsilon, policy): _condition(tables, (name, epsilon, policy), rng)
            for name in settings["games"]
            for epsilon in settings["epsilons"]
            for policy in policies(settings)
        }
        overall = {
            (epsilon, policy): _overall(
                [conditions[name, epsilon, policy] for name in settings["games"]],
                [conditions[name, epsilon, EPS] for name in settings["games"]],
                num_seeds,
                rng,
            )
            for epsilon in settings["epsilons"]
            for policy in list(policies(settings))[1:]
        }
        # Last, so that these resamples do not change the others.
        for place, entry in conditions.items():
            entry |= _other_differences(tables, place, rng)
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


def _condition(
    tables: Mapping[str, FloatArray], place: tuple[str, float, str], rng: np.random.Generator
) -> dict[str, Any]:
    """All measures of one condition and, for εz-greedy, how they differ from ε-greedy's."""
    name, epsilon, policy = place
    seeds = tables[cell_name(*place)]
    entry: dict[str, Any] = {
        measure: measures.estimate(seeds, measure, rng) for measure in measures.MEASURES
    }
    entry["episodes"] = measures.total(seeds, "episodes")
    entry["cut_episodes"] = measures.total(seeds, "cut")
    entry["walks_without_reward"] = measures.total(seeds, "without_reward")
    if policy != EPS:
        others = tables[cell_name(name, epsilon, EPS)]
        entry["more_return"] = more = measures.difference(seeds, others, "return", rng)
        entry["more_first_reward"] = measures.difference(seeds, others, "first_reward", rng)
        scores = game(name)
        percent = 100.0 / (scores.human_score - scores.random_score)
        entry["gain"] = Interval(*(percent * part for part in more))
    return entry


def _other_differences(
    tables: Mapping[str, FloatArray], place: tuple[str, float, str], rng: np.random.Generator
) -> dict[str, Interval]:
    """How an εz-greedy condition differs from ε-greedy's in measures without a claim."""
    name, epsilon, policy = place
    if policy == EPS:
        return {}
    seeds, others = tables[cell_name(*place)], tables[cell_name(name, epsilon, EPS)]
    return {
        f"more_{measure}": measures.difference(seeds, others, measure, rng)
        for measure in measures.MEASURES
        if measure not in ("return", "first_reward")
    }


def _overall(
    entries: Sequence[Mapping[str, Any]],
    others: Sequence[Mapping[str, Any]],
    num_seeds: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """One εz-greedy policy against ε-greedy at one ε, over games."""
    rewards = [sign(entry["more_return"], num_seeds) for entry in entries]
    # Fewer steps are better.
    firsts = [-sign(entry["more_first_reward"], num_seeds) for entry in entries]
    told: dict[str, Any] = {
        "games": len(entries),
        "more_reward": rewards.count(1),
        "less_reward": rewards.count(-1),
        "reward_balance": measures.balance(rewards, rng),
        "sooner_reward": firsts.count(1),
        "later_reward": firsts.count(-1),
        "first_balance": measures.balance(firsts, rng),
    }
    for measure in ("cells", "memories"):
        ratios = [
            entry[measure].value / other[measure].value
            for entry, other in zip(entries, others, strict=True)
        ]
        told[f"{measure}_ratio"] = measures.typical_ratio(ratios, rng)
    return told


def _rounded(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Intervals with six digits, more than any reader needs."""
    return {
        name: [float(f"{part:.6g}") for part in value] if isinstance(value, Interval) else value
        for name, value in entry.items()
    }
