"""The page as text: its numbers, its structure, and that it holds everything it needs."""

import base64
import itertools
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import html5lib
import pytest

from ezgreedy.experiments import registry
from ezgreedy.experiments.paper.fig1_gridworld_coverage import EXPERIMENT
from ezgreedy.experiments.run_study import run_studies
from ezgreedy.findings.finding import read_finding
from ezgreedy.findings.intervals import Interval
from ezgreedy.report import wording
from ezgreedy.report.study import departures, read_study
from ezgreedy.results.store import write_json_atomically
from support.edited_files import edit

FIG1 = EXPERIMENT.id
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="session")
def text(out: Path) -> str:
    return (out / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def tree(text: str) -> ET.Element:
    """The page, parsed by the standard's rules; whatever breaks them raises."""
    without_library = re.sub(
        r'<script type="text/plain" id="plotly">.*?</script>', "", text, flags=re.DOTALL
    )
    assert len(without_library) < len(text) / 10
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    return parser.parse(without_library)


def numbers_in(element: ET.Element) -> list[str]:
    return [data.get("value", "") for data in element.iter("data")]


def parts(number: Any) -> list[str]:
    """The numbers that a page must show for one number of a summary."""
    if isinstance(number, dict):
        return [repr(number[name]) for name in ("value", "low", "high")]
    return [str(number)]


def section(tree: ET.Element, name: str) -> ET.Element:
    (found,) = (element for element in tree.iter("section") if element.get("id") == name)
    return found


def test_every_claim_is_on_the_page_with_its_numbers_and_verdict(
    tree: ET.Element, summaries: dict[str, Any]
) -> None:
    assert list(summaries) == [FIG1, "tiny"]
    for name, summary in summaries.items():
        articles = list(section(tree, name).iter("article"))
        for article, claim in zip(articles, summary["claims"], strict=True):
            said = " ".join("".join(article.itertext()).split())
            assert claim["claim"] in said
            assert claim["note"] in said
            assert claim["criterion"] in said
            assert claim["source"].removeprefix("paper, ") in said
            verdict = claim["verdict"]
            assert (wording.VERDICT_WORDS[verdict] if verdict else wording.NO_VERDICT) in said
            assert numbers_in(article) == [
                part for number in claim["numbers"].values() for part in parts(number)
            ]


def test_what_is_read_is_what_is_in_the_markup_rounded(tree: ET.Element) -> None:
    for data in tree.iter("data"):
        shown = (data.text or "").replace(wording.NARROW_SPACE, "").replace("−", "-")
        if not re.fullmatch(r"-?[\d.]+", shown):
            continue
        decimals = len(shown.partition(".")[2])
        assert float(shown) == pytest.approx(
            float(data.get("value", "")), abs=0.51 * 10.0**-decimals
        )


def test_the_table_of_verdicts_comes_first_and_leads_to_the_claims(
    tree: ET.Element, summaries: dict[str, Any]
) -> None:
    sections = [element for element in tree.iter("section")]
    assert [element.get("id") for element in sections[:3]] == ["verdicts", "rest", "ours"]
    claims = [
        (name, index, claim)
        for name, summary in summaries.items()
        for index, claim in enumerate(summary["claims"], start=1)
    ]
    papers = [entry for entry in claims if entry[2]["source"] != "ours"]
    own = [entry for entry in claims if entry[2]["source"] == "ours"]
    assert papers
    assert own
    for place, entries in ((sections[0], papers), (sections[2], own)):
        check_rows(place, entries, summaries)


def test_claims_that_were_judged_come_before_those_that_were_not_run(out: Path) -> None:
    study = read_study(out)
    for rows in (study.papers, study.ours):
        is_judged = [row.claim is not None for row in rows]
        assert is_judged == sorted(is_judged, reverse=True)
    assert {row.claim is None for row in study.papers} == {True, False}


def check_rows(
    place: ET.Element, claims: list[tuple[str, int, Any]], summaries: dict[str, Any]
) -> None:
    is_ours = place.get("id") == "ours"
    rows = [row for row in place.iter("tr") if row.get("data-id")]
    statements = [
        statement
        for study in (*registry.experiments().values(), *run_studies().values())
        for statement in study.statements
        if statement.is_ours == is_ours
    ]
    num_tiny = int(is_ours)
    assert len(rows) == len(statements) + num_tiny
    judged = [row for row in rows if list(row.iter("a"))]
    shown_rows = [row for row in rows if row.get("data-verdict") != "not-run"]
    assert shown_rows == judged
    for row, (name, index, claim) in zip(judged, claims, strict=True):
        assert (row.findtext("th") or "").strip() == claim["claim"]
        (link,) = row.iter("a")
        assert link.get("href") == f"#{name}-{index}"
        (chip,) = (span for span in row.iter("span") if "chip" in span.get("class", ""))
        assert chip.get("class") == f"chip {claim['verdict'] or 'no-verdict'}"
        assert row.get("data-verdict") == (claim["verdict"] or "no-verdict")
        keys = (claim["key_numbers"] or list(claim["numbers"]))[:3]
        shown = [part for key in keys for part in parts(claim["numbers"][key])]
        assert numbers_in(row) == [*shown, str(summaries[name]["seeds"])]


def test_settings_command_seeds_and_seconds_are_told(
    tree: ET.Element, summaries: dict[str, Any]
) -> None:
    for name, summary in summaries.items():
        place = section(tree, name)
        codes = [code.text for code in place.iter("code")]
        assert summary["command"] in codes
        for setting, value in summary["settings"].items():
            assert codes[codes.index(setting) + 1] == wording.setting(value)
        (facts,) = (found for found in place.iter("dl") if found.get("class") == "facts")
        assert numbers_in(facts) == [str(summary["seeds"]), str(summary["seconds"])]


def test_figures_are_in_the_page_as_they_are_on_disk(tree: ET.Element, out: Path) -> None:
    (image,) = section(tree, "tiny").iter("img")
    kind, _, data = (image.get("src") or "").partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(data) == (out / "tiny" / "values.svg").read_bytes()
    assert image.get("alt")


def test_a_quick_look_says_so_before_anything_else_and_has_no_verdicts(tree: ET.Element) -> None:
    (banner,) = (e for e in tree.iter("div") if "banner" in (e.get("class") or ""))
    assert "They are no evidence" in "".join(banner.itertext())
    chips = [e.get("class") for e in tree.iter("span") if (e.get("class") or "").startswith("chip")]
    assert {*chips} == {"chip no-verdict", "chip not-run"}


def test_contents_lead_to_every_section(tree: ET.Element, summaries: dict[str, Any]) -> None:
    (nav,) = tree.iter("nav")
    led = [(link.get("href") or "")[1:] for link in nav.iter("a")]
    assert led == ["verdicts", "rest", "ours", *summaries]


def test_what_a_plot_shows_is_not_shown_twice(tree: ET.Element) -> None:
    drawn, still = (
        [e.get("class") for e in section(tree, name).iter("figure")] for name in (FIG1, "tiny")
    )
    assert drawn == ["interactive of-maps"]
    assert still == ["static", "interactive of-curves"]


def test_a_page_of_runs_alone_is_not_titled_as_a_reproduction(runs: Path) -> None:
    from ezgreedy.report.page import page

    text = page(read_study(runs))
    assert "<h1>Training runs</h1>" in text
    assert "What reproduces" not in text
    assert "claims of the paper" not in text


def test_a_figure_for_a_phone_is_chosen_by_the_reader_s_width(tmp_path: Path) -> None:
    from ezgreedy.report.page import page

    place = tmp_path / "ablation-readings"
    shutil.copytree(RESULTS / "ablation-readings", place)
    narrow = place / "readings_narrow.svg"
    narrow.write_bytes((place / "readings.svg").read_bytes().replace(b"<svg ", b"<svg id='n' ", 1))
    figures = ["readings.svg", narrow.name]
    edit(place / "summary.json", lambda summary: summary.update(figures=figures))
    text = page(read_study(tmp_path))
    (source,) = re.findall(r'<source media="\(max-width: 46rem\)" srcset="[^,]+,([^"]+)">', text)
    assert base64.b64decode(source) == narrow.read_bytes()


def test_nothing_is_fetched(tree: ET.Element, text: str) -> None:
    for element in tree.iter():
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            assert re.match(r"#|data:|$", element.get(name, "")), (element.tag, element.get(name))
    style = "".join(sheet.text or "" for sheet in tree.iter("style"))
    assert "url(" not in style
    assert "@import" not in style
    assert "default-src 'none'" in text


def test_names_within_the_page_are_unique_and_lead_somewhere(tree: ET.Element) -> None:
    names = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(set(names)) == len(names)
    for element in tree.iter():
        for attribute in ("for", "aria-labelledby", "data-copies"):
            assert element.get(attribute) in {None, *names}
        if element.get("href", "").startswith("#"):
            assert element.get("href", "")[1:] in names


def test_headings_tables_and_inputs_are_labelled(tree: ET.Element) -> None:
    levels = [int(element.tag[1]) for element in tree.iter() if element.tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert all(table.find("caption") is not None for table in tree.iter("table"))
    labelled = {label.get("for") for label in tree.iter("label")}
    assert {field.get("id") for field in tree.iter("input")} <= labelled


def test_a_run_that_is_not_the_default_says_so(tree: ET.Element) -> None:
    (notice,) = (e for e in section(tree, FIG1).iter("div") if e.get("class") == "notice")
    said = "".join(notice.itertext())
    assert "seeds: 2 instead of 5" in said
    assert "epsilons: [0.1, 0.5, 1.0] instead of [0.1, 0.25, 0.5, 0.75, 1.0]" in said


def test_long_lists_are_told_by_their_ends(tmp_path: Path) -> None:
    place = tmp_path / "atari-exploration"
    shutil.copytree(RESULTS / "atari-exploration", place)
    edit(place / "summary.json", lambda summary: summary["settings"].update(games=["Freeway"]))
    (told,) = (words for words in departures(read_finding(place)) if words.startswith("games"))
    assert told == "games: ['Freeway'] instead of 57 values from Alien to Zaxxon"


def test_the_page_is_small_enough_to_send(text: str) -> None:
    assert len(text.encode()) < 6_000_000


def test_what_authors_write_cannot_become_markup(tmp_path: Path) -> None:
    from ezgreedy.report.page import page

    hostile = "</script><script>alert(1)</script><b>&amp;"
    summary = {
        "id": "hostile",
        "title": hostile,
        "shows": hostile,
        "claims": [
            {"claim": hostile, "source": "ours", "criterion": hostile, "amended": hostile}
            | {"readings": {hostile: "holds"}, "controls": {hostile: "holds"}, "seeds": 5}
            | {"note": hostile, "numbers": {hostile: 1}, "key_numbers": []}
        ],
        "seeds": 1,
        "settings": {hostile: hostile},
        "version": "0",
        "command": hostile,
        "seconds": 1.0,
        "figures": [],
        "data": {
            "interactive": [
                {
                    "kind": "curves",
                    "title": hostile,
                    "x_label": hostile,
                    "y_label": hostile,
                    "log_x": False,
                    "log_y": False,
                    "series": [{"label": hostile, "x": [1], "mean": [1]}],
                }
            ]
        },
    }
    (tmp_path / "hostile").mkdir()
    write_json_atomically(tmp_path / "hostile" / "summary.json", summary)
    text = page(read_study(tmp_path))
    assert hostile not in text
    assert "<script>alert" not in text
    assert text.count("<script") == text.count("</script>") == 3


def test_intervals_read_from_a_summary_are_those_written(out: Path, summaries: Any) -> None:
    claims = read_study(out).findings[0].claims
    for claim, entry in zip(claims, summaries[FIG1]["claims"], strict=True):
        assert all(isinstance(number, Interval) for number in claim.numbers.values())
        assert claim.as_json() == entry
