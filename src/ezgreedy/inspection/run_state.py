"""What state is a run in, what is damaged, and what would `resume` do?

The last consistent state of a run is its newest intact checkpoint whose rows of results are all
there, or else its beginning: a run of the embedded engine that starts over ends with the same
bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ezgreedy
from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.fleet.ray_run_loop import SNAPSHOTS, write_engine
from ezgreedy.inspection.found import Inspection, Problem, SetAside
from ezgreedy.inspection.run_files import (
    RunFiles,
    Saved,
    Spread,
    differences,
    is_empty,
    is_locked,
    memories,
    read_files,
)
from ezgreedy.results.runs import CHANGEABLE, CONFIG_FORMAT, ENGINE_FILE, run_name
from ezgreedy.results.store import DRAFT_SUFFIX, write_json_atomically
from ezgreedy.runs.run_directory import FINISHED, PAUSED, RUNNING
from ezgreedy.units import counted

_SAVED = (RUNNING, PAUSED, FINISHED)  # states that are written after a checkpoint
_OLD_VERSION = "made before files had checksums: changes of"


def inspect_run(directory: Path) -> Inspection:
    """The state of a run in a directory; changes nothing."""
    if is_locked(directory / "results.jsonl"):
        state = "another process is working on it"
        return Inspection(directory, "run", state, "resume is refused while it does")
    return _Judged(read_files(directory)).inspection()


@dataclass
class _Judged:
    """The files of a run, and what follows from them."""

    files: RunFiles

    @property
    def target(self) -> Saved | None:
        """The newest checkpoint from which the run can continue; None for its beginning."""
        return self.files.target

    @property
    def spread(self) -> Spread | None:
        """How the run was spread over processes of Ray, by its newest checkpoint that knows."""
        known = [one.spread for one in self.files.saved if one.spread is not None]
        return known[-1] if known else None

    @property
    def is_finished(self) -> bool:
        target = self.target
        if target is None or target is not self.files.saved[-1]:
            return False
        return not target.has_replay or (self.files.status or {}).get("state") == FINISHED

    def inspection(self) -> Inspection:
        """All of it in words."""
        problems = self._problems()
        has_engine = not self._lacks_engine or self.spread is not None
        is_mendable = self.files.identity is not None and has_engine
        return Inspection(
            self.files.place.path,
            "run",
            self._state(),
            self._next_step(problems, is_mendable),
            problems,
            self._notes(),
            self._mend if is_mendable else None,
        )

    @property
    def _lacks_engine(self) -> bool:
        return self.files.place.path / ENGINE_FILE in self.files.others

    # In words.

    def _state(self) -> str:
        files, target = self.files, self.target
        if files.identity is None:
            return f"{counted(len(files.rows.records), 'row')}; its settings are lost"
        who = f"{files.identity['agent']['name']} on {files.identity['game']}"
        who += f", seed {files.identity['seed']}"
        frames = 0 if target is None else target.frames
        how = "finished" if self.is_finished else str((files.status or {}).get("state", "begun"))
        how = "stopped while running" if how == "running" else how
        rows = len(files.rows.records)
        return f"{who}: {how}, saved at {frames:,} frames, {counted(rows, 'row')} of results"

    def _next_step(self, problems: Sequence[Problem], is_mendable: bool) -> str:
        if problems and not is_mendable:
            return "resume is refused, and --repair can do nothing: restore the files from a copy"
        after = "after --repair, " if problems else ""
        if self.is_finished:
            return f"{after}resume has nothing left to do"
        if self.target is None:
            return f"{after}resume starts from the beginning"
        return f"{after}resume continues at {self.target.frames:,} frames"

    def _notes(self) -> list[str]:
        files = self.files
        notes = []
        unknown = [] if files.config.is_sealed else ["the settings"]
        unknown += [] if files.rows.names_run else ["the run of rows"]
        unknown += [] if files.counted is not None or not files.status else ["the number of rows"]
        if files.config.lacks:
            notes.append(files.config.lacks)
        if unknown:
            notes.append(f"{_OLD_VERSION} {', '.join(unknown)} would go unseen")
        path = files.place.path
        if self.target is not None and self.target.spread is not None:
            emptied = filter(is_empty, memories(files.place, self.target.spread.shards))
            notes += [f"{memory.name} begins empty" for memory in emptied]
        drafts = [*path.glob(f".*{DRAFT_SUFFIX}"), *files.place.checkpoints.glob(".tmp-*")]
        if drafts:
            notes.append(f"{len(drafts)} drafts of a process that was killed, which are ignored")
        return notes

    def _problems(self) -> list[Problem]:
        files, place = self.files, self.files.place
        found = [*self._config_problems(), *self._row_problems(), *self._missing()]
        for one in files.saved:
            path = place.checkpoints / f"checkpoint-{one.step:012d}"
            if one.damage:
                found.append(Problem(path, one.damage, "set aside"))
            elif one.offset > files.rows.end:
                lack = "needs rows of results that are not there"
                found.append(Problem(path, lack, "set aside"))
        for path, damage in files.others.items():
            remedy = "set aside"
            if path.parent.name == SNAPSHOTS:
                remedy = "set aside, and this memory begins empty"
            elif path.name == ENGINE_FILE:
                remedy = "written anew from a checkpoint, for this machine" if self.spread else ""
            found.append(Problem(path, damage, remedy))
        return found

    def _missing(self) -> list[Problem]:
        """Files that the others say have been there."""
        files, place = self.files, self.files.place
        if files.status is None:
            return []
        if not files.status:
            lost = Problem(place.status_file, "is missing", "written anew")
            return [lost] if files.rows.records or files.saved else []
        if any(one.damage for one in files.saved) or (place.path / ENGINE_FILE).exists():
            return []
        newest = max((one.frames for one in files.saved), default=0)
        was_saved = files.status["state"] in _SAVED and "reason" not in files.status
        if place.checkpoints.is_symlink() or not was_saved or files.status["frames"] <= newest:
            return []
        told = f"has lost the checkpoint at {files.status['frames']:,} frames"
        return [Problem(place.checkpoints, told, "later rows are set aside")]

    def _config_problems(self) -> list[Problem]:
        files, config = self.files, self.files.config
        if config.data is None:
            restored = "written anew from a checkpoint" if files.identity is not None else ""
            return [Problem(files.place.config, config.damage, restored)]
        if files.identity is None or run_name(config.data["settings"]) == files.name:
            return []
        lies = differences(files.identity, config.data["settings"])
        told = f"is of another run than the checkpoints, which differ in {lies}"
        return [Problem(files.place.config, told, "written anew from a checkpoint")]

    def _row_problems(self) -> list[Problem]:
        files, rows = self.files, self.files.rows
        path, kept = files.place.results, len(rows.records)
        if rows.damage:
            told = rows.damage.removeprefix(f"{path}, ").removeprefix(f"{path}: ")
        elif files.counted is not None and kept < files.counted:
            told = f"has lost rows: {kept} of {files.counted} are there"
        elif files.saved and not path.exists() and any(one.offset for one in files.saved):
            told = "is missing"
        else:
            return []
        return [Problem(path, told, f"the rows after {self._rows_kept()} are set aside")]

    def _rows_kept(self) -> int:
        data = self._row_bytes()
        return data.count(b"\n")

    def _row_bytes(self) -> bytes:
        """The rows that the last consistent state has."""
        path, target = self.files.place.results, self.target
        if target is None or not path.is_file():
            return b""
        return path.read_bytes()[: target.offset]

    # Mending.

    def _mend(self, aside: SetAside) -> None:
        files, place = self.files, self.files.place
        rows, is_set_back = self._row_bytes(), self._is_set_back
        self._mend_others(aside)
        if place.checkpoints.is_dir():
            self._move_checkpoints(aside)
        if is_set_back:  # later rows and the status are of a state that is no longer there
            aside.move(place.results)
            if rows:
                place.results.write_bytes(rows)
            aside.move(place.status_file)
        if self._config_problems() or place.config.is_symlink():
            config = self._restored_config()
            aside.move(place.config)
            # A run of an earlier version stays one, so that its rows stay alike.
            write_json_atomically(place.config, config, seals=files.rows.names_run)
        if not place.status_file.exists():
            self._write_status(rows.count(b"\n") if is_set_back else len(files.rows.records))

    def _mend_others(self, aside: SetAside) -> None:
        place = self.files.place
        for path in self.files.others:
            if path not in (place.config, place.results):
                aside.move(path)
        if self.spread is None:
            return
        for path in memories(place, self.spread.shards):
            if path in self.files.others:
                path.mkdir(parents=True)
        if self._lacks_engine:
            write_engine(place, FleetSettings(self.spread.actors, self.spread.shards))

    @property
    def _is_set_back(self) -> bool:
        """Whether the last consistent state is an earlier one than the run had."""
        files, place = self.files, self.files.place
        is_cut = bool(self._row_problems()) or place.results.is_symlink()
        is_lost = any(map(self._is_lost, files.saved)) or place.checkpoints in files.others
        return is_cut or is_lost or bool(self._missing())

    def _write_status(self, rows: int) -> None:
        target, frames = self.target, self._restored_config()["settings"]["frames"]
        details = {} if target is None or target.has_replay else {"has_replay": False}
        self.files.place.write_status(
            FINISHED if details else PAUSED,
            rows=rows,
            frames=0 if target is None else target.frames,
            frames_to_play=frames,
            **details,
        )

    def _is_lost(self, one: Saved) -> bool:
        return bool(one.damage) or one.offset > self.files.rows.end

    def _move_checkpoints(self, aside: SetAside) -> None:
        """Sets damaged checkpoints aside, with files that no other one needs."""
        files, place = self.files, self.files.place
        store = Checkpoints(place.checkpoints, files.identity or {}, free=CHANGEABLE)
        lost = [one.step for one in files.saved if self._is_lost(one)]
        kept = {path for one in files.saved if one.step not in lost for path in _files(store, one)}
        orphans = {path for one in files.saved for path in _files(store, one)} - kept
        for step in lost:
            aside.move(store.path_of(step))
        for path in orphans:
            aside.move(path)

    def _restored_config(self) -> dict[str, Any]:
        """config.json as it was, by what is still known of it."""
        said = self.files.config.data or {}
        newest = [one for one in self.files.saved if one.identity is not None]
        settings = newest[-1].identity if newest else self.files.identity
        if said and run_name(said["settings"]) == self.files.name:
            settings = said["settings"]
        elif (self.files.status or {}).get("frames_to_play"):  # it may have been extended
            settings = {**(settings or {}), "frames": (self.files.status or {})["frames_to_play"]}
        return {"format": CONFIG_FORMAT, "ezgreedy": ezgreedy.__version__, "settings": settings}


def _files(store: Checkpoints, one: Saved) -> set[Path]:
    return store.segments_of(one.step)
