"""What is an experiment? Settings, a grid of conditions, and four pure functions.

A figure or table of the paper is run as cells × seeds: every cell (a condition) is run once for
every seed by a function of settings and seed alone, so that runs may be spread over processes,
interrupted and continued without changing a number. What comes out is judged claim by claim.
"""

import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from ezgreedy import requirements as require
from ezgreedy.results.intervals import Interval

Settings = Mapping[str, Any]
Verdict = Literal["reproduced", "reading-dependent", "not-reproduced"]
Scale = Literal["quick", "paper", "full"]
Number = Interval | int | float | str


@dataclass(frozen=True)
class Cell:
    """One condition.

    Args:
        name: unique within the experiment; results are stored under it.
        settings: what differs from the experiment's settings in this condition.
    """

    name: str
    settings: Settings


@dataclass(frozen=True)
class Record:
    """What one cell gave for one seed: `result` is what the experiment's `run_seed` returned."""

    cell: str
    settings: Settings
    seed: int
    result: Mapping[str, Any]


def _number_as_json(number: Number) -> Any:
    if isinstance(number, Interval):
        return {"value": number.value, "low": number.low, "high": number.high}
    return number


def _number_from_json(entry: Any) -> Number:
    number: Number = Interval(**entry) if isinstance(entry, Mapping) else entry
    return number


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what became of it, and the numbers that say so.

    Args:
        claim: the sentence, in the paper's words or ours.
        verdict: whether it holds; "reading-dependent" if only under some of the settings that
            the paper leaves open.
        numbers: named values, with intervals where they were estimated.
        note: our reading of the claim and how the verdict follows from the numbers.
        key_numbers: names of the few numbers that a table of all claims shows; the first ones if
            there are none.
    """

    claim: str
    verdict: Verdict
    numbers: Mapping[str, Number]
    note: str = ""
    key_numbers: Sequence[str] = ()

    def __post_init__(self) -> None:
        require.one_of("verdict", self.verdict, get_args(Verdict))
        for name in self.key_numbers:
            require.one_of("key number", name, tuple(self.numbers))

    def as_json(self) -> dict[str, Any]:
        """The claim as summary.json holds it."""
        numbers = {name: _number_as_json(number) for name, number in self.numbers.items()}
        return {
            "claim": self.claim,
            "verdict": self.verdict,
            "note": self.note,
            "numbers": numbers,
            "key_numbers": list(self.key_numbers),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Claim":
        """The claim that `as_json` gave."""
        numbers = {name: _number_from_json(entry) for name, entry in entry["numbers"].items()}
        return cls(
            entry["claim"], entry["verdict"], numbers, entry["note"], entry.get("key_numbers", ())
        )


@dataclass(frozen=True)
class Table:
    """Numbers to look up.

    Args:
        title: what they are.
        columns: the heading of each.
        rows: as many numbers or words each as there are columns.
        note: what to know about them.
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
        """The table as summary.json holds it."""
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
    """What an experiment found.

    Args:
        claims: in the order to be read.
        data: what the figures show (curves, maps, …), as JSON holds it, so that figures and pages
            can be made without the results of single seeds.
        tables: that the page and the document show.
    """

    claims: Sequence[Claim]
    data: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper; its functions live at the top of a module.

    Args:
        id: its name on the command line and of its directory.
        title: what it is in the paper.
        shows: one line on what there is to see.
        settings: the paper's settings and a named default for every choice it leaves open, as
            JSON holds them.
        quick: settings that differ in a quick look, and
        full: those that differ where the default is less than the paper's scale.
        num_seeds: the paper's number of seeds.
        num_quick_seeds: that of a quick look.
        cost_seconds: estimated time on one core with the paper's seeds.
        cells: settings ↦ the grid of conditions.
        run_seed: (settings with the cell's on top, seed) ↦ the result, as JSON holds it; a
            number that does not exist is None, for NaN is refused.
        summarise: (settings, records in order of cells and seeds) ↦ claims and figure data.
        draw: (settings, summary, directory) ↦ the figure files written there.
        extra: the package's extra that it needs beside `study`, and
        modules: what that extra brings and this imports. An experiment that needs one is run
            only when it is named: a run of all must do with `study`.
    """

    id: str
    title: str
    shows: str
    settings: Settings
    num_seeds: int
    cost_seconds: float
    cells: Callable[[Settings], Sequence[Cell]]
    run_seed: Callable[[Settings, int], Mapping[str, Any]]
    summarise: Callable[[Settings, Sequence[Record]], Summary]
    draw: Callable[[Settings, Summary, Path], Sequence[Path]]
    quick: Settings = field(default_factory=dict)
    full: Settings = field(default_factory=dict)
    num_quick_seeds: int = 2
    extra: str = ""
    modules: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.id):
            raise require.refuse("id", "be lower-case words joined by hyphens", self.id)
        require.integer("num_seeds", self.num_seeds, least=1)
        require.integer("num_quick_seeds", self.num_quick_seeds, least=1)
        for name in (*self.quick, *self.full):
            require.one_of("setting of quick or full", name, tuple(self.settings))
        if bool(self.extra) != bool(self.modules):
            raise require.refuse("modules", "be given with their extra", list(self.modules))

    @property
    def command(self) -> str:
        """What runs it."""
        return f"ezgreedy reproduce {self.id}"

    @property
    def is_default(self) -> bool:
        """Whether it belongs to a run of all experiments."""
        return not self.extra

    def check_installed(self) -> None:
        """Refuses to begin without what it needs, and says how to install it."""
        for module in self.modules:
            if importlib.util.find_spec(module) is None:
                raise ValueError(
                    f"{self.id} needs {module}, which is not installed "
                    f"(pip install 'ezgreedy[study,{self.extra}]')"
                )

    def settings_at(self, scale: Scale) -> dict[str, Any]:
        """All settings of a quick look, of the default, or of a full run."""
        changes: dict[str, Settings] = {"quick": self.quick, "paper": {}, "full": self.full}
        return {**self.settings, **changes[scale]}

    def num_seeds_at(self, scale: Scale) -> int:
        """How many seeds are run unless the user says otherwise."""
        return self.num_quick_seeds if scale == "quick" else self.num_seeds


def names_with(numbers: Mapping[str, Number], *parts: str) -> list[str]:
    """The names that hold any of these parts, for a claim's `key_numbers`."""
    return [name for name in numbers if any(part in name for part in parts)]


def results_by_cell(records: Sequence[Record]) -> dict[str, list[Mapping[str, Any]]]:
    """The results of every cell in order of seeds, for `summarise`."""
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record.result)
    return cells


def verdict_of(holds: Sequence[bool]) -> Verdict:
    """Reproduced if it holds under every reading or condition, not reproduced if under none."""
    if all(holds):
        return "reproduced"
    return "reading-dependent" if any(holds) else "not-reproduced"
