"""The one store of checkpoints: atomic, verified, without pickle, and cheap for large rings.

A checkpoint is a directory `checkpoint-<step>` with `arrays.safetensors` and `meta.json`, beside
`segments/` with rows that several checkpoints share. It is written under a hidden name, synced to
disk and renamed, so that a process killed at any moment leaves the previous checkpoint or the new
one. Loading checks size and SHA-256 of every file. If one is damaged, it falls back to an older
checkpoint and says so.
"""

import logging
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ezgreedy import requirements as require
from ezgreedy.checkpoints import durable_files as durable
from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing
from ezgreedy.checkpoints.durable_files import DamagedError, Digest
from ezgreedy.checkpoints.manifest import ARRAYS, META, Manifest, as_identity, read_manifest
from ezgreedy.checkpoints.segments import (
    Coverage,
    Segment,
    is_segment_name,
    parts_to_write,
    read_tail,
    require_new_rows_finite,
    row_chunks,
    segment_name,
)
from ezgreedy.checkpoints.state_tree import Array, Encoded, decode, encode

SEGMENTS = "segments"

_NAME = re.compile(r"checkpoint-(\d{12,19})")
_DRAFT = re.compile(r"\.tmp-\d+-(\d+)(-old)?")
# Types that safetensors can name; others are stored as bytes, with their type in meta.json.
_NATIVE = frozenset("?bBhHiIlLqQefd")
_UNREADABLE = (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError)
_log = logging.getLogger(__name__)


class Loaded(NamedTuple):
    """A state, the step it was saved at, and notices of checkpoints passed over."""

    step: int
    state: dict[str, Any]
    notices: tuple[str, ...]


@dataclass
class _Known:
    """The parts of a checkpoint, written or read by this process, that the next save needs."""

    step: int
    manifest: Manifest
    segment_names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        names = (name for tail in self.manifest.tails.values() for *_, name in tail.segments)
        self.segment_names = frozenset(names)


