"""Whole runs by the names of an agent and a game: as the paper has them, or fit for a laptop."""

from dataclasses import dataclass, replace

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.agents.presets import PRESETS, Preset
from ezgreedy.agents.sequence_presets import SEQUENCE_PRESETS, SequencePreset
from ezgreedy.atari.deep_sea import PREFIX as DEEP_SEA_PREFIX
from ezgreedy.atari.games import near
from ezgreedy.atari.gymnasium_env import PREFIX as GYMNASIUM_PREFIX
from ezgreedy.atari.lanes import make
from ezgreedy.atari.memory_chain import PREFIX as MEMORY_CHAIN_PREFIX
from ezgreedy.atari.minatar import MINATAR
from ezgreedy.atari.minatar import PREFIX as MINATAR_PREFIX
from ezgreedy.atari.protocol import R2D2_PROTOCOL, SMALL_WORLD, Protocol
from ezgreedy.exploration.schedules import Linear
from ezgreedy.learning.settings import MINATAR_TORSO, LearnerSettings
from ezgreedy.replay.prioritized import ImportanceExponent
from ezgreedy.running.settings import EvaluationSettings, RunSettings

SMALL_PREFIXES = (MINATAR_PREFIX, DEEP_SEA_PREFIX, MEMORY_CHAIN_PREFIX)

LARGEST_SMALL_SCREEN = 20  # Atari's convolutions need 36
# As MinAtar's own DQN: 128 hidden units, here half of them in each stream.
SMALL_HIDDEN_SIZE = 64
# R2D2 on what is small: 128 units wherever there are layers.
SMALL_SIZE = 128


def preset(name: str) -> Preset | SequencePreset:
    """An agent of the paper by name."""
    known: dict[str, Preset | SequencePreset] = {**PRESETS, **SEQUENCE_PRESETS}
    if name not in known:
        rule = f"be one of {', '.join(known)}{near(name, list(known))}"
        raise require.refuse("agent", rule, name)
    return known[name]


def paper_scale(agent: Preset | SequencePreset, game: str) -> RunSettings:
    """The paper's settings; small worlds, which it does not have, get their own networks."""
    if isinstance(agent, SequencePreset):
        return _sequence_paper_scale(agent, game)
    protocol = _usual_protocol(game)
    if is_small(game) or protocol.screen_size <= LARGEST_SMALL_SCREEN:
        agent = replace(agent, torso=MINATAR_TORSO, hidden_size=SMALL_HIDDEN_SIZE)
    return RunSettings(agent, game, protocol=protocol)


def laptop_scale(agent: Preset | SequencePreset, game: str) -> RunSettings:
    """A million frames in place of 200 or 30,000: what the paper spreads out is pulled together."""
    if isinstance(agent, SequencePreset):
        return _sequence_laptop_scale(agent, game)
    return _laptop_scale(agent, game)


SCALES = {"paper": paper_scale, "laptop": laptop_scale}


def _usual_protocol(game: str) -> Protocol:
    if is_minatar(game):
        return MINATAR
    if is_small(game):
        return SMALL_WORLD
    if game.startswith(GYMNASIUM_PREFIX):
        # It depends on what the environment shows.
        return make(game, rng=np.random.default_rng(0)).protocol
    return Protocol()


def is_minatar(game: str) -> bool:
    """Whether a game's name is one of MinAtar's."""
    return game.startswith(MINATAR_PREFIX)


def is_small(game: str) -> bool:
    """Whether a step of the game is a frame, and small networks are enough for it."""
    return game.startswith(SMALL_PREFIXES)


@dataclass(frozen=True)
class _Laptop:
    """What a Rainbow of a million frames does otherwise."""

    lanes: int
    steps_per_update: int
    updates_per_target_sync: int
    learning_rate: float
    adam_epsilon: float
    steps_of_decay: int


