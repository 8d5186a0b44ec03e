"""`ezgreedy reproduce`: run the paper's experiments in several processes, interruptibly."""

import argparse
import os
from pathlib import Path

from ezgreedy import requirements as require
from ezgreedy.named_settings import HOW_TO_SET
from ezgreedy.packages import require_installed


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    reproduce = commands.add_parser(
        "reproduce",
        help="run experiments of the paper and judge its claims",
        description="Runs experiments and writes DIR/ID/: settings.json, results.jsonl (a line "
        "for every finished job), summary.json (claims with verdicts and intervals) and figures. "
        "Numbers depend on neither --jobs nor interruptions. Ctrl-C keeps finished jobs.",
        epilog=f"{HOW_TO_SET} DIR/ID/settings.json lists all settings.",
    )
    reproduce.add_argument(
        "ids",
        nargs="*",
        metavar="ID",
        help="experiments from `ezgreedy list` (default: all that need no further extra)",
    )
    scale = reproduce.add_mutually_exclusive_group()
    scale.add_argument(
        "--quick",
        dest="scale",
        action="store_const",
        const="quick",
        default="paper",
        help="run smaller versions, for a first look",
    )
    scale.add_argument(
        "--thorough",
        dest="scale",
        action="store_const",
        const="thorough",
        help="run more seeds than the paper, for narrow intervals; continues a default run with "
        "--resume",
    )
    scale.add_argument(
        "--full",
        dest="scale",
        action="store_const",
        const="full",
        help="use the paper's scale even where the default is smaller; takes hours",
    )
    reproduce.add_argument(
        "--seeds", type=int, metavar="N", help="seeds of each experiment (default: the paper's)"
    )
    reproduce.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change a setting of the one experiment named, such as --set games=Freeway,Pong; "
        "repeatable; see below",
    )
    reproduce.add_argument(
        "--jobs", type=int, metavar="N", help="number of processes (default: one per core)"
    )
    reproduce.add_argument(
        "--out",
        type=Path,
        default=Path("out/reproduce"),
        metavar="DIR",
        help="directory for the experiments (default: out/reproduce)",
    )
    reproduce.add_argument(
        "--resume",
        action="store_true",
        help="continue the experiments in DIR, skipping finished jobs",
    )
    reproduce.set_defaults(run=_reproduce)


def _reproduce(parsed: argparse.Namespace) -> int:
    require_installed("reproduce", ("matplotlib", "rich"), "study")
    from ezgreedy.experiments import registry, runner

    plan = runner.Plan(
        out=parsed.out,
        scale=parsed.scale,
        num_seeds=parsed.seeds,
        num_processes=num_cores() if parsed.jobs is None else parsed.jobs,
        resumes=parsed.resume,
        changes=tuple(parsed.changes),
    )
    experiments = registry.find(parsed.ids)
    if plan.changes and len(experiments) != 1:
        raise require.refuse("--set", "go with a single experiment", len(experiments))
    return runner.reproduce(experiments, plan)


def num_cores() -> int:
    """Number of cores this process may use; can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
