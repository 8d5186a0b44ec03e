"""What the linear study's kernels save, as ratios to plain baselines measured in the same run.

The baselines are what one would write first: Gymnasium's MountainCar with NumPy, dm_control's
CartPole. What has no such baseline is divided by the C loop of DeepSea, whose steps are the unit
of the study's speeds. Times are processor time, in turns, and the smallest of each is kept.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
from dm_control import suite
from small_scale import EPSILON, NUM_EPISODES, SIZE, c_loop, compiled_c

from ezgreedy.agents.features import FourierBasis
from ezgreedy.agents.sarsa_lambda import SarsaLambda, SarsaSettings
from ezgreedy.compilation import jit
from ezgreedy.envs import cartpole
from ezgreedy.exploration.durations import Zeta
from ezgreedy.kernels.policies import exploration
from ezgreedy.kernels.sarsa_runs import Domain, Episodes, learn_by_sarsa

TURNS = 4
CARTPOLE_RANGES = [(-2.0, 2.0), (-1.0, 1.0), (-1.0, 1.0), (-10.0, 10.0), (-20.0, 20.0)]
MOUNTAIN_CAR_RANGES = [(-1.2, 0.6), (-0.07, 0.07)]


def steps_per_second(calls: dict[str, Callable[[], int]]) -> dict[str, float]:
    """The best of each over turns taken alternately; a call returns the steps it made."""
    best = dict.fromkeys(calls, 0.0)
    for _ in range(TURNS):
        for name, call in calls.items():
            begin = time.process_time()
            num_steps = call()
            best[name] = max(best[name], num_steps / (time.process_time() - begin))
    return best


def gymnasium_loop(num_steps: int = 5000) -> int:
    """SARSA(λ) of order 5 with εz-greedy, as one writes it with Gymnasium and NumPy."""
    env, rng = gymnasium.make("MountainCar-v0", max_episode_steps=5000), np.random.default_rng(0)
    coefficients = np.array([(i, j) for i in range(6) for j in range(6)])
    scales = 1.0 / np.maximum(np.linalg.norm(coefficients, axis=1), 1.0)
    low, span = env.observation_space.low, env.observation_space.high - env.observation_space.low
    durations = np.cumsum(np.arange(1, 10_001) ** -2.0)
    durations /= durations[-1]
    weights = np.zeros((3, 36))
    traces, state, action = np.zeros((3, 36)), env.reset(seed=0)[0], 0
    features = np.cos(np.pi * coefficients @ ((state - low) / span))
    remaining = 0
    for _ in range(num_steps):
        state, _, terminated, truncated, _ = env.step(action)
        reward = float(terminated)
        next_features = np.cos(np.pi * coefficients @ ((state - low) / span))
        values = weights @ next_features
        if remaining > 0:
            remaining -= 1
            next_action = action
        elif rng.random() < 0.05:
            next_action = int(rng.integers(3))
            remaining = int(np.searchsorted(durations, rng.random(), side="right"))
        else:
            next_action = int(rng.choice(np.flatnonzero(values == values.max())))
        error = reward + 0.99 * values[next_action] * (not terminated) - weights[action] @ features
        traces *= 0.99 * 0.9
        traces[action] += features
        weights += 0.005 * error * scales * traces
        features, action = next_features, next_action
        if terminated or truncated:
            state, _ = env.reset()
            traces[:], remaining = 0.0, 0
            features = np.cos(np.pi * coefficients @ ((state - low) / span))
    return num_steps


def mountain_car_kernel() -> int:
    settings = SarsaSettings(step_size=0.005, discount=0.99, decay=0.9)
    agent = SarsaLambda(FourierBasis(5, MOUNTAIN_CAR_RANGES), 3, settings)
    run = learn_by_sarsa(
        agent, Domain.MOUNTAIN_CAR, exploration(0.05, Zeta()), Episodes(1000, 5000)
    )
    return int(run.lengths.sum())


def dm_control_loop(num_steps: int = 2000) -> int:
    env = suite.load("cartpole", "swingup_sparse", task_kwargs={"random": 0})
    env.reset()
    actions = np.random.default_rng(0).integers(-1, 2, (num_steps, 1))
    for action in actions:
        if env.step(action).last():
            env.reset()
    return num_steps


@jit
def physics_steps(actions):
    state = cartpole.start(0.1, 0.1, 0.1, 0.1)
    total = 0.0
    for action in actions:
        x, theta, x_velocity, theta_velocity, reward, _ = cartpole.step(
            state[0], state[1], state[2], state[3], action
        )
        state = x, theta, x_velocity, theta_velocity
        total += reward
    return total


def cartpole_kernel(coupling: int | None, num_episodes: int) -> Callable[[], int]:
    is_full = coupling is None
    settings = SarsaSettings(
        step_size=0.0005,
        discount=0.99,
        decay=0.7,
        scales_step_sizes=is_full,
        bounds_step_size=is_full,
        initial_variance=0.001,
        precision=32 if is_full else 64,
    )
    basis = FourierBasis(7, CARTPOLE_RANGES, coupling)

    def run() -> int:
        agent = SarsaLambda(basis, 3, settings)
        episodes = Episodes(num_episodes, 1000)
        learning = learn_by_sarsa(agent, Domain.CARTPOLE, exploration(0.01, Zeta()), episodes)
        return int(learning.lengths.sum())

    return run


def deep_sea_c() -> Callable[[], int]:
    """The C loop of DeepSea, which stays loaded when its file is gone."""
    with tempfile.TemporaryDirectory() as directory:
        loop = c_loop(compiled_c(Path(directory)), exploration(EPSILON, Zeta()), NUM_EPISODES)

    def run() -> int:
        loop()
        return NUM_EPISODES * SIZE

    return run


def main() -> None:
    actions = np.random.default_rng(0).integers(0, 3, 1_000_000)

    def physics() -> int:
        physics_steps(actions)
        return len(actions)

    calls = {
        "MountainCar SARSA(λ) order 5, Gymnasium + NumPy": gymnasium_loop,
        "MountainCar SARSA(λ) order 5, kernel": mountain_car_kernel,
        "CartPole physics, dm_control": dm_control_loop,
        "CartPole physics, compiled": physics,
        "CartPole SARSA(λ), 526 features": cartpole_kernel(2, 200),
        "CartPole SARSA(λ), 32,768 features": cartpole_kernel(None, 20),
        "DeepSea Q-learning, C": deep_sea_c(),
    }
    for call in calls.values():
        call()
    speeds = steps_per_second(calls)
    for name, speed in speeds.items():
        print(f"{name:50s} {speed:12,.0f} steps/s")
    numpy, ours, theirs, compiled, pairs, full, c = speeds.values()
    print(f"MountainCar: {ours / numpy:.0f}× Gymnasium + NumPy (goal: 200)")
    print(f"CartPole physics: {compiled / theirs:.0f}× dm_control (goal: 300)")
    print(f"CartPole, 526 features: a step takes {c / pairs:,.0f} of the C loop's")
    print(f"CartPole, 32,768 features: a step takes {c / full:,.0f} of the C loop's")


if __name__ == "__main__":
    main()
