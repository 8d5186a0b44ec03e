"""Is each file of a run as it was written? Facts only; `run_state` says what follows from them."""

import fcntl
import json
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ezgreedy.checkpoints.durable_files import DamagedError
from ezgreedy.checkpoints.manifest import META, read_identity
from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.fleet.ray_run_loop import SNAPSHOTS
from ezgreedy.results.runs import CHANGEABLE, ENGINE_FILE, read_config, read_mapping, run_name
from ezgreedy.results.store import IntactPart, intact_part
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.settings_codec import UnknownKindError, from_plain, with_later_settings

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")


class Config(NamedTuple):
    """What config.json says, and what is wrong with it."""

    data: dict[str, Any] | None
    is_sealed: bool
    damage: str
    lacks: str = ""  # what this process does not know and `resume` would need


class Spread(NamedTuple):
    """How a run on Ray was spread when it was saved."""

    actors: int
    shards: int
    snapshot: int  # of every memory, which is saved in a directory of its own


class Saved(NamedTuple):
    """One checkpoint: what it says if it is intact, and what is wrong with it if it is not."""

    step: int
    damage: str
    identity: Mapping[str, Any] | None = None  # of the run that made it, if that can be read
    offset: int = 0  # bytes of results
    frames: int = 0
    has_replay: bool = True
    spread: Spread | None = None  # of a run on Ray


@dataclass(frozen=True)
class RunFiles:
    """The files of a run.

    Args:
        place: its directory.
        config: config.json.
        name: name of the run, by its checkpoints if they agree, else by config.json.
        identity: the settings that name stands for; None if they are not known.
        saved: checkpoints, oldest first.
        rows: intact rows of results.
        counted: number of rows that there must be; None if it is not known.
        status: status.json; None if it is damaged.
        others: damage of further files, in words; of a run on Ray that is unfinished, memories
            without the snapshot that its newest fitting checkpoint needs are among them.
    """

    place: RunDirectory
    config: Config
    name: str | None
    identity: Mapping[str, Any] | None
    saved: list[Saved]
    rows: IntactPart
    counted: int | None
    status: dict[str, Any] | None
    others: dict[Path, str]

    @property
    def target(self) -> Saved | None:
        """The newest checkpoint from which the run can continue; None for its beginning."""
        return _newest_fitting(self.saved, self.rows)


def read_files(directory: Path) -> RunFiles:
    """Reads and verifies every file of a run; changes nothing."""
    place = RunDirectory(directory)
    others: dict[Path, str] = {}
    for path in (place.config, place.status_file, place.results, *_directories(place)):
        if path.is_symlink():
            others[path] = f"is a symbolic link, to {os.readlink(path)}"
    config = _config(place)
    identity = _agreed_identity(place, config)
    saved = [] if place.checkpoints.is_symlink() else _saved(place, identity, others)
    status = _status(place, others)
    name = None if identity is None else run_name(identity)
    rows = _rows(place.results, name)
    counted = None if status is None else status.get("rows")
    _check_others(place, others)
    if identity is not None:
        _check_engine(place, identity, saved, _newest_fitting(saved, rows), others)
    return RunFiles(place, config, name, identity, saved, rows, counted, status, others)


