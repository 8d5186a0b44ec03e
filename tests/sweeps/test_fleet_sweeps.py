"""Sweeps whose runs are fleets, on a real Ray: killed, interrupted, continued, refused."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from ezgreedy.agents.agent import game_spec
from ezgreedy.agents.registry import run_of
from ezgreedy.cli import main
from ezgreedy.commands.sweep import _fleet
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.fleet.roles import network_copy
from ezgreedy.fleet.session import LocalSession
from ezgreedy.games.lanes import Lanes
from ezgreedy.results.runs import run_directories
from ezgreedy.results.store import read_results
from ezgreedy.runs.memory import PROCESS_BYTES, memory_bytes
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.sweeps import fleets
from ezgreedy.sweeps.definitions import find, members
from ezgreedy.sweeps.placement import Demand
from ezgreedy.sweeps.sweep_directory import SweepDirectory
from support.small_runs import small_sequence_run

pytestmark = [
    # Not imported here, for a session must be able to do so first.
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
    # What Ray does within this process is not ours to repair.
    pytest.mark.filterwarnings("ignore"),
]

SECONDS = 900.0  # for anything; the machine may be busy
SOURCES = Path(__file__).parents[2] / "src"
FLEET = FleetSettings(actors=1, shards=1, evaluators=1)
SHARE = FLEET.num_processes + 1
FRAMES = 15_000
SMALL = [
    *("lanes=4", "agent.learner.batch_size=4", "agent.learner.burn_in=2", "agent.stride=4"),
    *("agent.learner.length=8", "agent.feature_size=8", "agent.memory_size=6"),
    *("agent.hidden_size=7", "agent.samples_per_insert=1.5", "agent.least_windows=10"),
    *("agent.replay_capacity=300", "evaluation.frames=60", "evaluation.lanes=2"),
    *("evaluation.frames_between=2000", "frames_per_report=500"),
]


def arguments(out, *more):
    changes = [part for change in SMALL for part in ("--set", change)]
    runs = ["--games", "breakout", "--agents", "r2d2-ez", "--seeds", "2", "--frames", str(FRAMES)]
    engine = ["--engine", "ray", "--actors", "1", "--yes"]
    often = ["--checkpoint-seconds", "1", "--checkpoint-share", "1"]
    return ["sweep", "minatar", "--out", str(out), *runs, *changes, *engine, *often, *more]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(SOURCES))
        patched.chdir(tmp_path_factory.mktemp("machine"))  # where its processes are at work
        with LocalSession(SHARE, 100) as session:
            yield session


def wait_for(condition, process, log):
    end = time.monotonic() + SECONDS
    while not condition():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)


def start(out, session, log):
    command = [sys.executable, "-m", "ezgreedy", *arguments(out, "--address", session.address)]
    with log.open("a") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)


def saved_frames(place):
    """Frames of the newest checkpoint, which its run may be about to replace; 0 without one."""
    with contextlib.suppress(OSError, ValueError):
        loaded = place.checkpoint_store().load()
        return loaded.state["training"]["frames"] if loaded else 0
    return 0


def drivers(out):
    """Processes that drive a run which has something to lose, by its directory."""
    places = [RunDirectory(path) for path in run_directories(out)] if out.exists() else []
    running = [place for place in places if place.status().get("state") == "running"]
    return {place.path: place.status()["pid"] for place in running if saved_frames(place) > 0}


@pytest.mark.slow
@pytest.mark.timeout(3600)  # 933 s on two cores with a load of 20
def test_fleets_whose_driver_is_killed_and_a_sweep_that_is_interrupted_go_on(session, tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    sweep = start(out, session, log)
    try:
        # Only one fits at a time.
        wait_for(lambda: drivers(out), sweep, log)
        [(run, killed)] = drivers(out).items()
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: "its process ended with signal SIGKILL" in log.read_text(), sweep, log)
        # The other one is next.
        wait_for(lambda: drivers(out).keys() - {run}, sweep, log)
        [other] = drivers(out).keys() - {run}
        sweep.send_signal(signal.SIGINT)
        assert sweep.wait(SECONDS) == 130, log.read_text()
    finally:
        sweep.kill()
    assert RunDirectory(other).status()["state"] == "paused"
    saved = {path: saved_frames(RunDirectory(path)) for path in (run, other)}
    again = start(out, session, log)
    try:
        assert again.wait(SECONDS) == 0, log.read_text()
    finally:
        again.kill()
    assert "2 runs: 2 done, 0 running, 0 failed, 0 pending" in log.read_text()
    assert len(run_directories(out)) == 2
    for path in run_directories(out):
        rows = read_results(path / "results.jsonl")
        assert rows[-1]["frames"] >= FRAMES
        assert 0 < saved[path] < FRAMES
        assert len({(row["kind"], row["frames"]) for row in rows}) == len(rows)
        said = json.loads((path / "engine.json").read_text())
        assert (said["actors"], said["address"]) == (1, session.address)


# What a fleet needs, and what is refused.


def test_a_fleet_asks_for_a_cpu_for_each_process_and_one_for_its_driver():
    settings = small_sequence_run("r2d2-ez", lanes=4)
    wanted = fleets.need(settings, (4, 10, 10), FLEET)
    assert wanted.cpus == SHARE == 5
    assert wanted.memory > memory_bytes(settings, (4, 10, 10)) + 4 * 500_000_000
    assert wanted.gpus == 0.0
    assert fleets.need(replace(settings, device="cuda"), (4, 10, 10), FLEET).gpus == 1.0


def test_every_actor_of_a_fleet_counts_its_own_network():
    settings = run_of("r2d2-bootstrap", "paper", "Pong")
    spec = game_spec(Lanes("Pong", 1, settings.protocol, seed=0))
    copy = network_copy(settings, spec, is_actor=True)
    one, two = (
        fleets.need(settings, spec.frame_shape, replace(FLEET, actors=actors)).memory
        for actors in (1, 2)
    )
    assert two - one == PROCESS_BYTES + 4 * copy.num_parameters


def test_shares_are_counted_over_all_machines():
    wanted = Demand(6.0, 10**9, 0.0)
    fleets.require_share(wanted, Demand(6.0, 10**9, 0.0), "the cluster")
    with pytest.raises(ValueError, match=r"6 CPUs, 1.0 GB .*and there are 5 CPUs, 64.0 GB"):
        fleets.require_share(wanted, Demand(5.0, 64 * 10**9, 4.0), "the cluster")


@pytest.mark.slow
def test_a_cluster_that_cannot_hold_one_is_refused_with_what_it_would_need(session, tmp_path):
    out = tmp_path / "out"
    address = ["--address", session.address, "--actors", "2"]
    # In another process: this one is in the session already.
    command = [sys.executable, "-m", "ezgreedy", *arguments(out, *address)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 2
    assert "must fit into the cluster; a run asks for 6 CPUs, " in done.stderr
    assert "and there are 5 CPUs, " in done.stderr
    assert not out.exists()


@pytest.mark.parametrize("name", ["atari57-r2d2", "atari-durations"])
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_the_papers_r2d2_is_refused_here_with_what_a_run_needs(name, engine, tmp_path, capsys):
    out = tmp_path / "out"
    # More than any machine that runs this test has.
    games = ["--games", "Pong", "--actors", "320", "--shards", "4"]
    assert main(["sweep", name, "--out", str(out), *games, "--engine", engine]) == 2
    said = capsys.readouterr().err
    assert "328 CPUs" in said
    assert "GB of memory and 0 GPUs" in said
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--actors", "5"], "actors must be at most 4, the number of lanes; got 5"),
        (["--shards", "3"], "shards must be at most 1, the number of actors; got 3"),
        (["--evaluators", "0"], "evaluators must be at least 1; got 0"),
        (["--actors", "0", "--shards", "1"], "--shards must come with --actors of at least 1"),
        (["--cpus-per-run", "2"], "--cpus-per-run must come with runs in one process"),
        (["--engine", "local"], "--engine must be ray (each run is a fleet of 4 processes"),
        (
            ["--set", "agent.replay_bytes_per_observation=1"],
            "replay_bytes_per_observation must be at least",
        ),
    ],
)
def test_impossible_fleets_are_named_and_nothing_is_written(options, message, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(arguments(out, *options)) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_an_agent_that_cannot_be_a_fleet_is_named(tmp_path, capsys):
    out = tmp_path / "out"
    runs = ["--games", "breakout", "--engine", "ray", "--actors", "2"]
    assert main(["sweep", "minatar", "--out", str(out), *runs]) == 2
    assert "agent must be one of r2d2, " in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("are_fleets", [False, True])
def test_a_run_is_not_continued_as_what_it_is_not(are_fleets, tmp_path, capsys):
    asked = replace(
        find("minatar"),
        games=("minatar/breakout",),
        agents=("r2d2-ez",),
        num_seeds=2,
        frames=FRAMES,
    )
    runs = members(asked, SMALL)
    place = SweepDirectory(tmp_path / "out")
    with place:
        place.open(asked, SMALL, runs)
        place.begin(runs[0], fleets.FleetRuns(FLEET, None, is_private=True).prepare)
        if not are_fleets:
            (place.run(runs[0].id).path / "engine.json").unlink()
    more = ["--actors", "0"] if are_fleets else []
    assert main(arguments(place.path, *more)) == 2
    kind = "a fleet" if are_fleets else "one process"
    assert f"{runs[0].id} was started as {kind}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("scale", "given", "expected"),
    [
        ("paper", {}, (64, 2, 2)),
        ("paper", {"actors": 1}, (1, 1, 2)),
        ("paper", {"actors": 320, "shards": 4, "evaluators": 3}, (320, 4, 3)),
        ("paper", {"actors": 0}, None),
        ("laptop", {}, None),
        ("laptop", {"actors": 4}, (4, 1, 1)),
    ],
)
def test_runs_are_fleets_at_the_papers_scale_and_if_told(scale, given, expected):
    options = dict.fromkeys(("actors", "shards", "evaluators", "evaluation_seconds")) | given
    found = _fleet(Namespace(**options), replace(find("atari57-r2d2"), scale=scale))
    assert (found and (found.actors, found.shards, found.evaluators)) == expected
    assert _fleet(Namespace(**dict.fromkeys(options)), find("minatar")) is None
