"""A page about what `ezgreedy coverage` found: numbers, comparisons and maps in one file."""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ezgreedy import __version__
from ezgreedy.commands.coverage import SUMMARY
from ezgreedy.commands.coverage_words import (
    comparisons,
    described,
    intervals_explained,
    shown,
    shown_share,
)

# Near the top of every page made here; a page that contains it may be replaced.
MARK = '<meta name="generator" content="ezgreedy coverage'


class Row(NamedTuple):
    """The numbers of one policy, in words."""

    title: str
    first: str
    never: str


class Figure(NamedTuple):
    """A figure as base64 text."""

    name: str
    data: str


@dataclass(frozen=True)
class Coverage:
    """What one directory of `ezgreedy coverage` says."""

    environment: str
    description: str
    rows: Sequence[Row]
    comparisons: Sequence[str]
    intervals: str
    figures: Sequence[Figure]
    settings: Mapping[str, Any]


def is_coverage(directory: Path) -> bool:
    """Whether `ezgreedy coverage` made this directory."""
    return (directory / SUMMARY).is_file()


def coverage_page(directories: Sequence[Path]) -> str:
    """One self-contained page about these directories."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    from markupsafe import Markup

    return environment.get_template("coverage_page.html").render(
        coverages=[_read(directory) for directory in directories],
        mark=Markup(MARK),
        version=__version__,
    )


def _read(directory: Path) -> Coverage:
    path = directory / SUMMARY
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        return _coverage(summary, directory)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} was not made by ezgreedy coverage ({error!r})") from error


def _coverage(summary: Mapping[str, Any], directory: Path) -> Coverage:
    policies, settings = summary["policies"], summary["settings"]
    trials = settings["trials"]
    titles = summary.get("titles", {name: name for name in policies})
    rows = [
        Row(
            titles[name],
            shown(found["mean_first_visit"], "{:,.0f}", trials),
            shown_share(found["never_visited"], trials),
        )
        for name, found in policies.items()
    ]
    figures = [
        Figure(name, base64.b64encode((directory / name).read_bytes()).decode())
        for name in summary["files"]
        if name.endswith(".svg")
    ]
    cells = math.prod(summary["cells"]["counts"])
    return Coverage(
        summary["environment"],
        described(settings, cells),
        rows,
        comparisons(summary),
        intervals_explained(trials),
        figures,
        settings,
    )
