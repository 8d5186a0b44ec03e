"""How often do our 95 % intervals contain the truth? Writes docs/interval_coverage.md.

Run by hand: python benchmarks/interval_coverage.py
"""

import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ezgreedy.findings.intervals import (
    Interval,
    bootstrap_interval,
    difference_interval,
    geometric_ratio_interval,
    mean_interval,
    paired_difference_interval,
    ratio_interval,
    share_interval,
)
from ezgreedy.findings.score_intervals import stratified_interval
from ezgreedy.findings.scores import interquartile_mean
from ezgreedy.requirements import FloatArray

TARGET = Path(__file__).parents[1] / "docs" / "interval_coverage.md"
SIZES = (3, 5, 10, 30)
NUM_INTERVALS = 2000
NUM_RESAMPLES = 500
NUM_GAMES = 5

Draw = Callable[[np.random.Generator, int], FloatArray]  # samples of one experiment
Estimate = Callable[[FloatArray, np.random.Generator], Interval]


def normal(rng: np.random.Generator, num_seeds: int) -> FloatArray:
    return rng.normal(1.0, 1.0, num_seeds)


def lognormal(rng: np.random.Generator, num_seeds: int) -> FloatArray:
    return rng.lognormal(0.0, 1.0, num_seeds)


def bernoulli(chance: float) -> Draw:
    return lambda rng, num_seeds: (rng.random(num_seeds) < chance).astype(np.float64)


def pairs(of: Draw) -> Draw:
    """Two policies on the same seeds: half of the spread is the seed's."""

    def draw(rng: np.random.Generator, num_seeds: int) -> FloatArray:
        shared = of(rng, num_seeds)
        return np.stack([shared + of(rng, num_seeds) for _ in range(2)])

    return draw


def log_pairs(rng: np.random.Generator, num_seeds: int) -> FloatArray:
    return rng.lognormal(0.0, 1.0, num_seeds) * rng.lognormal(0.0, 1.0, (2, num_seeds))


def apart(of: Draw) -> Draw:
    return lambda rng, num_seeds: np.stack([of(rng, num_seeds), of(rng, num_seeds)])


def games(rng: np.random.Generator, num_seeds: int) -> FloatArray:
    """Scores of runs on games that differ a lot, [seeds, games]."""
    return np.arange(NUM_GAMES) + rng.normal(0.0, 0.3, (num_seeds, NUM_GAMES))


def share(samples: FloatArray, rng: np.random.Generator) -> Interval:
    return share_interval(int(samples.sum()), len(samples))


def resampled(samples: FloatArray, rng: np.random.Generator) -> Interval:
    return bootstrap_interval(samples, rng, repeats=NUM_RESAMPLES)


def resampled_median(samples: FloatArray, rng: np.random.Generator) -> Interval:
    return bootstrap_interval(
        samples, rng, lambda x: np.asarray(np.median(x, axis=1)), repeats=NUM_RESAMPLES
    )


def over_games(samples: FloatArray, rng: np.random.Generator) -> Interval:
    return stratified_interval(interquartile_mean, samples, rng=rng, repeats=NUM_RESAMPLES)


def of_pair(estimate: Callable[[FloatArray, FloatArray], Interval]) -> Estimate:
    return lambda samples, rng: estimate(samples[0], samples[1])


def of_row(estimate: Callable[[FloatArray], Interval]) -> Estimate:
    return lambda samples, rng: estimate(samples)


MEAN = float(np.exp(0.5))  # of the lognormal

