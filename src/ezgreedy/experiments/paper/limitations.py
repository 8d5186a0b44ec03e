"""Section 6: does εz-greedy under-perform where the paper expects it to?

The paper names a GridWorld with mines, a maze that changes direction every few steps, and action
spaces in which many actions have the same effect, and shows none of them. Here all three are run
with GridWorld's own settings, from none of the obstacle to a lot of it. Maps are drawn anew for
each seed and shared by the policies. Beside learning, the expected number of steps to the goal
under pure exploration (ε = 1) is computed exactly for every map.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
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
from ezgreedy.experiments.readings import (
    EQUAL_BUDGET,
    EZ_SETTINGS,
    POLICIES,
    POLICIES_AND_CONTROL,
    interval_curve,
    law_of,
    policy_of,
)
from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.figures import colours
from ezgreedy.findings.claims import AS_STATED, Claim, Number, Statement, Summary
from ezgreedy.findings.intervals import (
    Interval,
    geometric_ratio_interval,
    mean_interval,
    paired_difference_interval,
)
from ezgreedy.findings.judging import Side, all_of, below
from ezgreedy.findings.panels import Panel
from ezgreedy.requirements import FloatArray

if TYPE_CHECKING:
    from ezgreedy.envs.grid_map import GridMap

# For every kind of world: its title, the name of its levels, and how a level reads.
WORLDS = {
    "mines": ("mines that end the episode", "share of cells with a mine", "{:.0%} mines"),
    "maze": ("a maze of 48 steps that turns", "steps between turns", "a turn every {} steps"),
    "copies": ("several actions that go up", "further actions that go up", "{} further actions"),
}

SETTINGS: dict[str, Any] = {
    **EZ_SETTINGS,
    # Paper: appendix, GridWorld
    "step_size": 0.1,
    "epsilon": 0.1,
    "step_limit": 1000,
    "discount": 0.99,
    "ties": "random",
    "num_episodes": 2000,
    "num_early_episodes": 100,
    "mines": [0.0, 0.01, 0.02, 0.05, 0.1],
    "maze": [2, 3, 4, 6, 12, 24, 48],
    "maze_length": 48,
    "copies": [0, 1, 4, 12],
    # Levels that are controls: there is none of the obstacle, or little.
    "controls": {"mines": [0.0], "maze": [12, 24, 48], "copies": [0]},
}

_EXPECTED = "paper, Section 6, limitation {}"
_CRITERION = (
    "Q-learning with the settings of GridWorld: the interval of the difference εz − ε of the mean "
    "return over all {:,} episodes lies below 0, over seeds whose maps both policies share. Where "
    "no run of either finds the goal, nothing is decided. {} An ε at which εz-greedy takes as many "
    "exploratory steps as ε-greedy is a control."
)


def _under_performs(where: str, limitation: str, levels: str) -> Statement:
    return Statement(
        f"{where}, εz-greedy significantly under-performs ε-greedy.",
        _EXPECTED.format(limitation),
        _CRITERION.format(SETTINGS["num_episodes"], levels),
    )


UNDER_PERFORMS = {
    "mines": _under_performs(
        "In a GridWorld with many obstacles that immediately end the episode (mines)",
        "(iii)",
        "How many is left open: mines in 1, 2, 5 and 10 % of the cells are readings; none are a "
        "control.",
    ),
    "maze": _under_performs(
        "In a maze that changes direction every few steps",
        "(iii)",
        "A few is left open: 2, 3, 4 and 6 steps are readings; 12, 24 and 48 of the 48 steps are "
        "controls.",
    ),
    "copies": _under_performs(
        "Where many actions have the same effect",
        "(ii)",
        "Many is left open: 1, 4 and 12 further actions that go up are readings; none are a "
        "control.",
    ),
}
DRIFT = Statement(
    "Where many actions have the same effect, uniform action sampling produces biased drift "
    "through the MDP.",
    _EXPECTED.format("(ii)"),
    "The exact expected number of steps to the goal under pure exploration (ε = 1) with εz-greedy "
    "is larger with further actions that go up than without, at every number of them.",
)
STATEMENTS = (*UNDER_PERFORMS.values(), DRIFT)


def cells(settings: Settings) -> list[Cell]:
    """Every policy in every world at every level."""
    return [
        Cell(_cell_name(policy, world, level), {"policy": policy, "world": world, "level": level})
        for world in WORLDS
        for level in settings[world]
        for policy in POLICIES_AND_CONTROL
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """Returns of one training run, and the exact steps to the goal of its map at ε = 1."""
    from ezgreedy.kernels.q_learning_runs import Budget, finite_task, rule, run_finite

    policy = policy_of(settings, settings["epsilon"])
    how = rule(settings["step_size"], settings["discount"], ties=settings["ties"])
    world, level, length = settings["world"], settings["level"], settings["maze_length"]
    drawn = 0 if world == "copies" else seed  # the seed of the map
    task = finite_task(_world(world, level, length, drawn), settings["step_limit"])
    run = run_finite(seed, task, policy, how, Budget(settings["num_episodes"]))
    early = settings["num_early_episodes"]
    return {
        "all": float(run.returns.mean()),
        "early": float(run.returns[:early].mean()),
        "steps": round(float(run.lengths.mean()), 3),
        "steps_to_goal": None
        if settings["policy"] == EQUAL_BUDGET
        else _steps_to_goal(world, level, length, drawn, law_of(settings)),
    }


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Judges every world; drift is judged from exact numbers."""
    results = results_by_cell(records)
    claims = [_claim(settings, results, world) for world in WORLDS]
    claims.append(_claim_of_drift(settings, results))
    blocks = [
        *(_learning_panel(settings, results, world) for world in WORLDS),
        *(_exact_panel(settings, results, world) for world in WORLDS),
    ]
    return Summary(claims, blocks)


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """A column for each world: learning above, exact first visits below."""
    from ezgreedy.figures import style
    from ezgreedy.figures.curves import draw_panel

    with style.voice():
        figure = style.new_figure(3.7 * len(WORLDS) + 0.4, 5.8)
        axes = figure.subplots(2, len(WORLDS))
        for axis, panel in zip(axes.flat, summary.panels, strict=True):
            draw_panel(axis, panel, has_legend=axis is axes[0, 0])
            for line in axis.lines:
                line.set(marker="o", markersize=3.5)
        for axis in axes[:, list(WORLDS).index("maze")]:
            axis.set_xticks(settings["maze"], [str(level) for level in settings["maze"]])
            axis.set_xticks([], minor=True)
    return style.save(figure, directory / "limitations")


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _claim(settings: Settings, results: Results, world: str) -> Claim:
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    controls: dict[str, Side] = {}
    for level in settings[world]:
        name = WORLDS[world][2].format(level)
        runs = {
            policy: _samples(results, policy, world, level, "all")
            for policy in POLICIES_AND_CONTROL
        }
        for policy, label in POLICIES_AND_CONTROL.items():
            numbers[f"{name}: return, {label}"] = mean_interval(runs[policy])
        gain = paired_difference_interval(runs["ez"], runs["eps"])
        numbers[f"{name}: εz − ε"] = gain
        matched = paired_difference_interval(runs[EQUAL_BUDGET], runs["eps"])
        numbers[f"{name}: εz − ε, equal budget"] = matched
        if level in settings["controls"][world]:
            controls[name] = below(gain)
        else:
            readings[name] = below(gain)
            controls[f"{name}, equal budget"] = below(matched)
        ez, eps = (_samples(results, p, world, level, "steps_to_goal") for p in ("ez", "eps"))
        name += ": exact steps to the goal at ε = 1, ratio εz/ε"
        numbers[name] = geometric_ratio_interval(ez, eps)
    return Claim(
        UNDER_PERFORMS[world],
        readings,
        numbers,
        fewest_seeds(results),
        controls=controls,
        note="The paper expects this and shows no results.",
        key_numbers=[f"{name}: εz − ε" for name in readings][:3],
    )


