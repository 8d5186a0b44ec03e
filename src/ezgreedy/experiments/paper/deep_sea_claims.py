"""What do the runs of DeepSea show? Its readings, the paper's sentences, and their verdicts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ezgreedy.experiments.experiment import Settings, fewest_seeds
from ezgreedy.experiments.readings import POLICIES
from ezgreedy.findings.claims import AS_STATED, Claim, Number, Statement, names_with
from ezgreedy.findings.intervals import (
    Interval,
    geometric_ratio_interval,
    mean_interval,
    paired_difference_interval,
    ratio_interval,
)
from ezgreedy.findings.judging import Side, above, all_of, below
from ezgreedy.requirements import FloatArray

Results = Mapping[str, Sequence[Mapping[str, Any]]]

READINGS: dict[str, dict[str, Any]] = {
    "cost on right": {"cost_on": "right", "carries_over_episodes": False},
    "cost on right, options carry over": {"cost_on": "right", "carries_over_episodes": True},
    "cost on every step": {"cost_on": "step", "carries_over_episodes": False},  # a control
    "cost on every step, values begin at −1": {
        "cost_on": "step",
        "carries_over_episodes": False,
        "initial_value": -1.0,
    },
}
DEFAULT_READING = "cost on right"
STEP_COST = "cost on every step"
PESSIMISTIC = "cost on every step, values begin at −1"

# εz-greedy learns sooner at a size if it needs at most this share of ε-greedy's episodes.
_SOONER = 0.5

# Growth with an exponent of N up to this counts as a power law, not as exponential.
_LARGEST_POWER = 4.5
_LEAST_FACTOR = 2.0  # the price of one more coin

_MOVED = "Cost on every step was counted as a reading until its results were known."
_ADDED = (
    " The reading in which values begin at −1 was added after independent code had found that it "
    "holds there."
)
LEARNING = Statement(
    "In DeepSea εz-greedy provides significantly improved performance.",
    "paper, Section 5.1 and Figure 3a",
    "At every size from 10 on that both policies ran, the interval of the ratio εz/ε of the number "
    "of episodes until learned (geometric means, paired by seed; a run that does not learn counts "
    f"as the limit) lies below {_SOONER:g}. Contradicted at a size if it lies above 1.",
    f"{_MOVED} So was the comparison by two intervals of means.{_ADDED}",
)
GROWTH = Statement(
    "Uniform exploration is exponentially inefficient in DeepSea.",
    "paper, Figure 3a",
    "Fits to the number of episodes until learned, one for each seed: ε-greedy's grows by a factor "
    f"above {_LEAST_FACTOR:g} with every further row, over the sizes that all seeds learned, while "
    f"εz-greedy's grows as a power of N, from 10 on, with an exponent below {_LARGEST_POWER:g}; by "
    "the whole interval each.",
    f"{_MOVED} Fits were to medians over seeds.",
)
RETURNS = Statement(
    "εz-greedy's average return rises above ε-greedy's.",
    "paper, Figure 3a",
    "Average return over the last quarter of the episodes, with cost on moves to the right: "
    "εz-greedy's interval lies above 0, and so does that of the difference εz − ε, paired by seed.",
    "Until the results were known, two intervals that do not overlap.",
)
COVERAGE = Statement(
    "First-visit times at ε = 1 show significantly better coverage than with ε-greedy.",
    "paper, Section 5.1 and Figure 3a",
    "Mean number of steps to the first visit, over all cells and in the corner with the treasure: "
    "the interval of the ratio εz/ε lies below 1 for both.",
)

STATEMENTS = (LEARNING, GROWTH, RETURNS, COVERAGE)


def claims(settings: Settings, results: Results) -> list[Claim]:
    """Learning under every reading, its growth with size, returns, and coverage."""
    return [
        _claim_of_learning(settings, results),
        _claim_of_growth(settings, results),
        _claim_of_returns(settings, results),
        _claim_of_coverage(results),
    ]


def _claim_of_learning(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    sides: dict[str, Side] = {}
    for reading in READINGS:
        parts = []
        source = reading if sizes_of(settings, "eps", reading) else DEFAULT_READING
        shared = set(sizes_of(settings, "eps", source)) & set(sizes_of(settings, "ez", reading))
        for size in sorted(size for size in shared if size >= 10):
            counts = {
                "eps": results[cell_name("eps", source, size)],
                "ez": results[cell_name("ez", reading, size)],
            }
            found: dict[str, list[int]] = {}
            for policy, entries in counts.items():
                learned = [entry["learned"] for entry in entries]
                name = f"{reading}, N = {size}: {POLICIES[policy]}"
                found[policy] = censored(learned, settings)
                numbers[f"{name}, episodes"] = mean_interval(found[policy])
                num_learned = sum(count is not None for count in learned)
                numbers[f"{name}, learned"] = f"{num_learned} of {len(learned)}"
            ratio = geometric_ratio_interval(found["ez"], found["eps"])
            numbers[f"{reading}, N = {size}: ratio εz/ε"] = ratio
            parts.append(_sooner(ratio))
        sides[reading] = all_of(parts)
    step_cost = sides.pop(STEP_COST)
    return Claim(
        LEARNING,
        sides,
        numbers,
        fewest_seeds(results),
        controls={STEP_COST: step_cost},
        note="If only moves to the right cost, as in the environment that the paper cites, "
        "εz-greedy learns and ε-greedy does not. If every step costs, as its appendix says, "
        "untried actions look better than tried ones and both policies learn equally soon. The "
        "paper's own figure shows ε-greedy failing: its appendix and its figure are inconsistent.",
        key_numbers=[
            name for name in names_with(numbers, "N = 20: ratio") if name.split(", N")[0] in sides
        ],
    )


def _sooner(ratio: Interval) -> Side:
    if ratio.high < _SOONER:
        return "holds"
    return "contradicted" if ratio.low > 1.0 else "undecided"


def _claim_of_growth(settings: Settings, results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    eps_sizes = [
        size
        for size in sizes_of(settings, "eps", DEFAULT_READING)
        if all(entry["learned"] for entry in results[cell_name("eps", DEFAULT_READING, size)])
    ]
    counts = _counts(settings, results, "eps", DEFAULT_READING, eps_sizes)
    rate = _slope(np.array(eps_sizes, dtype=np.float64), counts)
    factor = Interval(*np.exp([rate.value, rate.low, rate.high]).tolist())
    numbers["ε-greedy: factor for each further row"] = factor
    numbers["ε-greedy: largest size all seeds learned"] = max(eps_sizes)
    readings: dict[str, Side] = {}
    for reading in ("cost on right", "cost on right, options carry over"):
        sizes = [size for size in sizes_of(settings, "ez", reading) if size >= 10]
        counts = _counts(settings, results, "ez", reading, sizes)
        slope = _slope(np.log(sizes), counts)
        numbers[f"{reading}: εz-greedy, exponent of N"] = slope
        is_power = below(slope, _LARGEST_POWER)
        readings[reading] = all_of([is_power, above(factor, _LEAST_FACTOR)])
    sizes = sizes_of(settings, "eps", STEP_COST)
    counts = _counts(settings, results, "eps", STEP_COST, sizes)
    slope = _slope(np.log(sizes), counts)
    numbers[f"{STEP_COST}: ε-greedy, exponent of N"] = slope
    return Claim(
        GROWTH,
        readings,
        numbers,
        fewest_seeds(results),
        controls={STEP_COST: above(slope, _LARGEST_POWER)},
        note="With cost on every step ε-greedy too grows as a power of N.",
    )


def _claim_of_returns(settings: Settings, results: Results) -> Claim:
    late = {policy: [entry["late"] for entry in results[f"curve {policy}"]] for policy in POLICIES}
    found = {policy: mean_interval(samples) for policy, samples in late.items()}
    gain = paired_difference_interval(late["ez"], late["eps"])
    size = settings["curve_size"]
    epsilon = settings["epsilon_times"] / (size + 1)
    return Claim(
        RETURNS,
        {AS_STATED: all_of([above(found["ez"]), above(gain)])},
        {
            **{f"N = {size}: {POLICIES[policy]}, last quarter": found[policy] for policy in found},
            f"N = {size}: εz − ε, last quarter": gain,
            "0.99 · (1 − ε/2)^N": round(0.99 * (1 - epsilon / 2) ** size, 3),
        },
        fewest_seeds(results),
        note="A learned run earns about 0.99 · (1 − ε/2)^N while it explores, not 0.99, which is "
        "what its greedy policy earns.",
    )


def _claim_of_coverage(results: Results) -> Claim:
    numbers: dict[str, Number] = {}
    parts = []
    for measure, name in (("all_cells", "all cells"), ("corner", "far corner")):
        samples = {
            policy: [entry[measure] for entry in results[f"walk {policy}"]] for policy in POLICIES
        }
        for policy, label in POLICIES.items():
            numbers[f"{name}, {label}"] = mean_interval(samples[policy])
        ratio = ratio_interval(samples["ez"], samples["eps"])
        numbers[f"{name}, ratio εz/ε"] = ratio
        parts.append(below(ratio, 1.0))
    for policy, label in POLICIES.items():
        shares = [entry["never_visited"] for entry in results[f"walk {policy}"]]
        numbers[f"share never visited, {label}"] = mean_interval(shares)
    return Claim(COVERAGE, {AS_STATED: all_of(parts)}, numbers, fewest_seeds(results))


def sizes_of(settings: Settings, policy: str, reading: str) -> list[int]:
    """The sizes run; ε-greedy has no options that could carry over."""
    if reading in (STEP_COST, PESSIMISTIC):
        return list(settings["step_cost_sizes" if reading == STEP_COST else "pessimistic_sizes"])
    if policy == "ez":
        return list(settings["ez_sizes"])
    return list(settings["eps_sizes"]) if reading == DEFAULT_READING else []


def censored(learned: Sequence[int | None], settings: Settings) -> list[int]:
    """Episodes until learned; the limit for runs that did not."""
    return [settings["num_episodes"] if count is None else count for count in learned]


def _counts(
    settings: Settings, results: Results, policy: str, reading: str, sizes: Sequence[int]
) -> FloatArray:
    """Episodes until learned, [sizes, seeds]."""
    entries = [results[cell_name(policy, reading, size)] for size in sizes]
    return np.array([censored([entry["learned"] for entry in row], settings) for row in entries])


def _slope(x: FloatArray, counts: FloatArray) -> Interval:
    """The slope of the log of counts [sizes, seeds] over x: each seed's own, then their mean."""
    return mean_interval(np.polyfit(x, np.log(counts), 1)[0])


def cell_name(policy: str, reading: str, size: int) -> str:
    """The name of one condition."""
    return f"{policy}, {reading}, N = {size}"
