"""Which Ray does a run use? A private one on this machine, or an existing cluster.

By default Ray listens on every network interface, writes to a directory that all users share,
reports usage to its makers and leaves processes behind. Our sessions are bound to the loopback
interface, use their own directory and are removed by a watchdog, however the process that started
them ended.
"""

import contextlib
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.fleet import watchdog
from ezgreedy.fleet.last_words import LastWords
from ezgreedy.packages import require_installed

MEGABYTE = 1_000_000
CONNECT_SECONDS = 30.0
LEAST_STORE_MEGABYTES = 80  # Ray's own minimum is 78.6
_PREFIX = "ezgreedy-ray-"  # short: socket paths have at most 107 characters
_LOCK = "owner"
_START_SECONDS = 120.0  # for Ray itself, on a busy machine
_SHUTDOWN_SECONDS = 30.0
# Asked in a separate process, which can be killed: connecting has no time limit in Ray.
_QUESTION = """
import json, sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
    print(json.dumps({"resources": ray.cluster_resources()}))
except BaseException as error:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
"""


class LocalSession:
    """Ray on this machine, for this process only, and not reachable from elsewhere.

        with LocalSession(num_processes=5, store_megabytes=200):
            ...

    Args:
        num_processes: number of Ray actors.
        store_megabytes: shared memory for data in transit between them.
        threads: processor threads of each.
    """

    def __init__(self, num_processes: int, store_megabytes: int, threads: int = 1) -> None:
        require_ray()
        require_store(store_megabytes)
        self.num_processes = num_processes
        self.store_megabytes = store_megabytes
        self.threads = threads
        self.directory = ""
        self.address = ""

    def __enter__(self) -> "LocalSession":
        end_deserted_sessions()
        self.directory = tempfile.mkdtemp(prefix=_PREFIX, dir=_temporary_directory())
        self._lock = (Path(self.directory) / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", watchdog.__file__, self.directory],
            stdin=subprocess.PIPE,
            start_new_session=True,  # not reached by Ctrl-C in a terminal
        )
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _start(self) -> None:
        self._environment = dict(os.environ)
        os.environ |= {
            "RAY_USAGE_STATS_ENABLED": "0",
            # Only this machine can reach it.
            "RAY_AUTH_MODE": "disabled",
            # As Ray does on Windows and macOS by default: everything on 127.0.0.1.
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            # Ray would give way to all other processes of the machine, with a niceness of 15.
            "RAY_worker_niceness": "0",
            "OMP_NUM_THREADS": str(self.threads),
            "RAY_raylet_start_wait_time_s": f"{_START_SECONDS:g}",
        }
        import ray
        from ray._private.ray_constants import ENABLE_RAY_CLUSTER

        if ENABLE_RAY_CLUSTER:
            # It is read when Ray is imported, and Ray was imported before.
            raise RuntimeError(
                "Ray would listen on every interface: it was imported before this session, without "
                "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 in the environment"
            )
        context = ray.init(
            address="local",
            num_cpus=self.num_processes,  # a slot for each: fewer cores are shared
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            object_store_memory=self.store_megabytes * MEGABYTE,
            _temp_dir=self.directory,
        )
        self.address = context.address_info["gcs_address"]

    def _end(self) -> None:
        import ray

        ray.shutdown()
        for name in os.environ.keys() - self._environment.keys():
            del os.environ[name]
        os.environ |= self._environment
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()
        try:
            self._watchdog.wait(_SHUTDOWN_SECONDS)
        finally:
            self._lock.close()


class ClusterSession:
    """A connection to an existing Ray cluster, as one of its drivers.

    Args:
        address: HOST:PORT of its head.
    """

    def __init__(self, address: str) -> None:
        require_ray()
        self.address = address
        resources = ask(self.address)
        self.num_cpus = int(resources.get("CPU", 0))
        self.num_gpus = int(resources.get("GPU", 0))

    def __enter__(self) -> "ClusterSession":
        import ray

        ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
        self._last_words = LastWords()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import ray

        self._last_words.withdraw()
        ray.shutdown()


def ask(address: str, seconds: float = CONNECT_SECONDS) -> dict[str, Any]:
    """The resources of a cluster; refuses one that cannot be used, with the reason."""
    begun = time.monotonic()
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise require.refuse("--address", "be HOST:PORT of a Ray cluster", address)
    try:
        socket.create_connection((host, int(port)), timeout=seconds / 3).close()
    except (OSError, OverflowError) as error:
        rule = f"be HOST:PORT of a Ray cluster that can be reached ({error})"
        raise require.refuse("--address", rule, address) from error
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    left = seconds - (time.monotonic() - begun)
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _QUESTION, address],
            capture_output=True,
            text=True,
            timeout=left,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired as error:
        rule = f"be that of a Ray cluster; no answer from Ray there within {seconds:g} s"
        raise require.refuse("--address", rule, address) from error
    return _resources(address, answer)


def _resources(address: str, answer: str) -> dict[str, Any]:
    lines = [line for line in answer.splitlines() if line.startswith("{")]
    known: dict[str, Any] = json.loads(lines[-1]) if lines else {"error": "no answer"}
    if "error" not in known:
        resources: dict[str, Any] = known["resources"]
        return resources
    error = " ".join(str(known["error"]).split())
    if "ersion mismatch" in error:
        rule = "be that of a cluster with the same versions of Ray and Python as here"
        raise ValueError(f"--address must {rule}; {address}: {error}")
    hint = f"RAY_AUTH_MODE here is {os.environ['RAY_AUTH_MODE']}"
    raise ValueError(f"--address must be that of a Ray cluster ({hint}); {address}: {error}")


def require_ray() -> None:
    """Refuses to continue if Ray is not installed."""
    require_installed("--engine ray", ["ray"], "ray")


def require_store(megabytes: int, needed: int = LEAST_STORE_MEGABYTES) -> None:
    """Refuses an object store that is too small for the run, or too large for the machine."""
    if megabytes < needed:
        rule = f"be at least {needed}, or data in transit spills to disk"
        raise require.refuse("--object-store-megabytes", rule, megabytes)
    with contextlib.suppress(FileNotFoundError):
        free = shutil.disk_usage("/dev/shm").free // MEGABYTE
        if megabytes > free:
            rule = f"be at most {free}, the free space of /dev/shm"
            raise require.refuse("--object-store-megabytes", rule, megabytes)


def end_deserted_sessions() -> list[str]:
    """Removes sessions of this user whose owner and watchdog were both killed."""
    deserted = []
    for directory in Path(_temporary_directory()).glob(f"{_PREFIX}*"):
        if directory.stat().st_uid == os.getuid() and _is_deserted(directory):
            watchdog.end_session(str(directory), grace_seconds=0.0)
            deserted.append(str(directory))
    return deserted


def _is_deserted(directory: Path) -> bool:
    """Whether no process holds its lock; a session without a lock is just being created."""
    try:
        with (directory / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except (FileNotFoundError, BlockingIOError):
        return False


def _temporary_directory() -> str:
    """A short path, even if TMPDIR is long: socket paths have at most 107 characters."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= 24 else "/tmp"
