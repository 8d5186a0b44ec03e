"""Runs from beginning to end, through interruptions: the loop around a `Training`.

Truth is in two places that a kill at any moment leaves consistent: results.jsonl and the newest
whole checkpoint, which says how long results.jsonl was. Resuming cuts the file to that length and
goes on, so that an interrupted run ends with the same bytes as an uninterrupted one.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from ezgreedy import requirements as require
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.results.store import ResultLog
from ezgreedy.running.checkpoints import Checkpoints
from ezgreedy.running.enclosure import require_apart
from ezgreedy.running.interruption import Interruption
from ezgreedy.running.own_process import prepare_process
from ezgreedy.running.run_directory import FAILED, FINISHED, PAUSED, RUNNING, RunDirectory
from ezgreedy.running.settings import RunSettings
from ezgreedy.running.spectators import Bar, Spectator, TensorBoard
from ezgreedy.running.state_tree import NotFiniteStateError
from ezgreedy.running.training import Training

SECONDS_BETWEEN_CHECKPOINTS = 60.0


class FailedTrainingError(RuntimeError):
    """A training that cannot go on in this process; its run is marked as failed."""


class Drivable(Protocol):
    """What a run is made of, on whichever engine: see `Training`."""

    settings: RunSettings
    frames: int

    @property
    def is_finished(self) -> bool:
        """Whether all frames have been played."""

    @property
    def evaluation_is_due(self) -> bool:
        """Whether to call `evaluate` before the next step."""

    @property
    def report_is_due(self) -> bool:
        """Whether to call `report` before the next step."""

    def step(self) -> object:
        """Go on a little."""

    def evaluate(self, stops: Callable[[], bool] | None = None) -> dict[str, Any] | None:
        """The evaluation that is due, as a line of results; None if it was given up."""

    def report(self) -> dict[str, Any]:
        """What happened since the last report, as a line of results."""

    def status(self) -> dict[str, float]:
        """How the engine is doing, in numbers that are for watching alone; often empty."""

    def take_notices(self) -> list[str]:
        """What a person should know, once."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that the future depends on."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of a training with the same settings."""


@dataclass(frozen=True)
class DriveOptions:
    """How a run is looked after, which changes none of its numbers.

    Args:
        seconds_between_checkpoints: at least so many; 0 for one after every step.
        is_quiet: whether to show warnings alone.
    """

    seconds_between_checkpoints: float = SECONDS_BETWEEN_CHECKPOINTS
    is_quiet: bool = False

    def __post_init__(self) -> None:
        require.number("seconds_between_checkpoints", self.seconds_between_checkpoints, 0.0)


def train(directory: Path, settings: RunSettings, options: DriveOptions | None = None) -> int:
    """Begins a run in a new directory and takes it to its end; returns the exit code."""
    require_apart(directory)
    require_device(settings)
    training = Training(settings)  # refuses what cannot be played before anything is written
    place = RunDirectory(directory)
    place.create(settings)
    return drive(place, training, options or DriveOptions())


def resume(directory: Path, options: DriveOptions | None = None) -> int:
    """Takes a run to its end from where it stopped; returns the exit code."""
    place = RunDirectory(directory)
    settings = place.settings()
    require_device(settings)
    require_nobody_else(place)
    return drive(place, Training(settings), options or DriveOptions(), resumes=True)


def require_nobody_else(place: RunDirectory) -> None:
    """Refuses a run that another process is at."""
    with ResultLog(place.results):
        pass


def require_device(settings: RunSettings) -> None:
    """Refuses a device that is not there, and prepares the process."""
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise require.refuse("device", "be cpu where there is no CUDA device", settings.device)
    prepare_process(settings.threads)


def drive(
    place: RunDirectory, training: Drivable, options: DriveOptions, *, resumes: bool = False
) -> int:
    """Takes a training to its end; returns the exit code.

    Args:
        place: the run's directory.
        training: what is to be done, from the beginning.
        options: how it is looked after.
        resumes: whether to go on from the newest checkpoint.
    """
    checkpoints = Checkpoints(place.checkpoints, place.identity())
    with ResultLog(place.results) as log, Interruption() as interruption:
        saves, notices = _restore(checkpoints, training, log) if resumes else (0, [])
        settings = training.settings
        label = f"{settings.agent.name} on {settings.game}"
        bar = Bar(label, settings.frames, training.frames, is_quiet=options.is_quiet)
        board = TensorBoard(place.tensorboard, training.frames)
        run = _Run(place, training, log, checkpoints, [bar, board], interruption)
        run.num_saves = saves
        with bar:
            for notice in notices:
                bar.say(notice)
            if resumes:
                bar.say(f"continuing at {training.frames:,} of {settings.frames:,} frames")
            try:
                return run.to_the_end(options)
            except (NotFiniteError, NotFiniteStateError, FailedTrainingError) as error:
                place.write_status(FAILED, frames=training.frames, reason=str(error))
                bar.say(f"stopped at frame {training.frames:,}, seed {settings.seed}: {error}")
                return 1
            finally:
                board.close()


def _restore(checkpoints: Checkpoints, training: Drivable, log: ResultLog) -> tuple[int, list[str]]:
    """The number of saves so far and what a person should know about the checkpoints."""
    loaded = checkpoints.load()
    if loaded is None:
        log.rewind(0)
        return 0, ["there is no checkpoint yet; beginning anew"]
    training.load_state_dict(loaded.state["training"])
    log.rewind(loaded.state["results_offset"])
    return loaded.step, list(loaded.notices)


class _Run:
    """One process's share of a run."""

    def __init__(
        self,
        place: RunDirectory,
        training: Drivable,
        log: ResultLog,
        checkpoints: Checkpoints,
        spectators: list[Spectator],
        interruption: Interruption,
    ) -> None:
        self._place, self._training, self._log = place, training, log
        self._checkpoints, self._spectators = checkpoints, spectators
        self._interruption = interruption
        self.num_saves = 0
        self._begun = (time.monotonic(), training.frames)

    def to_the_end(self, options: DriveOptions) -> int:
        """Steps, reports, evaluates and saves until all is done or somebody interrupts."""
        self._status(RUNNING)
        last_save = time.monotonic()
        training = self._training
        while self._speak() and not training.is_finished and not self._interruption.requested:
            training.step()
            self._show()
            if time.monotonic() - last_save >= options.seconds_between_checkpoints:
                self._save()
                self._status(RUNNING)
                last_save = time.monotonic()
        self._save()
        if self._interruption.requested:
            self._status(PAUSED)
            say = f"paused at {training.frames:,} frames; ezgreedy resume {self._place.path}"
            self._spectators[0].say(say)
            return self._interruption.exit_code
        self._status(FINISHED)
        return 0

    def _show(self) -> None:
        training = self._training
        status = training.status()
        for spectator in self._spectators:
            spectator.see_progress(training.frames)
            if status:
                spectator.see_status(status, training.frames)
        for notice in training.take_notices():
            self._spectators[0].say(notice)

    def _speak(self) -> bool:
        """Everything that is due to be written now; False if it was interrupted."""
        training = self._training
        if training.report_is_due:
            self._write(training.report())
        while training.evaluation_is_due:
            record = training.evaluate(lambda: self._interruption.requested)
            if record is None:
                return False
            self._write(record)
            self._log.sync()
        return True

    def _write(self, record: dict[str, Any]) -> None:
        self._log.append(record)
        for spectator in self._spectators:
            spectator.see_record(record)

    def _save(self) -> None:
        self._log.sync()
        self.num_saves += 1
        state = {"training": self._training.state_dict(), "results_offset": self._log.offset}
        self._checkpoints.save(self.num_saves, state)

    def _status(self, state: str) -> None:
        training = self._training
        seconds = time.monotonic() - self._begun[0]
        self._place.write_status(
            state,
            frames=training.frames,
            frames_to_play=training.settings.frames,
            # Of this process, evaluations included; what a forecast goes by.
            frames_per_second=round((training.frames - self._begun[1]) / max(seconds, 1e-3), 1),
        )
