"""Where commands write: never over a file that they have not made themselves."""

import os
from pathlib import Path

from ezgreedy import requirements as require
from ezgreedy.units import size


def check_target(name: str, path: Path, suffix: str, mark: str, replaced: str) -> None:
    """Refuses to replace anything except an earlier page of the same kind.

    Args:
        name: name of the option in error messages.
        path: where the page is to go.
        suffix: how its name must end.
        mark: text near the top of every page of this kind.
        replaced: what may be replaced, in words.
    """
    if path.suffix != suffix:
        raise require.refuse(name, f"end in {suffix}", str(path))
    if path.exists() and not (path.is_file() and mark in path.read_text(encoding="utf-8")[:2000]):
        raise require.refuse(name, f"be a new file or {replaced}", str(path))


def write_pages(texts: dict[Path, str]) -> None:
    """Writes each page in one piece, and says so."""
    from ezgreedy.results.store import write_text_atomically

    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, text)
        print(f"wrote {path} ({size(len(text.encode()))})")


def check_writable(name: str, directory: Path) -> None:
    """Refuses a path where no directory is or can be created, before anything runs."""
    if directory.exists():
        if not directory.is_dir():
            raise require.refuse(name, "be a directory", str(directory))
        return
    parent = next(path for path in directory.absolute().parents if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        rule = f"lie where files can be written, not in {parent}"
        raise require.refuse(name, rule, str(directory))
