"""A sweep on disk: which runs it has, how each of them is, and which code they were made by.

sweep.json   the sweep, its runs and what is known of them beyond their own files
runs/        a directory for each run that was begun, as of `ezgreedy train`
logs/        what the processes of each run said
drafts/      run directories that are being made

What a run's own files say counts; sweep.json adds how often it failed and the code it met.
"""

import errno
import fcntl
import hashlib
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import ezgreedy
from ezgreedy import requirements as require
from ezgreedy.results.runs import SWEEP_FILE, SWEEP_RUNS, read_mapping, read_run
from ezgreedy.results.store import write_json_atomically
from ezgreedy.running import durable_files
from ezgreedy.running.enclosure import require_apart
from ezgreedy.running.plain import as_plain
from ezgreedy.running.run_directory import FINISHED, RUNNING, RunDirectory
from ezgreedy.running.sweeps import Member, Sweep

FORMAT = 1
KIND = "ezgreedy sweep"
DONE, FAILED, PENDING = "done", "failed", "pending"
STATES = (DONE, RUNNING, FAILED, PENDING)

LOCK_FILE = "sweep.lock"
_LOGS, _DRAFTS = "logs", "drafts"


@dataclass(frozen=True)
class RunState:
    """How one run of a sweep is.

    Args:
        id: of the run.
        agent: who plays.
        state: one of STATES; a run that was interrupted is pending, with frames.
        frames: that it played, by its last checkpoint.
        frames_to_play: in all.
        speed: frames a second when it was last seen; None if it never was.
        reason: why it failed; "" if it did not.
    """

    id: str
    agent: str
    state: str
    frames: int
    frames_to_play: int
    speed: float | None = None
    reason: str = ""


