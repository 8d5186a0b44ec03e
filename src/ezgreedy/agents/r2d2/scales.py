"""Complete runs of R2D2: at the paper's scale, or at that of a laptop."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ezgreedy.agents.r2d2.settings import R2D2Settings
from ezgreedy.agents.run_settings import EvaluationSettings, RunSettings
from ezgreedy.agents.scales import shortened
from ezgreedy.games.protocol import R2D2_PROTOCOL, Protocol
from ezgreedy.games.registry import family_of
from ezgreedy.learning.settings import ATARI_TORSO, MINATAR_TORSO, Convolution

SMALL_SIZE = 128  # units of each layer in small games
# Not in the paper. At 83,000 frames a second this is every 20 minutes, and an evaluation takes one
# processor core 11; Rainbow's cadence, every million frames, would hold the fleet up.
PAPER_EVALUATION = EvaluationSettings(frames_between=100_000_000, frames=500_000)


def paper_scale(agent: R2D2Settings, game: str) -> RunSettings:
    """The paper's settings; games other than Atari's get their own protocol.

    Networks for small games have the size of MinAtar's own DQN: 128 hidden units in each layer.
    """
    protocol = _protocol(game)
    # Tables of the paper.
    return RunSettings(
        _fitted(agent, game),
        game,
        frames=30_000_000_000,
        lanes=320,
        protocol=protocol,
        evaluation=PAPER_EVALUATION,
    )


def laptop_scale(agent: R2D2Settings, game: str) -> RunSettings:
    """Fewer lanes and smaller batches; in small games also shorter windows and more updates.

    There a batch costs little and a million steps are few, so every step is used about eight times
    instead of one and a half. On MinAtar, four small batches work better than one of their total
    size, and its usual discount better than Atari's; results/README.md says how this was selected.
    """
    family = family_of(game)
    agent = _fitted(agent, game)
    is_small = family.needs_small_network(_protocol(game))
    learner = replace(agent.learner, batch_size=16, updates_per_target_sync=100)
    if is_small:
        learner = replace(learner, batch_size=32, length=40, burn_in=10, learning_rate=5e-4)
    agent = replace(
        agent,
        learner=replace(learner, **_LEARNERS.get(family.name, {})),
        returns=replace(agent.returns, **_RETURNS.get(family.name, {})),
        stride=20 if is_small else agent.stride,
        samples_per_insert=4.0 if is_small else agent.samples_per_insert,
        replay_capacity=100_000,
        least_windows=100,
    )
    settings = replace(paper_scale(agent, game), agent=agent, lanes=16)
    return shortened(settings, is_small)


SCALES: dict[str, Callable[[R2D2Settings, str], RunSettings]] = {
    "paper": paper_scale,
    "laptop": laptop_scale,
}

# Changes for a laptop, by kind of game.
_LEARNERS: dict[str, dict[str, Any]] = {"minatar": {"batch_size": 8, "adam_epsilon": 1e-4}}
_RETURNS: dict[str, dict[str, Any]] = {"minatar": {"discount": 0.99}}  # Young and Tian (2019)


def _protocol(game: str) -> Protocol:
    protocol = family_of(game).protocol(game)
    if protocol == Protocol():
        return R2D2_PROTOCOL
    return replace(protocol, reward_bound=None, zeroes_discount_on_life_loss=False)


def _fitted(agent: R2D2Settings, game: str) -> R2D2Settings:
    """The agent with networks that fit the observations of the game."""
    family, protocol = family_of(game), _protocol(game)
    is_small = family.needs_small_network(protocol)
    if protocol != R2D2_PROTOCOL:
        torso = MINATAR_TORSO if is_small else ATARI_TORSO
        agent = _with_torso(agent, torso if family.has_pictures else ())
    if is_small:
        size = SMALL_SIZE
        agent = replace(agent, feature_size=size, memory_size=size, hidden_size=size)
    return agent


def _with_torso(agent: R2D2Settings, torso: tuple[Convolution, ...]) -> R2D2Settings:
    """The agent with other convolutions in all its networks."""
    if agent.distillation is not None:
        agent = replace(agent, distillation=replace(agent.distillation, torso=torso))
    return replace(agent, torso=torso)
