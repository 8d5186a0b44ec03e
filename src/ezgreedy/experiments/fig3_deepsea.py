"""Figure 3a: how many episodes does learning DeepSea take, and when is each cell first visited?

Q-learning with the paper's settings over a range of sizes N. Two choices that the paper leaves open
decide the answer: whether every step costs, as its appendix says, or only moves to the right, as in
bsuite; and whether options survive the end of an episode. All are run. A run has learned after the
first episode that leaves a greedy policy leading to the treasure.
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
from ezgreedy.experiments.readings import (
    EZ_SETTINGS,
    POLICIES,
    binned,
    mean_curve,
    middles,
    policy_of,
)
from ezgreedy.figures import colours
from ezgreedy.findings.claims import Claim, Number, Summary, names_with, verdict_of
from ezgreedy.findings.intervals import Interval, mean_interval, ratio_interval
from ezgreedy.findings.maps import ColourScale
from ezgreedy.findings.panels import Curve, Panel
from ezgreedy.requirements import FloatArray

READINGS: dict[str, dict[str, Any]] = {
    "cost on right": {"cost_on": "right", "carries_over_episodes": False},
    "cost on right, options carry over": {"cost_on": "right", "carries_over_episodes": True},
    "cost on every step": {"cost_on": "step", "carries_over_episodes": False},
}
DEFAULT_READING = "cost on right"

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
    "num_episodes": 500_000,
    "curve_size": 20,
    "num_curve_episodes": 40_000,
    "num_bins": 80,
    "walk_size": 20,
    "num_walk_episodes": 500_000,  # Paper: 500,000 · N steps
    "bootstrap_seed": 0,
}

# εz-greedy learns sooner at a size if it needs at most this share of ε-greedy's episodes.
_SOONER = 0.5

# Growth with an exponent of N up to this counts as a power law, not as exponential.
_LARGEST_POWER = 4.5
_REPEATS = 2000

_TICKS = (3, 5, 10, 20, 50)


def cells(settings: Settings) -> list[Cell]:
    """Learning at every size under every reading, curves of one size, and walks."""
    learning = [
        Cell(
            _cell_name(policy, reading, size),
            {"kind": "learning", "policy": policy, "size": size, **changes},
        )
        for reading, changes in READINGS.items()
        for policy in POLICIES
        for size in _sizes(settings, policy, reading)
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
            "first_visits": first.tolist(),
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
            "curve": binned(run.returns, settings["num_bins"]),
            "late": float(run.returns[-late:].mean()),
        }
    return result


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Judges learning under every reading, returns, and coverage."""
    results = results_by_cell(records)
    rng = np.random.default_rng(settings["bootstrap_seed"])
    claims = [
        _claim_of_learning(settings, results, rng),
        _claim_of_growth(settings, results, rng),
        _claim_of_returns(settings, results, rng),
        _claim_of_coverage(results, rng),
    ]
    return Summary(
        claims,
        [
            *(_learning_panel(settings, results, reading) for reading in READINGS),
            _returns_panel(settings, results, rng),
        ],
        {"first_visits": {policy: _mean_map(results[f"walk {policy}"]) for policy in POLICIES}},
    )


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Episodes to learn against N for each reading, the curves, and the maps."""
    from ezgreedy.figures import curves, heatmaps, style

    *learning, returns_panel = summary.panels
    learned = curves.learning_curves(learning)
    for axis in learned.axes:
        axis.axhline(settings["num_episodes"], color=style.TEXT_COLOUR, linestyle=":", linewidth=1)
        axis.set_ylim(3, 4 * settings["num_episodes"])
        axis.set_xticks(_TICKS, [str(size) for size in _TICKS])
        axis.set_xticks([], minor=True)
        axis.set_xlim(_TICKS[0] * 0.9, _TICKS[-1] * 1.1)
        axis.text(
            _TICKS[-1], 1.15 * settings["num_episodes"], "not learned", fontsize=8, ha="right"
        )
    returns = curves.learning_curves([returns_panel])
    maps = heatmaps.first_visit_maps(
        [[np.array(summary.data["first_visits"][policy], dtype=np.float64) for policy in POLICIES]],
        row_labels=(f"ε = 1, N = {settings['walk_size']}",),
        column_labels=tuple(POLICIES.values()),
        # Paper: log(E + 1) with levels in [0, 16]
        scale=ColourScale(float(np.exp(16)), is_log=True),
    )
    return [
        *style.save(learned, directory / "episodes_to_learn"),
        *style.save(returns, directory / "returns"),
        *style.save(maps, directory / "first_visits"),
    ]


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _learning_panel(settings: Settings, results: Results, reading: str) -> Panel:
    """Medians over seeds with the range of all seeds; unlearned runs count as the limit."""
    lines = []
    for policy, label in POLICIES.items():
        # ε-greedy has no options to carry over: its curve is that of the default reading.
        source = reading if _sizes(settings, policy, reading) else DEFAULT_READING
        sizes = _sizes(settings, policy, source)
        cells = [results[_cell_name(policy, source, size)] for size in sizes]
        counts = np.array([_censored([e["learned"] for e in cell], settings) for cell in cells])
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
    )


def _returns_panel(settings: Settings, results: Results, rng: np.random.Generator) -> Panel:
    """Average return over episodes at one size."""
    episodes = middles(settings["num_curve_episodes"], settings["num_bins"])
    return Panel(
        f"N = {settings['curve_size']}",
        [
            mean_curve(
                label,
                episodes,
                [entry["curve"] for entry in results[f"curve {policy}"]],
                rng,
                colours.POLICY_COLOURS[policy],
            )
            for policy, label in POLICIES.items()
        ],
        x_label="episode",
        y_label="average return",
    )


def _claim_of_learning(settings: Settings, results: Results, rng: np.random.Generator) -> Claim:
    numbers: dict[str, Number] = {}
    holds = []
    for reading in READINGS:
        source = reading if _sizes(settings, "eps", reading) else DEFAULT_READING
        shared = set(_sizes(settings, "eps", source)) & set(_sizes(settings, "ez", reading))
        for size in sorted(size for size in shared if size >= 10):
            counts = {
                "eps": results[_cell_name("eps", source, size)],
                "ez": results[_cell_name("ez", reading, size)],
            }
            found: dict[str, Interval] = {}
            for policy, entries in counts.items():
                learned = [entry["learned"] for entry in entries]
                name = f"{reading}, N = {size}: {POLICIES[policy]}"
                found[policy] = mean_interval(_censored(learned, settings), rng)
                numbers[f"{name}, episodes"] = found[policy]
                num_learned = sum(count is not None for count in learned)
                numbers[f"{name}, learned"] = f"{num_learned} of {len(learned)}"
            holds.append(found["ez"].high < _SOONER * found["eps"].low)
    return Claim(
        "In DeepSea εz-greedy provides significantly improved performance.",
        verdict_of(holds),
        numbers,
        "Mean episodes until learned, where a run that does not learn counts as "
        f"{settings['num_episodes']:,}; it holds at a size if εz-greedy's interval lies below half "
        "of ε-greedy's. If only moves to the right cost, as in bsuite, εz-greedy learns and "
        "ε-greedy does not. If every step costs, as the appendix says, untried actions look better "
        "than tried ones, both policies learn equally soon, and there is no advantage.",
        key_numbers=names_with(numbers, "right, N = 20: ε", "step, N = 20: ε"),
        source="paper, Section 5.1 and Figure 3a",
    )


def _claim_of_growth(settings: Settings, results: Results, rng: np.random.Generator) -> Claim:
    numbers: dict[str, Number] = {}
    eps_sizes = [
        size
        for size in _sizes(settings, "eps", DEFAULT_READING)
        if all(entry["learned"] for entry in results[_cell_name("eps", DEFAULT_READING, size)])
    ]
    counts = _counts(settings, results, "eps", DEFAULT_READING, eps_sizes)
    rate = _slope(np.array(eps_sizes, dtype=np.float64), counts, rng)
    factor = Interval(*np.exp([rate.value, rate.low, rate.high]).tolist())
    numbers["ε-greedy: factor for each further row"] = factor
    numbers["ε-greedy: largest size all seeds learned"] = max(eps_sizes)
    holds = []
    for reading in ("cost on right", "cost on right, options carry over"):
        sizes = [size for size in _sizes(settings, "ez", reading) if size >= 10]
        counts = _counts(settings, results, "ez", reading, sizes)
        slope = _slope(np.log(sizes), counts, rng)
        numbers[f"{reading}: εz-greedy, exponent of N"] = slope
        holds.append(slope.high < _LARGEST_POWER and factor.low > 2.0)
    sizes = _sizes(settings, "eps", "cost on every step")
    counts = _counts(settings, results, "eps", "cost on every step", sizes)
    slope = _slope(np.log(sizes), counts, rng)
    numbers["cost on every step: ε-greedy, exponent of N"] = slope
    holds.append(slope.low > _LARGEST_POWER)
    return Claim(
        "Uniform exploration is exponentially inefficient in DeepSea.",
        verdict_of(holds),
        numbers,
        "Fits to the median episodes until learned. With cost on moves to the right: ε-greedy's "
        "exponential in N over sizes that all seeds learned, εz-greedy's a power of N from 10 on; "
        f"it holds if the factor is above 2, the price of one more coin, and the exponent below "
        f"{_LARGEST_POWER:g}. "
        "With cost on every step ε-greedy too grows as a power of N, so that it does not hold.",
        source="paper, Figure 3a",
    )


def _claim_of_returns(settings: Settings, results: Results, rng: np.random.Generator) -> Claim:
    found = {
        policy: mean_interval([entry["late"] for entry in results[f"curve {policy}"]], rng)
        for policy in POLICIES
    }
    size = settings["curve_size"]
    epsilon = settings["epsilon_times"] / (size + 1)
    return Claim(
        "εz-greedy's average return rises above ε-greedy's.",
        verdict_of([found["ez"].low > max(found["eps"].high, 0.0)]),
        {
            **{f"N = {size}: {POLICIES[policy]}, last quarter": found[policy] for policy in found},
            "0.99 · (1 − ε/2)^N": round(0.99 * (1 - epsilon / 2) ** size, 3),
        },
        "Average return over the last quarter of the episodes, with cost on moves to the right. A "
        "learned run earns about 0.99 · (1 − ε/2)^N while it explores, not 0.99, which is what its "
        "greedy policy earns.",
        source="paper, Figure 3a",
    )


def _claim_of_coverage(results: Results, rng: np.random.Generator) -> Claim:
    numbers: dict[str, Number] = {}
    holds = []
    for measure, name in (("all_cells", "all cells"), ("corner", "far corner")):
        samples = {
            policy: [entry[measure] for entry in results[f"walk {policy}"]] for policy in POLICIES
        }
        for policy, label in POLICIES.items():
            numbers[f"{name}, {label}"] = mean_interval(samples[policy], rng)
        ratio = ratio_interval(samples["ez"], samples["eps"], rng)
        numbers[f"{name}, ratio εz/ε"] = ratio
        holds.append(ratio.high < 1.0)
    for policy, label in POLICIES.items():
        shares = [entry["never_visited"] for entry in results[f"walk {policy}"]]
        numbers[f"share never visited, {label}"] = mean_interval(shares, rng)
    return Claim(
        "First-visit times at ε = 1 show significantly better coverage than with ε-greedy.",
        verdict_of(holds),
        numbers,
        "Mean steps to the first visit, over all cells and in the corner with the treasure.",
        source="paper, Section 5.1 and Figure 3a",
    )


def _sizes(settings: Settings, policy: str, reading: str) -> list[int]:
    """The sizes run; ε-greedy has no options that could carry over."""
    if reading == "cost on every step":
        return list(settings["step_cost_sizes"])
    if policy == "ez":
        return list(settings["ez_sizes"])
    return list(settings["eps_sizes"]) if reading == DEFAULT_READING else []


def _censored(learned: Sequence[int | None], settings: Settings) -> list[int]:
    return [settings["num_episodes"] if count is None else count for count in learned]


def _counts(
    settings: Settings, results: Results, policy: str, reading: str, sizes: Sequence[int]
) -> FloatArray:
    """Episodes until learned, [sizes, seeds]."""
    entries = [results[_cell_name(policy, reading, size)] for size in sizes]
    return np.array([_censored([entry["learned"] for entry in row], settings) for row in entries])


def _slope(x: FloatArray, counts: FloatArray, rng: np.random.Generator) -> Interval:
    """The slope of the log of median counts [sizes, seeds] over x, with seeds resampled."""
    num_sizes, num_seeds = counts.shape
    chosen = rng.integers(num_seeds, size=(_REPEATS, num_sizes, num_seeds))
    resampled = np.take_along_axis(counts[None], chosen, axis=2)
    slopes = np.polyfit(x, np.log(np.median(resampled, axis=2)).T, 1)[0]
    slope = np.polyfit(x, np.log(np.median(counts, axis=1)), 1)[0]
    low, high = np.quantile(slopes, [0.025, 0.975])
    return Interval(float(slope), float(min(low, slope)), float(max(high, slope)))


def _mean_map(entries: Sequence[Mapping[str, Any]]) -> list[list[float | None]]:
    """The mean over walks; None where there is no cell."""
    mean = np.mean([entry["first_visits"] for entry in entries], axis=0)
    return [[None if value < 0 else round(value, 1) for value in row] for row in mean.tolist()]


def _cell_name(policy: str, reading: str, size: int) -> str:
    return f"{policy}, {reading}, N = {size}"


EXPERIMENT = Experiment(
    id="fig3-deepsea",
    title="Figure 3a: DeepSea",
    shows="episodes until DeepSea is learned at sizes up to 50, and which cells are seen when",
    settings=SETTINGS,
    quick={
        "eps_sizes": [3, 4, 10],
        "ez_sizes": [5, 10, 20],
        "step_cost_sizes": [5, 10],
        "num_episodes": 50_000,
        "num_walk_episodes": 20_000,
    },
    num_seeds=5,
    cost_seconds=12.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    num_quick_seeds=3,
)
