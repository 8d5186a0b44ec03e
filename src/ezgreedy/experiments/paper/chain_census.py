"""Figure 2b again: how much do its sentences depend on what the paper leaves open?

The paper gives neither ε nor α nor the budget of its chain, says nothing of ties or of episode
ends, and "average return" can be measured in several ways. Here every combination of a few
plausible answers is run, and two questions are asked of each: which family of duration laws does
best, and is there an inverted U over μ? The other families have finer grids than zeta, so that none
of them falls behind for want of the right hyper-parameter.

A job plays several runs at every hyper-parameter and keeps means and variances: single runs of
this many conditions would take tens of megabytes.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ezgreedy.experiments.experiment import (
    Cell,
    Experiment,
    Record,
    Settings,
    results_by_cell,
)
from ezgreedy.experiments.paper.fig2_chain_durations import FAMILIES, laws
from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.findings.claims import OURS, Claim, Number, Statement, Summary, Table
from ezgreedy.findings.judging import Side
from ezgreedy.requirements import FloatArray

MEASURES = {
    "online": "return while exploring",
    "late": "the same, last tenth of the episodes",
    "undiscounted": "undiscounted return while exploring",
    "greedy": "return of the greedy policy",
}
# The greedy one of equally good actions, and the number of the action that terminates.
TIES: dict[str, tuple[Literal["random", "first"], int]] = {
    "random": ("random", 1),
    "right": ("first", 1),
    "terminate": ("first", 0),
}
# Episodes and steps; None is no limit.
BUDGETS: dict[str, tuple[int | None, int | None]] = {
    "10,000 steps": (None, 10_000),
    "100,000 steps": (None, 100_000),
    "1,000 episodes": (1000, None),
    "5,000 episodes": (5000, None),
}

SETTINGS: dict[str, Any] = {
    "length": 1000,
    "discount": 0.99,
    "cap": 10_000,
    "epsilons": [0.01, 0.05, 0.1],
    "step_sizes": [0.1, 0.5, 1.0],
    "carries_over": [False, True],
    "ties": list(TIES),
    "budgets": list(BUDGETS),
    "zeta": [1.1, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 5.0],
    "geometric": [0.0, 0.3, 0.5, 0.65, 0.8, 0.87, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999],
    "uniform": [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000, 2000],
    "num_runs_per_seed": 10,
    "largest_end": 0.93,  # as in Figure 2b's own criterion
    "num_errors": 2.0,  # standard errors that make a difference
}

_SHOWN = 8

ZETA_LEADS = Statement(
    "On the chain, zeta is the best family of duration laws in most readings.",
    OURS,
    "Each family at its best hyper-parameter. It holds for a measure if zeta leads the better of "
    "the other two by more than two standard errors in more than half of the readings; "
    "contradicted if one of the others leads by as much in more than half.",
)
INVERTED_U = Statement(
    "On the chain, returns over μ form an inverted U in most readings.",
    OURS,
    f"At both ends of the grid of μ, the mean return is below {SETTINGS['largest_end']:g} of that "
    "at the best μ, and lower by more than two standard errors. It holds for a measure if this is "
    "so in more than half of the readings; contradicted if in fewer than half.",
)


def cells(settings: Settings) -> list[Cell]:
    """Every combination of the open choices."""
    return [
        Cell(
            _name(*choice),
            dict(zip(("epsilon", "step_size", "carries", "tie", "budget"), choice, strict=True)),
        )
        for choice in _choices(settings)
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """Means and variances over runs, of every measure at every hyper-parameter."""
    return {
        family: [
            _statistics(settings, law, 10**9 * place + 10**6 * number, seed)
            for number, law in enumerate(laws(settings, family))
        ]
        for place, family in enumerate(FAMILIES)
    }


def _statistics(
    settings: Settings, law: DurationLaw, first_stream: int, seed: int
) -> list[list[float]]:
    """Means and variances of all measures; every law has streams of its own."""
    from ezgreedy.agents.q_learning import greedy_return
    from ezgreedy.envs.chain import Chain
    from ezgreedy.kernels.policies import exploration
    from ezgreedy.kernels.q_learning_runs import NO_LIMIT, Budget, rule, run_chain

    ties, down = TIES[settings["tie"]]
    num_episodes, num_steps = BUDGETS[settings["budget"]]
    budget = Budget(num_episodes or NO_LIMIT, num_steps or NO_LIMIT)
    how = rule(settings["step_size"], settings["discount"], ties=ties)
    env = Chain(settings["length"], down)
    policy = exploration(settings["epsilon"], law, settings["carries"])
    rows = []
    for run_number in range(settings["num_runs_per_seed"]):
        stream = first_stream + seed * settings["num_runs_per_seed"] + run_number
        run = run_chain(stream, env, policy, how, budget)
        late = run.returns[-max(len(run.returns) // 10, 1) :]
        greedy = greedy_return(env, run.values, how.discount, env.length + 1)
        rows.append(
            (
                run.mean_return,
                float(late.mean()) if len(late) else 0.0,
                float(run.rewards.mean()) if len(run.rewards) else 0.0,
                greedy,
            )
        )
    table = np.array(rows)
    means, variances = table.mean(axis=0), table.var(axis=0, ddof=1)
    return [
        [float(f"{number:.5g}") for number in means],
        [float(f"{number:.3g}") for number in variances],
    ]


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Who is best and where the U is, in every reading by every measure."""
    results = results_by_cell(records)
    num_runs = settings["num_runs_per_seed"] * min(map(len, results.values()))
    found = {name: _found(settings, entries) for name, entries in results.items()}
    claims = [
        _claim_of_zeta(found, num_runs),
        _claim_of_the_u(found, num_runs),
    ]
    data = {
        "readings": list(found),
        **{
            key: {measure: [found[name][measure][key] for name in found] for measure in MEASURES}
            for key in ("best", "is_clear", "mu", "has_u", "lead")
        },
    }
    return Summary(claims, data=data, tables=[_table_of_leads(settings, found, num_runs)])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Who is best, above, and the best μ, below; a square for every reading."""
    from ezgreedy.figures import style
    from ezgreedy.figures.census import Grid, census

    rows = list(product(settings["carries_over"], settings["epsilons"], settings["step_sizes"]))
    columns = list(product(settings["ties"], settings["budgets"]))
    order = [
        [
            summary.data["readings"].index(_name(epsilon, step_size, carries, tie, budget))
            for tie, budget in columns
        ]
        for carries, epsilon, step_size in rows
    ]
    grid = Grid(
        order,
        [f"{'carried over, ' if c else ''}ε {e:g}, α {a:g}" for c, e, a in rows],
        [f"{tie}, {budget}" for tie, budget in columns],
    )
    figure = census(grid, summary.data, MEASURES, [_word(family) for family in FAMILIES])
    return style.save(figure, directory / "census")


Found = Mapping[str, Mapping[str, Mapping[str, Any]]]


def _found(settings: Settings, entries: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The best family and the shape over μ, by every measure."""
    num_runs = settings["num_runs_per_seed"] * len(entries)
    means, errors = {}, {}
    for family in FAMILIES:
        numbers = np.array([entry[family] for entry in entries])  # [seeds, laws, 2, measures]
        means[family] = numbers[:, :, 0].mean(axis=0)
        errors[family] = np.sqrt(numbers[:, :, 1].mean(axis=0) / num_runs)
    return {
        measure: _judged(
            settings,
            {family: (means[family][:, place], errors[family][:, place]) for family in FAMILIES},
        )
        for place, measure in enumerate(MEASURES)
    }


