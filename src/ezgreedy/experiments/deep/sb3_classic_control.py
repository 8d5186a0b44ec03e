"""Does εz-greedy help an agent that people already have? SB3's DQN on three classic tasks.

DQN of Stable-Baselines3 with the hyper-parameters that the RL Zoo publishes for each task, and
`adapters.sb3` for every policy: ε-greedy is the same adapter with durations of 1, so that nothing
but the durations differs. MountainCar-v0 and Acrobot-v1 reward only the goal; in CartPole-v1
exploration is not the problem. εz-greedy has the adapter's default law, and either the zoo's ε or,
at every step, the ε with which it takes as large a share of exploratory steps as ε-greedy does.

Policies share their seeds: initial weights, first states and coins are the same.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
from ezgreedy.experiments.readings import EQUAL_BUDGET, POLICIES_AND_CONTROL, mean_curve
from ezgreedy.exploration.durations import Fixed, Zeta, matched_epsilon
from ezgreedy.figures.colours import POLICY_COLOURS
from ezgreedy.findings.claims import OURS, Claim, Number, Statement, Summary, Table, names_with
from ezgreedy.findings.intervals import Interval, mean_interval, paired_difference_interval
from ezgreedy.findings.judging import Side, above
from ezgreedy.findings.panels import Panel
from ezgreedy.requirements import FloatArray

# hyperparams/dqn.yml of rl-baselines3-zoo at 22e3ff2; there is one environment, and no wrapper.
ZOO: dict[str, dict[str, Any]] = {
    "MountainCar-v0": {
        "learning_rate": 4e-3,
        "batch_size": 128,
        "buffer_size": 10_000,
        "learning_starts": 1000,
        "gamma": 0.98,
        "target_update_interval": 600,
        "train_freq": 16,
        "gradient_steps": 8,
        "exploration_fraction": 0.2,
        "exploration_final_eps": 0.07,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
    "Acrobot-v1": {
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "learning_starts": 0,
        "gamma": 0.99,
        "target_update_interval": 250,
        "train_freq": 4,
        "gradient_steps": -1,
        "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
    "CartPole-v1": {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
}

SETTINGS: dict[str, Any] = {
    "zoo": ZOO,
    "timesteps": {"MountainCar-v0": 120_000, "CartPole-v1": 50_000, "Acrobot-v1": 100_000},
    "mu": 2.0,
    "cap": 10_000,  # Paper: all experiments but Rainbow's
    "num_evaluations": 20,  # of the greedy policy, equally far apart
    "num_evaluation_episodes": 5,
    "largest_loss": 25.0,  # on CartPole, of a return of 500 at most
}

# How εz-greedy's ε is set, and the policy with it.
READINGS = {"equal ε": "ez", "equal budget": EQUAL_BUDGET}
# Tasks whose episodes end early only at the goal.
GOALS = ("MountainCar-v0", "Acrobot-v1")

_MEASURE = (
    f"The mean return of {SETTINGS['num_evaluations']} evaluations of the greedy policy, equally "
    "far apart in training, counts. The paired t interval over seeds of its difference εz − ε lies "
    "above {}. Readings: εz-greedy with the zoo's ε, or with as large a share of exploratory steps."
)


def _learns_sooner(task: str) -> Statement:
    sentence = (
        f"SB3's DQN with the zoo's settings learns {task} sooner with εz- than with ε-greedy."
    )
    return Statement(sentence, OURS, _MEASURE.format(0))


STATEMENTS = {
    "MountainCar-v0": _learns_sooner("MountainCar-v0"),
    "CartPole-v1": Statement(
        "On CartPole-v1, where exploration is not the problem, εz-greedy costs SB3's DQN less than "
        f"{SETTINGS['largest_loss']:g} of 500 points of return.",
        OURS,
        _MEASURE.format(f"−{SETTINGS['largest_loss']:g}"),
    ),
    "Acrobot-v1": _learns_sooner("Acrobot-v1"),
}


def cells(settings: Settings) -> list[Cell]:
    """Every task with ε-greedy, and with εz-greedy at equal ε and at equal budget."""
    return [
        Cell(_cell(task, policy), {"task": task, "policy": policy})
        for task in settings["timesteps"]
        for policy in POLICIES_AND_CONTROL
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """Trains one agent; returns what its evaluations and its training episodes earned."""
    import torch
    from gymnasium import make
    from stable_baselines3.common.monitor import Monitor

    torch.set_num_threads(1)
    task, timesteps = settings["task"], settings["timesteps"][settings["task"]]
    env = Monitor(make(task))
    model = _model(settings, env, seed)
    scores = evaluated_training(model, task, timesteps, settings, seed)
    lengths = env.get_episode_lengths()
    counters = model.explore.counters
    return {
        "evaluations": scores,
        "training_return": float(np.mean(env.get_episode_rewards())),
        "first_goal": first_goal(lengths, env.spec.max_episode_steps) if task in GOALS else None,
        "exploratory_share": round(counters.explored / counters.steps, 6),
    }


def _model(settings: Settings, env: Any, seed: int) -> Any:
    """SB3's DQN as the zoo has it, exploring as the cell's policy says."""
    from ezgreedy.adapters.sb3 import EZGreedyDQN

    policy = settings["policy"]
    law = Fixed(1) if policy == "eps" else Zeta(settings["mu"], settings["cap"])
    zoo = settings["zoo"][settings["task"]]
    model = EZGreedyDQN("MlpPolicy", env, durations=law, seed=seed, device="cpu", **zoo)
    if policy == EQUAL_BUDGET:
        share = model.exploration_schedule
        model.exploration_schedule = lambda progress: matched_epsilon(share(progress), law)
    return model


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """Whether εz-greedy helps on each task, and its evaluations in training."""
    results = results_by_cell(records)
    tasks = list(settings["timesteps"])
    claims = [_claim(settings, results, task) for task in tasks]
    panels = [_panel(settings, results, task) for task in tasks]
    return Summary(claims, panels, tables=[_table(results, tasks)])


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """Evaluations against steps, one panel for each task."""
    from ezgreedy.figures import curves, style

    figure = curves.learning_curves(summary.panels, shares_legend=True)
    return list(style.save(figure, directory / "evaluations"))


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def _cell(task: str, policy: str) -> str:
    return f"{task}, {policy}"


def _mean_evaluations(results: Results, task: str, policy: str) -> FloatArray:
    """The mean of every seed's evaluations, [seeds]."""
    rows = [result["evaluations"] for result in results[_cell(task, policy)]]
    return np.asarray(rows, dtype=np.float64).mean(axis=1)


