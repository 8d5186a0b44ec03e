"""Which noise takes an agent everywhere? Held, pink, Ornstein–Uhlenbeck and white at equal power.

The paper repeats one of finitely many actions. In a box of actions the same idea has two forms: a
uniform action that is held, εz-greedy's literal translation, and noise that is drawn once and held.
Both are compared with the noises in use, without learning: noise is added to an action of zero and
clipped to the box. Before clipping, all have the standard deviation of a uniform action, 1/√3 of
half the box. First visits are counted as in the paper, in Gymnasium's MountainCarContinuous-v0 and
in dm_control's cartpole, swingup_sparse, and ball_in_cup, catch.

Noises share seeds, so that first states are the same.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ezgreedy.experiments.experiment import (
    Cell,
    Experiment,
    Record,
    Settings,
    fewest_seeds,
    results_by_cell,
)
from ezgreedy.experiments.readings import mean_curve
from ezgreedy.exploration.durations import Zeta
from ezgreedy.figures.colours import NOISE_COLOURS
from ezgreedy.findings.claims import (
    OURS,
    Claim,
    Number,
    Statement,
    Summary,
    Table,
    names_with,
)
from ezgreedy.findings.intervals import mean_interval, ratio_interval
from ezgreedy.findings.judging import Side, below
from ezgreedy.findings.maps import ColourScale, Maps
from ezgreedy.findings.panels import Panel
from ezgreedy.seeding import role_seed

if TYPE_CHECKING:
    from ezgreedy.analysis.box_walks import BoxPolicy
    from ezgreedy.analysis.environment_walks import Maker
    from ezgreedy.exploration.noise import ActionNoise

SETTINGS: dict[str, Any] = {
    "worlds": ["car", "pole", "ball"],
    # Paper: 5,000 steps in 12 × 12 cells for MountainCar, and 20 × 20 cells for CartPole. Physics
    # of MuJoCo is slower, so that trials there have two episodes of 1,000 steps.
    "num_steps": {"car": 5000, "pole": 2000, "ball": 2000},
    "num_bins": {"car": 12, "pole": 20, "ball": 20},
    "step_limits": {"car": 999, "pole": 1000, "ball": 1000},
    "scale": 1.0 / math.sqrt(3.0),
    "mu": 2.0,
    "cap": 10_000,  # Paper: all experiments but Rainbow's
    "short_cap": 16,  # FlashSAC holds noise for 1 to 16 steps, also with μ = 2
    "theta": 0.15,  # Ornstein–Uhlenbeck noise in DDPG
    "num_points": 40,  # of the curves
    "largest_ratio": 1.1,  # of held noise to pink noise
}
NOISES = {
    "white": "white noise",
    "ou": "Ornstein–Uhlenbeck noise",
    "pink": "pink noise",
    "held": "held noise",
    "held, at most 16": "held noise, at most 16 steps",
    "uniform": "held uniform actions",
}
_COLUMNS = ("white", "Ornstein–Uhlenbeck", "pink", "held", "held, at most 16", "held uniform")
WORLDS = {
    "car": "MountainCarContinuous-v0",
    "pole": "cartpole, swingup_sparse",
    "ball": "ball_in_cup, catch",
}
_AXES = {
    "car": ("position", "velocity"),
    "pole": ("angle, 0 is upright", "angular velocity"),
    "ball": ("angle, 0 is above", "distance from the cup"),
}

_RATIO = (
    "The interval, over seeds, of the ratio {} lies below {}. Every world is a reading. A cell or "
    "a reward that a trial never sees counts the trial's number of steps."
)
_VISITS = "{}/{} of the mean number of steps to the first visit, over all cells,"


def _sooner(noise: str) -> Statement:
    return Statement(
        f"At equal power, {NOISES[noise]} see{'' if noise == 'uniform' else 's'} all parts of a "
        "world sooner than white noise.",
        OURS,
        _RATIO.format(_VISITS.format(noise, "white"), 1),
    )


SOONER = {noise: _sooner(noise) for noise in ("uniform", "held", "pink", "ou")}
AS_SOON = Statement(
    "At equal power, held noise sees all parts of a world nearly as soon as pink noise.",
    OURS,
    _RATIO.format(_VISITS.format("held", "pink"), SETTINGS["largest_ratio"]),
)
PAID = Statement(
    "At equal power, held noise meets the first reward sooner than white noise.",
    OURS,
    _RATIO.format("held/white of the mean number of steps to the first reward above 0", 1),
)
STATEMENTS = (*SOONER.values(), AS_SOON, PAID)


def cells(settings: Settings) -> list[Cell]:
    """Every noise in every world."""
    return [
        Cell(_cell(world, noise), {"world": world, "noise": noise})
        for world in settings["worlds"]
        for noise in NOISES
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """One trial: its first visits, its first reward and the power of its actions."""
    from ezgreedy.analysis.bins import Bins
    from ezgreedy.analysis.box_walks import box_first_visits

    world = settings["world"]
    make = _maker(world)
    env = make()
    size = env.action_space.shape[0]  # type: ignore[index]
    bins = Bins.of(env.observation_space, settings["num_bins"][world])
    env.close()
    num_steps = settings["num_steps"][world]
    explore = explorer_of(settings, size, role_seed(seed, world))
    walks = box_first_visits(
        make, explore, num_steps, bins, max_episode_steps=settings["step_limits"][world]
    )
    first = walks.visits.first[0]
    seen = walks.visits.visits[0] > 0
    points = _points(num_steps, settings["num_points"])
    return {
        "first_visits": first.tolist(),
        "covered": [round(float((seen & (first <= step)).mean()), 6) for step in points],
        "first_reward": int(walks.first_rewards[0]),
        "power": round(float(walks.powers[0]), 6),
    }


def explorer_of(settings: Settings, size: int, seed: int) -> "ActionNoise | BoxPolicy":
    """The noise of the cell, or held uniform actions, for a single trial in a box [−1, 1]."""
    from ezgreedy.exploration import noise as noises
    from ezgreedy.exploration.held_actions import HeldActions

    name, scale = settings["noise"], settings["scale"]
    length = settings["step_limits"][settings["world"]]
    law = Zeta(settings["mu"], settings["cap"])
    short = Zeta(settings["mu"], settings["short_cap"])
    if name == "uniform":
        return HeldActions([-1.0] * size, [1.0] * size, 1.0, law, seed=seed)
    if name == "pink":
        return noises.ColouredNoise(size, scale, seed=seed, length=length)
    if name == "ou":
        return noises.OrnsteinUhlenbeck(size, scale, seed=seed, theta=settings["theta"])
    if name == "white":
        return noises.WhiteNoise(size, scale, seed=seed)
    return noises.HeldNoise(size, scale, law if name == "held" else short, seed=seed)


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """How the noises compare in every world, with curves and maps."""
    results = results_by_cell(records)
    worlds = settings["worlds"]
    claims = [
        *(_claim(worlds, results, SOONER[noise], noise, "white", 1.0) for noise in SOONER),
        _claim(worlds, results, AS_SOON, "held", "pink", settings["largest_ratio"]),
        _claim(worlds, results, PAID, "held", "white", 1.0),
    ]
    panels = [_panel(settings, results, world) for world in worlds]
    maps = [_maps(settings, results, world) for world in worlds]
    return Summary(claims, [*panels, *maps], tables=[_table(settings, results)])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Covered shares against steps for all worlds, and each world's maps."""
    from ezgreedy.figures import curves, heatmaps, style

    figure = curves.learning_curves(summary.panels, shares_legend=True)
    files = style.save(figure, directory / "coverage")
    for block in summary.maps:
        (rows,) = block.maps.values()
        figure = heatmaps.first_visit_maps(
            [[np.array(cells) for cells in rows]],
            row_labels=[""],
            column_labels=_COLUMNS,
            scale=block.scale,
            axis_labels=block.axis_labels,
        )
        files += style.save(figure, directory / block.figure)
    return files


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _maker(world: str) -> "Maker":
    """A function that makes the world, without a time limit of Gymnasium."""
    if world == "car":
        import gymnasium

        return lambda: gymnasium.make(WORLDS["car"], max_episode_steps=-1)
    from ezgreedy.experiments.beyond import control_suite

    return {"pole": control_suite.swing_up, "ball": control_suite.catch}[world]