# What is estimated, from which data, how, and the truth.
ROWS: tuple[tuple[str, str, Draw, Estimate, float], ...] = (
    ("mean, Student's t", "normal", normal, of_row(mean_interval), 1.0),
    ("mean, Student's t", "lognormal", lognormal, of_row(mean_interval), MEAN),
    ("mean, Student's t", "Bernoulli 0.5", bernoulli(0.5), of_row(mean_interval), 0.5),
    ("mean, Student's t", "Bernoulli 0.1", bernoulli(0.1), of_row(mean_interval), 0.1),
    ("difference of pairs, t", "normal", pairs(normal), of_pair(paired_difference_interval), 0.0),
    (
        "difference of pairs, t",
        "lognormal",
        pairs(lognormal),
        of_pair(paired_difference_interval),
        0.0,
    ),
    (
        "difference of pairs, t",
        "Bernoulli 0.1",
        apart(bernoulli(0.1)),
        of_pair(paired_difference_interval),
        0.0,
    ),
    ("difference, Welch", "normal", apart(normal), of_pair(difference_interval), 0.0),
    ("difference, Welch", "lognormal", apart(lognormal), of_pair(difference_interval), 0.0),
    ("ratio of means over pairs, t", "normal", pairs(normal), of_pair(ratio_interval), 1.0),
    ("ratio of means over pairs, t", "lognormal", pairs(lognormal), of_pair(ratio_interval), 1.0),
    (
        "ratio of geometric means, t",
        "lognormal",
        log_pairs,
        of_pair(geometric_ratio_interval),
        1.0,
    ),
    ("share, Wilson", "Bernoulli 0.5", bernoulli(0.5), share, 0.5),
    ("share, Wilson", "Bernoulli 0.1", bernoulli(0.1), share, 0.1),
    ("interquartile mean of 5 games, stratified bootstrap", "normal", games, over_games, 2.0),
    ("median, bootstrap", "lognormal", lognormal, resampled_median, 1.0),
    ("*mean, percentile bootstrap (not used)*", "normal", normal, resampled, 1.0),
    ("*mean, percentile bootstrap (not used)*", "lognormal", lognormal, resampled, MEAN),
    ("*mean, percentile bootstrap (not used)*", "Bernoulli 0.1", bernoulli(0.1), resampled, 0.1),
)


def coverage(draw: Draw, estimate: Estimate, truth: float, num_seeds: int) -> float:
    """The share of intervals that contain the truth."""
    rng = np.random.default_rng(num_seeds)
    hits = 0
    for _ in range(NUM_INTERVALS):
        found = estimate(draw(rng, num_seeds), rng)
        hits += found.low <= truth <= found.high
    return hits / NUM_INTERVALS


def main() -> None:
    lines = [
        "# How often our intervals contain the truth",
        "",
        *_wrapped(
            f"Shares of {NUM_INTERVALS:,} simulated 95 % intervals that contain the true value, in "
            "percent, by the number of seeds (standard error 0.5 to 1). "
            "`python benchmarks/interval_coverage.py` makes this page."
        ),
        "",
        f"| interval | data | {' | '.join(f'n = {size}' for size in SIZES)} |",
        f"| --- | --- | {' | '.join('---:' for _ in SIZES)} |",
    ]
    for name, data, draw, estimate, truth in ROWS:
        shares = [coverage(draw, estimate, truth, size) for size in SIZES]
        cells = " | ".join(f"{100 * found:.0f}" for found in shares)
        lines.append(f"| {name} | {data} | {cells} |")
        print(lines[-1], flush=True)
    lines += ["", "What follows for the verdicts:", ""]
    for remark in REMARKS:
        lines += _wrapped(f"- {remark}", "  ")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, 110, subsequent_indent=indent, break_on_hyphens=False)


REMARKS = (
    "Means, differences and ratios have t intervals for every number of seeds. They cover as they "
    "say where data are nearly normal, and the differences of pairs, on which most verdicts rest, "
    "also where data are skewed.",
    "Means of skewed data are covered too rarely by any simple interval of few seeds. Numbers of "
    "episodes until something is learned are therefore compared by geometric means.",
    "Shares of runs have Wilson's interval. The t interval of a rare event is a point whenever it "
    "was not seen.",
    "The bootstrap is used where there is no formula: for medians over a thousand runs, and for "
    "interquartile means over games, from five seeds on.",
    "With fewer than five seeds there is no verdict, whatever the interval.",
    "Families of comparisons (57 games, or the same question in several games) are corrected after "
    "Benjamini and Hochberg; over games there are sign tests (`findings/comparisons.py`).",
)


if __name__ == "__main__":
    main()
