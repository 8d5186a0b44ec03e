"""What do training loops, sweeps and command lines ask of an agent? The agent protocols."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.exploration.durations import DurationLaw
from ezgreedy.games.lanes import Lanes, LaneSteps
from ezgreedy.games.protocol import Frames
from ezgreedy.games.protocol import Protocol as GameProtocol
from ezgreedy.requirements import BoolArray, IntArray

if TYPE_CHECKING:
    from ezgreedy.agents.run_settings import RunSettings


class GameSpec(NamedTuple):
    """What an agent must know about the game that it plays."""

    num_actions: int
    frame_shape: tuple[int, ...]  # one frame: (planes, height, width) or (features,)
    stacked_frames: int
    largest_pixel: float
    frame_dtype: np.dtype[Any] = np.dtype(np.uint8)  # uint16 for codes of colours
    shows_objects: bool = False  # planes mark objects, not brightness

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """(stacked_frames · planes, height, width), or (stacked_frames · features,)."""
        planes, *sides = self.frame_shape
        return self.stacked_frames * planes, *sides


def game_spec(lanes: Lanes) -> GameSpec:
    """What an agent must know about the game in these lanes."""
    return GameSpec(
        lanes.num_actions,
        lanes.frame_shape,
        lanes.protocol.stacked_frames,
        lanes.largest_pixel,
        lanes.frame_dtype,
        lanes.shows_objects,
    )


class Player(Protocol):
    """Acts in a batch of lanes and observes the results, call by call."""

    def act(self, observations: Frames, starts: BoolArray) -> IntArray:
        """The actions to execute, [lanes].

        Args:
            observations: observation of each lane, [lanes, …].
            starts: whether it is the first of an episode, [lanes].
        """

    def observe(self, steps: LaneSteps) -> None:
        """Process the results of the last actions."""


class Policy(Player, Protocol):
    """A player that does not learn; a recurrent one gets its rewards from `observe`."""

    @property
    def exploring(self) -> BoolArray:
        """Whether the last action of each lane was exploratory, [lanes]."""


class Agent(Player, Protocol):
    """A player that remembers the results of its actions and learns from them."""

    @property
    def num_updates(self) -> int:
        """Number of updates so far."""

    def evaluation_policy(self, lanes: int, seed: int, epsilon: float | None = None) -> Policy:
        """The agent in its current state, acting with evaluation settings.

        Nothing that the policy does or draws changes the agent.

        Args:
            lanes: number of environments.
            seed: random seed of the policy.
            epsilon: probability of exploring; None for the evaluation default.
        """

    def measurements(self) -> dict[str, float]:
        """Numbers to report about the time since the last call."""

    def state_dict(self) -> dict[str, Any]:
        """Everything the future depends on: plain data, bytes, arrays and append-only rings."""

    def load_policy(self, state: Mapping[str, Any]) -> None:
        """Load only the part of a state that `evaluation_policy` depends on.

        Append-only rings may be None: readers skip them, and finished runs drop them.
        """

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of an agent with the same settings."""


@dataclass(frozen=True)
class AgentSettings(ABC):
    """An agent as data: everything that the rest of the package needs to know about it.

    Subclasses are frozen dataclasses whose fields are numbers, words, duration laws, schedules and
    nested settings, so that config.json can store them and `--set` can change them. Importing one
    should not load torch; `build` imports the agent itself.

    Args:
        name: name on the command line.
    """

    name: str

    engines: ClassVar[tuple[str, ...]] = ("embedded",)  # plus "ray" if it can be distributed
    # A module with `policy_state` and `load_policy`, if only a part of the agent is needed to act.
    policy_module: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        # A subclass that builds another agent does not inherit the policy of the first.
        if "build" in vars(cls) and "policy_module" not in vars(cls):
            cls.policy_module = None

    @abstractmethod
    def scale_table(self) -> "Mapping[str, Callable[[Any, str], RunSettings]]":
        """Complete runs by the name of their scale: functions of these settings and a game."""

    @property
    def scales(self) -> tuple[str, ...]:
        """Names of the scales that `at_scale` accepts."""
        return tuple(self.scale_table())

    def at_scale(
        self, scale: str, game: str, *, has_earlier_streams: bool = False
    ) -> "RunSettings":
        """Settings of a complete run of this agent.

        Its random streams depend on the game and the agent too, so that runs with one seed have
        nothing in common; `replace(settings, streams="paired")` pairs them.

        Args:
            scale: one of `scales`.
            game: full name of the game.
            has_earlier_streams: whether streams are as in earlier versions, where those of most
                scales depended on the seed only: for sweeps that were begun then.
        """
        require.one_of("--scale", scale, self.scales)
        settings = self.scale_table()[scale](self, game)
        return settings if has_earlier_streams else replace(settings, streams="separate")

    @abstractmethod
    def build(self, spec: GameSpec, *, lanes: int, seed: int, device: str = "cpu") -> Agent:
        """The agent itself, before its first step.

        Args:
            spec: the game that it plays.
            lanes: number of environments.
            seed: random seed.
            device: device of its networks.
        """

    @abstractmethod
    def replay_bytes(self, frame_shape: tuple[int, ...], num_steps: int | None = None) -> int:
        """Memory used by the replay, for forecasts.

        Args:
            frame_shape: shape of a single frame.
            num_steps: agent steps played so far; None for a full replay.
        """

    def working_bytes(
        self, frame_shape: tuple[int, ...], protocol: GameProtocol, lanes: int
    ) -> int:
        """Memory used beside the replay by networks, updates and lanes, for forecasts.

        Args:
            frame_shape: shape of a single frame.
            protocol: protocol of the game.
            lanes: number of environments.
        """
        return 0

    @abstractmethod
    def hurried(self) -> Self:
        """The same agent with a small replay and early updates, to measure its speed."""

    @property
    def hurried_lanes(self) -> int:
        """Largest number of lanes in which to measure its speed."""
        return 2**16

    def with_durations(self, durations: DurationLaw) -> Self:
        """The same agent with another duration law for exploratory actions."""
        raise require.refuse("agent", "have durations to vary", self.name)

    def warning(self, measured: Mapping[str, float]) -> str | None:
        """A message for the user that measurements give reason for; a run shows the first.

        Args:
            measured: measurements of a report.
        """
        return None

    def require_protocol(self, protocol: GameProtocol) -> None:  # noqa: B027
        """Refuse a protocol that this agent cannot learn from; the default accepts all."""


def kept_bytes(largest: int, capacity: int, num_steps: int | None) -> int:
    """Size in bytes of a replay that fills step by step.

    Args:
        largest: size in bytes when full.
        capacity: number of steps when full.
        num_steps: steps so far; None for a full replay.
    """
    return largest if num_steps is None else min(largest, largest * num_steps // capacity + 1)
