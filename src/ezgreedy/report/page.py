"""What does the study look like? One offline HTML page: verdicts, figures, interactive plots.

Text and tables come from a template and need no scripts. Plotly draws interactive blocks when a
reader scrolls near them; its script is in the page once and is read at the first plot.
"""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ezgreedy import __version__
from ezgreedy.figures import style
from ezgreedy.findings.claims import Number
from ezgreedy.findings.interactive import Block
from ezgreedy.findings.intervals import Interval
from ezgreedy.findings.paper_inventory import ITEMS
from ezgreedy.findings.paper_tables import table_cells
from ezgreedy.report import deep, deep_curves, suite_curves, wording
from ezgreedy.report.study import Study, seeds_told
from ezgreedy.report.suite_scores import (
    MEASURES_HEADER,
    SuiteScores,
    lacking,
    left_out_told,
    made_by,
    measures,
    suite_header,
)
from ezgreedy.units import counted, duration

# Near the top of every page made here; a page that contains it may be replaced.
MARK = '<meta name="generator" content="ezgreedy report'

_HERE = Path(__file__).parent
_SCRIPTS = ("page.js", "tables.js", "contents.js", "explorer.js")  # joined in this order
_NUM_MAP_COLOURS = 11
_MOST_RUNS = 300  # listed one by one
# An answer looks like the nearest verdict.
_ANSWER_LOOKS = {"yes": "reproduced", "no": "contradicted", "open": "not-run"}
_MEDIA_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


def page(study: Study) -> str:
    """The whole page."""
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        embedded=_embedded,
        number=_number,
        rows=_rows,
        plain=wording.plain,
        setting=wording.setting,
        duration=duration,
        counted=counted,
        key_numbers=wording.key_numbers,
        sides=wording.sides,
        json=_json,
        deep_id=deep_id,
        suite_id=suite_id,
        suite_header=suite_header,
        lacking=lacking,
        made_by=made_by,
        measures=measures,
        left_out_told=left_out_told,
        table_cells=table_cells,
        estimate=_estimate,
        frames_told=deep.frames_told,
        seeds_told=deep.seeds_told,
        seeds_of=seeds_told,
    )
    drawn = _drawn(study)
    return environment.get_template("page.html").render(
        study=study,
        words=wording.VERDICT_WORDS,
        wording=wording,
        title="What reproduces" if study.findings else "Training runs",
        contents=_contents(study),
        choices=_choices(study),
        items=ITEMS,
        version=__version__,
        style=_beside("page.css"),
        script=Markup("\n").join(map(_beside, _SCRIPTS)),
        plotly=Markup(get_plotlyjs()) if drawn["blocks"] or drawn["curves"] else "",
        drawn=drawn,
        answer_looks=_ANSWER_LOOKS,
        most_runs=_MOST_RUNS,
        measures_header=MEASURES_HEADER,
    )


def _contents(study: Study) -> list[tuple[str, str, int]]:
    """The sections of the page: id, words, and how deep."""
    entries = []
    if study.findings:
        entries += [("verdicts", "The paper's claims", 0), ("rest", "The rest of the paper", 0)]
        entries += [("ours", "Our own statements", 0)]
    entries += [(finding.id, finding.title, 0) for finding in study.findings]
    if study.deep is not None:
        entries.append(("deep-agents", "Deep agents", 0))
        entries += [(suite_id(found), found.suite.name, 1) for found in study.suites]
        entries += [("curves", "Curves by game", 1)] if study.deep.games else []
        entries.append(("scores", "Scores by game", 1))
    entries += [("faults", "Faults", 0)] if study.faults else []
    return entries


def _choices(study: Study) -> list[tuple[str, str, str, int, int]]:
    """What a reader can filter claims by: value, word, meaning, and how many there are."""
    rows: list[tuple[str, str, str]] = [
        (verdict, words, wording.VERDICT_MEANINGS[verdict])
        for verdict, words in wording.VERDICT_WORDS.items()
    ]
    rows.append(("no-verdict", wording.NO_VERDICT, wording.NO_VERDICT_MEANING))
    rows.append(("not-run", "not run", wording.NOT_RUN_MEANING))
    papers, ours = ([row.outcome for row in own] for own in (study.papers, study.ours))
    numbered = [(*row, papers.count(row[0]), ours.count(row[0])) for row in rows]
    every = ("all", "all", "", len(papers), len(ours))
    return [every, *(row for row in numbered if row[3] + row[4])]


def _drawn(study: Study) -> dict[str, Any]:
    """All data for the scripts."""
    shown: dict[str, Sequence[Block]] = {
        finding.id: finding.blocks for finding in study.findings if finding.blocks
    }
    shown |= {suite_id(found): suite_curves.panels(found) for found in study.suites}
    games = study.deep.games if study.deep is not None else []
    return {
        "blocks": {name: [block.as_json() for block in own] for name, own in shown.items()},
        "colours": _colours(),
        "curves": deep_curves.island(games) if games else None,
        "atlases": {
            name: [list(condition.rows.items()) for condition in atlas.conditions]
            for name, atlas in study.atlases.items()
        },
    }


def suite_id(found: SuiteScores) -> str:
    """The id of a suite's section."""
    return f"suite-{found.suite.slug}"


def deep_id(game: deep.GameStudy) -> str:
    """The id of a game's section."""
    return f"deep-{game.slug}"


def _beside(name: str) -> Markup:
    return Markup((_HERE / name).read_text(encoding="utf-8"))


def _colours() -> dict[str, Sequence[str]]:
    """The same colours as in the figures."""
    return {
        "series": [style.EPS_COLOUR, style.EZ_COLOUR, *style.OTHER_COLOURS],
        "maps": style.shades(style.SOON_TO_NEVER, _NUM_MAP_COLOURS),
    }


def _embedded(figure: Path) -> str:
    """A figure as a data URL."""
    data = base64.b64encode(figure.read_bytes()).decode("ascii")
    return f"data:{_MEDIA_TYPES[figure.suffix]};base64,{data}"


def _estimate(found: deep.Estimate) -> Markup:
    """An estimate as HTML; a dash if the interval, or everything, is missing.

    Only the value carries all its digits: there are thousands of estimates.
    """
    if found is None:
        return Markup("–")
    value, low, high = wording.number_parts(found)
    exact = found.value if isinstance(found, Interval) else found
    ends = f"[{low}, {high}]" if low else "[–]"
    return Markup('<data value="{}">{}</data> <span class=interval>{}</span>').format(
        f"{exact:.10g}", value, ends
    )


def _number(number: Number) -> Markup:
    """A number as HTML, with all its digits in the markup."""
    value, low, high = _rows(number)
    return (
        Markup("{} <span class=interval>[{}, {}]</span>").format(value, low, high) if low else value
    )


def _rows(number: Number) -> list[Markup]:
    """Value, low and high, separately."""
    texts = wording.number_parts(number)
    exact = (number.value, number.low, number.high) if isinstance(number, Interval) else (number,)
    marked = [
        Markup('<data value="{}">{}</data>').format(_exact(part), text)
        for part, text in zip(exact, texts, strict=False)
    ]
    return [*marked, *[Markup("")] * (3 - len(marked))]


def _exact(part: float | str) -> str:
    return part if isinstance(part, str) else json.dumps(part)


def _json(data: Any) -> Markup:
    """JSON that cannot end the script element around it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
