"""What did experiments and training runs find, and which experiments were not run?

Experiments come from OUT/ID/summary.json and the figures beside it, as `ezgreedy reproduce` writes
them; deep agents from the runs of `ezgreedy train` or from what `ezgreedy collect` kept of them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

from ezgreedy import requirements as require
from ezgreedy.experiments import registry
from ezgreedy.experiments.run_study import run_studies
from ezgreedy.experiments.runner import command_to_continue
from ezgreedy.findings.claims import Claim, Statement
from ezgreedy.findings.finding import (
    SUMMARY_FILE,
    Finding,
    naming_the_summary,
    read_finding,
)
from ezgreedy.findings.judging import Verdict
from ezgreedy.findings.paper_inventory import ITEMS
from ezgreedy.report.atlas import Atlas, atlas_from_json
from ezgreedy.report.deep import DeepStudy, read_deep_study
from ezgreedy.report.fault_matrix import FAULTS_FILE, FaultMatrix, read_fault_matrix
from ezgreedy.report.suite_scores import LEAST_SHOWN, SuiteScores, suite_scores
from ezgreedy.results.runs import CONFIG_FILE, run_directories
from ezgreedy.runs.output_paths import EXPERIMENT_FILE, kind_of
from ezgreedy.units import counted

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

_MOST_LISTED = 12
_CHAIN_LAWS, _DEEP_LAWS = "fig2-chain-durations", "deep-durations"


class Known(NamedTuple):
    """An experiment that can be run: its name, its title, and the command that runs it."""

    id: str
    title: str
    command: str
    statements: Sequence[Statement] = ()


class Row(NamedTuple):
    """A statement in the table of all claims, judged or not.

    Args:
        statement: the sentence, its source and its criterion.
        experiment: id of the experiment that judges it.
        claim: what came out; None if it was not judged.
        place: number of the claim in its experiment's section, from 1; 0 if it was not judged.
        command: the command that would judge it; empty if it was judged.
        is_run: whether the experiment was run.
    """

    statement: Statement
    experiment: str
    claim: Claim | None
    place: int
    command: str
    is_run: bool

    @property
    def verdict(self) -> Verdict | None:
        """The claim's verdict; None if there is none."""
        return None if self.claim is None else self.claim.verdict

    @property
    def outcome(self) -> str:
        """The verdict, `no-verdict` or `not-run`: by this a reader chooses rows."""
        return "not-run" if self.claim is None else self.verdict or "no-verdict"


class Count(NamedTuple):
    """How many statements of one source have each verdict, no verdict, or were not judged."""

    verdicts: Mapping[Verdict, int]
    too_few_seeds: int
    not_judged: int

    @property
    def total(self) -> int:
        """The number of statements."""
        return sum(self.verdicts.values()) + self.too_few_seeds + self.not_judged

    def told(self, whose: str) -> str:
        """`Of the paper's 21 claims, 11 are reproduced, …`; README.md has these sentences."""
        words = [
            (self.verdicts["reproduced"], "is reproduced", "are reproduced"),
            (self.verdicts["reading-dependent"], "depends on the reading", "depend on the reading"),
            (self.verdicts["undecided"], "is undecided", "are undecided"),
            (self.verdicts["contradicted"], "is contradicted", "are contradicted"),
            (self.too_few_seeds, "has too few seeds", "have too few seeds"),
            (self.not_judged, "was not run", "were not run"),
        ]
        told = [f"{number} {one if number == 1 else many}" for number, one, many in words if number]
        listed = " and ".join([", ".join(told[:-1]), told[-1]]) if told[1:] else told[0]
        return f"Of {whose} {self.total} claims, {listed}."


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
        rows: every statement of every experiment; empty if there are no findings at all.
        directories: where each experiment's results are, by its id.
        faults: what faults were injected, and what came out; None without such a table.
    """

    findings: Sequence[Finding]
    not_run: Sequence[Known]
    deep: DeepStudy | None = None
    suites: Sequence[SuiteScores] = ()
    departures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    atlases: Mapping[str, Atlas] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    directories: Mapping[str, Path] = field(default_factory=dict)
    faults: FaultMatrix | None = None

    @property
    def quick(self) -> list[Finding]:
        """The findings of quick runs, which are no evidence."""
        return [finding for finding in self.findings if "--quick" in finding.command.split()]

    @property
    def papers(self) -> list[Row]:
        """The statements of the paper, those that were judged first."""
        return _judged_first(row for row in self.rows if not row.statement.is_ours)

    @property
    def ours(self) -> list[Row]:
        """The statements that are ours, those that were judged first."""
        return _judged_first(row for row in self.rows if row.statement.is_ours)

    def not_judged(self, finding: Finding) -> list[tuple[str, str]]:
        """The statements of an experiment that lack runs, and what is missing if it is known."""
        rows = [row for row in self.rows if row.experiment == finding.id and row.claim is None]
        sentences = [row.statement.claim for row in rows]
        return [(claim, finding.summary.missing.get(claim, "")) for claim in sentences]

    def is_of_runs(self, finding: Finding) -> bool:
        """Whether the seeds of an experiment are training runs, more of some agents than others."""
        return finding.id in run_studies()

    @property
    def sentences(self) -> list[str]:
        """What came out: a sentence each for the paper's claims, what else it has, and ours."""
        if not self.rows:
            return []
        not_run = sum(bool(item.not_run) for item in ITEMS)
        rest = (
            f"Of {len(ITEMS)} other figures, tables, definitions and sentences of the paper, "
            f"{len(ITEMS) - not_run} are held by tests and {not_run} were not run."
        )
        ours = [count(self.ours).told("our own")] if self.ours else []
        return [count(self.papers).told("the paper's"), rest, *ours]


