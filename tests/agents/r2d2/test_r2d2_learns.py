"""What R2D2 learns in minutes: to remember a cue; and that without a memory nobody does."""

from dataclasses import replace

import pytest
import torch

from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.runs.training import Training

torch.set_num_threads(1)

SOLVED = 0.95  # of 1; a random answer earns 0


def chain(length, frames, **changes):
    """A laptop's run on the memory chain with a smaller network."""
    settings = R2D2_PRESETS["r2d2"].at_scale("laptop", f"memory_chain/{length}")
    learner = replace(settings.agent.learner, learning_rate=1e-3)
    agent = replace(
        settings.agent,
        learner=learner,
        feature_size=64,
        memory_size=64,
        hidden_size=64,
        samples_per_insert=2.0,
        **changes,
    )
    evaluation = EvaluationSettings(frames_between=10_000, frames=100 * (length + 1), lanes=10)
    return replace(settings, agent=agent, frames=frames, evaluation=evaluation)


def scores(settings, enough=float("inf")):
    """Mean returns of evaluations, until one is enough."""
    training, found = Training(settings), []
    while True:
        while training.evaluation_is_due:
            found.append(training.evaluate()["mean_return"])
            if found[-1] >= enough:
                return found
        if training.is_finished:
            return found
        training.step()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_cue_is_remembered_for_ten_steps(seed):
    assert scores(replace(chain(10, 150_000), seed=seed), SOLVED)[-1] >= SOLVED


@pytest.mark.slow
def test_without_a_memory_answers_are_guesses():
    """Of 100 answers ±1 the mean has a standard deviation of 0.1."""
    found = scores(chain(10, 50_000, has_memory=False))
    assert max(abs(score) for score in found) < 0.5


@pytest.mark.slow
def test_a_head_of_its_own_for_each_episode_finds_the_treasure_and_keeps_it():
    """DeepSea of 10 rows, where a random dive succeeds once in 1,024."""
    settings = R2D2_PRESETS["r2d2-bootstrap"].at_scale("laptop", "deep_sea/10")
    learner = replace(settings.agent.learner, learning_rate=1e-3)
    agent = replace(settings.agent, learner=learner)
    agent = replace(agent, feature_size=32, memory_size=32, hidden_size=32)
    evaluation = EvaluationSettings(frames_between=5_000, frames=200, lanes=4)
    settings = replace(settings, agent=agent, frames=100_000, evaluation=evaluation)
    assert scores(settings, 0.9)[-1] >= 0.9
