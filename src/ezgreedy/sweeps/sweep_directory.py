"""A sweep on disk: its runs, their states, and the code that made them.

sweep.json   the sweep, its runs, and facts about them that are not in their own files
runs/        a directory for each run that was started, as from `ezgreedy train`
logs/        the output of the processes of each run
drafts/      run directories being created

A run's own files take precedence; sweep.json adds why it failed and the code that worked on it.
"""

import errno
import fcntl
import hashlib
import os
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import ezgreedy
from ezgreedy import requirements as require
from ezgreedy.checkpoints import durable_files
from ezgreedy.results.runs import ENGINE_FILE, SWEEP_FILE, SWEEP_RUNS, read_mapping, read_run
from ezgreedy.results.store import write_json_atomically
from ezgreedy.runs.output_paths import SET_ASIDE, require_apart
from ezgreedy.runs.run_directory import FINISHED, RUNNING, RunDirectory
from ezgreedy.runs.settings_codec import as_plain, with_later_settings
from ezgreedy.sweeps.definitions import Member, Sweep

FORMAT = 1
KIND = "ezgreedy sweep"
DONE, FAILED, PENDING = "done", "failed", "pending"
STATES = (DONE, RUNNING, FAILED, PENDING)

LOCK_FILE = "sweep.lock"
_LOGS, _DRAFTS = "logs", "drafts"


@dataclass(frozen=True)
class RunState:
    """State of one run of a sweep.

    Args:
        id: id of the run.
        agent: name of the agent.
        state: one of STATES; an interrupted run is pending, with frames.
        frames: frames played, by its last checkpoint.
        frames_to_play: total frames of the run.
        speed: last known frames per second; None if unknown.
        reason: reason for failure; "" if it did not fail.
    """

    id: str
    agent: str
    state: str
    frames: int
    frames_to_play: int
    speed: float | None = None
    reason: str = ""


