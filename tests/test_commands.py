import json
import subprocess
import sys
from pathlib import Path

import pytest

from ezgreedy.cli import main
from ezgreedy.experiments import registry

FIG1 = "fig1-gridworld-coverage"


def test_list_shows_every_experiment_in_aligned_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == list(registry.experiments())
    for row, experiment in zip(rows, registry.experiments().values(), strict=True):
        assert row[head.index("shows") :].startswith(experiment.shows)
        assert row[: head.index("seeds") + len("seeds")].endswith(f" {experiment.num_seeds}")


def test_reproduce_runs_figure_1(tmp_path: Path) -> None:
    arguments = ["reproduce", FIG1, "--quick", "--seeds", "5", "--jobs", "1"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    directory = tmp_path / FIG1
    summary = json.loads((directory / "summary.json").read_text())
    assert summary["command"] == f"ezgreedy {' '.join(arguments[:5])}"
    assert set(summary) >= {"id", "claims", "seeds", "settings", "version", "command", "seconds"}
    assert [claim["verdict"] for claim in summary["claims"][1:3]] == ["reproduced"] * 2
    for figure in summary["figures"]:
        assert (directory / figure).stat().st_size > 10_000
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    assert main([*arguments, "--out", str(tmp_path), "--resume"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig1-gridword-coverage"], f"(did you mean {FIG1} or fig3-gridworld?)"),
        (["coverage-of-nothing"], "experiment must be one that `ezgreedy list` shows; got 'cover"),
        (["zzz"], "experiment must be one that `ezgreedy list` shows; got 'zzz'"),
        ([FIG1, "--seeds", "0"], "--seeds must be at least 1; got 0"),
        ([FIG1, "--jobs", "0"], "--jobs must be at least 1; got 0"),
        ([FIG1, "--out", __file__], "--out must be a directory"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["--seeds", "two"], ["--quick", "--full"], ["--thorough", "--full"]]
)
def test_arguments_that_do_not_parse_exit_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", *arguments])
    assert stop.value.code == 2


def test_help_and_list_load_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from ezgreedy.cli import main\n"
        "main(['list'])\n"
        "sys.exit(str([m for m in ('numba', 'matplotlib', 'rich', 'torch') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.strip() == "[]"
