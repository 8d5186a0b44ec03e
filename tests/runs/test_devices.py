"""The device is not part of a run: one started on a GPU is evaluated and continued on a CPU."""

import shutil
from dataclasses import replace

import pytest
import torch

from ezgreedy.cli import main
from ezgreedy.runs.restored import restore
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import DriveOptions, resume
from ezgreedy.runs.training import Training
from support.edited_files import edit
from support.small_runs import small_run

QUIET = DriveOptions(1e6, is_quiet=True)
no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")


def paused(directory, settings, num_steps=150):
    """A run that was interrupted after some steps."""
    place = RunDirectory(directory)
    place.create(settings)
    training = Training(replace(settings, device="cpu"))
    for _ in range(num_steps):
        training.step()
    place.results.touch()
    place.checkpoint_store().save(1, {"training": training.state_dict(), "results_offset": 0})
    return directory


def on_a_gpu(directory, copy):
    """The same run as if it had been started on a GPU: its config.json says so."""
    shutil.copytree(directory, copy)
    edit(copy / "config.json", lambda config: config["settings"].update(device="cuda"))
    return copy


@pytest.mark.parametrize("agent", ["rainbow-ez", "r2d2-ez"])
def test_a_run_of_a_gpu_is_continued_and_evaluated_on_a_cpu(agent, tmp_path, capsys):
    ours = paused(tmp_path / "cpu", small_run(agent))
    theirs = on_a_gpu(ours, tmp_path / "cuda")
    config = (theirs / "config.json").read_bytes()
    printed = []
    for run, words in ((ours, []), (theirs, ["--device", "cpu"])):
        assert main(["resume", str(run), "--quiet", *words]) == 0
        assert main(["evaluate", str(run), *words]) == 0
        printed.append(capsys.readouterr().out)
        assert main(["watch", str(run), "--steps", "3", *words]) == 0
    assert printed[0].splitlines()[-3:] == printed[1].splitlines()[-3:]
    assert (theirs / "results.jsonl").read_bytes() == (ours / "results.jsonl").read_bytes()
    assert (theirs / "config.json").read_bytes() == config  # it still says where it was started


def test_checkpoints_of_one_device_are_those_of_all(tmp_path):
    run = paused(tmp_path / "run", replace(small_run(), device="cuda"))
    meta = next((run / "checkpoints").glob("checkpoint-*")) / "meta.json"
    assert '"device":"cuda"' in meta.read_text()  # as before, so that earlier versions read it
    edit(run / "config.json", lambda config: config["settings"].update(device="cpu"))
    assert restore(run).settings.device == "cpu"
    assert resume(run, QUIET) == 0


@no_gpu
@pytest.mark.parametrize("command", ["resume", "evaluate", "watch"])
def test_a_device_that_is_not_there_is_refused_with_the_way_out(command, tmp_path, capsys):
    run = paused(tmp_path / "run", replace(small_run(), device="cuda"), num_steps=2)
    before = sorted(path.name for path in run.iterdir())
    assert main([command, str(run)]) == 2
    told = capsys.readouterr().err
    assert "--device must be cpu if there is no CUDA device; got 'cuda'" in told
    assert sorted(path.name for path in run.iterdir()) == before


def test_an_unknown_device_is_refused(tmp_path, capsys):
    run = paused(tmp_path / "run", small_run(), num_steps=2)
    assert main(["evaluate", str(run), "--device", "tpu"]) == 2
    assert "device must be one of" in capsys.readouterr().err
