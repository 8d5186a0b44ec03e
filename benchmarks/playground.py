"""How much of a frame's time does the playground take? In Chromium, at the default size.

A page keeps 60 frames a second if a frame takes less than 16.7 ms. CPU time of the page's main
thread is measured, which other processes do not disturb; then the frames that the playing page is
given, which they do. Headless Chromium paints without a graphics processor.
"""

import os
import shutil
import tempfile
from pathlib import Path

from selenium import webdriver

from ezgreedy.commands.reproduce import num_cores
from ezgreedy.playground.page import page

_NUM_FRAMES = 300
# The work of one frame at the default speed: two steps of all walkers of both policies, and one
# drawing, which is forced to be finished.
_FRAMES = """
const done = arguments[1];
let left = arguments[0];
function next() {
  for (const walk of playground.walks) for (let k = 0; k < 2; k++) walk.advance();
  draw();
  for (const canvas of document.querySelectorAll("canvas")) {
    canvas.getContext("2d").getImageData(0, 0, 1, 1);
  }
  if (--left) requestAnimationFrame(next); else done();
}
requestAnimationFrame(next);
"""

# How many frames a second the page gets while it plays by itself.
_SHOWN = """
const done = arguments[1], until = performance.now() + 1000 * arguments[0];
let frames = 0;
const first = performance.now();
function next(now) {
  frames++;
  if (now < until) requestAnimationFrame(next); else done(1000 * frames / (now - first));
}
requestAnimationFrame(next);
"""
_SECONDS = 5


def main() -> None:
    options = webdriver.ChromeOptions()
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "window-size=1280,900"):
        options.add_argument(f"--{flag}")
    service = webdriver.ChromeService(
        shutil.which("chromedriver")
    )  # else Selenium asks the network
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "playground.html"
        target.write_text(page(), encoding="utf-8")
        driver = webdriver.Chrome(options, service)
        try:
            driver.set_script_timeout(600)
            driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            driver.get(target.as_uri())
            shown = driver.execute_async_script(_SHOWN, _SECONDS)
            driver.find_element("id", "play").click()  # the page's own steps stop
            before = _cpu_seconds(driver)
            driver.execute_async_script(_FRAMES, _NUM_FRAMES)
            spent = _cpu_seconds(driver) - before
        finally:
            driver.quit()
    share = spent / _NUM_FRAMES * 60
    print(
        f"a frame takes {1000 * spent / _NUM_FRAMES:.1f} ms of CPU, {share:.0%} of its time at 60/s"
    )
    load = os.getloadavg()[0] / num_cores()
    print(f"{shown:.1f} frames a second are shown, with {load:.1f} busy processes per core")


def _cpu_seconds(driver: webdriver.Chrome) -> float:
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


if __name__ == "__main__":
    main()