class SweepDirectory:
    """Where a sweep lives.

    Args:
        path: the directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.file = self.path / SWEEP_FILE
        self._contents: dict[str, Any] = {}

    # Beginning and going on.

    def check(self, sweep: Sweep, changes: Sequence[str]) -> None:
        """Refuses, before anything is written, a directory in which this sweep has no place."""
        require_apart(self.path)
        if self.file.exists():
            self._check_same(self._read(), _question(sweep, changes))
        elif self.path.exists() and (not self.path.is_dir() or self._holds_something_else()):
            rule = "be a new or an empty directory, or one of this sweep"
            raise require.refuse("--out", rule, str(self.path))

    def open(self, sweep: Sweep, changes: Sequence[str], members: Sequence[Member]) -> None:
        """Makes the directory or goes on with it, under a lock; new runs join those known."""
        self.check(sweep, changes)
        self._contents = self._read() if self.file.exists() else {}
        known = self._contents.get("runs", {})
        self._contents = {
            "format": FORMAT,
            "kind": KIND,
            **_question(sweep, changes),
            "jobs": self._contents.get("jobs", 1),
            "runs": known | {m.id: known.get(m.id) or _entry(m) for m in members},
        }
        for name in (SWEEP_RUNS, _LOGS):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        durable_files.remove(self.path / _DRAFTS)
        self.write()

    def write(self) -> None:
        """Brings what is known to the disk, whole."""
        with durable_files.named_errors(self.file):
            write_json_atomically(self.file, self._contents)

    # Single runs.

    def run(self, member_id: str) -> RunDirectory:
        """The directory of a run, which need not exist."""
        return RunDirectory(self.path / SWEEP_RUNS / member_id)

    def log(self, member_id: str) -> Path:
        """Where the processes of a run write what they have to say."""
        return self.path / _LOGS / f"{member_id}.log"

    def begin(self, member: Member) -> Path:
        """A run's directory with its settings, made as a whole if it is not there; its path."""
        place = self.run(member.id)
        if place.config.exists():
            if place.identity() != as_plain(member.settings):
                raise ValueError(f"{place.config} does not hold the settings its name stands for")
            return place.path
        draft = RunDirectory(self.path / _DRAFTS / member.id)
        durable_files.remove(draft.path)
        with durable_files.named_errors(draft.path):
            draft.create(member.settings)
            draft.path.replace(place.path)
        return place.path

    def note_code(self, member_id: str) -> bool:
        """Records that this code takes up a run; True if other code did so before."""
        codes: list[str] = self._contents["runs"][member_id]["code"]
        if code_version() not in codes:
            codes.append(code_version())
        return len(codes) > 1

    def note_failure(self, member_id: str, reason: str) -> None:
        """Records why a run is given up; "" if it is not, or no longer."""
        self._contents["runs"][member_id]["failure"] = reason

    def note_jobs(self, num_jobs: int) -> None:
        """Records how many runs go on at once, which a forecast needs."""
        self._contents["jobs"] = num_jobs

    @property
    def num_jobs(self) -> int:
        """How many runs went on at once when it was last run."""
        return int(self._contents.get("jobs", 1))

    def made_by_other_code(self) -> list[str]:
        """Runs that other code than this one began."""
        runs = self._contents["runs"].items()
        return [name for name, entry in runs if set(entry["code"]) - {code_version()}]

    def outdated(self, members: Sequence[Member]) -> list[str]:
        """Unfinished runs in whose place others are yet to begin, for their settings have changed.

        Args:
            members: what is asked for now.
        """
        wanted = {m.id for m in members}
        new = {_place_of(_entry(m)) for m in members if not self.run(m.id).config.exists()}
        return [
            name
            for name, entry in self._contents["runs"].items()
            if name not in wanted and _place_of(entry) in new and self.state(name).state != DONE
        ]

    # Looking.

    def read(self) -> dict[str, Any]:
        """What sweep.json says; refused if this is no sweep."""
        self._contents = self._read()
        return self._contents

    def states(self) -> list[RunState]:
        """How every run is."""
        return [self.state(name) for name in self._contents["runs"]]

    def state(self, member_id: str) -> RunState:
        """How one run is, by its status and by what sweep.json says of it."""
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
        elif entry["failure"]:  # which is forgotten as soon as it is tried again
            state = FAILED
        else:
            state = DONE if status.get("state") == FINISHED else PENDING
        reason = entry["failure"] if state == FAILED else ""
        return RunState(*known, state, frames, to_play, speed, reason)

    def is_done(self, member_id: str) -> bool:
        """Whether a run is finished and its results are whole, line by line."""
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
        """Games, agents and seeds may be added to; what all runs share may not differ."""
        for name, value in here.items():
            if there.get(name) != value:
                differing = f"{name}: {there.get(name)!r} there, {value!r} here"
                raise ValueError(f"{self.path} holds another sweep ({differing})")

    def _holds_something_else(self) -> bool:
        # A sweep that was killed before its first word leaves its lock alone.
        return any(path.name != LOCK_FILE for path in self.path.iterdir())

    # One at a time.

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
    """The version of the package and a hash of its sources, which a version may share."""
    checksum = hashlib.sha256()
    root = Path(ezgreedy.__file__).parent
    for path in sorted(root.rglob("*.py")):
        checksum.update(str(path.relative_to(root)).encode("utf-8") + b"\0" + path.read_bytes())
    return f"{ezgreedy.__version__}+{checksum.hexdigest()[:12]}"


def is_full_disk(number: int | None) -> bool:
    """Whether an OSError of this number says that there is no room."""
    return number in (errno.ENOSPC, errno.EDQUOT)


def _question(sweep: Sweep, changes: Sequence[str]) -> dict[str, Any]:
    """What all runs of a sweep's directory share."""
    return {
        "sweep": sweep.name,
        "scale": sweep.scale,
        "frames": sweep.frames,
        "changes": list(changes),
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
    """What one run of a sweep stands for, whatever its settings."""
    return tuple(entry[name] for name in ("game", "agent", "variant", "seed"))


def _is_alive(status: dict[str, Any], results: Path) -> bool:
    """Whether the process that wrote a status is there; of another machine, its lock tells."""
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
    """Whether somebody is writing a file; where locks cannot be asked, it is believed."""
    try:
        with path.open() as file:
            # Shared, for readers; a run that begins just now is refused, and tries again.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
