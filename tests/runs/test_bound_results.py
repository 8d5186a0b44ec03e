"""Do settings, rows and their number belong together? Other runs are refused by all readers."""

import json
import os
import shutil
import sys

import numpy as np
import pytest

from ezgreedy.cli import main
from ezgreedy.results.runs import read_run
from ezgreedy.runs.run_directory import RunDirectory
from support.edited_files import edit, without_checksums
from support.written_runs import write_run

SCORES = [(0, 1.0), (100, 2.0), (200, 3.0)]
REPORTS = [(100, 2, 1.5, 0.5)]


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "runs" / "one", SCORES, REPORTS)


def commands(run, tmp_path):
    return {
        "report": ["report", str(run), "--to", str(tmp_path / "page.html")],
        "collect": ["collect", str(run), "--out", str(tmp_path / "kept")],
        "judge": ["judge", "deep-games", str(run), "--out", str(tmp_path / "judged")],
    }


def refusals(run, tmp_path, capsys):
    """What each command says about a run that it refuses."""
    told = {}
    for name, arguments in commands(run, tmp_path).items():
        assert main(arguments) == 2, name
        told[name] = capsys.readouterr().err
    assert not (tmp_path / "kept").exists()
    assert not (tmp_path / "judged").exists()
    return told.values()


def test_no_flipped_bit_of_settings_status_or_rows_goes_unseen(run):
    rng = np.random.default_rng(0)
    for name in ("config.json", "status.json", "results.jsonl"):
        path = run / name
        data = path.read_bytes()
        for number in rng.choice(8 * len(data), 100, replace=False):
            changed = bytearray(data)
            changed[number // 8] ^= 1 << number % 8
            path.write_bytes(changed)
            with pytest.raises(ValueError, match=name):
                read_run(run)
        path.write_bytes(data)
    assert not read_run(run).unverified


def test_the_commands_refuse_a_flipped_bit_of_the_settings(run, tmp_path, capsys):
    config = run / "config.json"
    config.write_bytes(config.read_bytes().replace(b'"seed": 0', b'"seed": 1'))
    assert all("config.json is damaged" in told for told in refusals(run, tmp_path, capsys))


def test_swapped_settings_are_refused(run, tmp_path, capsys):
    other = write_run(tmp_path / "runs" / "two", SCORES, REPORTS, seed=1)
    shutil.copy(other / "config.json", run)
    assert all("line 1: of another run" in told for told in refusals(run, tmp_path, capsys))


@pytest.mark.parametrize("num_rows", [0, 1, 3])
def test_missing_rows_are_refused(run, tmp_path, capsys, num_rows):
    lines = (run / "results.jsonl").read_bytes().splitlines(keepends=True)
    (run / "results.jsonl").write_bytes(b"".join(lines[:num_rows]))
    lack = f"has lost rows: {num_rows} of 4 are there"
    assert all(lack in told for told in refusals(run, tmp_path, capsys))
    (run / "results.jsonl").unlink()
    assert all("0 of 4 are there" in told for told in refusals(run, tmp_path, capsys))


def test_rows_written_after_the_last_status_count(run):
    with RunDirectory(run).log() as log:
        log.append({"kind": "evaluation", "frames": 300, "mean_return": 4.0, "episodes": 1})
    assert read_run(run).last_evaluated == 300


def test_a_longer_run_is_the_same_run(run):
    RunDirectory(run).extend(10_000_000)
    assert read_run(run).frames_to_play == 10_000_000
    assert not read_run(run).unverified


@pytest.fixture
def kept(run, tmp_path):
    assert main(["collect", str(run), "--out", str(tmp_path / "collection")]) == 0
    return tmp_path / "collection" / "one"


def test_collected_runs_are_bound_alike(kept, tmp_path, capsys):
    assert not read_run(kept).unverified
    whole = (kept / "results.jsonl").read_bytes()
    (kept / "results.jsonl").write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    with pytest.raises(ValueError, match="has lost rows: 3 of 4"):
        read_run(kept)
    (kept / "results.jsonl").write_bytes(whole)
    edit(kept / "config.json", lambda config: config["settings"].update(seed=9))
    with pytest.raises(ValueError, match=r"manifest\.json is of a run with settings other than"):
        read_run(kept)


def test_runs_of_earlier_versions_are_read_and_what_is_not_verified_is_said(run, tmp_path, capsys):
    without_checksums(run)
    assert read_run(run).unverified == [
        "settings",
        "to which run its rows belong",
        "number of rows",
    ]
    for arguments in commands(run, tmp_path).values():
        assert main(arguments) == 0
        told = capsys.readouterr().err
        assert "1 of 1 runs were made or collected before files had checksums" in told


def test_reading_a_run_does_not_import_the_game_that_it_names(run, tmp_path, capsys, monkeypatch):
    (tmp_path / "hostile_game.py").write_text("raise SystemExit('executed')")
    monkeypatch.syspath_prepend(tmp_path)
    game = "gymnasium/hostile_game:Maze-v0"
    edit(run / "config.json", lambda config: config["settings"].update(game=game))
    without_rows = {"results.jsonl", "status.json"}
    for name in without_rows:
        (run / name).unlink()
    assert main(["report", str(run), "--to", str(tmp_path / "page.html")]) == 0
    assert main(["collect", str(run), "--out", str(tmp_path / "kept")]) == 0
    assert main(["check", str(run)]) == 0
    assert "hostile_game" not in sys.modules


def test_files_have_the_permissions_that_the_umask_leaves(tmp_path):
    before = os.umask(0o077)
    try:
        run = write_run(tmp_path / "run", SCORES)
    finally:
        os.umask(before)
    assert run.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in run.iterdir()} == {0o600}


def test_rows_name_their_run(run):
    names = {json.loads(line)["run"] for line in (run / "results.jsonl").read_text().splitlines()}
    assert len(names) == 1
