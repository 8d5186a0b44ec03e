"""Sweeps through the command line: tiny real runs in processes that stop, break and go on."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ezgreedy.cli import main
from ezgreedy.results.runs import read_run, run_directories
from ezgreedy.results.store import ResultLog
from ezgreedy.runs.collection import collect
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.sweeps.definitions import find, members, run_id, sweeps
from ezgreedy.sweeps.forecast import Forecast, forecast, hasty, left
from ezgreedy.sweeps.jobs import BROKEN, NO_ROOM, Capacity, LocalProcess, Work
from ezgreedy.sweeps.sweep_directory import (
    DONE,
    FAILED,
    PENDING,
    RunState,
    SweepDirectory,
    code_version,
)
from support import faults
from support.edited_files import replace_text
from support.processes import with_environment

SMALL = [
    *("--agents", "rainbow-ez", "--seeds", "2", "--frames", "300", "--jobs", "2", "--yes"),
    *("--probe-seconds", "0", "--set", "lanes=2", "--set", "agent.hidden_size=8"),
    *("--set", "agent.least_replay=40", "--set", "agent.replay_capacity=300"),
    *("--set", "agent.learner.batch_size=4", "--set", "evaluation.frames=60"),
    *("--set", "evaluation.frames_between=200", "--set", "evaluation.lanes=2"),
]
BREAKOUT = ["--games", "minatar/breakout"]


def sweep(out, *arguments):
    return main(["sweep", "minatar", "--out", str(out), *SMALL, *arguments])


def contents(out):
    """Every byte of the runs."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted((out / "runs").rglob("*"))
        if path.is_file()
    }


def wait_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweeps") / "small"
    assert sweep(out, *BREAKOUT) == 0
    return out


# What a sweep is.


@pytest.mark.parametrize(
    ("sweep", "game", "agent", "known"),
    [
        ("atari100k", "Freeway", "rainbow", "Freeway_rainbow_seed0_739ae527db38"),
        ("minatar", "minatar/breakout", "r2d2-ez", "minatar-breakout_r2d2-ez_seed0_f20bbfee3004"),
    ],
)
def test_runs_keep_the_names_that_earlier_versions_gave_them(sweep, game, agent, known):
    """Otherwise a sweep that was begun with one version would start over with the next."""
    chosen = replace(find(sweep), games=(game,), agents=(agent,), num_seeds=1)
    assert [member.id for member in members(chosen, has_earlier_streams=True)] == [known]


def test_sweeps_have_the_runs_of_the_paper():
    sizes = {name: len(members(sweep)) for name, sweep in sweeps().items()}
    assert sizes == {
        "atari57-rainbow": 57 * 4 * 5,
        "atari57-r2d2": 57 * 4 * 3,
        "atari-durations": 6 * 15 * 3,
        "small-durations": 2 * 9 * 5,
        "atari100k": 26 * 3 * 5,
        "minatar": 5 * 8 * 3,
    }
    frames = {name: members(sweep)[0].settings.frames for name, sweep in sweeps().items()}
    billions = 30_000_000_000
    assert list(frames.values()) == [200_000_000, billions, billions, 200_000, 400_000, 500_000]


def test_ids_are_readable_and_differ_wherever_settings_do():
    runs = [run for sweep in sweeps().values() for run in members(sweep)]
    assert len({run.id for run in runs}) == len(runs)
    hashes = {run.id.rpartition("_")[2] for run in runs}
    assert len(hashes) == len({run.settings for run in runs}) > 2000
    assert runs[0].id.startswith("Alien_rainbow_seed0_")
    law = next(run for run in runs if run.variant == "geometric0.9")
    assert law.settings.agent.durations.decay == 0.9
    changed = members(find("minatar"), ["evaluation.frames=48001"])[0]
    assert changed.id != run_id(members(find("minatar"))[0].settings)
    assert changed.id.rpartition("_")[0] == "minatar-asterix_rainbow_seed0"


