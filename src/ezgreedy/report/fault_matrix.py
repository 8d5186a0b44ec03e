"""How does the library take trouble? The matrix of faults, as data and as a document.

The matrix is made by `faults/run.py` of the repository, which writes OUT/faults/faults.json.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.report.markdown_text import table
from ezgreedy.results.runs import read_mapping

FAULTS_FILE = Path("faults") / "faults.json"
FORMAT = 1
# The first line of the document; the tool that makes it may replace it.
MARK = "<!-- Made by `make faults`; changes are lost when it is made again. -->"


@dataclass(frozen=True)
class FaultLine:
    """What was tried of one kind of trouble on one thing.

    Args:
        group: what it was tried on.
        trials: how often.
        failures: how many of these failed.
        upper_bound: largest failure rate that is not contradicted at 95 %.
        words: what else is worth knowing.
        failed: the first failures, each with the command that repeats it.
    """

    group: str
    trials: int
    failures: int
    upper_bound: float
    words: str
    failed: Sequence[Mapping[str, str]]

    @property
    def bound(self) -> str:
        """The upper bound in words."""
        return f"{self.upper_bound:.1%}" if self.upper_bound >= 0.01 else f"{self.upper_bound:.2%}"


@dataclass(frozen=True)
class FaultRow:
    """One kind of trouble.

    Args:
        letter: its letter.
        title: its name.
        goal: what must hold.
        others: what the most trusted systems promise, or are known to do.
        commit: the code that was tried.
        lines: what came out; empty if it was not run.
    """

    letter: str
    title: str
    goal: str
    others: str
    commit: str
    lines: Sequence[FaultLine]


@dataclass(frozen=True)
class FaultMatrix:
    """The whole table.

    Args:
        command: the last command that added to it.
        commit: the code that this command tried.
        machine: facts about the machine.
        rows: the kinds of trouble.
    """

    command: str
    commit: str
    machine: Mapping[str, Any]
    rows: Sequence[FaultRow]

    @property
    def failures(self) -> int:
        """Number of all failures."""
        return sum(line.failures for row in self.rows for line in row.lines)

    @property
    def sentence(self) -> str:
        """What came out, in a sentence."""
        run = [row for row in self.rows if row.lines]
        # Trials of different kinds are not added up: a pair of streams is not a killed process.
        return (
            f"{len(run)} of {len(self.rows)} kinds of trouble were tried: "
            f"{self.failures or 'no'} failure{'' if self.failures == 1 else 's'}."
        )

    @property
    def commits(self) -> str:
        """The code that was tried, in words: one commit, or which rows each of several has."""
        rows: dict[str, list[str]] = {}
        for row in self.rows:
            if row.lines:
                rows.setdefault(row.commit, []).append(row.letter)
        if len(rows) < 2:
            return f"commit {next(iter(rows), self.commit)}"
        told = (f"{commit} (rows {', '.join(letters)})" for commit, letters in rows.items())
        return f"commits {', '.join(told)}"


def read_fault_matrix(path: Path) -> FaultMatrix:
    """Reads the table; refuses another file, naming it."""
    data = read_mapping(path)
    if data.get("format") != FORMAT:
        rule = f"be of format {FORMAT}"
        raise require.refuse(str(path), rule, require.Described(data.get("format")))
    try:
        rows = [
            FaultRow(
                str(row["row"]),
                str(row["title"]),
                str(row["goal"]),
                str(row["others"]),
                str(row.get("commit", data["commit"])),
                [_line(line) for line in row["groups"]],
            )
            for row in data["rows"]
        ]
        return FaultMatrix(str(data["command"]), str(data["commit"]), dict(data["machine"]), rows)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} was not made by faults/run.py: {error!r}") from error


def _line(data: Mapping[str, Any]) -> FaultLine:
    return FaultLine(
        str(data["group"]),
        require.integer("trials", data["trials"], least=0),
        require.integer("failures", data["failures"], least=0),
        require.number("upper_bound", data["upper_bound"], 0.0, 1.0),
        str(data["words"]),
        [dict(failed) for failed in data["failed"]],
    )


def fault_page(matrix: FaultMatrix) -> str:
    """The document beside the table."""
    return "\n".join([MARK, "", *_page(matrix)]).rstrip("\n") + "\n"


def _page(matrix: FaultMatrix) -> Iterator[str]:
    yield from ("# Faults", "")
    yield (
        f"{matrix.sentence} N is the number of trials. *At most* is the largest failure rate that "
        "they do not contradict at 95 % (Clopper-Pearson, one-sided; without failures, about 3/N). "
        "Pairs of streams are not independent trials, so theirs is only a measure of how much was "
        "compared."
    )
    yield ""
    yield f"`{matrix.command}`, {matrix.commits}; {_machine(matrix.machine)}."
    yield ""
    head = ("", "trouble", "on", "N", "failed", "at most", "")
    yield from table(head, _cells(matrix))
    yield from ("## What must hold, and what others promise", "")
    rows = ((row.letter, row.title, row.goal, row.others) for row in matrix.rows)
    yield from table(("", "trouble", "here", "elsewhere"), rows)
    failed = [(row, line) for row in matrix.rows for line in row.lines if line.failed]
    if failed:
        yield from ("## Failures", "")
        for row, line in failed:
            for one in line.failed:
                yield f"- {row.letter}, {line.group}: {one['failure']}. Again: `{one['again']}`"
        yield ""


def _cells(matrix: FaultMatrix) -> Iterator[Sequence[str]]:
    for row in matrix.rows:
        if not row.lines:
            yield (row.letter, row.title, "not run", "", "", "", "")
        for line in row.lines:
            counts = (f"{line.trials:,}", str(line.failures), line.bound)
            yield (row.letter, row.title, line.group, *counts, line.words)


def _machine(machine: Mapping[str, Any]) -> str:
    packages = machine.get("packages", {})
    versions = ", ".join(
        f"{name} {packages[name]}" for name in ("torch", "ray") if name in packages
    )
    told = [
        str(machine.get("system", "")),
        f"Python {machine.get('python', '')}",
        f"{machine.get('processors', '')} processors",
        f"{machine.get('memory_gb', '')} GB",
        versions,
    ]
    return ", ".join(word for word in told if word)
