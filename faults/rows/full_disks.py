"""Row d: a disk that is full, may not be written to, or gives out at one write."""

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ezgreedy.runs.run_directory import RUNNING, RunDirectory
from ezgreedy.runs.run_loop import train
from faults import base_runs
from faults.commands import Forked, as_command, outcome, told
from faults.matrix import Case, Failure, Row

TMPFS, LARGEST_FILE = "full tmpfs", "largest file size"
MOST_BYTES = 3_000_000  # more than a whole run takes


class FullDisks(Row):
    """A run that finds no room says so, keeps what it had, and goes on when there is room."""

    letter = "d"
    title = "Full disks"
    goal = "a sentence with the path, no checkpoint or row lost, bit-exact after making room"
    others = 'torch.save in place destroys the old file; Ray #32481 ("should be handled") is open'
    groups = (TMPFS, LARGEST_FILE)
    quick = 8
    full = 2 * 50

    def prepare(self, place: Path) -> None:
        self._settings = base_runs.brief()
        self._whole = base_runs.whole(place / "whole", self._settings)

    def run(self, case: Case) -> dict[str, Any]:
        level = int(case.rng.integers(20_000, MOST_BYTES))
        directory = case.place / "disk" / "run"
        directory.parent.mkdir()
        if case.group == TMPFS:
            code = self._on_tmpfs(case, directory, level)
        else:
            code = self._limited(case, directory, level // 10)
        if code == 0:
            self._require_same(directory)
            return {"level": level, "was_full": 0}
        self._go_on(directory)
        return {"level": level, "was_full": 1}

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        return f"{sum(fact['was_full'] for fact in facts)} of {len(facts)} ran out of room"

    def _on_tmpfs(self, case: Case, directory: Path, level: int) -> int:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={level // 4096 * 4096}", "tmpfs"]
        place = directory.parent
        if subprocess.run([*mount, str(place)], capture_output=True, check=False).returncode:
            # Without the right to mount, the same limit on the size of files.
            return self._limited(case, directory, level // 10)
        try:
            ended = Forked(case.place, _train, directory, self._settings, None).ended()
            kept = case.place / "kept"
            shutil.copytree(place, kept)
        finally:
            subprocess.run(["umount", str(place)], check=True)
        shutil.rmtree(place)
        kept.rename(place)  # somebody has made room
        self._require_told(ended.code, ended.err, directory)
        return ended.code

    def _limited(self, case: Case, directory: Path, level: int) -> int:
        ended = Forked(case.place, _train, directory, self._settings, level).ended()
        self._require_told(ended.code, ended.err, directory)
        return ended.code

    def _require_told(self, code: int, said: str, directory: Path) -> None:
        if code == 0:
            return
        words = ("No space left", "File too large", "too large")
        if code != 2 or not any(word in said for word in words) or "None" in said:
            raise Failure(f"exit code {code}: {said[-300:]}")
        if str(directory.parent) not in said.replace("\n", ""):
            raise Failure(f"no path: {said[-300:]}")

    def _go_on(self, directory: Path) -> None:
        if not (directory / "config.json").exists():
            shutil.rmtree(directory, ignore_errors=True)
            train(directory, self._settings, base_runs.SELDOM)
        else:
            state = RunDirectory(directory).status().get("state")
            if state == RUNNING:
                # The status itself may have found no room; its process must then be gone.
                pid = int(RunDirectory(directory).status()["pid"])
                if os.path.exists(f"/proc/{pid}"):
                    raise Failure("its status says that it runs")
            answer = told(["resume", str(directory), *base_runs.RESUME])
            if answer.code != 0:
                raise Failure(f"does not go on: {answer.err[-300:]}")
        self._require_same(directory)

    def _require_same(self, directory: Path) -> None:
        if outcome(directory) != self._whole:
            raise Failure("does not end with the bits of a run that had room")


def _train(directory: Path, settings: Any, largest: int | None) -> int:
    """Train as the command line does, with errors of the system as sentences."""
    if largest is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    return as_command(train, directory, settings, base_runs.ALWAYS)


ROW = FullDisks()