_LARGE_WORLD = _Laptop(
    lanes=1,
    steps_per_update=4,
    updates_per_target_sync=250,
    learning_rate=LearnerSettings.learning_rate,
    adam_epsilon=LearnerSettings.adam_epsilon,
    steps_of_decay=25_000,
)
_SMALL_WORLD = _Laptop(
    lanes=16,
    steps_per_update=16,  # a step is a frame, and the paper has 16 frames to an update
    updates_per_target_sync=62,  # Young and Tian (2019): 1,000 frames
    learning_rate=1e-3,
    adam_epsilon=3.125e-4,  # Obando-Ceron and Castro (2021)
    steps_of_decay=100_000,  # Young and Tian (2019)
)


def _laptop_scale(agent: Preset, game: str) -> RunSettings:
    """On Atari learning stays the paper's, but for how often the target network is renewed.

    Small worlds have settings of their own, which no paper gives for so short a run: the learning
    rate and the target network's period were selected in four short runs of Rainbow on MinAtar,
    with a seed that is used nowhere else.
    """
    settings = paper_scale(agent, game)
    assert isinstance(settings.agent, Preset)
    agent, learner = settings.agent, settings.agent.learner
    chosen = _SMALL_WORLD if is_small(game) else _LARGE_WORLD
    agent = replace(
        agent,
        replay_capacity=100_000,
        least_replay=2_000,
        steps_per_update=chosen.steps_per_update,
        importance_exponent=ImportanceExponent(first_addition=2_000, last_addition=500_000),
        learner=replace(
            learner,
            updates_per_target_sync=min(
                learner.updates_per_target_sync, chosen.updates_per_target_sync
            ),
            learning_rate=chosen.learning_rate,
            adam_epsilon=chosen.adam_epsilon,
        ),
    )
    if isinstance(agent.epsilon, Linear):
        epsilon = replace(agent.epsilon, steps=chosen.steps_of_decay, first_step=2_000)
        agent = replace(agent, epsilon=epsilon)
    return _shortened(replace(settings, agent=agent, lanes=chosen.lanes))


def _sequence_paper_scale(agent: SequencePreset, game: str) -> RunSettings:
    frames, lanes = 30_000_000_000, 320  # tables of the paper
    if not is_small(game):
        return RunSettings(agent, game, frames=frames, lanes=lanes, protocol=R2D2_PROTOCOL)
    torso = () if game.startswith(MEMORY_CHAIN_PREFIX) else MINATAR_TORSO
    agent = replace(
        agent,
        torso=torso,
        feature_size=SMALL_SIZE,
        memory_size=SMALL_SIZE,
        hidden_size=SMALL_SIZE,
    )
    if agent.distillation is not None:
        agent = replace(agent, distillation=replace(agent.distillation, torso=torso))
    protocol = SMALL_WORLD
    if is_minatar(game):
        protocol = replace(MINATAR, reward_bound=None, zeroes_discount_on_life_loss=False)
    return RunSettings(agent, game, frames=frames, lanes=lanes, protocol=protocol)


def _sequence_laptop_scale(agent: SequencePreset, game: str) -> RunSettings:
    """Fewer lanes and smaller batches; and where the world is small, shorter windows, more often.

    There a batch costs little and a million steps are few: every step is learned from some eight
    times in place of one and a half.
    """
    settings = paper_scale(agent, game)
    assert isinstance(settings.agent, SequencePreset)
    agent, small = settings.agent, is_small(game)
    learner = replace(agent.learner, batch_size=16, updates_per_target_sync=100)
    if small:
        learner = replace(learner, batch_size=32, length=40, burn_in=10, learning_rate=5e-4)
    agent = replace(
        agent,
        learner=learner,
        stride=20 if small else agent.stride,
        samples_per_insert=4.0 if small else agent.samples_per_insert,
        replay_capacity=100_000,
        least_windows=100,
    )
    return _shortened(replace(settings, agent=agent, lanes=16))


def _shortened(settings: RunSettings) -> RunSettings:
    """A million frames, with evaluations and reports to match."""
    small = is_small(settings.game)
    return replace(
        settings,
        frames=1_000_000,
        # Some games of MinAtar take 2,500 frames, whatever happens.
        evaluation=EvaluationSettings(200_000, 48_000, 16)
        if small
        else EvaluationSettings(100_000, 50_000, 4),
        frames_per_report=10_000,
    )
