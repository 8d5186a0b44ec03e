"""Experiments whose seeds are training runs, judged as other experiments are.

A run takes minutes to days. `ezgreedy sweep` makes the runs and continues after every interruption;
`ezgreedy judge` judges them in a separate step. A study's conclusions are stored where those of
other experiments are, in the same form.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ezgreedy import __version__
from ezgreedy import requirements as require
from ezgreedy.findings.claims import Statement, Summary
from ezgreedy.findings.finding import Finding, write_finding
from ezgreedy.results.runs import Run, read_run, run_directories
from ezgreedy.runs.output_paths import require_apart
from ezgreedy.units import counted

# Each module defines STUDY.
_MODULES = ("deep.games", "deep.atari100k", "deep.durations", "beyond.minatar_stopping")


@dataclass(frozen=True)
class RunStudy:
    """A question for runs to answer.

    Args:
        id: name on the command line and of the directory.
        title: heading.
        shows: one line on what it shows.
        statements: sentences that it judges, with their criteria.
        criteria: numbers that decide verdicts, by name.
        commands: commands that make the runs.
        summarise: runs ↦ claims, tables and figure data; claims with missing runs are left out,
            and the summary says what is missing for them.
        draw: (summary, directory) ↦ the figure files written there.
        sample_sizes: summary ↦ the number of seeds of each condition that has any.
        condition: what such a condition is, in words.
    """

    id: str
    title: str
    shows: str
    statements: Sequence[Statement]
    criteria: Mapping[str, Any]
    commands: Sequence[str]
    summarise: Callable[[Sequence[Run]], Summary]
    draw: Callable[[Summary, Path], Sequence[Path]]
    sample_sizes: Callable[[Summary], Sequence[int]]
    condition: str

    @property
    def command(self) -> str:
        """The command that judges runs."""
        return f"ezgreedy judge {self.id}"

    def seeds_told(self, summary: Summary) -> str:
        """How many seeds the conditions have: `1 to 5 seeds of each agent and game`."""
        sizes = sorted(size for size in self.sample_sizes(summary) if size)
        if not sizes:
            return "no seed that counts"
        few, many = sizes[0], counted(sizes[-1], "seed")
        return f"{many if few == sizes[-1] else f'{few} to {many}'} of each {self.condition}"


@cache
def run_studies() -> dict[str, RunStudy]:
    """All studies by id."""
    modules = (importlib.import_module(f"ezgreedy.experiments.{name}") for name in _MODULES)
    return {module.STUDY.id: module.STUDY for module in modules}


def find(name: str) -> RunStudy:
    """The study with this id; an unknown id is refused with the nearest one."""
    known = run_studies()
    if name not in known:
        raise require.refuse_name("study", f"be one of {', '.join(known)}", name, known)
    return known[name]


def closest(counts: Mapping[str, int]) -> str:
    """Where there are the most seeds of too few: `closest: Freeway, 2`."""
    if not any(counts.values()):
        return "there is none"
    name = max(counts, key=lambda name: counts[name])
    return f"closest: {name}, {counts[name]}"


def judge(study: RunStudy, sources: Sequence[Path], out: Path) -> tuple[Summary, list[Run]]:
    """Judges runs, and writes summary.json and figures to OUT/ID.

    Args:
        study: the study to judge.
        sources: runs, sweeps, collections or directories of runs.
        out: the directory that holds the experiments' directories.

    Returns:
        The summary, and the distinct runs.
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
    finding = Finding(
        id=study.id,
        title=study.title,
        shows=study.shows,
        summary=summary,
        seeds=num_seeds,
        settings=study.criteria,
        version=__version__,
        command="; ".join([*study.commands, f"ezgreedy judge {study.id} DIR"]),
        seconds=None,
        figures=files,
    )
    write_finding(finding, directory)
    return summary, runs
