"""Figure 3b: does εz-greedy learn GridWorld sooner, and does it cover the room better?

Q-learning with the paper's settings, under both rules for greedy ties, a choice that the paper
leaves open and that decides whether ε-greedy learns at all; and first-visit maps of pure
exploration. Learning is faster under both rules. Coverage, as the mean over all cells, is not
better; the far corners are reached sooner.
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
    fewest_seeds,
    results_by_cell,
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
from ezgreedy.findings.claims import (
    AS_STATED,
    OURS,
    Claim,
    Number,
    Statement,
    Summary,
    names_with,
)
from ezgreedy.findings.intervals import (
    Interval,
    mean_interval,
    paired_difference_interval,
    ratio_interval,
)
from ezgreedy.findings.judging import Side, above, all_of, below
from ezgreedy.findings.maps import ColourScale
from ezgreedy.findings.panels import Panel

TIES = ("random", "first")

SETTINGS: dict[str, Any] = {
    **EZ_SETTINGS,
    "step_size": 0.1,
    "epsilon": 0.1,
    "step_limit": 1000,
    "size": 23,
    "start": [1, 11],
    "goal": [20, 20],  # ours: diagonally across, off the walls, in another row and column
    "discount": 0.99,  # ours; no influence on the results between 0.9 and 1
    "num_episodes": 1000,
    "num_bins": 50,
    "num_early_episodes": 100,
    # Deviation: four walks for each of 30 seeds make 120 trials where the paper has 100.
    "num_walks_per_seed": 4,
    "num_walk_steps": 5000,
}

LEARNING = Statement(
    "εz-greedy learns GridWorld faster than ε-greedy.",
    "paper, Section 5.1 and Figure 3b",
    f"The mean return of the first {SETTINGS['num_early_episodes']} episodes and that of all "
    "episodes: the interval of the difference εz − ε, paired by seed, lies above 0 for both.",
    "Until the results were known, two intervals that do not overlap.",
)
COVERAGE = Statement(
    "First-visit times at ε = 1 show significantly better coverage than with ε-greedy.",
    "paper, Section 5.1 and Figure 3b",
    "Mean number of steps to the first visit over all cells: the interval of the ratio εz/ε lies "
    "below 1.",
)
FAR_SIDE = Statement(
    "εz-greedy reaches the far side of the room sooner (first-visit times at ε = 1).",
    OURS,
    "Mean number of steps to the first visit of the two bottom corners, and of the cell in which "
    "the goal lies when there is one: the interval of the ratio εz/ε lies below 1 for both.",
)


def cells(settings: Settings) -> list[Cell]:
    """Learning with both policies under both tie rules, and walks of both policies."""
    learning = [
        Cell(_cell_name(policy, ties), {"policy": policy, "ties": ties})
        for ties in TIES
        for policy in POLICIES
    ]
    return learning + [
        Cell(f"walks {policy}", {"policy": policy, "ties": None}) for policy in POLICIES
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """A training run, or walks."""
    return _walks(settings, seed) if settings["ties"] is None else _training(settings, seed)


def _training(settings: Settings, seed: int) -> dict[str, Any]:
    from ezgreedy.kernels.q_learning_runs import Budget, GridRoom, rule, run_grid_world

    (row, column), (goal_row, goal_column) = settings["start"], settings["goal"]
    room = GridRoom(settings["size"], row, column, goal_row, goal_column, settings["step_limit"])
    how = rule(settings["step_size"], settings["discount"], ties=settings["ties"])
    policy = policy_of(settings, settings["epsilon"])
    run = run_grid_world(seed, room, policy, how, Budget(settings["num_episodes"]))
    early = settings["num_early_episodes"]
    return {
        "curve": binned(run.returns, settings["num_bins"]),
        "early": float(run.returns[:early].mean()),
        "all": float(run.returns.mean()),
        "late": float(run.returns[-early:].mean()),
        "late_steps": float(run.lengths[-early:].mean()),
    }


def _walks(settings: Settings, seed: int) -> dict[str, Any]:
    from ezgreedy.kernels.pure_exploration import grid_world_first_visits
    from ezgreedy.kernels.q_learning_runs import GridRoom

    room, num_steps = GridRoom(settings["size"], *settings["start"]), settings["num_walk_steps"]
    policy = policy_of(settings, 1.0)
    first = np.array(
        [
            grid_world_first_visits(seed, lane, room, policy, num_steps)
            for lane in range(settings["num_walks_per_seed"])
        ]
    )
    return {
        "first_visits": first.mean(axis=0).tolist(),
        "all_cells": first.mean(axis=(1, 2)).tolist(),
        "bottom_corners": first[:, -1, [0, -1]].mean(axis=1).tolist(),
        "goal_cell": first[:, *settings["goal"]].tolist(),
        "never_visited": (first == num_steps).mean(axis=(1, 2)).tolist(),
    }


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Judges learning under both tie rules, and coverage by the mean and by the far corners."""
    results = results_by_cell(records)
    claims = [
        _claim_of_learning(settings, results),
        _claim_of_coverage(results),
        _claim_of_the_far_side(results),
    ]
    panels = [
        Panel(
            f"greedy ties: {ties}",
            [
                mean_curve(
                    label,
                    middles(settings["num_episodes"], settings["num_bins"]),
                    [entry["curve"] for entry in results[_cell_name(policy, ties)]],
                    colours.POLICY_COLOURS[policy],
                )
                for policy, label in POLICIES.items()
            ],
            x_label="episode",
            y_label="average return",
        )
        for ties in TIES
    ]
    maps = {
        policy: np.mean([entry["first_visits"] for entry in results[f"walks {policy}"]], axis=0)
        .round(1)
        .tolist()
        for policy in POLICIES
    }
    return Summary(claims, panels, {"first_visits": maps})


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Learning curves for each tie rule, and the maps."""
    from ezgreedy.figures import curves, heatmaps, style

    maps = heatmaps.first_visit_maps(
        [[np.array(summary.data["first_visits"][policy]) for policy in POLICIES]],
        row_labels=("ε = 1",),
        column_labels=tuple(POLICIES.values()),
        scale=ColourScale(settings["num_walk_steps"]),
    )
    learning = style.save(curves.learning_curves(summary.panels), directory / "learning")
    return learning + style.save(maps, directory / "first_visits")


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _claim_of_learning(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    measures = {
        "early": f"return, first {settings['num_early_episodes']} episodes",
        "all": "return, all episodes",
        "late": f"return, last {settings['num_early_episodes']} episodes",
        "late_steps": f"steps to the goal, last {settings['num_early_episodes']} episodes",
    }
    for ties in TIES:
        gains = {}
        for measure, name in measures.items():
            samples = {
                policy: [entry[measure] for entry in results[_cell_name(policy, ties)]]
                for policy in POLICIES
            }
            for policy, label in POLICIES.items():
                numbers[f"{ties} ties: {name}, {label}"] = mean_interval(samples[policy])
            gains[measure] = paired_difference_interval(samples["ez"], samples["eps"])
            numbers[f"{ties} ties: {name}, εz − ε"] = gains[measure]
        readings[f"{ties} ties"] = all_of(above(gains[name]) for name in ("early", "all"))
    return Claim(
        LEARNING,
        readings,
        numbers,
        fewest_seeds(results),
        note="With ties to the first action ε-greedy never finds the goal. Once learned, εz-greedy "
        "takes more steps to the goal: its exploration continues and costs more.",
        key_numbers=names_with(numbers, "return, first 100 episodes, εz − ε"),
    )


def _claim_of_coverage(results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    for measure, name in (("all_cells", "all cells"), ("never_visited", "share never visited")):
        numbers |= _compared(results, measure, name)
    ratio = numbers["all cells, ratio εz/ε"]
    assert isinstance(ratio, Interval)
    return Claim(
        COVERAGE,
        {AS_STATED: below(ratio, 1.0)},
        numbers,
        fewest_seeds(results),
        note="Long options stand at a wall, which costs more in an open room than straight walks "
        "gain.",
        key_numbers=names_with(numbers, "all cells"),
    )


def _claim_of_the_far_side(results: Results) -> Claim:
    corners = _compared(results, "bottom_corners", "bottom corners")
    goal = _compared(results, "goal_cell", "goal cell")
    ratios = corners["bottom corners, ratio εz/ε"], goal["goal cell, ratio εz/ε"]
    return Claim(
        FAR_SIDE,
        {AS_STATED: all_of(below(ratio, 1.0) for ratio in ratios)},
        {**corners, **goal},
        fewest_seeds(results),
    )


def _compared(
    results: Results,
    measure: str,
    name: str,
) -> dict[str, Interval]:
    eps, ez = (
        [value for entry in results[f"walks {policy}"] for value in entry[measure]]
        for policy in POLICIES
    )
    numbers = {
        f"{name}, ε-greedy": mean_interval(eps),
        f"{name}, εz-greedy": mean_interval(ez),
    }
    if min(eps) > 0:
        numbers[f"{name}, ratio εz/ε"] = ratio_interval(ez, eps)
    return numbers


def _cell_name(policy: str, ties: str) -> str:
    return f"{policy}, {ties} ties"


EXPERIMENT = Experiment(
    id="fig3-gridworld",
    title="Figure 3b: GridWorld",
    shows="how soon Q-learning finds GridWorld's goal, and which cells are reached when",
    settings=SETTINGS,
    quick={"num_episodes": 300},
    num_seeds=30,
    statements=(LEARNING, COVERAGE, FAR_SIDE),
    cost_seconds=6.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    num_quick_seeds=5,
)
