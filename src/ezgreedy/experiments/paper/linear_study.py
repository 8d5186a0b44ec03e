"""What do the two experiments with linear function approximation share?

Learning curves of two policies in one of the linear domains, first-visit maps of both under pure
exploration, and the paper's sentences about them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ezgreedy.experiments.experiment import Settings, fewest_seeds
from ezgreedy.experiments.readings import POLICIES
from ezgreedy.exploration.durations import DurationLaw, Fixed, Zeta
from ezgreedy.figures import colours
from ezgreedy.findings import intervals
from ezgreedy.findings.claims import AS_STATED, Claim, Number, Statement, names_with
from ezgreedy.findings.intervals import (
    Interval,
    mean_interval,
    paired_difference_interval,
    ratio_interval,
    share_interval,
)
from ezgreedy.findings.judging import all_of, below
from ezgreedy.findings.maps import ColourScale, Maps
from ezgreedy.findings.panels import Curve, Panel
from ezgreedy.requirements import FloatArray

if TYPE_CHECKING:
    from ezgreedy.kernels.policies import Exploration
    from ezgreedy.kernels.pure_exploration import Axis
    from ezgreedy.kernels.sarsa_runs import Domain

Results = Mapping[str, Sequence[Mapping[str, Any]]]


def durations_of(settings: Settings) -> DurationLaw:
    """The policy's law: zeta, or always one step."""
    return Zeta(settings["mu"], settings["cap"]) if settings["policy"] == "ez" else Fixed(1)


def exploration_of(settings: Settings, epsilon: float) -> "Exploration":
    """The policy at this ε, as kernels take it."""
    from ezgreedy.kernels.policies import exploration

    return exploration(epsilon, durations_of(settings), settings["carries_over_episodes"])


