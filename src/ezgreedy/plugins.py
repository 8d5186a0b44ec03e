"""How do other packages add agents, games, duration laws and rules? By registering on import.

A module registers its additions when it is imported, with `games.registry.register`,
`agents.registry.register` or `exploration.laws.register`. It is imported in one of three ways: by
an entry point of the group `ezgreedy.plugins` in the package's own pyproject.toml, by
`--import MODULE` on the command line, or by the environment variable EZGREEDY_IMPORT, which passes
`--import` on to the processes that a command starts.
"""

import importlib
import os
import sys
import warnings
from importlib.metadata import entry_points

GROUP = "ezgreedy.plugins"
VARIABLE = "EZGREEDY_IMPORT"

_loaded = False


def load() -> None:
    """Import every plugin, once; registries call this before they look anything up.

    An installed plugin that fails to import causes only a warning: a broken package must not stop
    everything else from working. A module that was requested by name must be importable.
    """
    global _loaded
    if _loaded:
        return
    _loaded = True  # before the imports, which register and so call this again
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            warnings.warn(f"the ezgreedy plugin {point.name} failed: {error!r}", stacklevel=2)
    for name in _asked_for():
        _import(name)


def add(name: str) -> None:
    """Import a module by name, here and in every process started from now on.

    Args:
        name: dotted name of the module; the current directory is searched too.
    """
    _import(name)
    names = _asked_for()
    if name not in names:
        os.environ[VARIABLE] = ",".join([*names, name])


def options() -> str:
    """` --import MODULE` for every module that was asked for, to follow a command that is told."""
    return "".join(f" --import {name}" for name in _asked_for())


def _asked_for() -> list[str]:
    return [name for name in os.environ.get(VARIABLE, "").split(",") if name]


def _import(name: str) -> None:
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module exists, but something it needs does not
        rule = "name a module that can be imported from here"
        raise ValueError(f"--import must {rule}; got {name!r}") from error
