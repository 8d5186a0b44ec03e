"""What is an experiment? Settings, a grid of conditions, and four pure functions.

A figure or table of the paper is run as cells × seeds: every cell (a condition) runs once for every
seed. A run depends only on settings and seed, so runs can be spread over processes, interrupted and
continued without changing a number. The results are judged claim by claim.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ezgreedy import requirements as require
from ezgreedy.findings.claims import Statement, Summary
from ezgreedy.packages import require_installed

Settings = Mapping[str, Any]
Scale = Literal["quick", "paper", "thorough", "full"]


@dataclass(frozen=True)
class Cell:
    """One condition.

    Args:
        name: unique within the experiment; results are stored under it.
        settings: settings that differ from the experiment's in this condition.
    """

    name: str
    settings: Settings


@dataclass(frozen=True)
class Record:
    """One cell for one seed: `result` is the return value of the experiment's `run_seed`."""

    cell: str
    settings: Settings
    seed: int
    result: Mapping[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper; its functions live at the top of a module.

    Args:
        id: name on the command line and of the directory.
        title: heading, with its place in the paper.
        shows: one line on what it shows.
        statements: sentences that it judges, with their criteria, in the order of its claims.
        settings: the paper's settings and a named default for every choice it leaves open, as
            JSON values.
        quick: settings that differ in a quick run.
        full: settings that differ in a full run, where the default is below the paper's scale.
        num_seeds: the paper's number of seeds.
        num_quick_seeds: number of seeds of a quick run.
        num_thorough_seeds: number of seeds of a thorough run, which has the default settings, so
            that it can continue a default run; `num_seeds` if None.
        cost_seconds: estimated time on one core with the paper's seeds.
        cells: settings ↦ the grid of conditions.
        run_seed: (settings updated with the cell's, seed) ↦ the result, as JSON values; missing
            numbers are None, as NaN is refused.
        summarise: (settings, records in order of cells and seeds) ↦ claims and figure data.
        draw: (settings, summary, directory) ↦ the figure files written there.
        extra: the package's extra that it needs besides `study`. Such an experiment runs only
            when named: a run of all experiments needs only `study`.
        modules: modules of that extra that it imports.
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
    num_thorough_seeds: int | None = None
    statements: Sequence[Statement] = ()
    extra: str = ""
    modules: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.id):
            raise require.refuse("id", "be lower-case words joined by hyphens", self.id)
        require.integer("num_seeds", self.num_seeds, least=1)
        require.integer("num_quick_seeds", self.num_quick_seeds, least=1)
        if self.num_thorough_seeds is not None:
            require.integer("num_thorough_seeds", self.num_thorough_seeds, least=self.num_seeds)
        for name in (*self.quick, *self.full):
            require.one_of("setting of quick or full", name, tuple(self.settings))
        if bool(self.extra) != bool(self.modules):
            raise require.refuse("modules", "be given with their extra", list(self.modules))

    @property
    def command(self) -> str:
        """The command that runs it."""
        return f"ezgreedy reproduce {self.id}"

    @property
    def is_default(self) -> bool:
        """Whether it belongs to a run of all experiments."""
        return not self.extra

    def check_installed(self) -> None:
        """Refuses to start if a package is missing, and says how to install it."""
        require_installed(self.id, self.modules, f"study,{self.extra}")

    def settings_at(self, scale: Scale) -> dict[str, Any]:
        """All settings of a run at this scale."""
        changes: dict[str, Settings] = {"quick": self.quick, "full": self.full}
        return {**self.settings, **changes.get(scale, {})}

    def num_seeds_at(self, scale: Scale) -> int:
        """The number of seeds of a run at this scale."""
        if scale == "thorough" and self.num_thorough_seeds is not None:
            return self.num_thorough_seeds
        return self.num_quick_seeds if scale == "quick" else self.num_seeds


def results_by_cell(records: Sequence[Record]) -> dict[str, list[Mapping[str, Any]]]:
    """The results of every cell in order of seeds, for `summarise`."""
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record.result)
    return cells


def fewest_seeds(results: Mapping[str, Sequence[Any]]) -> int:
    """The number of seeds of every cell; of cells with different numbers, the smallest."""
    return min(map(len, results.values()))