def test_runs_come_seed_by_seed():
    seeds = [run.settings.seed for run in members(find("minatar"))]
    assert seeds == sorted(seeds)


# Going on.


def test_every_run_of_a_sweep_is_finished_and_known_to_reports(finished, tmp_path, capsys):
    directories = run_directories(finished)
    runs = [read_run(directory) for directory in directories]
    assert [run.seed for run in runs] == [0, 1]
    assert all(run.is_finished for run in runs)
    assert [score.frames for score in runs[0].scores] == [0, 200, 300]
    entries = json.loads((finished / "sweep.json").read_text())["runs"]
    assert {directory.name for directory in directories} == set(entries)
    assert all(entry["code"] == [code_version()] for entry in entries.values())
    kept = [collected.run.manifest for collected in collect([finished], tmp_path)]
    assert [manifest["code"] for manifest in kept] == [[code_version()]] * len(entries)
    assert main(["sweep", "status", str(finished)]) == 0
    told = capsys.readouterr().out
    assert "2 runs: 2 done, 0 running, 0 failed, 0 pending; 600 of 600 frames" in told


def test_a_finished_sweep_given_again_changes_nothing(finished, capsys):
    before = contents(finished)
    assert sweep(finished, *BREAKOUT) == 0
    assert contents(finished) == before
    assert "all 2 runs are done" in capsys.readouterr().err


def test_more_games_join_and_the_finished_stay(finished, capsys):
    before = contents(finished)
    assert sweep(finished, "--games", "freeway", "--seeds", "1") == 0  # minatar/freeway
    after = contents(finished)
    assert {name: after[name] for name in before} == before
    assert len(run_directories(finished)) == 3
    assert capsys.readouterr().err.count("is done") == 1


def test_other_code_is_told_and_recorded_for_each_run(finished, capsys):
    file = finished / "sweep.json"
    text = file.read_text()
    replace_text(file, code_version(), "0.0.9+old")
    assert sweep(finished, *BREAKOUT) == 0
    assert "warning: the code has changed since" in capsys.readouterr().err
    assert "0.0.9+old" in file.read_text()
    file.write_text(text)


