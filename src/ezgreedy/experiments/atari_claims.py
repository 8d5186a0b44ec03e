"""What do the walks of `atari-exploration` show? The sentences are ours: the paper has none."""

from collections.abc import Mapping, Sequence

from ezgreedy.experiments.atari_conditions import EPS, Found, judged, policies, share
from ezgreedy.findings.claims import OURS, Claim, Number, names_with, verdict_of
from ezgreedy.findings.intervals import sign

FREEWAY = "Freeway"

_BUDGETS = (
    "Equal ε is not an equal budget: ε-greedy at ε = {:g} explores in {:g} % of its steps, "
    "εz-greedy in the shares below, so that here it also moves more often; only ε = 1 compares "
    "repeating alone."
)


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
    signs = [
        sign(found.conditions[FREEWAY, 1.0, policy]["more_return"], found.num_seeds)
        for policy in chosen
    ]
    return Claim(
        "Under pure exploration (ε = 1), εz-greedy finds more reward per episode than ε-greedy on "
        "Freeway.",
        verdict_of([side > 0 for side in signs]),
        numbers,
        f"Our sentence, for a game in which going up for long is what pays. {_judging(found)} it "
        "holds where the whole interval of the difference lies above 0, of three seeds or more. "
        f"{_decided(chosen, signs)}",
        [
            f"return per episode, {EPS}",
            *(f"difference to ε-greedy, {policy}" for policy in chosen),
        ],
        source=OURS,
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
        ("reward_balance", 0.0),
        claim="εz-greedy finds more reward per episode than ε-greedy on more games than it finds "
        "less.",
        note="A game counts if the whole interval of the difference over seeds lies on one side of "
        "0 (of fewer than three seeds none does). With few seeds chance alone puts it there: of "
        "games without a difference in one of four with three seeds and in one of seven with five, "
        "and more often on the side of less where rewards are rare and large. It holds if the "
        "interval of the balance over games lies above 0.",
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
        ("first_balance", 0.0),
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
        ("cells_ratio", 1.0),
        claim="εz-greedy visits more distinct screen cells than ε-greedy in the typical game.",
        note=f"Distinct places within {found.settings['num_steps']:,} steps (their number does not "
        "grow in proportion to steps, so it is told of no other); geometric means over "
        "games of the ratio, with intervals over games. It holds if that of screen cells lies "
        "above 1. Clocks in memory make nearly every step a new content wherever anything moves, "
        "so that memory says little.",
    )


def _claim_over_games(
    found: Found,
    epsilon: float,
    shown: Mapping[str, str],
    judged_by: tuple[str, float],
    *,
    claim: str,
    note: str,
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
    intervals = [found.overall[epsilon, policy][key] for policy in chosen]
    signs = [int(each.low > neutral) - int(each.high < neutral) for each in intervals]
    budgets = "" if epsilon == 1.0 else f" {_BUDGETS.format(epsilon, 100.0 * epsilon)}"
    where = "Under pure exploration (ε = 1)" if epsilon == 1.0 else f"At ε = {epsilon:g}"
    return Claim(
        f"{where}, {claim}",
        verdict_of([side > 0 for side in signs]),
        numbers,
        f"Our sentence: the paper does not measure exploration alone. {note}{budgets} "
        f"{_judging(found)} the other μ are for comparison. {_decided(chosen, signs)}",
        [name for name in names_with(numbers, *chosen) if name.split(": ")[0] in chosen],
        source=OURS,
    )


def _decided(policies: Sequence[str], signs: Sequence[int]) -> str:
    """The outcome in words: "not reproduced" may also mean undecided."""
    words = {1: "it holds", 0: "undecided", -1: "the opposite holds"}
    told = [f"{words[side]} at {policy}" for policy, side in zip(policies, signs, strict=True)]
    return f"{'; '.join(told).capitalize()}."


def _judging(found: Found) -> str:
    return f"Judged at μ = {found.settings['judged_mu']:g}, at every cap;"
