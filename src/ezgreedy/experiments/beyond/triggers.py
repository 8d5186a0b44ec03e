"""Should exploration start when values have just proved wrong, rather than at any time?

Pislar et al. (2021) start to explore on the value promise discrepancy, at a rate that a homeostat
holds; the paper suggests such discrepancies for ending exploration. Here a `DiscrepancyTrigger`
takes the place of ε-greedy's and εz-greedy's constant ε in Q-learning, at the rate ε. A control
with a constant ε explores on as many steps.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.experiments.beyond import ruled_worlds as worlds
from ezgreedy.experiments.experiment import (
    Cell,
    Experiment,
    Record,
    Settings,
    fewest_seeds,
    results_by_cell,
)
from ezgreedy.findings.claims import AS_STATED, OURS, Claim, Number, Statement, Summary
from ezgreedy.findings.intervals import Interval, geometric_ratio_interval, mean_interval
from ezgreedy.findings.judging import Side, all_of, below
from ezgreedy.requirements import FloatArray

EPS, EZ = "eps", "ez"
TRIGGERED = "{}, trigger"
BUDGET = "{}, trigger: equal budget"
POLICIES = tuple(form.format(base) for base in (EPS, EZ) for form in ("{}", TRIGGERED, BUDGET))
LABELS = {
    EPS: "ε-greedy",
    TRIGGERED.format(EZ): "εz-greedy, trigger",
    TRIGGERED.format(EPS): "ε-greedy, trigger",
}
LEARN_WORLDS = tuple(world for world in worlds.WORLDS if world != worlds.CAR)
FAILING = (worlds.ROOM, worlds.MAZE, worlds.COPIES, worlds.MINES, worlds.RANDOM_SEA)
SHINING = (worlds.SEA, worlds.CORRIDOR)
RATE_TOLERANCE = 0.1

SETTINGS: dict[str, Any] = {**worlds.SETTINGS}

_MEASURED = (
    "Q-learning: the interval of the ratio of geometric means of a run's cost over seeds, with "
    "the trigger to with a constant ε, lies below 1 in {}. A constant ε with as many exploratory "
    "steps is a control."
)
RATE = Statement(
    "A trigger starts options as often as a constant ε does.",
    OURS,
    "εz-greedy in every world: the interval of options started for each deciding step, as a share "
    f"of ε, lies within {RATE_TOLERANCE:.0%} of 1.",
)
HELPS = Statement(
    "Where the paper expects εz-greedy to fail, Q-learning is faster if options start on value "
    "discrepancies.",
    OURS,
    _MEASURED.format(
        "the room, the maze, with equal actions, with mines and in randomised DeepSea"
    ),
    amended=worlds.AMENDED,
)
SHINES = Statement(
    "Where εz-greedy shines, Q-learning is faster, too, if options start on value discrepancies.",
    OURS,
    _MEASURED.format("DeepSea and the corridor"),
)
STATEMENTS = (RATE, HELPS, SHINES)


def cells(settings: Settings) -> list[Cell]:
    """Both policies in every world: with ε, with the trigger, and the trigger's control."""
    return [
        Cell(_name(world, policy), {"world": world, "policy": policy})
        for world in LEARN_WORLDS
        for policy in POLICIES
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """The cost of a training run, how much it explored and how often options started."""
    from ezgreedy.kernels.rules import rules

    epsilon = worlds.epsilon_of(settings)
    has_trigger = settings["policy"] not in (EPS, EZ)
    made = rules(
        discount=worlds.discount_of(settings), trigger_rate=epsilon if has_trigger else 0.0
    )
    run = worlds.learned(settings, seed, epsilon, made)
    if settings["policy"].endswith("budget"):
        run = worlds.equal_budget(settings, seed, run.explored_share)
    deciding = run.num_steps - run.num_explored + run.num_started
    return {
        "cost": round(worlds.cost(settings, run), 6),
        "explored": round(run.explored_share, 6),
        "rate": round(run.num_started / max(deciding, 1) / epsilon, 6),
    }


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Rates, ratios to a constant ε, and the claims."""
    results = results_by_cell(records)
    claims = [
        _claim_of_rate(results),
        _claim(results, HELPS, FAILING),
        _claim(results, SHINES, SHINING),
    ]
    ratios = {
        world: {policy: list(_ratio(results, world, policy, EZ)) for policy in LABELS}
        for world in LEARN_WORLDS
    }
    return Summary(claims, data={"ratios": ratios})


def _claim_of_rate(results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    sides: list[Side] = []
    for world in LEARN_WORLDS:
        rate = mean_interval(_samples(results, world, TRIGGERED.format(EZ), "rate"))
        numbers[f"{worlds.WORLDS[world].title}: starts, as a share of ε's"] = rate
        sides.append(_within(rate))
    return Claim(RATE, {AS_STATED: all_of(sides)}, numbers, fewest_seeds(results))


def _within(rate: Interval) -> Side:
    low, high = 1.0 - RATE_TOLERANCE, 1.0 + RATE_TOLERANCE
    if low < rate.low and rate.high < high:
        return "holds"
    return "contradicted" if rate.high < low or rate.low > high else "undecided"


def _claim(results: Results, statement: Statement, where: Sequence[str]) -> Claim:
    numbers: dict[str, Number] = {}
    sides: list[Side] = []
    controls: dict[str, Side] = {}
    trigger, budget = TRIGGERED.format(EZ), BUDGET.format(EZ)
    for world in where:
        title = worlds.WORLDS[world].title
        ratio, matched = (_ratio(results, world, trigger, other) for other in (EZ, budget))
        numbers[f"{title}: ratio"] = ratio
        numbers[f"{title}: ratio, equal budget"] = matched
        sides.append(below(ratio, 1.0))
        controls[f"{title}, equal budget"] = below(matched, 1.0)
        plain = _ratio(results, world, TRIGGERED.format(EPS), EPS)
        numbers[f"{title}: ratio, ε-greedy"] = plain
        controls[f"{title}, ε-greedy"] = below(plain, 1.0)
        for name in (EZ, trigger, budget):
            share = float(np.mean(_samples(results, world, name, "explored")))
            numbers[f"{title}: exploratory steps, {name}"] = round(share, 4)
    return Claim(
        statement,
        {AS_STATED: all_of(sides)},
        numbers,
        fewest_seeds(results),
        controls=controls,
        note=worlds.NOTE,
        key_numbers=[name for name in numbers if name.endswith(": ratio")][:3],
    )


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """A row for each world, with ratios to εz-greedy at a constant ε."""
    from ezgreedy.figures import rule_effects, style

    title = "Q-learning, options started on value discrepancies"
    rows = {
        worlds.WORLDS[world].title: {
            LABELS[policy]: Interval(*ratio) for policy, ratio in row.items()
        }
        for world, row in summary.data["ratios"].items()
    }
    x_labels = {title: "cost, ratio to εz-greedy with a constant ε (less is better)"}
    return style.save(
        rule_effects.ratios({title: rows}, x_labels, columns=1), directory / "triggers"
    )


def _ratio(results: Results, world: str, policy: str, reference: str) -> Interval:
    own, others = (_samples(results, world, name, "cost") for name in (policy, reference))
    return geometric_ratio_interval(own, others)


def _samples(results: Results, world: str, policy: str, measure: str) -> FloatArray:
    return np.array([entry[measure] for entry in results[_name(world, policy)]])


def _name(world: str, policy: str) -> str:
    return f"{world}, {policy}"


EXPERIMENT = Experiment(
    id="beyond-triggers",
    title="Beyond the paper: options that start when it matters",
    shows="what a trigger in place of ε gains and costs",
    settings=SETTINGS,
    quick=worlds.QUICK,
    num_seeds=30,
    num_quick_seeds=5,
    num_thorough_seeds=100,
    statements=STATEMENTS,
    cost_seconds=35.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
