"""What a visitor does with the page: choose, play, point, use keys or a phone, follow a link."""

from pathlib import Path

import html5lib
import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from ezgreedy.cli import main
from ezgreedy.playground.worlds import WORLDS
from support.browser import Opened, set_media, until

pytestmark = pytest.mark.browser


def text(driver: webdriver.Chrome, id_: str) -> str:
    return str(driver.find_element(By.ID, id_).get_attribute("textContent"))


def click(driver: webdriver.Chrome, id_: str) -> None:
    driver.find_element(By.ID, id_).click()


def step(driver: webdriver.Chrome) -> int:
    return int(driver.execute_script("return playground.walks[0].step"))


def hash_of(driver: webdriver.Chrome) -> str:
    return str(driver.execute_script("return location.hash"))


def write(field: WebElement, number: str) -> None:
    """Replaces what a field says, as people do."""
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.NULL, number, Keys.TAB)


# Playing.


def test_walkers_start_by_themselves_and_can_be_paused(opened: Opened) -> None:
    driver = opened()
    until(driver, "return playground.walks[0].step > 3")
    click(driver, "play")
    assert text(driver, "play") == "Play"
    paused = step(driver)
    assert f"Paused after {paused:,} steps" in text(driver, "result")
    click(driver, "one-step")
    assert step(driver) == paused + 1
    assert text(driver, "step") == f"step {paused + 1:,} of 2,000"
    click(driver, "to-the-end")
    assert step(driver) == 2000
    assert text(driver, "play") == "Play again"
    means = driver.execute_script("return playground.walks.map((walk) => walk.meanFirstVisit)")
    assert f"{means[1] / means[0]:.2f} times as many steps" in text(driver, "result")
    for panel, mean in zip(("panel-eps", "panel-ez"), means, strict=True):
        shown = driver.find_element(By.CSS_SELECTOR, f"#{panel} [data-number=mean]").text
        assert shown == f"{mean:,.0f}"
    assert not driver.find_element(By.ID, "one-step").is_enabled()
    click(driver, "restart")
    assert step(driver) < 2000


def test_who_prefers_stillness_sees_the_finished_maps(opened: Opened) -> None:
    driver = opened(motion="reduce")
    assert step(driver) == 2000
    assert text(driver, "play") == "Play again"


def test_the_maps_are_painted_in_the_colours_of_first_visits(opened: Opened) -> None:
    driver = opened("#world=mines&epsilon=1&walkers=1&steps=400")
    click(driver, "to-the-end")
    painted, wanted = driver.execute_script("""
        const walk = playground.walks[1];
        const {cells} = pictures[1];
        const pixels = cells.getContext("2d").getImageData(0, 0, cells.width, cells.height).data;
        const shade = (cell) => walk.numVisitors[cell] === 0 ? channels(tones.never)
            : SHADES[Math.min(Math.floor(walk.map[cell] / 400 * SHADES.length), SHADES.length - 1)];
        const cell_numbers = [...Array(walk.world.numCells).keys()];
        return [cell_numbers.map((cell) => [...pixels.slice(4 * cell, 4 * cell + 3)]),
                cell_numbers.map(shade)];
    """)
    assert painted == wanted
    assert len({tuple(colour) for colour in painted}) > 5


# Choosing, and the address.


def test_every_choice_changes_the_walks_and_the_address(opened: Opened) -> None:
    driver = opened("#world=four-rooms&walkers=9")
    assert driver.execute_script("return playground.settings.walkers") == 9
    Select(driver.find_element(By.ID, "world")).select_by_visible_text("Mines")
    driver.find_element(By.ID, "epsilon").send_keys(Keys.END)
    Select(driver.find_element(By.ID, "law")).select_by_visible_text("exponential")
    driver.find_element(By.ID, "decay").send_keys(Keys.ARROW_RIGHT)
    cap = driver.find_element(By.ID, "cap")
    write(cap, "77")
    click(driver, "stop")
    chosen = {"world": "mines", "epsilon": 1, "law": "exponential", "decay": 0.91, "cap": 77}
    settings = driver.execute_script("return playground.settings")
    assert settings == settings | chosen | {"stop": True, "walkers": 9}
    assert hash_of(driver) == (
        "#world=mines&epsilon=1&law=exponential&decay=0.91&cap=77&stop=yes&walkers=9"
    )
    assert driver.execute_script("return playground.walks[1].settings") == settings
    assert not driver.find_element(By.ID, "mu").is_displayed()
    code = text(driver, "code")
    assert "Geometric(decay=0.91, cap=77)" in code
    driver.get("about:blank")
    driver.back()  # the address alone brings all of it back
    assert until(driver, "return window.playground && playground.settings") == settings


