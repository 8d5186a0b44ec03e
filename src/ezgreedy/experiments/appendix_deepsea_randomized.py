"""Appendix: is εz-greedy no better than ε-greedy if the effects of actions vary between states?

DeepSea with action effects drawn at random for each state, once per training run. Repeating an
action then leads nowhere in particular. Runs with consistent effects are added for comparison.
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
    EZ_SETTINGS,
    POLICIES,
    binned,
    mean_curve,
    middles,
    policy_of,
)
from ezgreedy.figures import colours
from ezgreedy.findings.claims import AS_STATED, Claim, Number, Statement, Summary, names_with
from ezgreedy.findings.intervals import Interval, mean_interval, paired_difference_interval
from ezgreedy.findings.judging import Side, all_of
from ezgreedy.findings.panels import Panel

EFFECTS = ("randomised", "consistent")

SETTINGS: dict[str, Any] = {
    **EZ_SETTINGS,
    "step_size": 1.0,
    "epsilon_times": 1.0,  # Paper: ε = 1/(N + 1)
    "sizes": [10, 20],
    "cost_on": "right",
    "other_move": "left",
    "discount": 1.0,
    "ties": "random",
    "num_episodes": 200_000,
    "num_bins": 50,
}

_LARGEST_GAIN = 0.05  # of a return of at most 0.99; less is no better
_LEVEL = 0.05

NO_BETTER = Statement(
    "An adversarial modification to DeepSea causes εz-greedy to perform no better than ε-greedy.",
    "paper, Section 6, limitation (i), and Figure 7 (Appendix D)",
    "At every size at which some run of either policy learns, the interval of the difference "
    "εz − ε of the average return over all episodes, paired by seed, lies below "
    f"{_LARGEST_GAIN:g}, and εz-greedy does not learn in more runs by Fisher's exact test at 0.05. "
    "Contradicted at a size if that interval lies above 0 or the test finds more. Sizes at which "
    "no run learns decide nothing.",
    "Sizes at which no run learns counted as evidence until it was seen that they are a floor: "
    "there no policy can be better. One run more that learned counted as better.",
)


def cells(settings: Settings) -> list[Cell]:
    """Both policies at every size, with both kinds of effects."""
    return [
        Cell(
            _cell_name(policy, effects, size),
            {"policy": policy, "effects": effects, "size": size},
        )
        for size in settings["sizes"]
        for effects in EFFECTS
        for policy in POLICIES
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """One training run; the effects of actions are drawn from the run's own seed."""
    from ezgreedy.envs.deep_sea import DeepSea
    from ezgreedy.kernels.q_learning_runs import Budget, rule, run_deep_sea, sea_of

    env = DeepSea(
        settings["size"],
        seed if settings["effects"] == "randomised" else None,
        settings["cost_on"],
        other_move=settings["other_move"],
    )
    how = rule(settings["step_size"], settings["discount"], ties=settings["ties"])
    policy = policy_of(settings, settings["epsilon_times"] / (env.size + 1))
    run = run_deep_sea(seed, sea_of(env), policy, how, Budget(settings["num_episodes"]))
    return {
        "first_success": run.first_success,
        "learned": run.learned,
        "return": float(run.returns.mean()),
        "curve": binned(run.returns, settings["num_bins"]),
    }


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Judges at every size whether there is no advantage."""
    results = results_by_cell(records)
    numbers: dict[str, Number] = {}
    parts: list[Side] = []
    for size in settings["sizes"]:
        found = {effects: _compared(results, effects, size) for effects in EFFECTS}
        for compared in found.values():
            numbers |= compared
        if _someone_learns(results, size):
            parts.append(_no_better(results, size))
    claim = Claim(
        NO_BETTER,
        {AS_STATED: all_of(parts) if parts else "undecided"},
        numbers,
        fewest_seeds(results),
        note="Consistent effects are given for comparison.",
        key_numbers=names_with(numbers, "randomised: ε-greedy, learned"),
    )
    return Summary([claim], [_panel(settings, results, size) for size in settings["sizes"]])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """A panel for each size: average return over episodes."""
    from ezgreedy.figures import curves, style

    figure = curves.learning_curves(summary.panels)
    with style.voice():
        for axis in figure.axes:
            # Both policies lie on zero; dashes keep both visible.
            axis.lines[1].set_linestyle((0, (4, 4)))
            axis.legend()
    return style.save(figure, directory / "returns")


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _panel(settings: Settings, results: Results, size: int) -> Panel:
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
    )


def _compared(
    results: Results,
    effects: str,
    size: int,
) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for policy, label in POLICIES.items():
        entries = results[_cell_name(policy, effects, size)]
        name = f"N = {size}, {effects}: {label}"
        numbers[f"{name}, average return"] = mean_interval([e["return"] for e in entries])
        for event, word in (("first_success", "found the treasure"), ("learned", "learned")):
            count = sum(entry[event] is not None for entry in entries)
            numbers[f"{name}, {word}"] = f"{count} of {len(entries)}"
    numbers[f"N = {size}, {effects}: εz − ε, average return"] = _gain(results, effects, size)
    return numbers


def _someone_learns(results: Results, size: int) -> bool:
    entries = [e for policy in POLICIES for e in results[_cell_name(policy, "randomised", size)]]
    return any(entry["learned"] is not None for entry in entries)


def _no_better(results: Results, size: int) -> Side:
    from scipy.stats import fisher_exact

    eps, ez = (results[_cell_name(policy, "randomised", size)] for policy in POLICIES)
    table = [
        [sum((entry["learned"] is None) == is_absent for entry in entries) for entries in (ez, eps)]
        for is_absent in (False, True)
    ]
    learns_more = table[0][0] > table[0][1] and fisher_exact(table).pvalue < _LEVEL
    gain = _gain(results, "randomised", size)
    if learns_more or gain.low > 0.0:
        return "contradicted"
    return "holds" if gain.high < _LARGEST_GAIN else "undecided"


def _gain(results: Results, effects: str, size: int) -> Interval:
    eps, ez = (
        [entry["return"] for entry in results[_cell_name(policy, effects, size)]]
        for policy in POLICIES
    )
    return paired_difference_interval(ez, eps)


def _cell_name(policy: str, effects: str, size: int) -> str:
    return f"{policy}, {effects}, N = {size}"


EXPERIMENT = Experiment(
    id="appendix-deepsea-randomized",
    title="Appendix: DeepSea with randomised action effects",
    shows="whether εz-greedy gains anything where actions mean another thing in every state",
    settings=SETTINGS,
    quick={"num_episodes": 50_000},
    num_seeds=5,
    statements=(NO_BETTER,),
    cost_seconds=6.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    num_quick_seeds=2,
)
