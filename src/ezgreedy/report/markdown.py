"""What does the study look like as a document? REPRODUCTION.md, and pages for the details.

The document is short: what came out, every claim of the paper with a few numbers, and a paragraph
and a figure for each experiment. Our own claims have a page, and so have the details of each
experiment, beside its results.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ezgreedy.findings.claims import Claim
from ezgreedy.findings.finding import Finding
from ezgreedy.findings.paper_inventory import ITEMS
from ezgreedy.report import wording
from ezgreedy.report.markdown_deep import deep_lines, suite_lines
from ezgreedy.report.markdown_experiment import experiment_page, facts
from ezgreedy.report.markdown_text import MARK, table
from ezgreedy.report.study import Row, Study
from ezgreedy.units import counted

DEEP_PAGE = "deep-agents.md"
OWN_PAGE = "our-claims.md"
EXPERIMENT_PAGE = "README.md"
HEAD = ("claim", "where", "our numbers", "verdict", "seeds", "experiment")


def documents(study: Study, file: Path) -> dict[Path, str]:
    """The document and the pages that it links to, by where they go.

    Args:
        study: everything to show.
        file: where the document goes; links are relative to it.
    """
    pages = {
        study.directories[finding.id] / EXPERIMENT_PAGE: experiment_page(finding, study)
        for finding in study.findings
    }
    place = _deep_place(study)
    if place is not None:
        pages[place] = _page(_deep_page(study))
    if study.findings and study.ours:
        place = _place(study, OWN_PAGE)
        pages[place] = _page(_own_page(study, place.parent))
    return {file: document(study, file.parent), **pages}


def document(study: Study, home: Path = Path()) -> str:
    """The document itself; without experiments, all about the runs.

    Args:
        study: everything to show.
        home: directory of the document.
    """
    parts = [*_opening(study)]
    if study.findings:
        parts += [*_verdicts(study, home), *_sections(study, home)]
    else:
        parts += _deep_page(study, is_own=False)
    return _page(parts)


def _page(lines: Iterable[str]) -> str:
    return "\n".join([MARK, "", *lines]).rstrip("\n") + "\n"


def _opening(study: Study) -> Iterator[str]:
    if not study.findings:
        yield from ("# Training runs", "")
        return
    yield "# What reproduces"
    yield ""
    yield (
        "Every claim of *Temporally-Extended ε-Greedy Exploration* (Dabney, Ostrovski & Barreto), "
        "and what came out. Brackets hold 95 % intervals over seeds. A claim links to its "
        "experiment, whose page has the criterion, all readings, controls and numbers."
    )
    yield ""
    if study.quick:
        yield from (f"**{wording.quick_notice(len(study.quick), len(study.findings))}**", "")
    yield from (f"- {sentence}" for sentence in study.sentences)
    yield ""
    meanings = [
        f"*{wording.VERDICT_WORDS[verdict]}*: {meaning}"
        for verdict, meaning in wording.VERDICT_MEANINGS.items()
    ]
    meanings.append(f"*{wording.NO_VERDICT}*: {wording.NO_VERDICT_MEANING}")
    meanings.append("*runs are missing*: fewer runs are finished than its criterion asks for")
    yield f"{'; '.join(meanings)}."
    yield ""


def _verdicts(study: Study, home: Path) -> Iterator[str]:
    yield from ("## The paper's claims", "")
    yield from table(HEAD, (_verdict_row(row, study, home) for row in study.papers))
    yield from ("## The rest of the paper", "")
    rows = [
        (
            item.says,
            item.place,
            f"held by `{item.held_by}`" if item.held_by else f"not run: {item.not_run}",
            f"`{item.command}`" if item.command else "",
        )
        for item in ITEMS
    ]
    yield from table(("what", "where", "state", "command"), rows)
    if study.ours:
        link = _link(_place(study, OWN_PAGE), home)
        yield from (
            f"What we asked beyond the paper is on a page of its own: [our claims]({link}).",
            "",
        )


def _own_page(study: Study, home: Path) -> Iterator[str]:
    yield from ("# Our own claims", "")
    yield (
        "Questions that the paper does not answer: the criteria are ours, and were committed "
        "before the runs; where one was amended later, the experiment's page says so. Brackets "
        "hold 95 % intervals over seeds."
    )
    yield ""
    yield from table(HEAD, (_verdict_row(row, study, home) for row in study.ours))


def _verdict_row(row: Row, study: Study, home: Path) -> tuple[str, ...]:
    place = row.statement.place
    if row.claim is None:
        why = "runs are missing" if row.is_run else "not run"
        command = f"`{row.command}`"
        return row.statement.claim, place, command, why, "", f"`{row.experiment}`"
    claim = row.claim
    page = _link(study.directories[row.experiment] / EXPERIMENT_PAGE, home)
    return (
        claim.claim,
        place,
        "<br>".join(_numbers(claim)),
        f"**{wording.verdict(claim)}**",
        str(claim.num_seeds) if claim.sample == "seed" else f"{claim.num_seeds} {claim.sample}s",
        f"[{row.experiment}]({page})",
    )


def _numbers(claim: Claim) -> Iterator[str]:
    if len(claim.readings) > 1:
        yield wording.sides(claim.readings)
    for name in wording.key_numbers(claim):
        yield f"{name}: {wording.written(claim.numbers[name])}"


def _sections(study: Study, home: Path) -> Iterator[str]:
    yield from ("## Experiments", "")
    for finding in study.findings:
        yield from _section(finding, study, home)
    place = _deep_place(study)
    if place is not None and study.deep is not None:
        yield from ("### Deep agents", "")
        runs = counted(len(study.deep.runs), "run")
        games = counted(len(study.deep.games), "game")
        yield f"{runs} on {games}: [scores, answers and commands]({_link(place, home)})."


def _section(finding: Finding, study: Study, home: Path) -> Iterator[str]:
    directory = study.directories[finding.id]
    yield f"### {finding.id}"
    shows = f" Shows {finding.shows}." if finding.shows else ""
    more = _link(directory / EXPERIMENT_PAGE, home)
    yield (
        f"**{finding.title}.**{shows} {_outcome(finding)}`{finding.command}`; {facts(finding)}. "
        f"[Criteria, readings, numbers and settings]({more})"
    )
    yield ""
    if finding.sharpest_figures:
        figure = finding.sharpest_figures[0]
        yield from (f"![{figure.stem.replace('_', ' ')}]({_link(figure, home)})", "")


def _outcome(finding: Finding) -> str:
    """How many of its claims have each verdict, the paper's and ours apart."""
    told = []
    for whose, is_ours in (("The paper's claims", False), ("Ours", True)):
        claims = [claim for claim in finding.claims if claim.statement.is_ours == is_ours]
        words = [wording.verdict(claim) for claim in claims]
        counts = {word: words.count(word) for word in dict.fromkeys(words)}
        if counts:
            told.append(f"{whose}: {', '.join(f'{n} {word}' for word, n in counts.items())}. ")
    return "".join(told)


def _deep_place(study: Study) -> Path | None:
    """Where the page of deep agents goes; None if the document itself is about them."""
    if study.deep is None or not study.findings:
        return None
    return _place(study, DEEP_PAGE)


def _place(study: Study, name: str) -> Path:
    """A page beside the experiments' directories."""
    return study.directories[study.findings[0].id].parent / name


def _deep_page(study: Study, *, is_own: bool = True) -> Iterator[str]:
    if is_own:
        yield from ("# Deep agents", "")
    for found in study.suites:
        yield from suite_lines(found)
    if study.deep is not None:
        yield from deep_lines(study.deep)


def _link(target: Path, home: Path) -> str:
    return Path(os.path.relpath(target, home)).as_posix()
