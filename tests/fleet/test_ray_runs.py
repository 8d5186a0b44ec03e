"""Runs on Ray as they are on disk: killed, interrupted, resumed, and what is refused."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.cli import main
from ezgreedy.fleet import session as sessions
from ezgreedy.fleet import watchdog
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.fleet.ray_run_loop import SNAPSHOTS, read_engine, write_engine
from ezgreedy.results.store import read_results
from ezgreedy.runs.restored import restore
from ezgreedy.runs.run_directory import RunDirectory
from support.edited_files import edit

TESTS = Path(__file__).parents[1]
SECONDS = 240.0  # for anything; the machine may be busy
NEEDS_RAY = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)
TRAIN = """
import sys
from pathlib import Path
from ezgreedy.fleet import ray_run_loop as driving
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.runs.run_loop import DriveOptions
from ezgreedy.agents.run_settings import EvaluationSettings
from support.small_runs import small_sequence_run

settings = small_sequence_run(
    "r2d2-ez", lanes=4, frames=5000, frames_per_report=500,
    evaluation=EvaluationSettings(frames_between=2000, frames=60, lanes=2),
)
fleet = FleetSettings(actors=2)
sys.exit(driving.train(Path(sys.argv[1]), settings, fleet, DriveOptions(1.0, True, 1.0)))
"""
RESUME = """
import sys
from ezgreedy.cli import main

