"""Definition 1: how many steps visit every state-action pair with probability 1/2?

The paper defines the cover time and wants option sets that keep it small on problems of interest;
it gives no numbers. These are numbers for pure exploration (ε = 1): corridors and DeepSea, where
actions keep leading further, and open rooms, where a long repeat ends at a wall. A seed is a block
of runs.
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
from ezgreedy.exploration.durations import DurationLaw, Fixed, Zeta
from ezgreedy.figures import colours
from ezgreedy.findings.claims import OURS, Claim, Number, Statement, Summary
from ezgreedy.findings.intervals import Interval, bootstrap_interval
from ezgreedy.findings.judging import Side, all_of, below
from ezgreedy.findings.panels import Curve, Panel
from ezgreedy.finite_mdp import FiniteMDP
from ezgreedy.requirements import FloatArray

SETTINGS: dict[str, Any] = {
    "corridor": [10, 20, 40, 80],
    "room": [4, 6, 10, 16, 23],
    "deep-sea": [3, 4, 5, 6, 7, 8],
    "runs_per_seed": 50,
    "horizon": 4_000_000,
    "mu": 2.0,
    "caps": [10_000, 100],  # Paper: 10,000, and 100 for Rainbow
    "bootstrap_seed": 0,
}

FAMILIES = {
    "corridor": ("corridor of n states", "states"),
    "room": ("open room of n × n states", "n"),
    "deep-sea": ("DeepSea of size n", "n"),
}
EPS = "ε-greedy"
PAPER_CAP = 10_000

_CRITERION = (
    "At the largest size of each family, at a cap of 10,000: the interval of the ratio of median "
    "cover times lies below 1. A cap of 100 is a control."
)
OPEN_ENDED = Statement(
    "Where actions lead on and on, εz-greedy's cover time is the shorter one.", OURS, _CRITERION
)
ROOMS = Statement(
    "In open rooms, too, εz-greedy's cover time is shorter than ε-greedy's.", OURS, _CRITERION
)


def cells(settings: Settings) -> list[Cell]:
    """Every size of every family, with ε-greedy and with εz-greedy at every cap."""
    return [
        Cell(
            f"{family} {size}, {policy}",
            {"family": family, "size": size, "policy": policy, "cap": cap},
        )
        for family in FAMILIES
        for size in settings[family]
        for policy, cap in _policies(settings).items()
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """Cover times of one block of runs; `horizon + 1` for runs that did not finish."""
    from ezgreedy.analysis.cover_time import cover_times
    from ezgreedy.analysis.process import ExplorationProcess

    mdp = _mdp(settings["family"], settings["size"])
    durations = _law(settings["cap"], settings["mu"])
    process = ExplorationProcess(mdp, durations=durations)
    found = cover_times(process, settings["runs_per_seed"], settings["horizon"], seed)
    assert found.times is not None
    return {"times": found.times.tolist()}


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Medians of every cell, and whether repeats shorten or lengthen the cover time."""
    rng = np.random.default_rng(settings["bootstrap_seed"])
    results = results_by_cell(records)
    times = _times(results)
    medians = {cell: bootstrap_interval(values, rng, _median) for cell, values in times.items()}
    claims = [
        _claim(
            OPEN_ENDED,
            settings,
            results,
            rng,
            ("corridor", "deep-sea"),
            note="The gain grows with size; in a tiny DeepSea there is nowhere to go on to, and "
            "ε-greedy is ahead.",
        ),
        _claim(
            ROOMS,
            settings,
            results,
            rng,
            ("room",),
            note="Long repeats stand still at a wall; the longer the cap, the worse. The paper "
            "names such waste among its limitations (iii) without measuring it.",
        ),
    ]
    return Summary(claims, [_panel(settings, medians, family) for family in FAMILIES])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Cover time against size, one panel for each family."""
    from ezgreedy.figures import curves, style

    return style.save(curves.learning_curves(summary.panels), directory / "cover_times")


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _panel(settings: Settings, medians: Mapping[str, Interval], family: str) -> Panel:
    """The curves of one family, a point for every size."""
    title, x_label = FAMILIES[family]
    in_order = colours.EPS_COLOUR, colours.EZ_COLOUR, *colours.OTHER_COLOURS
    lines = []
    for policy, colour in zip(_policies(settings), in_order, strict=False):
        points = [medians[f"{family} {size}, {policy}"] for size in settings[family]]
        mean, low, high = ([point[i] for point in points] for i in range(3))
        lines.append(Curve(policy, settings[family], mean, low, high, colour))
    return Panel(
        title,
        lines,
        x_label=x_label,
        y_label="cover time (steps)",
        log_y=True,
        figure="cover_times",
    )


def _times(results: Results) -> dict[str, FloatArray]:
    """The cover times of every cell, over all seeds."""
    return {
        cell: np.array([time for entry in entries for time in entry["times"]], dtype=np.float64)
        for cell, entries in results.items()
    }


def _claim(
    statement: Statement,
    settings: Settings,
    results: Results,
    rng: np.random.Generator,
    families: Sequence[str],
    *,
    note: str,
) -> Claim:
    numbers: dict[str, Number] = {}
    times = _times(results)
    policies = list(_policies(settings))[1:]
    parts: dict[str, list[Side]] = {policy: [] for policy in policies}
    for family in families:
        for size in settings[family]:
            eps = times[f"{family} {size}, {EPS}"]
            for policy in policies:
                ratio = _ratio_of_medians(times[f"{family} {size}, {policy}"], eps, rng)
                numbers[f"{family} {size}: {policy} / ε-greedy"] = ratio
                if size == settings[family][-1]:
                    parts[policy].append(below(ratio, 1.0))
            numbers[f"{family} {size}: {EPS}, median steps"] = bootstrap_interval(eps, rng, _median)
    sides = {policy: all_of(own) for policy, own in parts.items()}
    judged = _policy(PAPER_CAP) if _policy(PAPER_CAP) in sides else policies[0]
    return Claim(
        statement,
        {judged: sides.pop(judged)},
        numbers,
        fewest_seeds(results),
        controls=sides,
        note=f"{note} The paper defines cover times and gives none.",
        key_numbers=[
            f"{f} {settings[f][-1]}: εz-greedy, n ≤ {cap:,} / ε-greedy"
            for f in families
            for cap in settings["caps"]
        ],
    )


def _ratio_of_medians(above: FloatArray, below: FloatArray, rng: np.random.Generator) -> Interval:
    pairs = np.stack([above, below], axis=1)
    return bootstrap_interval(
        pairs, rng, lambda samples: np.median(samples[..., 0], 1) / np.median(samples[..., 1], 1)
    )


def _median(samples: FloatArray) -> FloatArray:
    return np.asarray(np.median(samples, axis=1))


def _policies(settings: Settings) -> dict[str, int]:
    """The duration cap of every policy by name; a cap of 1 is ε-greedy."""
    return {EPS: 1} | {_policy(cap): cap for cap in settings["caps"]}


def _policy(cap: int) -> str:
    return f"εz-greedy, n ≤ {cap:,}"


def _law(cap: int, mu: float) -> DurationLaw:
    return Fixed(1) if cap == 1 else Zeta(mu, cap)


def _mdp(family: str, size: int) -> FiniteMDP:
    from ezgreedy.envs.deep_sea import DeepSea
    from ezgreedy.envs.finite import finite_model
    from ezgreedy.envs.grid_world import GridWorld

    if family == "corridor":
        return _corridor(size)
    env = DeepSea(size) if family == "deep-sea" else GridWorld(size, (1, size // 2), goal=None)
    model = finite_model(env)
    return FiniteMDP(model.transitions(), model.start, model.terminal)


def _corridor(length: int) -> FiniteMDP:
    """Left and right between two walls, starting at the left one."""
    states = np.arange(length)
    transitions = np.zeros((length, 2, length))
    transitions[states, 0, np.maximum(states - 1, 0)] = 1.0
    transitions[states, 1, np.minimum(states + 1, length - 1)] = 1.0
    return FiniteMDP(transitions, np.eye(length)[0])


EXPERIMENT = Experiment(
    id="cover-times",
    title="Definition 1: cover times",
    shows="steps until every state-action pair was visited: corridors, rooms, DeepSea",
    settings=SETTINGS,
    quick={"corridor": [10, 20], "room": [4, 6], "deep-sea": [3, 5], "runs_per_seed": 20},
    num_seeds=20,
    statements=(OPEN_ENDED, ROOMS),
    cost_seconds=60.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