def _points(num_steps: int, num_points: int) -> list[int]:
    return [num_steps * (point + 1) // num_points for point in range(num_points)]


def _cell(world: str, noise: str) -> str:
    return f"{world}, {noise}"


def _means(results: Results, world: str, noise: str) -> list[float]:
    """Each seed's mean first visit over all cells."""
    return [float(np.mean(result["first_visits"])) for result in results[_cell(world, noise)]]


def _rewards(results: Results, world: str, noise: str) -> list[int]:
    """Each seed's first reward."""
    return [result["first_reward"] for result in results[_cell(world, noise)]]


def _claim(
    worlds: Sequence[str],
    results: Results,
    statement: Statement,
    sooner: str,
    later: str,
    bound: float,
) -> Claim:
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    measure = _rewards if statement is PAID else _means
    what = "first reward" if statement is PAID else "first visit"
    for world in worlds:
        ours, theirs = (measure(results, world, noise) for noise in (sooner, later))
        ratio = ratio_interval(ours, theirs)
        title = WORLDS[world]
        numbers[f"{title}: ratio {sooner}/{later}"] = ratio
        numbers[f"{title}: {what}, {NOISES[sooner]}"] = mean_interval(ours)
        numbers[f"{title}: {what}, {NOISES[later]}"] = mean_interval(theirs)
        readings[title] = below(ratio, bound)
    return Claim(
        statement,
        readings,
        numbers,
        fewest_seeds(results),
        note="Numbers of steps; t intervals over seeds, which the noises share.",
        key_numbers=names_with(numbers, ": ratio "),
    )


def _panel(settings: Settings, results: Results, world: str) -> Panel:
    steps = _points(settings["num_steps"][world], settings["num_points"])
    curves = [
        mean_curve(
            label,
            steps,
            [result["covered"] for result in results[_cell(world, noise)]],
            NOISE_COLOURS[noise],
        )
        for noise, label in NOISES.items()
    ]
    return Panel(
        WORLDS[world], curves, x_label="steps", y_label="share of cells visited", figure="coverage"
    )


def _maps(settings: Settings, results: Results, world: str) -> Maps:
    """Mean first visits of every cell: the first coordinate to the right, the second upwards."""
    num_bins = settings["num_bins"][world]
    maps = []
    for noise in NOISES:
        rows = [result["first_visits"] for result in results[_cell(world, noise)]]
        maps.append(np.mean(rows, axis=0).reshape(num_bins, num_bins).T[::-1])
    return Maps(
        f"{WORLDS[world]}: first visits",
        ("noise", list(NOISES.values())),
        {"first visits": maps},
        ColourScale(settings["num_steps"][world]),
        _AXES[world],
        f"first_visits_{world}",
    )


def _table(settings: Settings, results: Results) -> Table:
    rows: list[list[Number]] = []
    for world in settings["worlds"]:
        for noise, label in NOISES.items():
            own = results[_cell(world, noise)]
            num_steps = settings["num_steps"][world]
            paid = sum(result["first_reward"] < num_steps for result in own)
            rows.append(
                [
                    WORLDS[world],
                    label,
                    mean_interval([result["covered"][-1] for result in own]),
                    mean_interval(_rewards(results, world, noise)),
                    f"{paid} of {len(own)}",
                    round(float(np.sqrt(np.mean([result["power"] for result in own]))), 3),
                ]
            )
    return Table(
        "What every noise reached",
        ["world", "noise", "cells visited", "first reward", "trials paid", "executed power"],
        rows,
        "Means over seeds with t intervals. A trial that is never paid counts its number of steps. "
        "Executed power is the root mean square of the clipped actions; before clipping it is "
        f"{SETTINGS['scale']:.3f} for all.",
    )


EXPERIMENT = Experiment(
    id="beyond-continuous",
    title="Beyond the paper: continuous actions",
    shows="how soon held, pink, Ornstein–Uhlenbeck and white noise see three continuous worlds",
    settings=SETTINGS,
    quick={
        "num_steps": {"car": 500, "pole": 100, "ball": 100},
        "num_bins": {"car": 12, "pole": 12, "ball": 12},
    },
    num_seeds=30,
    statements=STATEMENTS,
    cost_seconds=180.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    extra="oracles",
    modules=("dm_control",),
)