def test_runs_that_a_command_does_not_ask_for_are_told_apart(finished, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    file = out / "sweep.json"
    found = json.loads(file.read_text())
    name = next(name for name in found["runs"] if "breakout_rainbow-ez_seed0" in name)
    old = f"{name.rpartition('_')[0]}_0123456789ab"  # as if by other defaults
    replace_text(file, name, old)
    run = RunDirectory(out / "runs" / name)
    run.write_status("paused", frames=100, frames_per_second=50.0)
    run.path.rename(out / "runs" / old)
    before = contents(out)

    assert sweep(out, *BREAKOUT, "--seeds", "1") == 0
    told = capsys.readouterr().err
    assert f"warning: 1 unfinished runs ({old}): their settings differ from those now" in told
    line = "1 run: 1 done, 0 running, 0 failed, 0 pending; 300 of 300 frames; 1 more that"
    assert f"{line} this command does not ask for" in told
    after = contents(out)
    assert {path: after[path] for path in before} == before
    assert sweep(out, *BREAKOUT, "--seeds", "1") == 0
    assert "warning" not in capsys.readouterr().err  # there is nothing to begin anew
    assert main(["sweep", "status", str(out)]) == 0
    total = len(found["runs"]) + 1
    told = capsys.readouterr().out
    assert f"{total} runs: {total - 1} done, 0 running, 0 failed, 1 pending" in told
    assert f"{300 * total - 200:,} of {300 * total:,} frames, about" in told
    assert "ask for" not in told


@pytest.mark.slow
def test_a_run_that_breaks_is_tried_three_times_while_the_rest_goes_on(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path(faults.MARK).touch()
    games = ["--games", "gymnasium/support.faults:Burning-v0,minatar/breakout", "--seeds", "1"]
    assert sweep(tmp_path / "out", *games) == 1
    told = capsys.readouterr().err
    assert told.count("the lamp burned out") == 3
    assert "trying again in 1 s" in told
    assert "trying again in 2 s" in told
    assert "failed for good" in told
    assert told.count("minatar-breakout") == told.count("minatar-breakout_rainbow-ez_seed0") == 1
    assert main(["sweep", "status", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "1 done, 0 running, 1 failed, 0 pending" in told
    assert "the lamp burned out" in told
    log = next((tmp_path / "out" / "logs").glob("gymnasium*")).read_text()
    assert log.count("Traceback") >= 3

    Path(faults.MARK).unlink()
    assert sweep(tmp_path / "out", *games) == 0
    assert "2 runs: 2 done" in capsys.readouterr().err


@pytest.mark.slow
def test_a_killed_sweep_lets_its_runs_save_and_goes_on_with_each_once(tmp_path):
    out = tmp_path / "out"
    command = [
        *(sys.executable, "-m", "ezgreedy", "sweep", "minatar", "--out", str(out), *SMALL),
        *(*BREAKOUT, "--frames", "2000"),
    ]
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        environment = os.environ | {"SWEEP_OF_THIS_TEST": str(out)}
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
        wait_for(lambda: any(pids(out)))
        os.kill(process.pid, number)
        assert process.wait(60) == code
        # Runs that began only as the sweep ended have not said so yet, and save as well.
        wait_for(lambda: not with_environment(f"SWEEP_OF_THIS_TEST={out}"), 30.0)
        assert not pids(out)
        states = [RunDirectory(path).status().get("state") for path in run_directories(out)]
        assert "paused" in states
        assert not set(states) - {"paused", "finished", None}
    assert sweep(out, *BREAKOUT, "--frames", "2000") == 0
    runs = [read_run(path) for path in run_directories(out)]
    assert [run.seed for run in runs] == [0, 1]
    due = [*range(0, 2001, 200)]
    assert all([score.frames for score in run.scores] == due for run in runs)


def pids(out):
    """Processes that say they run a run."""
    found = [RunDirectory(path).status() for path in run_directories(out)]
    return [status["pid"] for status in found if status.get("state") == "running"]


def test_a_run_that_another_process_owns_is_waited_for(tmp_path, capsys):
    out = tmp_path / "out"
    begun = threading.Event()
    place = SweepDirectory(out)

    def own():
        wait_for(lambda: run_directories(out))
        with ResultLog(run_directories(out)[0] / "results.jsonl"):
            begun.set()
            wait_for(lambda: any("another process" in p.read_text() for p in out.glob("logs/*")))

    thread = threading.Thread(target=own)
    thread.start()
    code = sweep(out, *BREAKOUT, "--seeds", "1")
    thread.join()
    assert begun.is_set()
    assert code == 0
    place.read()
    assert [state.state for state in place.states()] == [DONE]


def test_whether_a_run_on_another_machine_goes_on_is_told_by_its_lock(tmp_path):
    run = members(find("minatar"))[0]
    with SweepDirectory(tmp_path) as place:
        place.open(find("minatar"), [], [run])
        place.begin(run)
        directory = place.run(run.id)
        directory.write_status("running", frames=100)
        assert place.state(run.id).state == "running"  # by this process
        replace_text(directory.status_file, socket.gethostname(), "elsewhere")
        assert place.state(run.id).state == PENDING
        with ResultLog(directory.results):
            assert place.state(run.id).state == "running"
        assert place.state(run.id) == RunState(run.id, "rainbow", PENDING, 100, 500_000)


@pytest.mark.slow
def test_eight_processes_do_forty_runs_once_each(tmp_path, capsys):
    assert sweep(tmp_path, *BREAKOUT, "--seeds", "40", "--frames", "20", "--jobs", "8") == 0
    told = capsys.readouterr().err
    assert told.count("is done") == 40
    runs = [read_run(path) for path in run_directories(tmp_path)]
    assert sorted(run.seed for run in runs) == list(range(40))
    assert all([score.frames for score in run.scores] == [0, 20] for run in runs)


# What goes wrong.


def test_a_full_disk_stops_the_sweep_and_loses_nothing(tmp_path, monkeypatch, capsys):
    begin = SweepDirectory.begin

    def full(self, member, prepare):
        if member.settings.seed == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        return begin(self, member, prepare)

    with monkeypatch.context() as patched:
        patched.setattr(SweepDirectory, "begin", full)
        assert sweep(tmp_path, *BREAKOUT) == 1
    told = capsys.readouterr().err
    assert f"No space left on device: {tmp_path}; make room and repeat the command" in told
    assert sweep(tmp_path, *BREAKOUT) == 0
    assert all(read_run(path).is_finished for path in run_directories(tmp_path))


def test_processes_tell_a_full_disk_from_other_ends(tmp_path):
    kind, told = LocalProcess(Work(faults.fill_up, (), tmp_path / "log")).outcome()
    assert (kind, told) == (NO_ROOM, "No space left on device: replay")
    kind, told = LocalProcess(Work(faults.vanish, (), tmp_path / "log")).outcome()
    assert (kind, told) == (BROKEN, "its process ended with exit code 7")


def test_a_full_disk_is_told_although_the_log_is_on_it():
    full = Path("/dev/full")  # opens, and refuses every byte
    kind, told = LocalProcess(Work(faults.fill_up, (), full)).outcome()
    assert (kind, told) == (NO_ROOM, "No space left on device: replay")
    kind, told = LocalProcess(Work(faults.talk, (), full)).outcome()
    assert (kind, told) == (NO_ROOM, "No space left on device: /dev/full")
    kind, told = LocalProcess(Work(faults.break_down, (), full)).outcome()
    assert (kind, told) == (BROKEN, "RuntimeError: the lamp burned out")


def test_a_log_that_cannot_be_opened_is_named(tmp_path):
    kind, told = LocalProcess(
        Work(faults.vanish, (), faults.Unopenable(tmp_path / "log"))
    ).outcome()
    assert (kind, told) == (NO_ROOM, f"No space left on device: {tmp_path / 'log'}")
    kind, told = LocalProcess(Work(faults.vanish, (), tmp_path / "absent" / "log")).outcome()
    assert kind == BROKEN
    assert told.startswith("FileNotFoundError")
    assert "absent/log" in told


@pytest.mark.slow
def test_damaged_results_of_a_finished_run_are_reported_and_left(finished, capsys):
    place = SweepDirectory(finished)
    place.read()
    name = next(state.id for state in place.states() if "breakout_rainbow-ez_seed0" in state.id)
    results = place.run(name).results
    whole, text = results.read_bytes(), place.file.read_text()
    results.write_bytes(whole.replace(b'"frames":200', b'"frames":201'))
    assert sweep(finished, *BREAKOUT) == 1
    told = capsys.readouterr().err
    assert "line 2: damaged, its number or checksum is wrong" in told
    assert "failed for good" in told
    assert "0 running, 1 failed, 0 pending" in told
    assert len(results.read_bytes()) == len(whole)
    results.write_bytes(whole)
    place.file.write_text(text)


def test_a_run_directory_of_something_else_is_left(finished):
    place = SweepDirectory(finished)
    run = members(find("minatar"), [])[0]
    place.run(run.id).path.mkdir()
    (place.run(run.id).path / "thesis.tex").write_text("precious")
    with pytest.raises(OSError, match="not empty"):
        place.begin(run)
    assert (place.run(run.id).path / "thesis.tex").read_text() == "precious"
    (place.run(run.id).path / "thesis.tex").unlink()
    assert place.begin(run) == place.run(run.id).path
    assert place.run(run.id).settings() == run.settings
    shutil.rmtree(place.run(run.id).path)


def test_a_directory_is_swept_by_one_process(finished, capsys):
    with SweepDirectory(finished):
        assert sweep(finished, *BREAKOUT) == 2
    assert "is being swept by another process" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["minatars"], "did you mean minatar"),
        (["minatar", "--agents", "rainbow-es"], "did you mean rainbow"),
        (["minatar", "--games", "minatar/brekout"], "did you mean minatar/breakout"),
        (
            ["minatar", "--games", "freeway,minatar/freeway"],
            "name each once; got 'minatar/freeway'",
        ),
        (["minatar", "--games", "Freway"], "did you mean minatar/freeway?"),
        (["minatar", "--games", "breakot"], "did you mean minatar/breakout?"),
        (["atari100k", "--games", "Freway"], "did you mean Freeway?"),
        (["minatar", "--games", "MontezumaRevnge"], "did you mean MontezumaRevenge?"),
        (["atari100k", "--games", "xyzzy"], "game must be one of the 57 Atari games"),
        (["minatar", "--games", "minatar/breakout,"], "--games must name at least one"),
        (["minatar", "--agents", "r2d2,r2d2"], "--agents must name each once; got 'r2d2'"),
        (["minatar", "--seeds", "0"], "--seeds must be at least 1; got 0"),
        (["minatar", "--frames", "0"], "--frames must be at least 1; got 0"),
        (["minatar", "--jobs", "0"], "--jobs must be at least 1; got 0"),
        (["minatar", "--scale", "huge"], "--scale must be one of 'paper', 'laptop', 'atari100k', "),
        (["minatar", "--engine", "slurm"], "--engine must be one of 'local', 'ray'; got 'slurm'"),
        (["minatar", "--address", "head:6379"], "--address must come with --engine ray"),
        (["minatar", "--gpus-per-run", "1"], "--gpus-per-run must come with --engine ray"),
        (["minatar", "--set", "lanes"], "--set must be NAME=VALUE; got 'lanes'"),
        (["minatar", "--set", "seed=3"], "--set must leave seed, game and agent.name"),
        (["minatar", "--set", "agent.sigma=3"], "name a setting of agent"),
        (["minatar", "--checkpoint-seconds", "-1"], "--checkpoint-seconds must be finite"),
        (["minatar", "--checkpoint-share", "2"], "--checkpoint-share must lie in [0, 1]; got 2"),
        (["minatar", "--probe-seconds", "-1"], "--probe-seconds must be finite"),
        (["minatar", "elsewhere"], "DIR must only follow status"),
        (["status"], "DIR must be given"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(tmp_path, capsys, arguments, message):
    out = tmp_path / "out"
    assert main(["sweep", *arguments, "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not out.exists()


def test_directories_of_something_else_are_refused_untouched(finished, tmp_path, capsys):
    assert sweep(finished / "runs" / "new", *BREAKOUT) == 2
    assert "--out must not lie within the sweep" in capsys.readouterr().err
    assert sweep(finished, *BREAKOUT, "--frames", "400") == 2
    assert "holds another sweep (frames: 300 there, 400 here)" in capsys.readouterr().err
    assert main(["sweep", "atari57-rainbow", "--out", str(finished), "--yes"]) == 2
    assert "holds another sweep (sweep: 'minatar' there" in capsys.readouterr().err
    (tmp_path / "thesis.tex").write_text("precious")
    assert sweep(tmp_path, *BREAKOUT) == 2
    assert "new or an empty directory, or one of this sweep" in capsys.readouterr().err
    assert main(["sweep", "status", str(tmp_path)]) == 2
    assert "made by ezgreedy sweep" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "sweep.json").write_text('{"format": 1')
    assert sweep(tmp_path, *BREAKOUT) == 2
    assert "sweep.json is damaged: not JSON" in capsys.readouterr().err


# What it will cost.


def test_a_costly_sweep_is_not_begun_where_nobody_can_be_asked(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    asked = ["sweep", "minatar", *BREAKOUT, "--agents", "rainbow", "--out", str(out)]
    monkeypatch.setattr("ezgreedy.sweeps.probing.speeds_of", lambda *_: {"rainbow": 10.0})
    assert main([*asked, "--jobs", "1", "--seeds", "1"]) == 2
    told = capsys.readouterr().err
    # 500,000 frames and four evaluations of 48,000.
    assert "1 run, 500,000 frames to play: about 19.2 h" in told
    assert "--yes must be given without a terminal: it takes about 19.2 h" in told
    assert not out.exists()


def test_runs_keep_their_ids_when_a_setting_is_added():
    runs = members(find("minatar"), has_earlier_streams=True)
    (run, *_) = [run for run in runs if run.settings.agent.name == "r2d2"]
    assert run.id == "minatar-asterix_r2d2_seed0_d36eab9cc04a"  # before there was such a setting
    agent = replace(run.settings.agent, replay_bytes_per_observation=800)
    assert run_id(replace(run.settings, agent=agent)) != run.id


def test_the_cost_counts_what_is_still_to_be_done(tmp_path):
    runs = members(find("minatar"), ["agent.hidden_size=8"])[:2]
    frames = runs[0].settings.frames
    states = {
        runs[0].id: RunState(runs[0].id, "rainbow", DONE, frames, frames, 100.0),
        runs[1].id: RunState(runs[1].id, "rainbow-eps", PENDING, 100_000, frames, 200.0),
    }
    shapes = {"minatar/asterix": (4, 10, 10)}
    cost = forecast(runs, states, shapes, {}, 2, tmp_path)
    assert (cost.num_runs, cost.frames, cost.seconds) == (1, 400_000, 2000.0)
    replay = runs[1].settings.agent.replay_bytes(shapes["minatar/asterix"])
    assert replay == 100_000 * (400 + 73)
    assert replay < cost.disk < 2 * replay
    later = [
        forecast(runs, {}, shapes, {}, 1, tmp_path, keeps_replay=k).disk for k in (False, True)
    ]
    assert later[1] - later[0] == replay  # that of the run that has finished
    assert replay < cost.memory < replay + 10**9
    assert not cost.doubts
    shared = forecast(runs, {}, shapes, {"rainbow": 100.0, "rainbow-eps": 100.0}, 2, tmp_path)
    elsewhere = Capacity(1, memory=None)
    alone = forecast(
        runs, {}, shapes, {"rainbow": 100.0, "rainbow-eps": 100.0}, 2, tmp_path, elsewhere
    )
    assert alone.seconds == shared.seconds * min(os.cpu_count(), 2)
    assert not any("memory" in doubt for doubt in replace(alone, memory=10**18).doubts)
    assert left(list(states.values()), 2) == 2000.0


def test_doubts_name_hours_disk_and_memory():
    doubts = Forecast(1, 1, 7200.0, 95, 85, 100, 100).doubts
    assert len(doubts) == 3
    assert "2.0 h" in doubts[0]
    assert Forecast(1, 1, None, 0, 0, 100, 100).doubts == ["its speed could not be measured"]
    assert Forecast(1, 1, 3600.0, 90, 80, 100, 100).doubts == []


@pytest.mark.parametrize("agent", ["rainbow-cts", "r2d2-rnd"])
def test_a_hasty_run_learns_what_the_run_learns_but_sooner(agent):
    run = members(find("minatar"))
    settings = next(m.settings for m in run if m.settings.agent.name == agent)
    quick = hasty(settings)
    assert quick.agent.learner == settings.agent.learner
    assert quick.agent.replay_capacity <= settings.agent.replay_capacity
    assert quick.game == settings.game


def test_failed_runs_do_not_count_in_the_time_left():
    states = [
        RunState("a", "r2d2", DONE, 100, 100, 50.0),
        RunState("b", "r2d2", FAILED, 10, 100, reason="broken"),
        RunState("c", "rainbow", PENDING, 0, 100),
    ]
    assert left(states, 4) == 2.0
    assert left(states[1:], 4) is None
    assert left(states[1:], 4, {"rainbow": 25.0}) == 4.0
