"""Directories that lie within something else: who refuses them, and what does not matter."""

import pytest

from ezgreedy.cli import main
from ezgreedy.runs.collection import collect
from ezgreedy.runs.output_paths import require_apart
from ezgreedy.sweeps.definitions import find, members
from ezgreedy.sweeps.sweep_directory import SweepDirectory
from support.written_runs import write_run


def make_sweep(path):
    with SweepDirectory(path) as place:
        place.open(find("minatar"), [], members(find("minatar"))[:1])


def make_run(path):
    write_run(path, [(0, 1.0)])


def make_experiment(path):
    path.mkdir()
    (path / "settings.json").write_text('{"id": "tiny", "version": "1", "settings": {}}')


def make_collection(path):
    collect([write_run(path.parent / "source", [(0, 1.0)])], path)


KINDS = {
    "sweep": make_sweep,
    "run": make_run,
    "experiment": make_experiment,
    "collection": make_collection,
}
COMMANDS = {
    "train": ["train", "rainbow", "--game", "minatar/breakout", "--scale", "laptop"],
    "train on ray": ["train", "r2d2", "--game", "minatar/breakout", "--engine", "ray"],
    "sweep": ["sweep", "minatar", "--games", "breakout", "--yes"],
    "collect": ["collect"],
    "reproduce": ["reproduce", "fig2-chain-durations", "--quick"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_command_writes_into_what_another_made(tmp_path, capsys, kind, command):
    parent = tmp_path / "there"
    KINDS[kind](parent)
    before = sorted(parent.rglob("*"))
    arguments = [*COMMANDS[command]]
    if command == "collect":
        arguments.append(str(write_run(tmp_path / "other", [(0, 1.0)])))
    assert main([*arguments, "--out", str(parent / "runs" / "new")]) == 2
    told = capsys.readouterr().err
    assert f"--out must not lie within the {kind} {parent}; got " in told
    assert told.count("\n") == 1
    assert sorted(parent.rglob("*")) == before


def test_an_experiment_is_not_begun_beside_the_runs_of_a_collection(tmp_path, capsys):
    make_collection(tmp_path / "there")
    assert main([*COMMANDS["reproduce"], "--out", str(tmp_path / "there")]) == 2
    assert "--out must not lie within the collection" in capsys.readouterr().err


def test_files_of_other_programs_do_not_matter(tmp_path):
    (tmp_path / "config.json").write_text('{"name": "another tool"}')
    (tmp_path / "settings.json").write_text("// colours\n{}")
    require_apart(tmp_path / "new")
    (tmp_path / "config.json").write_text("[1]")
    (tmp_path / "settings.json").write_text('{"id": 1}')
    require_apart(tmp_path / "new")


def test_a_directory_lies_where_it_is_and_not_where_its_path_begins(tmp_path):
    make_run(tmp_path / "run")
    require_apart(tmp_path / "run" / ".." / "new")
    require_apart(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run", target_is_directory=True)
    with pytest.raises(ValueError, match="place must not lie within the run"):
        require_apart(tmp_path / "link" / "new", "place")
