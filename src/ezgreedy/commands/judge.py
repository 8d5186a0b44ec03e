"""`ezgreedy judge`: what do training runs say about a claim, by criteria set beforehand?"""

import argparse
from pathlib import Path

from ezgreedy.commands.unverified import tell_unverified
from ezgreedy.packages import require_installed
from ezgreedy.units import counted

# Listed here so that `--help` needs only NumPy; a test checks the list against the registry.
STUDIES = ("deep-games", "atari100k", "deep-durations", "minatar-stopping")


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    judge = commands.add_parser(
        "judge",
        help="judge claims from the runs of a sweep",
        description="Reads runs (sweeps, collections or single runs), judges the claims of a "
        "study by its criteria, and writes DIR/ID/summary.json and figures, which `ezgreedy "
        "report DIR` shows with the other experiments. A claim with missing runs is left out; "
        "judging again includes new runs.",
    )
    judge.add_argument("study", metavar="ID", help=f"one of {', '.join(STUDIES)}")
    judge.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run or directory of runs")
    judge.add_argument(
        "--out",
        type=Path,
        default=Path("out/reproduce"),
        metavar="DIR",
        help="directory of the experiments (default: out/reproduce)",
    )
    judge.set_defaults(run=_judge)


def _judge(parsed: argparse.Namespace) -> int:
    require_installed("judge", ("scipy", "matplotlib"), "study")
    from ezgreedy.experiments.run_study import find, judge

    summary, runs = judge(find(parsed.study), parsed.runs, parsed.out)
    tell_unverified(parsed.runs)
    num_unfinished = sum(not run.is_finished for run in runs)
    unfinished = f" ({num_unfinished} not finished)" if num_unfinished else ""
    print(f"{counted(len(runs), 'run')}{unfinished}, {counted(len(summary.claims), 'claim')}")
    for claim in summary.claims:
        print(f"{claim.verdict or 'no verdict'}: {claim.claim}")
    for sentence, missing in summary.missing.items():
        print(f"not judged: {sentence} ({missing})")
    print(f"wrote {parsed.out / parsed.study}")
    return 0
