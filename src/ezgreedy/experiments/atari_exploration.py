"""What does exploration alone find in the 57 Atari games? ε- against εz-greedy, without learning.

The paper's limitations ask where action repeats are aligned with the dynamics; here is an answer
for each game. Pure exploration (ε = 1), and ε = 0.1 around a greedy policy that never moves. A seed
is one walk of whole episodes; see `analysis.game_walks` for what is counted and `atari.coarse` for
what a screen cell is. Both policies toss the same coins on the same seed, and begin episodes alike.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.atari.games import game, games
from ezgreedy.experiments import atari_findings as findings
from ezgreedy.experiments.experiment import (
    Cell,
    Claim,
    Experiment,
    Number,
    Record,
    Settings,
    Summary,
    names_with,
    results_by_cell,
    verdict_of,
)
from ezgreedy.exploration.durations import DurationLaw, Fixed, Zeta
from ezgreedy.requirements import FloatArray
from ezgreedy.results.intervals import Interval

SETTINGS: dict[str, Any] = {
    "games": list(games()),
    "epsilons": [1.0, 0.1],
    "mus": [1.5, 2.0, 3.0],
    "caps": [100, 10_000],  # Paper: 100 for Rainbow, else 10,000
    "judged_mu": 2.0,  # Paper: μ = 2 in all but the ablations
    "num_steps": 5000,  # the agent's, of four frames each, and then to the episode's end
    "most_episode_frames": 108_000,  # half an hour, as for Rainbow
    "bootstrap_seed": 0,
}

EPS = "ε-greedy"
FREEWAY = "Freeway"


def cells(settings: Settings) -> list[Cell]:
    """Every game at every ε, with ε-greedy and with εz-greedy at every μ and cap."""
    _check(settings)
    return [
        Cell(
            cell_name(name, epsilon, policy),
            {"game": name, "epsilon": epsilon, "mu": mu, "cap": cap},
        )
        for name in settings["games"]
        for epsilon in settings["epsilons"]
        for policy, (mu, cap) in policies(settings).items()
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """One walk: see `GameWalk`."""
    from ezgreedy.analysis.game_walks import game_walk
    from ezgreedy.atari.coarse import PROTOCOL, CoarseEmulator
    from ezgreedy.atari.lanes import lane_rng
    from ezgreedy.exploration.ez_greedy import EZGreedy

    # Every game is a lane of its own, so that games are independent samples; all policies share it.
    lane = list(games()).index(settings["game"])
    protocol = replace(PROTOCOL, most_episode_frames=settings["most_episode_frames"])
    played = CoarseEmulator(settings["game"], protocol, rng=lane_rng(seed, lane))
    explore = EZGreedy(
        played.num_actions,
        settings["epsilon"],
        _law(settings["mu"], settings["cap"]),
        seed=seed,
        first_lane=lane,
    )
    return asdict(game_walk(played, explore, settings["num_steps"]))


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Every measure of every condition, and on how many games εz-greedy is ahead."""
    found = Found.of(settings, records)
    claims = []
    if FREEWAY in settings["games"] and 1.0 in settings["epsilons"]:
        claims.append(_claim_of_freeway(found))
    # A single game says nothing about games.
    for epsilon in settings["epsilons"] if len(settings["games"]) > 1 else ():
        claims += [
            _claim_of_rewards(found, epsilon),
            _claim_of_first_rewards(found, epsilon),
            _claim_of_places(found, epsilon),
        ]
    return Summary(claims, found.as_json())


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """The gain in every game, and what it comes to over all of them."""
    from ezgreedy.figures import atlas, style

    judged = _judged(settings)
    return [
        *style.save(atlas.gains_by_game(summary.data, judged), directory / "gains_by_game"),
        *style.save(atlas.over_games(summary.data), directory / "over_games"),
    ]


