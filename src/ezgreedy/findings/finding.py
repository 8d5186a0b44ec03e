"""What did one experiment find? Its summary.json, written after a run and read by the report.

The figures that it names are beside it. A damaged file is refused by name rather than left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ezgreedy import requirements as require
from ezgreedy.findings.claims import Claim, Summary, Table
from ezgreedy.findings.interactive import Block, block_from_json
from ezgreedy.results.store import read_json, write_json_atomically

SUMMARY_FILE = "summary.json"
NARROW = "_narrow"  # ends the name of a figure's version for a phone

_BLOCKS = "interactive"  # key of the blocks in the file's data


@dataclass(frozen=True)
class Finding:
    """One concluded experiment.

    Args:
        id: name of the experiment, of its directory and of its section.
        title: heading, with its place in the paper.
        shows: one line on what it shows; empty if the summary has none.
        summary: claims, tables and the data behind the figures.
        seeds: number of seeds.
        settings: all settings.
        version: version of the package that ran it.
        command: command that gives the same numbers.
        seconds: computing time; None if unknown.
        figures: figure files, in every format they were saved in.
    """

    id: str
    title: str
    shows: str
    summary: Summary
    seeds: int
    settings: Mapping[str, Any]
    version: str
    command: str
    seconds: float | None
    figures: Sequence[Path]

    @property
    def claims(self) -> Sequence[Claim]:
        """Its claims, with verdicts and numbers."""
        return self.summary.claims

    @property
    def tables(self) -> Sequence[Table]:
        """Its tables of numbers."""
        return self.summary.tables

    @property
    def data(self) -> Mapping[str, Any]:
        """Data behind the figures, other than the blocks."""
        return self.summary.data

    @property
    def blocks(self) -> Sequence[Block]:
        """Its interactive panels and maps."""
        return self.summary.blocks

    @property
    def sharpest_figures(self) -> list[Path]:
        """One file for each figure: the SVG if there is one; narrow versions are left out."""
        chosen: dict[Path, Path] = {}
        for path in self.figures:
            stem = path.with_suffix("")
            if not stem.name.endswith(NARROW) and (stem not in chosen or path.suffix == ".svg"):
                chosen[stem] = path
        return list(chosen.values())

    @property
    def stills(self) -> list[Path]:
        """The figures that show what no block shows."""
        drawn = {block.figure for block in self.blocks}
        return [path for path in self.sharpest_figures if path.stem not in drawn]

    def narrow(self, figure: Path) -> Path | None:
        """The version of a figure for a phone, if there is one."""
        path = figure.with_name(f"{figure.stem}{NARROW}{figure.suffix}")
        return path if path in self.figures else None


def write_finding(finding: Finding, directory: Path) -> None:
    """Writes summary.json into the experiment's directory, where its figures are."""
    tables = [table.as_json() for table in finding.tables]
    blocks = [block.as_json() for block in finding.blocks]
    write_json_atomically(
        directory / SUMMARY_FILE,
        {
            "id": finding.id,
            "title": finding.title,
            "shows": finding.shows,
            "claims": [claim.as_json() for claim in finding.claims],
            **({"tables": tables} if tables else {}),
            **({"missing": dict(finding.summary.missing)} if finding.summary.missing else {}),
            "seeds": finding.seeds,
            "settings": dict(finding.settings),
            "version": finding.version,
            "command": finding.command,
            "seconds": finding.seconds,
            "figures": [str(file.relative_to(directory)) for file in finding.figures],
            "data": {**({_BLOCKS: blocks} if blocks else {}), **finding.data},
        },
        seals=True,
    )


def read_finding(directory: Path) -> Finding:
    """Reads summary.json of an experiment's directory, and checks that its figures are there."""
    path = directory / SUMMARY_FILE
    with naming_the_summary(directory):
        finding = _finding(read_json(path), directory)
    if finding.id != directory.name:
        raise ValueError(f"{path} is the summary of another experiment, {finding.id!r}")
    for figure in finding.sharpest_figures:
        if not figure.is_file():
            raise ValueError(f"{path} names a figure that is not there: {figure.name}")
    return finding


@contextmanager
def naming_the_summary(directory: Path) -> Iterator[None]:
    """Within it, errors in reading a summary name the file."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        path = directory / SUMMARY_FILE
        raise ValueError(f"{path} is not the summary of an experiment: {reason}") from error


def _finding(entry: Mapping[str, Any], directory: Path) -> Finding:
    summary = Summary(
        [Claim.from_json(claim) for claim in entry["claims"]],
        [block_from_json(block) for block in entry["data"].get(_BLOCKS, ())],
        {name: value for name, value in entry["data"].items() if name != _BLOCKS},
        [Table.from_json(table) for table in entry.get("tables", ())],
        {claim: str(words) for claim, words in entry.get("missing", {}).items()},
    )
    return Finding(
        id=_words(entry, "id"),
        title=_words(entry, "title"),
        shows=entry.get("shows", ""),
        summary=summary,
        seeds=require.integer("seeds", entry["seeds"], least=1),
        settings=dict(entry["settings"]),
        version=_words(entry, "version"),
        command=_words(entry, "command"),
        seconds=_seconds(entry["seconds"]),
        figures=[directory / name for name in entry["figures"]],
    )


def _seconds(seconds: Any) -> float | None:
    return None if seconds is None else require.number("seconds", seconds, least=0.0)


def _words(entry: Mapping[str, Any], name: str) -> str:
    if not isinstance(entry[name], str):
        raise require.refuse_type(name, "be words", entry[name])
    return str(entry[name])
