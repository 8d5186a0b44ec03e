"""The page in a real Chromium, as readers meet it: pointer, keyboard, phone, dark mode."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from ezgreedy.cli import main
from ezgreedy.experiments.paper.fig1_gridworld_coverage import EXPERIMENT
from ezgreedy.figures import colours
from ezgreedy.findings.claims import Summary
from ezgreedy.findings.finding import Finding
from ezgreedy.findings.panels import Curve, Panel
from ezgreedy.report.page import page
from ezgreedy.report.study import Study
from ezgreedy.results.runs import read_run
from support.browser import Opened, hover_text, plots, set_theme, settled

FIG1 = EXPERIMENT.id
MAPS = f"#{FIG1}-block-1"
CURVES = "#tiny-block-1"
pytestmark = pytest.mark.browser


def drawn_maps(driver: webdriver.Chrome) -> list[Any]:
    return [
        driver.execute_script("return arguments[0].data[0].z", plot) for plot in plots(driver, MAPS)
    ]


def map_values(summaries: dict[str, Any], position: int) -> list[Any]:
    (block,) = summaries[FIG1]["data"]["interactive"]
    return [entry["values"][position] for entry in block["maps"]]


NUMBERS_OF_A_CLAIM = """
    const rows = [...document.getElementById(arguments[0]).querySelectorAll("tbody tr")];
    return rows.map((row) => [
        row.querySelector("th").textContent,
        ...[...row.querySelectorAll("data")].map((data) => Number(data.value)),
    ]);
