"""Does noise that lasts help TD3 learn? White, pink and held noise of equal power.

TD3 of Stable-Baselines3 on Gymnasium's MountainCarContinuous-v0, where actions cost and only the
goal pays: an agent that never finds it learns to stand still. The three noises have the same
standard deviation on every step, that of the RL Zoo for this task, and differ only in how long they
last. Held noise has the paper's law of durations, pink noise a sequence for every episode.

Noises share their seeds: initial weights and first states are the same. Training is much shorter
than the zoo's and the network smaller, so that all runs fit into an hour or two of one core.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ezgreedy.experiments.deep.sb3_training import (
    evaluated_training,
    first_goal,
    first_goals_in_words,
)
from ezgreedy.experiments.experiment import (
    Cell,
    Experiment,
    Record,
    Settings,
    fewest_seeds,
    results_by_cell,
)
from ezgreedy.experiments.readings import mean_curve
from ezgreedy.exploration.durations import Zeta
from ezgreedy.figures.colours import NOISE_COLOURS
from ezgreedy.findings.claims import (
    AS_STATED,
    OURS,
    Claim,
    Number,
    Statement,
    Summary,
    Table,
    names_with,
)
from ezgreedy.findings.intervals import mean_interval, paired_difference_interval
from ezgreedy.findings.judging import above
from ezgreedy.findings.panels import Panel
from ezgreedy.requirements import FloatArray
from ezgreedy.seeding import role_seed

if TYPE_CHECKING:
    from ezgreedy.exploration.noise import ActionNoise

SETTINGS: dict[str, Any] = {
    "task": "MountainCarContinuous-v0",
    "step_limit": 999,
    "timesteps": 24_000,
    # SB3's defaults but for the network and the batch, which are smaller.
    "td3": {"policy_kwargs": {"net_arch": [64, 64]}, "batch_size": 128, "learning_starts": 100},
    # hyperparams/td3.yml of rl-baselines3-zoo at 1337ead has Ornstein–Uhlenbeck noise of 0.5.
    "scale": 0.5,
    "mu": 2.0,
    "cap": 10_000,  # Paper: all experiments but Rainbow's
    "num_evaluations": 20,  # of the policy without noise, equally far apart
    "num_evaluation_episodes": 5,
    "largest_loss": 10.0,  # of held noise against pink noise; the goal pays 100
}
NOISES = {"white": "white noise", "pink": "pink noise", "held": "held noise"}

_MEASURE = (
    f"The mean return of {SETTINGS['num_evaluations']} evaluations without noise, equally far "
    "apart in training, counts. The paired t interval over seeds of its difference, {}, lies above "
    "{}."
)
STATEMENTS = {
    ("held", "white"): Statement(
        "At equal power, TD3 learns MountainCarContinuous-v0 sooner with held than with white "
        "noise.",
        OURS,
        _MEASURE.format("held − white", 0),
    ),
    ("pink", "white"): Statement(
        "At equal power, TD3 learns MountainCarContinuous-v0 sooner with pink than with white "
        "noise.",
        OURS,
        _MEASURE.format("pink − white", 0),
    ),
    ("held", "pink"): Statement(
        "At equal power, held noise costs TD3 on MountainCarContinuous-v0 less than "
        f"{SETTINGS['largest_loss']:g} points of return against pink noise.",
        OURS,
        _MEASURE.format("held − pink", f"−{SETTINGS['largest_loss']:g}"),
    ),
}


def cells(settings: Settings) -> list[Cell]:
    """Every noise."""
    return [Cell(noise, {"noise": noise}) for noise in NOISES]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """Trains one agent; returns what its evaluations and its training episodes earned."""
    import torch
    from gymnasium import make
    from stable_baselines3 import TD3
    from stable_baselines3.common.monitor import Monitor

    from ezgreedy.adapters.sb3_noise import PerEnvironmentNoise

    torch.set_num_threads(1)
    task = settings["task"]
    env = Monitor(make(task, max_episode_steps=settings["step_limit"]))
    noise = PerEnvironmentNoise(noise_of(settings, role_seed(seed, "noise")))
    model = TD3(
        "MlpPolicy", env, action_noise=noise, seed=seed, device="cpu", **dict(settings["td3"])
    )
    scores = evaluated_training(model, task, settings["timesteps"], settings, seed)
    return {
        "evaluations": scores,
        "training_return": float(np.mean(env.get_episode_rewards())),
        "first_goal": first_goal(env.get_episode_lengths(), settings["step_limit"]),
    }


def noise_of(settings: Settings, seed: int) -> "ActionNoise":
    """The noise of the cell, for one environment with one action."""
    from ezgreedy.exploration.noise import ColouredNoise, HeldNoise, WhiteNoise

    scale = settings["scale"]
    if settings["noise"] == "pink":
        return ColouredNoise(1, scale, seed=seed, length=settings["step_limit"])
    if settings["noise"] == "held":
        return HeldNoise(1, scale, Zeta(settings["mu"], settings["cap"]), seed=seed)
    return WhiteNoise(1, scale, seed=seed)


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """How the noises compare, and the agents' evaluations in training."""
    results = results_by_cell(records)
    claims = [_claim(settings, results, *pair) for pair in STATEMENTS]
    return Summary(claims, [_panel(settings, results)], tables=[_table(results)])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Evaluations against steps."""
    from ezgreedy.figures import curves, style

    return list(style.save(curves.learning_curves(summary.panels), directory / "evaluations"))


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _evaluations(results: Results, noise: str, share: float = 1.0) -> FloatArray:
    """The mean of every seed's last evaluations, this share of them, [seeds]."""
    rows = np.asarray([result["evaluations"] for result in results[noise]], dtype=np.float64)
    num_last = max(round(rows.shape[1] * share), 1)
    return np.asarray(rows[:, -num_last:].mean(axis=1))


