"""A run as data: who plays what for how long, and how it is evaluated.

The defaults are the paper's. Everything here is part of a run's identity: with the same settings
the same numbers come out, on the same machine.
"""

from dataclasses import dataclass, field

from ezgreedy import requirements as require
from ezgreedy.agents.presets import Preset
from ezgreedy.agents.sequence_presets import SequencePreset
from ezgreedy.atari.protocol import Protocol

DEVICES = ("cpu", "cuda")


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
        lanes: environments that are played together. The paper has one for Rainbow, and for R2D2
            a fleet of 320, over which ε falls from lane to lane.
        protocol: how the game is presented.
        evaluation: when and how the agent is evaluated.
        frames_per_report: from one line about the training in results.jsonl to the next.
        device: where networks compute.
        threads: processor threads for one network; more than the cores at hand is ruinous.
    """

    agent: Preset | SequencePreset
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
        zeroes = self.protocol.zeroes_discount_on_life_loss
        if zeroes and isinstance(self.agent, SequencePreset):
            # Its windows know of one end alone, that of the game.
            rule = f"be False for {self.agent.name}, to which lives mean nothing"
            raise require.refuse("zeroes_discount_on_life_loss", rule, zeroes)
