"""Row c: files that a disk, a hand or a crash has changed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ezgreedy.checkpoints import manifest
from ezgreedy.results.store import read_json, write_json_atomically
from faults import base_runs
from faults.commands import outcome, require_sentence, told
from faults.matrix import Case, Failure, Row
from support import damage

CHECKPOINT_FILES = ("arrays.safetensors", "meta.json", "rows of the replay")
RESUMED = (*CHECKPOINT_FILES, "results.jsonl", "config.json", "status.json")
REPORTED = ("results.jsonl in report", "config.json in report")


class DamagedFiles(Row):
    """A changed file is noticed by name, or what comes out is the same to the bit."""

    letter = "c"
    title = "Damaged files"
    goal = "0 silent: fallback to the checkpoint before, or exit 2 with the file and the reason"
    others = (
        "one flipped bit loads silently wrong in 296 of 300 (torch.load), 299 of 300 "
        "(safetensors), 300 of 300 (pickle)"
    )
    groups = (*RESUMED, *REPORTED)
    quick = 30 * len(groups)
    full = 1000 * len(groups)

    def prepare(self, place: Path) -> None:
        settings = base_runs.brief()
        self._whole = base_runs.whole(place / "whole", settings)
        self._base = place / "base"
        base_runs.paused(self._base, settings, settings.frames - 24)
        # Another run, and this one at an earlier time: sources of files that are intact elsewhere.
        self._other = place / "other"
        base_runs.paused(self._other, base_runs.brief(seed=5), settings.frames - 60)
        # Pages name the directories of runs, so this copy has the name that cases have.
        intact = shutil.copytree(self._base, place / "intact" / "run")
        self._page = self._report(intact, place / "page.md")

    def run(self, case: Case) -> dict[str, Any]:
        run = shutil.copytree(self._base, case.place / "run")
        target = self._target(run, case.group)
        before = target.read_bytes()
        kind = self._damage(target, case)
        is_same = target.is_file() and not target.is_symlink() and target.read_bytes() == before
        if case.group in REPORTED:
            self._check_report(run, target, case.place / "page.md")
        else:
            self._check_resume(run, target)
        return {"damage": kind, "changes_nothing": is_same}

    def _damage(self, target: Path, case: Case) -> str:
        rng = case.rng
        kinds: dict[str, Callable[[], None]] = {
            "bit": lambda: _flip(target, rng),
            "bits": lambda: [_flip(target, rng) for _ in range(8)] and None,
            "byte": lambda: _set_byte(target, rng),
            "cut": lambda: damage.truncate(target, int(rng.integers(_size(target)))),
            "longer": lambda: damage.extend(target, rng.bytes(int(rng.integers(1, 100)))),
            "zeroed block": lambda: damage.zero_block(target, int(rng.integers(_size(target)))),
            "empty": lambda: damage.empty(target),
            "deleted": target.unlink,
            "swapped": lambda: damage.replaced_by(target, self._target(self._other, case.group)),
            "lost line": lambda: _drop_line(target, rng),
            "doubled line": lambda: _double_line(target, rng),
            "other version": lambda: _other_version(target, rng),
            "directory": lambda: damage.become_directory(target),
            "pipe": lambda: damage.become_pipe(target),
        }
        # Half of all are single bits, the hardest to see.
        kind = "bit" if rng.random() < 0.5 else str(rng.choice(list(kinds)))
        kinds[kind]()
        return kind

    def _target(self, run: Path, group: str) -> Path:
        newest = max((run / "checkpoints").glob("checkpoint-*"))
        if group == "rows of the replay":
            contents = json.loads((newest / manifest.META).read_bytes())["contents"]
            names = [name for name in contents["files"] if name.endswith(".rows")]
            return run / "checkpoints" / "segments" / sorted(names)[-1]
        if group in CHECKPOINT_FILES:
            return newest / group
        return run / group.split()[0]

    def _check_resume(self, run: Path, target: Path) -> None:
        answer = told(["resume", str(run), *base_runs.RESUME])
        if answer.code != 0:
            require_sentence(answer, target.name, run.name)
        elif outcome(run) != self._whole:
            raise Failure(f"silent: resumed to other numbers, and said {answer.err[-200:]!r}")

    def _check_report(self, run: Path, target: Path, page: Path) -> None:
        answer = told(["report", str(run), "--markdown", str(page)])
        if answer.code != 0:
            require_sentence(answer, target.name, run.name)
        elif page.read_text() != self._page and target.name not in answer.err:
            raise Failure("silent: report shows other numbers without a word")

    def _report(self, run: Path, page: Path) -> str:
        answer = told(["report", str(run), "--markdown", str(page)])
        if answer.code:
            raise Failure(f"the intact run cannot be reported: {answer.err}")
        return page.read_text()


def _size(path: Path) -> int:
    return max(path.stat().st_size, 1)


def _flip(path: Path, rng: np.random.Generator) -> None:
    damage.flip(path, int(rng.integers(_size(path))), int(rng.integers(8)))


def _set_byte(path: Path, rng: np.random.Generator) -> None:
    data = bytearray(path.read_bytes())
    data[rng.integers(len(data))] = rng.integers(256)
    path.write_bytes(data)


def _drop_line(path: Path, rng: np.random.Generator) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[rng.integers(len(lines))]
    path.write_bytes(b"".join(lines))


def _double_line(path: Path, rng: np.random.Generator) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    chosen = int(rng.integers(len(lines)))
    path.write_bytes(b"".join([*lines[: chosen + 1], *lines[chosen:]]))


def _other_version(path: Path, rng: np.random.Generator) -> None:
    """The file as another version would have written it: sealed anew where files are sealed."""
    number = int(rng.integers(2, 1000))
    if path.name == manifest.META:
        contents = json.loads(path.read_bytes())["contents"]
        contents["version"] = number
        path.write_bytes(manifest.sealed(json.dumps(contents).encode()))
    elif path.name == "config.json":
        write_json_atomically(path, {**read_json(path), "format": number}, seals=True)
    else:
        _flip(path, rng)


ROW = DamagedFiles()
