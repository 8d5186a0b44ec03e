"""What did experiments and training runs find, and which experiments were not run?

Experiments come from OUT/ID/summary.json and the figures beside it, as `ezgreedy reproduce` writes
them; deep agents from the runs of `ezgreedy train` or from what `ezgreedy collect` kept of them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

from ezgreedy import requirements as require
from ezgreedy.experiments import registry
from ezgreedy.experiments.run_study import run_studies
from ezgreedy.findings.claims import Verdict
from ezgreedy.findings.finding import (
    SUMMARY_FILE,
    Finding,
    naming_the_summary,
    read_finding,
)
from ezgreedy.report.atlas import Atlas, atlas_from_json
from ezgreedy.report.deep import DeepStudy, read_deep_study
from ezgreedy.report.suite_scores import SuiteScores, suite_scores
from ezgreedy.results.runs import CONFIG_FILE, run_directories

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

_MOST_LISTED = 12
_CHAIN_LAWS, _DEEP_LAWS = "fig2-chain-durations", "deep-durations"


class Known(NamedTuple):
    """An experiment that can be run: its name, its title, and the command that runs it."""

    id: str
    title: str
    command: str


@dataclass(frozen=True)
class Study:
    """Everything that a report shows.

    Args:
        findings: findings of experiments, in the order of the paper.
        not_run: experiments without findings; empty if there are no findings at all.
        deep: results of deep agents; None without runs.
        suites: scores of deep agents over suites of games.
        departures: how each experiment differs from its default, in words by experiment id.
        atlases: what exploration alone finds, by experiment id; only one experiment has an atlas.
    """

    findings: Sequence[Finding]
    not_run: Sequence[Known]
    deep: DeepStudy | None = None
    suites: Sequence[SuiteScores] = ()
    departures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    atlases: Mapping[str, Atlas] = field(default_factory=dict)

    @property
    def counts(self) -> dict[Verdict, int]:
        """The number of claims with each verdict."""
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
    findings = {found[name]: read_finding(found[name]) for name in ids}
    return Study(
        list(findings.values()),
        [experiment for name, experiment in known.items() if found and name not in found],
        deep,
        suite_scores(deep.runs) if deep is not None else (),
        {finding.id: departures(finding) for finding in findings.values()},
        _atlases(findings),
    )


def _known() -> dict[str, Known]:
    """All experiments in the order of the paper; duration laws of deep agents after the chain's."""
    studies = {name: Known(name, s.title, s.command) for name, s in run_studies().items()}
    known: dict[str, Known] = {}
    for name, experiment in registry.experiments().items():
        known[name] = Known(name, experiment.title, experiment.command)
        if name == _CHAIN_LAWS:
            known[_DEEP_LAWS] = studies.pop(_DEEP_LAWS)
    return known | studies


def _experiments(source: Path) -> list[Path]:
    """The directories of experiments in a source."""
    if not source.is_dir():
        rule = "be a directory that `ezgreedy reproduce` made, or of runs"
        raise require.refuse("OUT", rule, str(source))
    if (source / SUMMARY_FILE).exists():
        raise ValueError(f"{source} holds a single experiment; give the directory that it is in")
    return [path.parent for path in sorted(source.glob(f"*/{SUMMARY_FILE}"))]


def _atlases(findings: Mapping[Path, Finding]) -> dict[str, Atlas]:
    """The atlas of every finding that has one, by the experiment's id."""
    atlases = {}
    for directory, finding in findings.items():
        with naming_the_summary(directory):
            atlas = atlas_from_json(finding.data)
        if atlas is not None:
            atlases[finding.id] = atlas
    return atlases


def departures(finding: Finding) -> list[str]:
    """How a run differs from the experiment's default, which follows the paper where it can."""
    experiment = registry.experiments().get(finding.id)
    if experiment is None:
        return []
    told = []
    if finding.seeds != experiment.num_seeds:
        told.append(f"seeds: {finding.seeds} instead of {experiment.num_seeds}")
    meant = json.loads(json.dumps(experiment.settings))
    for name, value in finding.settings.items():
        if name not in meant:
            told.append(f"{name}: {value}, a setting that the experiment no longer has")
        elif value != meant[name]:
            told.append(f"{name}: {_briefly(value)} instead of {_briefly(meant[name])}")
    return told


def _briefly(value: Any) -> Any:
    """A setting's value; a long list is shortened to its ends."""
    if not isinstance(value, list) or len(value) <= _MOST_LISTED:
        return value
    return f"{len(value)} values from {value[0]} to {value[-1]}"
