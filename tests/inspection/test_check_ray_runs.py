"""Runs on Ray also have memories and engine.json: `check` verifies and mends them."""

import importlib.util
import shutil

import pytest

from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.cli import main
from ezgreedy.fleet import ray_run_loop
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.fleet.ray_run_loop import read_engine
from ezgreedy.results.runs import ENGINE_FILE
from ezgreedy.runs.interruption import Interruption
from ezgreedy.runs.output_paths import SET_ASIDE
from ezgreedy.runs.run_directory import FINISHED, RunDirectory
from ezgreedy.runs.run_loop import DriveOptions
from support.small_runs import small_sequence_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]
FLEET = FleetSettings(actors=2, shards=2)
FRAMES = 5000


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run on Ray that was interrupted after its first checkpoint."""
    directory = tmp_path_factory.mktemp("ray") / "run"
    saves = directory / "checkpoints"
    settings = small_sequence_run(
        "r2d2-ez",
        lanes=4,
        frames=FRAMES,
        evaluation=EvaluationSettings(frames_between=FRAMES, frames=60, lanes=2),
    )
    often = DriveOptions(1.0, is_quiet=True, checkpoint_share=1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Interruption, "exit_code", 130)
        patch.setattr(Interruption, "requested", property(lambda _: any(saves.glob("check*"))))
        assert ray_run_loop.train(directory, settings, FLEET, often) == 130
    return directory


@pytest.fixture
def run(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "run")
    return tmp_path / "run"


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 8
    path.write_bytes(data)


def test_a_sound_run_is_sound(run, capsys):
    assert main(["check", str(run)]) == 0
    assert "paused" in capsys.readouterr().out


def test_the_run_goes_on_after_its_engine_file_was_lost(run, capsys):
    (run / ENGINE_FILE).unlink()
    assert main(["check", str(run)]) == 1
    assert f"{run / ENGINE_FILE}: is missing" in capsys.readouterr().out
    assert main(["check", str(run), "--repair"]) == 0
    assert read_engine(RunDirectory(run)) == FLEET
    capsys.readouterr()
    assert main(["resume", str(run), "--quiet"]) == 0
    assert RunDirectory(run).status()["state"] == FINISHED
    assert "starts empty" not in capsys.readouterr().err


def test_a_damaged_engine_file_is_written_anew_and_kept_aside(run, capsys):
    flip(run / ENGINE_FILE)
    assert main(["check", str(run), "--repair"]) == 0
    assert read_engine(RunDirectory(run)) == FLEET
    assert list((run / SET_ASIDE).glob(f"*/{ENGINE_FILE}"))
    assert "written anew from a checkpoint" in capsys.readouterr().out


@pytest.mark.parametrize("harm", ["flip", "remove"])
def test_a_memory_without_its_snapshot_is_named_and_set_aside(run, capsys, harm):
    memory = run / "memories" / "memory-1"
    if harm == "flip":
        flip(sorted(memory.glob("checkpoint-*/*"))[-1])
    else:
        shutil.rmtree(memory)
    assert main(["check", str(run)]) == 1
    told = capsys.readouterr().out
    assert f"{memory}: has lost what it held" in told
    assert "memory-0" not in told
    assert main(["check", str(run), "--repair"]) == 0
    assert len(list((run / SET_ASIDE).glob("*/memories/memory-1"))) == (harm == "flip")
    assert "memory-1 begins empty" in capsys.readouterr().out
