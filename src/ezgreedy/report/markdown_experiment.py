"""What did one experiment find, in full? The page beside its results, ID/README.md."""

from collections.abc import Iterator, Sequence

from ezgreedy.findings.claims import Claim
from ezgreedy.findings.finding import Finding
from ezgreedy.report import wording
from ezgreedy.report.atlas import Atlas, Difference
from ezgreedy.report.markdown_text import MARK, table
from ezgreedy.report.study import Study, seeds_told
from ezgreedy.units import counted, duration


def experiment_page(finding: Finding, study: Study) -> str:
    """Every claim with its criterion, readings and numbers; figures, tables and settings."""
    return "\n".join([MARK, "", *_lines(finding, study)]).rstrip("\n") + "\n"


def facts(finding: Finding) -> str:
    """Seeds, computing time and version, in one line."""
    computing = ""
    if finding.seconds is not None:
        computing = f"{duration(finding.seconds)} of computing on shared, busy cores, "
    return f"{seeds_told(finding)}, {computing}version {finding.version}"


def _lines(finding: Finding, study: Study) -> Iterator[str]:
    yield f"# {finding.title}"
    yield ""
    if finding.shows:
        yield from (f"Shows {finding.shows}.", "")
    yield f"- Command: `{finding.command}`"
    yield f"- {facts(finding)}"
    for departure in study.departures.get(finding.id, ()):
        yield f"- Differs from the experiment's default in {departure}"
    yield ""
    yield from _not_judged(study.not_judged(finding))
    for claim in finding.claims:
        yield from _claim(claim)
    for figure in finding.sharpest_figures:
        yield from (f"![{figure.stem.replace('_', ' ')}]({figure.name})", "")
    for found in finding.tables:
        yield f"## {found.title}"
        yield ""
        if found.note:
            yield from (found.note, "")
        yield from table(found.columns, [[*map(wording.written, row)] for row in found.rows])
    if finding.id in study.atlases:
        yield from _atlas(study.atlases[finding.id])
    yield "## Settings"
    yield ""
    settings = {name: wording.setting(value) for name, value in finding.settings.items()}
    yield from table(("setting", "value"), [(f"`{n}`", f"`{v}`") for n, v in settings.items()])


def _not_judged(found: Sequence[tuple[str, str]]) -> Iterator[str]:
    if found:
        yield from ("Not judged yet, because runs are missing:", "")
        yield from (f"- {claim}{f' ({why})' if why else ''}" for claim, why in found)
        yield ""


def _claim(claim: Claim) -> Iterator[str]:
    yield f"## {claim.claim}"
    yield ""
    yield f"**{wording.verdict(claim).capitalize()}.** {claim.note}".rstrip()
    yield ""
    place = claim.statement.place or "ours, not the paper's"
    yield f"- Source: {place}"
    amended = f" *{claim.statement.amended}*" if claim.statement.amended else ""
    yield f"- Criterion: {claim.statement.criterion}{amended}"
    for title, found in (("Readings", claim.readings), ("Controls", claim.controls)):
        if found:
            yield f"- {title}: " + "; ".join(f"{name}: {side}" for name, side in found.items())
    yield ""
    rows = [(name, wording.written(number)) for name, number in claim.numbers.items()]
    yield from table(("number", "value"), rows)


def _atlas(atlas: Atlas) -> Iterator[str]:
    """One condition: the page has them all."""
    condition = atlas.conditions[atlas.first]
    yield f"## {counted(atlas.num_games, 'game')}: {condition.label}"
    yield ""
    yield atlas.sentence
    yield ""
    yield (
        "How much more εz-greedy finds than ε-greedy, largest gain first, with ε-greedy's number → "
        f"εz-greedy's; intervals over {counted(atlas.num_seeds, 'seed')}. Differences in "
        "bold are more than chance, corrected for the number of games. The page has the other "
        "conditions."
    )
    yield ""
    rows = [(game, *map(_atlas_cell, cells)) for game, cells in condition.rows.items()]
    yield from table(("game", *atlas.columns), rows)


def _atlas_cell(cell: Difference) -> str:
    told = f"{cell.value} {cell.interval}"
    told = f"**{told}**" if cell.sign else told
    return "<br>".join(part for part in (told, cell.both, cell.early) if part)
