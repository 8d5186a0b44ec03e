"""No damage goes unseen, and a whole older checkpoint is found behind a damaged one."""

import errno
import json
import logging
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("safetensors")

from safetensors.numpy import save as as_safetensors

from ezgreedy.checkpoints import durable_files, manifest
from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.checkpoints.store import Checkpoints
from support.damage import (
    become_directory,
    become_pipe,
    empty,
    extend,
    flip,
    link,
    truncate,
    zero_block,
)
from support.states import assert_same

IDENTITY = {"game": "Freeway"}
LENGTH = 300


def state_at(step: int) -> dict:
    """A state that is a function of its step alone, with a ring that has run over."""
    ring = np.zeros((LENGTH, 20), dtype=np.uint8)
    written = 150 * step
    for item in range(written):
        ring[item % LENGTH] = np.arange(20) + item * 7
    weights = np.random.default_rng(step).normal(size=(30, 50))
    return {"step": step, "weights": weights, "frames": AppendOnlyRing(ring, written)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steps 5 and 6, of which the ring needs a segment for each and shares the one of step 5."""
    directory = tmp_path_factory.mktemp("damage") / "saved"
    checkpoints = Checkpoints(directory, IDENTITY)
    for step in range(3, 7):
        checkpoints.save(step, state_at(step))
    return directory


@pytest.fixture
def directory(saved: Path, tmp_path: Path) -> Path:
    return shutil.copytree(saved, tmp_path / "checkpoints")


def segment(directory: Path, first: int) -> Path:
    (path,) = (directory / "segments").glob(f"*.{first}-*")
    return path


def own_files(directory: Path) -> dict[str, Path]:
    """The files that only the newest checkpoint needs."""
    newest = directory / "checkpoint-000000000006"
    return {
        "meta.json": newest / "meta.json",
        "arrays.safetensors": newest / "arrays.safetensors",
        "segment": segment(directory, 750),
    }


def swap(path: Path) -> None:
    """Put the file of the checkpoint before in its place."""
    if path.suffix == ".rows":
        shutil.copy(segment(path.parent.parent, 600), path)
    else:
        shutil.copy(path.parents[1] / "checkpoint-000000000005" / path.name, path)


DAMAGES = [
    *(flip, truncate, empty, extend, zero_block, Path.unlink, swap, link),
    *(become_directory, become_pipe),
]


@pytest.mark.parametrize("file", ["meta.json", "arrays.safetensors", "segment"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_every_damage_falls_back_by_name_and_the_run_goes_on(
    directory: Path,
    damage: Callable[[Path], None],
    file: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = own_files(directory)[file]
    damage(path)
    checkpoints = Checkpoints(directory, IDENTITY)
    loaded = checkpoints.load()
    assert loaded is not None
    assert loaded.step == 5
    assert_same(loaded.state, state_at(5))
    (notice,) = loaded.notices
    assert notice.startswith("checkpoint-000000000006 is passed over: ")
    assert path.name in notice
    assert notice in caplog.text
    checkpoints.save(6, state_at(6))
    again = Checkpoints(directory, IDENTITY).load()
    assert again is not None
    assert (again.step, again.notices) == (6, ())
    assert_same(again.state, state_at(6))


def test_rows_of_a_damaged_checkpoint_are_written_anew(directory: Path) -> None:
    own_files(directory)["meta.json"].write_bytes(b"")
    checkpoints = Checkpoints(directory, IDENTITY)
    assert checkpoints.load().step == 5
    # The continued run need not repeat what the lost one did.
    other = state_at(6)
    other["frames"].array[750 % LENGTH :] += 1
    checkpoints.save(6, other)
    assert_same(Checkpoints(directory, IDENTITY).load().state, other)


def test_a_passed_over_checkpoint_leaves_with_the_next_save(directory: Path) -> None:
    own_files(directory)["arrays.safetensors"].unlink()
    checkpoints = Checkpoints(directory, IDENTITY)
    checkpoints.load()
    checkpoints.save(7, state_at(7))
    assert [path.name for path in sorted(directory.glob("checkpoint*"))] == [
        "checkpoint-000000000005",
        "checkpoint-000000000007",
    ]


def everything(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_if_all_are_damaged_each_is_named_and_nothing_is_touched(directory: Path) -> None:
    for step, name in [(5, "meta.json"), (6, "arrays.safetensors")]:
        flip(directory / f"checkpoint-{step:012d}" / name)
    before = everything(directory)
    checkpoints = Checkpoints(directory, IDENTITY)
    message = r"(?s)no checkpoint .* is intact: .*6/arrays\.safetensors.*5/meta\.json"
    with pytest.raises(ValueError, match=message):
        checkpoints.load()
    with pytest.raises(ValueError, match="already holds checkpoints"):
        checkpoints.save(7, state_at(7))
    assert everything(directory) == before


def test_a_damaged_segment_that_both_need_is_named_for_both(directory: Path) -> None:
    shared = segment(directory, 600)
    flip(shared)
    with pytest.raises(ValueError, match="SHA-256") as caught:
        Checkpoints(directory, IDENTITY).load()
    assert str(caught.value).count(shared.name) == 2


def test_no_flipped_bit_goes_unseen(directory: Path) -> None:
    rng = np.random.default_rng(0)
    logging.disable(logging.WARNING)
    expected = state_at(5)
    try:
        for path in own_files(directory).values():
            whole = path.read_bytes()
            for _ in range(150):
                data = bytearray(whole)
                data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
                path.write_bytes(data)
                loaded = Checkpoints(directory, IDENTITY).load()
                assert loaded.step == 5
                assert_same(loaded.state, expected)
            path.write_bytes(whole)
    finally:
        logging.disable(logging.NOTSET)
    assert Checkpoints(directory, IDENTITY).load().step == 6


def rewrite_meta(directory: Path, change: Callable[[dict], None]) -> None:
    """Change the newest checkpoint's meta.json and seal it again, as an attacker could."""
    path = own_files(directory)["meta.json"]
    contents = json.loads(path.read_bytes())["contents"]
    change(contents)
    path.write_bytes(manifest.sealed(json.dumps(contents).encode()))


def replace_arrays(directory: Path, data: bytes) -> None:
    own_files(directory)["arrays.safetensors"].unlink()
    path = own_files(directory)["arrays.safetensors"]
    digest = durable_files.write_file(path, [data])
    rewrite_meta(directory, lambda meta: meta["files"].update({path.name: digest._asdict()}))


def node_of(meta: dict, key: str) -> dict:
    return dict(meta["state"]["dict"])[key]


def tail_of(meta: dict) -> dict:
    (tail,) = meta["tails"].values()
    return tail


HOSTILE = {
    "outside segment": lambda meta: tail_of(meta)["segments"][0].__setitem__(2, "../../secret"),
    "gap": lambda meta: tail_of(meta)["segments"].pop(0),
    "no segments": lambda meta: tail_of(meta).update(segments=[]),
    "unlisted segment": lambda meta: [meta["files"].pop(n) for n in list(meta["files"])[:1]],
    "endless ring": lambda meta: tail_of(meta).update(shape=[2**50, 20], num_written=900),
    "wider rows": lambda meta: tail_of(meta).update(shape=[LENGTH, 2**40]),
    "no rows": lambda meta: tail_of(meta).update(shape=[0, 20]),
    "shapeless": lambda meta: tail_of(meta).update(shape=[]),
    "empty rows": lambda meta: tail_of(meta).update(shape=[LENGTH, 0]),
    "objects": lambda meta: node_of(meta, "weights").update(dtype="|O"),
    "strange dtype": lambda meta: node_of(meta, "weights").update(dtype="(9,9)f8"),
    "larger array": lambda meta: node_of(meta, "weights").update(shape=[2**40, 2**40]),
    "negative shape": lambda meta: node_of(meta, "weights").update(shape=[-30, -50]),
    "unknown tag": lambda meta: node_of(meta, "weights").update(array="nowhere"),
    "empty node": lambda meta: meta["state"]["dict"].append(["more", {}]),
    "no dict": lambda meta: meta.update(state=[1, 2]),
    "no files": lambda meta: meta.update(files=[]),
    "no step": lambda meta: meta.pop("step"),
    "another step": lambda meta: meta.update(step=5),
    "sizeless file": lambda meta: next(iter(meta["files"].values())).update(size="1"),
    "fractional items": lambda meta: tail_of(meta).update(num_written=900.0),
}


@pytest.mark.parametrize("lie", HOSTILE.values(), ids=HOSTILE)
def test_a_sealed_lie_is_passed_over(directory: Path, lie: Callable[[dict], None]) -> None:
    rewrite_meta(directory, lie)
    loaded = Checkpoints(directory, IDENTITY).load()
    assert loaded.step == 5
    assert_same(loaded.state, state_at(5))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04N.",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 10) + b"not JSON..",
        as_safetensors({"state['weights']": np.zeros(3)}),
        as_safetensors({"other": np.zeros(3)}),
        as_safetensors({"state['weights']": np.zeros((30, 50))})[:-8],
    ],
    ids=["empty", "pickle", "endless header", "no JSON", "smaller", "other name", "cut"],
)
def test_a_sealed_file_of_no_arrays_is_passed_over(directory: Path, data: bytes) -> None:
    replace_arrays(directory, data)
    assert Checkpoints(directory, IDENTITY).load().step == 5


