"""The suite's own account of its time."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.room_times import RoomTimes, room_of

TESTS = Path(__file__).parents[1]
INNER = "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_it(n):\n    assert n\n"


def test_rooms_are_the_folders_of_tests():
    assert room_of("tests/agents/r2d2/test_actor.py::test_it[tests/x]") == "agents"
    assert room_of("tests/test_cli.py::test_it") == "test_cli.py"
    assert room_of("agents/test_tabular.py") == "agents"


def test_phases_of_a_test_are_summed_and_long_rooms_come_first():
    times = RoomTimes()
    times.add("tests/a/test_x.py::t", 0.25)
    assert times.lines() == []  # one room needs no table
    for seconds in (0.5, 1.0, 0.5):
        times.add("tests/bb/test_y.py::t", seconds)
    assert times.lines() == [
        "room  tests  seconds",
        "bb        1      2.0",
        "a         1      0.2",
        "all       2      2.2",
    ]


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_the_table_ends_a_run(tmp_path, workers):
    inner = tmp_path / "tests"
    for room in ("one", "two"):
        (inner / room).mkdir(parents=True)
        (inner / room / f"test_{room}.py").write_text(INNER)
    (inner / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, "tests"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout
    words = [line.split()[:2] for line in done.stdout.splitlines()]
    assert ["one", "2"] in words
    assert ["two", "2"] in words
    assert ["all", "4"] in words
