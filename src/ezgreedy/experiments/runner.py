"""How is an experiment run, continued and concluded?

Every experiment has a directory: `settings.json` says what is run, `results.jsonl` gains a line for
every finished job, and once all jobs are done, `summary.json` and the figures are made from them. A
run that is interrupted or fails keeps its finished jobs; its summary is written only when it is
complete. Nothing is written before all directories have been checked, and only an experiment's
conclusions are ever overwritten.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ezgreedy import __version__
from ezgreedy import requirements as require
from ezgreedy.experiments.experiment import Cell, Experiment, Record, Scale, Settings
from ezgreedy.experiments.workers import Job, Outcome, WorkerDied, Workers
from ezgreedy.findings.claims import Number, Summary, Table
from ezgreedy.findings.finding import Finding, write_finding
from ezgreedy.named_settings import with_changes
from ezgreedy.results.store import (
    DRAFT_SUFFIX,
    ResultLog,
    read_json,
    read_results,
    write_json_atomically,
)
from ezgreedy.runs.output_paths import EXPERIMENT_FILE, require_apart
from ezgreedy.runs.progress_bar import ProgressBar

SETTINGS_FILE = EXPERIMENT_FILE
RESULTS_FILE = "results.jsonl"

_FAILURES_TOLD = 10
_NUMBERS_COMPARED = 3  # of a claim that does not name its key numbers

# Settings of earlier results that no job ever depended on.
RETIRED = ("bootstrap_seed",)


@dataclass(frozen=True)
class Plan:
    """The user's request.

    Args:
        out: the directory that holds the experiments' directories.
        scale: quick, the paper's, thorough, or full.
        num_seeds: number of seeds of every experiment; each experiment's own number if None.
        num_processes: number of jobs that run at once.
        resumes: whether to continue what `out` already holds.
        changes: settings that differ from the scale's, each as NAME=VALUE.
    """

    out: Path
    scale: Scale = "paper"
    num_seeds: int | None = None
    num_processes: int = 1
    resumes: bool = False
    changes: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.num_seeds is not None:
            require.integer("--seeds", self.num_seeds, least=1)
        require.integer("--jobs", self.num_processes, least=1, most=1024)


@dataclass(frozen=True)
class PlannedRun:
    """One experiment of a plan, and its progress."""

    experiment: Experiment
    settings: Settings
    cells: Sequence[Cell]
    num_seeds: int
    directory: Path
    command: str
    finished: frozenset[tuple[str, int]]

    @property
    def identity(self) -> dict[str, Any]:
        """What must not change between the first job and the last, as stored in settings.json."""
        return {
            "id": self.experiment.id,
            "version": __version__,
            "settings": json.loads(json.dumps(self.settings, allow_nan=False)),
        }

    @property
    def jobs(self) -> list[Job]:
        """The jobs left to run, seed by seed, so that an interruption leaves whole seeds."""
        return [
            Job(self.experiment.run_seed, cell.name, {**self.settings, **cell.settings}, seed)
            for seed in range(self.num_seeds)
            for cell in self.cells
            if (cell.name, seed) not in self.finished
        ]


def reproduce(experiments: Sequence[Experiment], plan: Plan) -> int:
    """Runs experiments one after the other; returns the exit code.

    0 if all were concluded, 1 if a job failed, 130 if the user stopped it. An experiment that
    cannot start (foreign directory, damaged results, other settings) raises ValueError.
    """
    runs = [prepared(experiment, plan) for experiment in experiments]
    is_whole = True
    with ProgressBar("jobs done") as report:
        try:
            with Workers(plan.num_processes) as workers:
                for run in runs:
                    is_whole &= _carried_out(run, workers, report)
        except KeyboardInterrupt:
            report.say("stopped; finished jobs are kept: the same command with --resume continues")
            return 130
        except WorkerDied as error:
            report.say(f"{error}; finished jobs are kept: the same command with --resume continues")
            return 1
        if is_whole and plan.scale == "quick":
            report.say("a quick look: small settings and few seeds are no evidence")
        if is_whole:
            report.say(f"next: ezgreedy report {shlex.quote(str(plan.out))}")
    return 0 if is_whole else 1


def prepared(experiment: Experiment, plan: Plan) -> PlannedRun:
    """Checks that an experiment can start or continue as planned; writes nothing."""
    experiment.check_installed()
    settings = experiment.settings_at(plan.scale)
    settings = with_changes(settings, plan.changes, {}, experiment.id)
    run = PlannedRun(
        experiment=experiment,
        settings=settings,
        cells=experiment.cells(settings),
        num_seeds=plan.num_seeds or experiment.num_seeds_at(plan.scale),
        directory=plan.out / experiment.id,
        command=_command(experiment, plan),
        finished=frozenset(),
    )
    _check_directories(run, plan)
    results = run.directory / RESULTS_FILE
    stored = read_results(results) if results.exists() else []
    if stored and not plan.resumes:
        raise ValueError(
            f"{run.directory} already holds {len(stored)} results; "
            "continue them with --resume or choose another --out"
        )
    if stored:
        _check_identity(run)
    finished = frozenset((record["cell"], record["seed"]) for record in stored)
    return PlannedRun(**{**vars(run), "finished": finished})


def _command(experiment: Experiment, plan: Plan) -> str:
    """The command that gives the same numbers; neither --jobs nor --out changes them."""
    words = ["ezgreedy", "reproduce", experiment.id]
    if plan.scale != "paper":
        words.append(f"--{plan.scale}")
    if plan.num_seeds is not None:
        words.append(f"--seeds {plan.num_seeds}")
    words += [f"--set {shlex.quote(change)}" for change in plan.changes]
    return " ".join(words)


def _check_directories(run: PlannedRun, plan: Plan) -> None:
    for directory in (plan.out, run.directory):
        if directory.exists() and not directory.is_dir():
            raise require.refuse("--out", "be a directory", str(directory))
    if (plan.out / SETTINGS_FILE).exists():
        holder = _stored_identity(plan.out)["id"]
        raise ValueError(f"{plan.out} holds the experiment {holder!r}; choose another --out")
    require_apart(run.directory)
    if not _holds_files(run.directory):
        return
    if not (run.directory / SETTINGS_FILE).exists():
        raise ValueError(
            f"{run.directory} holds files but no {SETTINGS_FILE}; choose another --out"
        )
    holder = _stored_identity(run.directory)["id"]
    if holder != run.experiment.id:
        raise ValueError(f"{run.directory} holds the experiment {holder!r}; choose another --out")


def _holds_files(directory: Path) -> bool:
    return directory.exists() and any(
        not file.name.endswith(DRAFT_SUFFIX) for file in directory.iterdir()
    )


def command_to_continue(directory: Path) -> str:
    """The command that completes the experiment in a directory."""
    stored = _stored_identity(directory)
    # Files of earlier versions do not have the command.
    command = stored.get("command", f"ezgreedy reproduce {stored['id']}")
    return f"{command} --resume --out {shlex.quote(str(directory.parent))}"


def _stored_identity(directory: Path) -> dict[str, Any]:
    path = directory / SETTINGS_FILE
    try:
        identity = read_json(path)
        if {"id", "version", "settings"} <= identity.keys():
            return dict(identity)
    except (ValueError, AttributeError):
        pass
    raise ValueError(f"{path} is not the settings of an experiment; choose another --out")


def _check_identity(run: PlannedRun) -> None:
    """A run is continued only with the settings it was started with."""
    before, now = _stored_identity(run.directory), run.identity
    retired = [name for name in RETIRED if name not in now["settings"]]
    difference = _difference(
        {
            "version": before["version"],
            **{n: v for n, v in before["settings"].items() if n not in retired},
        },
        {"version": now["version"], **now["settings"]},
    )
    if difference:
        begun = f" (it was begun with `{before['command']}`)" if "command" in before else ""
        told = f"{run.directory} cannot be continued: {difference}{begun}"
        raise ValueError(f"{told}; choose another --out")


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first entry that differs, in words; empty if none does."""
    for name in {**before, **now}:
        if name not in before or name not in now:
            return f"its {name} is {'new' if name not in before else 'no longer known'}"
        if before[name] != now[name]:
            return f"its {name} was {before[name]!r} and is now {now[name]!r}"
    return ""


