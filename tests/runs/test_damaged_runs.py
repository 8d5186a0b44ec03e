"""Runs whose files were damaged, claimed twice, linked elsewhere or left by a crash."""

import multiprocessing
import os
import shutil
import signal
from dataclasses import replace

import gymnasium
import pytest

from ezgreedy.cli import main
from ezgreedy.results.store import DAMAGED_SUFFIX
from ezgreedy.runs.interruption import Interruption, StoppedAtOnce
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import DriveOptions, resume, train
from ezgreedy.runs.training import Training
from support.edited_files import edit
from support.small_runs import small_run

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["ezgreedy.runs.run_loop"])
# A checkpoint after every step: the last but one is from before the last results.
ALWAYS = DriveOptions(0.0, is_quiet=True, checkpoint_share=1.0, keeps_replay=True)
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    directory = tmp_path_factory.mktemp("damage") / "run"
    assert train(directory, small_run(), ALWAYS) == 0
    return directory


@pytest.fixture
def run(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return RunDirectory(tmp_path / "run")


def claim(directory, seed, barrier):
    barrier.wait(60)
    try:
        RunDirectory(directory).create(replace(small_run(), seed=seed))
    except ValueError:
        os._exit(2)


def test_one_of_two_runs_gets_a_new_directory_and_the_other_is_refused(tmp_path):
    for number in range(5):
        directory = tmp_path / str(number)
        barrier = context.Barrier(2)
        claims = [context.Process(target=claim, args=(directory, s, barrier)) for s in (1, 2)]
        for process in claims:
            process.start()
        for process in claims:
            process.join(60)
        codes = [process.exitcode for process in claims]
        assert sorted(codes) == [0, 2]
        assert RunDirectory(directory).settings().seed == 1 + codes.index(0)
        assert [path.name for path in directory.iterdir()] == ["config.json"]


def test_a_damaged_last_row_is_made_again_from_an_older_checkpoint(run, finished, capsys):
    whole = run.results.read_bytes()
    run.results.write_bytes(whole[:-1] + b"?")
    assert resume(run.path, ALWAYS) == 0
    assert "has lost its last rows" in capsys.readouterr().err.replace("\n", " ")
    assert run.results.read_bytes() == (finished / "results.jsonl").read_bytes()


def test_a_row_damaged_within_is_kept_aside_and_made_again(run, finished, capsys):
    whole = run.results.read_bytes()
    last = len(whole) - 10
    damaged = whole[:last] + bytes([whole[last] ^ 1]) + whole[last + 1 :]
    run.results.write_bytes(damaged)
    assert resume(run.path, ALWAYS) == 0
    assert f"line {whole.count(10)}" in capsys.readouterr().err.replace("\n", " ")
    assert run.results.read_bytes() == whole
    aside = run.results.with_name(run.results.name + DAMAGED_SUFFIX)
    assert aside.read_bytes() == damaged


def test_damage_older_than_every_checkpoint_is_named_and_changes_nothing(run, capsys):
    whole = bytearray(run.results.read_bytes())
    whole[20] ^= 1
    run.results.write_bytes(whole)
    assert main(["resume", str(run.path), "--quiet"]) == 2
    told = capsys.readouterr().err
    assert "results.jsonl, line 1: damaged" in told
    assert "Restore the file from a copy" in told
    assert run.results.read_bytes() == whole


@pytest.mark.slow
def test_lost_rows_of_a_finished_run_without_replay_are_named(tmp_path, capsys):
    place = RunDirectory(tmp_path / "run")
    assert train(place.path, small_run(), replace(ALWAYS, keeps_replay=False)) == 0
    rows = place.results.read_bytes().splitlines(keepends=True)
    place.results.write_bytes(b"".join(rows[:-1]))
    assert main(["resume", str(place.path), "--quiet"]) == 2
    assert "has lost its last rows" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["config.json", "results.jsonl", "status.json"])
def test_deeply_nested_files_are_named_as_damaged(run, name, capsys):
    (run.path / name).write_text(DEEP + "\n")
    commands = [["resume", str(run.path), "--quiet"], ["report", str(run.path)]]
    # A report does not read the status.
    for command in commands[: 1 if name == "status.json" else 2]:
        assert main(command) == 2
        assert name in capsys.readouterr().err


def test_a_value_of_the_wrong_type_names_its_file(run, capsys):
    edit(run.config, lambda config: config["settings"].update(lanes="two"))
    assert main(["resume", str(run.path)]) == 2
    told = capsys.readouterr().err
    assert "config.json: lanes must be an int; got str 'two'" in told
    edit(run.config, lambda config: config["settings"].update(lanes=100_000_000))
    assert main(["resume", str(run.path)]) == 2
    assert "lanes must be at most" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["results_offset", "training"])
