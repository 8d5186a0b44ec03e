"""What exploration costs, as ratios to a plain baseline measured in the same run.

Absolute times mean nothing on a shared machine. Baseline and subject are timed in turns, and the
smallest time of each is kept. Run with `make bench`.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle

import numpy as np

from ezgreedy import (
    EpsilonGreedy,
    EZGreedy,
    StopOnDiscrepancy,
    StopOnReward,
    StopOnUnchanged,
    Zeta,
)
from ezgreedy.compilation import jit
from ezgreedy.exploration import compiled

NUM_ACTIONS, EPSILON = 18, 0.1
TURNS = 25


def smallest_times(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The smallest mean seconds per call of each, over turns taken alternately."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(TURNS):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(repeats):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / repeats)
    return best


def plain_epsilon_greedy(lanes: int) -> Callable[[], object]:
    """The usual vectorised lines: one generator, no state, no checks."""
    rng, greedy = np.random.default_rng(0), np.zeros(lanes, dtype=np.int64)

    def step() -> object:
        explore = rng.random(lanes) < EPSILON
        return np.where(explore, rng.integers(0, NUM_ACTIONS, lanes), greedy)

    return step


def numpy_costs() -> None:
    print("NumPy, cost of a call relative to plain vectorised ε-greedy (goal: 1.5 from 320 on)")
    print("  lanes   plain ns/lane-step   EpsilonGreedy      EZGreedy")
    for lanes, repeats in ((1, 2000), (8, 2000), (320, 1000), (10_000, 100)):
        greedy = np.zeros(lanes, dtype=np.int64)
        ez = EZGreedy(NUM_ACTIONS, EPSILON, Zeta(), lanes)
        eps = EpsilonGreedy(NUM_ACTIONS, EPSILON, lanes)
        times = smallest_times(
            {
                "plain": plain_epsilon_greedy(lanes),
                "eps": lambda eps=eps, greedy=greedy: eps(greedy),
                "ez": lambda ez=ez, greedy=greedy: ez(greedy),
            },
            repeats,
        )
        plain = times["plain"]
        print(
            f"{lanes:7d} {plain / lanes * 1e9:20.1f} "
            f"{times['eps'] / plain:14.2f}× {times['ez'] / plain:12.2f}×"
        )


def stopping_costs() -> None:
    lanes, rows = 320, 64
    print(f"\nEnding options at {lanes} lanes, relative to a call of EZGreedy without masks")
    rng, greedy = np.random.default_rng(0), np.zeros(lanes, dtype=np.int64)
    plain, told, stopped = (EZGreedy(NUM_ACTIONS, EPSILON, Zeta(), lanes) for _ in range(3))
    nowhere, some = np.zeros(lanes, dtype=bool), iter_rows(rng.random((rows, lanes)) < 0.01)
    observations, numbers = (
        iter_rows(rng.random((rows, lanes, 4))),
        iter_rows(rng.random((8, lanes))),
    )
    unchanged, reward = StopOnUnchanged(lanes), StopOnReward(lanes, above=0.99)
    discrepancy = StopOnDiscrepancy(lanes)

    def surprised() -> object:
        row = next(numbers)
        return discrepancy(rewards=row, values=row)

    times = smallest_times(
        {
            "plain": lambda: plain(greedy),
            "ends nothing (goal: 1.15)": lambda: told(greedy, ends=nowhere),
            "ends 1 % of lanes (goal: 1.15)": lambda: stopped(greedy, ends=next(some)),
            "StopOnUnchanged, 4 numbers (goal: 1)": lambda: unchanged(
                observations=next(observations)
            ),
            "StopOnReward (goal: 1)": lambda: reward(rewards=next(numbers)),
            "StopOnDiscrepancy (goal: 1)": surprised,
        },
        1000,
    )
    for name, seconds in times.items():
        print(f"  {name:<40} {seconds / times['plain']:5.2f}×")


def iter_rows(array: np.ndarray) -> Iterator[np.ndarray]:
    """The rows of an array over and over."""
    return cycle(list(array))


@jit
def bare_draws(stream, num_steps):
    total = 0.0
    for step in range(num_steps):
        total += compiled.coin(compiled.step_word(stream, step))
    return total


@jit
def ez_steps(stream, epsilon, table, num_actions, num_steps):
    total, option_action, remaining = 0, 0, 0
    for step in range(num_steps):
        option_action, remaining, exploring = compiled.explore(
            stream, step, epsilon, table, num_actions, option_action, remaining
        )
        total += option_action if exploring else 0
    return total


def compiled_costs() -> None:
    print("\nnumba, cost of a scalar εz step relative to a bare draw (goal: under 3)")
    stream, table, steps = compiled.lane_stream(0, 0), Zeta().inverse, 1_000_000
    for epsilon in (0.01, 0.1, 0.5, 1.0):
        calls = {
            "draw": lambda: bare_draws(stream, steps),
            "ez": lambda epsilon=epsilon: ez_steps(stream, epsilon, table, NUM_ACTIONS, steps),
        }
        for call in calls.values():
            call()
        times = smallest_times(calls, 1)
        print(
            f"  ε = {epsilon:<5g} draw {times['draw'] / steps * 1e9:5.2f} ns, "
            f"εz step {times['ez'] / times['draw']:5.2f}×"
        )


def import_cost() -> None:
    print("\nimport, relative to `import numpy` in a fresh interpreter (goal: at most 1.3)")

    def importing(module: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    times = smallest_times(
        {"nothing": importing("sys"), "numpy": importing("numpy"), "ours": importing("ezgreedy")}, 1
    )
    ratio = (times["ours"] - times["nothing"]) / (times["numpy"] - times["nothing"])
    print(f"  {ratio:.2f}×  (and {times['ours'] - times['nothing']:.3f} s in all)")


if __name__ == "__main__":
    numpy_costs()
    stopping_costs()
    compiled_costs()
    import_cost()
