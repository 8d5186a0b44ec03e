"""A run as data: who plays what for how long, and how it is evaluated.

The defaults are the paper's. Everything here is part of a run's identity: with the same settings
the same numbers come out, on the same machine.
"""

from dataclasses import dataclass, field

from ezgreedy import requirements as require
from ezgreedy.agents.presets import Preset
from ezgreedy.agents.sequence_presets import SequencePreset
from ezgreedy.atari.protocol import Protocol
from ezgreedy.seeding import role_seed

DEVICES = ("cpu", "cuda")
STREAMS = ("paired", "separate")


@dataclass(frozen=True)
class EvaluationSettings:
    """When and for how long the agent is evaluated, learning frozen.

    Args:
        frames_between: training frames from one evaluation to the next, the first of which is at
            frame 0; None for a single one, at the end of training.
        frames: how long one lasts, over all its lanes.
        lanes: environments played together. Episodes that are unfinished at the end are not
            counted, so every lane should have room for the longest one.
        episodes: an evaluation is over when this many episodes are, or after `frames`, whichever
            is first; None for all of `frames`.
    """

    frames_between: int | None = 1_000_000  # DQN Zoo
    frames: int = 500_000  # DQN Zoo
    lanes: int = 4  # 125,000 frames each: more than the longest episode
    episodes: int | None = None

    def __post_init__(self) -> None:
        for name in ("frames", "lanes"):
            require.integer(name, getattr(self, name), least=1)
        for name in ("frames_between", "episodes"):
            if getattr(self, name) is not None:
                require.integer(name, getattr(self, name), least=1)

    def num_due(self, frames: int, frames_to_play: int) -> int:
        """How many evaluations there should have been after some frames of training.

        The last one is at the very end.
        """
        is_over = frames >= frames_to_play
        if self.frames_between is None:
            return int(is_over)
        whole, rest = divmod(min(frames, frames_to_play), self.frames_between)
        return 1 + whole + int(is_over and rest > 0)


@dataclass(frozen=True)
class RunSettings:
    """One training run.

    Args:
        agent: who plays and learns.
        game: what is played, as for `atari.make`.
        frames: how long, in emulator frames over all lanes.
        seed: any non-negative int.
        streams: "separate" if what is random also depends on the game and the agent's name, so
            that runs of one seed have nothing in common; "paired" if it depends on the seed only.
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
    streams: str = "paired"
    lanes: int = 1
    protocol: Protocol = field(default_factory=Protocol)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    frames_per_report: int = 100_000
    device: str = "cpu"
    threads: int = 1

    def __post_init__(self) -> None:
        require.integer("frames", self.frames, least=1)
        require.integer("seed", self.seed, least=0)
        require.one_of("streams", self.streams, STREAMS)
        require.integer("lanes", self.lanes, least=1)
        require.integer("frames_per_report", self.frames_per_report, least=1)
        require.one_of("device", self.device, DEVICES)
        require.integer("threads", self.threads, least=1)
        zeroes = self.protocol.zeroes_discount_on_life_loss
        if zeroes and isinstance(self.agent, SequencePreset):
            # Its windows know of one end alone, that of the game.
            rule = f"be False for {self.agent.name}, to which lives mean nothing"
            raise require.refuse("zeroes_discount_on_life_loss", rule, zeroes)

    def role_seed(self, role: str, index: int = 0) -> int:
        """The seed of one role of the run; see `seeding.role_seed`."""
        seed = self.seed
        if self.streams == "separate":
            seed = role_seed(seed, f"{self.game} {self.agent.name}")
        return role_seed(seed, role, index)
