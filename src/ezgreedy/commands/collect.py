"""`ezgreedy collect`: keep the data behind the curves of runs, small enough to commit."""

import argparse
from pathlib import Path

from ezgreedy.commands.unverified import tell_unverified
from ezgreedy.packages import require_installed
from ezgreedy.units import counted

_TABLE = "results.csv"


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    collect = commands.add_parser(
        "collect",
        help="keep the settings, scores and curves of runs, without their checkpoints",
        description="Copies the settings and scores of runs into a small directory, with a "
        "manifest that says how far each run got and how to repeat it, and draws their learning "
        "curves. results.csv has all numbers, one in every row. Runs may be unfinished; "
        "collecting again adds new results.",
    )
    collect.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="run of ezgreedy train, or directory of runs",
    )
    collect.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="new or existing collection"
    )
    collect.add_argument(
        "--commit",
        metavar="HASH",
        help="commit of the code that made the runs, if known; a commit already recorded for the "
        "same results is kept",
    )
    collect.set_defaults(run=_collect)


def _collect(parsed: argparse.Namespace) -> int:
    require_installed("collect", ("numba", "matplotlib"), "study")
    from ezgreedy.runs.collection import collect

    for run, num_new in collect(parsed.runs, parsed.out, parsed.commit):
        came = "finished" if run.is_finished else f"{run.frames:,} of {run.frames_to_play:,} frames"
        print(f"{run.path.name}: {came}, {counted(num_new, 'new result')}")
    tell_unverified(parsed.runs)
    _draw(parsed.out)
    _tabulate(parsed.out)
    return 0


def _tabulate(out: Path) -> None:
    """Writes all numbers of the collection as one table, for other programs."""
    from ezgreedy.results.field_names import tidy_table
    from ezgreedy.results.runs import RESULTS_FILE, read_run, run_directories
    from ezgreedy.results.store import read_results, write_text_atomically

    rows = []
    for directory in run_directories(out):
        run, results = read_run(directory), directory / RESULTS_FILE
        records = read_results(results) if results.exists() else []
        rows.append(((directory.name, run.agent, run.game, run.seed), records))
    write_text_atomically(out / _TABLE, tidy_table(rows))
    print(f"wrote {out / _TABLE}")


def _draw(out: Path) -> None:
    """Draws the curves of all runs in the collection."""
    from ezgreedy.report.deep import read_deep_study
    from ezgreedy.report.deep_curves import figure_svg
    from ezgreedy.results.store import write_text_atomically

    for game in read_deep_study([out]).games:
        path = out / f"{game.slug}.svg"
        write_text_atomically(path, figure_svg(game))
        print(f"wrote {path}")
