"""A real Ray on this machine: processes are killed and stopped, and training goes on."""

import importlib.util
import os
import signal
import time
from pathlib import Path

import pytest

from ezgreedy.cli import main
from ezgreedy.fleet import session as sessions
from ezgreedy.fleet import watchdog
from ezgreedy.fleet.coordinator import FleetTraining
from ezgreedy.fleet.fleet_settings import spread
from ezgreedy.fleet.roles import ActorRole
from ezgreedy.fleet.session import ClusterSession, LocalSession, ask, end_deserted_sessions
from ezgreedy.fleet.transport import unpack
from support.small_fleets import FLEET, PATIENCE, SECONDS, SETTINGS, goes_on, turn_until

pytestmark = [
    # Not imported here, for a session must be able to do so first.
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
    # What Ray does within this process is not ours to repair.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def session():
    with LocalSession(FLEET.num_processes, 100) as session:
        yield session
    assert watchdog.session_processes(session.directory) == []
    assert not Path(session.directory).exists()


@pytest.fixture(scope="module")
def training(session, tmp_path_factory):
    with FleetTraining(SETTINGS, FLEET, tmp_path_factory.mktemp("memories")) as training:
        goes_on(training)
        training.state_dict()
        yield training


def listening_addresses(pids):
    """Local addresses, in hexadecimal, of the TCP sockets that these processes listen on."""
    inodes = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                inodes.add(os.readlink(descriptor))
            except OSError:
                continue
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            is_listening = fields[3] == "0A"
            if is_listening and f"socket:[{fields[9]}]" in inodes:
                addresses.append(fields[1].rpartition(":")[0])
    return addresses


def test_a_session_listens_on_the_loopback_interface_alone(session, training):
    pids = [*watchdog.session_processes(session.directory), os.getpid()]
    addresses = listening_addresses(pids)
    assert len(addresses) >= 5  # so they were found
    # 127.0.0.1, also as IPv6 writes it, and ::1.
    allowed = {
        "0100007F",
        "0000000000000000FFFF00000100007F",
        "00000000000000000000000001000000",
    }
    assert set(addresses) <= allowed


@pytest.mark.parametrize(
    "name",
    [
        "actor 1",
        "memory 0",
        pytest.param("the learner", marks=pytest.mark.slow),
        pytest.param("the evaluator", marks=pytest.mark.slow),
    ],
)
def test_training_survives_the_death_of(training, name):
    before, restarts = training.pids()[name], training.num_restarts
    updates = training.num_updates
    os.kill(before, signal.SIGKILL)
    turn_until(training, lambda: training.num_restarts > restarts)
    turn_until(training, lambda: training.pids()[name] not in (None, before))
    goes_on(training)
    assert any(name in notice for notice in training.take_notices())
    assert training.num_restarts == restarts + 1
    assert training.status().get("duplicates", 0.0) == 0.0
    if name == "the learner":
        assert training.num_updates < updates + 100  # it went back to the checkpoint, and on


@pytest.mark.slow
def test_a_process_that_hangs_is_replaced(training):
    stopped, restarts = training.pids()["actor 0"], training.num_restarts
    os.kill(stopped, signal.SIGSTOP)
    took = turn_until(training, lambda: training.num_restarts > restarts)
    assert took < PATIENCE.silence + 10.0
    turn_until(training, lambda: training.pids()["actor 0"] not in (None, stopped))
    goes_on(training)
    assert not Path(f"/proc/{stopped}").exists()


@pytest.mark.slow
def test_tapes_of_two_processes_are_those_of_one(session):
    import ray

    from ezgreedy.fleet.supervision import launch

    def tapes(packed):
        return {
            (window.lane, window.episode, window.start): block.actions.tolist()
            for window in unpack(packed)
            for block in window.blocks
        }

    whole = ActorRole()
    whole.begin(SETTINGS, 0, spread(8, 1)[0], 0, None)
    expected = tapes(whole.play(60, 0, None)[1])
    found = {}
    for number, where in enumerate(spread(8, 2)):
        role = launch(ActorRole, num_cpus=0)
        ray.get(role.begin.remote(SETTINGS, number, where, 0, None), timeout=SECONDS)
        found |= tapes(ray.get(role.play.remote(60, 0, None), timeout=SECONDS)[1])
        ray.kill(role)
    assert len(expected) > 50
    assert found == expected


def test_samples_keep_to_their_ratio(training):
    goes_on(training)
    limiter = training.limiter
    # What is in flight may come on top, and nothing more.
    margin = float(limiter.ratio) * limiter.most_inserted + limiter.most_sampled
    assert abs(limiter.error) <= float(limiter.band) + margin


def test_a_state_is_of_one_moment(training):
    goes_on(training)
    state = training.state_dict()
    kept = state["fleet"]["limiter"]["num_inserted"]
    assert state["frames"] == training.frames
    assert int(state["agent"]["learner"]["num_updates"]) == training.num_updates
    assert all(actor is not None for actor in state["fleet"]["actors"])
    assert kept == training.limiter.num_inserted


def test_an_unreachable_address_is_refused_in_time():
    begun = time.monotonic()
    with pytest.raises(ValueError, match=r"--address must be HOST:PORT .* can be reached"):
        ask("127.0.0.1:9")
    with pytest.raises(ValueError, match="--address must be HOST:PORT of a Ray cluster; got"):
        ask("somewhere")
    assert time.monotonic() - begun < 30.0


def test_a_cluster_says_what_it_has(session):
    assert ask(session.address)["CPU"] == FLEET.num_processes
    cluster = ClusterSession(session.address)
    assert (cluster.num_cpus, cluster.num_gpus) == (FLEET.num_processes, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--evaluators", "4"],
            "1 shard and 4 evaluators must leave room for the learner and 1 actor, 7 CPUs in all",
        ),
        (
            ["--actors", "3", "--shards", "3"],
            "3 shards and 1 evaluator must leave room for the learner and 3 actors, 8 CPUs in all",
        ),
        (["--device", "cuda"], "device must be cpu on a cluster without GPUs"),
    ],
)
def test_a_fleet_for_which_a_cluster_has_no_room_is_refused(
    session, tmp_path, capsys, options, message
):
    out = tmp_path / "run"
    run = ["train", "r2d2-ez", "--game", "minatar/breakout", "--scale", "laptop", "--out", str(out)]
    assert main([*run, "--engine", "ray", "--address", session.address, *options]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "has 6 CPUs" in said or "cuda" in said
    assert not out.exists()


def test_a_cluster_of_another_version_is_refused(session, monkeypatch):
    pretended = sessions._QUESTION.replace("\ntry:", "\nray.__version__ = '2.0.0'\ntry:")
    monkeypatch.setattr(sessions, "_QUESTION", pretended)
    with pytest.raises(ValueError, match=r"same versions of Ray and Python .* Ray: 2\.0\.0"):
        ask(session.address)


def test_a_session_that_is_in_use_is_not_cleared_away(session):
    assert session.directory not in end_deserted_sessions()
    assert Path(session.directory).exists()