def test_a_checkpoint_without_a_part_of_the_state_is_refused_by_its_number(run, missing, capsys):
    checkpoints = run.checkpoint_store()
    loaded = checkpoints.load()
    state = {name: value for name, value in loaded.state.items() if name != missing}
    checkpoints.save(loaded.step + 1, state)
    assert main(["resume", str(run.path), "--quiet"]) == 2
    told = capsys.readouterr().err
    assert f"checkpoint {loaded.step + 1} in " in told
    assert "does not fit this version of ezgreedy" in told


@pytest.mark.parametrize("name", ["results.jsonl", "checkpoints", "tensorboard"])
def test_links_out_of_the_directory_are_not_written_through(run, name, tmp_path, capsys):
    outside = tmp_path / "outside"
    (run.path / name).rename(outside)
    (run.path / name).symlink_to(outside)
    before = outside.read_bytes() if outside.is_file() else sorted(outside.iterdir())
    assert main(["resume", str(run.path), "--quiet"]) == 2
    told = capsys.readouterr().err
    assert name in told
    assert "symbolic link" in told
    assert before == (outside.read_bytes() if outside.is_file() else sorted(outside.iterdir()))


@pytest.mark.parametrize("name", ["config.json", "results.jsonl"])
def test_a_pipe_in_the_place_of_a_file_is_refused_instead_of_waited_for(run, name, capsys):
    (run.path / name).unlink()
    os.mkfifo(run.path / name)
    for command in (["resume", str(run.path)], ["report", str(run.path)]):
        assert main(command) == 2
        assert name in capsys.readouterr().err


@pytest.mark.parametrize("name", ["config.json", "status.json"])
def test_a_directory_in_the_place_of_a_file_is_named(run, name, capsys):
    (run.path / name).unlink()
    (run.path / name).mkdir()
    assert main(["resume", str(run.path)]) == 2
    assert f"Not a regular file: {run.path / name}" in capsys.readouterr().err


def failing(error):
    def step(self):
        raise error

    return step


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (OSError(28, "No space left on device", "/disk/file"), "failed", "No space left"),
        (RuntimeError("the environment broke"), "failed", "the environment broke"),
        (StoppedAtOnce(signal.SIGTERM), "paused", "stopped before it could save"),
    ],
)
def test_the_status_of_a_run_that_ended_does_not_say_that_it_runs(
    tmp_path, monkeypatch, error, state, reason
):
    monkeypatch.setattr(Training, "step", failing(error))
    with pytest.raises(type(error)):
        train(tmp_path / "run", small_run(), ALWAYS)
    status = RunDirectory(tmp_path / "run").status()
    assert status["state"] == state
    assert reason in status["reason"]


def test_the_second_signal_stops_at_once_with_its_own_exit_code(monkeypatch, capsys):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with Interruption() as interruption:
            os.kill(os.getpid(), number)
            assert interruption.exit_code == 128 + number
            with pytest.raises(StoppedAtOnce) as stopped:
                os.kill(os.getpid(), number)
        assert stopped.value.exit_code == 128 + number
    monkeypatch.setattr("ezgreedy.cli._parser", failing(StoppedAtOnce(signal.SIGTERM)).__get__(0))
    assert main(["list"]) == 143


def test_a_process_that_ignores_hang_ups_goes_on_ignoring_them():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not interruption.requested
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (BrokenPipeError(32, "Broken pipe"), "ezgreedy: Broken pipe\n"),
        (OSError(28, "No space left on device"), "No space left on device ("),
        (OSError(28, "No space left on device", "/nowhere/file"), "/nowhere/file ("),
    ],
)
def test_errors_of_the_system_name_what_is_known_of_them(monkeypatch, capsys, error, message):
    monkeypatch.setattr("ezgreedy.cli._parser", failing(error).__get__(0))
    assert main(["list"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "None" not in told
    assert ("B free)" in told) == (error.errno == 28)


class Unbuildable(gymnasium.Env):
    """An environment whose constructor raises."""

    def __init__(self):
        raise KeyError("no such level")


def test_an_environment_that_raises_in_its_constructor_is_named(tmp_path, capsys):
    gymnasium.register("ezgreedy-tests/Unbuildable-v0", Unbuildable)
    try:
        game = "gymnasium/ezgreedy-tests/Unbuildable-v0"
        out = str(tmp_path / "run")
        assert main(["train", "rainbow", "--game", game, "--out", out]) == 2
        told = capsys.readouterr().err
        assert "cannot be made: 'no such level' (KeyError)" in told
    finally:
        del gymnasium.registry["ezgreedy-tests/Unbuildable-v0"]
