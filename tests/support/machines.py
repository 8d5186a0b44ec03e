"""Machines in network namespaces, and a Ray cluster on them.

Each machine has its own address, name and temporary files; all share the directory `shared`.

Nothing touches the network of the machine the tests run on: a namespace of its own holds a bridge,
and every link goes from there to the namespace of one machine. All processes on these machines are
known by their namespace, so whatever a test started can be ended, and nothing else is.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import ezgreedy

_PREFIX = "ezgreedy-test-"
_DIRECTORY = "ez"
_NETWORK = "10.77.0"  # seen by nobody else
_END_SECONDS = 20.0
_RAY_SECONDS = 100.0
_ATTEMPTS = 3
# Every process of a machine sees that machine's own files under the same path, as on real ones.
_ENTER = 'hostname "$1" && mount --bind "$2" "$3" && shift 3 && exec "$@"'


def require_machines():
    """Skips the test if this user may not make network namespaces, with the reason."""
    if sys.platform != "linux" or not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("network namespaces need Linux with iproute2 and util-linux")
    name = f"{_PREFIX}{os.getpid()}-try"
    attempts = [
        ["ip", "netns", "add", name],
        ["ip", "-n", name, "link", "add", "tried", "type", "bridge"],
        [*_inside(name), "mount", "--bind", "/tmp", "/tmp"],
    ]
    for attempt in attempts:
        tried = _run(*attempt)
        if tried.returncode:
            break
    _run("ip", "netns", "del", name)
    if tried.returncode:
        pytest.skip(f"network namespaces are not permitted here: {tried.stderr.strip()}")


class Machines:
    """Some machines on one network; use as a context manager.

    Args:
        number: how many.
    """

    def __init__(self, number):
        self.names = [f"{_PREFIX}{os.getpid()}-{index}" for index in range(number)]
        self._switch = f"{_PREFIX}{os.getpid()}-switch"

    def __enter__(self):
        end_deserted()
        # Short: paths of sockets have at most 107 characters.
        self.shared = Path(tempfile.mkdtemp(prefix=f"{_DIRECTORY}{os.getpid()}-", dir="/tmp"))
        self.temporary = self.shared / "t"
        self.temporary.mkdir()
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in (*self.names, self._switch):
            _remove(name)
        shutil.rmtree(self.shared, ignore_errors=True)

    def address(self, machine):
        return f"{_NETWORK}.{machine + 1}"

    def start(self, machine, command, **options):
        """A process on a machine; the same arguments as for subprocess.Popen."""
        place = str(self.shared / f"m{machine}")
        names = ["sh", f"machine{machine}", place, str(self.temporary)]
        return subprocess.Popen(
            [*_inside(self.names[machine]), "sh", "-c", _ENTER, *names, *command], **options
        )

    def pids(self, machine):
        return _pids(self.names[machine])

    def find(self, machine, program):
        """Processes of a machine whose program has this name, or begins with it and a dot."""
        return [pid for pid in self.pids(machine) if _program(pid).partition(".")[0] == program]

    def end(self, machine):
        """Ends every process on a machine, as if its power were cut."""
        _end(self.names[machine])

    def cut(self, machine):
        """Takes a machine off the network."""
        _must("ip", "-n", self._switch, "link", "set", f"port{machine}", "down")

    def mend(self, machine):
        _must("ip", "-n", self._switch, "link", "set", f"port{machine}", "up")

    def _build(self):
        switch = ("ip", "-n", self._switch)
        _must("ip", "netns", "add", self._switch)
        _must(*switch, "link", "add", "bridge", "type", "bridge")
        _must(*switch, "link", "set", "bridge", "up")
        for machine, name in enumerate(self.names):
            (self.shared / f"m{machine}").mkdir()
            port, there = f"port{machine}", ("ip", "-n", name)
            _must("ip", "netns", "add", name)
            _must(
                *switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name
            )
            _must(*switch, "link", "set", port, "master", "bridge", "up")
            _must(*there, "address", "add", f"{self.address(machine)}/24", "dev", "eth0")
            _must(*there, "link", "set", "eth0", "up")
            _must(*there, "link", "set", "lo", "up")


class RayMachines(Machines):
    """Machines that form a Ray cluster; the first is its head.

    Args:
        cpus: CPUs that each machine offers to Ray.
    """

    PORT = 6379

    def __init__(self, cpus):
        super().__init__(len(cpus))
        self._cpus = cpus
        self.head = f"{self.address(0)}:{self.PORT}"

    def __enter__(self):
        super().__enter__()
        path = [Path(ezgreedy.__file__).parents[1], Path(__file__).parents[1]]
        # A local session of other tests in this process has settings for itself.
        outside = {name: value for name, value in os.environ.items() if name[:4] != "RAY_"}
        self.environment = outside | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_raylet_start_wait_time_s": f"{_RAY_SECONDS:g}",
            "RAY_worker_niceness": "0",
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "TMPDIR": str(self.temporary),
        }
        try:
            self.start_ray()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_ray(self):
        """Starts the head and then all others."""
        self.join([0])
        self.join(range(1, len(self.names)))

    def join(self, machines):
        """Starts Ray on machines; on a busy one it may need a second attempt."""
        for _ in range(_ATTEMPTS):
            started = {machine: self._start_ray(machine) for machine in machines}
            machines = [machine for machine in started if not _succeeds(started[machine])]
            if not machines:
                return
            for machine in machines:
                self.end(machine)
        raise AssertionError("\n".join(self._log(machine).read_text() for machine in machines))

    def ezgreedy(self, machine, *arguments, **options):
        """The command `ezgreedy` on a machine."""
        command = [sys.executable, "-m", "ezgreedy", *arguments]
        return self.start(machine, command, env=self.environment, **options)

    def _start_ray(self, machine):
        role = [f"--address={self.head}"]
        if machine == 0:
            here = f"--temp-dir={self.temporary / 'ray'}"
            role = ["--head", f"--port={self.PORT}", "--include-dashboard=false", here]
        command = [
            *(sys.executable, "-m", "ray.scripts.scripts", "start", *role),
            f"--node-ip-address={self.address(machine)}",
            f"--num-cpus={self._cpus[machine]}",
            *("--object-store-memory=100000000", "--disable-usage-stats"),
        ]
        with self._log(machine).open("w") as log:
            output = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            return self.start(machine, command, env=self.environment, **output)

    def _log(self, machine):
        return self.shared / f"ray{machine}.log"


def _succeeds(process):
    """Whether a process ends in time, and well."""
    try:
        return process.wait(_RAY_SECONDS) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False


def end_deserted():
    """Removes what test processes that were killed have left."""
    for line in _run("ip", "netns", "list").stdout.splitlines():
        name = line.split()[0]
        owner = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and not Path(f"/proc/{owner}").exists():
            _remove(name)
    for directory in Path("/tmp").glob(f"{_DIRECTORY}[0-9]*-*"):
        owner = directory.name.removeprefix(_DIRECTORY).partition("-")[0]
        if not Path(f"/proc/{owner}").exists():
            shutil.rmtree(directory, ignore_errors=True)


def _inside(name):
    return ["ip", "netns", "exec", name, "unshare", "--uts", "--mount", "--propagation", "private"]


def _remove(name):
    _end(name)
    _run("ip", "netns", "del", name)


def _end(name):
    end = time.monotonic() + _END_SECONDS
    while (pids := _pids(name)) and time.monotonic() < end:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def _pids(name):
    """Living processes of a namespace."""
    pids = map(int, _run("ip", "netns", "pids", name).stdout.split())
    return [pid for pid in pids if _program(pid)]


def _program(pid):
    """Name of the program of a process; "" once it has ended."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return Path(os.fsdecode(command[0])).name
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _must(*command):
    done = _run(*command)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
