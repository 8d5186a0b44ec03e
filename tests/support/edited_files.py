"""JSON files that a test edits: with a new checksum, or as an earlier version wrote them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ezgreedy.results.store import (
    ResultLog,
    read_json,
    read_results,
    write_json_atomically,
)


def edit(path: Path, change: Callable[[Any], Any], *, seals: bool = True) -> None:
    """Replaces the contents of a file by what `change` returns, or has made of them."""
    data = read_json(path)
    changed = change(data)
    write_json_atomically(path, data if changed is None else changed, seals=seals)


def replace_text(path: Path, old: str, new: str) -> None:
    """Replaces a text in all names and values of a file."""
    edit(path, lambda data: json.loads(json.dumps(data).replace(old, new)))


def without_checksums(run: Path) -> None:
    """Makes the files of a run what earlier versions wrote: no checksums, no counts, no names."""
    edit(run / "config.json", lambda config: config, seals=False)
    for name in ("status.json", "manifest.json"):
        if (run / name).exists():
            edit(run / name, lambda data: data.pop("rows", None) and None, seals=False)
    results = run / "results.jsonl"
    if results.exists():
        records = read_results(results)
        results.unlink()
        with ResultLog(results) as log:
            for record in records:
                log.append(record)