def test_a_huge_or_deep_meta_is_passed_over(directory: Path) -> None:
    path = own_files(directory)["meta.json"]
    path.write_bytes(manifest.sealed(b"[" * 200_000))
    assert "not JSON" in Checkpoints(directory, IDENTITY).load().notices[0]
    os.truncate(path, 2**40)
    assert "more than the" in Checkpoints(directory, IDENTITY).load().notices[0]


@pytest.mark.parametrize("name", ["checkpoint-000000000006", "segments"])
def test_linked_directories_are_not_followed(directory: Path, name: str) -> None:
    outside = directory.parent / "outside"
    (directory / name).rename(outside)
    (directory / name).symlink_to(outside)
    if name == "segments":
        with pytest.raises(ValueError, match="segments: is a symbolic link"):
            Checkpoints(directory, IDENTITY).load()
        return
    checkpoints = Checkpoints(directory, IDENTITY)
    loaded = checkpoints.load()
    assert loaded.step == 5
    before = everything(outside)
    checkpoints.save(6, state_at(6))
    assert everything(outside) == before


def test_another_run_is_refused_by_the_fields_that_differ(directory: Path) -> None:
    before = everything(directory)
    checkpoints = Checkpoints(directory, {"game": "Pong", "learning": {"rate": 0.5}})
    message = r'of another run, which differs in game \(there "Freeway", here "Pong"\), '
    with pytest.raises(ValueError, match=message + r"learning.rate \(there nothing, here 0.5\)"):
        checkpoints.load()
    with pytest.raises(ValueError, match="already holds checkpoints"):
        checkpoints.save(9, {})
    assert everything(directory) == before


