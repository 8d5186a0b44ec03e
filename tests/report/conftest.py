"""One real study for all tests of the report: Figure 1 in a quick look, and a tiny experiment.

And one real Chromium for those that open pages; see `support.browser`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

from ezgreedy.cli import main
from ezgreedy.experiments.paper.fig1_gridworld_coverage import EXPERIMENT
from ezgreedy.experiments.runner import Plan, reproduce
from support.browser import Opened, set_theme, started
from support.tiny_experiment import tiny


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of results with its page, as two commands leave it."""
    directory = tmp_path_factory.mktemp("study")
    assert reproduce([EXPERIMENT, tiny()], Plan(directory, scale="quick", num_seeds=2)) == 0
    assert main(["report", str(directory)]) == 0
    return directory


@pytest.fixture(scope="session")
def summaries(out: Path) -> dict[str, dict[str, Any]]:
    return {
        path.parent.name: json.loads(path.read_text())
        for path in sorted(out.glob("*/summary.json"))
    }


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real runs, small: two agents that differ in their durations, three seeds each."""
    from ezgreedy.runs.run_loop import DriveOptions, train
    from support.small_runs import small_run

    directory = tmp_path_factory.mktemp("runs")
    for agent in ("rainbow-eps", "rainbow-ez"):
        for seed in range(3):
            settings = small_run(agent, seed=seed)
            assert train(directory / f"{agent}-{seed}", settings, DriveOptions(60, True)) == 0
    return directory


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    chrome = started(tmp_path_factory.mktemp("profile"))
    yield chrome
    chrome.quit()


@pytest.fixture
def opened(driver: webdriver.Chrome, out: Path) -> Iterator[Opened]:
    """Opens the page at some size and theme; afterwards the console must have stayed silent."""

    def open_page(
        width: int = 1280, height: int = 900, theme: str = "light", page: Path | None = None
    ) -> webdriver.Chrome:
        set_theme(driver, theme)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get((page or out / "report.html").as_uri())
        return driver

    yield open_page
    assert driver.get_log("browser") == []
