"""Whole runs by the names of an agent and a game: as the paper has them, or fit for a laptop."""

from dataclasses import replace

from ezgreedy import requirements as require
from ezgreedy.agents.presets import PRESETS, Preset
from ezgreedy.agents.sequence_presets import SEQUENCE_PRESETS, SequencePreset
from ezgreedy.atari.deep_sea import PREFIX as DEEP_SEA_PREFIX
from ezgreedy.atari.games import near
from ezgreedy.atari.memory_chain import PREFIX as MEMORY_CHAIN_PREFIX
from ezgreedy.atari.minatar import MINATAR
from ezgreedy.atari.minatar import PREFIX as MINATAR_PREFIX
from ezgreedy.atari.protocol import R2D2_PROTOCOL, SMALL_WORLD
from ezgreedy.exploration.schedules import Linear
from ezgreedy.learning.settings import MINATAR_TORSO
from ezgreedy.replay.prioritized import ImportanceExponent
from ezgreedy.running.settings import EvaluationSettings, RunSettings

SMALL_PREFIXES = (MINATAR_PREFIX, DEEP_SEA_PREFIX, MEMORY_CHAIN_PREFIX)

# As MinAtar's own DQN: 128 hidden units, here half of them in each stream.
MINATAR_HIDDEN_SIZE = 64
MINATAR_LEARNING_RATE = 2.5e-4
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
    if is_small(game):
        agent = replace(agent, torso=MINATAR_TORSO, hidden_size=MINATAR_HIDDEN_SIZE)
        return RunSettings(agent, game, protocol=MINATAR if is_minatar(game) else SMALL_WORLD)
    return RunSettings(agent, game)


def laptop_scale(agent: Preset | SequencePreset, game: str) -> RunSettings:
    """A million frames in place of 200 or 30,000: what the paper spreads out is pulled together."""
    if isinstance(agent, SequencePreset):
        return _sequence_laptop_scale(agent, game)
    return _laptop_scale(agent, game)


SCALES = {"paper": paper_scale, "laptop": laptop_scale}


def is_minatar(game: str) -> bool:
    """Whether a game's name is one of MinAtar's."""
    return game.startswith(MINATAR_PREFIX)


def is_small(game: str) -> bool:
    """Whether a step of the game is a frame, and small networks are enough for it."""
    return game.startswith(SMALL_PREFIXES)


def _laptop_scale(agent: Preset, game: str) -> RunSettings:
    """Learning itself stays the paper's, but for published settings where the world is small."""
    settings = paper_scale(agent, game)
    assert isinstance(settings.agent, Preset)
    agent, small = settings.agent, is_small(game)
    least_replay, learner = 2_000, agent.learner
    agent = replace(
        agent,
        replay_capacity=100_000,
        least_replay=least_replay,
        # On MinAtar a step is a frame; the paper has 16 frames to an update.
        steps_per_update=16 if small else agent.steps_per_update,
        importance_exponent=ImportanceExponent(first_addition=least_replay, last_addition=500_000),
        learner=replace(
            learner,
            updates_per_target_sync=min(learner.updates_per_target_sync, 500),
            # Obando-Ceron and Castro (2021), for Rainbow on MinAtar.
            learning_rate=MINATAR_LEARNING_RATE if small else learner.learning_rate,
            adam_epsilon=3.125e-4 if small else learner.adam_epsilon,
        ),
    )
    if isinstance(agent.epsilon, Linear):
        steps = 100_000 if small else 50_000  # Young and Tian (2019): 100K frames on MinAtar
        epsilon = replace(agent.epsilon, steps=steps, first_step=least_replay)
        agent = replace(agent, epsilon=epsilon)
    return _shortened(replace(settings, agent=agent, lanes=8 if small else 1))


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
        evaluation=EvaluationSettings(
            frames_between=100_000, frames=24_000 if small else 50_000, lanes=8 if small else 4
        ),
        frames_per_report=10_000,
    )
