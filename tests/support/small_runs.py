"""Runs small enough for a test: the real agents and games, with little networks and memories."""

from dataclasses import replace

from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.agents.rainbow.presets import RAINBOW_PRESETS
from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.exploration.schedules import Linear
from ezgreedy.learning.settings import Convolution


def small_run(agent="rainbow-ez", game="minatar/breakout", **changes):
    """A run of a few hundred steps that learns, evaluates, reports and fills its memory."""
    if agent in R2D2_PRESETS:
        return small_sequence_run(agent, game, **changes)
    settings = RAINBOW_PRESETS[agent].at_scale("laptop", game)
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


def small_sequence_run(agent="r2d2", game="minatar/breakout", preset=None, **changes):
    """The same for an agent that learns from windows.

    Args:
        agent: its name.
        game: what it plays.
        preset: changes of the agent's settings.
        changes: of the run's.
    """
    settings = R2D2_PRESETS[agent].at_scale("laptop", game)
    learner = replace(
        settings.agent.learner, batch_size=4, length=8, burn_in=2, updates_per_target_sync=5
    )
    small = replace(
        settings.agent,
        learner=learner,
        stride=4,
        feature_size=8,
        memory_size=6,
        hidden_size=7,
        samples_per_insert=1.5,
        replay_capacity=300,
        least_windows=10,
    )
    if not game.startswith(("minatar", "memory_chain", "deep_sea")):
        torso = (Convolution(4, 16, 16), Convolution(4, 2))  # the least that shares fields
        small = replace(small, torso=torso)
        if small.distillation is not None:
            small = replace(small, distillation=replace(small.distillation, torso=torso))
    if small.distillation is not None:
        soon = {
            "whitening_observations": 20,
            "warm_up_updates": min(1, small.distillation.warm_up_updates),
        }
        small = replace(small, distillation=replace(small.distillation, **soon))
    if small.num_heads is not None:
        small = replace(small, num_heads=3)
    settings = replace(
        settings,
        agent=replace(small, **(preset or {})),
        lanes=3,
        frames=900,
        frames_per_report=200,
        evaluation=EvaluationSettings(frames_between=300, frames=60, lanes=2),
    )
    return replace(settings, **changes)