def test_all_choices_can_be_reset(opened: Opened) -> None:
    driver = opened("#world=mines&epsilon=1&stop=yes")
    click(driver, "usual")
    assert driver.execute_script("return playground.settings") == driver.execute_script(
        "return playground.defaults"
    )


def test_an_unknown_world_is_named_and_the_known_ones_are_offered(opened: Opened) -> None:
    driver = opened("#world=maze&epsilon=0.5")
    notice = driver.find_element(By.ID, "notice")
    assert notice.is_displayed()
    assert notice.get_attribute("role") == "alert"
    assert "There is no world “maze” here. This is Open room instead." in notice.text
    assert driver.execute_script("return playground.settings.epsilon") == 0.5
    links = notice.find_elements(By.TAG_NAME, "a")
    assert [link.text for link in links] == [world.title for world in WORLDS.values()]
    links[3].click()
    until(driver, "return playground.settings.world === 'mines'")
    assert not notice.is_displayed()
    assert driver.execute_script("return playground.settings.epsilon") == 0.5


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("#epsilon=7", "ε must lie in [0, 1]; got “7”. It is 0.1 instead."),
        ("#epsilon=", "ε must lie in [0, 1]; got “”."),
        ("#cap=0", "Longest duration must be a whole number from 1 to 10,000; got “0”."),
        ("#cap=1.5", "Longest duration must be a whole number"),
        ("#law=normal", "Law must be one of zeta, exponential, uniform; got “normal”."),
        ("#seed=-1", "Seed must be a whole number, 0 or more; got “-1”."),
        ("#stop=1", "Stop at walls must be yes or no; got “1”. It is no instead."),
        ("#steps=1000000", "Steps must be a whole number from 1 to 20,000"),
        ("#speed=3", "There is no setting “speed” here, so it was left out."),
        ("#mines", "There is no setting “mines” here"),
    ],
)
def test_what_an_address_gets_wrong_is_said(opened: Opened, address: str, message: str) -> None:
    driver = opened(address)
    assert message in driver.find_element(By.ID, "notice").text
    assert driver.execute_script("return playground.settings") == driver.execute_script(
        "return playground.defaults"
    )


def test_a_wrong_number_in_a_field_is_said_and_not_used(opened: Opened) -> None:
    driver = opened()
    cap = driver.find_element(By.ID, "cap")
    write(cap, "99999")
    assert "got “99999”" in driver.find_element(By.ID, "notice").text
    assert cap.get_attribute("value") == "10000"
    write(cap, "100")
    assert not driver.find_element(By.ID, "notice").is_displayed()


def test_examples_are_links_within_the_page(opened: Opened) -> None:
    driver = opened()
    for link in driver.find_elements(By.CSS_SELECTOR, "#examples a"):
        link.click()
        assert link.get_attribute("href").endswith(hash_of(driver))  # type: ignore[union-attr]
        assert not driver.find_element(By.ID, "notice").is_displayed()


# Keys, pointers, phones, themes.


def test_the_keyboard_reaches_everything_and_shows_where_it_is(opened: Opened) -> None:
    driver = opened()
    driver.execute_script("document.querySelector('details').open = true")
    reached = []
    for _ in range(60):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        focused = driver.switch_to.active_element
        if focused.tag_name == "body" or focused in reached:
            break
        assert focused.value_of_css_property("outline-style") != "none"
        reached.append(focused)
    controls = driver.find_elements(By.CSS_SELECTOR, "a, button, input, select, summary, canvas")
    wanted = [
        control
        for control in controls
        if control.is_displayed() and control.get_attribute("id") != "curves"
    ]
    assert set(wanted) <= set(reached)


def test_keys_play_step_and_start_again(opened: Opened) -> None:
    driver = opened()
    body = driver.find_element(By.TAG_NAME, "body")
    until(driver, "return playground.walks[0].step > 0")
    body.send_keys(" ")
    paused = step(driver)
    body.send_keys("..")
    assert step(driver) == paused + 2
    body.send_keys("e")
    assert step(driver) == 2000
    body.send_keys("r")
    assert step(driver) < 2000
    # In a field the same keys are text.
    until(driver, "return playground.walks[0].step > 0")
    cap = driver.find_element(By.ID, "cap")
    cap.send_keys("e")
    assert step(driver) < 2000


