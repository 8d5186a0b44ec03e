"""A run as data: its agent, game, length and evaluations.

The defaults are the paper's. Everything here but the device is part of a run's identity: the same
settings give the same numbers on the same kind of machine and device.
"""

from dataclasses import dataclass, field

from ezgreedy import requirements as require
from ezgreedy.agents.agent import AgentSettings
from ezgreedy.games.protocol import Protocol
from ezgreedy.seeding import role_seed

DEVICES = ("cpu", "cuda")
STREAMS = ("paired", "separate")


@dataclass(frozen=True)
class EvaluationSettings:
    """When and for how long the agent is evaluated, with learning frozen.

    Args:
        frames_between: training frames between evaluations, the first of which is at frame 0; None
            for a single evaluation at the end of training.
        frames: length of one evaluation, over all its lanes.
        lanes: environments played in parallel. Episodes unfinished at the end are not counted, so
            every lane should have room for the longest one.
        episodes: an evaluation ends after this many episodes or after `frames`, whichever comes
            first; None for all of `frames`.
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
        """Number of evaluations due after some frames of training.

        The last one is at the very end.
        """
        is_over = frames >= frames_to_play
        if self.frames_between is None:
            return int(is_over)
        whole, rest = divmod(min(frames, frames_to_play), self.frames_between)
        return 1 + whole + int(is_over and rest > 0)


MOST_LANES = 65_536  # far more than any machine plays; a file may say anything


@dataclass(frozen=True)
class RunSettings:
    """One training run.

    Args:
        agent: settings of the agent.
        game: name of the game, as for `games.make`.
        frames: length in emulator frames, over all lanes.
        seed: random seed, any non-negative int.
        streams: "separate" if random streams also depend on the game and the agent's name, so that
            runs with one seed have nothing in common, as those of `AgentSettings.at_scale`;
            "paired" if they depend on the seed only, as in runs that do not record it.
        lanes: environments played in parallel. The paper has one for Rainbow, and for R2D2 a fleet
            of 320, over which ε falls from lane to lane.
        protocol: presentation of the game.
        evaluation: settings of the evaluations.
        frames_per_report: frames between lines about the training in results.jsonl.
        device: device of the networks at the start; `resume` may choose another.
        threads: processor threads for one network; more than the available cores is very slow. With
            several, numbers may differ from those with one.
    """

    agent: AgentSettings
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
        parts = {"agent": AgentSettings, "protocol": Protocol, "evaluation": EvaluationSettings}
        for name, kind in parts.items():
            if not isinstance(getattr(self, name), kind):
                raise require.refuse_type(name, f"be {kind.__name__}", getattr(self, name))
        if not isinstance(self.game, str):
            raise require.refuse_type("game", "be the name of a game", self.game)
        require.integer("frames", self.frames, least=1)
        require.integer("seed", self.seed, least=0)
        require.one_of("streams", self.streams, STREAMS)
        require.integer("lanes", self.lanes, least=1, most=MOST_LANES)
        require.integer("frames_per_report", self.frames_per_report, least=1)
        require.one_of("device", self.device, DEVICES)
        require.integer("threads", self.threads, least=1)
        self.agent.require_protocol(self.protocol)

    def role_seed(self, role: str, index: int = 0) -> int:
        """The seed of one role of the run; see `seeding.role_seed`."""
        seed = self.seed
        if self.streams == "separate":
            seed = role_seed(seed, f"{self.game} {self.agent.name}")
        return role_seed(seed, role, index)
