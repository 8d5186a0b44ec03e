"""Row h: does anything grow while a run goes on with a full replay?"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import theilslopes

from faults.matrix import Case, Failure, Row

ROOT = Path(__file__).parents[2]
MOST_GROWTH = 20e6  # bytes, or this share of the peak
MOST_SHARE = 0.01
MOST_LOGS = 100e6
SECONDS, QUICK_SECONDS = 3600.0, 60.0
_RUN = """
import os, sys
sys.path[:0] = os.environ["FAULTS_TREES"].split(os.pathsep)
from dataclasses import replace
from pathlib import Path
from faults import base_runs
from ezgreedy.runs.run_loop import DriveOptions, train
if __name__ == "__main__":
    settings = base_runs.brief(sys.argv[2], frames=10**12)
    evaluation = replace(settings.evaluation, frames_between=20_000)
    settings = replace(settings, evaluation=evaluation, frames_per_report=10_000)
    options = DriveOptions(2.0, is_quiet=True, checkpoint_share=1.0, keeps_replay=True)
    if sys.argv[3] == "embedded":
        sys.exit(train(Path(sys.argv[1]), settings, options))
    from ezgreedy.fleet import ray_run_loop
    from ezgreedy.fleet.fleet_settings import FleetSettings
    settings = replace(settings, lanes=4)
    sys.exit(ray_run_loop.train(Path(sys.argv[1]), settings, FleetSettings(actors=2), options))
"""
ENGINES = {
    "Rainbow": ("rainbow-ez", "embedded"),
    "R2D2": ("r2d2-ez", "embedded"),
    "R2D2 on Ray": ("r2d2-ez", "ray"),
}


class Soaks(Row):
    """Memory, open files, threads and disk stay where they are after the replay is full."""

    letter = "h"
    title = "Soak"
    goal = "memory within 1 % or 20 MB; open files, threads and old checkpoints constant"
    others = "RLlib: out of memory after 10 h (#21718), 220 GB of logs (#9392)"
    groups = tuple(ENGINES)
    quick = len(groups)
    full = len(groups)
    seconds = 3.0 * SECONDS

    def run(self, case: Case) -> dict[str, Any]:
        agent, engine = ENGINES[case.group]
        length = SECONDS if self.is_full else QUICK_SECONDS
        directory = case.place / "run"
        trees = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        with (case.place / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", _RUN, str(directory), agent, engine],
                env=os.environ | {"FAULTS_TREES": trees, "TMPDIR": str(case.place)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                samples = self._watch(process, directory, length)
            finally:
                process.terminate()
                process.wait(120.0)
        return self._judged(samples, length)

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        last = facts[-1]
        return f"{last['minutes']:.0f} min, {last['grown_mb']:+.1f} MB of {last['peak_mb']:.0f}"

    def _watch(self, process: Any, directory: Path, length: float) -> Any:
        begun = time.monotonic()
        warm = begun + 0.3 * length + 30.0  # imports, compilation, a full replay
        samples = []
        while time.monotonic() < begun + length + 30.0:
            if process.poll() is not None:
                raise Failure(f"ended by itself with {process.returncode}")
            if time.monotonic() > warm:
                samples.append((time.monotonic(), *_size(process.pid), _disk(directory)))
            time.sleep(min(10.0, length / 60.0))
        return np.array(samples, dtype=float)

    def _judged(self, samples: Any, length: float) -> dict[str, Any]:
        if len(samples) < 10:
            raise Failure("too few samples")
        times, memory, files, threads, disk = samples.T
        grown = float(theilslopes(memory, times)[0]) * (times[-1] - times[0])
        peak = float(memory.max())
        if grown > max(MOST_SHARE * peak, MOST_GROWTH):
            raise Failure(f"memory grew by {grown / 1e6:.1f} MB in {length / 60:.0f} min")
        half = len(samples) // 2
        for name, series in (("open files", files), ("threads", threads)):
            if series[half:].max() > series[:half].max():
                raise Failure(f"{name}: {series[:half].max():.0f}, then {series[half:].max():.0f}")
        if disk[half:].max() > 1.2 * disk[:half].max() + 1e6 or disk.max() > MOST_LOGS:
            raise Failure(f"disk: {disk[:half].max():.0f} bytes, then {disk[half:].max():.0f}")
        return {
            "minutes": round(float(times[-1] - times[0]) / 60.0, 1),
            "grown_mb": round(grown / 1e6, 2),
            "peak_mb": round(peak / 1e6, 1),
            "samples": len(samples),
        }


def _size(pid: int) -> tuple[float, int, int]:
    """Private and shared memory, open files and threads of a process and all it began."""
    memory, files, threads = 0.0, 0, 0
    for one in _family(pid):
        place = Path(f"/proc/{one}")
        try:
            for line in (place / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    memory += 1024.0 * int(line.split()[1])
            files += len(list((place / "fd").iterdir()))
            threads += len(list((place / "task").iterdir()))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return memory, files, threads


def _family(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        for path in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += [int(word) for word in path.read_text().split()]
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def _disk(directory: Path) -> float:
    # Results and TensorBoard's events grow with what was played, and are meant to.
    total = 0.0
    for place, _, names in os.walk(directory / "checkpoints"):  # passes over what vanishes
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(Path(place, name)).st_size
    return total


ROW = Soaks()
