"""Run the matrix of faults, some of its rows, or one case again.

    python faults/run.py                            every row, in minutes
    python faults/run.py --full --minutes 240       as much of the full numbers as four hours allow
    python faults/run.py --rows a,c,f --cases 500
    python faults/run.py --row c --case 1234 --seed 7

Cases go to a log under --out and are not run again by the same code, so an interrupted command is
continued by repeating it. The table is written to --out as faults.json and README.md. Rows that
this code has not been through keep what a table there says of them, with the commit of their code.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from faults.matrix import Plan, Row, run_case, run_row  # noqa: E402
from faults.rows import LETTERS, made  # noqa: E402
from faults.table import commit_of, read_table, shown, table, write_table  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; returns 1 if a case failed."""
    parsed = _parser().parse_args(arguments)
    letters = _letters(parsed)
    if parsed.case is not None:
        return _one(letters, parsed.case, parsed.seed, parsed.out / "case")
    commit = commit_of(ROOT)
    rows = [] if parsed.table else [made(letter) for letter in letters]
    end = None if parsed.minutes is None else time.monotonic() + 60.0 * parsed.minutes
    command = _command(parsed)
    has_begun = True
    for place, row in enumerate(rows):
        row.is_full = parsed.full
        numbers = range(parsed.cases or (row.full if parsed.full else row.quick))
        begun = time.monotonic()
        # The time that is left is shared evenly by the rows that are left.
        until = None if end is None else begun + max(end - begun, 0.0) / (len(rows) - place)
        plan = Plan(parsed.out / "logs", commit, parsed.seed, until, _say)
        _say(f"{row.letter}: {row.title}, up to {len(numbers)} cases")
        has_begun = _began(row, numbers, plan) and has_begun
        _write(parsed.out, commit, command)
    data = _write(parsed.out, commit, command)
    _say(shown(data))
    _say(f"wrote {parsed.out}")
    failed = any(line["failures"] for row in data["rows"] for line in row["groups"])
    return int(failed or not has_begun)


def _began(row: Row, numbers: Sequence[int], plan: Plan) -> bool:
    """Run a row; what keeps one from beginning does not keep the others."""
    try:
        run_row(row, numbers, plan)
    except Exception as error:
        _say(f"{row.letter} cannot go on: {type(error).__name__}: {error}")
        return False
    return True


def _command(parsed: argparse.Namespace) -> str:
    """What was asked for, without where it went."""
    words = ["python faults/run.py", *(["--full"] if parsed.full else [])]
    words += [f"--rows {parsed.rows}"] if parsed.rows else []
    for name in ("cases", "minutes", "seed"):
        value = getattr(parsed, name)
        words += [f"--{name} {value:g}"] if value is not None else []
    return " ".join(words)


def _write(out: Path, commit: str, command: str) -> dict[str, Any]:
    """The table of everything that this code has been through so far, and other code before it."""
    rows = [made(letter) for letter in LETTERS]
    data = table(rows, out / "logs", commit, command, earlier=read_table(out))
    write_table(out, data)
    return data


def _one(letters: Sequence[str], number: int, seed: int, place: Path) -> int:
    if len(letters) != 1:
        raise SystemExit("--case must come with one --row")
    row = made(letters[0])
    (place / "shared").mkdir(parents=True, exist_ok=True)
    try:
        row.prepare(place / "shared")
        record = run_case(row, number, seed, place / str(number))
    finally:
        row.close()
        shutil.rmtree(place, ignore_errors=True)
    _say(f"{row.letter} {number} ({record['group']}): {record['failure'] or 'passed'}")
    for name, value in record["facts"].items():
        _say(f"  {name}: {value}")
    return int(bool(record["failure"]))


def _letters(parsed: argparse.Namespace) -> list[str]:
    letters = [word for word in parsed.rows.split(",") if word] or list(LETTERS)
    for letter in letters:
        if letter not in LETTERS:
            raise SystemExit(f"--rows must be among {','.join(LETTERS)}; got {letter!r}")
    return letters


def _say(line: str) -> None:
    print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", "--row", default="", metavar="a,c", help="rows (default: all)")
    parser.add_argument("--case", type=int, metavar="N", help="run only this case of one row")
    parser.add_argument("--cases", type=int, metavar="N", help="cases of each row")
    parser.add_argument("--seed", type=int, default=0, help="seed of all cases (default: 0)")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no case after this time")
    parser.add_argument("--table", action="store_true", help="run nothing, write the table anew")
    parser.add_argument("--full", action="store_true", help="the full numbers, which take hours")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "out" / "faults", metavar="DIR", help="table and logs"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
