"""The runs of a sweep on a Ray cluster, each on a machine that has what it needs.

On that machine Ray runs a host, which starts the same process that a local sweep would start. So a
run is never part of Ray: it ends with its host, but saves first, and the lock of its results shows
whether a process is working on it, as everywhere.
"""

import fcntl
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.fleet.session import LEAST_STORE_MEGABYTES, ClusterSession, LocalSession
from ezgreedy.sweeps.jobs import BROKEN, ENDED, Capacity, LocalProcess, ProcessOutcome, Work
from ezgreedy.sweeps.placement import Demand, Node, lacking, nodes, num_places, require_place
from ezgreedy.sweeps.sweep_directory import LOCK_FILE, code_version

_ANSWER_SECONDS = 60.0  # for machines to answer; a process may have to start there
_SECONDS_BETWEEN_LOOKS = 10.0  # checks that machines remain for waiting runs
_STOP_SECONDS = 5.0


class Host:
    """The Ray actor on the machine of a run; its methods are called from several threads."""

    def __init__(self) -> None:
        self._job: LocalProcess | None = None
        self._was_asked = False
        self._lock = threading.Lock()

    def ready(self) -> str:
        """Name of its machine."""
        return socket.gethostname()

    def run(self, work: Work) -> ProcessOutcome:
        """Starts the process and waits for its end."""
        with self._lock:
            if self._was_asked:
                return ProcessOutcome(ENDED, None)
            self._job = LocalProcess(work)
        return self._job.outcome()

    def ask_to_stop(self) -> None:
        """Passes the request on to the process."""
        with self._lock:
            self._was_asked = True
            if self._job is not None:
                self._job.ask_to_stop()

    def stop(self, seconds: float) -> None:
        """Passes the call on to the process."""
        with self._lock:
            self._was_asked = True
            if self._job is not None:
                self._job.stop(seconds)


class RemoteProcess:
    """A process on some machine of a cluster, or waiting for a machine.

    Args:
        work: the function to call.
        demand: resources that the machine must have free.
    """

    def __init__(self, work: Work, demand: Demand) -> None:
        import ray

        self.demand = demand
        self._host = (
            ray.remote(Host)
            .options(
                num_cpus=demand.cpus,
                num_gpus=demand.gpus,
                memory=demand.memory,
                max_restarts=0,  # the sweep retries, and counts
                max_concurrency=4,
            )
            .remote()
        )
        self._ready = self._host.ready.remote()
        self.ref = self._host.run.remote(work)
        self._was_asked = False
        self._refusal = ""

    @property
    def has_place(self) -> bool:
        """Whether it has a machine."""
        import ray

        return bool(ray.wait([self._ready], timeout=0)[0])

    def give_up(self, reason: str) -> None:
        """Stops waiting for a machine."""
        import ray

        self._refusal = reason
        ray.kill(self._host)

    def ask_to_stop(self) -> None:
        """Asks it to save and stop, if it was started."""
        import ray

        if self._was_asked:
            return
        self._was_asked = True
        if self.has_place:
            self._host.ask_to_stop.remote()
        else:
            ray.kill(self._host)

    def stop(self, seconds: float) -> None:
        """Makes it stop, and frees its resources."""
        import ray

        if self.has_place and not ray.wait([self.ref], timeout=0)[0]:
            ray.wait([self._host.stop.remote(seconds)], timeout=seconds + _STOP_SECONDS)
        ray.kill(self._host)

    def outcome(self) -> ProcessOutcome:
        """How the process ended; waits for its end, and frees its resources."""
        import ray

        try:
            outcome: ProcessOutcome = ray.get(self.ref)
        except ray.exceptions.RayError as error:
            if self._was_asked:
                return ProcessOutcome(ENDED, None)
            return ProcessOutcome(
                BROKEN, self._refusal or f"its machine or process died: {_line(error)}"
            )
        ray.kill(self._host)
        return outcome


