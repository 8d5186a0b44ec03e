"""The matrix of faults: what fails is seen and can be repeated, and nothing runs twice."""

import json
import time

import numpy as np
import pytest

pytest.importorskip("scipy")

from scipy.stats import beta

from ezgreedy.report.fault_matrix import fault_page, read_fault_matrix
from ezgreedy.results.store import read_results
from faults import disk_model
from faults.matrix import Failure, Plan, Row, TooSlow, outcomes, run_case, run_row
from faults.rows import LETTERS
from faults.table import read_table, table, upper_bound, write_table


class Coins(Row):
    """Cases whose fate is written here."""

    letter = "z"
    title = "Coins"
    goal = "no coin falls on its edge"
    others = "nobody else throws coins"
    groups = ("gold", "silver")
    quick, full = 6, 600
    seconds = 5.0

    def __init__(self, fates=()):
        self.fates, self.ran = dict(fates), []

    def run(self, case):
        self.ran.append(case.number)
        assert list(case.place.iterdir()) == []
        (case.place / "litter").touch()
        fate = self.fates.get(case.number)
        if fate is not None:
            raise fate
        return {"trials": 3, "draw": float(case.rng.random())}

    def words(self, facts):
        assert facts
        return f"{len(facts)} fell"


def plan(tmp_path, said=None, commit="c0ffee", end=None, seed=7):
    return Plan(tmp_path / "logs", commit, seed, end, (said if said is not None else []).append)


@pytest.mark.parametrize(("failures", "trials"), [(0, 1), (0, 300), (1, 300), (7, 20), (19, 20)])
def test_the_bound_is_the_quantile_of_clopper_and_pearson(failures, trials):
    expected = beta.ppf(0.95, failures + 1, trials - failures)
    assert upper_bound(failures, trials) == pytest.approx(expected)


def test_without_failures_the_bound_is_the_rule_of_three():
    assert upper_bound(0, 1000) == pytest.approx(3 / 1000, rel=0.01)
    assert upper_bound(5, 5) == 1.0
    assert upper_bound(0, 0) == 1.0


@pytest.mark.parametrize(
    ("fate", "words"),
    [
        (Failure("on its edge"), "on its edge"),
        (ZeroDivisionError("1/0"), "ZeroDivisionError: 1/0 (test_fault_matrix.py"),
        (TooSlow(), "did not end within 5 s"),
    ],
)
def test_a_broken_case_is_a_failure_with_the_command_that_repeats_it(tmp_path, fate, words):
    said = []
    run_row(Coins({3: fate}), range(6), plan(tmp_path, said))
    assert words in said[0]
    assert said[1] == "  again: python faults/run.py --row z --case 3 --seed 7"
    (row,) = table([Coins()], tmp_path / "logs", "c0ffee", "make faults")["rows"]
    gold, silver = row["groups"]
    assert (gold["trials"], gold["failures"]) == (9, 0)
    # A case that failed is one trial, whatever it might have become.
    assert (silver["trials"], silver["failures"]) == (7, 1)
    assert words in silver["failed"][0]["failure"]
    assert silver["failed"][0]["again"] == said[1].removeprefix("  again: ")
    assert (gold["words"], silver["words"]) == ("3 fell", "2 fell")


def test_a_case_that_hangs_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(Coins, "seconds", 0.05)
    monkeypatch.setattr(Coins, "run", lambda row, case: time.sleep(30))
    record = run_case(Coins(), 0, 0, tmp_path / "case")
    assert record["failure"] == "did not end within 0.05 s"
    assert not (tmp_path / "case").exists()


