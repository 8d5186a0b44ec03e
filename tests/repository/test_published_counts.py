"""README, REPRODUCTION.md and the page count the same claims: those of the committed summaries."""

import json
from pathlib import Path

import pytest

from ezgreedy.findings.claims import Claim
from ezgreedy.report.page import page
from ezgreedy.report.study import Study, read_study
from ezgreedy.report.wording import key_numbers

ROOT = Path(__file__).parents[2]
SUMMARIES = sorted((ROOT / "results").glob("*/summary.json"))


@pytest.fixture(scope="module")
def study() -> Study:
    return read_study(ROOT / "results")


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", ["README.md", "REPRODUCTION.md"])
def test_a_document_has_the_sentences_that_count_verdicts(name: str, study: Study) -> None:
    text = words((ROOT / name).read_text(encoding="utf-8"))
    assert len(study.sentences) == 3
    for sentence in study.sentences:
        assert sentence in text, f"{name} needs: {sentence}"


def test_the_page_has_the_sentences_that_count_verdicts(study: Study) -> None:
    text = words(page(study)).replace("&#39;", "'")
    for sentence in study.sentences:
        assert sentence in text


def test_the_document_is_short_enough_to_read() -> None:
    lines = (ROOT / "REPRODUCTION.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 200


def test_every_statement_of_the_paper_is_counted_once(study: Study) -> None:
    sentences = [(row.statement.claim, row.experiment) for row in study.rows]
    assert len(set(sentences)) == len(sentences)
    assert len(study.papers) + len(study.ours) == len(study.rows)


@pytest.mark.parametrize("path", SUMMARIES, ids=lambda path: path.parent.name)
def test_the_numbers_beside_a_verdict_are_not_those_of_controls(path: Path) -> None:
    for entry in json.loads(path.read_text())["claims"]:
        claim = Claim.from_json(entry)
        shown = key_numbers(claim)
        assert shown or not claim.numbers
        conditions = sorted([*claim.readings, *claim.controls], key=len, reverse=True)
        for number in shown:
            named = next((name for name in conditions if number.startswith(name)), None)
            assert named is None or named in claim.readings, (claim.claim, number)
