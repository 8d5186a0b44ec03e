"""What do the walks of `atari-exploration` show? The sentences are ours: the paper has none."""

from collections.abc import Mapping

from ezgreedy.experiments.atari_conditions import EPS, Found, judged, policies, share
from ezgreedy.findings.claims import OURS, Claim, Number, Statement, names_with
from ezgreedy.findings.judging import Side, above

FREEWAY = "Freeway"

_BUDGETS = (
    "Equal ε is not an equal budget: ε-greedy at ε = {:g} explores in {:g} % of its steps, "
    "εz-greedy in the shares below, so that here it also moves more often; only ε = 1 compares "
    "repeating alone."
)

FREEWAY_REWARDS = Statement(
    "Under pure exploration (ε = 1), εz-greedy finds more reward per episode than ε-greedy on "
    "Freeway.",
    OURS,
    "At μ = 2 and every cap, the interval of the difference over seeds lies above 0.",
)


def statements(epsilon: float) -> dict[str, Statement]:
    """The sentences about all games at one ε, by name."""
    where = "Under pure exploration (ε = 1)" if epsilon == 1.0 else f"At ε = {epsilon:g}"
    balance = (
        "A game counts if the whole interval of the difference over seeds lies on one side of 0; "
        "it holds if the interval of the balance over games lies above 0, at μ = 2 and every cap."
    )
    return {
        "rewards": Statement(
            f"{where}, εz-greedy finds more reward per episode than ε-greedy on more games than it "
            "finds less.",
            OURS,
            balance,
        ),
        "firsts": Statement(
            f"{where}, εz-greedy meets its first positive reward sooner than ε-greedy on more "
            "games than later.",
            OURS,
            "Steps from the beginning of a walk, over all its episodes; a walk without a reward "
            f"counts with all its steps. {balance}",
        ),
        "places": Statement(
            f"{where}, εz-greedy visits more distinct screen cells than ε-greedy in the typical "
            "game.",
            OURS,
            "Geometric mean over games of the ratio of distinct screen cells within the counted "
            "steps: the interval over games lies above 1, at μ = 2 and every cap.",
        ),
    }


def claims(found: Found) -> list[Claim]:
    """On Freeway, if it was played at ε = 1, and on all games together, if there are several."""
    settings = found.settings
    told = []
    if FREEWAY in settings["games"] and 1.0 in settings["epsilons"]:
        told.append(_claim_of_freeway(found))
    # A single game says nothing about games.
    for epsilon in settings["epsilons"] if len(settings["games"]) > 1 else ():
        told += [
            _claim_of_rewards(found, epsilon),
            _claim_of_first_rewards(found, epsilon),
            _claim_of_places(found, epsilon),
        ]
    return told


def _claim_of_freeway(found: Found) -> Claim:
    numbers: dict[str, Number] = {}
    for policy in policies(found.settings):
        entry = found.conditions[FREEWAY, 1.0, policy]
        numbers[f"return per episode, {policy}"] = entry["return"]
        numbers[f"episodes, {policy}"] = entry["episodes"]
        if policy != EPS:
            numbers[f"difference to ε-greedy, {policy}"] = entry["more_return"]
    chosen = judged(found.settings)
    return Claim(
        FREEWAY_REWARDS,
        {policy: above(found.conditions[FREEWAY, 1.0, policy]["more_return"]) for policy in chosen},
        numbers,
        found.num_seeds,
        note="In this game, going up for long is what pays.",
        key_numbers=[
            f"return per episode, {EPS}",
            *(f"difference to ε-greedy, {policy}" for policy in chosen),
        ],
    )


def _claim_of_rewards(found: Found, epsilon: float) -> Claim:
    return _claim_over_games(
        found,
        epsilon,
        "rewards",
        {
            "games with more": "more_reward",
            "games with less": "less_reward",
            "(more − less) / games": "reward_balance",
        },
        ("reward_balance", 0.0),
    )


def _claim_of_first_rewards(found: Found, epsilon: float) -> Claim:
    return _claim_over_games(
        found,
        epsilon,
        "firsts",
        {
            "games sooner": "sooner_reward",
            "games later": "later_reward",
            "(sooner − later) / games": "first_balance",
        },
        ("first_balance", 0.0),
    )


def _claim_of_places(found: Found, epsilon: float) -> Claim:
    return _claim_over_games(
        found,
        epsilon,
        "places",
        {
            "screen cells, ratio εz/ε": "cells_ratio",
            "memory contents, ratio εz/ε": "memories_ratio",
        },
        ("cells_ratio", 1.0),
        "The number of distinct places does not grow in proportion to steps. Clocks in memory make "
        "nearly every step a new content wherever anything moves, so that memory says little.",
    )


def _claim_over_games(
    found: Found,
    epsilon: float,
    name: str,
    shown: Mapping[str, str],
    judged_by: tuple[str, float],
    note: str = "",
) -> Claim:
    """A claim about all games at one ε: the named entries of every policy, judged at one μ.

    It holds where the interval of the entry `judged_by` lies above the number beside it.
    """
    numbers: dict[str, Number] = {"games": len(found.settings["games"])}
    for policy, law in list(policies(found.settings).items())[1:]:
        told = found.overall[epsilon, policy]
        numbers |= {f"{policy}: {label}": told[key] for label, key in shown.items()}
        if epsilon < 1.0:
            numbers[f"{policy}: share of exploratory steps"] = share(epsilon, law)
    chosen = judged(found.settings)
    key, neutral = judged_by
    readings: dict[str, Side] = {
        policy: above(found.overall[epsilon, policy][key], neutral) for policy in chosen
    }
    budgets = "" if epsilon == 1.0 else _BUDGETS.format(epsilon, 100.0 * epsilon)
    return Claim(
        statements(epsilon)[name],
        readings,
        numbers,
        len(found.settings["games"]),
        note=" ".join(part for part in (note, budgets) if part),
        key_numbers=[n for n in names_with(numbers, *chosen) if n.split(": ")[0] in chosen],
    )
