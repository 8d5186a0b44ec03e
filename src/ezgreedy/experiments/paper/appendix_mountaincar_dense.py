"""Appendix A: is MountainCar with a dense reward solved in less than a dozen episodes?

The paper says so of linear function approximation on a low-order Fourier basis, to show that the
sparse reward is what makes its version hard. Every step costs 1 here. SARSA(λ) has the settings
that the paper prints for the sparse version; the order of the basis is left open. Greedy play with
γ = 1 and a smaller step size is a control.
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
from ezgreedy.experiments.paper import linear_study as study
from ezgreedy.experiments.readings import POLICIES, mean_curve
from ezgreedy.figures import colours
from ezgreedy.findings.claims import OURS, Claim, Number, Statement, Summary, names_with
from ezgreedy.findings.intervals import mean_interval, ratio_interval, share_interval
from ezgreedy.findings.judging import Side, above, below
from ezgreedy.findings.panels import Curve, Panel

SETTINGS: dict[str, Any] = {
    # Paper: appendix, MountainCar, where it is about the sparse version
    "decay": 0.9,
    "step_limit": 5000,
    "num_episodes": 50,
    "num_curve_points": 50,  # every episode is kept
    "coupling": None,
    "ranges": [[-1.2, 0.6], [-0.07, 0.07]],
    "scales_step_sizes": True,
    "bounds_step_size": False,
    "initial_variance": 0.0,
    "ties": "random",
    "precision": 64,
    "bootstraps_at_limit": True,
    "mu": 2.0,
    "cap": 10_000,
    "carries_over_episodes": False,
    "orders": [3, 5, 7],
    "rules": {
        "as printed": {"step_size": 0.005, "discount": 0.99, "epsilon": 0.05},
        "greedy": {"step_size": 0.001, "discount": 1.0, "epsilon": 0.0},
    },
    "num_steps_solved": 200,  # Gymnasium's limit for an episode
    "num_episodes_in_a_row": 10,
    "most_episodes": 11,  # "less than a dozen"
    "least_share": 0.9,  # "reliably"
    "most_loss": 1.1,
}

SOLVED = Statement(
    "The dense-reward version of MountainCar can be solved reliably in less than a dozen episodes "
    "using linear function approximation on top of a low-order Fourier basis.",
    "paper, Appendix A, MountainCar",
    f"A run has solved it in k episodes if the {SETTINGS['num_episodes_in_a_row']} episodes from "
    f"the k-th on take fewer than {SETTINGS['num_steps_solved']} steps on average (Gymnasium's "
    f"limit for one). With ε-greedy, the interval of the share of runs with k ≤ "
    f"{SETTINGS['most_episodes']} lies above {SETTINGS['least_share']:g}. Orders 3, 5 and 7 are "
    "readings; greedy play with γ = 1 and α = 0.001 is a control.",
)
LITTLE_LOSS = Statement(
    "With a dense reward, where exploration is easy, εz-greedy loses little against ε-greedy in "
    "MountainCar.",
    OURS,
    f"The interval of the ratio εz/ε of the mean number of steps of the first "
    f"{SETTINGS['num_episodes']} episodes lies below {SETTINGS['most_loss']:g}, at the same ε.",
)


def cells(settings: Settings) -> list[Cell]:
    """Both policies at every order under both rules; greedy play has no second policy."""
    return [
        Cell(_cell_name(policy, rule, order), {"policy": policy, "order": order, **changes})
        for rule, changes in settings["rules"].items()
        for order in settings["orders"]
        for policy in (POLICIES if changes["epsilon"] > 0.0 else ("eps",))
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """The steps of every episode of one agent, or the episode in which it diverged."""
    from ezgreedy.kernels.sarsa_runs import Domain

    run = study.learned(Domain.MOUNTAIN_CAR_DENSE, settings, seed)
    return {"lengths": run["lengths"], "diverged_in": run["diverged_in"]}


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Judges both sentences under every reading."""
    results = results_by_cell(records)
    claims = [_claim_of_solving(settings, results), _claim_of_loss(settings, results)]
    return Summary(claims, _panels(settings, results))


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Steps to the goal over episodes, a panel for each order."""
    from ezgreedy.figures import curves, style

    figure = curves.learning_curves(summary.panels, shares_legend=True)
    for axis in figure.axes:
        axis.axvline(
            settings["most_episodes"] + 0.5, color=style.TEXT_COLOUR, linestyle=":", linewidth=1
        )
    return style.save(figure, directory / "steps")


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def episodes_to_solve(lengths: Sequence[int], settings: Settings) -> int | None:
    """The first episode, from 1, from which some episodes in a row are short on average."""
    row = settings["num_episodes_in_a_row"]
    means = np.convolve(lengths, np.ones(row) / row, mode="valid")
    short = np.flatnonzero(means < settings["num_steps_solved"])
    return int(short[0]) + 1 if len(short) else None


def _claim_of_solving(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    sides: dict[str, dict[str, Side]] = {rule: {} for rule in settings["rules"]}
    for rule in settings["rules"]:
        for order in settings["orders"]:
            counts = [
                None
                if entry["diverged_in"] is not None
                else episodes_to_solve(entry["lengths"], settings)
                for entry in results[_cell_name("eps", rule, order)]
            ]
            name = f"order {order}, {rule}"
            most = settings["most_episodes"]
            num_soon = sum(count is not None and count <= most for count in counts)
            share = share_interval(num_soon, len(counts))
            numbers[f"{name}: share solved in {most} episodes"] = share
            never = settings["num_episodes"]
            sorted_counts = sorted(never if count is None else count for count in counts)
            numbers[f"{name}: median episodes to solve"] = sorted_counts[len(counts) // 2]
            numbers[f"{name}: unsolved after {never} episodes"] = counts.count(None)
            sides[rule][name] = above(share, settings["least_share"])
    return Claim(
        SOLVED,
        sides["as printed"],
        numbers,
        fewest_seeds(results),
        controls=sides["greedy"],
        note="Runs that diverge count as unsolved.",
        key_numbers=names_with(numbers, "share solved"),
    )


def _claim_of_loss(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    rule = next(name for name, changes in settings["rules"].items() if changes["epsilon"] > 0.0)
    for order in settings["orders"]:
        steps = {
            policy: [
                float(np.mean(entry["lengths"]))
                for entry in results[_cell_name(policy, rule, order)]
            ]
            for policy in POLICIES
        }
        name = f"order {order}, {rule}"
        for policy, label in POLICIES.items():
            numbers[f"{name}: steps per episode, {label}"] = mean_interval(steps[policy])
        ratio = ratio_interval(steps["ez"], steps["eps"])
        numbers[f"{name}: ratio εz/ε"] = ratio
        readings[name] = below(ratio, settings["most_loss"])
    return Claim(
        LITTLE_LOSS,
        readings,
        numbers,
        fewest_seeds(results),
        key_numbers=names_with(numbers, "ratio"),
    )


def _panels(settings: Settings, results: Results) -> list[Panel]:
    episodes = list(range(1, settings["num_episodes"] + 1))
    looks = {
        ("as printed", "eps"): colours.EPS_COLOUR,
        ("as printed", "ez"): colours.EZ_COLOUR,
        ("greedy", "eps"): colours.OTHER_COLOURS[0],
    }
    limit = settings["num_steps_solved"]
    solved = Curve(f"solved: {limit} steps", [1, episodes[-1]], [limit, limit])
    panels = []
    for order in settings["orders"]:
        lines = []
        for (rule, policy), colour in looks.items():
            entries = results[_cell_name(policy, rule, order)]
            rows = [entry["lengths"] for entry in entries if entry["diverged_in"] is None]
            label = "greedy, γ = 1, α = 0.001" if rule == "greedy" else POLICIES[policy]
            if rows:
                lines.append(mean_curve(label, episodes, rows, colour))
        if lines:
            panels.append(
                Panel(
                    f"order {order}",
                    lines,
                    x_label="episode",
                    y_label="steps to the goal",
                    log_y=True,
                    references=[solved],
                    figure="steps",
                )
            )
    return panels


def _cell_name(policy: str, rule: str, order: int) -> str:
    return f"{policy}, {rule}, order {order}"


EXPERIMENT = Experiment(
    id="appendix-mountaincar-dense",
    title="Appendix: MountainCar with a dense reward",
    shows="in how many episodes the easy version of MountainCar is solved",
    settings=SETTINGS,
    quick={"orders": [3], "num_episodes": 25, "num_curve_points": 25},
    num_seeds=30,
    num_quick_seeds=5,
    num_thorough_seeds=100,
    statements=(SOLVED, LITTLE_LOSS),
    cost_seconds=15.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
