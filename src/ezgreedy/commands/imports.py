"""`--import MODULE`: let a user's module register agents, games, environments, laws or rules."""

import argparse
from collections.abc import Sequence

from ezgreedy import plugins

_FLAG = "--import"


def add_import_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option to a command's help; `without_imports` has already handled it."""
    parser.add_argument(
        _FLAG,
        dest="imports",
        action="append",
        metavar="MODULE",
        help="first import a module that registers agents, games, Gymnasium environments, duration "
        "laws or stopping rules; repeatable (not needed for installed plugins: see "
        "docs/recipes.md)",
    )


def without_imports(arguments: Sequence[str]) -> list[str]:
    """Imports the modules named by `--import`, and returns the other arguments.

    This runs before anything else is parsed, so that help and choices include the registered names.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(_FLAG, dest="imports", action="append", default=[])
    parsed, others = parser.parse_known_args(arguments)
    for name in parsed.imports:
        plugins.add(name)
    return others
