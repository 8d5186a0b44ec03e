"""What an inspection found: a state in words, problems, and how each is mended.

Mending never deletes: what is replaced or no longer fits moves into DIR/set-aside/TIME, under its
own name, where nothing reads it.
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ezgreedy.runs.output_paths import SET_ASIDE


class SetAside:
    """Moves files of a directory out of the way, all of one repair into one place.

    Args:
        directory: the directory that is repaired.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.place = directory / SET_ASIDE / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"

    def move(self, path: Path) -> None:
        """Moves a file, a link or a directory of files, if it is there."""
        if path.exists() or path.is_symlink():
            path.rename(self._target(path))

    def copy(self, path: Path) -> None:
        """Copies a file that stays, in part."""
        if path.is_file():
            shutil.copyfile(path, self._target(path))

    def _target(self, path: Path) -> Path:
        target = self.place / path.relative_to(self.directory)
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


@dataclass(frozen=True)
class Problem:
    """Something that is not as it was written.

    Args:
        path: the file or directory.
        what: what is wrong, in words that follow its name.
        remedy: what a repair does, in words; "" if it can do nothing.
    """

    path: Path
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        what = self.what.removeprefix(f"{self.path} ").removeprefix(f"{self.path}: ")
        return f"{self.path}: {what}" + (f" (--repair: {self.remedy})" if self.remedy else "")


@dataclass(frozen=True)
class Inspection:
    """The state of one run, sweep, experiment or collection.

    Args:
        path: its directory.
        kind: what it is, in one word.
        state: how far it got, in words.
        next_step: what continuing would do, in words.
        problems: what is damaged.
        notes: what is unusual and harmless.
        mend: brings it to the last consistent state; None if nothing can be mended.
        parts: inspections of what it holds.
    """

    path: Path
    kind: str
    state: str
    next_step: str = ""
    problems: Sequence[Problem] = ()
    notes: Sequence[str] = ()
    mend: Callable[[SetAside], None] | None = None
    parts: Sequence["Inspection"] = field(default_factory=tuple)

    @property
    def all_problems(self) -> list[Problem]:
        """Its problems and those of its parts."""
        return [*self.problems, *(one for part in self.parts for one in part.all_problems)]

    def repair(self) -> list[Path]:
        """Mends it and its parts; returns where things were set aside."""
        places = [place for part in self.parts for place in part.repair()]
        if self.problems and self.mend is not None:
            aside = SetAside(self.path)
            self.mend(aside)
            if aside.place.exists():
                places.append(aside.place)
        return places