def _carried_out(run: PlannedRun, workers: Workers, report: ProgressBar) -> bool:
    """Runs the rest of an experiment and concludes it; returns whether that succeeded."""
    run.directory.mkdir(parents=True, exist_ok=True)
    if not run.finished:
        said = {**run.identity, "command": run.command}
        write_json_atomically(run.directory / SETTINGS_FILE, said, seals=True)
    jobs = run.jobs
    num_jobs = len(run.cells) * run.num_seeds
    num_done = num_jobs - len(jobs)
    report.begin(run.experiment.id, num_jobs, num_done)
    failures = []
    with ResultLog(run.directory / RESULTS_FILE) as log:
        for outcome in workers.outcomes(jobs):
            error = _stored(outcome, log)
            if error:
                failures.append(f"{outcome.job.cell}, seed {outcome.job.seed}: {error}")
            num_done += 1
            report.show(num_done)
    if failures:
        _tell_failures(run, failures, report)
        return False
    _conclude(run, report)
    return True


def _stored(outcome: Outcome, log: ResultLog) -> str:
    """Appends the outcome of a successful job; returns an error message, empty on success."""
    if outcome.result is None:
        return outcome.error
    try:
        log.append(
            {
                "cell": outcome.job.cell,
                "seed": outcome.job.seed,
                "seconds": outcome.seconds,
                "result": outcome.result,
            }
        )
    except (ValueError, TypeError) as error:
        return f"a result that cannot be stored: {error}"
    return ""


