"""What a sweep checks before it measures anything, and which streams its runs have."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ezgreedy.cli import main
from ezgreedy.sweeps import probing
from ezgreedy.sweeps.definitions import find, members
from ezgreedy.sweeps.sweep_directory import SweepDirectory
from support.edited_files import edit

SMALL = replace(find("minatar"), games=("minatar/breakout",), agents=("rainbow",), num_seeds=1)


def test_a_directory_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(probing, "speeds_of", lambda *_: pytest.fail("it measured first"))
    place = Path("/proc/self")  # nothing can be made here, by anybody
    if os.geteuid():
        place = tmp_path / "closed"
        place.mkdir(mode=0o555)
    words = ["sweep", "minatar", "--games", "breakout", "--agents", "rainbow", "--seeds", "1"]
    assert main([*words, "--out", str(place / "sweep")]) == 2
    assert str(place) in capsys.readouterr().err


def test_new_sweeps_have_separate_streams_and_those_begun_earlier_keep_theirs(tmp_path):
    place = SweepDirectory(tmp_path)
    assert not place.has_earlier_streams
    (new,), (earlier,) = members(SMALL), members(SMALL, has_earlier_streams=True)
    assert (new.settings.streams, earlier.settings.streams) == ("separate", "paired")
    with place:
        place.open(SMALL, [], [new])
    assert not place.has_earlier_streams
    edit(place.file, lambda data: data.pop("streams") and None, seals=False)
    assert place.has_earlier_streams
    with place:
        place.open(SMALL, [], [earlier])
    assert place.has_earlier_streams


def test_the_order_of_changes_is_not_part_of_a_sweep(tmp_path):
    changes = ["agent.replay_capacity=2000", "agent.least_replay=1000"]
    assert members(SMALL, changes) == members(SMALL, changes[::-1])
    with SweepDirectory(tmp_path) as place:
        place.open(SMALL, changes, members(SMALL, changes))
        place.check(SMALL, changes[::-1])