def _judged(
    settings: Settings, curves: Mapping[str, tuple[FloatArray, FloatArray]]
) -> dict[str, Any]:
    peaks = {family: int(mean.argmax()) for family, (mean, _) in curves.items()}
    tops = {
        family: (mean[peaks[family]], error[peaks[family]])
        for family, (mean, error) in curves.items()
    }
    best = max(tops, key=lambda family: tops[family][0])
    rival = max((family for family in tops if family != best), key=lambda f: tops[f][0])
    others = max((family for family in tops if family != "zeta"), key=lambda f: tops[f][0])
    mean, error = curves["zeta"]
    peak = peaks["zeta"]
    ends = [
        mean[end] < settings["largest_end"] * mean[peak]
        and _is_above(settings, (mean[peak], error[peak]), (mean[end], error[end]))
        for end in (0, -1)
    ]
    top = tops[others][0]
    return {
        "best": best,
        "is_clear": _is_above(settings, tops[best], tops[rival]),
        "mu": settings["zeta"][peak],
        "has_u": bool(all(ends)),
        "lead": float(f"{tops['zeta'][0] / top:.4g}") if top > 0 else None,
        "rival": others,
        "zeta": float(f"{tops['zeta'][0]:.4g}"),
        "other": float(f"{top:.4g}"),
    }