def _claim_of_drift(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    steps = {
        (policy, level): float(_samples(results, policy, "copies", level, "steps_to_goal")[0])
        for policy in POLICIES
        for level in settings["copies"]
    }
    least = min(settings["copies"])
    parts: list[Side] = []
    for (policy, level), count in steps.items():
        name = f"{WORLDS['copies'][2].format(level)}: steps, {POLICIES[policy]}"
        numbers[name] = float(f"{count:.6g}")
        if policy == "ez" and level > least:
            parts.append("holds" if count > steps["ez", least] else "contradicted")
    return Claim(
        DRIFT,
        {AS_STATED: all_of(parts)},
        numbers,
        fewest_seeds(results),
        note="Exact numbers; ε-greedy's are there for comparison.",
    )


def _learning_panel(settings: Settings, results: Results, world: str) -> Panel:
    """The mean return at every level."""
    title, x_label, _ = WORLDS[world]
    lines = []
    for policy, label in POLICIES_AND_CONTROL.items():
        points = [
            mean_interval(_samples(results, policy, world, level, "all"))
            for level in settings[world]
        ]
        lines.append(interval_curve(label, settings[world], points, colours.POLICY_COLOURS[policy]))
    return Panel(
        title,
        lines,
        x_label=x_label,
        y_label="mean return",
        log_x=world == "maze",
        figure="limitations",
    )


def _exact_panel(settings: Settings, results: Results, world: str) -> Panel:
    """Expected steps to the goal at ε = 1: geometric means over maps."""
    _, x_label, _ = WORLDS[world]
    lines = []
    for policy, label in POLICIES.items():
        points = [
            _geometric(_samples(results, policy, world, level, "steps_to_goal"))
            for level in settings[world]
        ]
        lines.append(interval_curve(label, settings[world], points, colours.POLICY_COLOURS[policy]))
    return Panel(
        "pure exploration",
        lines,
        x_label=x_label,
        y_label="expected steps to the goal",
        log_x=world == "maze",
        log_y=True,
        figure="limitations",
    )


def _samples(results: Results, policy: str, world: str, level: float, measure: str) -> FloatArray:
    return np.array([entry[measure] for entry in results[_cell_name(policy, world, level)]])


def _geometric(values: FloatArray) -> Interval:
    """The geometric mean of positive numbers, with its interval."""
    return geometric_ratio_interval(values, np.ones_like(values))


def _world(world: str, level: float, maze_length: int, seed: int) -> "GridMap":
    from ezgreedy.envs import obstacle_maps

    if world == "mines":
        return obstacle_maps.mine_field(level, seed)
    if world == "maze":
        return obstacle_maps.turning_maze(int(level), maze_length, seed)
    return obstacle_maps.repeated_actions(int(level), "up")


@lru_cache(maxsize=64)
def _steps_to_goal(
    world: str, level: float, maze_length: int, seed: int, law: DurationLaw
) -> float:
    """The exact expected number of steps to the goal under pure exploration."""
    from ezgreedy.analysis.exact import expected_first_visit
    from ezgreedy.analysis.process import ExplorationProcess
    from ezgreedy.envs.finite import finite_model
    from ezgreedy.envs.grid_map import END
    from ezgreedy.finite_mdp import FiniteMDP

    env = _world(world, level, maze_length, seed)
    model = finite_model(env)
    mdp = FiniteMDP(model.transitions(), model.start, model.terminal)
    goal = "".join(env.rows).index(END)
    return float(expected_first_visit(ExplorationProcess(mdp, durations=law), goal))


def _cell_name(policy: str, world: str, level: float) -> str:
    return f"{policy}, {world} {level:g}"


EXPERIMENT = Experiment(
    id="limitations",
    title="Section 6: mines, turning mazes and equal actions",
    shows="whether εz-greedy under-performs where the paper expects it to",
    settings=SETTINGS,
    quick={"num_episodes": 200, "mines": [0.0, 0.1], "maze": [3, 48], "copies": [0, 4]},
    num_seeds=30,
    num_quick_seeds=5,
    num_thorough_seeds=100,
    statements=STATEMENTS,
    cost_seconds=60.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
