"""The paper asks how to avoid wasteful long repeats, "perhaps by truncating early". Does that help?

Rules end options when nothing changes, on a reward, or on a value discrepancy: without learning at
ε = 1, where all policies have the same budget, and with Q-learning at equal ε. A control without
the rule explores on as many steps as the rule does. Worlds are those in which the paper expects
εz-greedy to fail, and those in which it shines, so that the price of a rule can be seen.
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
from ezgreedy.findings.intervals import Interval, geometric_ratio_interval
from ezgreedy.findings.judging import Side, all_of, below
from ezgreedy.requirements import FloatArray

WALK, LEARN = "walk", "learn"
EPS, EZ, SHORT = "eps", "ez", "ez, cap 100"
UNCHANGED, REWARD, DISCREPANCY = "ez, unchanged", "ez, reward", "ez, discrepancy"
BUDGET = "{}: equal budget"  # the control without the rule
LABELS = {
    EPS: "ε-greedy",
    SHORT: "εz, cap 100",
    UNCHANGED: "εz, ends when nothing changes",
    REWARD: "εz, ends on a reward",
    DISCREPANCY: "εz, ends on a value discrepancy",
}
RULES = (UNCHANGED, REWARD, DISCREPANCY)
WALKED = (EPS, EZ, SHORT, UNCHANGED)
LEARNED = (EPS, EZ, *RULES, *(BUDGET.format(rule) for rule in RULES))
WALK_WORLDS = tuple(world for world in worlds.WORLDS if world != worlds.FOOD)
LEARN_WORLDS = tuple(world for world in worlds.WORLDS if world != worlds.CAR)
WALLS = (worlds.ROOM, worlds.MAZE, worlds.COPIES)
FAILING = (*WALLS, worlds.MINES, worlds.RANDOM_SEA)
SHINING = (worlds.SEA, worlds.CORRIDOR)
MOST_COST = 1.05  # a rule is free if it costs less than this much more

SETTINGS: dict[str, Any] = {
    **worlds.SETTINGS,
    "unchanged_steps": 1,
    "discrepancy_rate": 0.1,
    "discrepancy_steps": 5,
    "short_cap": 100,  # Paper: Rainbow's
    "num_walk_steps": 5000,  # Paper: GridWorld and MountainCar
    "num_bins": 12,  # Paper: MountainCar
}

_RATIO = "The interval of the ratio of geometric means over seeds, {} to {}, lies below {} in {}."
_WALKS = "pure exploration (ε = 1), mean steps to the first visit of a state"
_COSTS = "Q-learning at equal ε, cost of a run; as many exploratory steps are a control"
WALLS_WALK = Statement(
    "Without learning, εz-greedy is faster where walls stop it if options end as nothing changes.",
    OURS,
    _RATIO.format("with the rule", "without", "1", "the room, the maze and with equal actions")
    + f" Measured: {_WALKS}.",
)
FREE_WALK = Statement(
    "The same rule is free where actions lead on.",
    OURS,
    _RATIO.format("with the rule", "without", MOST_COST, "DeepSea, the corridor and MountainCar")
    + f" Measured: {_WALKS}.",
)
AHEAD_WALK = Statement(
    "With that rule, εz-greedy is faster than ε-greedy in an open room and in a turning maze.",
    OURS,
    _RATIO.format("with the rule", "ε-greedy", "1", "both") + f" Measured: {_WALKS}.",
)
WALLS_LEARN = Statement(
    "With that rule, Q-learning is faster, too, where walls stop εz-greedy.",
    OURS,
    _RATIO.format("with the rule", "without", "1", "the room, the maze and with equal actions")
    + f" Measured: {_COSTS}.",
)
FOOD_LEARN = Statement(
    "Where food stays in its place, Q-learning earns more if options end on a reward.",
    OURS,
    _RATIO.format("with the rule", "without", "1", "the room with food") + f" Measured: {_COSTS}.",
    amended=worlds.AMENDED,
)
SURPRISE_LEARN = Statement(
    "Where the paper expects εz-greedy to fail, Q-learning is faster if options end on value "
    "discrepancies.",
    OURS,
    _RATIO.format(
        "with the rule",
        "without",
        "1",
        "the room, the maze, with equal actions, with mines and in randomised DeepSea",
    )
    + f" Measured: {_COSTS}.",
    amended=worlds.AMENDED,
)
SURPRISE_FREE = Statement(
    "Ending options on value discrepancies is free where εz-greedy shines.",
    OURS,
    _RATIO.format("with the rule", "without", MOST_COST, "DeepSea and the corridor")
    + f" Measured: {_COSTS}.",
)
STATEMENTS = (
    WALLS_WALK,
    FREE_WALK,
    AHEAD_WALK,
    WALLS_LEARN,
    FOOD_LEARN,
    SURPRISE_LEARN,
    SURPRISE_FREE,
)


def cells(settings: Settings) -> list[Cell]:
    """Every policy in every world, without learning and with it."""
    kinds = ((WALK, WALK_WORLDS, WALKED), (LEARN, LEARN_WORLDS, LEARNED))
    return [
        Cell(_name(kind, world, policy), {"kind": kind, "world": world, "policy": policy})
        for kind, chosen, policies in kinds
        for world in chosen
        for policy in policies
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """The mean first visit of a walk, or the cost of a training run."""
    if settings["policy"] == SHORT:
        settings = {**settings, "cap": settings["short_cap"]}
    if settings["kind"] == WALK:
        return {"cost": _mean_first_visit(settings, seed)}
    base = settings["policy"].partition(":")[0]
    run = worlds.learned(settings, seed, worlds.epsilon_of(settings), _rules(settings, base))
    if settings["policy"] != base:
        run = worlds.equal_budget(settings, seed, run.explored_share)
    return {
        "cost": round(worlds.cost(settings, run), 6),
        "explored": round(run.explored_share, 6),
        "length": round(run.mean_option_length, 6),
    }


def _rules(settings: Settings, policy: str) -> Any:
    from ezgreedy.exploration import stops
    from ezgreedy.kernels.rules import rules

    made: dict[str, stops.StopSettings] = {
        UNCHANGED: stops.UnchangedSettings(settings["unchanged_steps"]),
        REWARD: stops.RewardSettings(),
        DISCREPANCY: stops.DiscrepancySettings(
            settings["discrepancy_rate"], settings["discrepancy_steps"]
        ),
    }
    chosen = (made[policy],) if policy in made else ()
    return rules(chosen, discount=worlds.discount_of(settings))


def _mean_first_visit(settings: Settings, seed: int) -> float:
    """Over the states that can be reached; one never seen counts the whole walk."""
    from ezgreedy.kernels.policies import exploration
    from ezgreedy.kernels.pure_exploration import Axis
    from ezgreedy.kernels.ruled_runs import (
        binned_first_visits_with_rules,
        finite_first_visits_with_rules,
    )
    from ezgreedy.kernels.sarsa_runs import Domain

    policy = exploration(1.0, worlds.law(settings))
    made, num_steps = _rules(settings, settings["policy"]), settings["num_walk_steps"]
    if settings["world"] == worlds.CAR:
        bins = settings["num_bins"]
        axes = (Axis(0, -1.2, 0.6, bins), Axis(1, -0.07, 0.07, bins))
        domain = Domain.MOUNTAIN_CAR
        times = binned_first_visits_with_rules(domain, policy, made, axes, num_steps, 0, seed)
        return float(times.mean())
    task = worlds.open_task(settings, seed)
    first = finite_first_visits_with_rules(seed, 0, task, policy, made, num_steps)
    return float(first[task.reachable].mean())


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Ratios of every policy to εz-greedy without rules, and the claims."""
    results = results_by_cell(records)
    claims = [
        _claim(results, WALLS_WALK, (WALK, UNCHANGED, EZ), WALLS),
        _claim(results, FREE_WALK, (WALK, UNCHANGED, EZ), (*SHINING, worlds.CAR), MOST_COST),
        _claim(results, AHEAD_WALK, (WALK, UNCHANGED, EPS), (worlds.ROOM, worlds.MAZE)),
        _claim(results, WALLS_LEARN, (LEARN, UNCHANGED, EZ), WALLS),
        _claim(results, FOOD_LEARN, (LEARN, REWARD, EZ), (worlds.FOOD,)),
        _claim(results, SURPRISE_LEARN, (LEARN, DISCREPANCY, EZ), FAILING),
        _claim(results, SURPRISE_FREE, (LEARN, DISCREPANCY, EZ), SHINING, MOST_COST),
    ]
    return Summary(claims, data={"ratios": _all_ratios(results)})


