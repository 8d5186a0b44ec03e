"""What does the study look like as a document? REPRODUCTION.md: claims, numbers and verdicts."""

from collections.abc import Iterable, Iterator, Sequence

from ezgreedy.findings.claims import Claim
from ezgreedy.findings.finding import Finding
from ezgreedy.findings.paper_inventory import ITEMS
from ezgreedy.findings.paper_tables import table_cells
from ezgreedy.report import wording
from ezgreedy.report.atlas import Atlas, Difference
from ezgreedy.report.deep import (
    DeepStudy,
    GameStudy,
    frames_told,
    seeds_told,
    told,
)
from ezgreedy.report.study import Row, Study, count
from ezgreedy.report.suite_scores import (
    MEASURES_HEADER,
    Comparison,
    SuiteScores,
    lacking,
    left_out_told,
    made_by,
    measures,
    suite_header,
)
from ezgreedy.units import duration

# The first line of every document made here; a document that starts with it may be replaced.
MARK = "<!-- Made by `ezgreedy report`; changes are lost when it is made again. -->"


def document(study: Study) -> str:
    """The whole document."""
    parts = [MARK, "", *_opening(study)]
    if study.findings:
        parts += [*_verdicts(study), *_sections(study)]
    for found in study.suites:
        parts += _suite(found)
    if study.deep is not None:
        parts += _deep(study.deep)
    return "\n".join(parts) + "\n"


def _opening(study: Study) -> Iterator[str]:
    yield "# What reproduces"
    yield ""
    yield (
        "Every claim of *Temporally-Extended ε-Greedy Exploration* (Dabney, Ostrovski & Barreto) "
        "that was judged, with the numbers behind its verdict. Brackets hold 95 % bootstrap "
        "intervals unless a note says otherwise."
    )
    yield ""
    if study.findings:
        yield from _counts(study)


def _counts(study: Study) -> Iterator[str]:
    """The number of statements with each outcome, the paper's and ours apart."""
    yield " ".join(study.sentences)
    yield ""
    paper, ours = count(study.papers), count(study.ours)
    rows = [
        (f"**{words}**", str(paper.verdicts[verdict]), str(ours.verdicts[verdict]), meaning)
        for verdict, words in wording.VERDICT_WORDS.items()
        for meaning in [wording.VERDICT_MEANINGS[verdict]]
    ]
    few = str(paper.too_few_seeds), str(ours.too_few_seeds)
    rows += [
        (f"**{wording.NO_VERDICT}**", *few, wording.NO_VERDICT_MEANING),
        ("**not run**", str(paper.not_judged), str(ours.not_judged), wording.NOT_RUN_MEANING),
    ]
    yield from _table(("outcome", "the paper's claims", "ours", "meaning"), rows)


def _verdicts(study: Study) -> Iterator[str]:
    head = ("claim", "where", "experiment", "our numbers", "verdict", "seeds")
    yield "## The paper's claims"
    yield ""
    yield from _table(head, map(_verdict_row, study.papers))
    yield "## The rest of the paper"
    yield ""
    rows = [
        (
            item.says,
            item.place,
            f"`{item.held_by}`" if item.held_by else f"not run: {item.not_run}",
            f"`{item.command}`" if item.command else "",
        )
        for item in ITEMS
    ]
    yield from _table(("what", "where", "held by", "command"), rows)
    yield "## Our own statements"
    yield ""
    yield from _table(head, map(_verdict_row, study.ours))


def _verdict_row(row: Row) -> tuple[str, ...]:
    if row.claim is None:
        why = "not run" if not row.is_run else "not judged: runs are missing"
        place = row.statement.place
        return row.statement.claim, place, f"`{row.experiment}`", "", f"{why}: `{row.command}`", ""
    claim = row.claim
    return (
        claim.claim,
        row.statement.place,
        f"[{row.experiment}](#{row.experiment})",
        "<br>".join(_named(name, claim) for name in wording.key_numbers(claim)),
        f"**{wording.verdict(claim)}**",
        str(claim.num_seeds),
    )


def _named(name: str, claim: Claim) -> str:
    return f"{name}: {wording.written(claim.numbers[name])}"


def _sections(study: Study) -> Iterator[str]:
    for finding in study.findings:
        yield from _section(finding, study)


def _section(finding: Finding, study: Study) -> Iterator[str]:
    yield f"## {finding.id}"
    yield ""
    yield f"{finding.title}. Shows {finding.shows}." if finding.shows else f"{finding.title}."
    yield ""
    yield f"- Command: `{finding.command}`"
    computing = ""
    if finding.seconds is not None:
        computing = f"{duration(finding.seconds)} of computing on one core, "
    seeds = wording.counted(finding.seeds, "seed")
    yield f"- {seeds}, {computing}version {finding.version}"
    for departure in study.departures.get(finding.id, ()):
        yield f"- Differs from the experiment's default in {departure}"
    yield ""
    for claim in finding.claims:
        yield from _claim(claim)
    for table in finding.tables:
        yield f"### {table.title}"
        yield ""
        if table.note:
            yield table.note
            yield ""
        yield from _table(table.columns, [[*map(wording.written, row)] for row in table.rows])
    if finding.id in study.atlases:
        yield from _atlas(study.atlases[finding.id])
    yield "Settings:"
    yield ""
    settings = {name: wording.setting(value) for name, value in finding.settings.items()}
    yield from _table(("setting", "value"), [(f"`{n}`", f"`{v}`") for n, v in settings.items()])


