"""One module for each row or group of rows; nothing of a row is imported before it is asked for."""

from importlib import import_module

from faults.matrix import Row

_MODULES = {
    "a": "kills",
    "b": "ray_roles",
    "c": "damaged_files",
    "d": "full_disks",
    "e": "not_finite",
    "f": "fuzzing",
    "g": "hostile_files",
    "h": "soaks",
    "i": "determinism",
    "j": "streams",
    "k": "bad_environments",
    "l": "signals",
    "m": "memory_forecasts",
    "n": "claims",
    "o": "upgrades",
    "p": "power_loss",
}
LETTERS = tuple(_MODULES)


def made(letter: str) -> Row:
    """The row of a letter."""
    row: Row = import_module(f"faults.rows.{_MODULES[letter]}").ROW
    return row