def _claim(settings: Settings, results: Results, better: str, worse: str) -> Claim:
    numbers: dict[str, Number] = {}
    bound = -settings["largest_loss"] if worse == "pink" else 0.0
    gain = paired_difference_interval(_evaluations(results, better), _evaluations(results, worse))
    numbers[f"{better} − {worse}, mean evaluation"] = gain
    numbers[f"{better} − {worse}, last quarter"] = paired_difference_interval(
        _evaluations(results, better, 0.25), _evaluations(results, worse, 0.25)
    )
    for noise in (better, worse):
        numbers[f"mean evaluation, {NOISES[noise]}"] = mean_interval(_evaluations(results, noise))
    return Claim(
        STATEMENTS[better, worse],
        {AS_STATED: above(gain, bound)},
        numbers,
        fewest_seeds(results),
        note="Intervals are t intervals over seeds, which the noises share. Only the mean of all "
        "evaluations is judged; the last quarter of them shows what is left at the end.",
        key_numbers=names_with(numbers, "mean evaluation"),
    )


def _panel(settings: Settings, results: Results) -> Panel:
    num_points = settings["num_evaluations"]
    every = settings["timesteps"] // num_points
    steps = [every * (point + 1) for point in range(num_points)]
    curves = [
        mean_curve(
            label,
            steps,
            [result["evaluations"] for result in results[noise]],
            NOISE_COLOURS[noise],
        )
        for noise, label in NOISES.items()
    ]
    return Panel(
        settings["task"],
        curves,
        x_label="steps",
        y_label="return without noise",
        figure="evaluations",
    )


def _table(results: Results) -> Table:
    rows: list[list[Number]] = [
        [
            label,
            mean_interval([result["training_return"] for result in results[noise]]),
            first_goals_in_words(results[noise]),
        ]
        for noise, label in NOISES.items()
    ]
    return Table(
        "What training looked like",
        ["noise", "return in training", "goal first reached"],
        rows,
        "Means over seeds with t intervals; the goal's column has the median of steps over the "
        "runs that reached it, and how many did.",
    )


EXPERIMENT = Experiment(
    id="beyond-continuous-learning",
    title="Beyond the paper: SB3's TD3 with noise that lasts",
    shows="returns of SB3's TD3 on MountainCarContinuous with white, pink and held noise",
    settings=SETTINGS,
    quick={"timesteps": 2000, "num_evaluations": 2, "num_evaluation_episodes": 1},
    num_seeds=10,
    statements=tuple(STATEMENTS.values()),
    cost_seconds=4000.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    extra="sb3",
    modules=("stable_baselines3",),
)
