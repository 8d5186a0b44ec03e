"""Claims: their sources and criteria, and verdicts that follow from readings only."""

import re
from dataclasses import replace
from typing import Any

import pytest

from ezgreedy.experiments import registry
from ezgreedy.experiments.run_study import run_studies
from ezgreedy.findings.claims import AS_STATED, OURS, Claim, Statement
from ezgreedy.findings.intervals import Interval
from ezgreedy.findings.judging import above, all_of, below, verdict_of
from ezgreedy.findings.paper_inventory import ITEMS

STATEMENTS = [
    statement
    for study in (*registry.experiments().values(), *run_studies().values())
    for statement in study.statements
]
HOLDS, UNDECIDED, CONTRADICTED = "holds", "undecided", "contradicted"


def stated(**changes: str) -> Statement:
    return Statement(**{"claim": "It holds.", "source": OURS, "criterion": "A number.", **changes})


def judged(
    readings: dict[str, Any], controls: dict[str, Any] | None = None, seeds: int = 5
) -> Claim:
    return Claim(stated(), readings, {"a": 1}, seeds, controls or {}, key_numbers=["a"])


@pytest.mark.parametrize("source", [OURS, "paper, Section 5.1 and Figure 3a"])
def test_a_source_is_the_paper_or_ours(source: str) -> None:
    statement = stated(source=source)
    assert statement.is_ours == (source == OURS)
    assert statement.place == ("" if source == OURS else "Section 5.1 and Figure 3a")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "Figure 3a"}, "source must be 'ours' or begin with 'paper, '; got 'F"),
        ({"source": ""}, "source must be 'ours' or begin with 'paper, '; got ''"),
        ({"criterion": ""}, "criterion must be words"),
        ({"claim": ""}, "claim must be words"),
    ],
)
def test_a_statement_without_a_source_or_a_criterion_is_refused(
    changes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        stated(**changes)


@pytest.mark.parametrize(
    ("readings", "verdict"),
    [
        ([HOLDS, HOLDS], "reproduced"),
        ([HOLDS, UNDECIDED], "reading-dependent"),
        ([HOLDS, CONTRADICTED], "reading-dependent"),
        ([UNDECIDED, UNDECIDED], "undecided"),
        ([UNDECIDED, CONTRADICTED], "contradicted"),
        ([CONTRADICTED], "contradicted"),
    ],
)
def test_a_verdict_follows_from_the_readings(readings: list[Any], verdict: str) -> None:
    assert verdict_of(readings) == verdict
    named = {f"reading {place}": side for place, side in enumerate(readings)}
    assert judged(named).verdict == verdict


@pytest.mark.parametrize("side", [HOLDS, UNDECIDED, CONTRADICTED])
def test_controls_never_change_a_verdict(side: str) -> None:
    for reading in (HOLDS, UNDECIDED, CONTRADICTED):
        without = judged({AS_STATED: reading})
        assert judged({AS_STATED: reading}, {"cap 100": side}).verdict == without.verdict


def test_fewer_than_five_seeds_give_no_verdict() -> None:
    assert judged({AS_STATED: HOLDS}, seeds=4).verdict is None
    assert judged({AS_STATED: HOLDS}, seeds=5).verdict == "reproduced"


def test_a_claim_needs_a_reading() -> None:
    with pytest.raises(ValueError, match="readings must hold at least one; got 0"):
        judged({})
    with pytest.raises(ValueError, match="side must be one of"):
        judged({AS_STATED: "perhaps"})


def test_an_interval_decides_only_if_all_of_it_lies_on_one_side() -> None:
    intervals = [Interval(1.0, *ends) for ends in ((0.5, 2.0), (0.0, 2.0), (-2.0, -1.0))]
    assert [above(interval) for interval in intervals] == [HOLDS, UNDECIDED, CONTRADICTED]
    assert [below(interval) for interval in intervals] == [CONTRADICTED, UNDECIDED, HOLDS]
    assert above(Interval(1.0, 0.5, 2.0), 3.0) == CONTRADICTED


def test_a_claim_in_parts_holds_if_all_do() -> None:
    assert all_of([HOLDS, HOLDS]) == HOLDS
    assert all_of([HOLDS, UNDECIDED]) == UNDECIDED
    assert all_of([HOLDS, UNDECIDED, CONTRADICTED]) == CONTRADICTED
    with pytest.raises(ValueError, match="sides must hold at least one"):
        all_of([])


def test_claims_survive_json() -> None:
    statement = stated(amended="Changed.", source="paper, Table 1")
    numbers = {"ratio": Interval(0.5, 0.4, 0.6), "seeds": 3, "word": "x"}
    claim = Claim(
        statement, {"a": "holds", "b": "undecided"}, numbers, 7, {"c": "holds"}, "Yes.", ("ratio",)
    )
    assert Claim.from_json(claim.as_json()) == claim
    assert claim.as_json()["verdict"] == "reading-dependent"
    over_games = replace(claim, sample="game")
    assert Claim.from_json(over_games.as_json()) == over_games


def test_every_statement_is_a_sentence_of_its_own() -> None:
    sentences = [statement.claim for statement in STATEMENTS]
    assert all(sentence.endswith(".") for sentence in sentences)
    pairs = [(statement.claim, statement.source) for statement in STATEMENTS]
    assert len(set(pairs)) == len(pairs) > 30


def places() -> str:
    return "; ".join([*(s.place for s in STATEMENTS), *(item.place for item in ITEMS)])


@pytest.mark.parametrize(
    "what",
    [
        *(f"Figure {number}" for number in range(1, 11)),
        *(f"Figure 3{part}" for part in "abcd"),
        *(f"Figure {panel}" for panel in ("1a", "1b", "2b", "4a", "4b")),
        *(f"Table {number}" for number in range(1, 6)),
        *(f"Section {number}" for number in ("4", "4.1", "4.2", "5", "5.1", "5.2", "6")),
        *(f"Appendix {letter}" for letter in "ABCD"),
        "Property 1",
        "Definition 1",
        "Algorithm 1",
        "limitation (i)",
        "limitation (ii)",
        "limitation (iii)",
    ],
)
def test_everything_in_the_paper_has_a_row(what: str) -> None:
    assert re.search(rf"{re.escape(what)}(?![0-9.]*[0-9])", places()), what


def test_an_item_of_the_inventory_is_held_or_was_not_run_for_a_reason() -> None:
    from pathlib import Path

    root = Path(__file__).parents[2]
    for item in ITEMS:
        assert bool(item.held_by) != bool(item.not_run), item
        assert not item.held_by or (root / item.held_by).exists(), item.held_by
        assert not (item.command and item.held_by), item
