"""Curves under filters, sorted tables and much data, in a real Chromium.

Real runs are tiny ones of MinAtar. The page of 57 games × 8 agents × 5 seeds is of GENERATED
numbers (`support.generated_runs`): it is about how much a page can hold, and about nothing else.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import html5lib
import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from ezgreedy.findings.claims import Summary
from ezgreedy.findings.finding import Finding
from ezgreedy.report.atlas import atlas_from_json
from ezgreedy.report.deep import deep_study
from ezgreedy.report.markdown import DEEP_PAGE, documents
from ezgreedy.report.page import page
from ezgreedy.report.study import Study, read_study
from ezgreedy.report.suite_scores import suite_scores
from ezgreedy.results.runs import read_run
from support.browser import Opened, hover_text, plots, until
from support.edited_files import replace_text, without_checksums
from support.generated_runs import AGENTS, generated_atlas, generated_runs

ATLAS = "#atari-exploration-atlas"
LARGEST_PAGE = 6_000_000

browser = pytest.mark.browser


@pytest.fixture(scope="module")
def two_games(
    out: Path, runs: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Path]]:
    """A page of experiments and of real runs on two games, and the runs' directories."""
    from ezgreedy.runs.run_loop import DriveOptions, train
    from support.small_runs import small_run

    directory = tmp_path_factory.mktemp("freeway")
    for agent in ("rainbow-eps", "rainbow-ez"):
        settings = small_run(agent, game="minatar/asterix")
        assert train(directory / f"asterix-{agent}", settings, DriveOptions(60, True)) == 0
    made = directory / "page.html"
    study = read_study(out, runs, directory)
    assert study.deep is not None
    assert not study.suites, "two games are too few for the reader of a report"
    study = replace(study, suites=suite_scores(study.deep.runs))
    made.write_text(page(study), encoding="utf-8")
    texts = documents(study, directory / "R.md")
    (directory / "deep.md").write_text(texts[out / DEEP_PAGE], encoding="utf-8")
    return made, sorted(
        p.parent for p in [*runs.glob("*/config.json"), *directory.glob("*/config.json")]
    )