class SweepDirectory:
    """The directory of a sweep.

    Args:
        path: the directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.file = self.path / SWEEP_FILE
        self._contents: dict[str, Any] = {}

    # Starting and continuing.

    def check(self, sweep: Sweep, changes: Sequence[str]) -> None:
        """Refuses a directory that holds something else, before anything is written."""
        require_apart(self.path)
        if self.file.exists():
            self._check_same(self._read(), _question(sweep, changes))
        elif self.path.exists() and (not self.path.is_dir() or self._holds_something_else()):
            rule = "be a new or an empty directory, or one of this sweep"
            raise require.refuse("--out", rule, str(self.path))

    def require_writable(self) -> None:
        """Refuses a directory in which nothing can be written; leaves nothing behind."""
        there = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        with durable_files.named_errors(there), tempfile.TemporaryFile(dir=there):
            pass

    @property
    def has_earlier_streams(self) -> bool:
        """Whether an earlier version began the sweep, whose runs then keep their random streams."""
        return self.file.exists() and "streams" not in self._read()

    def open(self, sweep: Sweep, changes: Sequence[str], members: Sequence[Member]) -> None:
        """Creates or continues the directory, under a lock; new runs join the known ones."""
        self.check(sweep, changes)
        self._contents = self._read() if self.file.exists() else {}
        known = self._contents.get("runs", {})
        self._contents = {
            "format": FORMAT,
            "kind": KIND,
            **_question(sweep, changes),
            **({} if self.has_earlier_streams else {"streams": "separate"}),
            "jobs": self._contents.get("jobs", 1),
            "runs": known | {m.id: known.get(m.id) or _entry(m) for m in members},
        }
        for name in (SWEEP_RUNS, _LOGS):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        durable_files.remove(self.path / _DRAFTS)
        self.write()

    def write(self) -> None:
        """Writes sweep.json, completely or not at all."""
        with durable_files.named_errors(self.file):
            write_json_atomically(self.file, self._contents, seals=True)

    # Single runs.

    def run(self, member_id: str) -> RunDirectory:
        """The directory of a run; it need not exist."""
        return RunDirectory(self.path / SWEEP_RUNS / member_id)

    def log(self, member_id: str) -> Path:
        """The log file of the processes of a run."""
        return self.path / _LOGS / f"{member_id}.log"

    def begin(
        self, member: Member, prepare: Callable[[RunDirectory], None] = lambda draft: None
    ) -> Path:
        """Creates a run's directory, with its settings, if it does not exist; returns its path.

        Args:
            member: the run.
            prepare: writes its other files.
        """
        place = self.run(member.id)
        if place.config.exists():
            if with_later_settings(place.identity()) != as_plain(member.settings):
                raise ValueError(f"{place.config} does not hold the settings its name stands for")
            return place.path
        draft = RunDirectory(self.path / _DRAFTS / member.id)
        durable_files.remove(draft.path)
        with durable_files.named_errors(draft.path):
            draft.create(member.settings)
            prepare(draft)
            draft.path.replace(place.path)
        return place.path

    def note_code(self, member_id: str) -> bool:
        """Records that this code works on a run; True if other code did before."""
        codes: list[str] = self._contents["runs"][member_id]["code"]
        if code_version() not in codes:
            codes.append(code_version())
        return len(codes) > 1

    def note_failure(self, member_id: str, reason: str) -> None:
        """Records why a run failed; "" if it did not, or is tried again."""
        self._contents["runs"][member_id]["failure"] = reason

    def note_jobs(self, num_jobs: int) -> None:
        """Records the number of concurrent runs, which a forecast needs."""
        self._contents["jobs"] = num_jobs

    @property
    def num_jobs(self) -> int:
        """Number of concurrent runs in the last session."""
        return int(self._contents.get("jobs", 1))

    def made_by_other_code(self) -> list[str]:
        """Runs that other code has worked on."""
        runs = self._contents["runs"].items()
        return [name for name, entry in runs if set(entry["code"]) - {code_version()}]

    def outdated(self, members: Sequence[Member]) -> list[str]:
        """Unfinished runs that new ones will replace because the settings have changed.

        Args:
            members: runs that are asked for now.
        """
        wanted = {m.id for m in members}
        new = {_place_of(_entry(m)) for m in members if not self.run(m.id).config.exists()}
        return [
            name
            for name, entry in self._contents["runs"].items()
            if name not in wanted and _place_of(entry) in new and self.state(name).state != DONE
        ]

    def others(self, members: Sequence[Member], *, are_fleets: bool) -> list[str]:
        """Unfinished runs that were started as fleets though these are not, or the reverse.

        Args:
            members: runs that are asked for now.
            are_fleets: whether they are fleets.
        """
        begun = [m for m in members if self.run(m.id).config.exists()]
        return [
            m.id
            for m in begun
            if (self.run(m.id).path / ENGINE_FILE).exists() != are_fleets
            and self.run(m.id).status().get("state") != FINISHED
        ]

    # Reading.

    def read(self) -> dict[str, Any]:
        """The contents of sweep.json; refused if this is not a sweep."""
        self._contents = self._read()
        return self._contents

    def states(self) -> list[RunState]:
        """State of every run."""
        return [self.state(name) for name in self._contents["runs"]]

    def state(self, member_id: str) -> RunState:
        """State of one run, from its status and sweep.json."""
        entry = self._contents["runs"][member_id]
        known = (member_id, entry["agent"])
        to_play = entry["frames"]
        try:
            status = self.run(member_id).status()
        except ValueError as error:
            return RunState(*known, FAILED, 0, to_play, reason=f"status.json is damaged: {error}")
        frames, speed = int(status.get("frames", 0)), status.get("frames_per_second") or None
        if status.get("state") == RUNNING and _is_alive(status, self.run(member_id).results):
            state = RUNNING
        elif entry["failure"]:  # cleared as soon as it is tried again
            state = FAILED
        else:
            state = DONE if status.get("state") == FINISHED else PENDING
        reason = entry["failure"] if state == FAILED else ""
        return RunState(*known, state, frames, to_play, speed, reason)

    def is_done(self, member_id: str) -> bool:
        """Whether a run is finished and every line of its results is intact."""
        return (
            self.state(member_id).state == DONE and read_run(self.run(member_id).path).is_finished
        )

    def _read(self) -> dict[str, Any]:
        if not self.file.exists():
            raise require.refuse("DIR", "be a directory made by ezgreedy sweep", str(self.path))
        contents = read_mapping(self.file)
        if contents.get("kind") != KIND or not isinstance(contents.get("runs"), dict):
            raise ValueError(f"{self.file} was not made by ezgreedy sweep")
        if contents.get("format") != FORMAT:
            raise ValueError(
                f"{self.file} has format {contents.get('format')}, which needs another version of "
                f"ezgreedy (this is {ezgreedy.__version__}, for format {FORMAT})"
            )
        return contents

    def _check_same(self, there: dict[str, Any], here: dict[str, Any]) -> None:
        """Refuses changes to settings that all runs share; games, agents and seeds may be added."""
        there = {**there, "changes": sorted(there.get("changes", []))}
        for name, value in here.items():
            if there.get(name) != value:
                differing = f"{name}: {there.get(name)!r} there, {value!r} here"
                raise ValueError(f"{self.path} holds another sweep ({differing})")

    def _holds_something_else(self) -> bool:
        # A sweep killed before it wrote anything leaves only its lock; a damaged sweep.json that
        # `ezgreedy check` has set aside leaves the runs.
        names = {path.name for path in self.path.iterdir()} - {LOCK_FILE}
        own = {SWEEP_RUNS, _LOGS, _DRAFTS, SET_ASIDE}
        return bool(names - own if SET_ASIDE in names else names)

    # Locking.

    def __enter__(self) -> "SweepDirectory":
        self.path.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise ValueError(f"{self.path} is being swept by another process") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)


@cache
def code_version() -> str:
    """The version of the package, and a hash of its sources, which may differ within a version."""
    checksum = hashlib.sha256()
    root = Path(ezgreedy.__file__).parent
    for path in sorted(root.rglob("*.py")):
        checksum.update(str(path.relative_to(root)).encode("utf-8") + b"\0" + path.read_bytes())
    return f"{ezgreedy.__version__}+{checksum.hexdigest()[:12]}"


def is_full_disk(number: int | None) -> bool:
    """Whether an OSError with this number means that the disk is full."""
    return number in (errno.ENOSPC, errno.EDQUOT)


def _question(sweep: Sweep, changes: Sequence[str]) -> dict[str, Any]:
    """Settings that all runs in a sweep's directory share."""
    return {
        "sweep": sweep.name,
        "scale": sweep.scale,
        "frames": sweep.frames,
        "changes": sorted(changes),
    }


def _entry(member: Member) -> dict[str, Any]:
    settings = member.settings
    return {
        "game": settings.game,
        "agent": settings.agent.name,
        "variant": member.variant,
        "seed": settings.seed,
        "frames": settings.frames,
        "code": [],
        "failure": "",
    }


def _place_of(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """The place of a run in its sweep, regardless of its settings."""
    return tuple(entry[name] for name in ("game", "agent", "variant", "seed"))


def _is_alive(status: dict[str, Any], results: Path) -> bool:
    """Whether the process that wrote a status is alive; on another machine, by its lock."""
    if status.get("host") != socket.gethostname():
        return _is_locked(results)
    try:
        os.kill(int(status["pid"]), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, KeyError, ValueError, OverflowError):
        return False
    return True


def _is_locked(path: Path) -> bool:
    """Whether a process is writing a file; assumed where locks cannot be queried."""
    try:
        with path.open() as file:
            # Shared, for readers; a run that starts at this moment is refused, and retries.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
