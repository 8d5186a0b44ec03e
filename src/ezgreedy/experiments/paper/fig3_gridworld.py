"""Figure 3b: does εz-greedy learn GridWorld sooner, and does it cover the room better?

Q-learning with the paper's settings, under both rules for greedy ties, a choice that the paper
leaves open and that decides whether ε-greedy learns at all; and first-visit maps of pure
exploration, in a room without a goal and in one whose goal ends the episode, which is open too.
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
    bootstrap_interval,
    mean_interval,
    paired_difference_interval,
    ratio_interval,
)
from ezgreedy.findings.judging import Side, above, all_of, below
from ezgreedy.findings.maps import ColourScale, Maps
from ezgreedy.findings.panels import Panel
from ezgreedy.requirements import FloatArray

TIES = ("random", "first")
# Whether the goal ends episodes of walks, by reading.
GOALS = {"no goal": False, "the goal ends episodes": True}

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
    # Paper: 100 trials. Four walks for each of 25 seeds make the maps; further seeds keep only
    # numbers of their walks.
    "num_walks_per_seed": 4,
    "num_maps": 25,
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
    "The reading in which the goal ends episodes was added when the other's results were known.",
)
WORST_CELL = Statement(
    "The cell that is reached last is reached sooner with εz-greedy (first-visit times at ε = 1).",
    OURS,
    "The largest mean number of steps to the first visit of any cell, over the 100 trials of a "
    "map: the interval of the ratio εz/ε lies below 1.",
)
FAR_SIDE = Statement(
    "εz-greedy reaches the far side of the room sooner (first-visit times at ε = 1).",
    OURS,
    "Mean number of steps to the first visit of the two bottom corners, and of the cell in which "
    "the goal lies when there is one: the interval of the ratio εz/ε lies below 1 for both.",
)


def cells(settings: Settings) -> list[Cell]:
    """Learning with both policies under both tie rules, and both policies' walks."""
    learning = [
        Cell(_cell_name(policy, ties), {"policy": policy, "ties": ties})
        for ties in TIES
        for policy in POLICIES
    ]
    walks = [
        Cell(_walks_name(policy, name), {"policy": policy, "ties": None, "goal_ends": goal_ends})
        for name, goal_ends in GOALS.items()
        for policy in POLICIES
    ]
    return learning + walks


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """A training run, or walks."""
    return _walks(settings, seed) if settings["ties"] is None else _training(settings, seed)


def _training(settings: Settings, seed: int) -> dict[str, Any]:
    from ezgreedy.envs.grid_world import GridWorld
    from ezgreedy.kernels.q_learning_runs import Budget, finite_task, rule, run_finite

    room = GridWorld(settings["size"], settings["start"], settings["goal"])
    task = finite_task(room, settings["step_limit"])
    how = rule(settings["step_size"], settings["discount"], ties=settings["ties"])
    policy = policy_of(settings, settings["epsilon"])
    run = run_finite(seed, task, policy, how, Budget(settings["num_episodes"]))
    early = settings["num_early_episodes"]
    return {
        "curve": [round(value, 5) for value in binned(run.returns, settings["num_bins"])],
        "early": float(run.returns[:early].mean()),
        "all": float(run.returns.mean()),
        "late": float(run.returns[-early:].mean()),
        "late_steps": float(run.lengths[-early:].mean()),
    }


