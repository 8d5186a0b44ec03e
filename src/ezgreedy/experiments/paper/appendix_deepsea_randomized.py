"""Appendix: is εz-greedy no better than ε-greedy if the effects of actions vary between states?

DeepSea with action effects drawn at random for each state, once per training run. Repeating an
action then leads nowhere in particular. From ten rows on no policy learns within the budget, and
none can be better than another; smaller seas, in which ε-greedy does learn, are where the paper's
sentence can be tested. Runs with consistent effects are added for comparison.
"""

from collections.abc import Mapping, Sequence
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
from ezgreedy.experiments.readings import (
    EQUAL_BUDGET,
    EZ_SETTINGS,
    POLICIES,
    POLICIES_AND_CONTROL,
    binned,
    interval_curve,
    mean_curve,
    middles,
    policy_of,
)
from ezgreedy.figures import colours
from ezgreedy.findings.claims import AS_STATED, Claim, Number, Statement, Summary, names_with
from ezgreedy.findings.intervals import (
    Interval,
    geometric_ratio_interval,
    mean_interval,
    share_difference_interval,
    share_interval,
)
from ezgreedy.findings.judging import Side, above, all_of
from ezgreedy.findings.panels import Curve, Panel

EFFECTS = ("randomised", "consistent")

SETTINGS: dict[str, Any] = {
    **EZ_SETTINGS,
    "step_size": 1.0,
    "epsilon_times": 1.0,  # Paper: ε = 1/(N + 1)
    "sizes": [3, 4, 5, 6, 7, 8, 10, 20],
    "compared_sizes": [10, 20],  # also with consistent effects, and with curves
    "cost_on": "right",
    "other_move": "left",
    "discount": 1.0,
    "ties": "random",
    "num_episodes": 200_000,
    "num_bins": 50,
}

# εz-greedy is sooner at a size if it needs at most this share of ε-greedy's episodes.
_SOONER = 0.9
# Shares of runs that learn are alike if they differ by less than this.
_ALIKE = 0.1

NO_BETTER = Statement(
    "An adversarial modification to DeepSea causes εz-greedy to perform no better than ε-greedy.",
    "paper, Section 6, limitation (i), and Figure 7 (Appendix D)",
    "At every size at which some run of either policy learns, at the same ε, the interval of the "
    "ratio εz/ε of the number of episodes until learned (geometric means, paired by seed and sea; "
    f"a run that does not learn counts as the limit) lies above {_SOONER:g}: εz-greedy is not a "
    "tenth sooner. Contradicted at a size if it lies below. Sizes at which no run learns decide "
    "nothing. An ε at which εz-greedy takes as many exploratory steps is a control.",
    "At first only N = 10 and 20 were run and counted, until it was seen that they are a floor, "
    "and one more run that learned counted as better. Sizes from 3 on were added because "
    "independent runs had found εz-greedy sooner there.",
)
BACK = Statement(
    "Randomised action effects reduce εz-greedy's performance back to that of ε-greedy.",
    "paper, Appendix A, DeepSea",
    "At N = 10 and 20, at the same ε: with consistent effects, the interval of the difference εz − "
    "ε of the shares of runs that learn lies above 0; with randomised effects, it lies within "
    f"±{_ALIKE:g}.",
)


