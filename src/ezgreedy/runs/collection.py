"""What is worth keeping of a run? Its settings, its scores and where they came from.

A collection is a directory with one small directory for each run: config.json as it was,
results.jsonl without the returns of single episodes, and manifest.json, which says how far the run
got, which code made it and how to repeat it. Collecting a run again adds new results and never
changes old ones; a run is never merged with one that has other settings.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from ezgreedy import requirements as require
from ezgreedy.agents.run_settings import RunSettings
from ezgreedy.results.runs import (
    COLLECTION_FILE,
    CONFIG_FILE,
    ENGINE_FILE,
    MANIFEST_FILE,
    RESULTS_FILE,
    SWEEP_FILE,
    SWEEP_RUNS,
    Run,
    read_config,
    read_mapping,
    read_run,
    run_directories,
    run_name,
)
from ezgreedy.results.store import ResultLog, read_results, write_json_atomically
from ezgreedy.runs.command_line import Spread, train_command
from ezgreedy.runs.output_paths import require_apart
from ezgreedy.runs.settings_codec import from_plain, with_later_settings

FORMAT = 1

# A million frames have thousands of episodes; curves and tables need only their means.
_LEFT_OUT = ("returns", "unfinished")
_PACKAGES = ("ezgreedy", "numpy", "torch", "ale-py", "minatar")


class Collected(NamedTuple):
    """One collected run."""

    run: Run  # as now in the collection
    num_new: int  # results that were not there before


def collect(sources: Sequence[Path], out: Path, commit: str | None = None) -> list[Collected]:
    """Copies the parts of runs that figures need; checks all runs before writing any.

    Args:
        sources: runs or directories of runs.
        out: the collection, created if there is none.
        commit: commit of the code that made the runs, if known; a commit already recorded for the
            same results is kept.
    """
    runs = _runs(sources)
    require_apart(out)
    _check_collection(out)
    plans = [(run, _new_records(run, out / run.path.name), _known(run, commit)) for run in runs]
    out.mkdir(parents=True, exist_ok=True)
    if not (out / COLLECTION_FILE).exists():
        said = {"format": FORMAT, "kind": "ezgreedy collection"}
        write_json_atomically(out / COLLECTION_FILE, said, seals=True)
    return [_write(run, out / run.path.name, new, known) for run, new, known in plans]


def _runs(sources: Sequence[Path]) -> list[Run]:
    found: dict[str, Run] = {}
    for source in sources:
        directories = run_directories(source)
        if not directories:
            rule = "be a run of ezgreedy train, or a directory of runs"
            raise require.refuse("RUN", rule, str(source))
        for directory in directories:
            name = directory.resolve().name
            run = read_run(directory.resolve())
            if name in found and found[name].path != run.path:
                raise ValueError(f"two runs are called {name}: {found[name].path} and {run.path}")
            found[name] = run
    return list(found.values())


def _check_collection(out: Path) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    rule = "be a new or an empty directory, or an earlier collection"
    if not (out / COLLECTION_FILE).is_file():
        raise require.refuse("--out", rule, str(out))
    found = read_mapping(out / COLLECTION_FILE).get("format")
    if found != FORMAT:
        raise ValueError(
            f"{out / COLLECTION_FILE} has format {found}, which needs another version of ezgreedy "
            f"(this one has format {FORMAT})"
        )


def _new_records(run: Run, target: Path) -> list[dict[str, Any]]:
    """Results of a run that its collected copy lacks; refused unless both start alike."""
    records = [
        {name: value for name, value in record.items() if name not in _LEFT_OUT}
        for record in _records(run.path)
    ]
    if not target.exists() or target.resolve() == run.path:
        return records if target.resolve() != run.path else []
    config = target / CONFIG_FILE
    if not config.exists() and any(target.iterdir()):
        raise ValueError(f"{target} holds something other than a collected run")
    if config.exists() and read_mapping(config) != read_mapping(run.path / CONFIG_FILE):
        raise ValueError(f"{target} holds a run with settings other than those of {run.path}")
    old = _records(target)
    shared = min(len(old), len(records))
    if old[:shared] != records[:shared]:
        raise ValueError(f"{target} and {run.path} have the same settings but other results")
    return records[shared:]


def _records(directory: Path) -> list[dict[str, Any]]:
    path = directory / RESULTS_FILE
    return read_results(path) if path.exists() else []


def _write(
    run: Run, target: Path, new: Sequence[Mapping[str, Any]], known: Mapping[str, Any]
) -> Collected:
    target.mkdir(exist_ok=True)
    config, is_sealed = read_config(run.path)
    if not (target / CONFIG_FILE).exists():
        write_json_atomically(target / CONFIG_FILE, config, seals=is_sealed)
    # In order: after a crash, the next call adds the rest of the results.
    name = run_name(run.settings) if is_sealed else None
    with ResultLog(target / RESULTS_FILE, run=name) as log:
        for record in new:
            log.append(record)
    path = target / MANIFEST_FILE
    before = read_mapping(path) if path.exists() else {}
    now = _manifest(read_run(target), before, known, has_news=bool(new))
    if now != before:
        write_json_atomically(path, now, seals=True)
    return Collected(read_run(target), len(new))


def _manifest(
    run: Run, before: Mapping[str, Any], known: Mapping[str, Any], *, has_news: bool
) -> dict[str, Any]:
    spread = known["spread"]
    # What was recorded with these results stays when they are collected again.
    noted = {} if has_news else before
    code = noted.get("code") or known["code"] or before.get("code")
    packages = {name: found for name in _PACKAGES if (found := _version(name)) is not None}
    return {
        "format": FORMAT,
        "run": run.path.name,
        "command": _command(run, spread),
        **({} if spread is None else {"processes": spread._asdict()}),
        "commit": noted.get("commit") or known["commit"] or before.get("commit"),
        **({"code": code} if code else {}),
        "ezgreedy": run.version,
        # A run does not record its packages; these are the collector's.
        "packages_when_collected": noted.get("packages_when_collected") or packages,
        "settings": run_name(run.settings),
        "rows": len(_records(run.path)),
        "frames": run.frames,
        "frames_to_play": run.frames_to_play,
        "is_finished": run.is_finished,
    }


def _known(run: Run, commit: str | None) -> dict[str, Any]:
    """Facts about a run beyond its results; for a collected run, those in its manifest."""
    return {
        "commit": run.manifest.get("commit") or commit,
        "code": _code(run.path) or run.manifest.get("code"),
        "spread": _spread(run.path),
    }


def _code(directory: Path) -> list[str]:
    """The code that a sweep recorded for one of its runs; empty for other runs."""
    path = directory.parent.parent / SWEEP_FILE
    if directory.parent.name != SWEEP_RUNS or not path.exists():
        return []
    try:
        code = read_mapping(path)["runs"].get(directory.name, {"code": []})["code"]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} does not say which code made its runs") from error
    return [str(each) for each in code]


def _spread(directory: Path) -> Spread | None:
    """How a run, collected or not, was spread over processes; None if it was not."""
    engine, manifest = directory / ENGINE_FILE, directory / MANIFEST_FILE
    if engine.exists():
        path, said = engine, read_mapping(engine)
    elif manifest.exists() and "processes" in (noted := read_mapping(manifest)):
        path, said = manifest, noted["processes"]
    else:
        return None
    try:
        spread = Spread(said["actors"], said["shards"])
        require.integer("actors", spread.actors, least=1)
        require.integer("shards", spread.shards, least=1)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not say how the run was spread: {error}") from error
    return spread


def _command(run: Run, spread: Spread | None) -> str | None:
    """The command of a run; None for settings of a later version, which cannot be read here.

    Also None if the game would first be imported from a module that the run names: to collect a
    stranger's run executes nothing.
    """
    module, colon, _ = run.game.rpartition("/")[2].partition(":")
    if colon and module not in sys.modules:
        return None
    try:
        settings = from_plain(with_later_settings(run.settings))
    except (ValueError, TypeError):
        return None
    return train_command(settings, spread) if isinstance(settings, RunSettings) else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