"""


def test_numbers_in_the_document_are_those_of_the_summaries(
    opened: Opened, summaries: dict[str, Any]
) -> None:
    driver = opened()
    for name, summary in summaries.items():
        for index, claim in enumerate(summary["claims"], start=1):
            shown = driver.execute_script(NUMBERS_OF_A_CLAIM, f"{name}-{index}")
            assert shown == [
                [key, *(number.values() if isinstance(number, dict) else [number])]
                for key, number in claim["numbers"].items()
            ]


def test_the_slider_moves_the_maps(opened: Opened, summaries: dict[str, Any]) -> None:
    driver = opened()
    epsilons = summaries[FIG1]["settings"]["epsilons"]
    assert drawn_maps(driver) == map_values(summaries, 0)
    slider = driver.find_element(By.CSS_SELECTOR, f"{MAPS} input[type=range]")
    ActionChains(driver).move_to_element(settled(driver, slider)).click().perform()
    middle = len(epsilons) // 2
    said = driver.find_element(By.CSS_SELECTOR, f"{MAPS} output")
    assert said.text == f"{epsilons[middle]:g}"
    assert drawn_maps(driver) == map_values(summaries, middle)
    assert drawn_maps(driver) != map_values(summaries, 0)
    means = driver.find_elements(By.CSS_SELECTOR, f"{MAPS} .mean")
    for mean, cells in zip(means, map_values(summaries, middle), strict=True):
        assert float(mean.text.removeprefix("mean ")) == pytest.approx(np.mean(cells), rel=1e-3)


def test_arrow_keys_move_the_slider(opened: Opened, summaries: dict[str, Any]) -> None:
    driver = opened()
    plots(driver, MAPS)
    slider = driver.find_element(By.CSS_SELECTOR, f"{MAPS} input[type=range]")
    for key, position in ((Keys.ARROW_RIGHT, 1), (Keys.END, 2), (Keys.ARROW_LEFT, 1)):
        slider.send_keys(key)
        assert drawn_maps(driver) == map_values(summaries, position)
        epsilon = summaries[FIG1]["settings"]["epsilons"][position]
        assert slider.get_attribute("aria-valuetext") == f"ε = {epsilon:g}"


def test_the_keyboard_reaches_everything_and_shows_where_it_is(opened: Opened) -> None:
    driver = opened()
    reached = []
    for _ in range(300):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        focused = driver.switch_to.active_element
        if focused.tag_name == "body":
            break
        assert focused.value_of_css_property("outline-style") != "none"
        reached.append(focused)
    assert reached[0].get_attribute("class") == "skip"
    wanted = driver.find_elements(By.CSS_SELECTOR, "a, button, input, summary")
    # Arrow keys, not tabs, go from one radio button to the next, and a wide page needs no opener.
    beside = driver.find_elements(By.CSS_SELECTOR, "input[type=radio]:not(:checked), nav button")
    assert set(wanted) <= {*reached, *beside}


def test_claims_are_filtered_by_verdict(opened: Opened) -> None:
    driver = opened()

    def shown(place: str) -> set[str | None]:
        rows = driver.find_elements(By.CSS_SELECTOR, f"#{place} tbody tr")
        return {row.get_attribute("data-verdict") for row in rows if row.is_displayed()}

    assert shown("verdicts") == {"no-verdict", "not-run"}
    choice = driver.find_element(By.CSS_SELECTOR, "input[name=verdict]:checked")
    choice.send_keys(Keys.ARROW_RIGHT)
    assert shown("verdicts") == shown("ours") == {"no-verdict"}
    rows = driver.find_elements(By.CSS_SELECTOR, "#verdicts tbody tr")
    kept = sum(row.is_displayed() for row in rows)
    status = driver.find_element(By.CSS_SELECTOR, "[data-counts=verdicts]")
    assert status.text == f"{kept} of {len(rows)} claims"
    driver.find_element(By.ID, "show-all").send_keys(Keys.SPACE)
    assert shown("verdicts") == {"no-verdict", "not-run"}
    assert status.text == ""


@pytest.mark.parametrize("width", [390, 1300])
def test_contents_stay_in_view_and_lead_on(opened: Opened, width: int) -> None:
    driver = opened(width=width, height=800)
    driver.execute_script("scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
    contents = driver.find_element(By.CSS_SELECTOR, ".contents")
    link = contents.find_element(By.CSS_SELECTOR, f"a[href='#{FIG1}']")
    opener = contents.find_element(By.TAG_NAME, "button")
    assert opener.is_displayed() == (width < 600)
    if opener.is_displayed():
        assert not link.is_displayed()
        opener.click()
        assert opener.get_attribute("aria-expanded") == "true"
    top = "return arguments[0].getBoundingClientRect().top"
    assert 0 <= driver.execute_script(top, link) < 800
    link.send_keys(Keys.ENTER)
    heading = driver.find_element(By.ID, f"{FIG1}-title")
    WebDriverWait(driver, 120).until(lambda _: 0 <= driver.execute_script(top, heading) < 300)
    WebDriverWait(driver, 120).until(lambda _: link.get_attribute("aria-current") == "true")


def test_logarithmic_axes_name_their_numbers_in_full(opened: Opened, tmp_path: Path) -> None:
    curve = Curve("a", [3, 10, 20, 50], [1.0, 30.0, 4000.0, 500_000.0])
    panel = Panel("sizes", [curve], x_label="N", y_label="episodes", log_x=True, log_y=True)
    finding = Finding("axes", "Axes", "", Summary([], [panel]), 5, {}, "0", "none", 0.0, [])
    made = tmp_path / "axes.html"
    made.write_text(page(Study([finding], [], None)), encoding="utf-8")
    driver = opened(page=made)
    (plot,) = plots(driver, "#axes-block-1")

    def ticks(letter: str) -> list[str]:
        return [t.text for t in plot.find_elements(By.CSS_SELECTOR, f".{letter}tick text")]

    assert ticks("x") == ["5", "10", "20", "50"]
    assert ticks("y") == ["1", "10", "100", "1,000", "10,000", "100,000", "1,000,000"]


def test_pointing_at_a_map_tells_its_value(opened: Opened, summaries: dict[str, Any]) -> None:
    driver = opened()
    for plot, cells in zip(plots(driver, MAPS), map_values(summaries, 0), strict=True):
        middle = len(cells) // 2
        told = hover_text(driver, plot)
        assert f"row {middle}, column {middle}" in told
        assert told.endswith(str(cells[middle][middle]))


def test_pointing_at_a_curve_tells_values_and_intervals(
    opened: Opened, summaries: dict[str, Any]
) -> None:
    driver = opened()
    (plot,) = plots(driver, CURVES)
    (block,) = summaries["tiny"]["data"]["interactive"]
    told = hover_text(driver, plot).replace("−", "-")
    assert any(
        all(
            f"{series['label']} : {series['mean'][at]} [{series['low'][at]}, {series['high'][at]}]"
            in told
            for series in block["series"]
        )
        for at in range(2)
    ), told


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_width_makes_the_page_scroll_sideways(opened: Opened, width: int) -> None:
    driver = opened(width=width, height=800)
    for block in (MAPS, CURVES):
        for plot in plots(driver, block):
            box = plot.rect
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert box["height"] > 60
    for details in driver.find_elements(By.CSS_SELECTOR, "details:not([open]) > summary"):
        driver.execute_script("arguments[0].click()", details)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_plots_and_page_follow_the_theme(opened: Opened) -> None:
    driver = opened(theme="light")
    (plot,) = plots(driver, CURVES)

    def looks() -> tuple[str, str]:
        colour = driver.execute_script("return arguments[0].layout.font.color", plot)
        return driver.find_element(By.TAG_NAME, "body").value_of_css_property(
            "background-color"
        ), colour

    light = looks()
    set_theme(driver, "dark")
    WebDriverWait(driver, 120).until(lambda _: looks()[1] != light[1])
    assert looks() == ("rgba(20, 23, 27, 1)", "#e6e8eb")


def test_the_command_can_be_copied(opened: Opened, summaries: dict[str, Any]) -> None:
    driver = opened()
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    driver.execute_cdp_cmd("Browser.grantPermissions", grant)
    button = driver.find_element(By.CSS_SELECTOR, f"#{FIG1} button")
    button.send_keys(Keys.ENTER)
    WebDriverWait(driver, 120).until(lambda _: button.text == "Copied")
    assert driver.find_element(By.ID, "told").get_attribute("textContent") == "Command copied"
    copied = driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == summaries[FIG1]["command"]


def test_the_page_asks_for_nothing_and_draws_only_what_is_near(opened: Opened) -> None:
    driver = opened(height=300)
    addresses = driver.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert [address for address in addresses if not address.startswith("data:")] == []
    assert driver.execute_script(f"return document.querySelector('{CURVES} .main-svg')") is None
    plots(driver, CURVES)


@pytest.fixture(scope="session")
def mixed(out: Path, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One page of experiments and of real runs."""
    made = tmp_path_factory.mktemp("mixed") / "page.html"
    assert main(["report", str(out), str(runs), "--to", str(made)]) == 0
    return made