def test_cases_that_are_done_are_not_run_again_by_the_same_code(tmp_path):
    first, again, other = Coins(), Coins(), Coins()
    run_row(first, range(3), plan(tmp_path))
    run_row(again, range(6), plan(tmp_path))
    assert (first.ran, again.ran) == ([0, 1, 2], [3, 4, 5])
    run_row(other, range(2), plan(tmp_path, commit="decaf"))
    assert other.ran == [0, 1]
    another = Coins()
    run_row(another, range(2), plan(tmp_path, seed=8))
    assert another.ran == [0, 1]
    assert len(outcomes(tmp_path / "logs", "z", "c0ffee")) == 8
    records = read_results(tmp_path / "logs" / "row_z.jsonl")
    draws = {(r["commit"], r["seed"], r["case"]): r["facts"]["draw"] for r in records}
    # The number and the seed decide, not the code or the order.
    assert draws["c0ffee", 7, 1] == draws["decaf", 7, 1] != draws["c0ffee", 8, 1]


def test_rows_that_were_not_run_are_in_the_table(tmp_path):
    (row,) = table([Coins()], tmp_path / "logs", "c0ffee", "make faults")["rows"]
    assert (row["row"], row["groups"]) == ("z", [])
    run_row(Coins({0: Failure("edge")}), range(1), plan(tmp_path))
    (row,) = table([Coins()], tmp_path / "logs", "c0ffee", "make faults")["rows"]
    assert [(line["group"], line["words"]) for line in row["groups"]] == [("gold", "")]


class Dice(Coins):
    letter = "y"
    title = "Dice"


def test_rows_of_other_code_stay_in_the_table_until_this_code_has_cases(tmp_path):
    logs, out = tmp_path / "logs", tmp_path / "out"
    assert read_table(out) is None

    def write(commit):
        earlier = read_table(out)
        write_table(out, table([Coins(), Dice()], logs, commit, "make faults", earlier))
        rows = read_fault_matrix(out / "faults.json").rows
        return {row.letter: (row.commit, sum(line.trials for line in row.lines)) for row in rows}

    run_row(Coins(), range(4), plan(tmp_path))
    assert write("c0ffee") == {"z": ("c0ffee", 12), "y": ("c0ffee", 0)}
    assert "`make faults`, commit c0ffee; " in (out / "README.md").read_text()
    run_row(Dice(), range(2), plan(tmp_path, commit="decaf"))
    assert write("decaf") == {"z": ("c0ffee", 12), "y": ("decaf", 6)}
    told = "commits c0ffee (rows z), decaf (rows y); "
    assert told in (out / "README.md").read_text()
    # A third commit keeps both commits' names.
    assert write("5eed") == {"z": ("c0ffee", 12), "y": ("decaf", 6)}
    run_row(Coins(), range(1), plan(tmp_path, commit="5eed"))
    assert write("5eed") == {"z": ("5eed", 3), "y": ("decaf", 6)}


def test_rows_of_a_table_without_their_commits_have_the_table_s(tmp_path):
    run_row(Coins(), range(2), plan(tmp_path))
    data = table([Coins()], tmp_path / "logs", "c0ffee", "make faults")
    del data["rows"][0]["commit"]
    (file, _) = write_table(tmp_path / "out", data)
    assert read_fault_matrix(file).rows[0].commit == "c0ffee"
    (row,) = table([Coins()], tmp_path / "none", "decaf", "make faults", data)["rows"]
    assert row["commit"] == "c0ffee"


def test_no_case_begins_after_the_time_is_over(tmp_path):
    row = Coins()
    run_row(row, range(6), plan(tmp_path, end=time.monotonic() - 1.0))
    assert row.ran == []


def test_the_table_is_data_and_a_page_and_names_no_machine(tmp_path):
    run_row(Coins({1: Failure("edge")}), range(4), plan(tmp_path))
    files = write_table(tmp_path / "out", table([Coins()], tmp_path / "logs", "c0ffee", "make"))
    data = json.loads(files[0].read_text())
    assert data["rows"][0]["seeds"] == [7]
    import socket

    assert socket.gethostname() not in files[0].read_text()
    assert str(tmp_path) not in files[0].read_text()
    matrix = read_fault_matrix(files[0])
    assert (sum(line.trials for line in matrix.rows[0].lines), matrix.failures) == (10, 1)
    assert files[1].read_text() == fault_page(matrix)
    assert "| z | Coins | silver | 4 | 1 |" in files[1].read_text()
    assert "Again: `python faults/run.py --row z --case 1 --seed 7`" in files[1].read_text()


