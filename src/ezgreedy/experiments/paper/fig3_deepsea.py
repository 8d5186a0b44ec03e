"""Figure 3a: how many episodes does learning DeepSea take, and when is each cell first visited?

Q-learning with the paper's settings over a range of sizes N. Two choices that the paper leaves open
decide the answer: whether every step costs, as its appendix says, or only moves to the right, as in
the environment that it cites (bsuite); and whether options survive the end of an episode. All are
run. With a cost on every step and values that begin at 0, ε-greedy too learns within hundreds of
episodes, which is not what the paper's figure shows: that wording is a control, not a reading. A
run has learned after the first episode that leaves a greedy policy leading to the treasure.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.experiments.experiment import (
    Cell,
    Experiment,
    Record,
    Settings,
    results_by_cell,
)
from ezgreedy.experiments.paper.deep_sea_claims import (
    DEFAULT_READING,
    READINGS,
    STATEMENTS,
    Results,
    cell_name,
    censored,
    claims,
    sizes_of,
)
from ezgreedy.experiments.readings import (
    EZ_SETTINGS,
    POLICIES,
    binned,
    mean_curve,
    middles,
    policy_of,
)
from ezgreedy.figures import colours
from ezgreedy.findings.claims import Summary
from ezgreedy.findings.maps import ColourScale, Maps
from ezgreedy.findings.panels import Curve, Panel
from ezgreedy.requirements import FloatArray

SETTINGS: dict[str, Any] = {
    **EZ_SETTINGS,
    "step_size": 1.0,
    "epsilon_times": 1.0,  # Paper: ε = 1/(N + 1)
    "cost_on": "right",
    "other_move": "left",  # as in bsuite; "down" is the appendix's, and makes no difference
    "discount": 1.0,  # ours; 0.9 and 0.99 give the same learning times
    "initial_value": 0.0,
    "ties": "random",
    "eps_sizes": [3, 4, 5, 6, 7, 8, 10, 20],
    "ez_sizes": [5, 10, 20, 30, 40, 50],
    "step_cost_sizes": [5, 10, 20, 30, 50],
    "pessimistic_sizes": [5, 10, 20],
    "num_episodes": 500_000,
    "curve_size": 20,
    "num_curve_episodes": 40_000,
    "num_bins": 80,
    "walk_size": 20,
    "num_walk_episodes": 500_000,  # Paper: 500,000 · N steps
    "num_maps": 5,  # Paper: 5 trials; further seeds keep only numbers of their walks
}


def cells(settings: Settings) -> list[Cell]:
    """Learning at every size under every reading, curves of one size, and walks."""
    learning = [
        Cell(
            cell_name(policy, reading, size),
            {"kind": "learning", "policy": policy, "size": size, **changes},
        )
        for reading, changes in READINGS.items()
        for policy in POLICIES
        for size in sizes_of(settings, policy, reading)
    ]
    size = settings["curve_size"]
    curves = [
        Cell(f"curve {policy}", {"kind": "curve", "policy": policy, "size": size})
        for policy in POLICIES
    ]
    size = settings["walk_size"]
    walks = [
        Cell(f"walk {policy}", {"kind": "walk", "policy": policy, "size": size})
        for policy in POLICIES
    ]
    return learning + curves + walks


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """One training run or one walk."""
    from ezgreedy.envs.deep_sea import DeepSea
    from ezgreedy.kernels.pure_exploration import deep_sea_first_visits
    from ezgreedy.kernels.q_learning_runs import Budget, rule, run_deep_sea, sea_of

    size = settings["size"]
    env = DeepSea(size, cost_on=settings["cost_on"], other_move=settings["other_move"])
    if settings["kind"] == "walk":
        num_steps = settings["num_walk_episodes"] * size
        first = deep_sea_first_visits(seed, 0, sea_of(env), policy_of(settings, 1.0), num_steps)
        seen = first[np.tril_indices(size)]
        return {
            "first_visits": first.tolist() if seed < settings["num_maps"] else None,
            "all_cells": float(seen.mean()),
            "corner": int(first[-1, -1]),
            "never_visited": float((seen == num_steps).mean()),
        }
    policy = policy_of(settings, settings["epsilon_times"] / (size + 1))
    how = rule(
        settings["step_size"], settings["discount"], settings["initial_value"], settings["ties"]
    )
    is_curve = settings["kind"] == "curve"
    num_episodes = settings["num_curve_episodes" if is_curve else "num_episodes"]
    budget = Budget(num_episodes, stops_when_learned=not is_curve)
    run = run_deep_sea(seed, sea_of(env), policy, how, budget)
    result = {"first_success": run.first_success, "learned": run.learned}
    if is_curve:
        late = num_episodes // 4
        return {
            **result,
            "curve": [round(value, 5) for value in binned(run.returns, settings["num_bins"])],
            "late": float(run.returns[-late:].mean()),
        }
    return result


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Judges learning under every reading, returns, and coverage."""
    results = results_by_cell(records)
    return Summary(
        claims(settings, results),
        [
            *(_learning_panel(settings, results, reading) for reading in READINGS),
            _returns_panel(settings, results),
            _maps(settings, results),
        ],
    )


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Episodes to learn against N for each reading, the curves, and the maps."""
    from ezgreedy.figures import curves, heatmaps, style

    *learning, returns_panel = summary.panels
    block = summary.maps[0]
    learned = curves.learning_curves(learning)
    for axis in learned.axes:
        axis.set_ylim(3, 4 * settings["num_episodes"])
    returns = curves.learning_curves([returns_panel])
    maps = heatmaps.first_visit_maps(
        [[np.array(cells, dtype=np.float64) for (cells,) in block.maps.values()]],
        row_labels=(f"ε = 1, N = {settings['walk_size']}",),
        column_labels=tuple(block.maps),
        scale=block.scale,
    )
    return [
        *style.save(learned, directory / "episodes_to_learn"),
        *style.save(returns, directory / "returns"),
        *style.save(maps, directory / "first_visits"),
    ]


def _learning_panel(settings: Settings, results: Results, reading: str) -> Panel:
    """Medians over seeds with the range of all seeds; unlearned runs count as the limit."""
    lines = []
    for policy, label in POLICIES.items():
        # ε-greedy has no options to carry over: its curve is that of the default reading.
        source = reading if sizes_of(settings, policy, reading) else DEFAULT_READING
        sizes = sizes_of(settings, policy, source)
        cells = [results[cell_name(policy, source, size)] for size in sizes]
        counts = np.array([censored([e["learned"] for e in cell], settings) for cell in cells])
        lines.append(
            Curve(
                label,
                sizes,
                np.median(counts, axis=1),
                counts.min(axis=1),
                counts.max(axis=1),
                colours.POLICY_COLOURS[policy],
            )
        )
    return Panel(
        reading,
        lines,
        x_label="size N",
        y_label="episodes to learn (median, range)",
        log_x=True,
        log_y=True,
        references=[_limit(settings, lines)],
        figure="episodes_to_learn",
    )


def _limit(settings: Settings, lines: Sequence[Curve]) -> Curve:
    """The number of episodes that runs had, which those that did not learn count as."""
    sizes = np.concatenate([np.asarray(line.x) for line in lines])
    limit = settings["num_episodes"]
    return Curve("limit: not learned", [sizes.min(), sizes.max()], [limit, limit])


def _returns_panel(settings: Settings, results: Results) -> Panel:
    """Average return over episodes at one size."""
    episodes = middles(settings["num_curve_episodes"], settings["num_bins"])
    return Panel(
        f"Average return at N = {settings['curve_size']}",
        [
            mean_curve(
                label,
                episodes,
                [entry["curve"] for entry in results[f"curve {policy}"]],
                colours.POLICY_COLOURS[policy],
            )
            for policy, label in POLICIES.items()
        ],
        x_label="episode",
        y_label="average return",
        figure="returns",
    )


def _maps(settings: Settings, results: Results) -> Maps:
    return Maps(
        f"First visits at ε = 1, N = {settings['walk_size']}",
        ("ε", [1.0]),
        {label: [_mean_map(results[f"walk {policy}"])] for policy, label in POLICIES.items()},
        # Paper: log(E + 1) with levels in [0, 16]
        ColourScale(float(np.exp(16)), is_log=True),
        figure="first_visits",
    )


def _mean_map(entries: Sequence[Mapping[str, Any]]) -> FloatArray:
    """The mean over walks; NaN where there is no cell."""
    maps = [entry["first_visits"] for entry in entries if entry["first_visits"] is not None]
    mean = np.mean(maps, axis=0)
    return np.where(mean < 0, np.nan, mean)


EXPERIMENT = Experiment(
    id="fig3-deepsea",
    title="Figure 3a: DeepSea",
    shows="episodes until DeepSea is learned at sizes up to 50, and which cells are seen when",
    settings=SETTINGS,
    quick={
        "eps_sizes": [3, 4, 10],
        "ez_sizes": [5, 10, 20],
        "step_cost_sizes": [5, 10],
        "pessimistic_sizes": [5, 10],
        "num_episodes": 50_000,
        "num_walk_episodes": 20_000,
    },
    num_seeds=5,
    num_thorough_seeds=100,
    statements=STATEMENTS,
    cost_seconds=12.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    num_quick_seeds=3,
)
