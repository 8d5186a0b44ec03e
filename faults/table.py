"""The table: what was tried how often, what failed, and how rare failures are at most."""

import platform
import subprocess
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from os import cpu_count, sysconf
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from ezgreedy.results.runs import read_mapping
from ezgreedy.results.store import write_json_atomically, write_text_atomically
from faults.matrix import Row, outcomes, repeat_command

CONFIDENCE = 0.95
TABLE_FILE = "faults.json"
_PACKAGES = ("numpy", "torch", "ale-py", "gymnasium", "minatar", "ray", "safetensors", "numba")


def upper_bound(failures: int, trials: int) -> float:
    """The largest failure rate that these trials do not contradict at 95 % (Clopper-Pearson)."""
    if trials == 0:
        return 1.0
    found = binomtest(failures, trials, alternative="less")
    return float(found.proportion_ci(CONFIDENCE, method="exact").high)


def commit_of(root: Path) -> str:
    """The checked-out commit; marked if files of the tool or the package differ from it."""
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    changed = _git(root, "status", "--porcelain", "--", "src", "faults", "tests/support")
    return f"{head}+changes" if changed else head


def machine_facts() -> dict[str, Any]:
    """What results may depend on; nothing that names the machine."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    gigabytes = sysconf("SC_PAGE_SIZE") * sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "processors": cpu_count(),
        "memory_gb": round(gigabytes, 1),
        "packages": versions,
    }


def table(
    rows: Sequence[Row],
    logs: Path,
    commit: str,
    command: str,
    earlier: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """All rows as plain data, one line for each of their groups; rows without cases too.

    Args:
        rows: the rows.
        logs: directory of the logs.
        commit: the code whose cases count.
        command: the command that ran the last of them.
        earlier: a table of other code, whose rows count where this code has no cases.
    """
    return {
        "format": 1,
        "command": command,
        "commit": commit,
        "date": date.today().isoformat(),
        "confidence": CONFIDENCE,
        "machine": machine_facts(),
        "rows": [
            _row(row, found, commit)
            if (found := outcomes(logs, row.letter, commit))
            else _earlier_row(row, commit, earlier)
            for row in rows
        ],
    }


def read_table(directory: Path) -> dict[str, Any] | None:
    """The table of a directory as plain data; None if there is none."""
    from ezgreedy.report.fault_matrix import read_fault_matrix

    file = directory / TABLE_FILE
    if not file.exists():
        return None
    read_fault_matrix(file)  # refuses what is no table
    return read_mapping(file)


def write_table(directory: Path, data: dict[str, Any]) -> list[Path]:
    """Write the table as data and as a page; returns both files."""
    from ezgreedy.report.fault_matrix import fault_page, read_fault_matrix

    directory.mkdir(parents=True, exist_ok=True)
    write_json_atomically(directory / TABLE_FILE, data)
    page = directory / "README.md"
    write_text_atomically(page, fault_page(read_fault_matrix(directory / TABLE_FILE)))
    return [directory / TABLE_FILE, page]


def _earlier_row(row: Row, commit: str, earlier: dict[str, Any] | None) -> dict[str, Any]:
    """What other code went through; an empty row if that is nothing."""
    made = _row(row, [], commit)
    if earlier is None:
        return made
    for known in earlier["rows"]:
        if known["row"] == row.letter and known["groups"]:
            kept = {name: known[name] for name in ("seeds", "planned", "groups")}
            return {**made, **kept, "commit": known.get("commit", earlier["commit"])}
    return made


def _row(row: Row, records: Sequence[dict[str, Any]], commit: str) -> dict[str, Any]:
    groups = [
        _line(row, group, [record for record in records if record["group"] == group])
        for group in dict.fromkeys(row.groups)
    ]
    return {
        "row": row.letter,
        "title": row.title,
        "goal": row.goal,
        "others": row.others,
        "commit": commit,
        "seeds": sorted({record["seed"] for record in records}),
        "planned": row.full,
        "groups": [line for line in groups if line["trials"]],
    }


def _line(row: Row, group: str, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    failed = [record for record in records if record["failure"]]
    facts = [record["facts"] for record in records if record["facts"]]
    trials = sum(int(record["facts"].get("trials", 1)) for record in records)
    return {
        "group": group,
        "trials": trials,
        "failures": len(failed),
        "upper_bound": upper_bound(len(failed), trials),
        "words": row.words(facts) if facts else "",
        "failed": [
            {
                "failure": record["failure"],
                "again": repeat_command(row.letter, record["case"], record["seed"]),
            }
            for record in failed[:3]
        ],
    }


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def shown(data: dict[str, Any]) -> str:
    """The table in words, for the terminal."""
    lines = [f"{'':2} {'what':58} {'N':>7} {'failed':>6}  at most (95 %)"]
    for row in data["rows"]:
        for line in row["groups"]:
            what = f"{row['title']}: {line['group']}"
            bound = f"{line['upper_bound']:.2%}"
            lines.append(
                f"{row['row']:2} {what[:58]:58} {line['trials']:7} {line['failures']:6}  {bound}"
            )
    return "\n".join(lines)