def _claim(claim: Claim) -> Iterator[str]:
    yield f"### {claim.claim}"
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
    yield from _table(("number", "value"), rows)


def _atlas(atlas: Atlas) -> Iterator[str]:
    """One condition: the page has them all."""
    condition = atlas.conditions[atlas.first]
    yield f"### {wording.counted(atlas.num_games, 'game')}: {condition.label}"
    yield ""
    yield (
        "How much more εz-greedy finds than ε-greedy, largest gain first, with ε-greedy's number → "
        f"εz-greedy's; intervals over {wording.counted(atlas.num_seeds, 'seed')}. Differences in "
        "bold are more than chance, corrected for the number of games. The page has the other "
        "conditions."
    )
    yield ""
    rows = [(game, *map(_atlas_cell, cells)) for game, cells in condition.rows.items()]
    yield from _table(("game", *atlas.columns), rows)


def _atlas_cell(cell: Difference) -> str:
    told = f"{cell.value} {cell.interval}"
    told = f"**{told}**" if cell.sign else told
    return "<br>".join(part for part in (told, cell.both, cell.early) if part)


def _suite(found: SuiteScores) -> Iterator[str]:
    suite = found.suite
    yield f"## {suite.name}: scores over games"
    yield ""
    yield (
        f"Runs on {len(found.played)} of {len(suite.games)} games. A score of 0 is the random "
        f"agent's; 1 is {suite.unit}. {suite.source} Median and mean are over games; the "
        f"{suite.gap} is 1 − the mean of min(1, score). Final is the evaluation at "
        "the row's frames, best the highest of each run until then. Compare rows only where "
        "frames, games and seeds agree."
    )
    yield ""
    yield from _table(suite_header(found), [cells[:-1] for cells in table_cells(found.rows)])
    if made_by(found):
        yield from [made_by(found), ""]
    if measures(found):
        yield from _table(MEASURES_HEADER, measures(found))
    absent = lacking(found)
    if absent:
        yield from ["Missing:", ""]
        yield from (f"- {label}: {words}" for label, words in absent.items())
        yield ""
    if found.comparison is not None:
        yield from _equal_terms(found.comparison)


def _equal_terms(equal: Comparison) -> Iterator[str]:
    games = wording.counted(len(equal.games), "game")
    yield (
        f"At {wording.plain(equal.frames)} frames, interquartile means over the {games} that all "
        f"of these agents played ({', '.join(equal.games)}), and the probability that a run of "
        "the row's agent scores higher than one of the column's agent, over the same games and "
        "each agent's seeds:"
    )
    yield ""
    labels = list(equal.standings)
    head = ("agent", "seeds", "interquartile mean", *(f"beats {label}" for label in labels))
    rows = [
        (
            label,
            str(standing.num_seeds),
            told(standing.interquartile_mean),
            *(
                told(equal.better[label, other]) if (label, other) in equal.better else "–"
                for other in labels
            ),
        )
        for label, standing in equal.standings.items()
    ]
    yield from _table(head, rows)
    if equal.left_out:
        yield f"Left out: {left_out_told(equal)}."
        yield ""


def _deep(study: DeepStudy) -> Iterator[str]:
    yield "## Deep agents"
    yield ""
    yield (
        "Mean scores of whole games over the seeds that got furthest. Final is each run's last "
        "evaluation, best its highest; training return is over the episodes of the last 100K "
        "frames. Brackets hold t intervals over seeds, three or more; an answer needs five seeds, "
        "and is corrected for the number of games of which the same is asked."
    )
    yield ""
    for reason in study.left_out:
        yield f"- Left out: {reason}"
    if study.left_out:
        yield ""
    head = ("game", "agent", "frames", "seeds", "final", "best", "training return", "exploratory")
    yield from _table(head, [row for game in study.games for row in _deep_rows(game)])
    for game in study.games:
        for answer in game.answers:
            verdict = f"**{answer.verdict.capitalize()}.**"
            yield f"- {game.name}: {answer.question} {verdict} {answer.because}"
    yield ""
    yield "Runs:"
    yield ""
    runs = [
        (
            f"`{run.path.name}`",
            wording.plain(run.frames),
            f"`{run.manifest['command']}`" if run.manifest.get("command") else "–",
            f"`{run.manifest['commit']}`" if run.manifest.get("commit") else "–",
        )
        for run in study.runs
    ]
    yield from _table(("run", "frames", "command", "commit"), runs)


def _deep_rows(game: GameStudy) -> Iterator[tuple[str, ...]]:
    for row in game.rows:
        numbers = (row.final, row.best, row.training, row.explored)
        place = game.name, row.group.label, frames_told(row.group), seeds_told(row.group)
        yield (*place, *map(told, numbers))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from (_row(row) for row in rows)
    yield ""


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
