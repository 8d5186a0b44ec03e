"""Row f: command lines and settings that nobody meant."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from ezgreedy.agents.registry import agents, run_of, scales
from ezgreedy.named_settings import flattened
from ezgreedy.results.store import read_json
from ezgreedy.runs.settings_codec import as_plain
from faults import base_runs
from faults.commands import Told, require_sentence, told
from faults.matrix import Case, Failure, Row

LINES, SET, CONFIG, PROCESSES = "command lines", "--set", "values in config.json", "new processes"
MOST_BYTES = 16 * 2**30  # of address space, so that no setting can take the machine's memory
HOSTILE = (
    *("", " ", "0", "-1", "1", "2", "3.5", "-0.0", "nan", "inf", "-inf", "1e400", "1e6", "1e-320"),
    *("999999999999999999999999", "0x10", "1_000", "١٢", "½", "none", "None", "true", "yes", "no"),
    *(
        "a" * 5000,
        "--",
        "-",
        "=",
        "a=b",
        "\n",
        "\x00",
        "\x1b[31m",
        "é",
        "𝔘",
        "\ud800",
        "../..",
        "/",
    ),
    *(
        ".",
        "~",
        "*",
        "%s",
        "{}",
        "{0}",
        "$(id)",
        "`id`",
        "'",
        '"',
        "\\",
        "Zeta(",
        "Zeta()",
        "Zeta(2",
    ),
    *(
        "Zeta(2,3,4,5)",
        "Zeta(cap=-1)",
        "Zeta(nan)",
        "Linear(1,2,3)",
        "Fixed(0)",
        "__import__('os')",
    ),
    *("lambda: 0", "1,2,3", ",", ",,", "1;2", "[1]", "(1,)", "{'a': 1}", "cpu", "cuda", "cuda:99"),
)
# Where work is in proportion to a number, no number is large.
SMALL = ("-1", "0", "1", "2", "nan", "x", "", "-0.5", "1e400", "½")
JSON = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**70), 1.5, -1e308, 1e308, "", "x", "nan"),
    *(
        [],
        [1],
        [[[]]],
        {},
        {"class": "Zeta"},
        {"class": "os.system"},
        {"a": {"b": None}},
        "a" * 9999,
    ),
)


class Accepted(BaseException):
    """The command was understood and would begin its work now."""


class Fuzzing(Row):
    """A command that cannot be is refused in a sentence, and nothing is written."""

    letter = "f"
    title = "Bad commands and settings"
    goal = "exit code 2 and one sentence; no traceback, no hang, nothing written"
    others = "SB3's DQN accepts 11 of 16 wrong settings (γ = 1.5, batch 0, buffer 0, τ = 2 ...)"
    groups = (*(LINES, SET, CONFIG) * 16, PROCESSES)
    quick = 49 * 8
    full = 49 * 105
    seconds = 300.0

    def prepare(self, place: Path) -> None:
        self._limits = resource.getrlimit(resource.RLIMIT_AS)
        self._place = place
        self._run = place / "run"
        base_runs.paused(self._run, base_runs.brief(), 200)
        # Written back without its checksum, as by an earlier version, so that values are read.
        self._config = read_json(self._run / "config.json")
        self._names = {
            agent: sorted(flattened(as_plain(run_of(agent, "laptop", "minatar/breakout"))))
            for agent in agents()
        }
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, self._limits[1]))

    def close(self) -> None:
        resource.setrlimit(resource.RLIMIT_AS, self._limits)

    def run(self, case: Case) -> dict[str, Any]:
        tries: dict[str, Callable[[Case], dict[str, Any]]] = {
            LINES: self._line,
            SET: self._set,
            CONFIG: self._values,
            PROCESSES: self._process,
        }
        before = os.getcwd()
        os.chdir(case.place)
        try:
            return tries[case.group](case)
        finally:
            os.chdir(before)

    def words(self, facts: Sequence[dict[str, Any]]) -> str:
        return f"{sum(fact['refused'] for fact in facts)} refused"

    def _line(self, case: Case) -> dict[str, Any]:
        words = _Lines(case.rng, self._run).words()
        return self._judged(words, _tried(words), case)

    def _set(self, case: Case) -> dict[str, Any]:
        rng = case.rng
        agent = str(rng.choice(sorted(self._names)))
        words = ["train", agent, "--game", "minatar/breakout", "--scale", "laptop", "--out", "run"]
        for _ in range(int(rng.integers(1, 4))):
            name = str(rng.choice(self._names[agent]))
            if rng.random() < 0.1:
                name = _mistyped(name, rng)
            words += ["--set", f"{name}={rng.choice(HOSTILE)}"]
        return self._judged(words, _tried(words), case)

    def _values(self, case: Case) -> dict[str, Any]:
        rng = case.rng
        shutil.copytree(self._run, case.place / "run")
        config = json.loads(json.dumps(self._config))
        place: Any = config
        while True:
            key = str(rng.choice(sorted(place)))
            if not isinstance(place[key], dict) or not place[key] or rng.random() < 0.1:
                break
            place = place[key]
        place[key] = JSON[int(rng.integers(len(JSON)))]
        (case.place / "run" / "config.json").write_text(json.dumps(config))
        answer = _tried(["resume", "run", "--quiet"])
        if answer is None:
            return {"refused": 0}
        if answer.code == 0:
            raise Failure(f"resumed with {key} = {place[key]!r}")
        require_sentence(answer)
        return {"refused": 1}

    def _process(self, case: Case) -> dict[str, Any]:
        words = [*_Lines(case.rng, self._run).words(), "--no-such-option"]
        words = [word for word in words if "\0" not in word and "\ud800" not in word]
        done = subprocess.run(
            [sys.executable, "-m", "ezgreedy", *words],
            capture_output=True,
            text=True,
            timeout=self.seconds,
            check=False,
        )
        return self._judged(words, Told(done.returncode, done.stdout, done.stderr), case)

    def _judged(self, words: Sequence[str], answer: Told | None, case: Case) -> dict[str, Any]:
        if answer is None or answer.code == 0:
            return {"refused": 0}
        try:
            require_sentence(answer)
            if answer.err.count("\n") > 3:
                raise Failure(f"more than a sentence: {answer.err[-300:]}")
            left = [path.name for path in case.place.iterdir()]
            if left:
                raise Failure(f"refused, but wrote {left}")
        except Failure as failure:
            raise Failure(f"{failure} ({' '.join(words)[:200]!r})") from failure
        return {"refused": 1}


class _Lines:
    """Command lines of real words in wrong places, and of wrong words."""

    def __init__(self, rng: np.random.Generator, run: Path) -> None:
        self._rng = rng
        self._paths = (
            str(run),
            "nowhere",
            "/dev/null",
            "/proc/self",
            "",
            ".",
            str(run / "config.json"),
        )

    def words(self) -> list[str]:
        """One command line."""
        command = self._one(list(_OPTIONS))
        positional, options, values = _OPTIONS[command]
        words = [command] if self._rng.random() < 0.97 else [_mistyped(command, self._rng)]
        for choices in positional:
            if self._rng.random() < 0.9:
                words.append(self._value(choices, HOSTILE))
        for _ in range(int(self._rng.integers(0, 5))):
            option = self._one(options)
            if self._rng.random() < 0.1:
                option = _mistyped(option, self._rng)
            words.append(option)
            if self._rng.random() < 0.85:
                words.append(self._value(_VALUES.get(option, ()), values))
        return words

    def _value(self, good: Sequence[str], bad: Sequence[str]) -> str:
        if good == ("PATH",):
            return self._one(self._paths)
        return self._one(good) if good and self._rng.random() < 0.6 else self._one(bad)

    def _one(self, choices: Sequence[str]) -> str:
        return choices[int(self._rng.integers(len(choices)))]


_PATH = ("PATH",)
_AGENTS = tuple(agents())
_GAMES = ("Breakout", "minatar/breakout", "deep_sea/5", "memory_chain/4", "gymnasium/CartPole-v1")
_SWEEPS = ("minatar", "atari57-rainbow", "status")
_EXPERIMENTS = ("fig3-deepsea", "fig2-chain-durations", "cover-times")
_TRAINING = ("--game", "--out", "--frames", "--seed", "--scale", "--device", "--set")
_SAVING = ("--checkpoint-seconds", "--checkpoint-share", "--keep-replay", "--quiet")
_FLEET = ("--actors", "--shards", "--evaluators", "--evaluation-seconds", "--address", "--engine")
_VALUES: dict[str, Sequence[str]] = {
    "--game": _GAMES,
    "--games": ("minatar/breakout", "Breakout,Pong"),
    "--agents": ("rainbow-ez", "r2d2,r2d2-ez"),
    "--out": ("out", "a/b/c"),
    "--scale": tuple(scales()),
    "--engine": ("embedded", "local", "ray"),
    "--device": ("cpu", "cuda"),
    "--set": ("lanes=2", "agent.hidden_size=8", "seed=1", "agent.durations=Zeta(2)", "lanes=0"),
}
# Positional words, options, and the pool of values, of every command.
_OPTIONS: dict[str, tuple[Sequence[Sequence[str]], Sequence[str], Sequence[str]]] = {
    "train": (
        [_AGENTS],
        [
            "--game",
            "--out",
            "--frames",
            "--seed",
            "--scale",
            "--device",
            "--set",
            *_SAVING,
            *_FLEET,
        ],
        HOSTILE,
    ),
    "resume": ([_PATH], ["--frames", "--device", *_SAVING, *_FLEET], HOSTILE),
    "sweep": (
        [_SWEEPS],
        ["--out", "--games", "--agents", "--seeds", "--frames", "--scale", "--set", "--jobs"],
        HOSTILE,
    ),
    "reproduce": ([_EXPERIMENTS], ["--seeds", "--set", "--jobs", "--quick", "--resume"], HOSTILE),
    "evaluate": ([_PATH], ["--frames", "--number", "--epsilon", "--device"], SMALL),
    "watch": ([_PATH], ["--steps", "--seed", "--epsilon", "--device"], SMALL),
    "collect": ([_PATH], ["--out", "--commit"], HOSTILE),
    "judge": ([("deep-durations", "atari100k"), _PATH], ["--out"], HOSTILE),
    "report": ([_PATH], ["--to", "--markdown"], HOSTILE),
    "demo": ([], ["--epsilon", "--mu", "--size", "--steps", "--walks", "--seed"], SMALL),
    "list": ([], ["--help", "--nothing"], HOSTILE),
}


def _mistyped(word: str, rng: np.random.Generator) -> str:
    place = int(rng.integers(len(word)))
    kind = int(rng.integers(3))
    return (
        word[:place] + word[place + 1 :],
        word[:place] + word[place : place + 2][::-1] + word[place + 2 :],
        word[:place] + "x" + word[place:],
    )[kind]


def _tried(words: Sequence[str]) -> Told | None:
    """What a command says; None if it would begin its work."""
    with _no_work():
        try:
            return told(words)
        except Accepted:
            return None


@contextmanager
def _no_work() -> Iterator[None]:
    """Let commands come to the point where they would begin to work, and no further."""

    def begin(*arguments: Any, **named: Any) -> Any:
        raise Accepted

    from ezgreedy.commands import sweep
    from ezgreedy.experiments import runner
    from ezgreedy.fleet import ray_run_loop
    from ezgreedy.runs import run_loop

    with ExitStack() as stack:
        for module, name in (
            (run_loop, "drive"),
            (ray_run_loop, "train"),
            (ray_run_loop, "resume"),
            (sweep, "_is_agreed"),
            (runner, "Workers"),
        ):
            stack.enter_context(patch.object(module, name, begin))
        yield


ROW = Fuzzing()