def test_the_page_of_a_study_has_a_section_about_faults(tmp_path):
    pytest.importorskip("plotly")
    from ezgreedy.report.page import page
    from ezgreedy.report.study import read_study
    from support.written_runs import write_run

    write_run(tmp_path / "study" / "run", [(0, 1.0), (100, 2.0)])
    assert 'id="faults"' not in page(read_study(tmp_path / "study"))
    run_row(Coins({1: Failure("edge")}), range(4), plan(tmp_path))
    data = table([Coins()], tmp_path / "logs", "c0ffee", "make faults")
    write_table(tmp_path / "study" / "faults", data)
    shown = page(read_study(tmp_path / "study"))
    assert '<section id="faults"' in shown
    assert '<a href="#faults">Faults</a>' in shown
    assert "1 of 1 kinds of trouble were tried: 1 failure." in shown
    assert "nobody else throws coins" in shown


def test_a_damaged_table_is_named(tmp_path):
    file = tmp_path / "faults.json"
    file.write_text('{"format": 1, "rows": [{}]}')
    with pytest.raises(ValueError, match=r"faults\.json was not made by"):
        read_fault_matrix(file)
    file.write_text('{"format": 2}')
    with pytest.raises(ValueError, match="must be of format 1; got 2"):
        read_fault_matrix(file)


def test_there_is_a_row_for_every_letter():
    assert "".join(LETTERS) == "abcdefghijklmnop"


# What a disk may hold after a power cut.


def recorded(tmp_path, work):
    disk = tmp_path / "disk"
    disk.mkdir()
    recorder = disk_model.Recorder(disk)
    with recorder.recording():
        work(disk)
    return recorder.operations


def states(operations, tmp_path, order, num_states=40):
    """What is found after a cut at the end: contents by name, of many possible states."""
    found = []
    for number in range(num_states):
        to = tmp_path / f"{order}-{number}"
        rng = np.random.default_rng(number)
        disk_model.rebuild(operations, len(operations), order, rng, to)
        found.append({str(p.relative_to(to)): p.read_bytes() for p in to.rglob("*") if p.is_file()})
    return found


@pytest.mark.parametrize("order", [disk_model.JOURNAL, disk_model.DIRECTORIES])
def test_only_what_was_synced_is_certain(tmp_path, order):
    from ezgreedy.checkpoints.durable_files import sync_directory, write_file

    new = bytes(range(256)) * 8

    def work(disk):
        write_file(disk / "draft", [new])
        (disk / "draft").replace(disk / "safe")
        sync_directory(disk)
        (disk / "hasty").write_bytes(new)
        (disk / "safe").rename(disk / "moved")

    found = states(recorded(tmp_path, work), tmp_path, order)
    assert all((state.get("safe") or state.get("moved")) == new for state in found)
    # The rename may be lost, and of the hasty file anything: the name, the data or a part of it.
    assert {"safe" in state for state in found} == {True, False}
    hasty = [state.get("hasty") for state in found]
    assert None in hasty
    assert b"" in hasty
    assert any(data not in (None, b"", new) for data in hasty)


def test_a_file_renamed_before_it_was_synced_is_found_torn(tmp_path):
    def work(disk):
        (disk / "draft").write_bytes(b"x" * 4096)
        (disk / "draft").rename(disk / "final")

    found = states(recorded(tmp_path, work), tmp_path, disk_model.JOURNAL)
    assert any(state.get("final", b"x" * 4096) != b"x" * 4096 for state in found)
