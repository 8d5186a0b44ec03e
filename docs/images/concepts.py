"""Draws the figures of docs/concepts.md: `python docs/images/concepts.py`."""

from pathlib import Path

import numpy as np

from ezgreedy import Fixed, Geometric, Uniform, Zeta, exploratory_share
from ezgreedy.figures import style

HERE = Path(__file__).parent


def duration_laws():
    """Three laws of about the same mean."""
    figure = style.new_figure(6.0, 3.0)
    axis = figure.subplots()
    n = np.arange(1, 10_001)
    laws = {
        "zeta, μ = 2": Zeta(),
        "exponential, λ = 0.832": Geometric(0.832),
        "uniform, N = 11": Uniform(11),
    }
    for label, law in laws.items():
        chances = law.pmf(n)
        shown = chances > 1e-9
        axis.plot(n[shown], chances[shown], label=f"{label}: mean {law.mean:.2f}")
    axis.set(xscale="log", yscale="log", xlabel="duration n, in steps", ylabel="probability z(n)")
    axis.legend()
    return figure


def shares():
    """How much more than ε of all steps is exploratory."""
    figure = style.new_figure(6.0, 3.0)
    axis = figure.subplots()
    epsilon = np.linspace(0.0, 1.0, 201)
    for label, law in (
        ("ε-greedy", Fixed(1)),
        ("zeta, n ≤ 10,000", Zeta()),
        ("zeta, n ≤ 100", Zeta(cap=100)),
    ):
        axis.plot(epsilon, [exploratory_share(each, law) for each in epsilon], label=label)
    axis.set(xlabel="ε", ylabel="share of exploratory steps", xlim=(0, 1), ylim=(0, 1))
    axis.legend()
    return figure


if __name__ == "__main__":
    with style.voice():
        for name, figure in {
            "duration_laws": duration_laws(),
            "exploratory_share": shares(),
        }.items():
            (HERE / f"{name}.svg").write_text(style.svg(figure), encoding="utf-8")