class Checkpoints:
    """The newest checkpoints of one run, written by one process at a time.

        checkpoints = Checkpoints(run / "checkpoints", identity={"config": config})
        loaded = checkpoints.load()
        ...
        checkpoints.save(step, {"learner": state, "frames": AppendOnlyRing(ring, written)})

    Args:
        directory: a directory for checkpoints only, made by the first save.
        identity: plain data that identifies the run; checkpoints of another run are refused.
        keep: number of checkpoints to keep.
        free: dotted names in the identity in which the run may differ from its checkpoints.
    """

    def __init__(
        self,
        directory: Path,
        identity: Mapping[str, Any],
        keep: int = 2,
        free: Collection[str] = (),
    ) -> None:
        self.directory = Path(directory)
        self.keep = require.integer("keep", keep, least=1)
        self._identity, self._free = as_identity(identity), free
        # Oldest first. The run continues from the last one.
        self._known: list[_Known] = []

    def save(self, step: int, state: Mapping[str, Any], *, is_last: bool = False) -> Path:
        """Write a checkpoint, remove those that are no longer kept, and return the new directory.

        Steps must increase. Saving the newest step again changes nothing if the state is the same,
        and is refused if it is not. A failed save leaves everything as it was.

        Args:
            step: the state's number.
            state: nested dicts, lists and tuples of None, bools, ints, finite floats, strings,
                bytes, NumPy arrays of numbers, and append-only rings.
            is_last: whether to remove all earlier checkpoints.
        """
        step = require.integer("step", step, self._known[-1].step if self._known else 0)
        self._require_loaded()
        encoded = encode(state)
        plans = {path: self._plan(path, tail) for path, tail in encoded.tails.items()}
        self._make_directories()
        draft = self.directory / f".tmp-{step}-{os.getpid()}"
        durable.remove(draft)
        made: dict[str, Digest] = {}
        try:
            draft.mkdir()
            manifest = self._write(draft, step, encoded, plans, made)
            if not self._is_newest(step, manifest):
                self._publish(draft, step, manifest)
        except BaseException:
            if draft.exists():  # otherwise it is published, and its segments are in use
                for name in made.keys() - self._names_in_use():
                    durable.remove(self._segments / name)
            raise
        finally:
            durable.remove(draft)
        self._tidy(1 if is_last else self.keep)
        return self._path(step)

    def load(self, last_step: int | None = None, *, reads_tails: bool = True) -> Loaded | None:
        """The newest intact checkpoint, or None if there is none; nothing is changed on disk.

        Raises ValueError if all are damaged, if one is of another run, or if one was written by
        a newer version than this.

        Args:
            last_step: the latest step to load, if given; the next save removes later ones.
            reads_tails: whether append-only rings are read; if not, None takes their place, for
                readers that need not wait for a whole replay.
        """
        steps = [step for step in self._steps() if last_step is None or step <= last_step]
        notices: list[str] = []
        for step in reversed(steps):
            try:
                manifest = self._manifest(step)
                state = self._state(manifest, self._path(step), reads_tails)
            except DamagedError as damage:
                notices.append(f"{self._path(step).name} is passed over: {damage}")
                _log.warning("%s", notices[-1])
                continue
            older = [self._intact(other) for other in steps if other < step]
            self._known = [known for known in older if known] + [_Known(step, manifest)]
            return Loaded(step, state, tuple(notices))
        if notices:
            raise ValueError(f"no checkpoint in {self.directory} is intact: {'; '.join(notices)}")
        return None

    @property
    def steps(self) -> list[int]:
        """The steps of all checkpoints on disk, damaged ones included, in order."""
        return self._steps()

    def path_of(self, step: int) -> Path:
        """The directory of a checkpoint."""
        return self._path(step)

    def verified(self, step: int) -> dict[str, Any]:
        """The state of a checkpoint without its rings, after all its files have been verified.

        Unlike `load`, needs no memory for rings. Raises DamagedError for a damaged checkpoint, and
        ValueError for one of another run or a newer version.
        """
        manifest = self._manifest(step)
        for name, digest in manifest.files.items():
            if is_segment_name(name):  # arrays are read with the state
                path = self._segments / name
                durable.read_verified(path, digest, durable.scratch(digest.size))
        return self._state(manifest, self._path(step), reads_tails=False)

    def segments_of(self, step: int) -> set[Path]:
        """The shared files of a checkpoint; empty if it does not say which."""
        try:
            names = self._manifest(step).files
        except (DamagedError, ValueError):
            return set()
        return {self._segments / name for name in names if is_segment_name(name)}

    @property
    def _segments(self) -> Path:
        return self.directory / SEGMENTS

    def _path(self, step: int) -> Path:
        return self.directory / f"checkpoint-{step:012d}"

    def _steps(self) -> list[int]:
        """The steps of all checkpoints on disk, damaged ones included, in order."""
        if not self.directory.exists():
            return []
        if not self.directory.is_dir():
            raise require.refuse("directory", "be a directory", str(self.directory))
        steps = []
        for path in self.directory.glob("checkpoint*"):
            match = _NAME.fullmatch(path.name)
            if match is None or self._path(int(match[1])) != path:
                raise ValueError(f"{path} is not a checkpoint of ezgreedy; keep them apart")
            steps.append(int(match[1]))
        return sorted(steps)

    def _require_loaded(self) -> None:
        # Otherwise a run begun by mistake would push out the checkpoints of the old one.
        if not self._known and self._steps():
            raise ValueError(
                f"{self.directory} already holds checkpoints; load them before the first save, "
                "or use another directory"
            )

    def _make_directories(self) -> None:
        if self._segments.is_symlink():
            raise ValueError(f"{self._segments} must be a directory; it is a symbolic link")
        if not self._segments.is_dir():
            self._segments.mkdir(parents=True)
            durable.sync_directory(self.directory)
            durable.sync_directory(self.directory.parent)

    def _plan(self, path: str, tail: AppendOnlyRing) -> list[Segment | range]:
        known = self._known[-1].manifest.tails.get(path) if self._known else None
        parts = parts_to_write(tail, known)
        require_new_rows_finite(path, tail, parts)
        return parts

    def _write(
        self,
        draft: Path,
        step: int,
        encoded: Encoded,
        plans: Mapping[str, list[Segment | range]],
        made: dict[str, Digest],
    ) -> Manifest:
        """Write all files; new segments go to their place at once, and are recorded in `made`."""
        tails = {
            path: self._cover(draft, path, encoded.tails[path], plan, made)
            for path, plan in plans.items()
        }
        durable.sync_directory(self._segments)
        earlier = self._known[-1].manifest.files if self._known else {}
        used = [name for tail in tails.values() for *_, name in tail.segments]
        files = {name: made.get(name) or earlier[name] for name in used}
        files[ARRAYS] = durable.write_file(draft / ARRAYS, [_as_safetensors(encoded.arrays)])
        manifest = Manifest(step, self._identity, files, tails, encoded.tree)
        durable.write_file(draft / META, [manifest.as_bytes()])
        durable.sync_directory(draft)
        return manifest

    def _cover(
        self,
        draft: Path,
        path: str,
        tail: AppendOnlyRing,
        plan: list[Segment | range],
        made: dict[str, Digest],
    ) -> Coverage:
        segments = []
        for part in plan:
            if isinstance(part, range):
                digest = durable.write_file(draft / "rows", row_chunks(tail, part))
                part = Segment(part.start, part.stop, segment_name(path, part, digest.sha256))
                made[part.name] = digest
                if (self._segments / part.name).is_dir():  # damage of a strange kind
                    durable.remove(self._segments / part.name)
                (draft / "rows").replace(self._segments / part.name)
            segments.append(part)
        layout = (tail.array.dtype.str, tail.array.shape, tail.num_written)
        return Coverage(*layout, tuple(segments))

    def _is_newest(self, step: int, manifest: Manifest) -> bool:
        if not self._known or self._known[-1].step != step:
            return False
        if manifest.as_bytes() != self._known[-1].manifest.as_bytes():
            raise require.refuse("step", f"be above {step}, saved with another state", step)
        return True

    def _publish(self, draft: Path, step: int, manifest: Manifest) -> None:
        path = self._path(step)
        self._discard(path)  # a damaged one, passed over when this run resumed from an older one
        draft.rename(path)
        self._known.append(_Known(step, manifest))
        durable.sync_directory(self.directory)

    def _discard(self, path: Path) -> None:
        """Remove a checkpoint; it is never there in part."""
        if path.exists() or path.is_symlink():
            old = self.directory / f".tmp-{int(path.name[11:])}-{os.getpid()}-old"
            durable.remove(old)
            path.rename(old)
            durable.remove(old)

    def _tidy(self, keep: int) -> None:
        """Remove files that no kept checkpoint needs, and remains of killed processes."""
        del self._known[:-keep]
        kept = {known.step for known in self._known}
        try:
            for step in self._steps():
                if step not in kept:
                    self._discard(self._path(step))
            for draft in self.directory.glob(".tmp-*"):
                match = _DRAFT.fullmatch(draft.name)
                if match and not _is_other_process(int(match[1])):
                    durable.remove(draft)
            in_use = self._names_in_use()
            for path in self._segments.iterdir():
                if is_segment_name(path.name) and path.name not in in_use:
                    durable.remove(path)
        except OSError as error:
            # The checkpoint itself is safe, so the run continues; the next save tries again.
            _log.warning("old checkpoints cannot be removed: %s", error)

    def _names_in_use(self) -> set[str]:
        return {name for known in self._known for name in known.segment_names}

    def _manifest(self, step: int) -> Manifest:
        return read_manifest(self._path(step) / META, step, self._identity, self._free)

    def _intact(self, step: int) -> _Known | None:
        try:
            return _Known(step, self._manifest(step))
        except DamagedError as damage:
            _log.warning("%s", damage)
            return None

    def _state(self, manifest: Manifest, path: Path, reads_tails: bool) -> dict[str, Any]:
        try:
            arrays = _read_arrays(path / ARRAYS, manifest.files[ARRAYS])
            tails = {
                place: read_tail(self._segments, coverage, manifest.files) if reads_tails else None
                for place, coverage in manifest.tails.items()
            }
            state = decode(manifest.tree, arrays.__getitem__, tails.__getitem__)
            if not isinstance(state, dict):
                raise TypeError("the state is not a dict")
            return state
        except MemoryError as error:
            raise DamagedError(path, "needs more memory than there is") from error
        except _UNREADABLE as error:
            raise DamagedError(path, f"makes no sense ({error!r})") from error


def _as_safetensors(arrays: Mapping[str, Array]) -> bytes:
    from safetensors.numpy import save

    return save({path: _storable(array) for path, array in arrays.items()})


def _storable(array: Array) -> Array:
    array = np.asarray(array, order="C")
    if array.dtype.char in _NATIVE and array.dtype.isnative:
        return array
    return np.frombuffer(array.tobytes(), dtype=np.uint8)


def _read_arrays(path: Path, digest: Digest) -> dict[str, Array]:
    from safetensors import SafetensorError, safe_open

    durable.read_verified(path, digest, durable.scratch(digest.size))
    try:
        with safe_open(path, framework="np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise DamagedError(path, f"is not a file of arrays ({error})") from error


def _is_other_process(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
