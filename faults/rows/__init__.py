"""One module for each row or group of rows; nothing of a row is imported before it is asked for."""

from importlib import import_module

from faults.matrix import Row

_MODULES = {
    "a": "kills",
    "c": "damaged_files",
    "e": "not_finite",
    "f": "fuzzing",
    "g": "hostile_files",
    "j": "streams",
    "n": "claims",
    "p": "power_loss",
}
LETTERS = tuple(_MODULES)


def made(letter: str) -> Row:
    """The row of a letter."""
    row: Row = import_module(f"faults.rows.{_MODULES[letter]}").ROW
    return row
