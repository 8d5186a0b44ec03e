"""`ezgreedy collect`: keep of runs what their curves need, small enough to be committed."""

import argparse
import importlib.util
from pathlib import Path


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    collect = commands.add_parser(
        "collect",
        help="keep the settings, scores and curves of runs, without their checkpoints",
        description="Copies the settings and scores of runs into a small directory, with a "
        "manifest that says how far each came and how to make it again, and draws their learning "
        "curves there. Unfinished runs are welcome; collecting again adds what is new.",
    )
    collect.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="made by ezgreedy train, or holds runs"
    )
    collect.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="a new or an earlier collection"
    )
    collect.add_argument(
        "--commit",
        metavar="HASH",
        help="of the code that made the runs, if you know it; one that was noted with the same "
        "results stays",
    )
    collect.set_defaults(run=_collect)


def _collect(parsed: argparse.Namespace) -> int:
    for module in ("numba", "matplotlib"):
        if importlib.util.find_spec(module) is None:
            raise ValueError(
                f"collect needs {module}, which is not installed (pip install 'ezgreedy[study]')"
            )
    from ezgreedy.running.collection import collect

    for run, num_new in collect(parsed.runs, parsed.out, parsed.commit):
        came = "finished" if run.is_finished else f"{run.frames:,} of {run.frames_to_play:,} frames"
        print(f"{run.path.name}: {came}, {num_new} new results")
    _draw(parsed.out)
    return 0


def _draw(out: Path) -> None:
    """The curves of everything that is in the collection by now."""
    from ezgreedy.report.deep import read_deep_study
    from ezgreedy.report.deep_curves import figure_svg
    from ezgreedy.results.store import write_text_atomically

    for game in read_deep_study([out]).games:
        path = out / f"{game.slug}.svg"
        write_text_atomically(path, figure_svg(game))
        print(f"wrote {path}")
