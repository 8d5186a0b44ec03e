"""What did the deep agents score? Tables of suites, games and runs."""

from collections.abc import Iterator

from ezgreedy.findings.paper_tables import table_cells
from ezgreedy.report import wording
from ezgreedy.report.deep import (
    DeepStudy,
    GameStudy,
    frames_told,
    label_told,
    seeds_told,
    told,
)
from ezgreedy.report.markdown_text import table
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
from ezgreedy.units import counted


def suite_lines(found: SuiteScores) -> Iterator[str]:
    """Scores over the games of one suite."""
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
    yield from table(suite_header(found), [cells[:-1] for cells in table_cells(found.rows)])
    if made_by(found):
        yield from [made_by(found), ""]
    if measures(found):
        yield from table(MEASURES_HEADER, measures(found))
    absent = lacking(found)
    if absent:
        yield from ["Missing:", ""]
        yield from (f"- {label}: {words}" for label, words in absent.items())
        yield ""
    if found.comparison is not None:
        yield from _equal_terms(found.comparison)


def _equal_terms(equal: Comparison) -> Iterator[str]:
    games = counted(len(equal.games), "game")
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
    yield from table(head, rows)
    if equal.left_out:
        yield f"Left out: {left_out_told(equal)}."
        yield ""


def deep_lines(study: DeepStudy) -> Iterator[str]:
    """Scores by game and agent, answers, and all runs."""
    yield "## Deep agents"
    yield ""
    yield (
        "Mean scores of whole games over the seeds that got furthest. Final is each run's last "
        "evaluation, best its highest; training return is over the episodes of the last 100K "
        "frames. Brackets hold t intervals over seeds, three or more; an answer needs five seeds, "
        "and is corrected for the number of games of which the same is asked. A plumbing check, of "
        "one seed or of an Atari game at fewer than 400K frames, says only that everything works."
    )
    yield ""
    for reason in study.left_out:
        yield f"- Left out: {reason}"
    if study.left_out:
        yield ""
    head = ("game", "agent", "frames", "seeds", "final", "best", "training return", "exploratory")
    yield from table(head, [row for game in study.games for row in _deep_rows(game)])
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
    yield from table(("run", "frames", "command", "commit"), runs)


def _deep_rows(game: GameStudy) -> Iterator[tuple[str, ...]]:
    for row in game.rows:
        numbers = (row.final, row.best, row.training, row.explored)
        place = game.name, label_told(row.group), frames_told(row.group), seeds_told(row.group)
        yield (*place, *map(told, numbers))
