"""Row i: the same settings, in other processes, orders and surroundings."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ezgreedy.results.store import read_results
from faults import base_runs
from faults.commands import outcome, told
from faults.matrix import Case, Failure, Row

AGENTS = {"Rainbow": "rainbow-ez", "R2D2": "r2d2-ez", "CTS": "rainbow-cts", "RND": "r2d2-rnd"}
JOBS = "jobs of a study"
TREES = (str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "tests"))
_TRAIN = """
import os, sys
sys.path[:0] = os.environ["FAULTS_TREES"].split(os.pathsep)
from dataclasses import replace
from pathlib import Path
from faults import base_runs
from ezgreedy.runs.run_loop import train
if __name__ == "__main__":
    settings = base_runs.brief(sys.argv[2], frames=int(sys.argv[4]))
    settings = replace(settings, threads=int(sys.argv[3]))
    sys.exit(train(Path(sys.argv[1]), settings, base_runs.SELDOM))
"""


class Determinism(Row):
    """Nothing but the settings decides the bits of a run."""

    letter = "i"
    title = "Determinism"
    goal = "identical bits over processes, hash seeds, threads and numbers of jobs"
    others = 'SB3: one process, 500 steps; PyTorch: "not guaranteed across releases or platforms"'
    groups = (*AGENTS, JOBS)
    quick = len(groups)
    full = 12 * len(groups)
    seconds = 1800.0

    def prepare(self, place: Path) -> None:
        self._place = place
        self._whole: dict[str, Any] = {}

    def run(self, case: Case) -> dict[str, Any]:
        if case.group == JOBS:
            return self._jobs(case)
        rng = case.rng
        hash_seed = str(rng.choice(["0", "1", "random"]))
        threads = int(rng.choice([1, 2]))
        if case.group not in self._whole:
            settings = base_runs.brief(AGENTS[case.group], frames=240)
            base_runs.whole(self._place / case.group, settings)
            self._whole[case.group] = _numbers(self._place / case.group)
        directory = case.place / "run"
        command = [sys.executable, "-c", _TRAIN, str(directory), AGENTS[case.group], str(threads)]
        environment = {"PYTHONHASHSEED": hash_seed, "FAULTS_TREES": os.pathsep.join(TREES)}
        done = subprocess.run(
            [*command, "240"],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Failure(f"exit code {done.returncode}: {done.stderr[-300:]}")
        if _numbers(directory) != self._whole[case.group]:
            raise Failure(f"other bits with hash seed {hash_seed} and {threads} threads")
        return {"hash_seed": hash_seed, "threads": threads}

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        if "jobs" in facts[0]:
            return f"jobs {sorted({fact['jobs'] for fact in facts})}"
        return f"threads {sorted({fact['threads'] for fact in facts})}"

    def _jobs(self, case: Case) -> dict[str, Any]:
        jobs = (2, 1, 4)[case.number // len(self.groups) % 3]
        if JOBS not in self._whole:
            self._whole[JOBS] = self._study(self._place / "study", 1)
        if self._study(case.place / "study", jobs) != self._whole[JOBS]:
            raise Failure(f"other results with {jobs} jobs")
        return {"jobs": jobs}

    def _study(self, out: Path, jobs: int) -> list[Any]:
        answer = told([*base_runs.STUDY_COMMAND, "--jobs", str(jobs), "--out", str(out)])
        if answer.code:
            raise Failure(f"exit code {answer.code}: {answer.err[-300:]}")
        # Jobs finish in any order; what they found must not depend on it.
        found = base_runs.study_results(out)
        return [{k: v for k, v in record.items() if k != "seq"} for record in found]


def _numbers(directory: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All that a run found, without its name, which says how many threads it has."""
    _, state = outcome(directory)
    state = {name: part for name, part in state.items() if name != "results_offset"}
    records = read_results(directory / "results.jsonl")
    return [{k: v for k, v in record.items() if k != "run"} for record in records], state


ROW = Determinism()
