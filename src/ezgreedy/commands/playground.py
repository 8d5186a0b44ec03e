"""`ezgreedy playground`: a page to watch ε- and εz-greedy explore, computed in the browser."""

import argparse
from pathlib import Path

from ezgreedy.commands.targets import check_target, write_pages
from ezgreedy.packages import require_installed


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    parser = commands.add_parser(
        "playground",
        help="write a page on which to watch both policies explore small worlds",
        description="Writes one HTML page that works offline: choose a world, ε and how long "
        "actions are repeated, and watch walkers and first-visit maps of ε- and εz-greedy side "
        "by side. The browser draws the same random numbers as Python.",
    )
    parser.add_argument(
        "--to",
        type=Path,
        default=Path("playground.html"),
        metavar="FILE",
        help="file of the page (default: playground.html)",
    )
    parser.set_defaults(run=_playground)


def _playground(parsed: argparse.Namespace) -> int:
    require_installed("playground", ("gymnasium", "numba", "matplotlib"), "study")
    from ezgreedy.playground import page

    check_target("--to", parsed.to, ".html", page.MARK, "an earlier playground")
    write_pages({parsed.to: page.page()})
    print(f"open it in a browser: {parsed.to.resolve().as_uri()}")
    return 0
