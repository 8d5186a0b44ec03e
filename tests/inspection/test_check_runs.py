"""Every file of a real run, damaged in every way: `check` names it, and a repair loses nothing."""

import shutil
from pathlib import Path

import pytest

from ezgreedy.cli import main
from ezgreedy.runs import settings_codec
from ezgreedy.runs.interruption import Interruption
from ezgreedy.runs.output_paths import SET_ASIDE
from ezgreedy.runs.run_loop import DriveOptions, resume, train
from support.edited_files import edit, without_checksums
from support.small_runs import small_run

QUIET = DriveOptions(1e6, is_quiet=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("check") / "whole"
    assert train(directory, small_run(), QUIET) == 0
    return directory


@pytest.fixture(scope="module")
def paused(tmp_path_factory):
    """The same run, stopped twice, which leaves two checkpoints with a row of results between."""
    directory = tmp_path_factory.mktemp("check") / "paused"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Interruption, "exit_code", 130)
        for carry_on, num_calls in ((train, 200), (resume, 250)):
            calls = iter(range(num_calls))
            is_over = property(lambda _, calls=calls: next(calls, None) is None)
            patch.setattr(Interruption, "requested", is_over)
            words = (small_run(),) if carry_on is train else ()
            assert carry_on(directory, *words, QUIET) == 130
    return directory


@pytest.fixture
def run(paused, tmp_path):
    shutil.copytree(paused, tmp_path / "run")
    return tmp_path / "run"


def newest(run, pattern):
    return sorted(run.glob(pattern))[-1]


def flip(path, bit=3):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1 << bit
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def drop(path):
    path.unlink()


def link(path):
    moved = path.with_name(path.name + ".elsewhere")
    path.rename(moved)
    path.symlink_to(moved)


FILES = {
    "config.json": lambda run: run / "config.json",
    "status.json": lambda run: run / "status.json",
    "results.jsonl": lambda run: run / "results.jsonl",
    "meta.json": lambda run: newest(run, "checkpoints/checkpoint-*/meta.json"),
    "arrays.safetensors": lambda run: newest(run, "checkpoints/checkpoint-*/arrays.safetensors"),
    ".rows": lambda run: newest(run, "checkpoints/segments/*.rows"),
    "events": lambda run: newest(run, "tensorboard/events.*"),
}
DAMAGES = [flip, cut, drop, link]
# Nobody can tell that TensorBoard's last records, or a file of them, have been there.
UNKNOWABLE = [("events", cut), ("events", drop)]
CASES = [
    pytest.param(name, damage, id=f"{name}-{damage.__name__}")
    for name in FILES
    for damage in DAMAGES
    if (name, damage) not in UNKNOWABLE
]


def check(run, *words):
    return main(["check", str(run), *words])


def files(directory):
    return {
        path.relative_to(directory): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_a_sound_run_is_said_to_be_sound_and_left_alone(run, whole, capsys):
    before = files(run)
    assert check(run) == 0
    told = capsys.readouterr().out
    assert "run, sound: rainbow-ez on minatar/breakout, seed 0: paused, saved at" in told
    assert "resume continues at" in told
    assert "note" not in told
    assert check(run, "--repair") == 0
    assert files(run) == before
    assert check(whole) == 0
    told = capsys.readouterr().out
    assert "finished, saved at 800 frames" in told
    assert "resume has nothing left to do" in told


@pytest.mark.parametrize(("name", "damage"), CASES)
def test_damage_is_named_and_a_repair_makes_the_run_sound_without_deleting(
    run, name, damage, capsys
):
    damage(FILES[name](run))
    before = files(run)
    assert check(run) == 1
    told = capsys.readouterr().out
    assert "damaged: " in told
    assert name in told
    assert "after --repair, resume" in told
    assert files(run) == before, "without --repair nothing is changed"
    assert check(run, "--repair") == 0
    assert f"set aside: {run}" in capsys.readouterr().out or damage is drop
    assert check(run) == 0
    everything = list(files(run).values())
    assert all(data in everything for data in before.values()), "something was deleted"


REPAIRED = [case for case in CASES if case.id in ("config.json-flip", ".rows-flip")]


def ends_alike(run, whole):
    assert check(run, "--repair") == 0
    assert resume(run, QUIET) == 0
    assert check(run) == 0
    for name in ("config.json", "results.jsonl"):
        assert (run / name).read_bytes() == (whole / name).read_bytes()
    for name in ("arrays.safetensors",):
        pattern = f"checkpoints/checkpoint-*/{name}"
        assert newest(run, pattern).read_bytes() == newest(whole, pattern).read_bytes()


@pytest.mark.parametrize(("name", "damage"), REPAIRED)
def test_a_repaired_run_ends_with_the_same_bytes(run, whole, name, damage):
    damage(FILES[name](run))
    ends_alike(run, whole)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "damage"), [case for case in CASES if case not in REPAIRED])
