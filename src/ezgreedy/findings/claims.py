"""What does the paper claim, how is it judged, and what came out?

A `Statement` is written before anything is run: the sentence, where it comes from, and the
criterion by which it is judged. A `Claim` is a statement with what the results say about it under
every reading of what the paper leaves open. Controls, which change what the paper fixes, are shown
beside the readings and never enter the verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ezgreedy import requirements as require
from ezgreedy.findings.interactive import Block
from ezgreedy.findings.intervals import Interval
from ezgreedy.findings.judging import LEAST_FOR_A_VERDICT, Side, Verdict, verdict_of
from ezgreedy.findings.maps import Maps
from ezgreedy.findings.panels import Panel

Number = Interval | int | float | str

OURS = "ours"  # the source of a sentence that the paper does not have
AS_STATED = "as stated"  # the only reading of a claim that leaves nothing open
_PAPER = "paper, "


def _number_as_json(number: Number) -> Any:
    if isinstance(number, Interval):
        return {"value": number.value, "low": number.low, "high": number.high}
    return number


def _number_from_json(entry: Any) -> Number:
    number: Number = Interval(**entry) if isinstance(entry, Mapping) else entry
    return number


@dataclass(frozen=True)
class Statement:
    """A sentence that can be judged, before it is.

    Args:
        claim: the sentence, in the paper's words or ours.
        source: "paper, " and the section, figure or table, or `OURS`.
        criterion: what must be found for it to hold; stated before the run.
        amended: how the criterion changed after results were known, and why; empty if it did not.
    """

    claim: str
    source: str
    criterion: str
    amended: str = ""

    def __post_init__(self) -> None:
        for name in ("claim", "criterion"):
            if not getattr(self, name):
                raise require.refuse(name, "be words", getattr(self, name))
        if self.source != OURS and not self.source.startswith(_PAPER):
            raise require.refuse("source", f"be {OURS!r} or begin with {_PAPER!r}", self.source)

    @property
    def is_ours(self) -> bool:
        """Whether the sentence is ours rather than the paper's."""
        return self.source == OURS

    @property
    def place(self) -> str:
        """Where the paper says it; empty for a sentence of ours."""
        return "" if self.is_ours else self.source.removeprefix(_PAPER)


@dataclass(frozen=True)
class Claim:
    """A statement and what the results say about it.

    Args:
        statement: the sentence, its source and its criterion.
        readings: on which side of the criterion each reading lies; one or more.
        numbers: named values, with intervals where they were estimated.
        num_seeds: number of independent samples behind the verdict; of readings with different
            numbers, the smallest.
        controls: the same for conditions that the paper fixes otherwise; not part of the verdict.
        note: what the numbers mean.
        key_numbers: names of the few numbers shown in the table of all claims; the first ones if
            empty.
        sample: what one sample is: a seed, or a game where games are compared.
    """

    statement: Statement
    readings: Mapping[str, Side]
    numbers: Mapping[str, Number]
    num_seeds: int
    controls: Mapping[str, Side] = field(default_factory=dict)
    note: str = ""
    key_numbers: Sequence[str] = ()
    sample: Literal["seed", "game"] = "seed"

    def __post_init__(self) -> None:
        for side in (*self.readings.values(), *self.controls.values()):
            require.one_of("side", side, get_args(Side))
        verdict_of(self.readings.values())
        require.integer("num_seeds", self.num_seeds, least=0)
        for name in self.key_numbers:
            require.one_of("key number", name, tuple(self.numbers))

    @property
    def claim(self) -> str:
        """The sentence."""
        return self.statement.claim

    @property
    def verdict(self) -> Verdict | None:
        """What follows from the readings; None if there are too few seeds for a verdict."""
        if self.num_seeds < LEAST_FOR_A_VERDICT:
            return None
        return verdict_of(self.readings.values())

    def as_json(self) -> dict[str, Any]:
        """The claim as stored in summary.json; the verdict is there for readers."""
        numbers = {name: _number_as_json(number) for name, number in self.numbers.items()}
        amended = self.statement.amended
        return {
            "claim": self.claim,
            "source": self.statement.source,
            "criterion": self.statement.criterion,
            **({"amended": amended} if amended else {}),
            "verdict": self.verdict,
            "readings": dict(self.readings),
            "controls": dict(self.controls),
            "seeds": self.num_seeds,
            **({"sample": self.sample} if self.sample != "seed" else {}),
            "note": self.note,
            "numbers": numbers,
            "key_numbers": list(self.key_numbers),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Claim":
        """The claim that `as_json` gave."""
        return cls(
            Statement(
                entry["claim"], entry["source"], entry["criterion"], entry.get("amended", "")
            ),
            dict(entry["readings"]),
            {name: _number_from_json(number) for name, number in entry["numbers"].items()},
            entry["seeds"],
            dict(entry["controls"]),
            entry["note"],
            tuple(entry["key_numbers"]),
            entry.get("sample", "seed"),
        )


@dataclass(frozen=True)
class Table:
    """A table of numbers.

    Args:
        title: heading of the table.
        columns: headings of the columns.
        rows: numbers or words, one for each column.
        note: remarks for the reader.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Number]]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise require.refuse("rows", f"have {len(self.columns)} columns", list(row))

    def as_json(self) -> dict[str, Any]:
        """The table as stored in summary.json."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [[_number_as_json(cell) for cell in row] for row in self.rows],
            "note": self.note,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Table":
        """The table that `as_json` gave."""
        rows = [[_number_from_json(cell) for cell in row] for row in entry["rows"]]
        return cls(entry["title"], entry["columns"], rows, entry["note"])


@dataclass(frozen=True)
class Summary:
    """The findings of an experiment.

    Args:
        claims: claims in reading order.
        blocks: panels and maps, drawn in figures and interactive on the page.
        data: other data behind the figures, as JSON values, so that figures and pages can be made
            without the results of single seeds.
        tables: tables of the page and the document.
        missing: what is missing for each claim that could not be judged, by its sentence.
    """

    claims: Sequence[Claim]
    blocks: Sequence[Block] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def panels(self) -> list[Panel]:
        """The blocks that are panels of curves."""
        return [block for block in self.blocks if isinstance(block, Panel)]

    @property
    def maps(self) -> list[Maps]:
        """The blocks that are maps."""
        return [block for block in self.blocks if isinstance(block, Maps)]


def names_with(numbers: Mapping[str, Number], *parts: str) -> list[str]:
    """The names that contain any of these parts, for a claim's `key_numbers`."""
    return [name for name in numbers if any(part in name for part in parts)]
