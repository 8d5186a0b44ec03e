"""Runs small enough for a test: the real agents and games, with little networks and memories."""

from dataclasses import replace

from ezgreedy.agents.presets import PRESETS
from ezgreedy.exploration.schedules import Linear
from ezgreedy.running.settings import EvaluationSettings, laptop_scale


def small_run(agent="rainbow-ez", game="minatar/breakout", **changes):
    """A run of a few hundred steps that learns, evaluates, reports and fills its memory."""
    settings = laptop_scale(PRESETS[agent], game)
    learner = replace(settings.agent.learner, batch_size=4, updates_per_target_sync=5)
    if agent == "rainbow-cts":
        learner = replace(learner, updates_per_target_sync=1)
    preset = replace(
        settings.agent,
        learner=learner,
        hidden_size=8,
        num_atoms=11,
        replay_capacity=300,
        least_replay=40,
        steps_per_update=4,
    )
    if isinstance(preset.epsilon, Linear):
        preset = replace(preset, epsilon=Linear(1.0, 0.1, 200, first_step=20))
    settings = replace(
        settings,
        agent=preset,
        lanes=2 if game.startswith("minatar") else 1,
        frames=800,
        frames_per_report=200,
        evaluation=EvaluationSettings(frames_between=300, frames=60, lanes=2),
    )
    return replace(settings, **changes)
