"""Sweeps on a real Ray, bound to this machine: placed, killed, interrupted, continued, refused."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from ezgreedy.cli import main
from ezgreedy.fleet.session import LocalSession
from ezgreedy.results.runs import run_directories
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import DriveOptions, train
from ezgreedy.sweeps import ray_engine as hosts
from ezgreedy.sweeps.jobs import BROKEN, ENDED, NO_ROOM, ProcessOutcome, Work
from ezgreedy.sweeps.placement import Demand
from ezgreedy.sweeps.ray_engine import RayEngine, RemoteProcess, complaint
from ezgreedy.sweeps.sweep_directory import SweepDirectory, code_version
from support import faults
from support.processes import stat_fields

pytestmark = [
    # Not imported here, for a session must be able to do so first.
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
    # What Ray does within this process is not ours to repair.
    pytest.mark.filterwarnings("ignore"),
]

TESTS = Path(__file__).parents[1]
SECONDS = 300.0  # for anything; the machine may be busy
NUM_CPUS = 2
TINY = Demand(0.1, 10_000_000, 0.0)
SMALL = [
    *("--games", "minatar/breakout", "--agents", "rainbow-ez", "--seeds", "2", "--frames", "2000"),
    *("--yes", "--probe-seconds", "0", "--set", "lanes=2", "--set", "agent.hidden_size=8"),
    *("--set", "agent.least_replay=40", "--set", "agent.replay_capacity=300"),
    *("--set", "agent.learner.batch_size=4", "--set", "evaluation.frames=60"),
    *("--set", "evaluation.frames_between=500", "--set", "evaluation.lanes=2"),
]


def arguments(out, *more):
    return ["sweep", "minatar", "--out", str(out), *SMALL, "--engine", "ray", *more]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        path = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
        patched.setenv("PYTHONPATH", os.pathsep.join(path))
        patched.chdir(tmp_path_factory.mktemp("machine"))  # where its processes are at work
        with LocalSession(NUM_CPUS, 100) as session:
            yield session


@pytest.fixture
def sweep(session, monkeypatch):
    """The command, through the session that this process is in already."""
    monkeypatch.setattr(hosts, "session_at", lambda address: nullcontext())
    return lambda out, *more: main(arguments(out, *more))


@pytest.fixture
def engine(session):
    return RayEngine(nullcontext(), lambda settings: TINY, [None])


def wait_for(condition, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def owners(out):
    """Processes that say they run a run."""
    found = [RunDirectory(path).status() for path in run_directories(out)]
    return [status["pid"] for status in found if status.get("state") == "running"]


def parent(pid):
    return int(stat_fields(pid)[1])


def states(out):
    return [RunDirectory(path).status().get("state") for path in run_directories(out)]


def meanwhile(function):
    """Does something in a thread; returns what to call for its end, with its failure if any."""
    failures = []

    def do():
        try:
            function()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()

    def end():
        thread.join(SECONDS)
        assert not thread.is_alive()
        assert not failures, failures

    return end


def check_same_as_alone(out, tmp_path, number):
    """What was played here and there, with whatever happened, is what one process plays."""
    assert states(out) == ["finished"] * 2
    path = run_directories(out)[number]
    alone = tmp_path / "alone"
    assert train(alone, RunDirectory(path).settings(), DriveOptions(60.0, is_quiet=True)) == 0
    assert (path / "results.jsonl").read_bytes() == (alone / "results.jsonl").read_bytes()


# Going on.


@pytest.mark.slow
def test_a_sweep_whose_driver_is_killed_leaves_no_process_and_goes_on(
    session, sweep, tmp_path, capsys
):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "ezgreedy", *arguments(out, "--address", session.address)]
    often = ["--checkpoint-seconds", "0.5", "--checkpoint-share", "1"]
    process = subprocess.Popen([*command, *often], stderr=subprocess.PIPE)
    wait_for(lambda: owners(out) or process.poll() is not None)
    assert process.poll() is None, process.stderr.read()
    process.kill()
    process.communicate()
    wait_for(lambda: not owners(out), 60.0)  # their machine lived, so they saved
    assert "paused" in states(out)
    assert sweep(out) == 0
    told = capsys.readouterr().err
    assert "2 runs: 2 done, 0 running, 0 failed, 0 pending; 4,000 of 4,000 frames" in told
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*")}
    assert sweep(out) == 0
    assert "all 2 runs are done" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*")} == before
    check_same_as_alone(out, tmp_path, 0)


@pytest.mark.slow
def test_ctrl_c_lets_all_runs_save_and_deaths_are_failed_attempts(sweep, tmp_path, capsys):
    out = tmp_path / "out"

    def interrupt():
        wait_for(lambda: owners(out))
        os.kill(os.getpid(), signal.SIGINT)

    end = meanwhile(interrupt)
    assert sweep(out) == 130
    end()
    assert "stopped; repeat the command to continue" in capsys.readouterr().err
    assert not owners(out)
    assert "paused" in states(out)

    def kill():
        wait_for(lambda: owners(out))
        process = owners(out)[0]
        os.kill(process, signal.SIGKILL)
        wait_for(lambda: set(owners(out)) - {process})
        other = min(set(owners(out)) - {process})
        os.kill(parent(parent(other)), signal.SIGKILL)  # what Ray holds for it

    end = meanwhile(kill)
    assert sweep(out) == 0
    end()
    told = capsys.readouterr().err
    assert told.count(" failed (its process ended with signal SIGKILL); trying again in") == 1
    assert told.count(" failed (its machine or process died: ") == 1
    assert told.count("trying again in") == 2
    assert main(["sweep", "status", str(out)]) == 0
    assert "2 runs: 2 done" in capsys.readouterr().out
    check_same_as_alone(out, tmp_path, 1)


@pytest.mark.slow
def test_a_run_that_breaks_is_given_up_while_the_rest_goes_on(sweep, tmp_path, capsys):
    out = tmp_path / "out"
    games = ["--games", "gymnasium/support.faults:Burning-v0,minatar/breakout", "--seeds", "1"]
    Path(faults.MARK).touch()
    assert sweep(out, *games) == 1
    told = capsys.readouterr().err
    assert told.count("the lamp burned out") == 3
    assert "failed for good" in told
    assert told.count("minatar-breakout_rainbow-ez_seed0") == 1
    assert main(["sweep", "status", str(out)]) == 0
    assert "1 done, 0 running, 1 failed, 0 pending" in capsys.readouterr().out
    Path(faults.MARK).unlink()
    assert sweep(out, *games) == 0


@pytest.mark.slow
def test_a_ray_of_its_own_is_cleared_away(tmp_path):
    command = [sys.executable, "-m", "ezgreedy", *arguments(tmp_path / "out", "--seeds", "1")]
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent / "src"), "TMPDIR": "/tmp"}
    before = set(Path("/tmp").glob("ezgreedy-ray-*"))
    done = subprocess.run(command, env=environment, timeout=SECONDS, check=False)
    assert done.returncode == 0
    assert states(tmp_path / "out") == ["finished"]
    assert set(Path("/tmp").glob("ezgreedy-ray-*")) <= before


# Single processes.


def test_hosts_tell_what_became_of_their_process(engine, tmp_path):
    full = engine.begin(Work(faults.fill_up, (), tmp_path / "log"), None)
    gone = engine.begin(Work(faults.vanish, (), tmp_path / "log"), None)
    pending = {full, gone}
    end = time.monotonic() + SECONDS
    while pending and time.monotonic() < end:
        pending -= set(engine.wait(pending, 1.0))
    assert full.outcome() == ProcessOutcome(NO_ROOM, "No space left on device: replay")
    assert gone.outcome() == ProcessOutcome(BROKEN, "its process ended with exit code 7")
    gone.stop(1.0)  # there is nothing to stop any more


def test_what_waits_for_a_place_can_be_stopped_or_is_given_up(engine, tmp_path, monkeypatch):
    work = Work(faults.vanish, (), tmp_path / "log")
    asked, waiting = (RemoteProcess(work, TINY._replace(cpus=64.0)) for _ in range(2))
    assert engine.wait([asked, waiting], 0.0) == []
    asked.ask_to_stop()
    wait_for(lambda: engine.wait([asked, waiting], 0.1) == [asked])
    assert asked.outcome() == ProcessOutcome(ENDED, None)
    monkeypatch.setattr(hosts, "_SECONDS_BETWEEN_LOOKS", 0.0)
    wait_for(lambda: engine.wait([waiting], 0.1) == [waiting])
    kind, told = waiting.outcome()
    assert kind == BROKEN
    assert f"a run asks for 64 CPUs, 10 MB of memory and 0 GPUs; the only one, {_host()}," in told
    assert not (tmp_path / "log").exists()


def _host():
    import socket

    return socket.gethostname()


# What is refused.


@pytest.mark.parametrize(
    ("option", "asked"),
    [
        (["--cpus-per-run", "3"], "a run asks for 3 CPUs, 604 MB of memory and 0 GPUs"),
        (["--memory-per-run", "1000000"], "1 CPUs, 1000.0 TB of memory and 0 GPUs"),
        (["--gpus-per-run", "0.5"], "1 CPUs, 604 MB of memory and 0.5 GPUs"),
        (["--set", "device=cuda"], "1 CPUs, 604 MB of memory and 1 GPUs"),
    ],
)
def test_runs_that_fit_on_no_machine_are_refused_with_what_there_is(
    sweep, tmp_path, capsys, option, asked
):
    assert sweep(tmp_path / "out", *option) == 2
    told = capsys.readouterr().err
    assert "must fit on one machine of the cluster" in told
    assert f"{asked}; the only one, {_host()}, has {NUM_CPUS} CPUs, " in told
    assert not (tmp_path / "out").exists()


def test_a_directory_that_machines_do_not_share_is_refused(engine, tmp_path):
    with SweepDirectory(tmp_path):
        engine.require_directory(tmp_path)
    message = r"--out must be a directory that all machines share.* locks do not hold"
    with pytest.raises(ValueError, match=message):  # nobody holds the lock now
        engine.require_directory(tmp_path)
    message = rf"\({_host()}: No such file or directory: {tmp_path}/there"
    with pytest.raises(ValueError, match=message):
        engine.require_directory(tmp_path / "there")


def test_machines_with_other_code_complain(tmp_path):
    with SweepDirectory(tmp_path):
        assert complaint(tmp_path, code_version()) == ""
        assert "it has ezgreedy" in complaint(tmp_path, "0.0.9+old")
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.lock"]


def test_an_address_without_a_cluster_is_refused_in_time(tmp_path, capsys):
    begun = time.monotonic()
    assert main(arguments(tmp_path / "out", "--address", "127.0.0.1:9")) == 2
    assert time.monotonic() - begun < 30.0
    assert "--address must be HOST:PORT of a Ray cluster that can be reached" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()
