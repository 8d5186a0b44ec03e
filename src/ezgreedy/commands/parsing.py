"""How is the command line read? Misspelt words get suggestions, and 1e6 is a number."""

import argparse
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from ezgreedy import requirements as require

_MOST_DIGITS = 19
# Commands that write one file name it after --to, those that fill a directory after --out.
_SAME_PURPOSE = {"--out": "--to", "--to": "--out"}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and suggest the nearest command or option."""

    _words: Sequence[str] = ()

    def parse_known_args(  # type: ignore[override]  # argparse has an overload per namespace
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """As in argparse, but a command refuses what it does not know."""
        self._words = args or ()
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unknown argument {unknown[0]}{self._near(unknown[0])}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Ends the process with one line and exit code 2."""
        if message.startswith("the following arguments are required"):
            # Perhaps the required one is there, but misspelt.
            message = next(filter(None, map(self._misspelt, self._words)), message)
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help explains\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        rule = f"must be one of {', '.join(known)}{require.near(str(value), known)}"
        raise argparse.ArgumentError(action, f"{rule}; got {value!r}")

    def _misspelt(self, word: str) -> str:
        """What to say about a word that is like an option; "" for others."""
        is_known = any(name.startswith(word) for name in self._option_string_actions)
        near = "" if is_known else self._near(word)
        return near and f"unknown argument {word}{near}"

    def _near(self, word: str) -> str:
        """A suggestion for an unknown option; "" for other words."""
        options = [name for name in self._option_string_actions if name.startswith("--")]
        name = word.partition("=")[0]
        if _SAME_PURPOSE.get(name) in options:
            return require.suggested([_SAME_PURPOSE[name]])
        return require.near(name, options) if word.startswith("-") else ""


def whole_number(text: str) -> int:
    """A whole number, also as 1e6 or 2_000_000."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number.adjusted() >= _MOST_DIGITS or number != int(number):
        raise argparse.ArgumentTypeError(
            f"must be a whole number, such as 2000000, 2_000_000 or 2e6; got {text!r}"
        )
    return int(number)
