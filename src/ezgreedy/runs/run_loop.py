"""Runs from start to finish, through interruptions: the loop around a `Training`.

The state of a run is in results.jsonl and the newest complete checkpoint, which records the length
of results.jsonl; a kill at any moment leaves the two consistent. Resuming cuts the file to that
length and continues, so an interrupted run ends with the same bytes as an uninterrupted one.
"""

import contextlib
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ezgreedy import plugins
from ezgreedy import requirements as require
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.checkpoints.state_tree import NotFiniteStateError
from ezgreedy.checkpoints.store import Checkpoints, Loaded
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.results.store import ResultLog, read_results
from ezgreedy.runs.evaluation import Played
from ezgreedy.runs.interruption import Interruption
from ezgreedy.runs.output_paths import require_apart
from ezgreedy.runs.pace import SavingPace
from ezgreedy.runs.process_setup import prepare_process
from ezgreedy.runs.progress import Bar, Spectator, TensorBoard
from ezgreedy.runs.run_directory import FAILED, FINISHED, PAUSED, RUNNING, RunDirectory
from ezgreedy.runs.trainable import Trainable
from ezgreedy.runs.training import Training

SECONDS_BETWEEN_CHECKPOINTS = 60.0
CHECKPOINT_SHARE = 0.02


class FailedTrainingError(RuntimeError):
    """A training that cannot continue in this process; its run is marked as failed."""


@dataclass(frozen=True)
class DriveOptions:
    """Checkpoints and output of a run; these change none of its numbers.

    Args:
        seconds_between_checkpoints: least time between checkpoints; 0 for one after every step.
        is_quiet: whether to show only warnings.
        checkpoint_share: largest share of time to spend on checkpoints, so that large ones are
            rarer; 1 for no limit. A run is always saved at its end and when it is interrupted.
        keeps_replay: whether a finished run keeps its whole state; otherwise only what `evaluate`
            and `watch` need, a small part of it. A run that was to keep it does so when resumed.
    """

    seconds_between_checkpoints: float = SECONDS_BETWEEN_CHECKPOINTS
    is_quiet: bool = False
    checkpoint_share: float = CHECKPOINT_SHARE
    keeps_replay: bool = False

    def __post_init__(self) -> None:
        require.number("seconds_between_checkpoints", self.seconds_between_checkpoints, 0.0)
        require.number("checkpoint_share", self.checkpoint_share, 0.0, 1.0)
        require.flag("keeps_replay", self.keeps_replay)


def train(
    directory: Path,
    settings: RunSettings,
    options: DriveOptions | None = None,
    at_start: Callable[[], None] = lambda: None,
) -> int:
    """Starts a run in a new directory and trains to the end; returns the exit code.

    Args:
        directory: directory of the run, new or empty.
        settings: settings of the run.
        options: checkpoints and output.
        at_start: called once nothing is refused any more.
    """
    require_apart(directory)
    require_device(settings)
    training = Training(settings)  # refuses impossible settings before anything is written
    place = RunDirectory(directory)
    place.create(settings)
    at_start()
    return drive(place, training, options or DriveOptions())


def resume(
    directory: Path,
    options: DriveOptions | None = None,
    device: str | None = None,
    frames: int | None = None,
) -> int:
    """Resumes a run and trains to the end; returns the exit code.

    Args:
        directory: directory of the run.
        options: checkpoints and output.
        device: device of the networks; None for the one that the run started on. Another kind of
            device computes the same numbers only up to rounding.
        frames: frames to play in all, at least as many as now; None for the run's own.
    """
    place = RunDirectory(directory)
    settings = place.settings(device)
    require_device(settings)
    require_nobody_else(place)
    if frames is not None:
        require.integer("--frames", frames, least=settings.frames)
        settings = replace(settings, frames=frames)
    require_not_longer(place, settings)
    if frames is not None:
        place.extend(frames)
    return drive(place, Training(settings), options or DriveOptions(), resumes=True)


def require_not_longer(place: RunDirectory, settings: RunSettings) -> None:
    """Refuses to extend a finished run that has dropped its replay."""
    status = place.status()
    if status.get("has_replay", True):
        return
    most = status["frames_to_play"]
    if settings.frames > most:
        rule = (
            f"be at most {most}: {place.path} finished and dropped its replay "
            "(--keep-replay of train or resume keeps it)"
        )
        raise require.refuse("frames", rule, settings.frames)


def require_nobody_else(place: RunDirectory) -> None:
    """Refuses a run that another process is working on."""
    with place.log(tolerates_damage=True):
        pass


def require_device(settings: RunSettings) -> None:
    """Refuses a device that is not available, and prepares the process."""
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise require.refuse("--device", "be cpu if there is no CUDA device", settings.device)
    prepare_process(settings.threads)