def _claim(
    results: Results,
    statement: Statement,
    compared: tuple[str, str, str],
    where: Sequence[str],
    bound: float = 1.0,
) -> Claim:
    kind, policy, reference = compared
    numbers: dict[str, Number] = {}
    sides: list[Side] = []
    controls: dict[str, Side] = {}
    for world in where:
        title = worlds.WORLDS[world].title
        ratio = _ratio(results, kind, world, policy, reference)
        numbers[f"{title}: ratio"] = ratio
        sides.append(below(ratio, bound))
        if kind == LEARN:
            matched = _ratio(results, kind, world, policy, BUDGET.format(policy))
            numbers[f"{title}: ratio, equal budget"] = matched
            controls[f"{title}, equal budget"] = below(matched, bound)
            for name in (policy, reference, BUDGET.format(policy)):
                share = np.mean(_samples(results, kind, world, name, "explored"))
                numbers[f"{title}: exploratory steps, {name}"] = round(float(share), 4)
    return Claim(
        statement,
        {AS_STATED: all_of(sides)},
        numbers,
        fewest_seeds(results),
        controls=controls,
        note=worlds.NOTE if policy == DISCREPANCY else "",
        key_numbers=[name for name in numbers if name.endswith(": ratio")][:3],
    )


def _all_ratios(results: Results) -> dict[str, Any]:
    """Kind ↦ world ↦ policy ↦ ratio to εz-greedy without rules, as plain data."""
    kinds = ((WALK, WALK_WORLDS, WALKED), (LEARN, LEARN_WORLDS, (EPS, *RULES)))
    return {
        kind: {
            world: {
                policy: list(_ratio(results, kind, world, policy, EZ))
                for policy in policies
                if policy != EZ
            }
            for world in chosen
        }
        for kind, chosen, policies in kinds
    }


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Two panels, a row for each world: without learning, and with Q-learning."""
    from ezgreedy.figures import rule_effects, style

    titles = {WALK: "pure exploration, ε = 1", LEARN: "Q-learning at equal ε"}
    panels = {
        titles[kind]: {
            worlds.WORLDS[world].title: {
                LABELS[policy]: Interval(*ratio) for policy, ratio in row.items()
            }
            for world, row in rows.items()
        }
        for kind, rows in summary.data["ratios"].items()
    }
    x_labels = {
        titles[WALK]: "first visits, ratio to εz-greedy (less is better)",
        titles[LEARN]: "cost, ratio to εz-greedy (less is better)",
    }
    return style.save_both(
        rule_effects.ratios(panels, x_labels, columns=2),
        rule_effects.ratios(panels, x_labels, columns=1),
        directory / "stopping",
    )


def _ratio(results: Results, kind: str, world: str, policy: str, reference: str) -> Interval:
    own, others = (_samples(results, kind, world, name, "cost") for name in (policy, reference))
    return geometric_ratio_interval(own, others)


def _samples(results: Results, kind: str, world: str, policy: str, measure: str) -> FloatArray:
    return np.array([entry[measure] for entry in results[_name(kind, world, policy)]])


def _name(kind: str, world: str, policy: str) -> str:
    return f"{kind}, {world}, {policy}"


EXPERIMENT = Experiment(
    id="beyond-stopping",
    title="Beyond the paper: options that end early",
    shows="what rules that end options early gain and cost",
    settings=SETTINGS,
    quick=worlds.QUICK,
    num_seeds=30,
    num_quick_seeds=5,
    num_thorough_seeds=100,
    statements=STATEMENTS,
    cost_seconds=70.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
