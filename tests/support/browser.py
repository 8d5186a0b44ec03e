"""A real Chromium and what readers do with it: come near, point, choose a theme.

Where no Chromium and ChromeDriver are found tests are skipped with that reason, unless
EZGREEDY_REQUIRE_BROWSER=1 is set, in which case they fail.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# All but the first two keep the browser itself from asking the network for anything.
FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)

Opened = Callable[..., webdriver.Chrome]


def started(profile: Path) -> webdriver.Chrome:
    """A browser without a window; whoever asks for it quits it."""
    browser, chromedriver = found(*BROWSERS), found("chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))


def found(*names: str) -> str:
    """The path of the first of these programs that there is."""
    paths = [path for name in names if (path := shutil.which(name))]
    if paths:
        return paths[0]
    reason = f"no {names[0]} was found, so the page was not opened in a browser"
    if os.environ.get("EZGREEDY_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def set_theme(driver: webdriver.Chrome, theme: str) -> None:
    set_media(driver, {"prefers-color-scheme": theme})


def set_media(driver: webdriver.Chrome, preferences: dict[str, str]) -> None:
    features = [{"name": name, "value": value} for name, value in preferences.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def until(driver: webdriver.Chrome, script: str, *arguments: Any) -> Any:
    """What a script gives once it gives something."""
    return WebDriverWait(driver, 120).until(lambda _: driver.execute_script(script, *arguments))


def plots(driver: webdriver.Chrome, block: str) -> list[WebElement]:
    """The plots of a block, once the reader has come near and they are drawn."""
    script = """
        const block = document.querySelector(arguments[0]);
        block.scrollIntoView({block: "start", behavior: "instant"});
        const plots = [...block.querySelectorAll(".plot")];
        return plots.every((plot) => plot.data && plot.querySelector(".main-svg")) && plots;
    """
    drawn: list[WebElement] = until(driver, script, block)
    return drawn


def settled(driver: webdriver.Chrome, element: WebElement) -> WebElement:
    """An element once it has come into view and stays where it is: plots near it may be drawn."""
    script = """
        arguments[0].scrollIntoView({block: "center", behavior: "instant"});
        const {left, top} = arguments[0].getBoundingClientRect();
        const before = window.lastPlace;
        window.lastPlace = `${left} ${top}`;
        return window.lastPlace === before;
    """
    until(driver, script, element)
    return element


def hover_text(driver: webdriver.Chrome, plot: WebElement) -> str:
    """What is said under the pointer in the middle of a plot."""
    ActionChains(driver).move_to_element(plot).perform()
    script = """
        const said = [...arguments[0].querySelectorAll(".hoverlayer text")];
        return said.map((text) => text.textContent).join(" ");
    """
    return str(until(driver, script, plot))
