"""Row k: environments that break what they promise."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

from ezgreedy.runs.run_loop import train
from faults import base_runs
from faults.commands import require_sentence, told_by
from faults.matrix import Case, Failure, Row
from support.written_environments import BREACHES, Walk

ID = "faults/Bad-v0"
_PICTURE = np.zeros((20, 30, 3), np.uint8)


class Unbuildable(Walk):
    """Its constructor raises."""

    def __init__(self) -> None:
        raise KeyError("no such level")


class Unstartable(Walk):
    """It cannot be reset."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        raise RuntimeError("out of quarters")


class Odd(Walk):
    """Its observations are no arrays of bytes."""

    def __init__(self, space: Any) -> None:
        super().__init__()
        self.observation_space = space


def _raise(kind: type[BaseException]) -> Callable[..., Any]:
    def breach(answer: Any, env: Any) -> Any:
        raise kind("the cable is out")

    return breach


KINDS: dict[str, dict[str, Any]] = {
    **{name: {"third": breach} for name, (breach, _) in BREACHES.items()},
    "memory error": {"third": _raise(MemoryError)},
    "recursion": {"third": _raise(RecursionError)},
    "zero division": {"third": _raise(ZeroDivisionError)},
    "assertion": {"third": _raise(AssertionError)},
    "reset of one": {"first": _PICTURE},
    "reset of three": {"first": (_PICTURE, {}, 0)},
    "reset of another shape": {"first": (_PICTURE[..., 0], {})},
    "continuous actions": {"actions": Box(-1, 1, (2,))},
    "many actions": {"actions": MultiDiscrete([2, 3])},
    "binary actions": {"actions": MultiBinary(3)},
    "a vector": {"shape": (5,)},
    "two planes": {"shape": (8, 8, 2)},
    "real numbers": {"shape": (8, 8, 3), "dtype": np.float32},
    "no array": {"entry_point": Odd, "space": Discrete(5)},
    "a dictionary": {"entry_point": Odd, "space": Dict()},
    "no constructor": {"entry_point": Unbuildable},
    "no start": {"entry_point": Unstartable},
}
AGENTS = {"Rainbow": "rainbow-ez", "R2D2": "r2d2-ez"}


class BadEnvironments(Row):
    """The first broken promise ends the run with the environment, the rule and what came."""

    letter = "k"
    title = "Bad environments"
    goal = "named with its id on the first bad step; exit code 2, no traceback, status not running"
    others = "SB3: 3 of 7 silent (other dtype, outside its box, text as reward)"
    groups = tuple(AGENTS)
    quick = len(KINDS)
    full = 2 * len(KINDS)

    def run(self, case: Case) -> dict[str, Any]:
        kind = list(KINDS)[case.number // len(AGENTS) % len(KINDS)]
        arguments = dict(KINDS[kind])
        entry = arguments.pop("entry_point", Walk)
        gymnasium.register(ID, entry_point=entry, kwargs=arguments)
        begun = time.monotonic()
        try:
            directory: Path = case.place / "run"
            answer = told_by(_train, directory, AGENTS[case.group])
        finally:
            del gymnasium.registry[ID]
        try:
            require_sentence(answer, ID)
        except Failure as failure:
            raise Failure(f"{kind}: {failure}") from failure
        status = directory / "status.json"
        if status.exists() and '"running"' in status.read_text():
            raise Failure(f"{kind}: the status says that it runs")
        return {"kind": kind, "seconds": round(time.monotonic() - begun, 2)}


def _train(directory: Path, agent: str) -> int:
    # As `train` does it: settings are made after the command was read.
    settings = base_runs.brief(agent, f"gymnasium/{ID}", frames=200)
    return train(directory, settings, base_runs.SELDOM)


ROW = BadEnvironments()
