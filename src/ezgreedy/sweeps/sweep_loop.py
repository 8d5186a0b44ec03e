"""The loop around a sweep: start runs, wait for them to end, and retry those that failed.

All its decisions depend on files: a sweep that was stopped or killed, and is started again by the
same command, skips finished runs, continues interrupted ones and starts the rest.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Generic

from ezgreedy import requirements as require
from ezgreedy.runs.interruption import Interruption
from ezgreedy.runs.run_directory import RUNNING
from ezgreedy.sweeps.definitions import Member
from ezgreedy.sweeps.forecast import known_speeds, left
from ezgreedy.sweeps.jobs import (
    BROKEN,
    ENDED,
    IN_USE,
    NO_ROOM,
    EmbeddedRuns,
    Engine,
    ProcessOutcome,
    R,
    Runs,
    Saving,
)
from ezgreedy.sweeps.sweep_directory import (
    DONE,
    FAILED,
    PENDING,
    STATES,
    SweepDirectory,
    is_full_disk,
)
from ezgreedy.units import counted, duration

MOST_JOBS = 1024
NUM_RETRIES = 2
_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_TO_SAVE = 120.0  # it may have to write a full replay


@dataclass
class _Attempt:
    """A run waiting for its turn."""

    member: Member
    num_failures: int = 0
    not_before: float = 0.0  # by time.monotonic()


@dataclass
class Sweeping(Generic[R]):
    """The execution of a sweep.

    Args:
        place: the sweep's directory, open.
        engine: engine that executes the runs.
        num_jobs: number of concurrent runs.
        saving: when and how each run is saved.
        say: called with messages for the user.
        runs: how each run is executed.
    """

    place: SweepDirectory
    engine: Engine[R]
    num_jobs: int
    saving: Saving
    say: Callable[[str], None]
    runs: Runs = field(default_factory=EmbeddedRuns)
    _asked: frozenset[str] = frozenset()
    _waiting: deque[_Attempt] = field(default_factory=deque)
    _jobs: dict[R, _Attempt] = field(default_factory=dict)
    _no_room: str = ""
    _num_failed: int = 0
    _said: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        require.integer("--jobs", self.num_jobs, least=1, most=MOST_JOBS)

    def to_the_end(self, members: Sequence[Member]) -> int:
        """Executes all unfinished runs; returns the exit code."""
        self._asked = frozenset(member.id for member in members)
        self._waiting = deque(_Attempt(member) for member in members if not self._is_done(member))
        self.place.note_jobs(self.num_jobs)
        with Interruption() as interruption:
            try:
                self._loop(interruption)
            except OSError as error:
                if not is_full_disk(error.errno):
                    raise
                self._no_room = f"{error.strerror}: {error.filename}"
            finally:
                self._stop_all()
            return self._ending(interruption)

    def _loop(self, interruption: Interruption) -> None:
        last_line = time.monotonic()
        while (self._waiting or self._jobs) and not interruption.requested and not self._no_room:
            self._start_what_is_due()
            # Waits until any job ends, but not too long to notice a signal.
            for job in self.engine.wait(self._jobs, 0.2):
                self._see_end(self._jobs.pop(job), job.outcome())
            if not self._jobs:
                time.sleep(0.05)
            if time.monotonic() - last_line >= _SECONDS_BETWEEN_LINES:
                last_line = time.monotonic()
                self.say(summary(self.place, self._asked))

    def _start_what_is_due(self) -> None:
        now = time.monotonic()
        for attempt in list(self._waiting):
            is_full = len(self._jobs) >= self.num_jobs
            if is_full or not self.engine.has_room(len(self._jobs)):
                return
            if attempt.not_before > now:
                continue
            self._waiting.remove(attempt)
            self._start(attempt)

    def _start(self, attempt: _Attempt) -> None:
        member = attempt.member
        if self.place.note_code(member.id) and attempt.num_failures == 0:
            self._say_once(f"{member.id} was started by another version of the code")
        self.place.note_failure(member.id, "")
        self.place.write()
        try:
            directory = self.place.begin(member, self.runs.prepare)
        except (ValueError, OSError) as error:  # damaged: retrying would not help
            if isinstance(error, OSError) and is_full_disk(error.errno):
                raise
            self._give_up(member, str(error))
            return
        work = self.runs.work(directory, self.saving, self.place.log(member.id))
        self._jobs[self.engine.begin(work, member.settings)] = attempt

    def _see_end(self, attempt: _Attempt, outcome: ProcessOutcome) -> None:
        member = attempt.member
        if outcome.kind == NO_ROOM:
            self._no_room = outcome.told
        elif outcome.kind == IN_USE:
            # Perhaps the process of a killed sweep, still saving.
            self._say_once(f"{member.id} is being run by another process; waiting for it")
            attempt.not_before = time.monotonic() + 1.0
            self._waiting.append(attempt)
        elif outcome == ProcessOutcome(ENDED, 0):
            state = self.place.state(member.id)
            self.say(f"{member.id} is done{_at(state.speed)}")
        elif outcome.kind == BROKEN or outcome.told == 1:
            self._see_failure(attempt, outcome)
        else:  # only this run was stopped
            attempt.not_before = time.monotonic() + 1.0
            self._waiting.append(attempt)

    def _see_failure(self, attempt: _Attempt, outcome: ProcessOutcome) -> None:
        member = attempt.member
        reason = outcome.told
        if outcome.kind == ENDED:
            reason = self.place.run(member.id).status().get("reason", "it failed")
        attempt.num_failures += 1
        if attempt.num_failures > NUM_RETRIES:
            self._give_up(member, reason)
            return
        seconds = 2.0 ** (attempt.num_failures - 1)
        attempt.not_before = time.monotonic() + seconds
        self._waiting.append(attempt)
        self.say(f"{member.id} failed ({reason}); trying again in {seconds:.0f} s")

    def _give_up(self, member: Member, reason: str) -> None:
        self._num_failed += 1
        self.place.note_failure(member.id, reason)
        self.place.write()
        self.say(f"{member.id} failed for good ({reason}); see {self.place.log(member.id)}")

    def _is_done(self, member: Member) -> bool:
        try:
            return self.place.is_done(member.id)
        except (ValueError, OSError) as error:
            self.say(f"{member.id}: {error}")
            return False

    def _stop_all(self) -> None:
        """Lets running jobs save and stop; a second Ctrl-C stops them without saving."""
        if self._jobs:
            self.say(f"stopping {counted(len(self._jobs), 'run')}; they save first")
        try:
            for job in self._jobs:
                job.ask_to_stop()
            end = time.monotonic() + _SECONDS_TO_SAVE
            pending = set(self._jobs)
            while pending and time.monotonic() < end:
                pending -= set(self.engine.wait(pending, 0.2))
        finally:
            for job in self._jobs:
                job.stop(seconds=1.0)  # a formality, unless something went wrong
            self._jobs.clear()

    def _ending(self, interruption: Interruption) -> int:
        if not self._no_room:
            self.place.write()
        self.say(summary(self.place, self._asked))
        if self._no_room:
            told = "make room and repeat the command to continue from the last checkpoints"
            self.say(f"stopped, {self._no_room}; {told}")
            return 1
        if interruption.requested:
            self.say("stopped; repeat the command to continue")
            return interruption.exit_code
        return 1 if self._num_failed else 0

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.say(text)


def summary(place: SweepDirectory, asked: Collection[str] | None = None) -> str:
    """One line: how many runs are done, running, failed and pending, and the time left.

    Args:
        place: the sweep's directory, already read.
        asked: ids of the runs to count, others being only mentioned; None for all.
    """
    known = place.states()
    states = [run for run in known if asked is None or run.id in asked]
    counts = {state: sum(run.state == state for run in states) for state in STATES}
    shown = ", ".join(f"{counts[state]} {state}" for state in (DONE, RUNNING, FAILED, PENDING))
    played, to_play = sum(run.frames for run in states), sum(run.frames_to_play for run in states)
    line = f"{counted(len(states), 'run')}: {shown}; {played:,} of {to_play:,} frames"
    seconds = left(states, place.num_jobs, known_speeds(known))
    if seconds:
        line += f", about {duration(seconds)} left"
    num_others = sum(run.state != DONE for run in known) - sum(run.state != DONE for run in states)
    if num_others:
        line += f"; {num_others} more that this command does not ask for"
    return line


def _at(speed: float | None) -> str:
    return "" if speed is None else f", {speed:,.0f} frames/s"