class RayEngine:
    """A Ray cluster, for the runs of a sweep.

        with RayEngine(session_at(address), demand_of, settings) as engine:
            ...

    Args:
        session: session with the cluster, entered and left with the engine.
        demand_of: returns the resources that a run with these settings needs.
        settings: settings of all runs; refused if one fits nowhere.
    """

    def __init__(
        self,
        session: AbstractContextManager[Any],
        demand_of: Callable[[RunSettings], Demand],
        settings: Sequence[RunSettings],
    ) -> None:
        self._session, self._demand_of = session, demand_of
        self._demands = {demand_of(each) for each in settings}
        self._last_look = time.monotonic()

    def __enter__(self) -> "RayEngine":
        self._session.__enter__()
        try:
            require_place(self._demands, nodes())
        except BaseException:
            self._session.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.__exit__(kind, error, trace)

    @property
    def capacity(self) -> Capacity:
        """As many of the most demanding runs as fit; Ray starts no more."""
        there = nodes()
        return Capacity(min(num_places(demand, there) for demand in self._demands), memory=None)

    def require_directory(self, directory: Path) -> None:
        """Refuses a directory that is not shared by all machines, and machines with other code.

        Args:
            directory: directory of the sweep, locked by this process.
        """
        there = [n for n in nodes() if any(need.times_within(n.has) for need in self._demands)]
        answers = _ask_all(there, directory.absolute())
        complaints = [f"{node.host}: {said}" for node, said in answers if said]
        if complaints:
            rule = "be a directory that all machines share, each with this version of ezgreedy"
            raise require.refuse("--out", f"{rule} ({'; '.join(complaints)})", str(directory))

    def has_room(self, num_running: int) -> bool:
        """Whether to start another run: those for which there is no room wait for a machine."""
        return True

    def begin(self, work: Work, settings: RunSettings) -> RemoteProcess:
        """Starts the process as soon as a machine has the resources."""
        here = [arg.absolute() if isinstance(arg, Path) else arg for arg in work.arguments]
        elsewhere = Work(work.function, tuple(here), work.log.absolute())
        return RemoteProcess(elsewhere, self._demand_of(settings))

    def wait(self, jobs: Collection[RemoteProcess], seconds: float) -> list[RemoteProcess]:
        """Jobs that have ended; waits up to this long for the first."""
        import ray

        if not jobs:
            return []
        if time.monotonic() - self._last_look >= _SECONDS_BETWEEN_LOOKS:
            self._last_look = time.monotonic()
            self._look_after(jobs)
        refs = [job.ref for job in jobs]
        ray.wait(refs, timeout=seconds)
        ended = set(ray.wait(refs, num_returns=len(refs), timeout=0)[0])
        return [job for job in jobs if job.ref in ended]

    def _look_after(self, jobs: Collection[RemoteProcess]) -> None:
        """Gives up jobs that would wait forever because machines have left."""
        there = nodes()
        for job in jobs:
            lack = lacking(job.demand, there)
            if lack and not job.has_place:
                job.give_up(lack)


def session_at(address: str | None) -> ClusterSession | LocalSession:
    """The cluster at an address; if None, a new local one with a slot for every core."""
    if address is not None:
        return ClusterSession(address)
    return LocalSession(len(os.sched_getaffinity(0)), LEAST_STORE_MEGABYTES)


def complaint(directory: Path, code: str) -> str:
    """Why this machine cannot take runs of a sweep; "" if it can.

    Args:
        directory: directory of the sweep, locked by the process that asks.
        code: code version of that process.
    """
    if code_version() != code:
        return f"it has ezgreedy {code_version()}, and this machine has {code}"
    try:
        # On a network file system, locking requires that it is open for writing.
        with (directory / LOCK_FILE).open("r+") as file, tempfile.TemporaryFile(dir=directory):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return ""  # the same file, and its lock holds here
    except OSError as error:
        return f"{error.strerror}: {error.filename}"
    return "it is not the same directory there, or locks do not hold between machines"


def _ask_all(there: Sequence[Node], directory: Path) -> list[tuple[Node, str]]:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(num_cpus=0, max_retries=0)(complaint)
    refs = []
    for node in there:
        strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
        refs.append(ask.options(scheduling_strategy=strategy).remote(directory, code_version()))
    answered = set(ray.wait(refs, num_returns=len(refs), timeout=_ANSWER_SECONDS)[0])
    answers = []
    for node, ref in zip(there, refs, strict=True):
        if ref not in answered:
            answers.append((node, f"no answer within {_ANSWER_SECONDS:g} s"))
            continue
        try:
            answers.append((node, str(ray.get(ref))))
        except (ray.exceptions.RayError, ImportError) as error:
            answers.append((node, _line(error)))
    return answers


def _line(error: BaseException) -> str:
    """The last line of an error, which gives the cause; Ray quotes whole tracebacks."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
