"""Where do the runs of a sweep execute? In processes, one for each run.

An engine decides where: on this machine, or on those of a cluster (`sweeps.ray_engine`), which then
start the same processes. They are forked from an idle process that has loaded everything, so
starting one is cheap and a crash ends only one run. They never see Ctrl-C; the sweep handles it and
asks them to save and stop. They also save and stop when the sweep itself ends for any reason.

`experiments.workers` also uses processes, and deliberately shares no code with this: its jobs are
pure functions of about a second, thousands of which go through a few pooled workers; they have
nothing to save and are simply killed. A run takes hours, has its own process and log, must be asked
to save before it stops, and may be on another machine.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from ezgreedy import requirements as require
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.replay.available_memory import available_bytes
from ezgreedy.results.store import InUseError
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.sweeps.sweep_directory import is_full_disk

_context = multiprocessing.get_context("forkserver")
_MODULES = [
    *("ezgreedy.runs.run_loop", "ezgreedy.agents.r2d2.agent", "ezgreedy.agents.rainbow.agent"),
    *("tensorboardX", "torch._dynamo"),  # the first optimiser needs the second, which takes seconds
]
_GAMES = ["ale_py", "minatar", "gymnasium"]  # those that games of the sweep have imported

VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
ENDED, IN_USE, NO_ROOM, BROKEN = "ended", "in use", "no room", "broken"


class ProcessOutcome(NamedTuple):
    """How a process ended: one of the words above, and a reason or its return value."""

    kind: str
    told: Any


class Capacity(NamedTuple):
    """Resources available for runs."""

    num_runs: int  # concurrent runs; more would only share cores
    memory: int | None  # free bytes; None if Ray places runs by memory
    memory_per_run: int | None = None  # bytes; None for what one process needs


class Work(NamedTuple):
    """A function to call in a separate process, with its output in a file."""

    function: Callable[..., Any]  # importable
    arguments: tuple[Any, ...]
    log: Path  # its output is appended here
    gpu: str | None = None  # the only GPU that it sees; None for those that its parent sees


@dataclass(frozen=True)
class Saving:
    """When and how the runs of a sweep are saved: `run_loop.DriveOptions` without PyTorch.

    Args:
        seconds: least time between checkpoints of each run.
        share: largest share of time to spend on them.
        keeps_replay: whether finished runs keep their replays.
    """

    seconds: float = 60.0
    share: float = 0.02
    keeps_replay: bool = False

    def __post_init__(self) -> None:
        require.number("--checkpoint-seconds", self.seconds, 0.0)
        require.number("--checkpoint-share", self.share, 0.0, 1.0)


class Running(Protocol):
    """A process that was started on some machine: see `LocalProcess`."""

    def ask_to_stop(self) -> None:
        """Ask it once to save and stop."""

    def stop(self, seconds: float) -> None:
        """Make it stop within this time."""

    def outcome(self) -> "ProcessOutcome":
        """How the process ended; waits for its end."""


R = TypeVar("R", bound=Running)


class Runs(Protocol):
    """How the runs of a sweep are executed: see `EmbeddedRuns`."""

    def prepare(self, draft: RunDirectory) -> None:
        """Write further files of a run that is being created."""

    def work(self, directory: Path, saving: Saving, log: Path) -> Work:
        """What a process has to do for a run."""


class Engine(Protocol[R]):
    """Where the runs of a sweep execute; nothing else about them depends on it."""

    @property
    def capacity(self) -> Capacity:
        """Resources available for runs."""

    def require_directory(self, directory: Path) -> None:
        """Refuse a sweep's directory, locked by this process, that machines do not share."""

    def begin(self, work: Work, settings: RunSettings) -> R:
        """Start work for a run with these settings."""

    def has_room(self, num_running: int) -> bool:
        """Whether to start another run while this many are running."""

    def wait(self, jobs: Collection[R], seconds: float) -> list[R]:
        """Jobs that have ended; waits up to this long for the first."""


class LocalProcess:
    """A process that calls a function, with its output in a file.

    Args:
        work: the function to call.
    """

    def __init__(self, work: Work) -> None:
        # Before the first process: libraries read it on import.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        _context.set_forkserver_preload(_MODULES + [name for name in _GAMES if name in sys.modules])
        self._reader, writer = _context.Pipe(duplex=False)
        self._process: ForkServerProcess = _context.Process(target=_call, args=(work, writer))
        self._process.start()
        writer.close()
        self._was_asked = False

    @property
    def sentinel(self) -> int:
        """Handle that becomes ready when the process ends."""
        return self._process.sentinel

    def ask_to_stop(self) -> None:
        """Ask it to save and stop, once: a second request would stop it without saving."""
        if not self._was_asked and self._process.is_alive():
            self._process.terminate()
        self._was_asked = True

    def stop(self, seconds: float) -> None:
        """Make it stop: it may take up to this long, then it is killed."""
        self._process.terminate()
        self._process.join(seconds)
        self._process.kill()

    def outcome(self) -> ProcessOutcome:
        """How the process ended; waits for its end."""
        self._process.join()
        try:
            told = self._reader.recv() if self._reader.poll() else None
        except EOFError:
            told = None
        self._reader.close()
        if isinstance(told, ProcessOutcome):
            return told
        if self._was_asked:
            return ProcessOutcome(ENDED, None)  # stopped before there was anything to save
        code = self._process.exitcode or 0
        told = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return ProcessOutcome(BROKEN, f"its process ended with {told}")


