"""Compare duration laws: how far a walk gets, and how many exploratory steps that takes.

The world is an endless line whose greedy policy walks back to the start. The table shows the
farthest cell reached within a thousand steps, for the paper's three families of laws, once at equal
ε and once with an equal share of exploratory steps.
"""

import numpy as np

from ezgreedy import EZGreedy, Fixed, Geometric, Uniform, Zeta, exploratory_share, matched_epsilon

LANES, STEPS = 500, 1000


def farthest(durations, epsilon: float) -> float:
    """Returns the distance of the farthest cell a walk reaches, averaged over lanes."""
    explore = EZGreedy(2, epsilon, durations, lanes=LANES, seed=0)
    cells, reach = np.zeros(LANES, dtype=np.int64), np.zeros(LANES, dtype=np.int64)
    for _ in range(STEPS):
        actions = explore((cells < 0).astype(np.int64))
        cells = cells + np.where(actions == 1, 1, -1)
        reach = np.maximum(reach, np.abs(cells))
    return float(reach.mean())


def main() -> None:
    """Prints one row per law."""
    print("law                         mean  P(n=1)   ε=0.1: share  reach   10% share: ε  reach")
    for name, law in {
        "fixed n = 1 (ε-greedy)": Fixed(1),
        "geometric λ = 0.8": Geometric(0.8),
        "uniform N = 10": Uniform(10),
        "zeta μ = 3": Zeta(3.0),
        "zeta μ = 2, n ≤ 100": Zeta(2.0, cap=100),
        "zeta μ = 2, n ≤ 10,000": Zeta(2.0),
        "zeta μ = 1.5, n ≤ 10,000": Zeta(1.5),
    }.items():
        epsilon = matched_epsilon(0.1, law)
        print(
            f"{name:<26s} {law.mean:6.2f} {law.pmf(1):6.3f}"
            f" {exploratory_share(0.1, law):12.1%} {farthest(law, 0.1):7.1f}"
            f" {epsilon:13.4f} {farthest(law, epsilon):6.1f}"
        )


if __name__ == "__main__":
    main()