def seeds_told(finding: Finding) -> str:
    """How many seeds are behind a finding: one number, or a range if its seeds are runs."""
    study = run_studies().get(finding.id)
    return counted(finding.seeds, "seed") if study is None else study.seeds_told(finding.summary)


def _judged_first(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.claim is None)


def count(rows: Sequence[Row]) -> Count:
    """How many of these statements have each verdict."""
    given = [row.verdict for row in rows]
    return Count(
        {verdict: given.count(verdict) for verdict in VERDICTS},
        sum(row.claim is not None and row.verdict is None for row in rows),
        sum(row.claim is None for row in rows),
    )


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
            raise ValueError(_nothing_in(source))
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
        suite_scores(deep.runs, LEAST_SHOWN) if deep is not None else (),
        {finding.id: departures(finding) for finding in findings.values()},
        _atlases(findings),
        _rows(known, {finding.id: finding for finding in findings.values()}),
        {name: found[name] for name in ids},
        _faults(sources),
    )


def holds_results(source: Path) -> bool:
    """Whether a directory holds summaries of experiments or runs."""
    return any(source.glob(f"*/{SUMMARY_FILE}")) or bool(run_directories(source))


def _nothing_in(source: Path) -> str:
    """Why a directory has nothing to report, and what to do."""
    begun = [path.parent for path in sorted(source.glob(f"*/{EXPERIMENT_FILE}"))]
    begun = [path for path in begun if kind_of(path) == "experiment"]
    if begun:
        names = ", ".join(path.name for path in begun)
        return f"{source} has no finished experiment ({names}); `{command_to_continue(begun[0])}`"
    return (
        f"{source} holds no summaries (*/{SUMMARY_FILE}) and no runs (*/{CONFIG_FILE}), nor any "
        "coverage (coverage.json or */coverage.json); `ezgreedy reproduce`, `ezgreedy train` or "
        "`ezgreedy coverage` makes them"
    )


def _faults(sources: Sequence[Path]) -> FaultMatrix | None:
    """The matrix of faults of the first source that has one."""
    files = [source / FAULTS_FILE for source in sources if (source / FAULTS_FILE).exists()]
    return read_fault_matrix(files[0]) if files else None


def _rows(known: Mapping[str, Known], findings: Mapping[str, Finding]) -> list[Row]:
    """All statements in the order of the experiments: those judged, then those that were not."""
    if not findings:
        return []
    rows: list[Row] = []
    for name in [*known, *(name for name in findings if name not in known)]:
        claims = findings[name].claims if name in findings else ()
        rows += [
            Row(claim.statement, name, claim, place, "", True)
            for place, claim in enumerate(claims, start=1)
        ]
        judged = {claim.claim for claim in claims}
        if name in known:
            rows += [
                Row(statement, name, None, 0, known[name].command, name in findings)
                for statement in known[name].statements
                if statement.claim not in judged
            ]
    return rows


def _known() -> dict[str, Known]:
    """All experiments in the order of the paper; duration laws of deep agents after the chain's."""
    studies = {
        name: Known(name, s.title, s.command, s.statements) for name, s in run_studies().items()
    }
    known: dict[str, Known] = {}
    for name, experiment in registry.experiments().items():
        known[name] = Known(name, experiment.title, experiment.command, experiment.statements)
        if name == _CHAIN_LAWS:
            known[_DEEP_LAWS] = studies.pop(_DEEP_LAWS)
    return known | studies


def _experiments(source: Path) -> list[Path]:
    """The directories of experiments in a source."""
    if not source.is_dir():
        rule = "be a directory that `ezgreedy reproduce` or `ezgreedy coverage` made, or of runs"
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
