"""What did the experiments and runs of some directories find, and which were not run?

Experiments come from OUT/ID/summary.json and the figures beside it, as `ezgreedy reproduce` leaves
them; deep agents from the runs of `ezgreedy train` or from what `ezgreedy collect` kept of them. A
file that is damaged is refused by its name rather than left out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from ezgreedy import requirements as require
from ezgreedy.experiments import interactive, registry
from ezgreedy.experiments.experiment import Claim, Experiment, Table, Verdict
from ezgreedy.experiments.run_study import RunStudy, run_studies
from ezgreedy.experiments.runner import SUMMARY_FILE
from ezgreedy.report.atlas import Atlas, atlas_from_json
from ezgreedy.report.deep import DeepStudy, read_deep_study
from ezgreedy.report.suite_scores import SuiteScores, suite_scores
from ezgreedy.results.runs import CONFIG_FILE, run_directories

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

_MOST_LISTED = 12
_CHAIN_LAWS, _DEEP_LAWS = "fig2-chain-durations", "deep-durations"


@dataclass(frozen=True)
class Finding:
    """One concluded experiment, as its summary tells it.

    Args:
        id: of the experiment; also the name of its directory and of its section.
        title: what it is in the paper.
        shows: one line on what there is to see; empty if the summary does not say.
        claims: with verdicts and numbers.
        seeds: how many.
        settings: all of them.
        version: of the package that ran it.
        command: what to type to get the same numbers.
        seconds: of computing; None if that is not known.
        figures: files, one for each figure.
        blocks: what a reader can play with.
        departures: how the run differs from the experiment as it is meant, in words.
        atlas: of what exploration alone finds; None for all experiments but one.
        tables: numbers to look up.
    """

    id: str
    title: str
    shows: str
    claims: Sequence[Claim]
    seeds: int
    settings: Mapping[str, Any]
    version: str
    command: str
    seconds: float | None
    figures: Sequence[Path]
    blocks: Sequence[Mapping[str, Any]]
    departures: Sequence[str]
    atlas: Atlas | None = None
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Study:
    """What there is to tell.

    Args:
        findings: of experiments, in the order of the paper.
        not_run: the experiments that have none; empty if no experiment was asked for.
        deep: what the deep agents learned; None without runs.
        suites: their scores over suites of games.
    """

    findings: Sequence[Finding]
    not_run: Sequence[Experiment | RunStudy]
    deep: DeepStudy | None = None
    suites: Sequence[SuiteScores] = ()

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many claims have each verdict."""
        given = [claim.verdict for finding in self.findings for claim in finding.claims]
        return {verdict: given.count(verdict) for verdict in VERDICTS}


def read_study(*sources: Path) -> Study:
    """Reads all summaries and runs; every directory must hold at least one.

    Args:
        sources: directories that `ezgreedy reproduce`, `ezgreedy train` or `ezgreedy collect`
            made, or that hold runs; at least one, in any mix.
    """
    found: dict[str, Path] = {}
    with_runs: list[Path] = []
    for source in sources:
        directories = _experiments(source)
        has_runs = bool(run_directories(source))
        if not directories and not has_runs:
            raise ValueError(
                f"{source} holds no summaries (*/{SUMMARY_FILE}) and no runs (*/{CONFIG_FILE}); "
                f"`ezgreedy reproduce --out {source}` or `ezgreedy train` makes them"
            )
        for directory in directories:
            if directory.name in found and found[directory.name].resolve() != directory.resolve():
                where = f"{found[directory.name]} and {directory}"
                raise ValueError(f"{directory.name} is there twice: {where}")
            found[directory.name] = directory
        with_runs += [source] if has_runs else []
    known = _known()
    ids = [name for name in known if name in found] + [name for name in found if name not in known]
    deep = read_deep_study(with_runs) if with_runs else None
    return Study(
        [read_finding(found[name]) for name in ids],
        [experiment for name, experiment in known.items() if found and name not in found],
        deep,
        suite_scores(deep.runs) if deep is not None else (),
    )


