"""Figure 1: which cells of an open grid do ε- and εz-greedy reach if the greedy policy goes down?

Average first-visit times of all cells at several ε. A seed is a block of walks. Every ε has its own
random streams; the two policies share them, and are compared walk by walk. The paper's sentences on
ε ≤ 0.5 and on the bottom corners are judged as they stand. That εz explores "the space" more
efficiently is judged by the mean over all cells; under pure exploration it fails, because of long
repeats against a wall.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.analysis.grid_walks import NUM_ACTIONS, OpenGrid, first_visits
from ezgreedy.experiments.experiment import (
    Cell,
    Experiment,
    Record,
    Settings,
    fewest_seeds,
    results_by_cell,
)
from ezgreedy.exploration.durations import Fixed, Zeta
from ezgreedy.exploration.ez_greedy import EZGreedy
from ezgreedy.findings.claims import AS_STATED, OURS, Claim, Number, Statement, Summary
from ezgreedy.findings.intervals import Interval, mean_interval, ratio_interval
from ezgreedy.findings.judging import Side, above, all_of, below
from ezgreedy.findings.maps import ColourScale, Maps
from ezgreedy.seeding import role_seed

SETTINGS: dict[str, Any] = {
    "epsilons": [0.1, 0.25, 0.5, 0.75, 1.0],
    "size": 23,
    "num_steps": 5000,  # Paper: Table of first-visit settings
    "num_walks_per_seed": 100,  # Deviation: 500 walks by default; the paper has 100 trials
    # Paper: the appendix says "offset from the wall by one row" of GridWorld and calls Figure 1's
    # grid similar; the caption says "top center". 0 is the other reading.
    "start_row": 1,
    "mu": 2.0,
    "cap": 10_000,
    "carries_over_episodes": False,
    # Columns on either side of the greedy path that count as near it: readings of "narrow".
    "band_half_widths": [3, 5, 7],
}

POLICIES = {"eps": "ε-greedy", "ez": "εz-greedy"}

# A walk that visits more than this share of the cells outside the band has not "hardly" left it.
_HARDLY = 0.1

BAND = Statement(
    "For ε ≤ 0.5, ε-greedy is exceedingly unlikely to reach states outside a narrow band around "
    "the greedy policy.",
    "paper, Section 4 and Figure 1b",
    "At every ε ≤ 0.5, a walk of ε-greedy visits less than a tenth of the cells outside the band: "
    "the interval of the share lies below 0.1. Readings of “narrow”: "
    f"{', '.join(map(str, SETTINGS['band_half_widths']))} columns on either side of the greedy "
    "path.",
    "A band of 5 columns was the only reading until 100 walks had been run.",
)
EFFICIENCY = Statement(
    "Exploring persistently with a directed policy leads to more efficient exploration of the "
    "space at various values of ε (below 1).",
    "paper, Section 4 and Figure 1a",
    "At every ε ≤ 0.75, the mean number of steps to the first visit is smaller with εz-greedy, "
    "over all cells and over the two bottom corners: the interval of the ratio εz/ε lies below 1.",
)
CORNERS = Statement(
    "Even at ε = 1, ε-greedy requires a large number of steps to ever visit the bottom corners of "
    "the grid; εz-greedy needs fewer.",
    "paper, Section 4 and Figure 1b",
    "ε-greedy's mean number of steps to the first visit of the bottom corners is more than half of "
    "the walk, and the interval of the ratio εz/ε lies below 1.",
)
WHOLE_SPACE = Statement(
    "At ε = 1 too, εz-greedy explores the space as a whole more efficiently.",
    OURS,  # the paper says "at various values of ε" without values or a measure
    "The interval of the ratio εz/ε of the mean number of steps to the first visit, over all "
    "cells, lies below 1.",
)


def cells(settings: Settings) -> list[Cell]:
    """Both policies at every ε."""
    return [
        Cell(_cell_name(policy, epsilon), {"policy": policy, "epsilon": epsilon})
        for policy in POLICIES
        for epsilon in settings["epsilons"]
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """Walks of one policy at one ε: their map, and the measures of each walk."""
    is_ez = settings["policy"] == "ez"
    explore = EZGreedy(
        NUM_ACTIONS,
        settings["epsilon"],
        Zeta(settings["mu"], settings["cap"]) if is_ez else Fixed(1),
        settings["num_walks_per_seed"],
        role_seed(seed, f"walks at {settings['epsilon']:g}"),
        carries_over_episodes=settings["carries_over_episodes"],
    )
    grid = OpenGrid(settings["size"], settings["num_steps"], settings["start_row"])
    first = first_visits(explore, grid)
    distance = np.abs(np.arange(grid.size) - grid.size // 2)
    is_visited = first < grid.num_steps
    beyond = {
        str(width): is_visited[:, :, distance > width].mean(axis=(1, 2)).round(4).tolist()
        for width in settings["band_half_widths"]
    }
    return {
        "first_visits": first.mean(axis=0).round(2).tolist(),
        "all_cells": first.mean(axis=(1, 2)).round(2).tolist(),
        "bottom_corners": first[:, -1, [0, -1]].mean(axis=1).tolist(),
        "visited_beyond": beyond,
    }


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Judges the paper's sentences on Figure 1."""
    results = results_by_cell(records)
    maps = {
        cell: np.mean([entry["first_visits"] for entry in entries], axis=0)
        for cell, entries in results.items()
    }
    claims = [
        _claim_of_the_band(settings, results),
        _claim_of_efficiency(settings, results),
    ]
    if 1.0 in settings["epsilons"]:
        claims += [_claim_of_the_corners(settings, results), _claim_of_the_mean(results)]
    block = Maps(
        "First-visit times at each ε",
        ("ε", settings["epsilons"]),
        {
            label: [maps[_cell_name(policy, epsilon)] for epsilon in settings["epsilons"]]
            for policy, label in POLICIES.items()
        },
        ColourScale(settings["num_steps"]),
        figure="first_visits",
    )
    return Summary(claims, [block])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """The maps: a row for each policy, a column for each ε."""
    from ezgreedy.figures import heatmaps, style

    (block,) = summary.blocks
    assert isinstance(block, Maps)
    figure = heatmaps.first_visit_maps(
        [[np.array(cells) for cells in row] for row in block.maps.values()],
        row_labels=tuple(block.maps),
        column_labels=[f"ε = {epsilon:g}" for epsilon in settings["epsilons"]],
        scale=block.scale,
    )
    return style.save(figure, directory / "first_visits")


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _claim_of_the_band(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    for width in settings["band_half_widths"]:
        stays = []
        for epsilon in _epsilons_up_to(settings, 0.5):
            for policy, label in POLICIES.items():
                entries = results[_cell_name(policy, epsilon)]
                walks = [s for entry in entries for s in entry["visited_beyond"][str(width)]]
                shares = mean_interval(walks)
                name = f"band of ±{width}, ε = {epsilon:g}: share visited beyond, {label}"
                numbers[name] = shares
                if policy == "eps":
                    stays.append(below(shares, _HARDLY))
        readings[f"band of ±{width} columns"] = all_of(stays)
    widest = max(_epsilons_up_to(settings, 0.5))
    return Claim(
        BAND,
        readings,
        numbers,
        fewest_seeds(results),
        note="How narrow and how unlikely are not said.",
        key_numbers=[
            f"band of ±{width}, ε = {widest:g}: share visited beyond, {POLICIES['eps']}"
            for width in settings["band_half_widths"]
        ],
    )


def _claim_of_efficiency(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    is_better = []
    for epsilon in _epsilons_up_to(settings, 0.75):
        for measure in ("all_cells", "bottom_corners"):
            compared = _compared(results, epsilon, measure)
            numbers |= _named(compared, epsilon, measure)
            is_better.append(below(compared["ratio εz/ε"], 1.0))
    return Claim(
        EFFICIENCY,
        {AS_STATED: all_of(is_better)},
        numbers,
        fewest_seeds(results),
        key_numbers=[name for name in numbers if name.endswith("all cells, ratio εz/ε")],
    )


def _claim_of_the_corners(settings: Settings, results: Results) -> Claim:
    compared = _compared(results, 1.0, "bottom_corners")
    numbers = _named(compared, 1.0, "bottom_corners")
    is_large = above(compared["ε-greedy"], settings["num_steps"] / 2)
    side = all_of([is_large, below(compared["ratio εz/ε"], 1.0)])
    return Claim(
        CORNERS, {AS_STATED: side}, numbers, fewest_seeds(results), key_numbers=list(numbers)
    )


def _claim_of_the_mean(results: Results) -> Claim:
    compared = _compared(results, 1.0, "all_cells")
    numbers = _named(compared, 1.0, "all_cells")
    return Claim(
        WHOLE_SPACE,
        {AS_STATED: below(compared["ratio εz/ε"], 1.0)},
        numbers,
        fewest_seeds(results),
        note="Long repeats stand still at a wall, so on this measure pure exploration gains "
        "nothing from them in an open room.",
        key_numbers=list(numbers),
    )


def _num_seeds(results: Results) -> int:
    return min(map(len, results.values()))


def _compared(
    results: Results,
    epsilon: float,
    measure: str,
) -> dict[str, Interval]:
    """One measure of both policies at one ε, and its ratio."""
    eps, ez = (_walks(results, policy, epsilon, measure) for policy in POLICIES)
    return {
        "ε-greedy": mean_interval(eps),
        "εz-greedy": mean_interval(ez),
        "ratio εz/ε": ratio_interval(ez, eps),
    }


def _walks(results: Results, policy: str, epsilon: float, measure: str) -> list[float]:
    """One measure of every single walk, over all seeds."""
    entries = results[_cell_name(policy, epsilon)]
    return [value for entry in entries for value in entry[measure]]


def _named(compared: Mapping[str, Interval], epsilon: float, measure: str) -> dict[str, Number]:
    place = measure.replace("_", " ")
    return {f"ε = {epsilon:g}: {place}, {name}": value for name, value in compared.items()}


def _epsilons_up_to(settings: Settings, most: float) -> list[float]:
    return [epsilon for epsilon in settings["epsilons"] if epsilon <= most]


def _cell_name(policy: str, epsilon: float) -> str:
    return f"{policy} {epsilon:g}"


EXPERIMENT = Experiment(
    id="fig1-gridworld-coverage",
    title="Figure 1: first-visit times in an open grid",
    shows="which cells of an open grid ε- and εz-greedy reach, and how soon",
    settings=SETTINGS,
    quick={"epsilons": [0.1, 0.5, 1.0], "num_walks_per_seed": 10},
    num_seeds=5,
    statements=(BAND, EFFICIENCY, CORNERS, WHOLE_SPACE),
    cost_seconds=20.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