def _is_above(settings: Settings, more: tuple[float, float], less: tuple[float, float]) -> bool:
    error = float(np.hypot(more[1], less[1]))
    return bool(more[0] - less[0] > settings["num_errors"] * error)


def _claim_of_zeta(found: Found, num_runs: int) -> Claim:
    numbers: dict[str, Number] = {"readings": len(found)}
    readings: dict[str, Side] = {}
    for measure, label in MEASURES.items():
        clear = [row[measure]["best"] for row in found.values() if row[measure]["is_clear"]]
        zeta, others = clear.count("zeta"), len(clear) - clear.count("zeta")
        numbers[f"{label}: zeta leads"] = f"{zeta} of {len(found)}"
        for family in list(FAMILIES)[1:]:
            numbers[f"{label}: {_word(family)} leads"] = f"{clear.count(family)} of {len(found)}"
        numbers[f"{label}: no clear lead"] = f"{len(found) - len(clear)} of {len(found)}"
        half = len(found) / 2
        readings[label] = (
            "holds" if zeta > half else "contradicted" if others > half else "undecided"
        )
    return Claim(
        ZETA_LEADS,
        readings,
        numbers,
        num_runs,
        note="A lead is one of more than two standard errors over both other families.",
        key_numbers=[name for name in numbers if name.endswith("zeta leads")],
    )


def _claim_of_the_u(found: Found, num_runs: int) -> Claim:
    numbers: dict[str, Number] = {"readings": len(found)}
    readings: dict[str, Side] = {}
    for measure, label in MEASURES.items():
        count = sum(row[measure]["has_u"] for row in found.values())
        numbers[f"{label}: inverted U"] = f"{count} of {len(found)}"
        mus = [row[measure]["mu"] for row in found.values() if row[measure]["has_u"]]
        numbers[f"{label}: median of the best μ where there is one"] = (
            float(np.median(mus)) if mus else "–"
        )
        half = len(found) / 2
        readings[label] = (
            "holds" if count > half else "contradicted" if count < half else "undecided"
        )
    return Claim(
        INVERTED_U,
        readings,
        numbers,
        num_runs,
        key_numbers=[name for name in numbers if name.endswith("inverted U")],
    )


def _table_of_leads(settings: Settings, found: Found, num_runs: int) -> Table:
    """The conditions in which zeta leads by most, of those in which it clearly leads."""
    leads = [
        (row[measure]["lead"], name, measure, row[measure])
        for name, row in found.items()
        for measure in MEASURES
        if row[measure]["best"] == "zeta" and row[measure]["is_clear"]
    ]
    leads.sort(key=lambda lead: -(lead[0] or 0.0))
    rows: list[list[Number]] = [
        [
            name,
            MEASURES[measure],
            row["mu"],
            row["zeta"],
            _word(row["rival"]),
            row["other"],
            lead or "–",
        ]
        for lead, name, measure, row in leads[:_SHOWN]
    ]
    total = len(found) * len(MEASURES)
    return Table(
        "Where zeta leads by most",
        ["reading", "measure", "best μ", "zeta", "next family", "its return", "ratio"],
        rows,
        f"Zeta clearly leads in {len(leads)} of {total} conditions ({len(found)} readings by "
        f"{len(MEASURES)} measures, {num_runs} runs at every hyper-parameter).",
    )


def _choices(settings: Settings) -> list[tuple[Any, ...]]:
    return list(
        product(
            settings["epsilons"],
            settings["step_sizes"],
            settings["carries_over"],
            settings["ties"],
            settings["budgets"],
        )
    )


def _name(epsilon: float, step_size: float, carries: bool, tie: str, budget: str) -> str:
    over = ", options carry over" if carries else ""
    return f"ε = {epsilon:g}, α = {step_size:g}, ties: {tie}, {budget}{over}"


def _word(family: str) -> str:
    return FAMILIES[family].split(",")[0]


EXPERIMENT = Experiment(
    id="chain-census",
    title="Figure 2b: a census of readings of the chain",
    shows="which duration law does best, and where the inverted U is, in 216 readings",
    settings=SETTINGS,
    quick={
        "epsilons": [0.05],
        "step_sizes": [0.5],
        "budgets": ["1,000 episodes"],
        "zeta": [1.1, 2.0, 5.0],
        "geometric": [0.0, 0.9, 0.999],
        "uniform": [1, 20, 2000],
    },
    num_seeds=1,
    num_quick_seeds=1,
    num_thorough_seeds=3,
    statements=(ZETA_LEADS, INVERTED_U),
    cost_seconds=90.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
