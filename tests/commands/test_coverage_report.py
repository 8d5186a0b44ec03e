"""`ezgreedy report` on what `ezgreedy coverage` wrote: one page of numbers and maps."""

import base64
import json
import re
import shutil

import html5lib
import pytest

from ezgreedy.cli import main


@pytest.fixture(scope="module")
def covered(tmp_path_factory):
    out = tmp_path_factory.mktemp("coverage") / "lake"
    words = ["coverage", "FrozenLake-v1", "--policy", "ez", "--policy", "eps"]
    assert main([*words, "--steps", "60", "--trials", "3", "--out", str(out)]) == 0
    return out


def test_the_page_has_the_numbers_the_comparison_and_every_map(covered, capsys):
    assert main(["report", str(covered)]) == 0
    assert f"wrote {covered / 'report.html'}" in capsys.readouterr().out
    text = (covered / "report.html").read_text()
    html5lib.HTMLParser(strict=True).parse(text)
    summary = json.loads((covered / "coverage.json").read_text())
    ratio = summary["comparison"]["mean_first_visit_ez_over_eps"]
    assert f"εz-greedy / ε-greedy: {ratio['value']:.3f} [{ratio['low']:.3f}," in text
    for found in summary["policies"].values():
        assert f"<td>{found['mean_first_visit']['value']:,.0f} [" in text
        assert f"<td>{found['never_visited']['value']:.1%} [" in text
    shown = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", text)]
    drawn = [(covered / name).read_bytes() for name in summary["files"] if name.endswith("svg")]
    assert shown == drawn
    assert len(drawn) >= 3
    assert not re.search(r'(src|href)="(?!data:)', text)


def test_the_page_counts_cells_as_the_terminal_does(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ezgreedy.figures.coverage_maps.draw_maps", lambda *_: [])
    words = ["coverage", "MountainCar-v0", "--bins", "12", "--steps", "5", "--trials", "2"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "2 trials of 5 steps, 144 cells" in capsys.readouterr().out
    assert main(["report", str(tmp_path)]) == 0
    assert "2 trials of 5 steps, 144 cells" in (tmp_path / "report.html").read_text()


def test_it_is_made_again_and_may_go_elsewhere_or_cover_two(covered, tmp_path):
    assert main(["report", str(covered)]) == 0
    target = tmp_path / "two.html"
    assert main(["report", str(covered), str(covered), "--to", str(target)]) == 0
    assert target.read_text().count("<section>") == 2


def test_a_directory_of_coverages_gives_a_page_of_all_of_them(covered, tmp_path, capsys):
    for name in ("b", "a"):
        shutil.copytree(covered, tmp_path / name)
    (tmp_path / "notes").mkdir()
    assert main(["report", str(tmp_path)]) == 0
    assert f"wrote {tmp_path / 'report.html'}" in capsys.readouterr().out
    assert (tmp_path / "report.html").read_text().count("<section>") == 2


def test_coverages_among_experiments_do_not_replace_their_report(covered, tmp_path, capsys):
    shutil.copytree(covered, tmp_path / "lake")
    (tmp_path / "fig1").mkdir()
    (tmp_path / "fig1" / "summary.json").write_text("{}")
    assert main(["report", str(tmp_path)]) == 2  # that summary is damaged
    assert "summary.json" in capsys.readouterr().err


@pytest.mark.parametrize("is_old", [False, True])
def test_one_trial_has_neither_an_interval_nor_a_verdict(is_old, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ezgreedy.figures.coverage_maps.draw_maps", lambda *_: [])
    words = ["coverage", "MountainCar-v0", "--steps", "300", "--trials", "1"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    summary = json.loads((tmp_path / "coverage.json").read_text())
    ratio = summary["comparison"]["mean_first_visit_ez_over_eps"]
    assert ratio == {"value": ratio["value"], "low": None, "high": None}
    if is_old:  # earlier releases wrote the value as both ends
        for interval in (ratio, *summary["policies"]["ez"].values()):
            if isinstance(interval, dict):
                interval.update(low=interval["value"], high=interval["value"])
        (tmp_path / "coverage.json").write_text(json.dumps(summary))
    assert main(["report", str(tmp_path)]) == 0
    for text in (printed, (tmp_path / "report.html").read_text().partition("<body>")[2]):
        text = text.partition("Settings")[0]
        assert f"εz-greedy / ε-greedy: {ratio['value']:.3f}" in text
        assert "One trial has no interval and decides nothing" in text
        assert "[" not in text
        for verdict in ("covers sooner", "no clear difference"):
            assert verdict not in text


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["{other}"], "OUT must all be directories of `ezgreedy coverage` if one of them is"),
        (["--markdown", "x.md"], "--markdown must be left out for `ezgreedy coverage`"),
        (["--to", "{page}"], "--to must be a new file or an earlier report"),
    ],
)
def test_what_it_cannot_do_is_refused(extra, message, covered, tmp_path, capsys):
    (tmp_path / "page.html").write_text("precious")
    words = [word.format(other=tmp_path, page=tmp_path / "page.html") for word in extra]
    assert main(["report", str(covered), *words]) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "page.html").read_text() == "precious"


def test_a_damaged_summary_is_named(tmp_path, capsys):
    (tmp_path / "coverage.json").write_text("{}")
    assert main(["report", str(tmp_path)]) == 2
    assert "coverage.json was not made by ezgreedy coverage" in capsys.readouterr().err