@dataclass(frozen=True)
class Found:
    """What all walks found: `conditions` by game, ε and policy, `overall` by ε and policy."""

    settings: Settings
    conditions: Mapping[tuple[str, float, str], Mapping[str, Any]]
    overall: Mapping[tuple[float, str], Mapping[str, Any]]

    @classmethod
    def of(cls, settings: Settings, records: Sequence[Record]) -> "Found":
        """Estimates everything, in the order of the cells."""
        rng = np.random.default_rng(settings["bootstrap_seed"])
        tables = {
            cell: findings.table(walks, settings["num_steps"])
            for cell, walks in results_by_cell(records).items()
        }
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
                rng,
            )
            for epsilon in settings["epsilons"]
            for policy in list(policies(settings))[1:]
        }
        # Last, so that these resamples move none of the others.
        for place, entry in conditions.items():
            entry |= _other_differences(tables, place, rng)
        return cls(settings, conditions, overall)

    def as_json(self) -> dict[str, Any]:
        """Rows for figures and pages; intervals as [value, low, high]."""
        return {
            "num_steps": self.settings["num_steps"],
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
    """Their names with μ and cap; with a cap of 1 it is ε-greedy, whatever μ."""
    return {EPS: (settings["judged_mu"], 1)} | {
        _policy_name(mu, cap): (mu, cap) for mu in settings["mus"] for cap in settings["caps"]
    }


def cell_name(name: str, epsilon: float, policy: str) -> str:
    """The name of one condition."""
    return f"{name}, ε = {epsilon:g}, {policy}"


def _policy_name(mu: float, cap: int) -> str:
    return f"μ = {mu:g}, n ≤ {cap:,}"


def _judged(settings: Settings) -> list[str]:
    return [_policy_name(settings["judged_mu"], cap) for cap in settings["caps"]]


def _law(mu: float, cap: int) -> DurationLaw:
    return Fixed(1) if cap == 1 else Zeta(mu, cap)


def _check(settings: Settings) -> None:
    for name in ("games", "epsilons", "mus", "caps"):
        values = settings[name]
        if not values or len(set(values)) < len(values):
            raise require.refuse(name, "hold at least one value, each once", values)
    for name in settings["games"]:
        game(name)
    for epsilon in settings["epsilons"]:
        require.number("epsilons", epsilon, least=0.0, most=1.0)
    for cap in settings["caps"]:
        require.integer("caps", cap, least=2)
        for mu in settings["mus"]:
            _law(mu, cap)
    if settings["judged_mu"] not in settings["mus"]:
        raise require.refuse("judged_mu", "be one of mus", settings["judged_mu"])
    require.integer("num_steps", settings["num_steps"], least=1)


def _condition(
    tables: Mapping[str, FloatArray], place: tuple[str, float, str], rng: np.random.Generator
) -> dict[str, Any]:
    """All measures of one condition and, for εz-greedy, how they differ from ε-greedy's."""
    name, epsilon, policy = place
    seeds = tables[cell_name(*place)]
    entry: dict[str, Any] = {
        measure: findings.estimate(seeds, measure, rng) for measure in findings.MEASURES
    }
    entry["episodes"] = int(seeds[:, 1].sum())
    if policy != EPS:
        others = tables[cell_name(name, epsilon, EPS)]
        entry["more_return"] = more = findings.difference(seeds, others, "return", rng)
        entry["more_first_reward"] = findings.difference(seeds, others, "first_reward", rng)
        scores = game(name)
        percent = 100.0 / (scores.human_score - scores.random_score)
        entry["gain"] = Interval(*(percent * part for part in more))
    return entry


def _other_differences(
    tables: Mapping[str, FloatArray], place: tuple[str, float, str], rng: np.random.Generator
) -> dict[str, Interval]:
    """How an εz-greedy condition differs from ε-greedy's in the measures that no claim is about."""
    name, epsilon, policy = place
    if policy == EPS:
        return {}
    seeds, others = tables[cell_name(*place)], tables[cell_name(name, epsilon, EPS)]
    return {
        f"more_{measure}": findings.difference(seeds, others, measure, rng)
        for measure in findings.MEASURES
        if measure not in ("return", "first_reward")
    }


def _overall(
    entries: Sequence[Mapping[str, Any]],
    others: Sequence[Mapping[str, Any]],
    rng: np.random.Generator,
) -> dict[str, Any]:
    """One εz-greedy policy against ε-greedy at one ε, over games."""
    rewards = [findings.sign(entry["more_return"]) for entry in entries]
    # Fewer steps are better.
    firsts = [-findings.sign(entry["more_first_reward"]) for entry in entries]
    told: dict[str, Any] = {
        "games": len(entries),
        "more_reward": rewards.count(1),
        "less_reward": rewards.count(-1),
        "reward_balance": findings.balance(rewards, rng),
        "sooner_reward": firsts.count(1),
        "later_reward": firsts.count(-1),
        "first_balance": findings.balance(firsts, rng),
    }
    for measure in ("cells", "memories"):
        ratios = [
            entry[measure].value / other[measure].value
            for entry, other in zip(entries, others, strict=True)
        ]
        told[f"{measure}_ratio"] = findings.typical_ratio(ratios, rng)
    return told


def _claim_of_freeway(found: Found) -> Claim:
    numbers: dict[str, Number] = {}
    is_more = {}
    for policy in policies(found.settings):
        entry = found.conditions[FREEWAY, 1.0, policy]
        numbers[f"return per episode, {policy}"] = entry["return"]
        numbers[f"episodes, {policy}"] = entry["episodes"]
        if policy != EPS:
            numbers[f"difference to ε-greedy, {policy}"] = entry["more_return"]
            is_more[policy] = entry["more_return"].low > 0.0
    judged = _judged(found.settings)
    return Claim(
        "Under pure exploration (ε = 1), εz-greedy finds more reward per episode than ε-greedy on "
        "Freeway.",
        verdict_of([is_more[policy] for policy in judged]),
        numbers,
        f"Our sentence, for a game in which going up for long is what pays. {_judging(found)} it "
        "holds where the whole interval of the difference lies above 0.",
        [
            f"return per episode, {EPS}",
            *(f"difference to ε-greedy, {policy}" for policy in judged),
        ],
    )


def _claim_of_rewards(found: Found, epsilon: float) -> Claim:
    return _claim_over_games(
        found,
        epsilon,
        {
            "games with more": "more_reward",
            "games with less": "less_reward",
            "(more − less) / games": "reward_balance",
        },
        lambda told: told["reward_balance"].low > 0.0,
        claim="εz-greedy finds more reward per episode than ε-greedy on more games than it finds "
        "less.",
        note="A game counts if the whole interval of the difference over seeds lies on one side of "
        "0, and with few seeds chance alone puts it there: of games that have no difference one in "
        "four with three seeds and about one in six with five, on either side alike. It holds if "
        "the interval of the balance over games lies above 0.",
    )


def _claim_of_first_rewards(found: Found, epsilon: float) -> Claim:
    return _claim_over_games(
        found,
        epsilon,
        {
            "games sooner": "sooner_reward",
            "games later": "later_reward",
            "(sooner − later) / games": "first_balance",
        },
        lambda told: told["first_balance"].low > 0.0,
        claim="εz-greedy meets its first positive reward sooner than ε-greedy on more games than "
        "later.",
        note="Steps from the beginning of a walk, over all its episodes; a walk without a reward "
        "counts with all its steps. Counted and judged as rewards are.",
    )


def _claim_of_places(found: Found, epsilon: float) -> Claim:
    return _claim_over_games(
        found,
        epsilon,
        {
            "screen cells, ratio εz/ε": "cells_ratio",
            "memory contents, ratio εz/ε": "memories_ratio",
        },
        lambda told: told["cells_ratio"].low > 1.0,
        claim="εz-greedy visits more distinct screen cells than ε-greedy in the typical game.",
        note=f"Distinct places within {found.settings['num_steps']:,} steps; geometric means over "
        "games of the ratio, with intervals over games. It holds if that of screen cells lies "
        "above 1. Clocks in memory make nearly every step a new content wherever anything moves, "
        "so that memory says little.",
    )


def _claim_over_games(
    found: Found,
    epsilon: float,
    shown: Mapping[str, str],
    holds: Callable[[Mapping[str, Any]], bool],
    *,
    claim: str,
    note: str,
) -> Claim:
    """A claim on all games at one ε: the named entries of every policy, judged at one μ."""
    numbers: dict[str, Number] = {"games": len(found.settings["games"])}
    for policy in list(policies(found.settings))[1:]:
        told = found.overall[epsilon, policy]
        numbers |= {f"{policy}: {label}": told[key] for label, key in shown.items()}
    judged = _judged(found.settings)
    where = "Under pure exploration (ε = 1)" if epsilon == 1.0 else f"At ε = {epsilon:g}"
    return Claim(
        f"{where}, {claim}",
        verdict_of([holds(found.overall[epsilon, policy]) for policy in judged]),
        numbers,
        f"Our sentence: the paper does not measure exploration alone. {note} {_judging(found)} "
        "the other μ are for comparison.",
        [name for name in names_with(numbers, *judged) if name.split(": ")[0] in judged],
    )


def _judging(found: Found) -> str:
    return f"Judged at μ = {found.settings['judged_mu']:g}, at every cap;"


def _rounded(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Six digits are more than any reader can tell apart."""
    return {
        name: [float(f"{part:.6g}") for part in value] if isinstance(value, Interval) else value
        for name, value in entry.items()
    }


EXPERIMENT = Experiment(
    id="atari-exploration",
    title="Limitations: what exploration alone finds in Atari",
    shows="rewards and places that ε- and εz-greedy find in 57 games without learning",
    settings=SETTINGS,
    quick={
        "games": [FREEWAY, "MontezumaRevenge", "Pong"],
        "epsilons": [1.0],
        "mus": [2.0],
        "caps": [100],
        "num_steps": 500,
    },
    full={"num_steps": 100_000},
    num_seeds=5,
    num_quick_seeds=2,
    cost_seconds=14_400.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    extra="deep",
    modules=("ale_py",),
)
