"""Row n: many processes want the same runs."""

import json
from pathlib import Path
from typing import Any

from ezgreedy.cli import main
from ezgreedy.results.runs import read_run
from ezgreedy.results.store import read_results
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import train
from faults import base_runs
from faults.commands import Forked, outcome
from faults.matrix import Case, Failure, Row

NEW, RESUMED, SWEPT = "two train into one directory", "two resume one run", "16 jobs claim 100 runs"
NUM_RUNS, NUM_JOBS = 100, 16
_TINY = [
    *("--frames", "40", "--yes", "--probe-seconds", "0", "--set", "lanes=2"),
    *("--set", "agent.hidden_size=4", "--set", "agent.least_replay=16"),
    *("--set", "agent.replay_capacity=60", "--set", "agent.learner.batch_size=2"),
    *("--set", "evaluation.frames=8", "--set", "evaluation.lanes=1"),
    *("--set", "evaluation.frames_between=40", "--set", "frames_per_report=20"),
]


class Claims(Row):
    """A run has one owner, who does all of it once."""

    letter = "n"
    title = "Concurrent use"
    goal = "one owner for each run, every run done exactly once, the other told so"
    others = 'W&B: "unexpected results if several processes use one id"; Optuna #4862'
    # Sweeps take minutes, so that most cases are of the other two.
    groups = (*(NEW, RESUMED) * 25, SWEPT)
    quick = 10
    full = 4 * 51
    seconds = 3600.0

    def prepare(self, place: Path) -> None:
        self._seeds = {
            seed: base_runs.whole(place / f"whole-{seed}", base_runs.brief(seed=seed, frames=160))
            for seed in (1, 2)
        }
        self._base = place / "base"
        base_runs.paused(self._base, base_runs.brief(seed=1, frames=160), 140)

    def run(self, case: Case) -> dict[str, Any]:
        if case.group == SWEPT:
            return self._sweep(case)
        return self._two(case)

    def _two(self, case: Case) -> dict[str, Any]:
        directory = case.place / "run"
        if case.group == NEW:
            both = [
                Forked(case.place, train, directory, settings, base_runs.SELDOM)
                for settings in (base_runs.brief(seed=s, frames=160) for s in (1, 2))
            ]
        else:
            import shutil

            shutil.copytree(self._base, directory)
            command = ["resume", str(directory), *base_runs.RESUME]
            both = [Forked(case.place, main, command) for _ in (1, 2)]
        ends = [process.ended() for process in both]
        winners = [number for number, end in enumerate(ends) if end.code == 0]
        seed = RunDirectory(directory).settings().seed
        if outcome(directory) != self._seeds[seed]:
            raise Failure(f"the run is not that of its seed {seed}")
        if case.group == NEW and winners != [seed - 1]:
            raise Failure(f"{len(winners)} finished, config.json is of seed {seed}")
        for end in ends:
            # The second may come after the first has finished, and finds nothing to do.
            if end.code and ("ValueError" not in end.err and "ezgreedy:" not in end.err):
                raise Failure(f"the other was not told: {end.err[-300:]}")
        return {"winners": len(winners)}

    def _sweep(self, case: Case) -> dict[str, Any]:
        out = case.place / "sweep"
        games = "minatar/breakout,minatar/freeway"
        command = ["sweep", "minatar", "--out", str(out), "--games", games, *_TINY]
        command += ["--agents", "rainbow-ez", "--seeds", str(NUM_RUNS // 2)]
        command += ["--jobs", str(NUM_JOBS)]
        ended = Forked(case.place, main, command, has_children=True).ended(self.seconds)
        if ended.code != 0:
            raise Failure(f"the sweep ended with {ended.code}: {ended.err[-300:]}")
        runs = sorted((out / "runs").iterdir())
        if len(runs) != NUM_RUNS or not all(read_run(run).is_finished for run in runs):
            raise Failure(f"{len(runs)} runs, or not all are finished")
        for run in runs:
            self._require_once(run)
        entries = json.loads((out / "sweep.json").read_text())["runs"]
        if any(entry["failure"] for entry in entries.values()):
            raise Failure("a run failed on its way")
        return {"trials": NUM_RUNS}

    def _require_once(self, run: Path) -> None:
        rows = read_results(run / "results.jsonl")
        keys = [(row["kind"], row["frames"]) for row in rows]
        if len(set(keys)) != len(keys):
            raise Failure(f"{run.name} has rows twice")


ROW = Claims()
