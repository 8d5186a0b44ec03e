"""`ezgreedy completion`: let a shell complete commands, options and names with the tab key.

The shell asks this program for the words, so names of agents and games that plugins add are among
them. Needs argcomplete (the `completion` extra).
"""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from ezgreedy.packages import require_installed

SHELLS = ("bash", "zsh", "fish")
_ASKED = "_ARGCOMPLETE"  # set by the shell's function when it asks for words

Words = Callable[..., Iterable[str]]


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    parser = commands.add_parser(
        "completion",
        help="print what a shell needs to complete commands with the tab key",
        description="Prints a script for your shell. Put one of these lines into its start file: "
        'eval "$(ezgreedy completion bash)" (~/.bashrc); eval "$(ezgreedy completion zsh)" '
        "(~/.zshrc, after compinit); ezgreedy completion fish | source "
        "(~/.config/fish/config.fish).",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    parser.set_defaults(run=_completion)


def _completion(parsed: argparse.Namespace) -> int:
    require_installed("completion", ("argcomplete",), "completion")
    import argcomplete

    print(argcomplete.shellcode(["ezgreedy"], shell=parsed.shell))
    return 0


def answer(parser: argparse.ArgumentParser) -> None:
    """Prints the words that a shell asks for and ends the process; returns if none asks."""
    if _ASKED not in os.environ:
        return
    import argcomplete
    from argcomplete.completers import DirectoriesCompleter

    directories = DirectoriesCompleter()
    words = {**_WORDS, "directory": directories, "out": directories, "runs": directories}
    for action in _arguments(parser):
        # The output of `watch` is a file: argcomplete completes files by itself.
        if action.dest in words and action.metavar != "FILE":
            action.completer = words[action.dest]  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _arguments(command)


def _agents(**_: object) -> Iterable[str]:
    from ezgreedy.agents.registry import agents

    return list(agents())


def _games(**_: object) -> Iterable[str]:
    from ezgreedy.games.registry import families

    return [game for family in families() for game in family.games()]


def _sweeps(**_: object) -> Iterable[str]:
    from ezgreedy.sweeps.definitions import sweeps

    return [*sweeps(), "status"]


def _experiments(**_: object) -> Mapping[str, str]:
    """Experiments, with descriptions for shells that show them."""
    from ezgreedy.experiments.registry import experiments

    return {name: experiment.shows for name, experiment in experiments().items()}


def _studies(**_: object) -> Iterable[str]:
    from ezgreedy.commands.judge import STUDIES

    return STUDIES


def _environments(**_: object) -> Iterable[str]:
    import gymnasium

    return list(gymnasium.registry)


def _several(words: Words) -> Words:
    """Words of a list with commas: the part after the last comma is completed."""

    def completed(prefix: str, **_: object) -> Iterable[str]:
        before, comma, _last = prefix.rpartition(",")
        return [before + comma + word for word in words()]

    return completed


# By the name of the argument, whichever command it belongs to.
_WORDS: dict[str, Words] = {
    "agent": _agents,
    "agents": _several(_agents),
    "environment": _environments,
    "game": _games,
    "games": _several(_games),
    "ids": _experiments,
    "name": _sweeps,
    "study": _studies,
}
