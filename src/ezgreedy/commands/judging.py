"""`ezgreedy judge`: what training runs say about a question, by criteria stated beforehand."""

import argparse
import importlib.util
from pathlib import Path

# Named here, so that `--help` needs NumPy alone; a test holds the list to the registry.
STUDIES = ("atari100k", "deep-durations")


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    judge = commands.add_parser(
        "judge",
        help="judge claims from the runs of a sweep",
        description="Reads runs (sweeps, collections, or single ones), judges the claims of a "
        "study by its criteria, and writes DIR/ID/summary.json and figures, which `ezgreedy "
        "report DIR` shows with the other experiments. A claim whose runs are not all there yet "
        "is left out; judging again takes in what is new.",
    )
    judge.add_argument("study", metavar="ID", help=f"one of {', '.join(STUDIES)}")
    judge.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="a run, or a directory that holds runs"
    )
    judge.add_argument(
        "--out",
        type=Path,
        default=Path("out/reproduce"),
        metavar="DIR",
        help="where the directories of experiments are (default: out/reproduce)",
    )
    judge.set_defaults(run=_judge)


def _judge(parsed: argparse.Namespace) -> int:
    for module in ("scipy", "matplotlib"):
        if importlib.util.find_spec(module) is None:
            raise ValueError(
                f"judge needs {module}, which is not installed (pip install 'ezgreedy[study]')"
            )
    from ezgreedy.experiments.run_study import find, judge

    summary, num_runs = judge(find(parsed.study), parsed.runs, parsed.out)
    print(f"{num_runs} runs, {len(summary.claims)} claims")
    for claim in summary.claims:
        print(f"{claim.verdict}: {claim.claim}")
    print(f"wrote {parsed.out / parsed.study}")
    return 0