def test_deep_agents_are_drawn_with_the_scores_of_their_runs(
    opened: Opened, mixed: Path, runs: Path
) -> None:
    driver = opened(page=mixed)
    (plot,) = plots(driver, "#chosen")
    traces = driver.execute_script(
        "return arguments[0].data.filter((trace) => trace.name).map((trace) => "
        "({name: trace.name, y: trace.y, colour: trace.line.color, dash: trace.line.dash}))",
        plot,
    )
    assert [trace["dash"] for trace in traces] == [None, None, "dash"]
    assert traces[2]["name"].startswith("DQN at 1M frames")
    for agent, trace in zip(("rainbow-eps", "rainbow-ez"), traces, strict=False):
        scores = [read_run(runs / f"{agent}-{seed}").scores for seed in range(3)]
        means = np.mean([[score.mean_return for score in row] for row in scores], axis=0)
        assert trace["name"] == f"{agent}, 3 seeds"
        assert trace["colour"] == colours.AGENT_COLOURS[agent]
        assert trace["y"] == pytest.approx(means, rel=1e-3)
        final = driver.find_element(
            By.XPATH, f"//table[contains(@class, 'deep')]//tr[td[text()='{agent}']]/td[4]/data"
        )
        assert float(final.get_attribute("value") or "") == pytest.approx(means[-1])
    assert "rainbow-ez, 3 seeds" in hover_text(driver, plot)


def test_deep_agents_fit_a_phone_and_the_keyboard_reaches_them(opened: Opened, mixed: Path) -> None:
    driver = opened(width=320, height=800, page=mixed)
    (plot,) = plots(driver, "#chosen")
    assert plot.rect["x"] + plot.rect["width"] <= 320
    for details in driver.find_elements(By.CSS_SELECTOR, "details:not([open]) > summary"):
        driver.execute_script("arguments[0].click()", details)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 320
    link = driver.find_element(By.CSS_SELECTOR, "header a[href='#deep-agents']")
    link.send_keys(Keys.ENTER)
    heading = driver.find_element(By.ID, "deep-agents-title")
    WebDriverWait(driver, 120).until(
        lambda _: (
            0
            <= driver.execute_script("return arguments[0].getBoundingClientRect().top", heading)
            < 800
        )
    )