def is_locked(path: Path) -> bool:
    """Whether another process is writing a file."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _directories(place: RunDirectory) -> tuple[Path, ...]:
    return place.checkpoints, place.tensorboard


def _config(place: RunDirectory) -> Config:
    if not place.config.exists():
        return Config(None, True, "is missing")
    try:
        data, is_sealed = read_config(place.path)
        from_plain(with_later_settings(data["settings"]))
    except UnknownKindError as error:
        return Config(data, is_sealed, "", str(error))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        return Config(None, True, str(error))
    return Config(data, is_sealed, "")


def _agreed_identity(place: RunDirectory, config: Config) -> Mapping[str, Any] | None:
    """The settings of the run: those that its checkpoints agree on, or else config.json's.

    Each checkpoint holds them under a checksum. If config.json differs from all, it is the one that
    was changed or swapped.
    """
    found = {}
    if not place.checkpoints.is_symlink():
        for path in sorted(place.checkpoints.glob(f"checkpoint-*/{META}")):
            try:
                identity = read_identity(path)
                found[run_name(identity)] = identity
            except (DamagedError, ValueError, KeyError, TypeError):
                continue
    own = None if config.data is None else config.data["settings"]
    if own is not None and (not found or run_name(own) in found):
        return own
    return next(iter(found.values())) if len(found) == 1 else own


def _saved(
    place: RunDirectory, identity: Mapping[str, Any] | None, others: dict[Path, str]
) -> list[Saved]:
    if identity is None:
        return []
    store = Checkpoints(place.checkpoints, identity, free=CHANGEABLE)
    try:
        steps = store.steps
    except (ValueError, OSError) as error:
        others[place.checkpoints] = str(error)
        return []
    return [_one_saved(store, step) for step in steps]


def _one_saved(store: Checkpoints, step: int) -> Saved:
    try:
        state = store.verified(step)
        return Saved(
            step,
            "",
            read_identity(store.path_of(step) / META),
            int(state["results_offset"]),
            int(state["training"]["frames"]),
            bool(state.get("has_replay", True)),
            _spread(state["training"].get("fleet")),
        )
    except (DamagedError, ValueError, KeyError, TypeError) as error:
        return Saved(step, str(error) if str(error) else repr(error))


def _spread(fleet: Mapping[str, Any] | None) -> Spread | None:
    if fleet is None:
        return None
    return Spread(len(fleet["lanes"]), int(fleet["shards"]), int(fleet["snapshot"]))


def _newest_fitting(saved: Sequence[Saved], rows: IntactPart) -> Saved | None:
    """The newest intact checkpoint whose rows of results are all there."""
    fitting = [one for one in saved if not one.damage and one.offset <= rows.end]
    return fitting[-1] if fitting else None


def _status(place: RunDirectory, others: dict[Path, str]) -> dict[str, Any] | None:
    try:
        return place.status()
    except (OSError, ValueError) as error:
        others.setdefault(place.status_file, str(error))
        return None


def _rows(path: Path, name: str | None) -> IntactPart:
    if not path.exists():
        return IntactPart([], 0, None, True)
    try:
        return intact_part(path, name)
    except OSError as error:
        return IntactPart([], 0, f"{path}: {error.strerror}", True)


def _check_others(place: RunDirectory, others: dict[Path, str]) -> None:
    engine = place.path / ENGINE_FILE
    if engine.exists():
        try:
            read_mapping(engine)
        except (OSError, ValueError) as error:
            others[engine] = str(error)
    if not place.tensorboard.is_symlink():
        for path in sorted(place.tensorboard.glob("events.*")):
            damage = _event_damage(path)
            if damage:
                others[path] = damage


def _check_engine(
    place: RunDirectory,
    identity: Mapping[str, Any],
    saved: Sequence[Saved],
    target: Saved | None,
    others: dict[Path, str],
) -> None:
    """Whether a run on Ray has what its checkpoints need: engine.json, and its memories."""
    engine = place.path / ENGINE_FILE
    if any(one.spread for one in saved) and not engine.exists():
        others[engine] = "is missing"
    if target is None or target.spread is None or not target.has_replay:
        return
    _, shards, snapshot = target.spread
    for number, path in enumerate(memories(place, shards)):
        memory = Checkpoints(path, {"seed": identity["seed"], "shard": number, "of": shards})
        if is_empty(path):
            continue
        try:
            memory.verified(snapshot)
        except (DamagedError, ValueError, KeyError, OSError) as error:
            others[path] = f"has lost what it held: {error}"


def memories(place: RunDirectory, shards: int) -> list[Path]:
    """The directories of the memories of a run on Ray."""
    return [place.path / SNAPSHOTS / f"memory-{number}" for number in range(shards)]


def is_empty(memory: Path) -> bool:
    """Whether a repair has emptied a memory, for it to begin so."""
    return memory.is_dir() and not any(memory.iterdir())


def _event_damage(path: Path) -> str:
    """What is wrong with a file of TensorBoard; an unfinished last record is not."""
    from tensorboardX.record_writer import masked_crc32c

    if path.is_symlink() or not path.is_file():
        return "is not a file"
    data, start = path.read_bytes(), 0
    while start + _HEADER.size <= len(data):
        length, checksum = _HEADER.unpack_from(data, start)
        if masked_crc32c(data[start : start + 8]) != checksum:
            return f"is damaged at byte {start}"
        body, start = data[start + _HEADER.size :][:length], start + _HEADER.size + length
        if start + _CHECKSUM.size > len(data):
            break
        if masked_crc32c(body) != _CHECKSUM.unpack_from(data, start)[0]:
            return f"is damaged before byte {start}"
        start += _CHECKSUM.size
    return ""


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The names of the settings in which two runs differ."""
    from ezgreedy.named_settings import flattened

    one, other = flattened(dict(there)), flattened(dict(here))
    names = sorted(
        name
        for name in one.keys() | other.keys()
        if name not in CHANGEABLE and json.dumps(one.get(name)) != json.dumps(other.get(name))
    )
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