def test_identities_tell_true_from_one(tmp_path: Path) -> None:
    Checkpoints(tmp_path, {"noisy": True, "sizes": (1, 2)}).save(0, {})
    assert Checkpoints(tmp_path, {"sizes": [1, 2], "noisy": True}).load() is not None
    with pytest.raises(ValueError, match=r"noisy \(there true, here 1\)"):
        Checkpoints(tmp_path, {"noisy": 1, "sizes": (1, 2)}).load()


@pytest.mark.parametrize(
    ("identity", "message"),
    [({"a": {"b": float("nan")}}, "identity a.b must be finite"), ({"a": {1}}, "plain data")],
)
def test_identities_are_plain_data(tmp_path: Path, identity: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Checkpoints(tmp_path, identity)


def test_a_newer_version_is_refused_and_not_passed_over(directory: Path) -> None:
    rewrite_meta(directory, lambda meta: meta.update(version=2, state="of another kind"))
    with pytest.raises(ValueError, match="format version 2 and needs a newer ezgreedy"):
        Checkpoints(directory, IDENTITY).load()


def test_files_of_others_are_refused_by_name(directory: Path) -> None:
    rewrite_meta(directory, lambda meta: meta.update(format="another"))
    with pytest.raises(ValueError, match=r"meta\.json is intact, but is not a checkpoint"):
        Checkpoints(directory, IDENTITY).load()
    (directory / "checkpoint_7.pt").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"checkpoint_7\.pt is not a checkpoint of ezgreedy"):
        Checkpoints(directory, IDENTITY).load()
    (directory.parent / "README").write_text("hello")
    with pytest.raises(ValueError, match=r"directory must be a directory; got .*README"):
        Checkpoints(directory.parent / "README", IDENTITY).load()


