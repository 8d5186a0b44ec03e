"""Runs in the number of the paper's study, of GENERATED numbers: for how much a page can hold.

Nobody played these games. Scores are curves out of a generator, and stand for nothing.
"""

from pathlib import Path

import numpy as np

from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.agents.rainbow.presets import RAINBOW_PRESETS
from ezgreedy.games.atari.atari57 import games
from ezgreedy.results.runs import Report, Run, Score
from ezgreedy.runs.settings_codec import as_plain

# The paper's eight agents, without controls of ours.
AGENTS = {
    name: {**RAINBOW_PRESETS, **R2D2_PRESETS}[name]
    for name in (
        *("rainbow", "rainbow-eps", "rainbow-ez", "rainbow-cts"),
        *("r2d2", "r2d2-rnd", "r2d2-bootstrap", "r2d2-ez"),
    )
}
FRAMES = 200_000_000


def generated_runs(num_games=57, num_seeds=5, num_points=200):
    """A run of every agent, game and seed, with as many evaluations and reports as points."""
    rng = np.random.default_rng(0)
    names = list(games())[:num_games]
    # Settings are real, so that runs are told apart as real ones are.
    settings = {
        agent: as_plain(preset.at_scale("paper", "Pong")) for agent, preset in AGENTS.items()
    }
    return [
        _run({**settings[agent], "game": name, "seed": seed, "frames": FRAMES}, num_points, rng)
        for agent in AGENTS
        for name in names
        for seed in range(num_seeds)
    ]


def generated_atlas(num_steps=5000):
    """The data of an atlas of 57 games and every condition, of GENERATED numbers as well."""
    rng = np.random.default_rng(1)
    policies = [f"μ = {mu:g}, n ≤ {cap:,}" for mu in (1.5, 2.0, 3.0) for cap in (100, 10_000)]
    measures = (
        *("return", "reward_per_1000_steps", "first_reward", "memories", "cells"),
        "lives_lost_per_1000_steps",
    )

    def interval(scale):
        value, width = scale * rng.standard_normal(), scale * rng.random()
        return [float(f"{part:.6g}") for part in (value, value - width, value + width)]

    conditions = []
    for name in games():
        for epsilon in (1.0, 0.1):
            for policy in ("ε-greedy", *policies):
                entry = {"game": name, "epsilon": epsilon, "policy": policy, "episodes": 5}
                entry |= {"cut_episodes": 0, "walks_without_reward": int(rng.integers(6))}
                entry |= {measure: interval(100.0) for measure in measures}
                if policy != "ε-greedy":
                    entry |= {f"more_{measure}": interval(10.0) for measure in measures}
                    entry["gain"] = interval(3.0)
                    signs = rng.integers(-1, 2, size=len(measures)).tolist()
                    entry["decided"] = {
                        f"more_{measure}": sign
                        for measure, sign in zip(measures, signs, strict=True)
                        if sign
                    }
                conditions.append(entry)
    shares = [
        {"epsilon": epsilon, "policy": policy, "share": epsilon}
        for epsilon in (1.0, 0.1)
        for policy in policies
    ]
    return {
        "num_steps": num_steps,
        "num_seeds": 5,
        "shares": shares,
        "conditions": conditions,
        "overall": [],
    }


def _run(settings, num_points, rng):
    game = games()[settings["game"]]
    frames = np.linspace(0, FRAMES, num_points + 1).astype(int).tolist()
    rise = np.linspace(0, rng.uniform(0.2, 2.5), num_points + 1)
    noise = 0.05 * rng.standard_normal(num_points + 1).cumsum() / np.sqrt(num_points)
    values = (game.random_score + (rise + noise) * (game.human_score - game.random_score)).tolist()
    return Run(
        Path("generated") / f"{game.name}-{settings['agent']['name']}-{settings['seed']}",
        settings,
        "generated",
        [Score(at, value) for at, value in zip(frames, values, strict=True)],
        [Report(at, 10, value, 0.01) for at, value in zip(frames[1:], values[1:], strict=True)],
        {},
    )
