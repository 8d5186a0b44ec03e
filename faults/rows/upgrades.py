"""Row o: files of the format that was released, and of formats that this version does not know."""

import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ezgreedy.checkpoints import manifest
from ezgreedy.results.runs import read_run
from ezgreedy.results.store import read_json, write_json_atomically
from faults import base_runs
from faults.commands import require_sentence, told
from faults.matrix import Case, Failure, Row

FIXTURES = Path(__file__).parents[1] / "fixtures"
RESUMED, READ = "resume of released files", "report, evaluate and collect of released files"
NEWER, OLDER = "newer formats", "formats without what this one needs"


class Upgrades(Row):
    """Released files load; files of other formats get a sentence that says so."""

    letter = "o"
    title = "Upgrades"
    goal = "released runs load and go on; other formats are refused in a sentence"
    others = "checkpoints of pickles break with their classes; PyTorch promises nothing here"
    groups = (RESUMED, READ, NEWER, OLDER)
    quick = len(groups)
    full = 10 * len(groups)

    def prepare(self, place: Path) -> None:
        self._fixtures = []
        for archive in sorted(FIXTURES.glob("*.zip")):
            self._fixtures.append(place / archive.stem)
            shutil.unpack_archive(archive, self._fixtures[-1])

    def run(self, case: Case) -> dict[str, Any]:
        fixture = self._fixtures[case.number // len(self.groups) % len(self._fixtures)]
        run = shutil.copytree(fixture / "run", case.place / "run")
        checks = {RESUMED: self._resumed, READ: self._read, NEWER: self._newer, OLDER: self._older}
        return {"fixture": fixture.name, **checks[case.group](case, run, fixture)}

    def _resumed(self, case: Case, run: Path, fixture: Path) -> dict[str, Any]:
        before = (run / "results.jsonl").read_bytes()
        answer = told(["resume", str(run), *base_runs.RESUME])
        if answer.code != 0:
            raise Failure(f"does not go on: {answer.err[-300:]}")
        found = (run / "results.jsonl").read_bytes()
        if not found.startswith(before[: len(before) // 2]) or not read_run(run).is_finished:
            raise Failure("its results are not continued")
        made = json.loads((fixture / "made.json").read_text())
        is_same = made["torch"] == version("torch").split("+")[0]
        expected = (fixture / "results_end.jsonl").read_bytes()
        # Other builds of PyTorch may round differently; of the same one every byte counts.
        if is_same and found != expected:
            raise Failure("ends with other results than when it was released")
        return {"exact": int(is_same)}

    def _read(self, case: Case, run: Path, fixture: Path) -> dict[str, Any]:
        commands = (
            ["report", str(run), "--markdown", str(case.place / "page.md")],
            ["evaluate", str(run), "--frames", "8"],
            ["collect", str(run), "--out", str(case.place / "kept")],
        )
        for command in commands:
            answer = told(command)
            if answer.code != 0:
                raise Failure(f"{command[0]}: {answer.err[-300:]}")
        return {}

    def _newer(self, case: Case, run: Path, fixture: Path) -> dict[str, Any]:
        number = int(case.rng.integers(2, 100))
        if case.rng.random() < 0.5:
            _reseal(run, lambda contents: contents.update(version=number))
            name = manifest.META
        else:
            config = {**read_json(run / "config.json"), "format": number}
            write_json_atomically(run / "config.json", config, seals=True)
            name = "config.json"
        answer = told(["resume", str(run), "--quiet"])
        require_sentence(answer, name)
        if "ezgreedy" not in answer.err or str(number) not in answer.err:
            raise Failure(f"does not say which version is needed: {answer.err[-300:]}")
        return {"number": number}

    def _older(self, case: Case, run: Path, fixture: Path) -> dict[str, Any]:
        keys: list[str] = []

        def drop(contents: dict[str, Any]) -> None:
            state = contents["state"]["dict"]
            training = dict(state)["training"]["dict"]
            part = state if case.rng.random() < 0.3 else training
            chosen = int(case.rng.integers(len(part)))
            keys.append(str(part[chosen][0]))
            del part[chosen]

        _reseal(run, drop)
        answer = told(["resume", str(run), "--quiet"])
        require_sentence(answer, "checkpoint")
        return {"without": keys[0]}


def _reseal(run: Path, change: Any) -> None:
    """Change what all checkpoints say, so that there is no older one to fall back to."""
    for path in (run / "checkpoints").glob(f"checkpoint-*/{manifest.META}"):
        contents = json.loads(path.read_bytes())["contents"]
        change(contents)
        path.write_bytes(manifest.sealed(json.dumps(contents).encode()))


ROW = Upgrades()
