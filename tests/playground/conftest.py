"""The page as the command writes it, in one real Chromium; see `support.browser`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from ezgreedy.cli import main
from support.browser import Opened, set_media, started


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("playground") / "playground.html"
    assert main(["playground", "--to", str(target)]) == 0
    return target


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    chrome = started(tmp_path_factory.mktemp("profile"))
    yield chrome
    chrome.quit()


@pytest.fixture
def opened(driver: webdriver.Chrome, page: Path) -> Iterator[Opened]:
    """Opens the page at an address; afterwards the console must have stayed silent."""

    def open_page(
        address: str = "",
        width: int = 1280,
        height: int = 900,
        theme: str = "light",
        motion: str = "no-preference",
    ) -> webdriver.Chrome:
        set_media(driver, {"prefers-color-scheme": theme, "prefers-reduced-motion": motion})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get("about:blank")  # another fragment alone would not load the page again
        driver.get(page.as_uri() + address)
        return driver

    yield open_page
    assert driver.get_log("browser") == []
