"""What to say when a package that a game is made of is not installed."""

from importlib import import_module
from types import ModuleType


def imported(module: str, needed_by: str, extra: str) -> ModuleType:
    """The module; if its package is not installed, a ValueError that says how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package is there, and something that it needs is not
        raise ValueError(
            f"{needed_by} needs {package}, which is not installed (pip install 'ezgreedy[{extra}]')"
        ) from error
