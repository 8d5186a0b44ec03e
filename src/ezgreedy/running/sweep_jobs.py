"""Who runs the runs of a sweep? Processes, one for each, which begin and end with it.

An engine says where: on this machine, or on those of a cluster (`fleet.hosts`), which then begin
the same processes. They are forked from a process that has loaded everything and runs nothing, so
a beginning costs little and a crash ends one run alone. They never see Ctrl-C, which is for the
sweep to handle: it asks them to save and stop; so does its end, whatever ends it.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from ezgreedy.replay.frames import available_bytes
from ezgreedy.results.store import InUseError
from ezgreedy.running.settings import RunSettings
from ezgreedy.running.sweep_directory import is_full_disk

_context = multiprocessing.get_context("forkserver")
_MODULES = [
    *("ezgreedy.running.driver", "ezgreedy.agents.r2d2", "ezgreedy.agents.rainbow"),
    *("tensorboardX", "torch._dynamo"),  # the second for the first optimiser, which takes seconds
]
_GAMES = ["ale_py", "minatar", "gymnasium"]  # as far as the sweep has met games that need them

ENDED, IN_USE, NO_ROOM, BROKEN = "ended", "in use", "no room", "broken"


class Outcome(NamedTuple):
    """What became of a process: a word from above, and more words or what it computed."""

    kind: str
    told: Any


class Room(NamedTuple):
    """What there is for runs."""

    num_runs: int  # at once; more would only share
    memory: int | None  # bytes that are free; None if whoever places runs sees to it


class Work(NamedTuple):
    """Something to be computed in a process of its own, with its words in a file."""

    function: Callable[..., Any]  # importable
    arguments: tuple[Any, ...]
    log: Path  # where its output goes, appended


class Running(Protocol):
    """A process that was begun somewhere: see `Job`."""

    def ask_to_stop(self) -> None:
        """To save and stop, once."""

    def stop(self, seconds: float) -> None:
        """Makes it stop within this time."""

    def outcome(self) -> "Outcome":
        """What became of it; waits for its end."""


R = TypeVar("R", bound=Running)


class Engine(Protocol[R]):
    """Where the runs of a sweep go; everything else about them is the same everywhere."""

    @property
    def room(self) -> Room:
        """What there is for runs."""

    def require_directory(self, directory: Path) -> None:
        """Refuses a sweep's directory, locked by this process, that is not the same for all."""

    def begin(self, work: Work, settings: RunSettings) -> R:
        """Begins something for a run of these settings."""

    def wait(self, jobs: Collection[R], seconds: float) -> list[R]:
        """Those that have ended; waits so long for the first."""


class Job:
    """A process that computes something, with its words in a file.

    Args:
        work: what it computes.
    """

    def __init__(self, work: Work) -> None:
        # Before the first process: libraries read it when they are loaded.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        _context.set_forkserver_preload(_MODULES + [name for name in _GAMES if name in sys.modules])
        self._reader, writer = _context.Pipe(duplex=False)
        self._process: ForkServerProcess = _context.Process(target=_call, args=(work, writer))
        self._process.start()
        writer.close()
        self._was_asked = False

    @property
    def sentinel(self) -> int:
        """Something to wait for the end with."""
        return self._process.sentinel

    def ask_to_stop(self) -> None:
        """To save and stop; being asked again means at once, so this asks only once."""
        if not self._was_asked and self._process.is_alive():
            self._process.terminate()
        self._was_asked = True

    def stop(self, seconds: float) -> None:
        """Makes it stop: it may take so long, and is killed after."""
        self._process.terminate()
        self._process.join(seconds)
        self._process.kill()

    def outcome(self) -> Outcome:
        """What became of it; waits for its end."""
        self._process.join()
        try:
            told = self._reader.recv() if self._reader.poll() else None
        except EOFError:
            told = None
        self._reader.close()
        if isinstance(told, Outcome):
            return told
        if self._was_asked:
            return Outcome(ENDED, None)  # before there was anything to save
        code = self._process.exitcode or 0
        told = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return Outcome(BROKEN, f"its process ended with {told}")


class LocalEngine:
    """This machine."""

    @property
    def room(self) -> Room:
        """A run for every core, and the memory that nobody uses."""
        return Room(os.cpu_count() or 1, available_bytes())

    def require_directory(self, directory: Path) -> None:
        """Any will do, for only this machine looks at it."""

    def begin(self, work: Work, settings: RunSettings) -> Job:
        """Begins it at once."""
        return Job(work)

    def wait(self, jobs: Collection[Job], seconds: float) -> list[Job]:
        """Those that have ended; waits so long for the first."""
        ended = wait([job.sentinel for job in jobs], timeout=seconds)
        return [job for job in jobs if job.sentinel in ended]


def run_to_the_end(directory: Path, seconds_between_checkpoints: float) -> int:
    """A run from wherever it is, also from its very beginning; the exit code."""
    from ezgreedy.running.driver import DriveOptions, resume  # PyTorch is for these processes alone

    return resume(directory, DriveOptions(seconds_between_checkpoints, is_quiet=True))


def _call(work: Work, writer: Connection) -> None:
    os.setsid()  # a terminal's Ctrl-C goes to the sweep alone
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    outcome = _outcome(work)
    with contextlib.suppress(BrokenPipeError):  # nobody is left to hear it
        writer.send(outcome)
    # Last, for on a full disk the log cannot grow, and the sweep must hear of that.
    if outcome.kind != ENDED:
        _note(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {outcome.told}\n")


def _outcome(work: Work) -> Outcome:
    try:
        with work.log.open("a", encoding="utf-8") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        return Outcome(ENDED, work.function(*work.arguments))
    except InUseError as error:
        return Outcome(IN_USE, str(error))
    except OSError as error:
        if is_full_disk(error.errno):
            # Only what is said has no name: it goes to the log.
            return Outcome(NO_ROOM, f"{error.strerror}: {error.filename or work.log}")
        return _broken(error)
    except KeyboardInterrupt:
        return Outcome(ENDED, 130)
    except Exception as error:
        # Whatever an environment or a library throws must end this run and no other.
        return _broken(error)


def _broken(error: Exception) -> Outcome:
    _note("".join(traceback.format_exception(error)))
    return Outcome(BROKEN, f"{type(error).__name__}: {error}")


def _note(text: str) -> None:
    """Adds to the log, if there is room."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _stop_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