def test_arrow_keys_and_the_pointer_read_a_cell_out(opened: Opened) -> None:
    driver = opened("#world=mines&epsilon=1&steps=500")
    click(driver, "to-the-end")
    canvas = driver.find_element(By.CSS_SELECTOR, "#panel-ez canvas")
    canvas.send_keys(Keys.ARROW_UP)
    cell = int(driver.execute_script("return chosenCell"))
    maps = driver.execute_script("return playground.walks.map((walk) => walk.map)")
    row, column = divmod(cell, 15)
    said = text(driver, "cell")
    assert said.startswith(f"Row {row}, column {column}.")
    assert f"ε-greedy: {maps[0][cell]:,.0f} steps" in said
    assert f"εz-greedy: {maps[1][cell]:,.0f} steps" in said
    canvas.send_keys(Keys.ARROW_LEFT)
    assert text(driver, "cell").startswith(f"Row {row}, column {column - 1}.")
    ActionChains(driver).move_to_element(canvas).perform()
    assert text(driver, "cell").startswith("Row 7, column 7.")


@pytest.mark.parametrize("world", ["open-room", "corridor", "mountain-car"])
@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_shows_both_maps_and_scrolls_only_down(
    opened: Opened, width: int, world: str
) -> None:
    driver = opened(f"#world={world}", width=width, height=800)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    boxes = [canvas.rect for canvas in driver.find_elements(By.CSS_SELECTOR, "#maps canvas")]
    assert len(boxes) == 2
    for box in boxes:
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["height"] >= 30
    side_by_side = boxes[0]["y"] == boxes[1]["y"]
    assert side_by_side == (world != "corridor")
    # Targets are large enough for a finger.
    for control in driver.find_elements(
        By.CSS_SELECTOR, "button, select, input:not([type=checkbox])"
    ):
        if control.is_displayed():
            assert control.rect["height"] >= 24


def test_a_tap_on_a_phone_plays_and_pauses(opened: Opened) -> None:
    driver = opened(width=390, height=800)
    box = driver.find_element(By.ID, "play").rect
    point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    for kind, points in (("touchStart", [point]), ("touchEnd", [])):
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    until(driver, "return document.getElementById('play').textContent === 'Play'")


def test_page_and_maps_follow_the_theme(opened: Opened) -> None:
    driver = opened(theme="light")

    def looks() -> list[str]:
        background = "getComputedStyle(document.body).backgroundColor"
        return list(driver.execute_script(f"return [{background}, tones.never, tones.ink]"))

    assert looks() == ["rgb(250, 249, 246)", "#d9d9dc", "#1d2126"]
    set_media(driver, {"prefers-color-scheme": "dark"})
    until(driver, "return tones.never !== '#d9d9dc'")
    assert looks() == ["rgb(20, 23, 27)", "#59606a", "#e6e8eb"]


def test_the_code_can_be_copied(opened: Opened) -> None:
    driver = opened("#world=mines&seed=123456")
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    driver.execute_cdp_cmd("Browser.grantPermissions", grant)
    for button, wanted in (("copy-code", text(driver, "code")), ("copy-link", driver.current_url)):
        driver.find_element(By.ID, button).send_keys(Keys.ENTER)
        until(driver, f"return document.getElementById('{button}').textContent === 'Copied'")
        copied = driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
        assert copied == wanted


# The file.


def test_the_page_asks_for_nothing(opened: Opened, page: Path) -> None:
    driver = opened()
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    written = page.read_text()
    assert "http" not in written.replace("http-equiv", "")
    assert len(written) < 150_000


def test_the_page_is_valid_html(page: Path) -> None:
    html5lib.HTMLParser(strict=True).parse(page.read_text())


def test_only_an_earlier_playground_is_replaced(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = page.read_text()
    assert main(["playground", "--to", str(page)]) == 0
    assert page.read_text() == before
    other = tmp_path / "notes.html"
    other.write_text("mine")
    assert main(["playground", "--to", str(other)]) == 2
    assert "--to must be a new file or an earlier playground" in capsys.readouterr().err
    assert main(["playground", "--to", str(tmp_path / "page.txt")]) == 2
    assert other.read_text() == "mine"
