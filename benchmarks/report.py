"""How long does a page of as much as the paper's study take to open? 57 games × 8 agents × 5 seeds.

Numbers are GENERATED (`tests/support/generated_runs.py`) and stand for nothing but their number.
A real Chromium opens the page a few times. Its own clock says when the page was there; on a busy
machine that is mostly waiting, so the processor time of the whole browser is told as well (Linux).
Run it as `python benchmarks/report.py`; it needs the `study` and `test` extras and Chromium.
"""

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from selenium import webdriver

from ezgreedy.report.deep import deep_study
from ezgreedy.report.page import page
from ezgreedy.report.study import Study
from ezgreedy.report.suite_scores import suite_scores
from support.browser import plots, started
from support.generated_runs import generated_runs

TURNS = 5
LOADED = "return performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"


def built(directory: Path) -> Path:
    """The page, with what it took to make it."""
    runs = generated_runs()
    begin = time.perf_counter(), time.process_time()
    deep = deep_study(runs)
    text = page(Study([], [], deep, suite_scores(deep.runs)))
    wall, processor = time.perf_counter() - begin[0], time.process_time() - begin[1]
    made = directory / "generated.html"
    made.write_text(text, encoding="utf-8")
    megabytes = made.stat().st_size / 1e6
    print(
        f"{len(runs)} generated runs: {megabytes:.1f} MB in {wall:.0f} s ({processor:.0f} s busy)"
    )
    return made


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        made = built(Path(directory))
        chrome = started(Path(directory) / "profile")
        try:
            for _ in range(TURNS):
                chrome.get("about:blank")
                before = busy(chrome)
                chrome.get(made.as_uri())
                loaded = chrome.execute_script(LOADED)
                opened = busy(chrome) - before
                begin = time.perf_counter()
                plots(chrome, "#chosen")
                drawn = time.perf_counter() - begin
                print(f"there after {loaded:.2f} s ({opened:.2f} s busy), large plot {drawn:.2f} s")
        finally:
            chrome.quit()


def busy(chrome: webdriver.Chrome) -> float:
    """Processor seconds of all of the browser's processes so far."""
    parents, seconds = {}, {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = place.read_text().rpartition(")")[2].split()
            number = int(place.parent.name)
            parents[number] = int(fields[1])
            seconds[number] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    own = {chrome.service.process.pid}
    while more := {number for number, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(seconds.get(number, 0.0) for number in own)


if __name__ == "__main__":
    main()
