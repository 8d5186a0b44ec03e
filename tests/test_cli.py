"""The command line, run as a user would."""

import os
import shlex
import subprocess
import sys

import numpy as np
import pytest

from ezgreedy import demonstration
from ezgreedy.cli import main

SMALL = ["demo", "--steps", "200", "--walks", "5", "--size", "9"]


def test_demo_prints_maps_and_writes_figures(tmp_path, capsys):
    assert main([*SMALL, "--out", str(tmp_path / "new" / "folder")]) == 0
    printed = capsys.readouterr().out
    assert "ε = 0.1" in printed
    assert "mean steps to the first visit (5 walks of 200 steps)" in printed
    png = (tmp_path / "new" / "folder" / "first_visits.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert "</svg>" in (tmp_path / "new" / "folder" / "first_visits.svg").read_text()


def test_demo_takes_its_own_epsilons(tmp_path, capsys):
    assert main([*SMALL, "--epsilon", "0.3", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "ε = 0.3" in printed
    assert "ε = 0.1" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "1.5"], "epsilon must lie in [0, 1]; got 1.5"),
        (["--epsilon", "nan"], "epsilon must lie in [0, 1]; got nan"),
        (["--size", "1"], "size must be at least 3; got 1"),
        (["--steps", "0"], "num_steps must be at least 1; got 0"),
        (["--walks", "-2"], "num_walks must be at least 1; got -2"),
        (["--seed", "-1"], "seed must be at least 0; got -1"),
        (["--mu", "-1"], "mu must be finite and be at least 0; got -1.0"),
    ],
)
def test_bad_values_end_with_exit_code_2_and_one_line(arguments, message, tmp_path, capsys):
    assert main(["demo", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"ezgreedy: {message}\n"
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "file").write_text("precious")
    assert main([*SMALL, "--out", str(tmp_path / "file")]) == 2
    assert "--out must be a directory; got the file" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["demo", "--steps", "many"]])
def test_words_that_make_no_command_end_with_exit_code_2(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["--version"]])
def test_help_explains(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    assert "ezgreedy" in capsys.readouterr().out


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_ends_the_command_in_silence(unbuffered):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ezgreedy", "list"],
            stdout=writing,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
    finally:
        os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 141


def test_a_closed_output_is_no_error():
    command = f"{shlex.quote(sys.executable)} -m ezgreedy list >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# What the maps show.


def test_colours_and_shades_tell_soon_from_never():
    item = demonstration.PolicyMaps(0.5, np.zeros((2, 2)), np.full((2, 2), 100.0))
    plain = demonstration.terminal_map(item, 100, colour=False).splitlines()[2]
    assert plain == "████" + "   " + "    "
    assert "\x1b[48;5;21m" in demonstration.terminal_map(item, 100, colour=True)
    assert "\x1b[48;5;196m" in demonstration.legend(colour=True)
