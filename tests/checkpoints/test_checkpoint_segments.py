"""Rings are written once, row by row, and nothing that no checkpoint needs stays behind."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("safetensors")

from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.checkpoints.segments import (
    MERGED_SEGMENTS,
    MOST_SEGMENTS,
    Coverage,
    Segment,
    parts_to_write,
    segment_name,
)
from ezgreedy.checkpoints.store import Checkpoints
from support.states import assert_same


class Ring:
    """A sequence whose rows are a function of their numbers and of how often it was begun."""

    def __init__(self, length: int, width: int = 8) -> None:
        self.array = np.zeros((length, width), dtype=np.uint16)
        self.num_written = 0
        self.beginning = 0

    def append(self, count: int) -> None:
        for item in range(self.num_written, self.num_written + count):
            self.array[item % len(self.array)] = item + 1000 * self.beginning
        self.num_written += count

    def begin_again(self) -> None:
        self.array[:] = 0
        self.num_written = 0
        self.beginning += 1

    @property
    def tail(self) -> AppendOnlyRing:
        return AppendOnlyRing(self.array, self.num_written)


def load(directory: Path) -> dict:
    loaded = Checkpoints(directory, {}).load()
    assert loaded is not None
    assert loaded.notices == ()
    return loaded.state


def segments(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in (directory / "segments").iterdir()}


@given(
    length=st.integers(1, 12),
    script=st.lists(st.integers(0, 30) | st.sampled_from(["resume", "begin again"]), max_size=12),
)
@settings(max_examples=40, deadline=None)
def test_rings_come_back_however_they_were_filled(
    tmp_path_factory: pytest.TempPathFactory, length: int, script: list
) -> None:
    directory = tmp_path_factory.mktemp("rings")
    checkpoints = Checkpoints(directory, {})
    ring = Ring(length)
    for step, move in enumerate(script):
        if move == "resume":
            checkpoints = Checkpoints(directory, {})
            checkpoints.load()
        elif move == "begin again":
            ring.begin_again()
        else:
            ring.append(move)
        checkpoints.save(step, {"ring": ring.tail, "copies": [ring.tail]})
        assert_same(load(directory), {"ring": ring.tail, "copies": [ring.tail]})


def test_only_new_rows_are_written_also_after_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = Ring(10_000, width=100)
    ring.append(10_000)
    checkpoints = Checkpoints(tmp_path, {})
    written = 0
    real = os.write

    def counting(file: int, data: bytes) -> int:
        nonlocal written
        written += len(data)
        return real(file, data)

    monkeypatch.setattr(os, "write", counting)
    checkpoints.save(0, {"ring": ring.tail})
    assert written > ring.array.nbytes
    for step in (1, 2):
        written = 0
        ring.append(100)
        checkpoints.save(step, {"ring": ring.tail})
        assert 20_000 <= written < 30_000  # 100 rows of 200 bytes, and meta.json
        assert_same(load(tmp_path), {"ring": ring.tail})
        checkpoints = Checkpoints(tmp_path, {})
        checkpoints.load()


def test_segments_are_named_after_place_and_items(tmp_path: Path) -> None:
    ring = Ring(10)
    checkpoints = Checkpoints(tmp_path, {})
    for step in range(2):
        ring.append(4)
        checkpoints.save(step, {"replay": {"frames": [ring.tail]}})
    starts = [name.rsplit(".", 2)[0] for name in sorted(segments(tmp_path))]
    assert starts == ["state-replay-frames-0.0-4", "state-replay-frames-0.4-8"]


def test_segments_that_no_kept_checkpoint_needs_are_removed(tmp_path: Path) -> None:
    ring = Ring(10)
    checkpoints = Checkpoints(tmp_path, {}, keep=2)
    for step in range(20):
        ring.append(5)
        checkpoints.save(step, {"ring": ring.tail})
        names = {path.name for path in tmp_path.glob("checkpoint*")}
        assert names == {f"checkpoint-{s:012d}" for s in (step - 1, step) if s >= 0}
        assert len(segments(tmp_path)) <= 3
    checkpoints.save(20, {"ring": None})
    checkpoints.save(21, {"ring": None})
    assert segments(tmp_path) == {}


@pytest.mark.parametrize("keep", [1, 3])
def test_as_many_checkpoints_stay_as_asked_for(tmp_path: Path, keep: int) -> None:
    for step in range(5):
        checkpoints = Checkpoints(tmp_path, {}, keep=keep)
        checkpoints.load()
        checkpoints.save(step, {"step": step})
    assert len(list(tmp_path.glob("checkpoint*"))) == keep


def test_leftovers_of_dead_processes_go_and_those_of_living_ones_and_others_stay(
    tmp_path: Path,
) -> None:
    checkpoints = Checkpoints(tmp_path, {})
    checkpoints.save(0, {})
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    leftover = segment_name("state['x']", range(3), "0" * 64)
    for name in (f".tmp-9-{ended.pid}", f".tmp-8-{ended.pid}-old", f".tmp-7-{os.getppid()}"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows").write_bytes(b"1")
    (tmp_path / "segments" / leftover).write_bytes(b"1")
    (tmp_path / "segments" / "notes.txt").write_text("mine")
    (tmp_path / ".tmp-notes").write_text("mine")
    checkpoints.save(1, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f".tmp-7-{os.getppid()}",
        ".tmp-notes",
        "checkpoint-000000000000",
        "checkpoint-000000000001",
        "segments",
    ]
    assert list(segments(tmp_path)) == ["notes.txt"]


def covered(parts: list[Segment | range]) -> list[Segment]:
    return [Segment(p.start, p.stop, "") if isinstance(p, range) else p for p in parts]


@pytest.mark.parametrize("length", [700, 4000, 50_000])
def test_many_small_segments_are_merged_at_bounded_cost(length: int) -> None:
    array = np.zeros((length, 4), dtype=np.uint8)
    known = None
    total, most, num_saves, per_save = 0, 0, 5000, 3
    for save in range(1, num_saves + 1):
        tail = AppendOnlyRing(array, save * per_save)
        parts = parts_to_write(tail, known)
        rows = sum(len(part) for part in parts if isinstance(part, range))
        total, most = total + rows, max(most, rows)
        pieces = covered(parts)
        assert len(pieces) <= MOST_SEGMENTS
        assert pieces[0].first <= tail.window.start < pieces[0].end
        assert pieces[-1].end == tail.num_written
        assert all(a.end == b.first for a, b in pairwise(pieces))
        known = Coverage(array.dtype.str, array.shape, tail.num_written, tuple(pieces))
    # Once when it is new, and once for each time the merged ones are merged again.
    assert total <= 4 * num_saves * per_save
    assert most <= (MERGED_SEGMENTS + 1) ** 2 * per_save


def test_merged_segments_hold_the_same_rows(tmp_path: Path) -> None:
    ring = Ring(400, width=2)
    checkpoints = Checkpoints(tmp_path, {})
    for step in range(MOST_SEGMENTS + 2 * MERGED_SEGMENTS):
        ring.append(1 + step % 2)
        checkpoints.save(step, {"ring": ring.tail})
    assert any(size > 2 * 4 for size in segments(tmp_path).values())
    assert_same(load(tmp_path), {"ring": ring.tail})


def test_a_full_ring_is_written_in_parts_that_can_be_removed_one_by_one(tmp_path: Path) -> None:
    ring = Ring(2**14, width=2**9)
    ring.num_written = len(ring.array)
    checkpoints = Checkpoints(tmp_path, {}, keep=1)
    checkpoints.save(0, {"ring": ring.tail})
    assert len(segments(tmp_path)) == 16
    ring.append(2**13)
    checkpoints.save(1, {"ring": ring.tail})
    assert sum(segments(tmp_path).values()) == ring.array.nbytes


def test_saving_the_same_step_again_changes_nothing_or_is_refused(tmp_path: Path) -> None:
    ring = Ring(10)
    ring.append(13)
    state = {"ring": ring.tail, "array": np.arange(3)}
    checkpoints = Checkpoints(tmp_path, {})
    path = checkpoints.save(5, state)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}
    assert checkpoints.save(5, state) == path
    resumed = Checkpoints(tmp_path, {})
    resumed.save(5, resumed.load().state)
    with pytest.raises(ValueError, match="step must be above 5, saved with another state; got 5"):
        resumed.save(5, state | {"array": np.arange(4)})
    ring.append(1)
    with pytest.raises(ValueError, match="step must be above 5"):
        resumed.save(5, {"ring": ring.tail, "array": np.arange(3)})
    with pytest.raises(ValueError, match="step must be at least 5; got 4"):
        resumed.save(4, state)
    after = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}
    assert after == before


def test_nan_in_new_rows_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    array = np.zeros(5)
    checkpoints = Checkpoints(tmp_path, {})
    checkpoints.save(0, {"x": {"ring": AppendOnlyRing(array, 4)}})
    before = sorted(tmp_path.rglob("*"))
    array[0] = np.inf
    with pytest.raises(ValueError, match=r"state\['x'\]\['ring'\] must be finite; got inf"):
        checkpoints.save(1, {"x": {"ring": AppendOnlyRing(array, 6)}})
    assert sorted(tmp_path.rglob("*")) == before


def test_without_checkpoints_there_is_nothing_to_load(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path, {}).load() is None
    assert Checkpoints(tmp_path / "absent", {}).load() is None
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize(("step", "keep"), [(-1, 2), (1.0, 2), (0, 0), (0, True)])
def test_steps_and_counts_are_ints(tmp_path: Path, step: int, keep: int) -> None:
    with pytest.raises((ValueError, TypeError), match="must be"):
        Checkpoints(tmp_path, {}, keep=keep).save(step, {})