def _last_evaluations(results: Results, task: str, policy: str) -> FloatArray:
    """The mean of every seed's last quarter of evaluations, [seeds]."""
    rows = np.asarray([result["evaluations"] for result in results[_cell(task, policy)]])
    return np.asarray(rows[:, -max(rows.shape[1] // 4, 1) :].mean(axis=1))


def _claim(settings: Settings, results: Results, task: str) -> Claim:
    numbers: dict[str, Number] = {}
    readings: dict[str, Side] = {}
    bound = 0.0 if task in GOALS else -settings["largest_loss"]
    measures = {"mean evaluation": _mean_evaluations, "last quarter": _last_evaluations}
    for reading, policy in READINGS.items():
        for name, measure in measures.items():
            gain = paired_difference_interval(
                measure(results, task, policy), measure(results, task, "eps")
            )
            numbers[f"{reading}: εz − ε, {name}"] = gain
        readings[reading] = above(_interval(numbers[f"{reading}: εz − ε, mean evaluation"]), bound)
    for name, measure in measures.items():
        for policy, label in POLICIES_AND_CONTROL.items():
            numbers[f"{name}, {label}"] = mean_interval(measure(results, task, policy))
    return Claim(
        STATEMENTS[task],
        readings,
        numbers,
        fewest_seeds(results),
        note="Intervals are t intervals over seeds, which the policies share. Only the mean of all "
        "evaluations is judged; the last quarter of them shows what is left at the end.",
        key_numbers=names_with(numbers, "εz − ε, mean evaluation"),
    )


def _interval(number: Number) -> Interval:
    assert isinstance(number, Interval)
    return number


def _panel(settings: Settings, results: Results, task: str) -> Panel:
    num_points = settings["num_evaluations"]
    every = settings["timesteps"][task] // num_points
    steps = [every * (point + 1) for point in range(num_points)]
    curves = [
        mean_curve(
            label,
            steps,
            [result["evaluations"] for result in results[_cell(task, policy)]],
            POLICY_COLOURS[policy],
        )
        for policy, label in POLICIES_AND_CONTROL.items()
    ]
    return Panel(task, curves, x_label="steps", y_label="return of the greedy policy")


def _table(results: Results, tasks: Sequence[str]) -> Table:
    rows: list[list[Number]] = []
    for task in tasks:
        for policy, label in POLICIES_AND_CONTROL.items():
            own = results[_cell(task, policy)]
            rows.append(
                [
                    task,
                    label,
                    mean_interval([result["training_return"] for result in own]),
                    mean_interval([result["exploratory_share"] for result in own]),
                    first_goals_in_words(own) if task in GOALS else "–",
                ]
            )
    return Table(
        "What training looked like",
        ["task", "policy", "return in training", "exploratory steps", "goal first reached"],
        rows,
        "Means over seeds with t intervals; the goal's column has the median of steps over the "
        "runs that reached it, and how many did.",
    )


EXPERIMENT = Experiment(
    id="sb3-classic-control",
    title="Does it help? SB3's DQN on classic tasks",
    shows="returns of SB3's DQN with ε- and εz-greedy: MountainCar, Acrobot, CartPole",
    settings=SETTINGS,
    quick={
        "timesteps": {"MountainCar-v0": 2000, "CartPole-v1": 2000, "Acrobot-v1": 2000},
        "num_evaluations": 2,
        "num_evaluation_episodes": 1,
    },
    num_seeds=10,
    statements=tuple(STATEMENTS.values()),
    cost_seconds=18_000.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
    extra="sb3",
    modules=("stable_baselines3",),
)
