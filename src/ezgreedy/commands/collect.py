"""`ezgreedy collect`: keep the data behind the curves of runs, small enough to commit."""

import argparse
from pathlib import Path

from ezgreedy.packages import require_installed


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    collect = commands.add_parser(
        "collect",
        help="keep the settings, scores and curves of runs, without their checkpoints",
        description="Copies the settings and scores of runs into a small directory, with a "
        "manifest that says how far each run got and how to repeat it, and draws their learning "
        "curves. Runs may be unfinished; collecting again adds new results.",
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
        print(f"{run.path.name}: {came}, {num_new} new results")
    _draw(parsed.out)
    return 0


def _draw(out: Path) -> None:
    """Draws the curves of all runs in the collection."""
    from ezgreedy.report.deep import read_deep_study
    from ezgreedy.report.deep_curves import figure_svg
    from ezgreedy.results.store import write_text_atomically

    for game in read_deep_study([out]).games:
        path = out / f"{game.slug}.svg"
        write_text_atomically(path, figure_svg(game))
        print(f"wrote {path}")
