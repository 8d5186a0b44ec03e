"""Rows of the matrix, their cases, and how cases are run, logged and repeated.

A row is one kind of trouble. Its cases are numbered; a case's number and the seed decide everything
that is random in it, so one command repeats it. Outcomes go to an append-only log with checksums,
one for each row, and a case that is in the log is not run again.
"""

import shutil
import signal
import tempfile
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import numpy as np

from ezgreedy.results.store import ResultLog, read_results

MOST_WORDS = 600  # characters of a failure that are kept


class Failure(Exception):
    """What should have held and did not."""


class TooSlow(BaseException):
    """A case did not end in time; not an Exception, so that no command takes it for its own."""


@dataclass(frozen=True)
class Case:
    """One trial of a row.

    Args:
        row: letter of the row.
        number: number of the case.
        seed: seed of the whole matrix.
        group: what it is tried on.
        place: an empty directory of its own.
    """

    row: str
    number: int
    seed: int
    group: str
    place: Path

    @property
    def rng(self) -> np.random.Generator:
        """All randomness of the case, always from the beginning."""
        return np.random.default_rng([self.seed, ord(self.row), self.number])


class Row(ABC):
    """One kind of trouble; case n is of group n modulo the number of groups."""

    letter: ClassVar[str]
    title: ClassVar[str]
    goal: ClassVar[str]
    others: ClassVar[str]  # what the most trusted systems promise, or are known to do
    groups: ClassVar[Sequence[str]]
    quick: ClassVar[int]  # cases of `make faults`
    full: ClassVar[int]  # cases of `make faults-full`
    # For one case: hangs have no end, and a busy machine is slow.
    seconds: ClassVar[float] = 900.0
    is_full = False  # whether it runs with its full numbers

    def prepare(self, place: Path) -> None:  # noqa: B027
        """Make what all cases share, in a directory that lasts as long as the row."""

    @abstractmethod
    def run(self, case: Case) -> dict[str, Any]:
        """Try one case; return facts as plain numbers and words, or raise `Failure`.

        The fact `trials` says how many trials the case was, one if there is none.
        """

    def close(self) -> None:  # noqa: B027
        """End what `prepare` began."""

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        """What the table adds about the cases of one group, of which one at least passed."""
        return ""

    def group(self, number: int) -> str:
        """The group of a case."""
        return self.groups[number % len(self.groups)]


@dataclass(frozen=True)
class Plan:
    """What to run.

    Args:
        logs: directory of the logs.
        commit: the code; cases of other code are run again.
        seed: seed of all cases.
        end: when to begin no more cases, in seconds of `time.monotonic`; None for no limit.
        say: where lines for the user go.
    """

    logs: Path
    commit: str
    seed: int
    end: float | None
    say: Callable[[str], None]


def log_file(logs: Path, letter: str) -> Path:
    """Where the outcomes of a row's cases are."""
    return logs / f"row_{letter}.jsonl"


def outcomes(logs: Path, letter: str, commit: str) -> list[dict[str, Any]]:
    """All logged cases of a row that ran with this code."""
    file = log_file(logs, letter)
    if not file.exists():
        return []
    return [record for record in read_results(file) if record["commit"] == commit]


def run_row(row: Row, numbers: Sequence[int], plan: Plan) -> None:
    """Run the cases that are not in the log yet, until the plan's end."""
    done = {
        record["case"]
        for record in outcomes(plan.logs, row.letter, plan.commit)
        if record["seed"] == plan.seed
    }
    left = [number for number in numbers if number not in done]
    if not left:
        return
    plan.logs.mkdir(parents=True, exist_ok=True)
    with _working_directory() as place, ResultLog(log_file(plan.logs, row.letter)) as log:
        (place / "shared").mkdir()
        try:
            row.prepare(place / "shared")
            for number in left:
                if plan.end is not None and time.monotonic() > plan.end:
                    break
                record = run_case(row, number, plan.seed, place / "case")
                log.append({"commit": plan.commit, **record})
                if record["failure"]:
                    plan.say(f"{row.letter} {number}: {record['failure']}")
                    plan.say(f"  again: {repeat_command(row.letter, number, plan.seed)}")
        finally:
            row.close()


def run_case(row: Row, number: int, seed: int, place: Path) -> dict[str, Any]:
    """Run one case and tell what came out; a failure is a sentence, never an exception."""
    place.mkdir(parents=True)
    case = Case(row.letter, number, seed, row.group(number), place)
    facts: dict[str, Any] = {}
    failure = ""
    try:
        with _no_longer_than(row.seconds):
            facts = row.run(case)
    except Failure as found:
        failure = str(found) or "failed"
    except TooSlow:
        failure = f"did not end within {row.seconds:g} s"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        failure = f"{type(error).__name__}: {error} ({Path(last.filename).name}, {last.lineno})"
    finally:
        shutil.rmtree(place, ignore_errors=True)
    failure = " ".join(failure.replace(str(place), "CASE").split())[:MOST_WORDS]
    return {"case": number, "seed": seed, "group": case.group, "failure": failure, "facts": facts}


def repeat_command(letter: str, number: int, seed: int) -> str:
    """The command that runs one case again."""
    return f"python faults/run.py --row {letter} --case {number} --seed {seed}"


@contextmanager
def _working_directory() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="ez-faults-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _no_longer_than(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
