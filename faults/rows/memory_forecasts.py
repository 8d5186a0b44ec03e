"""Row m: is memory forecast, are limits seen, and is too much refused in time?"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ezgreedy.agents.registry import run_of
from ezgreedy.games.registry import make
from ezgreedy.replay.available_memory import available_bytes
from ezgreedy.runs.memory import memory_bytes
from ezgreedy.runs.settings_codec import with_settings
from faults.commands import Forked
from faults.matrix import Case, Failure, Row
from support.peaks import peak

FORECAST, LIMIT, REFUSAL = "forecast against the peak", "limit of a control group", "refusal"
MOST_SECONDS = 5.0
LIMIT_BYTES = 2**30
_SHORT = {"evaluation.frames": "200", "frames": "1600", "agent.replay_capacity": "1000"}
_SOON = {"rainbow": {"agent.least_replay": "500"}, "r2d2": {"agent.least_windows": "10"}}
CONFIGURATIONS = tuple(
    (agent, game)
    for agent in ("rainbow", "rainbow-ez", "r2d2", "r2d2-ez", "r2d2-rnd", "r2d2-bootstrap")
    for game in ("minatar/breakout", "minatar/freeway")
)


class MemoryForecasts(Row):
    """Memory is known before it is needed."""

    letter = "m"
    title = "Memory"
    goal = "forecast within 10 % of the peak, limits seen, too much refused within 5 s"
    others = "Dopamine #13 and #64: MemoryError after hours; 28 GB of stacked frames (rlcode #128)"
    groups = (*(FORECAST,) * len(CONFIGURATIONS), LIMIT, REFUSAL)
    quick = 0
    full = len(groups)
    seconds = 1200.0

    def run(self, case: Case) -> dict[str, Any]:
        if case.group == FORECAST:
            return self._forecast(case, *CONFIGURATIONS[case.number % len(self.groups)])
        if case.group == LIMIT:
            return self._limit(case)
        return self._refusal(case)

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        shares = [fact["share"] for fact in facts if "share" in fact]
        if shares:
            return f"forecast {min(shares):.2f} to {max(shares):.2f} of the peak"
        return "; ".join(fact["words"] for fact in facts)

    def _forecast(self, case: Case, agent: str, game: str) -> dict[str, Any]:
        settings = run_of(agent, "laptop", game)
        command = ["train", agent, "--game", game, "--scale", "laptop", "--quiet"]
        command += ["--checkpoint-seconds", "1000000"]
        changes = {**_SHORT, **_SOON[agent.split("-")[0]]}
        told = [f"{name}={value}" for name, value in changes.items()]
        settings = with_settings(settings, told)
        for change in told:
            command += ["--set", change]
        peak([*command, "--out", str(case.place / "first")])  # the first may compile
        real = peak([*command, "--out", str(case.place / "second")])
        shape = make(game, settings.protocol, rng=case.rng).frame_shape
        share = memory_bytes(settings, shape) / real
        if not 1.0 <= share <= 1.1:
            raise Failure(f"{agent} on {game}: the forecast is {share:.2f} of the peak")
        return {"share": round(share, 3)}

    def _limit(self, case: Case) -> dict[str, Any]:
        group = _control_group(case)
        if group is None:
            return {"trials": 0, "words": "no right to make a control group"}
        try:
            ended = Forked(case.place, _seen_within, group).ended()
        finally:
            os.rmdir(group)
        seen = int(ended.out.split()[-1])
        if seen > LIMIT_BYTES:
            raise Failure(f"{seen} bytes are said to be free within a limit of {LIMIT_BYTES}")
        return {"words": "limit seen"}

    def _refusal(self, case: Case) -> dict[str, Any]:
        out = str(case.place / "run")
        command = ["train", "r2d2", "--game", "Breakout", "--out", out]
        command += ["--set", "agent.replay_capacity=4000000000"]
        begun = time.monotonic()
        # As a user would, in a new process: one that has loaded PyTorch already proves nothing.
        ended = subprocess.run(
            [sys.executable, "-m", "ezgreedy", *command],
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.monotonic() - begun
        if ended.returncode != 2 or "memory" not in ended.stderr:
            raise Failure(f"exit code {ended.returncode}: {ended.stderr[-300:]}")
        if took > MOST_SECONDS:
            raise Failure(f"refused after {took:.1f} s")
        return {"words": f"refused after {took:.1f} s"}


def _control_group(case: Case) -> Path | None:
    """A new control group with a limit, of either version; None without the right to make one."""
    name = f"ezgreedy-faults-{os.getpid()}-{case.number}"
    for place, file in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = place / name
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(str(LIMIT_BYTES))
        except OSError:
            group.rmdir()
            continue
        return group
    return None


def _seen_within(group: Path) -> int:
    (group / "cgroup.procs").write_text(str(os.getpid()))
    print(available_bytes())
    return 0


ROW = MemoryForecasts()
