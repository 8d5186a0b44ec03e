"""What a finished run keeps: enough to evaluate and watch it, without the replay."""

from dataclasses import replace

import pytest

from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.checkpoints.state_tree import encode
from ezgreedy.cli import main
from ezgreedy.results.runs import read_run
from ezgreedy.results.store import read_results
from ezgreedy.runs.evaluation import evaluate_agent
from ezgreedy.runs.restored import restore
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import DriveOptions, resume, train
from support.edited_files import edit
from support.small_runs import small_run

QUIET = DriveOptions(1e6, is_quiet=True)
KEEPING = replace(QUIET, keeps_replay=True)


def size(directory):
    return sum(path.stat().st_size for path in (directory / "checkpoints").rglob("*.*"))


def segments(directory):
    return list((directory / "checkpoints" / "segments").iterdir())


@pytest.fixture(params=["rainbow-ez", "r2d2-ez"])
def both(request, tmp_path):
    """A finished run, and the same with its replay."""
    settings = small_run(request.param)
    often = replace(QUIET, seconds_between_checkpoints=0.2, checkpoint_share=1.0)
    assert train(tmp_path / "run", settings, often) == 0
    assert train(tmp_path / "whole", settings, KEEPING) == 0
    return tmp_path / "run", tmp_path / "whole"


def test_it_is_small_and_plays_as_with_the_replay(both):
    run, whole = both
    assert not segments(run)
    assert segments(whole)
    assert len(list((run / "checkpoints").glob("checkpoint-*"))) == 1
    assert 4 * size(run) < size(whole)
    assert (run / "results.jsonl").read_bytes() == (whole / "results.jsonl").read_bytes()
    ours, theirs = restore(run), restore(whole)
    assert ours.frames == theirs.frames
    settings = ours.settings
    assert evaluate_agent(settings, ours, 5) == evaluate_agent(settings, theirs, 5)
    assert main(["watch", str(run), "--steps", "3"]) == 0


def test_resuming_it_changes_nothing(both):
    run, whole = both
    for directory in (run, whole):
        before = size(directory), (directory / "results.jsonl").read_bytes()
        assert resume(directory, QUIET) == 0
        assert RunDirectory(directory).status()["state"] == "finished"
        assert (directory / "results.jsonl").read_bytes() == before[1]
        assert size(directory) >= before[0]  # it keeps a replay that it kept
    assert segments(whole)


def test_killed_after_its_last_checkpoint_it_is_finished_by_resuming(both):
    run, _ = both
    place = RunDirectory(run)
    status = place.status()
    place.write_status("running", frames=0)
    assert resume(run, QUIET) == 0
    for name in ("state", "frames", "frames_to_play", "has_replay"):
        assert place.status()[name] == status[name]


def test_it_cannot_be_extended(both, capsys):
    run, _ = both
    edit(run / "config.json", lambda config: config["settings"].update(frames=5000))
    before = size(run)
    assert main(["resume", str(run)]) == 2
    told = capsys.readouterr().err
    assert "frames must be at most" in told
    assert "finished and dropped its replay" in told
    assert "(--keep-replay of train or resume keeps it); got 5000" in told
    assert size(run) == before


def evaluated(directory):
    records = read_results(directory / "results.jsonl")
    return [record["frames"] for record in records if record["kind"] == "evaluation"]


@pytest.mark.parametrize("frames_between", [None, 150])
def test_an_extended_run_is_evaluated_when_it_is_due_and_at_its_new_end(tmp_path, frames_between):
    evaluation = replace(small_run().evaluation, frames_between=frames_between)
    settings = replace(small_run(), frames=200, evaluation=evaluation, lanes=1)
    assert train(tmp_path / "run", settings, KEEPING) == 0
    assert resume(tmp_path / "run", QUIET, frames=400) == 0
    assert resume(tmp_path / "run", QUIET, frames=500) == 0
    at = [200, 400, 500] if frames_between is None else [0, 150, 200, 300, 400, 450, 500]
    assert evaluated(tmp_path / "run") == at
    straight = replace(settings, frames=500)
    assert train(tmp_path / "straight", straight, QUIET) == 0
    assert read_run(tmp_path / "run").is_finished
    both = read_run(tmp_path / "run"), read_run(tmp_path / "straight")
    assert both[0].scores[-1] == both[1].scores[-1]


def test_a_run_that_is_to_keep_its_replay_does_so_when_resumed(tmp_path, monkeypatch):
    from ezgreedy.runs import run_loop

    monkeypatch.setattr(run_loop.Interruption, "requested", True)
    assert train(tmp_path / "run", small_run(), KEEPING) == 128
    monkeypatch.undo()
    assert resume(tmp_path / "run", QUIET) == 0
    assert segments(tmp_path / "run")


def test_an_interrupted_run_keeps_everything(tmp_path, monkeypatch):
    from ezgreedy.runs import run_loop

    monkeypatch.setattr(run_loop.Interruption, "requested", True)
    assert train(tmp_path / "run", small_run(), QUIET) == 128
    loaded = RunDirectory(tmp_path / "run").checkpoint_store().load()
    assert any(isinstance(tail, AppendOnlyRing) for tail in encode(loaded.state).tails.values())
    monkeypatch.undo()
    assert resume(tmp_path / "run", QUIET) == 0
    assert not segments(tmp_path / "run")


@pytest.mark.slow
def test_the_command_line_keeps_the_replay_if_told(tmp_path):
    words = ["rainbow-ez", "--game", "deep_sea/6", "--scale", "laptop", "--frames", "300"]
    sizes = []
    for name, more in (("run", []), ("whole", ["--keep-replay"])):
        out = tmp_path / name
        assert main(["train", *words, "--out", str(out), "--quiet", *more]) == 0
        sizes.append(len(segments(out)))
    assert sizes[0] == 0 < sizes[1]
