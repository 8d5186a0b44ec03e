"""`ezgreedy collect`: what is kept of runs, what is added later, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest

from ezgreedy.cli import main
from ezgreedy.results.runs import read_run
from ezgreedy.results.store import read_results
from ezgreedy.runs.collection import collect
from ezgreedy.runs.run_loop import DriveOptions, train
from support.edited_files import edit
from support.small_runs import small_run
from support.written_runs import write_run


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A real run, small."""
    path = tmp_path_factory.mktemp("runs") / "breakout-ez-0"
    assert train(path, small_run(), DriveOptions(60, is_quiet=True)) == 0
    return path


def contents(directory):
    return {
        path.relative_to(directory): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def shortened(run, target, num_lines):
    """The run as it was when its results had so many lines."""
    shutil.copytree(run, target)
    lines = (run / "results.jsonl").read_bytes().splitlines(keepends=True)
    (target / "results.jsonl").write_bytes(b"".join(lines[:num_lines]))
    edit(target / "status.json", lambda status: status.update(rows=num_lines))
    return target


def test_settings_and_scores_are_kept_and_the_rest_is_not(real, tmp_path):
    (collected,) = collect([real], tmp_path / "kept", commit="abc123")
    kept = tmp_path / "kept" / real.name
    names = [path.name for path in sorted(kept.iterdir())]
    assert names == ["config.json", "manifest.json", "results.jsonl"]
    assert (kept / "config.json").read_bytes() == (real / "config.json").read_bytes()
    before = read_results(real / "results.jsonl")
    for record in before:
        record.pop("returns", None)
        record.pop("unfinished", None)
    assert read_results(kept / "results.jsonl") == before
    assert collected.num_new == len(before)
    whole, small = read_run(real), read_run(kept)
    assert (small.scores, small.reports) == (whole.scores, whole.reports)
    manifest = json.loads((kept / "manifest.json").read_text())
    assert manifest["commit"] == "abc123"
    assert (manifest["frames"], manifest["is_finished"]) == (800, True)
    assert manifest["packages_when_collected"].keys() >= {"numpy", "torch"}
    assert str(tmp_path) not in (kept / "manifest.json").read_text()


def test_collecting_again_changes_no_byte(real, tmp_path):
    arguments = ["collect", str(real.parent), "--out", str(tmp_path / "kept")]
    assert main([*arguments, "--commit", "abc"]) == 0
    before = contents(tmp_path / "kept")
    assert main(arguments) == 0
    assert contents(tmp_path / "kept") == before
    assert Path("minatar-breakout.svg") in before


def test_a_partial_run_is_labelled_and_grows(real, tmp_path, capsys):
    partial = shortened(real, tmp_path / "early" / real.name, 3)
    out = tmp_path / "kept"
    assert main(["collect", str(partial), "--out", str(out)]) == 0
    assert f"{real.name}: 300 of 800 frames, 3 new results" in capsys.readouterr().out
    manifest = json.loads((out / real.name / "manifest.json").read_text())
    assert (manifest["frames"], manifest["is_finished"]) == (300, False)
    early = (out / real.name / "results.jsonl").read_bytes()
    collect([real], out)
    assert (out / real.name / "results.jsonl").read_bytes().startswith(early)
    whole = contents(out / real.name)
    (collected,) = collect([partial], out)
    assert collected.num_new == 0
    assert contents(out / real.name) == whole, "an earlier state takes nothing away"


def test_what_a_crash_left_is_completed(real, tmp_path):
    collect([real], tmp_path / "whole")
    collect([real], tmp_path / "kept")
    there = tmp_path / "kept" / real.name
    (there / "manifest.json").unlink()
    results = (there / "results.jsonl").read_bytes()
    (there / "results.jsonl").write_bytes(results[: len(results) // 2])
    collect([real], tmp_path / "kept")
    assert contents(tmp_path / "kept") == contents(tmp_path / "whole")


def test_a_million_frames_take_less_than_30_kilobytes(tmp_path):
    reports = [(10_000 * i, 1234, 5.4321098765 + i / 7, 0.0123456789) for i in range(1, 101)]
    scores = [(100_000 * i, 5.0 + i / 7) for i in range(11)]
    run = write_run(tmp_path / "run", scores, reports)
    collect([run], tmp_path / "kept")
    assert sum(len(data) for data in contents(tmp_path / "kept" / "run").values()) < 30_000


def test_collecting_a_collection_into_itself_changes_nothing(real, tmp_path):
    collect([real], tmp_path / "kept")
    before = contents(tmp_path / "kept")
    collect([tmp_path / "kept"], tmp_path / "kept")
    assert contents(tmp_path / "kept") == before


def foreign_directory(tmp_path, run):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "thesis.txt").write_text("mine")


def foreign_run(tmp_path, run):
    collect([write_run(tmp_path / "other" / run.name, [(0, 1.0)], seed=7)], tmp_path / "kept")


def foreign_results(tmp_path, run):
    collect([write_run(tmp_path / "other" / run.name, [(0, 2.0)])], tmp_path / "kept")


def foreign_content(tmp_path, run):
    foreign_run(tmp_path, write_run(tmp_path / "third", [(0, 1.0)]))
    (tmp_path / "kept" / run.name).mkdir()
    (tmp_path / "kept" / run.name / "thesis.txt").write_text("mine")


def later_format(tmp_path, run):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "collection.json").write_text('{"format": 9}')


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (foreign_directory, "--out must be a new or an empty directory, or an earlier collection"),
        (foreign_run, "holds a run with settings other than those of"),
        (foreign_results, "have the same settings but other results"),
        (foreign_content, "holds something other than a collected run"),
        (later_format, "has format 9, which needs another version"),
    ],
)
def test_what_is_not_ours_is_refused_untouched(tmp_path, capsys, prepare, message):
    run = write_run(tmp_path / "runs" / "run", [(0, 1.0)])
    prepare(tmp_path, run)
    before = contents(tmp_path / "kept")
    first = write_run(tmp_path / "runs" / "a-good-one", [(0, 1.0)], seed=3)
    assert main(["collect", str(first), str(run), "--out", str(tmp_path / "kept")]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert contents(tmp_path / "kept") == before, "not even the good run was written"


def test_sources_that_are_no_runs_are_refused(tmp_path, capsys):
    (tmp_path / "config.json").write_text('{"name": "another tool"}')
    for source, message in (
        (tmp_path / "absent", "RUN must be a run of ezgreedy train, or a directory of runs"),
        (tmp_path, "config.json was not made by ezgreedy train"),
    ):
        assert main(["collect", str(source), "--out", str(tmp_path / "kept")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()


def test_two_runs_of_one_name_are_refused(tmp_path, capsys):
    runs = [write_run(tmp_path / str(i) / "run", [(0, 1.0)], seed=i) for i in range(2)]
    assert main(["collect", *map(str, runs), "--out", str(tmp_path / "kept")]) == 2
    assert "two runs are called run" in capsys.readouterr().err


def manifest(directory):
    return json.loads((directory / "manifest.json").read_text())


def test_a_commit_stays_with_the_results_that_it_was_noted_for(real, tmp_path):
    partial = shortened(real, tmp_path / "early" / real.name, 3)
    kept = tmp_path / "kept" / real.name
    collect([partial], tmp_path / "kept")
    assert manifest(kept)["commit"] is None
    collect([partial], tmp_path / "kept", commit="first")
    assert manifest(kept)["commit"] == "first", "nothing was noted before"
    before = contents(kept)
    collect([partial], tmp_path / "kept", commit="second")
    assert contents(kept) == before
    collect([real], tmp_path / "kept", commit="second")
    assert manifest(kept)["commit"] == "second"
    collect([kept], tmp_path / "copy", commit="third")
    assert manifest(tmp_path / "copy" / real.name) == manifest(kept)


def test_the_code_that_a_sweep_noted_is_kept(real, tmp_path):
    entries = {real.name: {"code": ["0.1.0+abc"]}}
    path = shortened(real, tmp_path / "sweep" / "runs" / real.name, 3)
    file = tmp_path / "sweep" / "sweep.json"
    file.write_text(json.dumps({"runs": entries}))
    kept = tmp_path / "kept" / real.name
    collect([tmp_path / "sweep"], tmp_path / "kept")
    assert manifest(kept)["code"] == ["0.1.0+abc"]
    collect([kept], tmp_path / "copy")
    assert manifest(tmp_path / "copy" / real.name)["code"] == ["0.1.0+abc"]

    entries[real.name]["code"].append("0.2.0+def")
    file.write_text(json.dumps({"runs": entries}))
    collect([tmp_path / "sweep"], tmp_path / "kept")
    assert manifest(kept)["code"] == ["0.1.0+abc"], "the other code has no results yet"
    shutil.copy(real / "results.jsonl", path)
    collect([tmp_path / "sweep"], tmp_path / "kept")
    assert manifest(kept)["code"] == ["0.1.0+abc", "0.2.0+def"]

    collect([real], tmp_path / "alone")
    assert "code" not in manifest(tmp_path / "alone" / real.name)
    file.write_text("{}")
    with pytest.raises(ValueError, match=r"sweep\.json does not say which code made its runs"):
        collect([tmp_path / "sweep"], tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_a_run_on_ray_keeps_its_command_also_when_it_is_collected_again(real, tmp_path):
    run = tmp_path / "fleet"
    shutil.copytree(real, run)
    said = {"engine": "ray", "actors": 2, "shards": 1, "address": "head:6379"}
    (run / "engine.json").write_text(json.dumps(said | {"object_store_megabytes": None}))
    first, second = tmp_path / "first", tmp_path / "second"
    collect([run], first)
    collect([first / "fleet"], second)
    for kept in (first, second):
        text = (kept / "fleet" / "manifest.json").read_text()
        manifest = json.loads(text)
        assert " --engine ray --actors 2" in manifest["command"]
        assert manifest["processes"] == {"actors": 2, "shards": 1}
        assert "head" not in text
    before = contents(first)
    collect([run], first)
    assert contents(first) == before
    (run / "engine.json").write_text('{"actors": 2}')
    with pytest.raises(ValueError, match=r"engine\.json does not say how the run was spread"):
        collect([run], tmp_path / "third")
    assert not (tmp_path / "third").exists()
