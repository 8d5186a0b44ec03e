"""Row b: processes of a run on Ray are killed, and others hang."""

import importlib.util
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from faults.matrix import Case, Failure, Row

ROLES = ("actor 1", "memory 0", "the learner", "the evaluator")
KILL, STOP = "SIGKILL", "SIGSTOP"
FOUND_WITHIN = 30.0
BACK_WITHIN = 60.0


class RayRoles(Row):
    """A lost process is replaced, and everybody else goes on."""

    letter = "b"
    title = "Processes on Ray"
    goal = "a hung process found within 30 s, all back within 60 s, no window twice"
    others = (
        "RLlib: 213 s for 3,000 steps with two crashes; Acme: without the learner nothing learns"
    )
    groups = tuple(f"{sign} {role}" for sign in (KILL, STOP) for role in ROLES)
    quick = 2
    full = 10 * len(groups)
    seconds = 600.0

    def prepare(self, place: Path) -> None:
        if importlib.util.find_spec("ray") is None:
            raise SystemExit("row b needs Ray: pip install 'ezgreedy[ray]'")
        from dataclasses import replace

        from ezgreedy.fleet.coordinator import FleetTraining
        from ezgreedy.fleet.fleet_settings import Patience
        from ezgreedy.fleet.session import LocalSession
        from support import small_fleets

        # The patience of real runs, but for the number of crashes that it takes to give up.
        fleet = replace(small_fleets.FLEET, patience=Patience(most_crashes=10_000))
        self._session = LocalSession(fleet.num_processes, 100)
        self._session.__enter__()
        memories = place / "memories"
        memories.mkdir()
        self._training = FleetTraining(small_fleets.SETTINGS, fleet, memories)
        self._training.__enter__()
        small_fleets.goes_on(self._training, 900.0)  # a busy machine begins slowly
        self._training.state_dict()

    def close(self) -> None:
        for name in ("_training", "_session"):
            if name in vars(self):
                getattr(self, name).__exit__(None, None, None)
                delattr(self, name)

    def run(self, case: Case) -> dict[str, Any]:
        from support.small_fleets import goes_on, turn_until

        sign, _, role = case.group.partition(" ")
        training = self._training
        goes_on(training)
        for _ in range(int(case.rng.integers(1, 40))):
            training.step()
        before, restarts = training.pids()[role], training.num_restarts
        frames = training.frames
        begun = time.monotonic()
        os.kill(before, getattr(signal, sign))
        try:
            turn_until(training, lambda: training.num_restarts > restarts)
            found = time.monotonic() - begun
            meanwhile = training.frames - frames
            turn_until(training, lambda: training.pids()[role] not in (None, before))
            back = time.monotonic() - begun
            goes_on(training)
        except AssertionError as error:
            raise Failure(f"nothing happened: {error}") from error
        if found > FOUND_WITHIN or back > BACK_WITHIN:
            raise Failure(f"found after {found:.1f} s, back after {back:.1f} s")
        if sign == STOP and role != "the learner" and meanwhile == 0:
            raise Failure(f"the others stood still for {found:.1f} s")
        if training.status().get("duplicates", 0.0):
            raise Failure("a window came twice")
        training.take_notices()
        training.state_dict()
        return {"found": round(found, 1), "back": round(back, 1), "frames": int(meanwhile)}

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        found, back = (max(fact[name] for fact in facts) for name in ("found", "back"))
        return f"found within {found:.1f} s, back within {back:.1f} s"


ROW = RayRoles()