def drive(
    place: RunDirectory, training: Trainable, options: DriveOptions, *, resumes: bool = False
) -> int:
    """Trains to the end; returns the exit code.

    Args:
        place: the run's directory.
        training: the training, in its initial state.
        options: checkpoints and output.
        resumes: whether to continue from the newest checkpoint.
    """
    place.require_own_files()
    place.keeps_replay = options.keeps_replay or (
        resumes and bool(place.status().get("keeps_replay", False))
    )
    checkpoints = place.checkpoint_store()
    settings = training.settings
    label = f"{settings.agent.name} on {settings.game}"
    with (
        place.log(tolerates_damage=resumes) as log,
        Interruption() as interruption,
    ):
        loaded = _newest_consistent(checkpoints, log) if resumes else None
        if loaded is not None and not loaded.state.get("has_replay", True):
            _drop_replay(training)  # if it was killed before it could
            frames = loaded.state["training"]["frames"]
            _note_complete(place, frames, settings.frames, log.num_records)
            Bar(label, settings.frames, frames, is_quiet=options.is_quiet).tell(
                _closing_words(place, frames)
            )
            return 0
        saves, notices = _restore(loaded, training, log, place) if resumes else (0, [])
        bar = Bar(label, settings.frames, training.frames, is_quiet=options.is_quiet)
        first = _first_new_frame(place, training.frames)
        board = TensorBoard(place.tensorboard, first, settings.protocol.frame_skip)
        run = _Run(place, training, log, checkpoints, [bar, board], interruption)
        run.num_saves = saves
        with bar:
            for notice in notices:
                bar.say(notice)
            if resumes:
                bar.say(f"continuing at {training.frames:,} of {settings.frames:,} frames")
            try:
                code = run.to_the_end(options)
                if code == 0:
                    bar.tell(_closing_words(place, training.frames))
                return code
            except (NotFiniteError, NotFiniteStateError, FailedTrainingError) as error:
                reason = f"{error} (seed {settings.seed})"
                place.write_status(
                    FAILED, rows=log.num_records, frames=training.frames, reason=reason
                )
                bar.say(f"stopped at frame {training.frames:,}, seed {settings.seed}: {error}")
                return 1
            except KeyboardInterrupt:
                _note_end(place, PAUSED, run, "stopped before it could save")
                raise
            except Exception as error:
                _note_end(place, FAILED, run, str(error) or repr(error))
                raise
            finally:
                board.close()


def _first_new_frame(place: RunDirectory, frames: int) -> int:
    """The first frame whose results are still to be written, if a run continues at `frames`.

    A run that paused or ended has written those of its last frame.
    """
    records = read_results(place.results) if place.results.exists() else []
    return frames + any(record["frames"] == frames for record in records)


def _closing_words(place: RunDirectory, frames: int) -> str:
    scores = [record for record in read_results(place.results) if record["kind"] == "evaluation"]
    last = f", evaluation {scores[-1]['mean_return']:,.2f}" if scores else ""
    watch = f"ezgreedy watch {place.path}{plugins.options()} shows the agent"
    return f"finished {frames:,} frames{last}; {watch}, ezgreedy report {place.path} its curves"


def _note_end(place: RunDirectory, state: str, run: "_Run", reason: str) -> None:
    """Makes the status say that the run has ended, if it can still be written."""
    with contextlib.suppress(OSError):
        place.write_status(state, rows=run.num_rows, frames=run.frames, reason=reason)


def _newest_consistent(checkpoints: Checkpoints, log: ResultLog) -> Loaded | None:
    """The newest checkpoint whose results are all there; later results will be made again."""
    loaded = checkpoints.load()
    notices: list[str] = []
    while loaded is not None and (needed := _results_offset(loaded, checkpoints)) > log.offset:
        problem = log.damage or f"{log.path} has lost its last rows"
        notices.append(f"checkpoint {loaded.step} is passed over: {problem}")
        earlier = (
            checkpoints.load(loaded.step - 1) if loaded.state.get("has_replay", True) else None
        )
        if earlier is None:
            raise ValueError(
                f"{problem} ({log.num_records} rows are intact, and no checkpoint is that old: "
                f"the oldest needs the first {needed} bytes). Restore the file from a copy, or "
                "train again in another directory"
            )
        loaded = earlier
    if loaded is not None and notices:
        loaded = loaded._replace(notices=(*notices, *loaded.notices))
    return loaded


def _results_offset(loaded: Loaded, checkpoints: Checkpoints) -> int:
    try:
        return int(loaded.state["results_offset"])
    except (KeyError, TypeError, ValueError) as error:
        raise _of_another_version(loaded, checkpoints.directory, error) from error


def _of_another_version(loaded: Loaded, directory: Path, error: Exception) -> ValueError:
    place = f"checkpoint {loaded.step} in {directory}"
    return ValueError(f"{place} does not fit this version of ezgreedy ({error!r})")


def _drop_replay(training: Trainable) -> None:
    """Removes what a finished training has on disk besides its last checkpoint."""
    if training.replay_directory is not None:
        shutil.rmtree(training.replay_directory, ignore_errors=True)


