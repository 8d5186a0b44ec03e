"""Sweeps, experiments and collections that are sound, damaged and repaired."""

import subprocess
import sys
from dataclasses import replace

from ezgreedy.cli import main
from ezgreedy.runs.output_paths import SET_ASIDE
from ezgreedy.sweeps.definitions import find, members
from ezgreedy.sweeps.sweep_directory import SweepDirectory
from support.edited_files import edit
from support.written_runs import write_run


def check(path, *words):
    return main(["check", str(path), *words])


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 8
    path.write_bytes(data)


def test_a_damaged_sweep_file_is_set_aside_and_made_anew(tmp_path, capsys):
    sweep = replace(find("minatar"), games=("minatar/breakout",), agents=("rainbow",), num_seeds=1)
    runs = members(sweep)
    with SweepDirectory(tmp_path) as place:
        place.open(sweep, [], runs)
        begun = place.begin(runs[0])
    assert check(tmp_path) == 0
    assert "sweep, sound: 0 of 1 runs finished" in capsys.readouterr().out
    flip(place.file)
    assert check(tmp_path) == 1
    assert "sweep.json: is damaged" in capsys.readouterr().out
    assert check(tmp_path, "--repair") == 0
    assert len(list((tmp_path / SET_ASIDE).glob("*/sweep.json"))) == 1
    with SweepDirectory(tmp_path) as again:
        again.open(sweep, [], runs)
        assert again.begin(runs[0]) == begun
    assert check(tmp_path) == 0


def test_a_damaged_run_of_a_collection_is_set_aside_as_a_whole(tmp_path, capsys):
    for seed in (0, 1):
        write_run(tmp_path / "runs" / str(seed), [(0, 1.0)], seed=seed)
    assert main(["collect", str(tmp_path / "runs"), "--out", str(tmp_path / "kept")]) == 0
    assert check(tmp_path / "kept") == 0
    flip(tmp_path / "kept" / "1" / "results.jsonl")
    assert check(tmp_path / "kept") == 1
    assert "results.jsonl, line 1" in capsys.readouterr().out
    assert check(tmp_path / "kept", "--repair") == 0
    assert main(["collect", str(tmp_path / "runs"), "--out", str(tmp_path / "kept")]) == 0
    assert check(tmp_path / "kept") == 0
    assert "2 runs" in capsys.readouterr().out


def test_an_experiment_keeps_its_rows_up_to_the_damage_and_makes_the_rest_again(tmp_path, capsys):
    words = [
        "reproduce",
        "sequence-probabilities",
        "--quick",
        "--out",
        str(tmp_path),
        "--jobs",
        "1",
    ]
    assert main(words) == 0
    place = tmp_path / "sequence-probabilities"
    assert check(tmp_path) == 0
    settings = (place / "settings.json").read_bytes()
    flip(place / "settings.json")
    assert check(place) == 1
    assert check(place, "--repair") == 0
    assert (place / "settings.json").read_bytes() == settings
    flip(place / "results.jsonl")
    assert check(place) == 1
    assert "results.jsonl: line" in capsys.readouterr().out
    assert check(place, "--repair") == 0
    assert not (place / "summary.json").exists()
    capsys.readouterr()
    assert check(place) == 0
    again = f"ezgreedy reproduce sequence-probabilities --quick --resume --out {tmp_path}"
    assert f"`{again}` continues it" in capsys.readouterr().out
    assert main(["report", str(tmp_path)]) == 2
    assert f"no finished experiment (sequence-probabilities); `{again}`" in capsys.readouterr().err
    assert main([*again.split()[1:], "--jobs", "1"]) == 0
    assert check(place) == 0


def test_a_summary_of_other_settings_is_named(tmp_path, capsys):
    words = [
        "reproduce",
        "sequence-probabilities",
        "--quick",
        "--out",
        str(tmp_path),
        "--jobs",
        "1",
    ]
    assert main(words) == 0
    summary = tmp_path / "sequence-probabilities" / "summary.json"
    edit(summary, lambda data: data["settings"].update(other=1))
    assert check(tmp_path) == 1
    assert "differs from settings.json in its settings" in capsys.readouterr().out


def test_an_experiment_is_checked_without_the_packages_of_deep_agents(tmp_path):
    assert (
        main(["reproduce", "fig3-deepsea", "--quick", "--seeds", "1", "--out", str(tmp_path)]) == 0
    )
    script = (
        "import importlib.util, sys\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name in packages.DEEP else "
        "found(name, *more)\n"
        "from ezgreedy import packages\n"
        "from ezgreedy.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(code)\n"
    )

    def checked(path):
        command = [sys.executable, "-c", script, "check", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert checked(tmp_path / "fig3-deepsea").returncode == 0
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    refused = checked(tmp_path / "run")
    assert refused.returncode == 2
    assert "check of a run needs torch" in refused.stderr
