"""How does an agent of Stable-Baselines3 do while it is trained? Evaluations along the way."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ezgreedy.experiments.experiment import Settings

_EVALUATION_SEEDS = 1_000_000  # added to the seed, so that evaluations have other first states


def evaluated_training(
    model: Any, task: str, timesteps: int, settings: Settings, seed: int
) -> list[float]:
    """Trains a model; returns the mean returns of its evaluations, equally far apart.

    Args:
        model: an algorithm of SB3 with its environment, not trained yet.
        task: Gymnasium's id of the environment to evaluate in.
        timesteps: steps of the training.
        settings: `num_evaluations`, and `num_evaluation_episodes` of each.
        seed: the run's seed.
    """
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    examined = make_vec_env(task, seed=_EVALUATION_SEEDS + seed)
    every = timesteps // settings["num_evaluations"]
    num_episodes = settings["num_evaluation_episodes"]
    scores: list[float] = []

    def evaluate(*_: Any) -> bool:
        if model.num_timesteps % every == 0 and len(scores) < settings["num_evaluations"]:
            scores.append(float(evaluate_policy(model, examined, num_episodes)[0]))
        return True

    model.learn(timesteps, callback=evaluate)
    return scores


def first_goal(lengths: Sequence[int], step_limit: int) -> int | None:
    """Steps until an episode first ended before its limit; None if none did."""
    steps = np.cumsum(lengths)
    early = np.flatnonzero(np.asarray(lengths) < step_limit)
    return int(steps[early[0]]) if len(early) else None


def first_goals_in_words(results: Sequence[Mapping[str, Any]]) -> str:
    """The median over the runs that reached the goal, and how many did."""
    found = [result["first_goal"] for result in results if result["first_goal"] is not None]
    median = f"{np.median(found):,.0f} steps" if found else "never"
    return f"{median} ({len(found)} of {len(results)} runs)"