def block_of(settings: Settings) -> int:
    """The number of episodes that a result adds up; single episodes would make results large."""
    return max(1, settings["num_episodes"] // settings["num_curve_points"])


def learned(domain: "Domain", settings: Settings, seed: int) -> dict[str, Any]:
    """Sums of one agent's returns and episode lengths over blocks of episodes.

    If the agent diverged, `diverged_in` is the episode, and its last block may be cut short.
    """
    from ezgreedy.agents.features import FourierBasis
    from ezgreedy.agents.sarsa_lambda import SarsaLambda, SarsaSettings
    from ezgreedy.kernels.sarsa_runs import NUM_ACTIONS, Episodes, learn_by_sarsa

    ranges = [(low, high) for low, high in settings["ranges"]]
    agent = SarsaLambda(
        FourierBasis(settings["order"], ranges, settings["coupling"]),
        NUM_ACTIONS,
        SarsaSettings(
            step_size=settings["step_size"],
            discount=settings["discount"],
            decay=settings["decay"],
            scales_step_sizes=settings["scales_step_sizes"],
            bounds_step_size=settings["bounds_step_size"],
            initial_variance=settings["initial_variance"],
            ties=settings["ties"],
            precision=settings["precision"],
        ),
        seed,
    )
    episodes = Episodes(
        settings["num_episodes"], settings["step_limit"], settings["bootstraps_at_limit"]
    )
    run = learn_by_sarsa(agent, domain, exploration_of(settings, settings["epsilon"]), episodes)
    block = block_of(settings)
    return {
        "returns": _block_sums(run.returns, block),
        "lengths": _block_sums(run.lengths, block),
        "diverged_in": run.diverged_in,
        "final_step_size": agent.step_size,
    }


def _block_sums(values: ArrayLike, block: int) -> list[int]:
    """Sums of successive blocks; rewards of these domains are whole numbers."""
    row = np.asarray(values)
    sums: list[int] = np.add.reduceat(row, range(0, len(row), block)).astype(int).tolist()
    return sums if len(row) else []


def walked(
    domain: "Domain", settings: Settings, axes: tuple["Axis", "Axis"], seed: int
) -> dict[str, Any]:
    """A seed's share of the trials of a first-visit map; a trial is a lane of seed 0.

    Trials are assigned to the first seeds until there are `num_trials`.
    """
    from ezgreedy.kernels.pure_exploration import binned_first_visits

    count = settings["num_trials_per_seed"]
    lanes = range(settings["num_trials"])[seed * count : (seed + 1) * count]
    if not lanes:
        return {"map": None, "means": [], "rewarded": [], "never": []}
    visits = binned_first_visits(
        domain, exploration_of(settings, 1.0), axes, settings["num_walk_steps"], lanes, 0
    )
    return {
        "map": visits.times.mean(axis=0).tolist(),
        "means": visits.times.mean(axis=(1, 2)).tolist(),
        "rewarded": visits.rewarded.astype(int).tolist(),
        "never": (visits.times == settings["num_walk_steps"]).mean(axis=(1, 2)).tolist(),
    }


def finished(
    entries: Sequence[Mapping[str, Any]], settings: Settings, measure: str = "returns"
) -> FloatArray:
    """The mean of a measure in every block of the runs that did not diverge, [runs, blocks]."""
    sums = [entry[measure] for entry in entries if entry[measure] and entry["diverged_in"] is None]
    return np.array(sums, dtype=np.float64) / _widths(settings) if sums else np.empty((0, 0))


def mean_of(blocks: FloatArray, settings: Settings, num_episodes: int | None = None) -> FloatArray:
    """The mean over a run's first episodes, or all of them, from means of blocks, [runs]."""
    widths = _widths(settings)
    if not blocks.size:
        return np.empty(0)
    if num_episodes is not None:
        widths = widths[: num_episodes // block_of(settings)]
    return blocks[:, : len(widths)] @ widths / widths.sum()


def _widths(settings: Settings) -> FloatArray:
    """The number of episodes of every block, [blocks]; the last may be shorter."""
    ends = [*range(0, settings["num_episodes"], block_of(settings)), settings["num_episodes"]]
    return np.diff(ends).astype(np.float64)


def learning_panel(
    title: str,
    entries: Mapping[str, Sequence[Mapping[str, Any]]],
    settings: Settings,
    measure: str,
    *,
    y_label: str,
    figure: str,
) -> Panel:
    """The mean over runs in every block of episodes, for every policy that has a finished run.

    Args:
        title: heading.
        entries: results of each policy's runs.
        settings: settings of the runs.
        measure: the measure to show.
        y_label: name of the measure.
        figure: name of the figure that draws it.
    """
    lines = []
    episodes = np.cumsum(_widths(settings))
    for policy, label in POLICIES.items():
        runs = finished(entries[policy], settings, measure)
        if len(runs):
            points = [mean_interval(column) for column in runs.T]
            mean, low, high = ([point[i] for point in points] for i in range(3))
            colour = colours.POLICY_COLOURS[policy]
            lines.append(Curve(label, episodes, mean, low, high, colour))
    return Panel(title, lines, x_label="episode", y_label=y_label, figure=figure)


def save_panels(panels: Sequence[Panel], path: Path) -> list[Path]:
    """Saves learning curves, panels side by side."""
    from ezgreedy.figures import curves, style

    return style.save(curves.learning_curves(panels), path)


def visit_maps(
    title: str,
    entries: Sequence[Sequence[Mapping[str, Any]]],
    axis_labels: tuple[str, str],
    num_steps: int,
    figure: str,
) -> Maps:
    """First-visit maps of ε- and εz-greedy side by side; the vertical axis points up.

    Args:
        title: heading.
        entries: results of both policies' trials.
        axis_labels: labels of the horizontal and the vertical axis.
        num_steps: steps of a trial.
        figure: name of the figure that draws them.
    """
    maps = {
        label: [np.array(mean_map(own))[::-1]]
        for label, own in zip(POLICIES.values(), entries, strict=True)
    }
    return Maps(title, ("ε", [1.0]), maps, ColourScale(num_steps), axis_labels, figure)


def save_maps(block: Maps, directory: Path) -> list[Path]:
    """Saves first-visit maps side by side."""
    from ezgreedy.figures import heatmaps, style

    figure = heatmaps.first_visit_maps(
        [[np.array(cells) for (cells,) in block.maps.values()]],
        row_labels=[""],
        column_labels=list(block.maps),
        scale=block.scale,
        axis_labels=block.axis_labels,
    )
    return style.save(figure, directory / block.figure)


def mean_map(entries: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """The mean map of all trials, as JSON values."""
    maps = [entry["map"] for entry in entries if entry["map"] is not None]
    return list(np.mean(maps, axis=0).round(1).tolist())


def trials(entries: Sequence[Mapping[str, Any]], measure: str) -> list[float]:
    """One measure of every single trial, over all seeds."""
    return [float(value) for entry in entries for value in entry[measure]]


def difference_interval(above: FloatArray, below: FloatArray) -> Interval:
    """mean(above) − mean(below), paired by seed; Welch's interval if some runs diverged."""
    if len(above) == len(below):
        return paired_difference_interval(above, below)
    return intervals.difference_interval(above, below)


def coverage_statement(place: str, source: str) -> Statement:
    """That "coverage is significantly better" in a domain, where the paper says so."""
    return Statement(
        f"{place}: εz-greedy gives significantly better coverage of the state space than ε-greedy "
        "under pure exploration (ε = 1).",
        source,
        "Mean number of steps to the first visit over all bins, where a bin that is never visited "
        "counts as the number of steps, as in the paper: the interval of the ratio εz/ε lies below "
        "1 in every map.",
    )


def coverage_claim(
    statement: Statement,
    results: Results,
    cells: Mapping[str, tuple[str, str]],
) -> Claim:
    """Judges coverage by the mean first-visit time over all bins.

    Args:
        statement: what `coverage_statement` gave.
        results: results of all cells.
        cells: for every map, the names of its ε- and its εz-greedy cell.
    """
    numbers: dict[str, Number] = {}
    is_better = []
    for name, (eps, ez) in cells.items():
        for policy, cell in zip(POLICIES, (eps, ez), strict=True):
            label = f"{name}: {{}}, {POLICIES[policy]}"
            numbers[label.format("mean first visit")] = mean_interval(
                trials(results[cell], "means"),
            )
            numbers[label.format("share of bins never visited in a trial")] = mean_interval(
                trials(results[cell], "never"),
            )
            rewarded = trials(results[cell], "rewarded")
            numbers[label.format("share of trials that see a reward")] = share_interval(
                int(sum(rewarded)), len(rewarded)
            )
        ratio = ratio_interval(trials(results[ez], "means"), trials(results[eps], "means"))
        numbers[f"{name}: ratio εz/ε of mean first visits"] = ratio
        is_better.append(below(ratio, 1.0))
    return Claim(
        statement,
        {AS_STATED: all_of(is_better)},
        numbers,
        fewest_seeds(results),
        key_numbers=names_with(numbers, "ratio εz/ε"),
    )
