"""What the conformance suite asks of a library: build an agent, let it act, save, evaluate."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ezgreedy.exploration.durations import DurationLaw, Fixed
from ezgreedy.testing.recording import NUM_ACTIONS, RecordedEnv, Recording


@dataclass(frozen=True)
class Trial:
    """The agent that a check wants built.

    Args:
        lanes: number of environments that the agent plays in.
        durations: law of the options' durations.
        epsilon: ε at the beginning and at the end of the library's own schedule.
        num_steps: steps of each lane over which ε goes linearly from one to the other.
        seed: seed of the exploration; lane i is the i-th environment.
        shift: changes how long episodes are, in all lanes but the first.
        recording: what the environments write down.
    """

    lanes: int = 3
    durations: DurationLaw = field(default_factory=lambda: Fixed(5))
    epsilon: tuple[float, float] = (1.0, 1.0)
    num_steps: int = 200
    seed: int = 7
    shift: int = 0
    recording: Recording = field(init=False)

    num_actions = NUM_ACTIONS

    def __post_init__(self) -> None:
        object.__setattr__(self, "recording", Recording(self.lanes))

    def make_env(self, lane: int) -> RecordedEnv:
        """The environment of a lane; make each lane's once."""
        return RecordedEnv(self.recording, lane, self.shift if lane else 0)


class AdaptedAgent(ABC):
    """An agent of some library with an adapter in place, as the suite sees it.

    It must not learn during a trial, so that its greedy actions stay the same. A subclass takes the
    trial as its only argument.
    """

    @abstractmethod
    def __init__(self, trial: Trial) -> None:
        """Builds the agent in the environments of the trial."""

    @abstractmethod
    def collect(self, num_steps: int) -> None:
        """Lets the library collect about this many steps of each lane for training.

        Repeated calls continue where the last one stopped.
        """

    @abstractmethod
    def epsilon(self, lane: int) -> float:
        """ε of the step that the lane is taking, by the library's own schedule.

        The suite asks while the lane's environment is stepped.
        """

    @abstractmethod
    def greedy(self, observation: Any) -> int:
        """The action that the agent takes at an observation when it does not explore."""

    @abstractmethod
    def stored(self) -> Iterable[tuple[Any, int]]:
        """Observation and action of every transition in the library's own buffer."""

    @abstractmethod
    def evaluate(self, env: RecordedEnv) -> None:
        """Plays at least one episode without exploration, as the library evaluates."""

    @abstractmethod
    def exploration_state(self) -> Any:
        """The state of the exploration; `==` tells whether two are the same."""

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Saves everything the way users of the library do."""

    @classmethod
    @abstractmethod
    def restored(cls, directory: Path, trial: Trial) -> "AdaptedAgent":
        """The saved agent, in the environments of a new trial."""
