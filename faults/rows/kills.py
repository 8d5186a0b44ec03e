"""Row a: SIGKILL at any moment, and the run resumed as often as it takes."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.cli import main
from ezgreedy.runs.run_loop import train
from faults import base_runs
from faults.commands import Forked, Told, outcome, told
from faults.dying import die_at
from faults.matrix import Case, Failure, Row

STUDY = "small-scale study"
SHARE_INSIDE = 0.5
MOST_KILLS = 3
MOST_OPERATIONS = 300  # before a kill inside a save
MOST_SECONDS = 1.0  # before any other kill
_STUDY = (*base_runs.STUDY_COMMAND, "--jobs", "1", "--resume")
_OFTEN = ("--checkpoint-seconds", "0", "--checkpoint-share", "1", "--quiet", "--keep-replay")


class Kills(Row):
    """Killed and resumed, a run ends with the bytes of one that was not."""

    letter = "a"
    title = "kill -9, then resume"
    goal = "results.jsonl and every part of the last state identical to the bit"
    others = (
        "SB3, Dopamine, CleanRL and Acme do not resume exactly; RLlib's replay is empty after a "
        "restore; in-place saves are unreadable after 14 of 15 kills"
    )
    groups = (*base_runs.SETTINGS, STUDY)
    quick = 2 * len(groups)
    full = 52 * len(groups)  # with two kills each on average, a hundred in each group
    seconds = 3600.0

    def prepare(self, place: Path) -> None:
        self._place = place
        self._whole: dict[str, Any] = {}

    def run(self, case: Case) -> dict[str, Any]:
        if case.group not in self._whole:
            self._whole[case.group] = self._reference(case.group)
        rng = case.rng
        directory = case.place / "run"
        marker = case.place / "marker"
        kills = inside = 0
        for _ in range(int(rng.integers(1, MOST_KILLS + 1))):
            number = int(rng.integers(MOST_OPERATIONS)) if rng.random() < SHARE_INSIDE else None
            delay, torn = rng.uniform(0.0, MOST_SECONDS), float(rng.random())
            process = Forked(case.place, _go, case.group, directory, marker, number, torn)
            if number is None:
                self._kill_later(process, directory, delay)
            ended = process.ended()
            if ended.code == 0:
                break
            if ended.code != -9:
                raise Failure(f"exit code {ended.code} before it was killed: {ended.err[-300:]}")
            kills += 1
            inside += marker.exists() or any(directory.glob("checkpoints/.tmp*"))
            marker.unlink(missing_ok=True)
        self._check(case, directory)
        return {"trials": kills, "inside": inside}

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        kills, inside = (sum(fact[name] for fact in facts) for name in ("trials", "inside"))
        return f"{inside} of {kills} within a save" if kills else ""

    def _reference(self, group: str) -> Any:
        directory = self._place / group.replace(" ", "-")
        if group != STUDY:
            return base_runs.whole(directory, base_runs.of_group(group))
        _require_finished(told([*_STUDY, "--out", str(directory)]))
        return base_runs.study_results(directory)

    def _kill_later(self, process: Forked, directory: Path, delay: float) -> None:
        signs = ("status.json", base_runs.STUDY)
        while process.is_alive and not any((directory / name).exists() for name in signs):
            time.sleep(0.005)
        time.sleep(delay)
        process.kill()

    def _check(self, case: Case, directory: Path) -> None:
        if case.group == STUDY:
            _require_finished(told([*_STUDY, "--out", str(directory)]))
            found = base_runs.study_results(directory)
        else:
            _require_finished(_resumed(directory, case.group))
            found = outcome(directory)
        if found != self._whole[case.group]:
            raise Failure("the resumed run differs from the uninterrupted one")


def _go(group: str, directory: Path, marker: Path, number: int | None, torn: float) -> int:
    """Begin or continue, in this process."""
    if number is not None:
        # What other files are opened for belongs to no save.
        place = directory if group == STUDY else directory / "checkpoints"
        die_at(number, place, marker, torn)
    if group == STUDY:
        return main([*_STUDY, "--out", str(directory)])
    if (directory / "config.json").exists():
        return main(["resume", str(directory), *_OFTEN])
    settings: RunSettings = base_runs.of_group(group)
    return train(directory, settings, base_runs.ALWAYS)


def _resumed(directory: Path, group: str) -> Told:
    if not (directory / "config.json").exists():  # killed before it began
        if directory.exists() and any(os.scandir(directory)):
            raise Failure("a run without config.json is left behind")
        code = train(directory, base_runs.of_group(group), base_runs.SELDOM)
        return Told(code, "", "")
    return told(["resume", str(directory), *base_runs.RESUME])


def _require_finished(answer: Told) -> None:
    if answer.code != 0:
        raise Failure(f"does not finish, exit code {answer.code}: {answer.err[-300:]}")


ROW = Kills()
