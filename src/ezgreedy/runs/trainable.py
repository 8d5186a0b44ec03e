"""What the run loop asks of a training, on whichever engine it runs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.runs.evaluation import Stops
from ezgreedy.runs.ledger import Ledger


class Trainable(ABC):
    """The training of a run: it advances step by step, and its ledger says what is due.

    Args:
        settings: settings of the run.
    """

    def __init__(self, settings: RunSettings) -> None:
        self.settings = settings
        self.ledger = Ledger(settings)
        # Called while a call of the training waits, so that its status and notices are shown.
        self.meanwhile: Callable[[], None] = lambda: None

    @property
    def frames(self) -> int:
        """Frames played in training, over all lanes."""
        return self.ledger.frames

    @property
    def is_finished(self) -> bool:
        """Whether all frames have been played."""
        return self.ledger.is_finished

    @property
    def report_is_due(self) -> bool:
        """Whether to call `report` before the next step."""
        return self.ledger.report_is_due

    @property
    def evaluation_is_due(self) -> bool:
        """Whether to call `evaluate` before the next step; the last one is at the very end."""
        return self.ledger.evaluation_is_due

    @property
    def is_learning(self) -> bool:
        """Whether its speed says how long the rest will take: steps without updates are fast."""
        return True

    @property
    def is_savable(self) -> bool:
        """Whether `state_dict` would not have to wait for long."""
        return True

    @abstractmethod
    def step(self) -> object:
        """Advance by one step."""

    @abstractmethod
    def evaluate(self, stops: Stops | None = None) -> dict[str, Any] | None:
        """The evaluation that is due, as a line of results; None if it was abandoned."""

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """Report on the time since the last report, as a line of results."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything the future depends on: plain data, bytes, arrays and append-only rings."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a training with the same settings."""

    def final_state(self) -> dict[str, Any] | None:
        """The part of a finished training's state that evaluations need; None for all of it."""
        return None

    @property
    def replay_directory(self) -> Path | None:
        """Directory of what is kept besides checkpoints, until the replay is dropped; or None."""
        return None

    def status(self) -> dict[str, float]:
        """Status of the engine, in numbers for display only; empty if nothing can wait."""
        return {}

    def take_notices(self) -> list[str]:
        """Take the messages for the user; each is returned once."""
        return self.ledger.take_notices()
