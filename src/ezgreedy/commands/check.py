"""`ezgreedy check`: is a run, sweep, experiment or collection sound, and what if not?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ezgreedy.inspection.found import Inspection

SOUND, DAMAGED = 0, 1


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Registers the command."""
    check = commands.add_parser(
        "check",
        help="say what state a run, sweep, experiment or collection is in, and repair it",
        description="Reads every file of PATH, verifies its checksums, and says what state it is "
        "in, what is damaged, and what `ezgreedy resume` would do. Nothing is changed without "
        "--repair. The exit code is 0 if everything is sound, 1 if something is damaged, and 2 if "
        "PATH is nothing of ezgreedy's.",
        epilog="A repaired run is at its newest intact checkpoint whose results are all there, or "
        "else at its beginning; with the embedded engine, `ezgreedy resume` then ends with the "
        "same results.jsonl as without the damage. Settings are taken from checkpoints if "
        "config.json is damaged. Nothing is deleted: damaged and later files go to PATH/set-aside.",
    )
    check.add_argument(
        "path",
        type=Path,
        metavar="PATH",
        help="run, sweep, experiment, collection, or a directory of them",
    )
    check.add_argument(
        "--repair",
        action="store_true",
        help="bring what is damaged to its last consistent state; what no longer fits is moved to "
        "set-aside, not deleted",
    )
    check.add_argument("--quiet", action="store_true", help="show only what is damaged")
    check.set_defaults(run=_check)


def _check(parsed: argparse.Namespace) -> int:
    from ezgreedy.inspection.directories import inspect

    found = inspect(parsed.path)
    _tell(found, is_quiet=parsed.quiet)
    if not found.all_problems:
        return SOUND
    if not parsed.repair:
        return DAMAGED
    for place in found.repair():
        print(f"set aside: {place}")
    after = inspect(parsed.path)
    print("after the repair:")
    _tell(after, is_quiet=parsed.quiet)
    return DAMAGED if after.all_problems else SOUND


def _tell(found: "Inspection", *, is_quiet: bool) -> None:
    if found.problems or not is_quiet:
        sound = "damaged" if found.all_problems else "sound"
        print(f"{found.path}: {found.kind}, {sound}: {found.state}")
        for note in () if is_quiet else found.notes:
            print(f"  note: {note}")
        for problem in found.problems:
            print(f"  damaged: {problem}")
        if found.next_step:
            print(f"  {found.next_step}")
    for part in found.parts:
        _tell(part, is_quiet=is_quiet)
