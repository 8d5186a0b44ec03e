"""What is in a directory, and in which state? Runs, sweeps, experiments or collections."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.experiments.runner import RETIRED, command_to_continue
from ezgreedy.findings.finding import SUMMARY_FILE, read_finding
from ezgreedy.inspection.found import Inspection, Problem, SetAside
from ezgreedy.packages import require_deep
from ezgreedy.results.runs import (
    COLLECTION_FILE,
    CONFIG_FILE,
    MANIFEST_FILE,
    RESULTS_FILE,
    STATUS_FILE,
    SWEEP_FILE,
    SWEEP_RUNS,
    read_run,
)
from ezgreedy.results.store import intact_part, read_json, write_json_atomically
from ezgreedy.runs.output_paths import EXPERIMENT_FILE, SET_ASIDE
from ezgreedy.sweeps.sweep_directory import LOCK_FILE, SweepDirectory
from ezgreedy.units import counted

_RUN_FILES = (CONFIG_FILE, STATUS_FILE, "checkpoints")
_EXPERIMENT_FILES = (EXPERIMENT_FILE, SUMMARY_FILE)


def inspect(path: Path) -> Inspection:
    """The state of what a directory is or holds; refuses one with nothing of this package."""
    found = _inspected(path)
    if found is None:
        rule = "be a run, a sweep, an experiment or a collection, or hold some of them"
        raise require.refuse("PATH", rule, str(path))
    return found


def _inspected(path: Path) -> Inspection | None:
    if not path.is_dir():
        return None
    if _has(path, SWEEP_FILE) or _has(path, LOCK_FILE):
        return _sweep(path)
    if _has(path, COLLECTION_FILE):
        return _collection(path)
    if _has(path, MANIFEST_FILE):
        return _collected(path)
    if any(_has(path, name) for name in _RUN_FILES):
        return _run(path)
    if any(_has(path, name) for name in _EXPERIMENT_FILES):
        return _experiment(path)
    inner = sorted(child for child in path.iterdir() if child.name != SET_ASIDE)
    parts = [part for part in map(_inspected, inner) if part is not None]
    return (
        Inspection(path, "directory", counted(len(parts), "part"), parts=parts) if parts else None
    )


def _run(path: Path) -> Inspection:
    # Checkpoints are read with what wrote them; the rest needs no more than the study.
    require_deep("check of a run")
    from ezgreedy.inspection.run_state import inspect_run

    return inspect_run(path)


def _has(path: Path, name: str) -> bool:
    return (path / name).exists() or (path / name).is_symlink()


def _sweep(path: Path) -> Inspection:
    place = SweepDirectory(path)
    runs = [child for child in sorted((path / SWEEP_RUNS).glob("*")) if child.is_dir()]
    parts = [part for part in map(_inspected, runs) if part is not None]
    planned: dict[str, Any] = {}
    problems, notes = [], []
    if not place.file.exists() and (path / SET_ASIDE).exists():
        notes = [f"{SWEEP_FILE} was set aside"]
    elif place.file.exists() or runs:  # a sweep killed at once leaves only its lock
        try:
            planned = place.read()["runs"]
        except (ValueError, OSError) as error:
            told = str(error) if place.file.exists() else "is missing"
            problems = [Problem(place.file, told, "set aside, for the sweep to make it anew")]
    done = [part for part in parts if ": finished" in part.state]
    state = f"{len(done)} of {max(len(planned), len(parts))} runs finished"
    next_step = "the command of the sweep continues its runs"
    return Inspection(path, "sweep", state, next_step, problems, notes, _mend_sweep, parts)


def _mend_sweep(aside: SetAside) -> None:
    (aside.directory / SET_ASIDE).mkdir(exist_ok=True)  # lets the sweep know that runs are its own
    aside.move(aside.directory / SWEEP_FILE)


def _collection(path: Path) -> Inspection:
    parts = [_collected(child) for child in sorted(path.iterdir()) if _has(child, CONFIG_FILE)]
    problems = []
    try:
        read_json(path / COLLECTION_FILE)
    except (ValueError, OSError) as error:
        problems = [Problem(path / COLLECTION_FILE, str(error), "written anew")]
    state = counted(len(parts), "run")
    return Inspection(path, "collection", state, "", problems, mend=_mark, parts=parts)


def _mark(aside: SetAside) -> None:
    path = aside.directory / COLLECTION_FILE
    aside.move(path)
    said = {"format": 1, "kind": "ezgreedy collection"}
    write_json_atomically(path, said, seals=True)


def _collected(path: Path) -> Inspection:
    """A collected run: without checkpoints, so that only its source can complete it."""
    again = "collect its run again"
    try:
        run = read_run(path)
    except (ValueError, OSError) as error:
        remedy = f"set aside; then {again}"
        problem = Problem(path, str(error), remedy)
        return Inspection(path, "collected run", "damaged", again, [problem], mend=_move_all)
    state = f"{run.agent} on {run.game}, seed {run.seed}: {run.frames:,} frames"
    notes = [f"not verified, of an earlier version: {', '.join(run.unverified)}"]
    return Inspection(path, "collected run", state, notes=notes if run.unverified else [])


def _move_all(aside: SetAside) -> None:
    """Sets a whole collected run aside, in its collection."""
    collection = SetAside(aside.directory.parent)
    collection.move(aside.directory)


def _experiment(path: Path) -> Inspection:
    problems: list[Problem] = []
    summary = None
    if _has(path, SUMMARY_FILE):
        try:
            summary = read_finding(path)
        except (ValueError, OSError) as error:
            problems.append(Problem(path / SUMMARY_FILE, str(error), "set aside, and made again"))
    identity = None
    if _has(path, EXPERIMENT_FILE):
        try:
            identity = read_json(path / EXPERIMENT_FILE)
        except (ValueError, OSError) as error:
            problems.append(Problem(path / EXPERIMENT_FILE, str(error), _all_or_summary(summary)))
    rows, damage = 0, None
    if _has(path, RESULTS_FILE):
        intact = intact_part(path / RESULTS_FILE)
        rows, damage = len(intact.records), intact.damage
    if damage:
        told = damage.removeprefix(f"{path / RESULTS_FILE}, ")
        remedy = f"the rows after {rows} are set aside, and made again"
        problems.append(Problem(path / RESULTS_FILE, told, remedy))
    if summary is not None and identity and _differ(summary.settings, identity.get("settings")):
        told = "differs from settings.json in its settings"
        problems.append(Problem(path / SUMMARY_FILE, told, "set aside, and made again"))
    state = f"{counted(rows, 'row')} of results" + (", concluded" if summary is not None else "")
    next_step = "" if summary and not problems else f"`{_continuing(path)}` continues it"
    return Inspection(path, "experiment", state, next_step, problems, mend=_mend_experiment)


def _continuing(path: Path) -> str:
    try:
        return command_to_continue(path)
    except (ValueError, OSError):  # settings.json is damaged or not there
        return f"ezgreedy reproduce {path.name} --resume --out {path.parent}"


def _differ(concluded: Mapping[str, Any], begun: Mapping[str, Any]) -> bool:
    return any(
        concluded.get(name) != begun.get(name)
        for name in concluded.keys() | begun.keys()
        if name not in RETIRED
    )


def _all_or_summary(summary: Any) -> str:
    return "set aside with its results" if summary is None else "written anew from the summary"


def _mend_experiment(aside: SetAside) -> None:
    """Keeps what is intact: settings, by the summary if need be, and rows before the damage."""
    path = aside.directory
    found = _experiment(path)
    damaged = {problem.path.name for problem in found.problems}
    settings, results = path / EXPERIMENT_FILE, path / RESULTS_FILE
    if EXPERIMENT_FILE in damaged:
        aside.move(settings)
        if SUMMARY_FILE in damaged or not _has(path, SUMMARY_FILE):
            aside.move(results)
        else:
            one = read_finding(path)
            said = {"id": one.id, "version": one.version, "settings": dict(one.settings)}
            said["command"] = one.command
            write_json_atomically(settings, said, seals=True)
    if RESULTS_FILE in damaged and _has(path, RESULTS_FILE):
        kept = results.read_bytes()[: intact_part(results).end]
        aside.move(results)
        results.write_bytes(kept)
    if damaged & {SUMMARY_FILE, RESULTS_FILE}:
        aside.move(path / SUMMARY_FILE)
