"""`ezgreedy reproduce`: runs experiments of the paper, over processes, interruptibly."""

import argparse
import importlib.util
import os
from pathlib import Path

from ezgreedy import requirements as require


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    reproduce = commands.add_parser(
        "reproduce",
        help="run experiments of the paper and judge its claims",
        description="Runs experiments and writes DIR/ID/: settings.json, results.jsonl (a line "
        "for every finished job), summary.json (claims with verdicts and intervals) and figures. "
        "Numbers depend on neither --jobs nor interruptions. Ctrl-C keeps what is finished.",
    )
    reproduce.add_argument(
        "ids",
        nargs="*",
        metavar="ID",
        help="experiments, as `ezgreedy list` shows them; if none, all that need no further extra",
    )
    scale = reproduce.add_mutually_exclusive_group()
    scale.add_argument(
        "--quick",
        dest="scale",
        action="store_const",
        const="quick",
        default="paper",
        help="a smaller version of everything, for a first look",
    )
    scale.add_argument(
        "--full",
        dest="scale",
        action="store_const",
        const="full",
        help="the paper's scale also where the default is less, which takes hours",
    )
    reproduce.add_argument(
        "--seeds", type=int, metavar="N", help="seeds of every experiment; the paper's if not given"
    )
    reproduce.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another value for a setting of the one experiment named, lists with commas: "
        "--set games=Freeway,Pong; repeatable",
    )
    reproduce.add_argument(
        "--jobs", type=int, metavar="N", help="processes; one for every core if not given"
    )
    reproduce.add_argument(
        "--out",
        type=Path,
        default=Path("out/reproduce"),
        metavar="DIR",
        help="where the experiments' directories go (default: out/reproduce)",
    )
    reproduce.add_argument(
        "--resume", action="store_true", help="continue what DIR holds, skipping finished jobs"
    )
    reproduce.set_defaults(run=_reproduce)


def _reproduce(parsed: argparse.Namespace) -> int:
    for module in ("matplotlib", "rich"):
        if importlib.util.find_spec(module) is None:
            raise ValueError(
                f"reproduce needs {module}, which is not installed (pip install 'ezgreedy[study]')"
            )
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
    """Cores this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
