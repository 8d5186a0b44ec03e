"""Row p: the power fails, and the disk holds only what it had to."""

from pathlib import Path
from typing import Any

from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import train
from faults import base_runs
from faults.commands import outcome, require_sentence, told
from faults.disk_model import DIRECTORIES, JOURNAL, Recorder, notes_before, rebuild
from faults.matrix import Case, Failure, Row


class PowerLoss(Row):
    """After a cut at any point there is the last checkpoint that was saved, or a later one."""

    letter = "p"
    title = "Power loss"
    goal = "the previous or the new checkpoint is whole, and resume ends with the same bits"
    others = "Orbax and Dopamine rename or mark what is complete; none replays recorded writes"
    groups = (JOURNAL, DIRECTORIES)
    quick = 2 * 10
    full = 2 * 200

    def prepare(self, place: Path) -> None:
        settings = base_runs.brief(frames=160)
        self._whole = base_runs.whole(place / "whole", settings)
        disk = place / "disk"
        disk.mkdir()
        recorder = Recorder(disk)
        save = Checkpoints.save

        def noting(self: Checkpoints, step: int, *more: Any, **named: Any) -> Path:
            path = save(self, step, *more, **named)
            recorder.note(str(step))
            return path

        Checkpoints.save = noting  # type: ignore[method-assign]
        try:
            with recorder.recording():
                train(disk / "run", settings, base_runs.ALWAYS)
        finally:
            Checkpoints.save = save  # type: ignore[method-assign]
        self._operations = recorder.operations
        if outcome(disk / "run") != self._whole:
            raise Failure("recording has changed the run")

    def run(self, case: Case) -> dict[str, Any]:
        rng = case.rng
        cut = int(rng.integers(1, len(self._operations) + 1))
        disk = case.place / "disk"
        rebuild(self._operations, cut, case.group, rng, disk)
        saved = max(map(int, notes_before(self._operations, cut)), default=0)
        found = self._found(disk / "run", saved)
        answer = told(["resume", str(disk / "run"), *base_runs.RESUME])
        if answer.code != 0 and saved == 0:
            require_sentence(answer)  # there was nothing to lose yet
        elif answer.code != 0:
            raise Failure(f"cut {cut}, {saved} saved: exit {answer.code}, {answer.err[-300:]}")
        elif outcome(disk / "run") != self._whole:
            raise Failure(f"cut {cut}, {saved} saved: resumed to other bits")
        return {"cut": cut, "saved": saved, "found": found}

    def _found(self, run: Path, saved: int) -> int:
        place = RunDirectory(run)
        if not place.config.exists():
            if saved:
                raise Failure(f"the run is gone after {saved} saves")
            return 0
        loaded = place.checkpoint_store().load()
        found = 0 if loaded is None else loaded.step
        if found not in (saved, saved + 1):
            raise Failure(f"checkpoint {found} found after {saved} saves")
        return found


ROW = PowerLoss()