def _note_complete(place: RunDirectory, frames: int, frames_to_play: int, rows: int) -> None:
    """Makes the status of a finished run say so, if it was killed before it could."""
    if place.status().get("state") != FINISHED:
        place.write_status(
            FINISHED, rows=rows, frames=frames, frames_to_play=frames_to_play, has_replay=False
        )


def _restore(
    loaded: Loaded | None, training: Trainable, log: ResultLog, place: RunDirectory
) -> tuple[int, list[str]]:
    """The number of saves so far, and messages for the user about the checkpoints."""
    if loaded is None:
        _rewind(log, 0, place)
        return 0, ["there is no checkpoint yet; starting from the beginning"]
    try:
        training.load_state_dict(loaded.state["training"])
    except (KeyError, TypeError, AttributeError) as error:
        raise _of_another_version(loaded, place.checkpoints, error) from error
    _rewind(log, loaded.state["results_offset"], place)
    return loaded.step, list(loaded.notices)


def _rewind(log: ResultLog, offset: int, place: RunDirectory) -> None:
    """Removes rows that will be made again, after the status has ceased to count them."""
    rows = log.num_records_before(offset)
    if rows < place.status().get("rows", 0):
        place.write_status(RUNNING, rows=rows, frames=0)
    log.rewind(offset)


class _Run:
    """The part of a run in one process."""

    def __init__(
        self,
        place: RunDirectory,
        training: Trainable,
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
        training.meanwhile = self._show

    @property
    def num_rows(self) -> int:
        """Rows of results so far."""
        return self._log.num_records

    @property
    def frames(self) -> int:
        """Frames played so far."""
        return self._training.frames

    def to_the_end(self, options: DriveOptions) -> int:
        """Steps, reports, evaluates and saves until the end or an interruption."""
        self._status(RUNNING)
        pace = SavingPace(options.seconds_between_checkpoints, options.checkpoint_share)
        training = self._training
        # A finished run that kept its replay keeps it, also if it is resumed once more.
        drops_replay = not (self._place.keeps_replay or training.is_finished)
        while self._speak() and not training.is_finished and not self._interruption.requested:
            training.step()
            self._show()
            if pace.is_due and training.is_savable:
                pace.save(self._save)
                self._status(RUNNING)
        if self._interruption.requested:
            self._save()
            self._status(PAUSED)
            again = f"ezgreedy resume {self._place.path}{plugins.options()}"
            say = f"paused at {training.frames:,} frames; {again}"
            self._spectators[0].say(say)
            return self._interruption.exit_code
        self._finish(drops_replay)
        return 0

    def _finish(self, drops_replay: bool) -> None:
        """Saves for the last time, only what evaluations need if the replay is dropped."""
        final = self._training.final_state() if drops_replay else None
        if final is None:
            self._save()
            self._status(FINISHED)
            return
        self._log.sync()
        state = {"training": final, "results_offset": self._log.offset, "has_replay": False}
        self._checkpoints.save(self.num_saves + 1, state, is_last=True)
        _drop_replay(self._training)
        self._status(FINISHED, has_replay=False)

    def _show(self) -> None:
        training = self._training
        status = training.status()
        for spectator in self._spectators:
            spectator.see_progress(training.frames, is_learning=training.is_learning)
            if status:
                spectator.see_status(status, training.frames)
        for notice in training.take_notices():
            self._spectators[0].say(notice)

    def _speak(self) -> bool:
        """Writes all reports and evaluations that are due; False if interrupted."""
        training = self._training
        if training.report_is_due:
            self._write(training.report())
        while training.evaluation_is_due:
            record = training.evaluate(partial(self._is_interrupted, time.monotonic()))
            if record is None:
                return False
            self._write(record)
            self._log.sync()
        return True

    def _is_interrupted(self, evaluating_since: float, played: Played | None) -> bool:
        seconds = time.monotonic() - evaluating_since
        for spectator in self._spectators:
            spectator.see_evaluation(seconds, self._training.settings.evaluation, played)
        return self._interruption.requested

    def _write(self, record: dict[str, Any]) -> None:
        self._log.append(record)
        for spectator in self._spectators:
            spectator.see_record(record)

    def _save(self) -> None:
        self._log.sync()
        self.num_saves += 1
        state = {"training": self._training.state_dict(), "results_offset": self._log.offset}
        self._checkpoints.save(self.num_saves, state)

    def _status(self, state: str, **details: Any) -> None:
        training = self._training
        seconds = time.monotonic() - self._begun[0]
        self._place.write_status(
            state,
            rows=self.num_rows,
            frames=training.frames,
            frames_to_play=training.settings.frames,
            # Speed of this process, evaluations included; forecasts use it.
            frames_per_second=round((training.frames - self._begun[1]) / max(seconds, 1e-3), 1),
            **details,
        )