class LocalEngine:
    """This machine; runs on GPUs take turns in choosing one.

    Args:
        gpus: returns the GPUs of this machine, as CUDA_VISIBLE_DEVICES names them; called before
            the first run that needs one.
    """

    def __init__(self, gpus: Callable[[], Sequence[str]] | None = None) -> None:
        self._gpus = gpus or visible_gpus
        self._turns: Iterator[str] | None = None

    @property
    def capacity(self) -> Capacity:
        """One run for every core, and the free memory."""
        return Capacity(os.cpu_count() or 1, available_bytes())

    def require_directory(self, directory: Path) -> None:
        """Accepts any directory: only this machine uses it."""

    def has_room(self, num_running: int) -> bool:
        """Whether to start another run: --jobs alone decides."""
        return True

    def begin(self, work: Work, settings: RunSettings) -> LocalProcess:
        """Starts the process immediately."""
        if settings.device == "cuda":
            work = work._replace(gpu=self._next_gpu())
        return LocalProcess(work)

    def _next_gpu(self) -> str | None:
        if self._turns is None:
            self._turns = cycle(self._gpus())
        return next(self._turns, None)

    def wait(self, jobs: Collection[LocalProcess], seconds: float) -> list[LocalProcess]:
        """Jobs that have ended; waits up to this long for the first."""
        ended = wait([job.sentinel for job in jobs], timeout=seconds)
        return [job for job in jobs if job.sentinel in ended]


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    import torch

    names = [name for name in os.environ.get(VISIBLE_GPUS, "").split(",") if name]
    count = torch.cuda.device_count()  # does not start CUDA, which would not survive a fork
    return names[:count] if names else [str(number) for number in range(count)]


class EmbeddedRuns:
    """How each run of a sweep is executed: in one process."""

    def prepare(self, draft: RunDirectory) -> None:
        """Writes nothing else."""

    def work(self, directory: Path, saving: Saving, log: Path) -> Work:
        """Starts or resumes a run and trains to the end."""
        return Work(run_to_the_end, (directory, saving), log)


def run_to_the_end(directory: Path, saving: Saving) -> int:
    """Starts or resumes a run and trains to the end; returns the exit code."""
    from ezgreedy.runs.run_loop import DriveOptions, resume  # only these processes need PyTorch

    options = DriveOptions(
        saving.seconds,
        is_quiet=True,
        checkpoint_share=saving.share,
        keeps_replay=saving.keeps_replay,
    )
    return resume(directory, options)


def _call(work: Work, writer: Connection) -> None:
    if work.gpu is not None:
        os.environ[VISIBLE_GPUS] = work.gpu  # CUDA reads it when it starts, and has not yet
    os.setsid()  # a terminal's Ctrl-C goes only to the sweep
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    outcome = _outcome(work)
    with contextlib.suppress(BrokenPipeError):  # the reader is gone
        writer.send(outcome)
    # Last: on a full disk the log cannot grow, but the sweep must still get the outcome.
    if outcome.kind != ENDED:
        _note(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {outcome.told}\n")


def _outcome(work: Work) -> ProcessOutcome:
    try:
        with work.log.open("a", encoding="utf-8") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        return ProcessOutcome(ENDED, work.function(*work.arguments))
    except InUseError as error:
        return ProcessOutcome(IN_USE, str(error))
    except OSError as error:
        if is_full_disk(error.errno):
            # Only output has no file name: it goes to the log.
            return ProcessOutcome(NO_ROOM, f"{error.strerror}: {error.filename or work.log}")
        return _broken(error)
    except KeyboardInterrupt:
        return ProcessOutcome(ENDED, 130)
    except Exception as error:
        # Any exception of an environment or a library must end only this run.
        return _broken(error)


def _broken(error: Exception) -> ProcessOutcome:
    _note("".join(traceback.format_exception(error)))
    return ProcessOutcome(BROKEN, f"{type(error).__name__}: {error}")


def _note(text: str) -> None:
    """Appends to the log, if there is room on disk."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _stop_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