def _known() -> dict[str, Experiment | RunStudy]:
    """Everything that can be judged, in the order of the paper; laws of deep agents beside ours."""
    known: dict[str, Experiment | RunStudy] = {}
    studies: dict[str, RunStudy] = dict(run_studies())
    for name, experiment in registry.experiments().items():
        known[name] = experiment
        if name == _CHAIN_LAWS:
            known[_DEEP_LAWS] = studies.pop(_DEEP_LAWS)
    return known | studies


def _experiments(source: Path) -> list[Path]:
    """The directories of experiments in one that was named."""
    if not source.is_dir():
        rule = "be a directory that `ezgreedy reproduce` made, or of runs"
        raise require.refuse("OUT", rule, str(source))
    if (source / SUMMARY_FILE).exists():
        raise ValueError(f"{source} holds a single experiment; give the directory that it is in")
    return [path.parent for path in sorted(source.glob(f"*/{SUMMARY_FILE}"))]


def read_finding(directory: Path) -> Finding:
    """Reads the summary of one experiment, with the figures that it names."""
    path = directory / SUMMARY_FILE
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        finding = _finding(summary, directory)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ValueError(f"{path} is not the summary of an experiment: {reason}") from error
    if finding.id != directory.name:
        raise ValueError(f"{path} is the summary of another experiment, {finding.id!r}")
    for figure in finding.figures:
        if not figure.is_file():
            raise ValueError(f"{path} names a figure that is not there: {figure.name}")
    return finding


def _finding(summary: Mapping[str, Any], directory: Path) -> Finding:
    return Finding(
        id=_words(summary, "id"),
        title=_words(summary, "title"),
        shows=summary.get("shows", ""),
        claims=[Claim.from_json(entry) for entry in summary["claims"]],
        seeds=require.integer("seeds", summary["seeds"], least=1),
        settings=dict(summary["settings"]),
        version=_words(summary, "version"),
        command=_words(summary, "command"),
        seconds=_seconds(summary["seconds"]),
        figures=_one_file_each([directory / name for name in summary["figures"]]),
        blocks=[
            interactive.block_from_json(block) for block in summary["data"].get(interactive.KEY, ())
        ],
        tables=[Table.from_json(table) for table in summary.get("tables", ())],
        departures=_departures(summary),
        atlas=atlas_from_json(summary["data"]),
    )


def _seconds(seconds: Any) -> float | None:
    return None if seconds is None else require.number("seconds", seconds, least=0.0)


def _words(summary: Mapping[str, Any], name: str) -> str:
    if not isinstance(summary[name], str):
        raise require.refuse_type(name, "be words", summary[name])
    return str(summary[name])


def _one_file_each(figures: Sequence[Path]) -> list[Path]:
    """Of the formats in which a figure was saved, the one that stays sharp."""
    chosen: dict[Path, Path] = {}
    for path in figures:
        stem = path.with_suffix("")
        if stem not in chosen or path.suffix == ".svg":
            chosen[stem] = path
    return list(chosen.values())


def _departures(summary: Mapping[str, Any]) -> list[str]:
    """Where a run is not the experiment's default, which is the paper's as far as it says."""
    experiment = registry.experiments().get(summary["id"])
    if experiment is None:
        return []
    told = []
    if summary["seeds"] != experiment.num_seeds:
        told.append(f"seeds: {summary['seeds']} instead of {experiment.num_seeds}")
    meant = json.loads(json.dumps(experiment.settings))
    for name, value in summary["settings"].items():
        if name not in meant:
            told.append(f"{name}: {value}, a setting that the experiment no longer has")
        elif value != meant[name]:
            told.append(f"{name}: {_briefly(value)} instead of {_briefly(meant[name])}")
    return told


def _briefly(value: Any) -> Any:
    """A setting's value; of a long list its ends."""
    if not isinstance(value, list) or len(value) <= _MOST_LISTED:
        return value
    return f"{len(value)} values from {value[0]} to {value[-1]}"
