"""What do the walks of `atari-exploration` show? The sentences are ours: the paper has none."""

from ezgreedy.experiments.deep.atari_conditions import EPS, Found, judged, policies, share
from ezgreedy.findings.claims import OURS, Claim, Number, Statement, names_with
from ezgreedy.findings.comparisons import LARGEST_FALSE_SHARE, LEVEL
from ezgreedy.findings.judging import Side, above

FREEWAY = "Freeway"

_BUDGETS = (
    "Equal ε is not an equal budget: ε-greedy at ε = {:g} explores in {:g} % of its steps, "
    "εz-greedy in the shares below, so that here it also moves more often; only ε = 1 compares "
    "repeating alone."
)
_CORRECTED = (
    "Games counted if their own interval lay on one side of 0, without correction for 57 "
    "comparisons, until chance was seen to explain most of them."
)

FREEWAY_REWARDS = Statement(
    "Under pure exploration (ε = 1), εz-greedy finds more reward per episode than ε-greedy on "
    "Freeway.",
    OURS,
    "At μ = 2 and every cap, the interval of the difference over seeds lies above 0.",
)
# What a sentence over games is about, and the words for games on either side.
_OVER_GAMES = {
    "episode": ("finds more reward per episode than ε-greedy on more games than less", "more"),
    "step": ("finds more reward per step than ε-greedy on more games than less", "more"),
    "first": (
        "meets its first positive reward sooner than ε-greedy on more games than later",
        "sooner",
    ),
}
_OPPOSITE = {"more": "less", "sooner": "later"}


def statements(epsilon: float) -> dict[str, Statement]:
    """The sentences about all games at one ε, by name."""
    where = "Under pure exploration (ε = 1)" if epsilon == 1.0 else f"At ε = {epsilon:g}"
    test = (
        "Sign test over games of each game's difference, two-sided, adjusted after Benjamini and "
        f"Hochberg over all such tests of this experiment: below {LEVEL:g}, at μ = 2 and every cap."
    )
    made = {
        name: Statement(f"{where}, εz-greedy {sentence}.", OURS, test, _CORRECTED)
        for name, (sentence, _) in _OVER_GAMES.items()
    }
    made["places"] = Statement(
        f"{where}, εz-greedy visits more distinct screen cells than ε-greedy in the typical game.",
        OURS,
        "Geometric mean over games of the ratio of distinct screen cells within the counted "
        "steps: the interval over games lies above 1, at μ = 2 and every cap.",
    )
    return made


def claims(found: Found) -> list[Claim]:
    """On Freeway, if it was played at ε = 1, and on all games together, if there are several."""
    settings = found.settings
    told = []
    if FREEWAY in settings["games"] and 1.0 in settings["epsilons"]:
        told.append(_claim_of_freeway(found))
    # A single game says nothing about games.
    for epsilon in settings["epsilons"] if len(settings["games"]) > 1 else ():
        told += [_claim_by_sign_test(found, epsilon, name) for name in _OVER_GAMES]
        told.append(_claim_of_places(found, epsilon))
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


def _claim_by_sign_test(found: Found, epsilon: float, name: str) -> Claim:
    word = _OVER_GAMES[name][1]
    other = _OPPOSITE[word]
    numbers: dict[str, Number] = {"games": len(found.settings["games"])}
    for policy, law in list(policies(found.settings).items())[1:]:
        told = found.overall[epsilon, policy]
        numbers |= {
            f"{policy}: games {word} / {other}": f"{told[f'{name}_up']} / {told[f'{name}_down']}",
            f"{policy}: p of the sign test": told[f"{name}_p"],
        }
        if f"{name}_adjusted_p" in told:
            numbers[f"{policy}: p, adjusted"] = told[f"{name}_adjusted_p"]
        surely = f"{told[f'{name}_surely_up']} / {told[f'{name}_surely_down']}"
        numbers[f"{policy}: games {word} / {other} by themselves"] = surely
        if name != "first":
            lives = f"{told['lives_up']} / {told['lives_down']}"
            numbers[f"{policy}: games with more / fewer lives lost per step"] = lives
        if epsilon < 1.0:
            numbers[f"{policy}: share of exploratory steps"] = share(epsilon, law)
    readings: dict[str, Side] = {
        policy: found.overall[epsilon, policy][f"{name}_test"].side(
            found.overall[epsilon, policy][f"{name}_adjusted_p"]
        )
        for policy in judged(found.settings)
    }
    alone = (
        "“By themselves” counts games whose own difference over seeds is more than chance, "
        f"adjusted over games (at most {LARGEST_FALSE_SHARE:.0%} of them false)."
    )
    return _over_games(found, epsilon, name, readings, numbers, alone, f"games {word} / {other}")


def _claim_of_places(found: Found, epsilon: float) -> Claim:
    numbers: dict[str, Number] = {"games": len(found.settings["games"])}
    for policy, law in list(policies(found.settings).items())[1:]:
        told = found.overall[epsilon, policy]
        numbers[f"{policy}: screen cells, ratio εz/ε"] = told["cells_ratio"]
        numbers[f"{policy}: memory contents, ratio εz/ε"] = told["memories_ratio"]
        if epsilon < 1.0:
            numbers[f"{policy}: share of exploratory steps"] = share(epsilon, law)
    readings: dict[str, Side] = {
        policy: above(found.overall[epsilon, policy]["cells_ratio"], 1.0)
        for policy in judged(found.settings)
    }
    note = (
        "The number of distinct places does not grow in proportion to steps. Clocks in memory make "
        "nearly every step a new content wherever anything moves, so that memory says little."
    )
    return _over_games(found, epsilon, "places", readings, numbers, note, "screen cells")


def _over_games(
    found: Found,
    epsilon: float,
    name: str,
    readings: dict[str, Side],
    numbers: dict[str, Number],
    note: str,
    shown: str,
) -> Claim:
    """A claim whose sample is one of games; `shown` names its key numbers."""
    budgets = "" if epsilon == 1.0 else f" {_BUDGETS.format(epsilon, 100.0 * epsilon)}"
    return Claim(
        statements(epsilon)[name],
        readings,
        numbers,
        len(found.settings["games"]),
        sample="game",
        note=note + budgets,
        key_numbers=[
            label
            for label in names_with(numbers, shown, "p, adjusted")
            if label.split(": ")[0] in readings and not label.endswith("themselves")
        ],
    )