def _walks(settings: Settings, seed: int) -> dict[str, Any]:
    from ezgreedy.envs.grid_world import GridWorld
    from ezgreedy.kernels.pure_exploration import finite_first_visits
    from ezgreedy.kernels.q_learning_runs import finite_task

    num_steps, size = settings["num_walk_steps"], settings["size"]
    goal = settings["goal"] if settings["goal_ends"] else None
    task = finite_task(GridWorld(size, settings["start"], goal))
    policy = policy_of(settings, 1.0)
    first = np.array(
        [
            finite_first_visits(seed, lane, task, policy, num_steps)
            for lane in range(settings["num_walks_per_seed"])
        ]
    ).reshape(-1, size, size)
    return {
        "first_visits": first.sum(axis=0).tolist() if seed < settings["num_maps"] else None,
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
        _claim_of_the_worst_cell(settings, results),
        _claim_of_the_far_side(results),
    ]
    panels = [
        Panel(
            f"Average return, greedy ties: {ties}",
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
            figure="learning",
        )
        for ties in TIES
    ]
    maps = Maps(
        "First visits at ε = 1",
        ("walks", list(GOALS)),
        {
            label: [_maps(settings, results, policy, name).mean(axis=0) for name in GOALS]
            for policy, label in POLICIES.items()
        },
        ColourScale(settings["num_walk_steps"]),
        figure="first_visits",
    )
    return Summary(claims, [*panels, maps])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Learning curves for each tie rule, and the maps."""
    from ezgreedy.figures import curves, heatmaps, style

    (block,) = summary.maps
    maps = heatmaps.first_visit_maps(
        [[np.array(cells[place]) for cells in block.maps.values()] for place in range(len(GOALS))],
        row_labels=tuple(GOALS),
        column_labels=tuple(block.maps),
        scale=block.scale,
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
    readings: dict[str, Side] = {}
    for name in GOALS:
        for measure, label in (("all_cells", "all cells"), ("never_visited", "never visited")):
            numbers |= _compared(results, name, measure, f"{name}: {label}")
        ratio = numbers[f"{name}: all cells, ratio εz/ε"]
        assert isinstance(ratio, Interval)
        readings[name] = below(ratio, 1.0)
    return Claim(
        COVERAGE,
        readings,
        numbers,
        fewest_seeds(results),
        note="Long options stand at a wall, which costs more in an open room than straight walks "
        "gain.",
        key_numbers=names_with(numbers, "all cells, ratio"),
    )


def _claim_of_the_worst_cell(settings: Settings, results: Results) -> Claim:
    rng = np.random.default_rng(0)
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    num_seeds = 0
    for name in GOALS:
        maps = [_maps(settings, results, policy, name) for policy in ("ez", "eps")]
        num_seeds = len(maps[0])
        pairs = np.stack([rows.reshape(num_seeds, -1) for rows in maps], axis=1)
        for place, policy in enumerate(("ez", "eps")):
            worst = bootstrap_interval(pairs[:, place], rng, _largest_mean, repeats=500)
            numbers[f"{name}: worst cell, {POLICIES[policy]}"] = worst
        ratio = bootstrap_interval(pairs, rng, _ratio_of_largest, repeats=500)
        numbers[f"{name}: worst cell, ratio εz/ε"] = ratio
        readings[name] = below(ratio, 1.0)
    return Claim(
        WORST_CELL,
        readings,
        numbers,
        num_seeds,
        note="A map's most striking cell, and what a reader sees first; the mean over all cells is "
        "what the paper averages.",
        key_numbers=names_with(numbers, "ratio"),
    )


def _largest_mean(resamples: FloatArray) -> FloatArray:
    """The largest mean over cells, [repeats, seeds, cells] to [repeats]."""
    return np.asarray(resamples.mean(axis=1).max(axis=1))


def _ratio_of_largest(resamples: FloatArray) -> FloatArray:
    """The ratio of the largest means, [repeats, seeds, 2, cells] to [repeats]."""
    return _largest_mean(resamples[:, :, 0]) / _largest_mean(resamples[:, :, 1])


def _maps(settings: Settings, results: Results, policy: str, name: str) -> FloatArray:
    """The mean map of every seed that kept one, [seeds, size, size]."""
    sums = [entry["first_visits"] for entry in results[_walks_name(policy, name)]]
    kept = np.array([cells for cells in sums if cells is not None], dtype=np.float64)
    return kept / settings["num_walks_per_seed"]


def _claim_of_the_far_side(results: Results) -> Claim:
    corners = _compared(results, "no goal", "bottom_corners", "bottom corners")
    goal = _compared(results, "no goal", "goal_cell", "goal cell")
    ratios = corners["bottom corners, ratio εz/ε"], goal["goal cell, ratio εz/ε"]
    return Claim(
        FAR_SIDE,
        {AS_STATED: all_of(below(ratio, 1.0) for ratio in ratios)},
        {**corners, **goal},
        fewest_seeds(results),
    )


def _compared(results: Results, goal: str, measure: str, name: str) -> dict[str, Interval]:
    eps, ez = (
        [value for entry in results[_walks_name(policy, goal)] for value in entry[measure]]
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


def _walks_name(policy: str, goal: str) -> str:
    return f"walks {policy}, {goal}"


EXPERIMENT = Experiment(
    id="fig3-gridworld",
    title="Figure 3b: GridWorld",
    shows="how soon Q-learning finds GridWorld's goal, and which cells are reached when",
    settings=SETTINGS,
    quick={"num_episodes": 300},
    num_seeds=30,
    num_thorough_seeds=100,
    statements=(LEARNING, COVERAGE, WORST_CELL, FAR_SIDE),
    cost_seconds=6.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    num_quick_seeds=5,
)