often = ["--checkpoint-seconds", "1", "--checkpoint-share", "1"]
sys.exit(main(["resume", *sys.argv[1:], "--quiet", *often]))
"""


@pytest.fixture
def place():
    """A short directory: one for the temporary files of Ray, and one for the run."""
    directory = tempfile.mkdtemp(prefix="ez-", dir="/tmp")
    yield Path(directory)
    shutil.rmtree(directory, ignore_errors=True)


def start(code, place, *more):
    environment = os.environ | {"TMPDIR": str(place), "PYTHONPATH": _path()}
    return subprocess.Popen(
        [sys.executable, "-c", code, str(place / "run"), *more],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _path():
    return os.pathsep.join(
        [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    )


def wait_until(condition, process, seconds=SECONDS):
    begun = time.monotonic()
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() - begun < seconds
        time.sleep(0.05)


def frames_saved(run):
    """How many frames the newest checkpoint has; 0 if there is none."""
    loaded = Checkpoints(run.checkpoints, run.identity()).load()
    return 0 if loaded is None else loaded.state["training"]["frames"]


def has_trained(run):
    """Whether some of it is saved: enough that there is something to lose, and to keep.

    The first checkpoint may be of frame 0. The run goes on, and may replace what is being read.
    """
    with suppress(OSError, ValueError):
        return run.config.exists() and frames_saved(run) > 0 and len(read_results(run.results)) > 1
    return False


def is_cleared(place):
    """Whether nothing is left of a session: no process and no file."""
    return not watchdog.session_processes(str(place)) and not list(place.glob("ezgreedy-ray-*"))


def check_results(run):
    rows = read_results(run.results)
    assert len({(row["kind"], row["frames"]) for row in rows}) == len(rows)
    training = [row["frames"] for row in rows if row["kind"] == "training"]
    evaluations = [row for row in rows if row["kind"] == "evaluation"]
    assert training == sorted(training)
    assert training[-1] >= 5000
    # At 0, 2,000 and 4,000 frames unless the evaluator was busy, and at the end.
    at = [row["frames"] for row in evaluations]
    assert at == sorted(set(at))
    assert 2 <= len(at) <= 4
    assert at[-1] >= 5000
    assert run.status()["state"] == "finished"
    return rows


@pytest.mark.slow
@NEEDS_RAY
def test_a_run_whose_driver_is_killed_continues_and_leaves_no_process(place):
    run = RunDirectory(place / "run")
    process = start(TRAIN, place)
    wait_until(lambda: has_trained(run), process)
    process.kill()
    process.communicate()
    begun = time.monotonic()
    while not is_cleared(place):
        assert time.monotonic() - begun < 30.0, watchdog.session_processes(str(place))
        time.sleep(0.1)
    before = frames_saved(run)
    assert before > 0
    resumed = start(RESUME, place)
    said = resumed.communicate(timeout=SECONDS)[1]
    assert resumed.returncode == 0, said
    continued = f"continuing at {before:,} of 5,000 frames"
    assert continued in said or before >= 5000
    check_results(run)
    assert is_cleared(place)
    restored = restore(run.path)  # what evaluate and watch look at
    assert restored.frames >= 5000
    assert int(restored.state["learner"]["num_updates"]) > 0
    # The replay is gone, on disk too, and there is nothing left to resume.
    assert run.status()["has_replay"] is False
    assert not (run.path / SNAPSHOTS).exists()
    before = run.results.read_bytes()
    assert main(["evaluate", str(run.path), "--frames", "60"]) == 0
    assert main(["resume", str(run.path)]) == 0
    assert run.results.read_bytes() == before


@NEEDS_RAY
@pytest.mark.slow
def test_a_finished_run_that_was_killed_before_it_dropped_its_replay_does_so_later(place):
    run = RunDirectory(place / "run")
    process = start(TRAIN, place)
    said = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 0, said
    left = run.path / SNAPSHOTS / "memory-0"
    left.mkdir(parents=True)
    run.write_status("running", frames=0)
    before = run.results.read_bytes()
    resumed = start(RESUME, place)
    said = resumed.communicate(timeout=SECONDS)[1]
    assert resumed.returncode == 0, said
    assert (run.status()["state"], run.status()["has_replay"]) == ("finished", False)
    assert not left.exists()
    assert run.results.read_bytes() == before


@NEEDS_RAY
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_saves_and_continues(place, number):
    run = RunDirectory(place / "run")
    process = start(TRAIN, place)
    wait_until(lambda: has_trained(run), process)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + number, said
    assert run.status()["state"] == "paused"
    assert is_cleared(place)
    assert (run.path / SNAPSHOTS).exists()
    resumed = start(RESUME, place, "--keep-replay")
    said = resumed.communicate(timeout=SECONDS)[1]
    assert resumed.returncode == 0, said
    check_results(run)
    assert (run.path / SNAPSHOTS / "memory-0").exists()


@NEEDS_RAY
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["rainbow-ez"],
            "agent must be one of r2d2, r2d2-rnd, r2d2-rnd-literal, r2d2-bootstrap, r2d2-ez, "
            "r2d2-tanh for --engine ray",
        ),
        (["r2d2-ez", "--actors", "17"], "actors must be at most 16, the number of lanes; got 17"),
        (
            [
                *("r2d2-ez", "--set", "agent.replay_capacity=2000"),
                *("--set", "agent.replay_bytes_per_observation=1"),
            ],
            "replay_bytes_per_observation must be at least",
        ),
        (["r2d2-ez", "--actors", "0"], "actors must be at least 1; got 0"),
        (["r2d2-ez", "--lanes-per-actor", "0"], "--lanes-per-actor must be at least 1; got 0"),
        (["r2d2-ez", "--shards", "3"], "shards must be at most 2, the number of actors; got 3"),
        (
            ["r2d2-ez", "--object-store-megabytes", "20"],
            "--object-store-megabytes must be at least",
        ),
        (["r2d2-ez", "--object-store-megabytes", "99999999"], "the free space of /dev/shm"),
        (["r2d2-ez", "--evaluators", "0"], "evaluators must be at least 1; got 0"),
        (["r2d2-ez", "--address", "nowhere"], "--address must be HOST:PORT of a Ray cluster"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(arguments, message, tmp_path, capsys):
    out = tmp_path / "run"
    game = ["--game", "minatar/breakout", "--scale", "laptop", "--engine", "ray"]
    assert main(["train", *arguments, *game, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_how_a_run_was_spread_is_remembered_also_from_before_there_were_evaluators(tmp_path):
    place = RunDirectory(tmp_path)
    fleet = FleetSettings(actors=3, shards=2, evaluators=4, evaluation_seconds=60.0)
    write_engine(place, fleet)
    assert read_engine(place) == fleet
    later = ("evaluators", "evaluation_seconds")
    edit(
        tmp_path / "engine.json",
        lambda said: {key: value for key, value in said.items() if key not in later},
        seals=False,
    )
    assert read_engine(place) == FleetSettings(actors=3, shards=2)


@pytest.mark.parametrize("option", ["--actors", "--lanes-per-actor", "--shards", "--evaluators"])
def test_options_of_the_fleet_need_the_engine(option, tmp_path, capsys):
    arguments = ["train", "r2d2", "--game", "minatar/breakout", "--out", str(tmp_path / "run")]
    assert main([*arguments, option, "2"]) == 2
    assert f"{option} must come with --engine ray" in capsys.readouterr().err


def test_what_a_cluster_objects_to_is_passed_on(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(ValueError, match=r"RAY_AUTH_MODE here is token.*no such token"):
        sessions._resources("head:6379", json.dumps({"error": "no such token"}))


def test_a_service_that_is_no_ray_is_given_up_in_time():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        begun = time.monotonic()
        with pytest.raises(ValueError, match="--address must be that of a Ray cluster"):
            sessions.ask(f"127.0.0.1:{server.getsockname()[1]}", seconds=6.0)
        assert time.monotonic() - begun < 12.0
