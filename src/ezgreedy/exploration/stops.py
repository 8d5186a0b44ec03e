"""Which stopping rules can be named in settings? Rules as data; see `plugins`.

A rule of `stopping` has lanes and a memory. A run's settings only name it, as in
`--set agent.stops='StopOnUnchanged(2), StopOnReward()'`, and make it when lanes and seed are known.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from ezgreedy import plugins
from ezgreedy import requirements as require
from ezgreedy.exploration.stopping import (
    AnyStop,
    StopOnDiscrepancy,
    StopOnReward,
    StopOnUnchanged,
    StoppingRule,
)


class Situation(NamedTuple):
    """What a rule can only be told once an agent is made.

    Args:
        lanes: number of environments stepped together.
        seed: random seed of exploration.
        first_lane: the fleet-wide number of the first lane.
        discount: γ of the agent.
    """

    lanes: int
    seed: int = 0
    first_lane: int = 0
    discount: float = 0.99


class StopSettings(ABC):
    """A stopping rule as data; subclasses are frozen dataclasses.

    They have the name of the rule that they stand for, as `written_name`.
    """

    written_name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "written_name" not in vars(cls):
            cls.written_name = cls.__name__

    def __post_init__(self) -> None:
        self.rule(Situation(lanes=1))  # refuses what the rule refuses

    @abstractmethod
    def rule(self, situation: Situation) -> StoppingRule:
        """A new rule."""


@dataclass(frozen=True)
class UnchangedSettings(StopSettings):
    """See `StopOnUnchanged`.

    Args:
        steps: steps in a row after which the observation must have been the same.
    """

    written_name = "StopOnUnchanged"

    steps: int = 1

    def rule(self, situation: Situation) -> StoppingRule:
        """A new rule."""
        return StopOnUnchanged(situation.lanes, self.steps)


@dataclass(frozen=True)
class RewardSettings(StopSettings):
    """See `StopOnReward`.

    Args:
        above: rewards above this end an option.
    """

    written_name = "StopOnReward"

    above: float = 0.0

    def rule(self, situation: Situation) -> StoppingRule:
        """A new rule."""
        return StopOnReward(situation.lanes, self.above)


@dataclass(frozen=True)
class DiscrepancySettings(StopSettings):
    """See `StopOnDiscrepancy`.

    Args:
        rate: share of steps on which to fire, in (0, 1).
        steps: k.
        discount: γ; None for the agent's own.
        reading: "consistent" or "printed".
    """

    written_name = "StopOnDiscrepancy"

    rate: float = 0.1
    steps: int = 5
    discount: float | None = None
    reading: str = "consistent"

    def rule(self, situation: Situation) -> StoppingRule:
        """A new rule."""
        return StopOnDiscrepancy(
            situation.lanes,
            rate=self.rate,
            discount=situation.discount if self.discount is None else self.discount,
            steps=self.steps,
            reading=self.reading,
            seed=situation.seed,
            first_lane=situation.first_lane,
        )


Stops = TypeVar("Stops", bound=type[StopSettings])

_stops: dict[str, type[StopSettings]] = {
    made.written_name: made for made in (UnchangedSettings, RewardSettings, DiscrepancySettings)
}


def register(settings: Stops) -> Stops:
    """Let settings name a rule, as in `--set agent.stops='MyRule(3)'`.

    Args:
        settings: a frozen dataclass derived from `StopSettings`; it is returned, so that this
            works as a decorator.
    """
    if not _is_settings(settings):
        raise require.refuse_type("settings", "be a dataclass derived from StopSettings", settings)
    name = settings.written_name
    if _stops.get(name, settings) is not settings:
        raise require.refuse("settings", f"have a name other than {', '.join(_stops)}", name)
    _stops[name] = settings
    return settings


def stops() -> dict[str, type[StopSettings]]:
    """The settings of all rules, by the rule's name."""
    plugins.load()
    return dict(_stops)


def check_stops(name: str, settings: object) -> None:
    """Refuses what is not a tuple of settings of rules."""
    if not isinstance(settings, tuple) or not all(isinstance(s, StopSettings) for s in settings):
        raise require.refuse_type(name, "be a tuple of settings of stopping rules", settings)


def rule_of(settings: Sequence[StopSettings], situation: Situation) -> StoppingRule | None:
    """One rule that fires when any of these does; None if there are none."""
    rules = [made.rule(situation) for made in settings]
    if len(rules) < 2:
        return rules[0] if rules else None
    return AnyStop(*rules)


def _is_settings(settings: Any) -> bool:
    is_made = isinstance(settings, type) and issubclass(settings, StopSettings)
    return is_made and is_dataclass(settings)
