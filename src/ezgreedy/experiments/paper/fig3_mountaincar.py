"""Figure 3c: does εz-greedy get the car of MountainCar out of its valley sooner, and why?

SARSA(λ) on an order-5 Fourier basis with a reward only at the goal. Choices that the paper leaves
open (step-size scaling, tie-breaking, initial weights) are varied in cells of their own.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ezgreedy.experiments.experiment import (
    Cell,
    Experiment,
    Record,
    Settings,
    fewest_seeds,
    results_by_cell,
)
from ezgreedy.experiments.paper import linear_study as study
from ezgreedy.experiments.readings import POLICIES
from ezgreedy.findings.claims import Claim, Number, Statement, Summary, names_with
from ezgreedy.findings.intervals import mean_interval
from ezgreedy.findings.judging import Side, above

SOURCE = "paper, Section 5.1 and Figure 3c"

SETTINGS: dict[str, Any] = {
    # Paper: appendix, MountainCar
    "step_size": 0.005,
    "epsilon": 0.05,
    "discount": 0.99,
    "decay": 0.9,
    "order": 5,
    "step_limit": 5000,
    # The paper does not say:
    "num_episodes": 200,
    "coupling": None,
    "ranges": [[-1.2, 0.6], [-0.07, 0.07]],  # the whole state space
    "scales_step_sizes": True,  # by 1/‖c‖, as the basis's authors do
    "bounds_step_size": False,
    "initial_variance": 0.0,
    "ties": "random",
    "precision": 64,
    "bootstraps_at_limit": True,
    "mu": 2.0,
    "cap": 10_000,
    "carries_over_episodes": False,
    "readings": {
        "raw step size": {"scales_step_sizes": False},
        "first of ties": {"ties": "first"},
        "random weights": {"initial_variance": 0.001},
    },
    # Paper: the table of first-visit settings, 50 trials in all
    "num_walk_steps": 5000,
    "num_bins": 12,
    "num_trials": 50,
    "num_trials_per_seed": 2,
    "early_episodes": 50,  # "sooner" is judged by the mean return of these first episodes
    "num_curve_points": 40,
}

_DEFAULT = "as the basis's authors"

PERFORMANCE = Statement(
    "MountainCar: εz-greedy provides significantly improved performance.",
    SOURCE,
    f"The interval of the difference εz − ε of the mean return of the first "
    f"{SETTINGS['early_episodes']} episodes lies above 0.",
)
COVERAGE = study.coverage_statement("MountainCar", SOURCE)


def cells(settings: Settings) -> list[Cell]:
    """Both policies under the default and under every other reading, and their maps."""
    readings = {_DEFAULT: {}, **settings["readings"]}
    learning = [
        Cell(f"{policy}, {name}", {"policy": policy, "kind": "learning", **changes})
        for name, changes in readings.items()
        for policy in POLICIES
    ]
    maps = [Cell(f"{policy}, map", {"policy": policy, "kind": "map"}) for policy in POLICIES]
    return learning + maps


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """One agent's returns and lengths, or one seed's trials of a map."""
    from ezgreedy.envs import mountain_car as car
    from ezgreedy.kernels.pure_exploration import Axis
    from ezgreedy.kernels.sarsa_runs import Domain

    if settings["kind"] == "learning":
        return study.learned(Domain.MOUNTAIN_CAR, settings, seed)
    bins = settings["num_bins"]
    axes = (
        Axis(0, car.LEAST_POSITION, car.MOST_POSITION, bins),
        Axis(1, -car.MOST_SPEED, car.MOST_SPEED, bins),
    )
    return study.walked(Domain.MOUNTAIN_CAR, settings, axes, seed)


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Judges the paper's two sentences on Figure 3, here for MountainCar."""
    results = results_by_cell(records)
    names = [_DEFAULT, *settings["readings"]]
    claims = [
        _claim_of_performance(settings, results, names),
        study.coverage_claim(COVERAGE, results, {"map": ("eps, map", "ez, map")}),
    ]
    shown = [
        (_DEFAULT, "returns", "return", "learning_curves"),
        (_DEFAULT, "lengths", "steps to the goal or limit", "learning_curves"),
        *((name, "returns", "return", "readings") for name in settings["readings"]),
    ]
    panels = [
        study.learning_panel(
            f"{name}: {label}",
            {policy: results[f"{policy}, {name}"] for policy in POLICIES},
            settings,
            measure,
            y_label=label,
            figure=figure,
        )
        for name, measure, label, figure in shown
    ]
    maps = study.visit_maps(
        "First visits at ε = 1",
        [results[f"{policy}, map"] for policy in POLICIES],
        ("position", "velocity"),
        settings["num_walk_steps"],
        "first_visits",
    )
    return Summary(claims, [*panels, maps])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Learning curves of the default and of the other readings, and the maps."""
    main, readings = summary.panels[:2], summary.panels[2:]
    return [
        *study.save_panels(main, directory / "learning_curves"),
        *(study.save_panels(readings, directory / "readings") if readings else []),
        *study.save_maps(summary.maps[0], directory),
    ]


def _claim_of_performance(
    settings: Settings,
    results: study.Results,
    names: Sequence[str],
) -> Claim:
    early = settings["early_episodes"]
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    for name in names:
        runs = {p: study.finished(results[f"{p}, {name}"], settings) for p in POLICIES}
        first = {p: study.mean_of(runs[p], settings, early) for p in POLICIES}
        for policy, label in POLICIES.items():
            numbers[f"{name}: return of episodes 1–{early}, {label}"] = mean_interval(first[policy])
            numbers[f"{name}: return of all episodes, {label}"] = mean_interval(
                study.mean_of(runs[policy], settings)
            )
            numbers[f"{name}: runs that never reach the goal, {label}"] = int(
                (runs[policy].sum(axis=1) == 0.0).sum()
            )
        gain = study.difference_interval(first["ez"], first["eps"])
        numbers[f"{name}: εz − ε, return of episodes 1–{early}"] = gain
        readings[name] = above(gain)
    return Claim(
        PERFORMANCE,
        readings,
        numbers,
        fewest_seeds(results),
        note="Readings vary what the paper leaves open: step sizes α/‖c‖ or α for all features, "
        "random or first greedy ties, weights 0 or N(0, 0.001) at first.",
        key_numbers=names_with(numbers, "εz − ε"),
    )


EXPERIMENT = Experiment(
    id="fig3-mountaincar",
    title="Figure 3c: MountainCar with a sparse reward",
    shows="learning curves and first-visit maps of ε- and εz-greedy in MountainCar",
    settings=SETTINGS,
    quick={"num_episodes": 20, "early_episodes": 20, "num_trials": 4, "step_limit": 2000},
    num_seeds=30,
    num_thorough_seeds=100,
    statements=(PERFORMANCE, COVERAGE),
    cost_seconds=60.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
