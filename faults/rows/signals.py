"""Row l: Ctrl-C, the end of the terminal, and people who press twice."""

import importlib.util
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ezgreedy.cli import main
from ezgreedy.fleet import ray_run_loop
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.runs.run_directory import PAUSED, RunDirectory
from ezgreedy.runs.run_loop import DriveOptions, train
from faults import base_runs
from faults.commands import Forked, outcome, told
from faults.matrix import Case, Failure, Row
from support.processes import with_environment

MOST_SECONDS = 10.0
SIGNALS = {
    "SIGINT": (signal.SIGINT,),
    "SIGTERM": (signal.SIGTERM,),
    "SIGHUP": (signal.SIGHUP,),
    "SIGINT twice": (signal.SIGINT, signal.SIGINT),
}
TRAIN, SWEEP, RAY = "train", "sweep", "train on Ray"
CASES_PER_RESUME = 5  # resuming on Ray takes a minute
MARK = "EZGREEDY_FAULTS_CASE"
_SWEEP = [
    *(
        "--agents",
        "rainbow-ez",
        "--games",
        "minatar/breakout",
        "--seeds",
        "2",
        "--yes",
        "--jobs",
        "2",
    ),
    *(
        "--probe-seconds",
        "0",
        "--frames",
        "1500",
        "--set",
        "lanes=2",
        "--set",
        "agent.hidden_size=8",
    ),
    *("--set", "agent.least_replay=40", "--set", "agent.replay_capacity=300"),
    *("--set", "agent.learner.batch_size=4", "--set", "evaluation.frames=60"),
    *("--set", "evaluation.frames_between=700", "--set", "evaluation.lanes=2"),
]


class Signals(Row):
    """A signal saves and ends in time, leaves no process, and the run goes on to the same bits."""

    letter = "l"
    title = "Signals"
    goal = "saved and ended within 10 s, exit code 128 + signal, no process left, resume exact"
    others = "Ray: SIGTERM ends with SIGABRT, SIGKILL leaves two agents; torchelastic restarts all"
    groups = (
        *(f"{TRAIN}: {name}" for name in SIGNALS),
        *(f"{what}: {name}" for what in (SWEEP, RAY) for name in ("SIGINT", "SIGTERM")),
        f"{RAY}: SIGHUP",
    )
    quick = len(groups)
    full = 30 * len(groups)
    seconds = 1800.0

    def prepare(self, place: Path) -> None:
        if importlib.util.find_spec("ray") is None:
            raise SystemExit("row l needs Ray: pip install 'ezgreedy[ray]'")
        alone = base_runs.brief(frames=1200)
        on_ray = base_runs.brief("r2d2-ez", lanes=4, frames=6000)
        self._settings = {TRAIN: alone, SWEEP: None, RAY: on_ray}
        self._whole = base_runs.whole(place / "whole", alone)

    def run(self, case: Case) -> dict[str, Any]:
        what, _, name = case.group.partition(": ")
        mark = f"{MARK}={case.number}-{os.getpid()}"
        directory = case.place / "run"
        arguments = (what, directory, self._settings[what], mark)
        process = Forked(case.place, _begin, *arguments, has_children=what != TRAIN)
        try:
            self._wait(process, directory, what)
            time.sleep(float(case.rng.uniform(0.0, 0.5)))
            begun = time.monotonic()
            for number in SIGNALS[name]:
                if process.is_alive:
                    os.kill(process.pid, number)
                    time.sleep(0.05)
            ended = process.ended()
            took = time.monotonic() - begun
        finally:
            process.kill()
        self._check_end(case, ended.code, took, SIGNALS[name][0], mark)
        is_resumed = what != RAY or case.number // len(self.groups) % CASES_PER_RESUME == 0
        self._check_state(what, directory, ended.code)
        if is_resumed:
            self._check_resume(what, directory)
        return {"seconds": round(took, 2), "was_over": int(ended.code == 0)}

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        over = sum(fact["was_over"] for fact in facts)
        ended = f"slowest {max(fact['seconds'] for fact in facts):.1f} s"
        return f"{ended}, {over} were over before it" if over else ended

    def _wait(self, process: Forked, directory: Path, what: str) -> None:
        pattern = {TRAIN: "status.json", SWEEP: "runs/*/status.json", RAY: "checkpoints/check*"}
        while process.is_alive and not any(directory.glob(pattern[what])):
            time.sleep(0.01)

    def _check_end(self, case: Case, code: int, took: float, number: int, mark: str) -> None:
        if code not in (0, 128 + number):
            raise Failure(f"exit code {code} instead of {128 + number}")
        if took > MOST_SECONDS and code:
            raise Failure(f"ended after {took:.1f} s")
        end = time.monotonic() + MOST_SECONDS
        while with_environment(mark):
            if time.monotonic() > end:
                raise Failure("processes are left behind")
            time.sleep(0.1)

    def _check_state(self, what: str, directory: Path, code: int) -> None:
        checked = told(["check", str(directory), "--quiet"])
        if checked.code:
            raise Failure(f"check finds damage: {checked.out[-300:]}")
        if what == SWEEP or not code:
            return
        status = RunDirectory(directory).status()
        if status.get("state") != PAUSED:
            raise Failure(f"the status is {status}")

    def _check_resume(self, what: str, directory: Path) -> None:
        if what == SWEEP:
            again = told(["sweep", "minatar", "--out", str(directory), *_SWEEP])
            if again.code != 0:
                raise Failure(f"the sweep does not go on: {again.err[-300:]}")
            return
        answer = told(["resume", str(directory), *base_runs.RESUME])
        if answer.code == 0 and what == RAY:  # where no two runs are alike
            return
        if answer.code != 0 or outcome(directory) != self._whole:
            raise Failure(f"does not go on to the same bits: {answer.err[-300:]}")


def _begin(what: str, directory: Path, settings: Any, mark: str) -> int:
    name, _, value = mark.partition("=")
    os.environ[name] = value
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        if what == SWEEP:
            return main(["sweep", "minatar", "--out", str(directory), *_SWEEP])
        if what == RAY:
            often = DriveOptions(0.5, is_quiet=True, checkpoint_share=1.0)
            return ray_run_loop.train(directory, settings, FleetSettings(actors=2), often)
        return train(directory, settings, base_runs.ALWAYS)
    except KeyboardInterrupt as stop:  # as the command line does
        return int(getattr(stop, "exit_code", 130))


ROW = Signals()