@pytest.fixture(scope="module")
def volume(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GENERATED numbers in the number of the paper's study."""
    deep = deep_study(generated_runs())
    generated = Finding(
        "atari-exploration",
        "GENERATED numbers, for volume only",
        "nothing",
        Summary([]),
        5,
        {},
        "generated",
        "none",
        0.0,
        [],
    )
    atlas = atlas_from_json(generated_atlas())
    assert atlas is not None
    made = tmp_path_factory.mktemp("volume") / "generated.html"
    study = Study([generated], [], deep, suite_scores(deep.runs), atlases={generated.id: atlas})
    made.write_text(page(study), encoding="utf-8")
    return made


def visible(driver: webdriver.Chrome, selector: str) -> list[str]:
    """The first words of what is shown."""
    script = """
        const found = [...document.querySelectorAll(arguments[0])];
        const shown = found.filter((element) => element.checkVisibility());
        return shown.map((element) => element.querySelector("th, button").textContent);
    """
    names: list[str] = driver.execute_script(script, selector)
    return names


def names_of_curves(driver: webdriver.Chrome) -> list[str]:
    (plot,) = plots(driver, "#chosen")
    script = "return arguments[0].data.filter((trace) => trace.name).map((trace) => trace.name)"
    names: list[str] = driver.execute_script(script, plot)
    return names


def strokes(driver: webdriver.Chrome, game: str) -> list[str]:
    """The colours of the lines in a small chart, once it is drawn."""
    script = """
        const panel = document.querySelector(`.panel[data-game="${arguments[0]}"]`);
        panel.scrollIntoView({block: "center", behavior: "instant"});
        const svg = panel.querySelector("svg");
        const lines = svg && [...svg.querySelectorAll("path[stroke]")];
        return lines && lines.map((line) => line.getAttribute("stroke"));
    """
    found: list[str] = until(driver, script, game)
    return found


@browser
def test_agents_are_filtered_by_keyboard_everywhere_at_once(
    opened: Opened, two_games: tuple[Path, list[Path]]
) -> None:
    driver = opened(page=two_games[0])
    assert len(strokes(driver, "minatar/asterix")) == 2
    box = driver.find_element(By.CSS_SELECTOR, "input[name=agent][value=rainbow-eps]")
    box.send_keys(Keys.SPACE)
    assert driver.find_element(By.ID, "shown").text == "Shown: 1 of 2 agents, 2 of 2 games."
    assert [name.split(",")[0] for name in names_of_curves(driver)] == [
        "rainbow-ez",
        "DQN at 1M frames (Young & Tian)",
    ]
    assert len(strokes(driver, "minatar/asterix")) == 1
    rows = driver.find_elements(By.CSS_SELECTOR, "#scores tbody tr:not([hidden])")
    assert {row.get_attribute("data-agent") for row in rows} == {"rainbow-ez"}
    driver.find_element(By.CSS_SELECTOR, "button[aria-label='No agents']").send_keys(Keys.ENTER)
    assert names_of_curves(driver) == []
    assert driver.find_element(By.CSS_SELECTOR, ".panel .cell").text == "no curve"


@browser
def test_games_are_filtered_and_chosen(opened: Opened, two_games: tuple[Path, list[Path]]) -> None:
    driver = opened(page=two_games[0])
    # One seed is a plumbing check, and comes last.
    assert visible(driver, ".panel") == ["minatar/breakout", "minatar/asterix"]
    driver.find_element(By.CSS_SELECTOR, "input[value='minatar/asterix']").send_keys(Keys.SPACE)
    assert visible(driver, ".panel") == ["minatar/breakout"]
    assert set(visible(driver, "#scores tbody tr")) == {"minatar/breakout"}
    chosen = driver.find_element(By.ID, "chosen-game")
    assert chosen.get_attribute("value") == "minatar/breakout"
    driver.find_element(By.CSS_SELECTOR, "button[aria-label='All games']").send_keys(Keys.ENTER)
    button = driver.find_element(By.CSS_SELECTOR, "#deep-minatar-asterix button")
    button.send_keys(Keys.ENTER)
    assert chosen.get_attribute("value") == "minatar/asterix"
    assert driver.switch_to.active_element == chosen
    Select(driver.find_element(By.ID, "quantity")).select_by_visible_text("training return")
    (plot,) = plots(driver, "#chosen")
    title = driver.execute_script("return arguments[0].layout.yaxis.title.text", plot)
    assert title == "training return"


@browser
def test_the_large_plot_has_the_scores_of_the_real_runs(
    opened: Opened, two_games: tuple[Path, list[Path]]
) -> None:
    made, directories = two_games
    driver = opened(page=made)
    plots(driver, "#chosen")
    Select(driver.find_element(By.ID, "chosen-game")).select_by_visible_text("minatar/breakout")
    (plot,) = plots(driver, "#chosen")
    shown = driver.execute_script(
        "const named = arguments[0].data.filter((trace) => trace.name);"
        "return Object.fromEntries(named.map((trace) => [trace.name, trace.y]))",
        plot,
    )
    real = [read_run(directory) for directory in directories]
    for agent in ("rainbow-eps", "rainbow-ez"):
        scores = [
            [score.mean_return for score in run.scores]
            for run in real
            if (run.game, run.agent) == ("minatar/breakout", agent)
        ]
        assert shown[f"{agent}, 3 seeds"] == pytest.approx(np.mean(scores, axis=0), rel=1e-3)
    assert "rainbow-ez, 3 seeds" in hover_text(driver, plot)


@browser
def test_scores_over_the_suite_are_on_the_page_and_in_the_document(
    opened: Opened, two_games: tuple[Path, list[Path]]
) -> None:
    made, directories = two_games
    (found,) = suite_scores(deep_study([read_run(path) for path in directories]).runs)
    driver = opened(page=made)
    text = driver.find_element(By.ID, "suite-minatar").text
    assert "Runs on 2 of 5 games" in text
    assert f"all games but {', '.join(found.played)}" in text, "what is missing is named"
    row = driver.find_element(By.XPATH, "//*[@id='suite-minatar']//tr[th[text()='rainbow-ez']]")
    assert f"{found.rows[1].ours.final.mean.value:.2f}" in row.text  # type: ignore[union-attr]
    for number in range(1, 5):
        plots(driver, f"#suite-minatar-block-{number}")
    document = (made.parent / "deep.md").read_text(encoding="utf-8")
    assert "## MinAtar: scores over games" in document


def test_a_page_of_runs_keeps_the_rules_of_its_language(
    two_games: tuple[Path, list[Path]], volume: Path
) -> None:
    for path in (two_games[0], volume):
        text = path.read_text(encoding="utf-8")
        library = r'<script type="text/plain" id="plotly">.*?</script>'
        parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
        tree = parser.parse(re.sub(library, "", text, flags=re.DOTALL))
        names = [element.get("id") for element in tree.iter() if element.get("id")]
        assert len(set(names)) == len(names)
        for element in tree.iter():
            for attribute in ("for", "aria-labelledby"):
                assert element.get(attribute) in {None, *names}
            if element.get("href", "").startswith("#"):
                assert element.get("href", "")[1:] in names
        fields = [field for kind in ("input", "select") for field in tree.iter(kind)]
        assert {field.get("id") for field in fields} <= {
            label.get("for") for label in tree.iter("label")
        }


def test_pages_with_as_much_as_the_papers_study_stay_small(volume: Path) -> None:
    assert volume.stat().st_size < LARGEST_PAGE


@browser
def test_filters_hold_for_as_much_as_the_papers_study(opened: Opened, volume: Path) -> None:
    driver = opened(page=volume)
    driver.execute_script("document.getElementById('atari-exploration').scrollIntoView()")
    assert driver.execute_script("return window.Plotly === undefined"), "no plot was near"
    assert len(visible(driver, ".panel")) == 57
    drawn = "return document.querySelectorAll('.panel svg').length"
    assert driver.execute_script(drawn) < 57, "those far away wait"
    assert len(strokes(driver, "Zaxxon")) == len(AGENTS) == 8
    driver.find_element(By.ID, "search").send_keys("Mon")
    assert visible(driver, ".panel") == ["DemonAttack", "MontezumaRevenge"]
    assert driver.find_element(By.ID, "shown").text == "Shown: 8 of 8 agents, 2 of 57 games."
    assert len(visible(driver, "#scores tbody tr")) == 2 * 8
    assert len(names_of_curves(driver)) == 8


def column(driver: webdriver.Chrome, table: str, place: int) -> list[float]:
    script = """
        const rows = [...document.querySelector(arguments[0]).tBodies[0].rows];
        return rows.map((row) => Number(row.cells[arguments[1]].querySelector("data").value));
    """
    numbers: list[float] = driver.execute_script(script, f"{table} table", place)
    return numbers


def heading(driver: webdriver.Chrome, table: str, place: int) -> Any:
    return driver.find_elements(By.CSS_SELECTOR, f"{table} thead th")[place]


@browser
def test_the_atlas_is_sorted_by_any_column_and_shows_any_condition(
    opened: Opened, volume: Path
) -> None:
    driver = opened(page=volume)
    gains = column(driver, ATLAS, 1)
    assert len(gains) == 57
    assert gains == sorted(gains, reverse=True), "it begins with the largest gain"
    for place in range(2, 8):
        heading(driver, ATLAS, place).find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
        assert heading(driver, ATLAS, place).get_attribute("aria-sort") == "descending"
        numbers = column(driver, ATLAS, place)
        assert numbers == sorted(numbers, reverse=True)
    heading(driver, ATLAS, 7).find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert column(driver, ATLAS, 7) == sorted(numbers)
    Select(driver.find_element(By.CSS_SELECTOR, f"{ATLAS} select")).select_by_index(0)
    changed = column(driver, ATLAS, 7)
    assert changed == sorted(changed) != sorted(numbers), "it stays sorted as it was"
    condition = atlas_from_json(generated_atlas()).conditions[0]  # type: ignore[union-attr]
    assert sorted(changed) == sorted(row[6].number for row in condition.rows.values())
    heading(driver, ATLAS, 0).find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    names = visible(driver, f"{ATLAS} tbody tr")
    assert names == sorted(names)


@browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_much_data_fits_a_phone_in_either_theme(opened: Opened, volume: Path, theme: str) -> None:
    driver = opened(width=360, height=800, theme=theme, page=volume)
    strokes(driver, "Alien")
    plots(driver, "#chosen")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 360
    colour = driver.find_element(By.CSS_SELECTOR, ".panel text").value_of_css_property("fill")
    assert colour == {"light": "rgb(91, 99, 109)", "dark": "rgb(162, 171, 182)"}[theme]


def test_hostile_names_of_games_stay_words(tmp_path: Path) -> None:
    from support.written_runs import write_run

    write_run(tmp_path / "run", [(0, 1.0)])
    config = tmp_path / "run" / "config.json"
    hostile = "</script><script>alert(1)</script>"
    without_checksums(tmp_path / "run")
    replace_text(config, "minatar/breakout", hostile)
    text = page(read_study(tmp_path))
    assert "<script>alert" not in text
