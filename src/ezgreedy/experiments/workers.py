"""Where do jobs run? In this process or in several, with the same outcome for every job.

A job is a function of settings and seed. Worker processes are spawned, so they share no state. They
ignore Ctrl-C, which this process handles, and they end with this process, however it ends.

The runs of a sweep use another kind of process: see `sweeps.jobs`.
"""

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.experiments.experiment import Settings


@dataclass(frozen=True)
class Job:
    """One cell for one seed; `run_seed` must be a module's top-level function, for workers."""

    run_seed: Callable[[Settings, int], Mapping[str, Any]]
    cell: str
    settings: Settings
    seed: int


@dataclass(frozen=True)
class Outcome:
    """The result of a job, or the error that ended it."""

    job: Job
    result: Mapping[str, Any] | None
    error: str
    seconds: float


class WorkerDied(RuntimeError):
    """A worker process died without an error message, and its pool with it."""


class Workers:
    """Runs jobs, within a `with` block.

    Args:
        num_processes: number of jobs that run at once; with 1 they run in this process.
    """

    def __init__(self, num_processes: int) -> None:
        self.num_processes = require.integer("jobs", num_processes, least=1, most=1024)
        self._pool: ProcessPoolExecutor | None = None

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Runs all jobs; yields their outcomes as they finish."""
        if self._pool is None:
            yield from map(run_job, jobs)
            return
        with _interrupts_held_back():
            pending = {self._pool.submit(run_job, job) for job in jobs}
        while pending:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from _collected(finished)

    def __enter__(self) -> "Workers":
        if self.num_processes > 1:
            self._pool = ProcessPoolExecutor(
                self.num_processes, multiprocessing.get_context("spawn"), _begin_worker
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is None:
            return
        if kind is not None:  # do not wait for running jobs
            for process in multiprocessing.active_children():
                process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = None


def run_job(job: Job) -> Outcome:
    """Runs one job in this process."""
    begin = time.perf_counter()
    try:
        result, error = job.run_seed(job.settings, job.seed), ""
    except Exception as failure:
        last = traceback.extract_tb(failure.__traceback__)[-1]
        place = f"{os.path.basename(last.filename)}, line {last.lineno}"
        result, error = None, f"{type(failure).__name__}: {failure} ({place})"
    return Outcome(job, result, error, time.perf_counter() - begin)


def _collected(finished: set["Future[Outcome]"]) -> Iterator[Outcome]:
    for future in finished:
        try:
            yield future.result()
        except BrokenProcessPool as error:
            raise WorkerDied("a worker process died: killed, or out of memory") from error


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Delays Ctrl-C to the end of the block, and hides it from processes started within.

    These inherit the blocked signal. This process might still receive it through a thread of some
    library, so its handler waits too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # other threads get neither handlers nor interrupts
        return
    held: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, handler)
        if held:
            signal.raise_signal(signal.SIGINT)