def test_a_run_ends_with_the_same_bytes_whatever_was_repaired(run, whole, name, damage):
    damage(FILES[name](run))
    ends_alike(run, whole)


def test_everything_damaged_at_once_starts_over_and_ends_alike(run, whole):
    for path in (run / "results.jsonl", *run.glob("checkpoints/*/arrays.safetensors")):
        flip(path)
    ends_alike(run, whole)


def test_swapped_settings_are_told_by_the_checkpoints_and_restored(run, whole, capsys):
    edit(run / "config.json", lambda config: config["settings"].update(seed=7))
    assert check(run) == 1
    told = capsys.readouterr().out
    assert "config.json: is of another run than the checkpoints, which differ in seed" in told
    assert check(run, "--repair") == 0
    assert (run / "config.json").read_bytes() == (whole / "config.json").read_bytes()


def test_swapped_checkpoints_are_set_aside(run, capsys):
    older, newer = sorted(run.glob("checkpoints/checkpoint-*"))
    older.rename(run / "third")
    newer.rename(older)
    (run / "third").rename(newer)
    assert check(run, "--repair") == 0
    told = capsys.readouterr().out
    assert told.count("in the place of another") == 2
    assert "resume starts from the beginning" in told


def test_rows_of_another_run_are_set_aside(run, tmp_path, capsys):
    other = tmp_path / "other"
    assert train(other, small_run(seed=5, frames=100), QUIET) == 0
    shutil.copy(other / "results.jsonl", run)
    assert check(run, "--repair") == 0
    told = capsys.readouterr().out
    assert "line 1: of another run" in told
    (kept,) = (run / SET_ASIDE).glob("*/results.jsonl")
    assert kept.read_bytes() == (other / "results.jsonl").read_bytes()


def test_settings_that_no_file_holds_cannot_be_repaired(run, capsys):
    flip(run / "config.json")
    shutil.rmtree(run / "checkpoints")
    before = files(run)
    assert check(run, "--repair") == 1
    assert "--repair can do nothing: restore the files from a copy" in capsys.readouterr().out
    assert files(run) == before


def test_a_run_of_an_earlier_version_is_sound_and_its_lack_of_checksums_is_said(run, capsys):
    without_checksums(run)
    for path in run.glob("checkpoints/checkpoint-*"):
        shutil.rmtree(path)  # their offsets are of rows with names
    edit(run / "status.json", lambda status: status.update(state="running", frames=0), seals=False)
    assert check(run) == 0
    told = capsys.readouterr().out
    assert "made before files had checksums: changes of the settings, the run of rows" in told


def test_a_run_that_is_being_written_is_not_repaired(run, capsys):
    from ezgreedy.runs.run_directory import RunDirectory

    flip(run / "status.json")
    with RunDirectory(run).log():
        assert check(run, "--repair") == 0
    assert "another process is working on it" in capsys.readouterr().out
    assert not (run / SET_ASIDE).exists()


def test_links_are_not_followed_to_move_what_they_point_to(run, tmp_path):
    outside = tmp_path / "outside"
    (run / "checkpoints").rename(outside)
    (run / "checkpoints").symlink_to(outside)
    before = files(outside)
    assert check(run) == 1
    assert check(run, "--repair") == 0
    assert files(outside) == before
    assert not (run / "checkpoints").exists()


@pytest.mark.parametrize("name", ["", "thesis.tex", "missing"])
def test_what_is_not_ours_is_refused(tmp_path, name, capsys):
    (tmp_path / "thesis.tex").write_text("precious")
    assert check(tmp_path / name) == 2
    assert "PATH must be a run, a sweep, an experiment or a collection" in capsys.readouterr().err


def test_committed_results_are_sound():
    results = Path(__file__).parents[2] / "results"
    assert check(results, "--quiet") == 0


def test_a_run_with_a_law_of_an_unknown_module_is_sound(run, capsys, monkeypatch):
    known = settings_codec.kinds()
    others = {name: made for name, made in known.items() if name != "Zeta"}
    monkeypatch.setattr(settings_codec, "kinds", lambda: others)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert main(["check", str(run), "--repair"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "settings.agent.durations is a 'Zeta', which is not known here: --import" in told
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert main(["resume", str(run)]) == 2
    assert "--import the module that registers it" in capsys.readouterr().err