def _tell_failures(run: PlannedRun, failures: Sequence[str], report: ProgressBar) -> None:
    for failure in failures[:_FAILURES_TOLD]:
        report.say(f"{run.experiment.id}: failed: {failure}")
    if len(failures) > _FAILURES_TOLD:
        report.say(f"{run.experiment.id}: and {len(failures) - _FAILURES_TOLD} more")
    report.say(
        f"{run.experiment.id}: {len(failures)} jobs failed, so there is no summary; the others "
        "are kept, and --resume runs those that failed again"
    )


def _conclude(run: PlannedRun, report: ProgressBar) -> None:
    """Makes the summary and the figures from the stored results."""
    records, seconds = _records(run)
    summary = run.experiment.summarise(run.settings, records)
    if run.num_seeds > run.experiment.num_seeds:
        summary = with_fewer_seeds(run.experiment, run.settings, records, summary)
    files = run.experiment.draw(run.settings, summary, run.directory)
    finding = Finding(
        id=run.experiment.id,
        title=run.experiment.title,
        shows=run.experiment.shows,
        summary=summary,
        seeds=run.num_seeds,
        settings=run.identity["settings"],
        version=__version__,
        command=run.command,
        seconds=round(seconds, 1),
        figures=files,
    )
    write_finding(finding, run.directory)
    report.say(f"{run.experiment.id}: {_verdicts(summary)} ({run.directory})")


def with_fewer_seeds(
    experiment: Experiment, settings: Settings, records: Sequence[Record], summary: Summary
) -> Summary:
    """A summary with a table that sets it beside that of the experiment's own number of seeds."""
    num_seeds = experiment.num_seeds
    fewer = experiment.summarise(settings, [r for r in records if r.seed < num_seeds])
    rows: list[list[Number]] = []
    for claim, other in zip(summary.claims, fewer.claims, strict=True):
        rows.append([claim.claim, "verdict", *(str(c.verdict or "none") for c in (other, claim))])
        for name in claim.key_numbers or list(claim.numbers)[:_NUMBERS_COMPARED]:
            rows.append(["", name, other.numbers.get(name, "–"), claim.numbers[name]])
    all_seeds = f"all {1 + max(record.seed for record in records)} seeds"
    table = Table(
        "Does the number of seeds matter?",
        ["claim", "number", f"{num_seeds} seeds", all_seeds],
        rows,
        f"{num_seeds} seeds are the default: the paper's number where it gives one. Other numbers "
        "and the figures are of all seeds.",
    )
    return replace(summary, tables=[*summary.tables, table])


def _records(run: PlannedRun) -> tuple[list[Record], float]:
    """The run's records in order of cells and seeds, and their computing time in seconds."""
    stored = {
        (entry["cell"], entry["seed"]): entry
        for entry in read_results(run.directory / RESULTS_FILE)
    }
    records, seconds = [], 0.0
    for cell in run.cells:
        for seed in range(run.num_seeds):
            entry = stored[cell.name, seed]
            settings = {**run.settings, **cell.settings}
            records.append(Record(cell.name, settings, seed, entry["result"]))
            seconds += entry["seconds"]
    return records, seconds


def _verdicts(summary: Summary) -> str:
    verdicts = [claim.verdict or "without a verdict" for claim in summary.claims]
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "no claims"
