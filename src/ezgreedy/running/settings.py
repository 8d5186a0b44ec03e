"""A run as data: who plays what for how long, and how it is evaluated.

The defaults are the paper's. Everything here is part of a run's identity: with the same settings
the same numbers come out, on the same machine.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.agents.presets import PRESETS, Preset
from ezgreedy.atari.games import near
from ezgreedy.atari.gymnasium_env import PREFIX as GYMNASIUM_PREFIX
from ezgreedy.atari.lanes import make
from ezgreedy.atari.minatar import MINATAR
from ezgreedy.atari.minatar import PREFIX as MINATAR_PREFIX
from ezgreedy.atari.protocol import Protocol
from ezgreedy.exploration.schedules import Linear
from ezgreedy.learning.settings import MINATAR_TORSO, LearnerSettings
from ezgreedy.replay.prioritized import ImportanceExponent

DEVICES = ("cpu", "cuda")
LARGEST_SMALL_SCREEN = 20  # Atari's torso needs 36


@dataclass(frozen=True)
class EvaluationSettings:
    """When and for how long the agent is evaluated, learning frozen.

    Args:
        frames_between: training frames from one evaluation to the next; the first is at frame 0.
        frames: how long one lasts, over all its lanes.
        lanes: environments played together. Episodes that are unfinished at the end are not
            counted, so every lane should have room for the longest one.
    """

    frames_between: int = 1_000_000  # DQN Zoo
    frames: int = 500_000  # DQN Zoo
    lanes: int = 4  # 125,000 frames each: more than the longest episode

    def __post_init__(self) -> None:
        for name in ("frames_between", "frames", "lanes"):
            require.integer(name, getattr(self, name), least=1)


@dataclass(frozen=True)
class RunSettings:
    """One training run.

    Args:
        agent: who plays and learns.
        game: what is played, as for `atari.make`.
        frames: how long, in emulator frames over all lanes.
        seed: any non-negative int.
        lanes: environments that are played together. The paper has one.
        protocol: how the game is presented.
        evaluation: when and how the agent is evaluated.
        frames_per_report: from one line about the training in results.jsonl to the next.
        device: where networks compute.
        threads: processor threads for one network; more than the cores at hand is ruinous.
    """

    agent: Preset
    game: str
    frames: int = 200_000_000  # tables of the paper
    seed: int = 0
    lanes: int = 1
    protocol: Protocol = field(default_factory=Protocol)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    frames_per_report: int = 100_000
    device: str = "cpu"
    threads: int = 1

    def __post_init__(self) -> None:
        require.integer("frames", self.frames, least=1)
        require.integer("seed", self.seed, least=0)
        require.integer("lanes", self.lanes, least=1)
        require.integer("frames_per_report", self.frames_per_report, least=1)
        require.one_of("device", self.device, DEVICES)
        require.integer("threads", self.threads, least=1)


def paper_scale(agent: Preset, game: str) -> RunSettings:
    """The paper's settings; other than Atari's games get their own protocol, small ones networks.

    MinAtar's networks are as large as its own DQN's: 128 hidden units, half in each stream.
    """
    protocol = _usual_protocol(game)
    if protocol.screen_size <= LARGEST_SMALL_SCREEN:
        agent = replace(agent, torso=MINATAR_TORSO, hidden_size=64)
    return RunSettings(agent, game, protocol=protocol)


def laptop_scale(agent: Preset, game: str) -> RunSettings:
    """A million frames in place of 200: what the paper spreads out is pulled together.

    On Atari learning stays the paper's, but for how often the target network is renewed. MinAtar
    has settings of its own, which no paper gives for so short a run: the learning rate and the
    period of the target network were selected in four short runs of Rainbow, with another seed.
    """
    settings = paper_scale(agent, game)
    small = _MINATAR if is_minatar(game) else _ATARI
    learner = replace(
        settings.agent.learner,
        updates_per_target_sync=min(
            settings.agent.learner.updates_per_target_sync, small.updates_per_target_sync
        ),
        learning_rate=small.learning_rate,
        adam_epsilon=small.adam_epsilon,
    )
    agent = replace(
        settings.agent,
        learner=learner,
        replay_capacity=100_000,
        least_replay=2_000,
        steps_per_update=small.steps_per_update,
        importance_exponent=ImportanceExponent(first_addition=2_000, last_addition=500_000),
    )
    if isinstance(agent.epsilon, Linear):
        epsilon = replace(agent.epsilon, steps=small.steps_of_decay, first_step=2_000)
        agent = replace(agent, epsilon=epsilon)
    return replace(
        settings,
        agent=agent,
        frames=1_000_000,
        lanes=small.lanes,
        evaluation=small.evaluation,
        frames_per_report=10_000,
    )


@dataclass(frozen=True)
class _Laptop:
    """What a run of a million frames does otherwise."""

    lanes: int
    steps_per_update: int
    updates_per_target_sync: int
    learning_rate: float
    adam_epsilon: float
    steps_of_decay: int
    evaluation: EvaluationSettings


_ATARI = _Laptop(
    lanes=1,
    steps_per_update=4,
    updates_per_target_sync=250,
    learning_rate=LearnerSettings.learning_rate,
    adam_epsilon=LearnerSettings.adam_epsilon,
    steps_of_decay=25_000,
    evaluation=EvaluationSettings(frames_between=100_000, frames=50_000, lanes=4),
)
_MINATAR = _Laptop(
    lanes=16,
    steps_per_update=16,  # a step is a frame, and the paper has 16 frames to an update
    updates_per_target_sync=62,  # Young and Tian (2019): 1,000 frames
    learning_rate=1e-3,
    adam_epsilon=3.125e-4,  # Obando-Ceron and Castro (2021)
    steps_of_decay=100_000,  # Young and Tian (2019)
    # Some games take 2,500 frames, whatever happens.
    evaluation=EvaluationSettings(frames_between=200_000, frames=48_000, lanes=16),
)
SCALES = {"paper": paper_scale, "laptop": laptop_scale}


def preset(name: str) -> Preset:
    """An agent of the paper by name."""
    if name not in PRESETS:
        rule = f"be one of {', '.join(PRESETS)}{near(name, list(PRESETS))}"
        raise require.refuse("agent", rule, name)
    return PRESETS[name]


def _usual_protocol(game: str) -> Protocol:
    if is_minatar(game):
        return MINATAR
    if game.startswith(GYMNASIUM_PREFIX):
        # It depends on what the environment shows.
        return make(game, rng=np.random.default_rng(0)).protocol
    return Protocol()


def is_minatar(game: str) -> bool:
    """Whether a game's name is one of MinAtar's."""
    return game.startswith(MINATAR_PREFIX)