def cells(settings: Settings) -> list[Cell]:
    """All policies at every size; two of them with consistent effects at some."""
    randomised = [
        (policy, "randomised", size)
        for size in settings["sizes"]
        for policy in POLICIES_AND_CONTROL
    ]
    consistent = [
        (policy, "consistent", size) for size in settings["compared_sizes"] for policy in POLICIES
    ]
    return [
        Cell(
            _cell_name(*condition), dict(zip(("policy", "effects", "size"), condition, strict=True))
        )
        for condition in randomised + consistent
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """One training run; the effects of actions are drawn from the run's own seed."""
    from ezgreedy.envs.deep_sea import DeepSea
    from ezgreedy.kernels.q_learning_runs import Budget, rule, run_deep_sea, sea_of

    size = settings["size"]
    env = DeepSea(
        size,
        seed if settings["effects"] == "randomised" else None,
        settings["cost_on"],
        other_move=settings["other_move"],
    )
    how = rule(settings["step_size"], settings["discount"], ties=settings["ties"])
    policy = policy_of(settings, settings["epsilon_times"] / (size + 1))
    run = run_deep_sea(seed, sea_of(env), policy, how, Budget(settings["num_episodes"]))
    has_curve = size in settings["compared_sizes"] and settings["policy"] != EQUAL_BUDGET
    curve = binned(run.returns, settings["num_bins"]) if has_curve else []
    return {
        "first_success": run.first_success,
        "learned": run.learned,
        "return": round(float(run.returns.mean()), 6),
        "curve": [round(value, 4) for value in curve],
    }


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Judges learning at every size, and what randomised effects take away."""
    results = results_by_cell(records)
    claims = [_claim_of_learning(settings, results), _claim_of_loss(settings, results)]
    panels = [
        _episodes_panel(settings, results),
        _shares_panel(settings, results),
        *(_returns_panel(settings, results, size) for size in settings["compared_sizes"]),
    ]
    return Summary(claims, panels)


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Learning by size, and average return over episodes at the larger sizes."""
    from ezgreedy.figures import curves, style

    learning = curves.learning_curves(summary.panels[:2])
    for axis in learning.axes:
        axis.set_xticks(settings["sizes"], [str(size) for size in settings["sizes"]])
        axis.set_xticks([], minor=True)
        for line in axis.lines:
            line.set(marker="o", markersize=3.5)
    returns = curves.learning_curves(summary.panels[2:])
    with style.voice():
        for axis in returns.axes:
            # Both policies lie on zero; dashes keep both visible.
            axis.lines[1].set_linestyle((0, (4, 4)))
            axis.legend()
    return [
        *style.save(learning, directory / "learning"),
        *style.save(returns, directory / "returns"),
    ]


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _claim_of_learning(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    parts: dict[str, list[Side]] = {policy: [] for policy in POLICIES_AND_CONTROL}
    for size in settings["sizes"]:
        entries = {p: results[_cell_name(p, "randomised", size)] for p in POLICIES_AND_CONTROL}
        counts = {p: _censored(settings, entries[p]) for p in POLICIES_AND_CONTROL}
        for policy, label in POLICIES_AND_CONTROL.items():
            name = f"N = {size}: {label}"
            numbers[f"{name}, learned"] = _learned(entries[policy])
            numbers[f"{name}, episodes until learned"] = mean_interval(counts[policy])
        for policy, label in (("ez", "ratio εz/ε"), (EQUAL_BUDGET, "ratio εz/ε, equal budget")):
            if any(e["learned"] is not None for p in ("eps", policy) for e in entries[p]):
                ratio = geometric_ratio_interval(counts[policy], counts["eps"])
                numbers[f"N = {size}: {label} of episodes"] = ratio
                parts[policy].append(above(ratio, _SOONER))
    return Claim(
        NO_BETTER,
        {"equal ε": all_of(parts["ez"]) if parts["ez"] else "undecided"},
        numbers,
        fewest_seeds(results),
        controls={
            "equal budget": all_of(parts[EQUAL_BUDGET]) if parts[EQUAL_BUDGET] else "undecided"
        },
        key_numbers=names_with(numbers, "ratio εz/ε of episodes"),
    )


def _claim_of_loss(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    parts: list[Side] = []
    for size in settings["compared_sizes"]:
        for effects in EFFECTS:
            eps, ez = (results[_cell_name(policy, effects, size)] for policy in POLICIES)
            name = f"N = {size}, {effects}"
            numbers[f"{name}: learned, ε-greedy"] = _learned(eps)
            numbers[f"{name}: learned, εz-greedy"] = _learned(ez)
            gain = share_difference_interval((_successes(ez), len(ez)), (_successes(eps), len(eps)))
            numbers[f"{name}: εz − ε, share learned"] = gain
            parts.append(above(gain) if effects == "consistent" else _alike(gain))
    return Claim(
        BACK,
        {AS_STATED: all_of(parts)},
        numbers,
        fewest_seeds(results),
        note="With randomised effects nobody learns at these sizes; see the smaller ones above.",
        key_numbers=names_with(numbers, "share learned"),
    )


def _alike(difference: Interval) -> Side:
    if difference.low > -_ALIKE and difference.high < _ALIKE:
        return "holds"
    apart = difference.low > _ALIKE or difference.high < -_ALIKE
    return "contradicted" if apart else "undecided"


def _episodes_panel(settings: Settings, results: Results) -> Panel:
    lines = []
    for policy, label in POLICIES_AND_CONTROL.items():
        points = [
            mean_interval(_censored(settings, results[_cell_name(policy, "randomised", n)]))
            for n in settings["sizes"]
        ]
        lines.append(
            interval_curve(label, settings["sizes"], points, colours.POLICY_COLOURS[policy])
        )
    sizes, limit = settings["sizes"], settings["num_episodes"]
    return Panel(
        "randomised effects",
        lines,
        x_label="size N",
        y_label="episodes until learned (mean)",
        log_x=True,
        log_y=True,
        references=[Curve("limit: not learned", [min(sizes), max(sizes)], [limit, limit])],
        figure="learning",
    )


def _shares_panel(settings: Settings, results: Results) -> Panel:
    lines = []
    for policy, label in POLICIES_AND_CONTROL.items():
        points = [
            share_interval(_successes(entries), len(entries))
            for entries in (results[_cell_name(policy, "randomised", n)] for n in settings["sizes"])
        ]
        lines.append(
            interval_curve(label, settings["sizes"], points, colours.POLICY_COLOURS[policy])
        )
    return Panel(
        f"learned within {settings['num_episodes']:,} episodes",
        lines,
        x_label="size N",
        y_label="share of runs",
        log_x=True,
        figure="learning",
    )


def _returns_panel(settings: Settings, results: Results, size: int) -> Panel:
    """Average return over episodes at one size."""
    lines = (
        ("eps", "randomised", colours.EPS_COLOUR),
        ("ez", "randomised", colours.EZ_COLOUR),
        ("ez", "consistent", colours.OTHER_COLOURS[0]),
    )
    episodes = middles(settings["num_episodes"], settings["num_bins"])
    return Panel(
        f"N = {size}",
        [
            mean_curve(
                f"{POLICIES[policy]}, {effects}",
                [episode / 1000 for episode in episodes],
                [entry["curve"] for entry in results[_cell_name(policy, effects, size)]],
                colour,
            )
            for policy, effects, colour in lines
        ],
        x_label="thousand episodes",
        y_label="average return",
        figure="returns",
    )


def _censored(settings: Settings, entries: Sequence[Mapping[str, Any]]) -> list[int]:
    """Episodes until learned; the limit for runs that did not."""
    limit = settings["num_episodes"]
    return [limit if entry["learned"] is None else entry["learned"] for entry in entries]


def _successes(entries: Sequence[Mapping[str, Any]]) -> int:
    return sum(entry["learned"] is not None for entry in entries)


def _learned(entries: Sequence[Mapping[str, Any]]) -> str:
    return f"{_successes(entries)} of {len(entries)}"


def _cell_name(policy: str, effects: str, size: int) -> str:
    return f"{policy}, {effects}, N = {size}"


EXPERIMENT = Experiment(
    id="appendix-deepsea-randomized",
    title="Appendix: DeepSea with randomised action effects",
    shows="whether εz-greedy gains anything where actions mean another thing in every state",
    settings=SETTINGS,
    quick={"num_episodes": 20_000, "sizes": [3, 5, 10], "compared_sizes": [10]},
    num_seeds=5,
    num_quick_seeds=5,
    num_thorough_seeds=100,
    statements=(NO_BETTER, BACK),
    cost_seconds=8.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
