"""Agents learn: a task whose optimum is known, through the very loop that trains on Atari."""

from dataclasses import replace

import pytest
import torch

from ezgreedy.agents.rainbow.presets import RAINBOW_PRESETS
from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.runs.training import Training
from support.signals import NUM_STEPS


@pytest.mark.parametrize("name", ["rainbow", "rainbow-eps", "rainbow-ez", "rainbow-cts"])
def test_every_agent_finds_the_known_optimum(name):
    torch.set_num_threads(1)
    settings = RAINBOW_PRESETS[name].at_scale("laptop", "gymnasium/support.signals:Signals-v0")
    agent = settings.agent
    learner = replace(agent.learner, learning_rate=2e-3, adam_epsilon=1e-6, discount=0.0)
    if learner.has_target_network:
        learner = replace(learner, updates_per_target_sync=20)
    if not isinstance(agent.epsilon, float):
        agent = replace(agent, epsilon=replace(agent.epsilon, steps=500, first_step=0))
    agent = replace(agent, learner=learner, hidden_size=16, replay_capacity=2_000, least_replay=100)
    settings = replace(
        settings,
        agent=agent,
        frames=1_500,
        evaluation=EvaluationSettings(frames_between=1_500, frames=400, lanes=2),
    )
    training = Training(settings)
    before = training.evaluate()["mean_return"]
    while not training.is_finished:
        training.step()
    after = training.evaluate()["mean_return"]
    assert before < 0.6 * NUM_STEPS
    # Evaluation explores on one step in a thousand, or is noisy.
    assert after >= 0.95 * NUM_STEPS