FULL_DISK = """
import sys, resource
from pathlib import Path
import numpy as np
from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing

checkpoints = Checkpoints(Path(sys.argv[1]), {})
ring = np.ones((100, 1000), dtype=np.uint8)
checkpoints.save(1, {"array": np.zeros(10), "tail": AppendOnlyRing(ring, 10)})
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
array, num_written = {"array": (np.zeros(10_000), 20), "tail": (np.zeros(9), 90)}[sys.argv[2]]
try:
    checkpoints.save(2, {"array": array, "tail": AppendOnlyRing(ring, num_written)})
except OSError as error:
    print(error.errno, error.filename)
checkpoints.save(3, {"array": np.zeros(10), "tail": AppendOnlyRing(ring, 20)})
"""


@pytest.mark.parametrize(("what", "file"), [("array", "arrays.safetensors"), ("tail", "rows")])
def test_a_file_that_grows_too_large_leaves_all_as_it_was(
    tmp_path: Path, what: str, file: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path), what],
        preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{errno.EFBIG} {tmp_path}")
    assert done.stdout.rstrip().endswith(file)
    assert Checkpoints(tmp_path, {}).load().step == 3
    assert len(list((tmp_path / "segments").iterdir())) == 2


class FullDisk:
    """Lets so many writes and syncs pass, fails one of them, and lets the others pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, num_passing: int) -> None:
        self.remaining = num_passing
        for name in ("write", "fsync"):
            monkeypatch.setattr(os, name, self.failing(getattr(os, name)))

    def failing(self, function: Callable) -> Callable:
        def call(*args: object) -> object:
            self.remaining -= 1
            if self.remaining == -1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*args)

        return call


# Rows: write, fsync. Their directory: fsync. Arrays and meta.json: write and fsync each.
# The new directory: fsync. That makes 8 calls before the checkpoint gets its name.
@pytest.mark.parametrize("num_passing", range(8))
def test_a_disk_that_is_full_at_any_moment_leaves_all_as_it_was(
    directory: Path, monkeypatch: pytest.MonkeyPatch, num_passing: int
) -> None:
    checkpoints = Checkpoints(directory, IDENTITY)
    checkpoints.load()
    before = everything(directory)
    with monkeypatch.context() as patch:
        FullDisk(patch, num_passing)
        with pytest.raises(OSError, match="No space left on device") as caught:
            checkpoints.save(7, state_at(7))
    assert str(caught.value.filename).startswith(str(directory))
    assert everything(directory) == before
    assert not list(directory.glob(".tmp*"))
    assert_same(Checkpoints(directory, IDENTITY).load().state, state_at(6))
    checkpoints.save(7, state_at(7))
    assert_same(Checkpoints(directory, IDENTITY).load().state, state_at(7))


def test_a_failure_after_the_rename_leaves_the_new_checkpoint_whole(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(directory, IDENTITY)
    checkpoints.load()
    with monkeypatch.context() as patch:
        FullDisk(patch, 8)
        with pytest.raises(OSError, match="No space left on device"):
            checkpoints.save(7, state_at(7))
    assert_same(Checkpoints(directory, IDENTITY).load().state, state_at(7))
    checkpoints.save(7, state_at(7))
    checkpoints.save(8, state_at(8))
    assert_same(Checkpoints(directory, IDENTITY).load().state, state_at(8))


def test_an_interrupt_right_after_the_rename_leaves_the_new_checkpoint_whole(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(directory, IDENTITY)
    checkpoints.load()
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> None:
        rename(self, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            checkpoints.save(7, state_at(7))
    assert_same(Checkpoints(directory, IDENTITY).load().state, state_at(7))
    checkpoints.save(8, state_at(8))
    assert_same(Checkpoints(directory, IDENTITY).load().state, state_at(8))


def test_a_failed_save_leaves_segments_that_others_share_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = np.zeros(10)
    checkpoints = Checkpoints(tmp_path, {})
    checkpoints.save(0, {"ring": AppendOnlyRing(ring, 4)})
    checkpoints.save(1, {"ring": AppendOnlyRing(ring, 5)})
    # A sequence begun anew, whose first four items are like those of the old one.
    with monkeypatch.context() as patch:
        FullDisk(patch, 5)
        with pytest.raises(OSError, match="No space left on device"):
            checkpoints.save(2, {"ring": AppendOnlyRing(ring, 4)})
    loaded = Checkpoints(tmp_path, {}).load()
    assert (loaded.step, loaded.notices) == (1, ())
