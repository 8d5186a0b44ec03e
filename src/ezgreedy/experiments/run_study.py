"""Experiments whose seeds are training runs: what runs say, judged as other experiments are.

A run takes minutes to days, so runs are made by `ezgreedy sweep`, which continues after every
interruption, and judged apart from that by `ezgreedy judge`. What a study concludes stands where
that of other experiments does, and in the same form.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ezgreedy import __version__
from ezgreedy import requirements as require
from ezgreedy.atari.games import near
from ezgreedy.experiments.experiment import Summary
from ezgreedy.experiments.runner import SUMMARY_FILE
from ezgreedy.results.runs import Run, read_run, run_directories
from ezgreedy.results.store import write_json_atomically
from ezgreedy.running.enclosure import require_apart

# Each module defines STUDY.
_MODULES = ("atari100k", "deep_durations")


@dataclass(frozen=True)
class RunStudy:
    """A question to runs.

    Args:
        id: its name on the command line and of its directory.
        title: what it is.
        shows: one line on what there is to see.
        criteria: what turns numbers into verdicts, by name.
        commands: what makes the runs.
        summarise: runs ↦ claims, tables and figure data; a claim whose runs are not all there is
            left out.
        draw: (summary, directory) ↦ the figure files written there.
    """

    id: str
    title: str
    shows: str
    criteria: Mapping[str, Any]
    commands: Sequence[str]
    summarise: Callable[[Sequence[Run]], Summary]
    draw: Callable[[Summary, Path], Sequence[Path]]

    @property
    def command(self) -> str:
        """What judges runs."""
        return f"ezgreedy judge {self.id}"


@cache
def run_studies() -> dict[str, RunStudy]:
    """All of them by id."""
    modules = (importlib.import_module(f"ezgreedy.experiments.{name}") for name in _MODULES)
    return {module.STUDY.id: module.STUDY for module in modules}


def find(name: str) -> RunStudy:
    """The study of that id; an unknown one is refused with the nearest."""
    known = run_studies()
    if name not in known:
        rule = f"be one of {', '.join(known)}{near(name, list(known))}"
        raise require.refuse("study", rule, name)
    return known[name]


def judge(study: RunStudy, sources: Sequence[Path], out: Path) -> tuple[Summary, int]:
    """Writes what runs say to OUT/ID: summary.json and figures.

    Args:
        study: which.
        sources: runs, sweeps, collections or directories of runs.
        out: the directory that holds the experiments' directories.

    Returns:
        The summary, and how many runs it used.
    """
    directories = [path for source in sources for path in run_directories(source)]
    if not directories:
        rule = "be a run of ezgreedy train, or hold runs"
        raise require.refuse("RUN", rule, ", ".join(map(str, sources)))
    unique = {run.identity() + str(run.frames_to_play): run for run in map(read_run, directories)}
    runs = list(unique.values())
    directory = out / study.id
    require_apart(directory)
    summary = study.summarise(runs)
    directory.mkdir(parents=True, exist_ok=True)
    files = study.draw(summary, directory)
    num_seeds = max((run.seed for run in runs), default=0) + 1
    write_json_atomically(
        directory / SUMMARY_FILE,
        {
            "id": study.id,
            "title": study.title,
            "shows": study.shows,
            "claims": [claim.as_json() for claim in summary.claims],
            "tables": [table.as_json() for table in summary.tables],
            "seeds": num_seeds,
            "settings": dict(study.criteria),
            "version": __version__,
            "command": "; ".join([*study.commands, f"ezgreedy judge {study.id} DIR"]),
            "seconds": None,
            "figures": [file.name for file in files],
            "data": dict(summary.data),
        },
    )
    return summary, len(runs)
