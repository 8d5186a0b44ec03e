"""The commands under test: in this process, or in one that is forked with all imports done."""

import io
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from ezgreedy import cli
from ezgreedy.checkpoints.store import Checkpoints
from ezgreedy.runs.run_directory import RunDirectory
from faults.matrix import Failure
from support.states import bits

_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(
    ["ezgreedy.runs.run_loop", "ezgreedy.agents.r2d2.agent", "ezgreedy.cli", "ale_py"]
)


class Told(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


def told(arguments: Sequence[str]) -> Told:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = cli.main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return Told(code, out.getvalue(), err.getvalue())


def as_command(function: Callable[..., int], *arguments: Any) -> int:
    """Call a function as the command line calls its own, which makes sentences of its errors."""

    class Parsed:
        @staticmethod
        def run(parsed: Any) -> int:
            return function(*arguments)

    class Parser:
        @staticmethod
        def parse_args(words: Sequence[str]) -> type[Parsed]:
            return Parsed

    with (
        patch.object(cli, "_parser", Parser),
        patch.object(cli.completion, "answer", lambda parser: None),
    ):
        return cli.main([])


def told_by(function: Callable[..., int], *arguments: Any) -> Told:
    """The same in this process, with what it writes."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = as_command(function, *arguments)
    return Told(code, out.getvalue(), err.getvalue())


def require_sentence(answer: Told, *names: str) -> None:
    """A refusal is exit code 2 and a sentence that names what is wrong."""
    if answer.code != 2:
        raise Failure(f"exit code {answer.code} instead of 2: {answer.err[-300:]}")
    said = " ".join(answer.err.split())
    if "Traceback" in said or not said:
        raise Failure(f"no sentence: {said[-300:]!r}")
    if names and not any(name in said for name in names):
        raise Failure(f"names none of {', '.join(names)}: {said[-300:]}")


def outcome(directory: Path) -> tuple[bytes, Any]:
    """What a finished run leaves: every byte of its results and every bit of its last state."""
    place = RunDirectory(directory)
    loaded = Checkpoints(place.checkpoints, place.identity()).load()
    if loaded is None:
        raise Failure("a finished run has no checkpoint")
    return place.results.read_bytes(), bits(loaded.state)


class Forked:
    """A function in a process of its own, with its output in files.

    Args:
        place: directory of the output files.
        function: importable by its name; its int is the exit code.
        arguments: what it is called with.
        has_children: whether it begins processes itself; one that does not ends with this one.
    """

    def __init__(
        self,
        place: Path,
        function: Callable[..., Any],
        *arguments: Any,
        has_children: bool = False,
    ) -> None:
        self._files = place / f"out-{time.monotonic_ns()}", place / f"err-{time.monotonic_ns()}"
        self.process: BaseProcess = _FORKED.Process(
            target=_run, args=(self._files, function, arguments), daemon=not has_children
        )
        self.process.start()
        assert self.process.pid is not None
        self.pid = self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process.is_alive()

    def kill(self) -> None:
        """End it at once, if it has not ended."""
        if self.process.is_alive():
            os.kill(self.pid, signal.SIGKILL)
        self.process.join()

    def ended(self, seconds: float = 600.0) -> Told:
        """Wait for its end; one that does not end is a failure."""
        self.process.join(seconds)
        if self.process.is_alive():
            self.kill()
            raise Failure(f"did not end within {seconds:g} s")
        assert self.process.exitcode is not None
        out, err = (path.read_text() if path.exists() else "" for path in self._files)
        return Told(self.process.exitcode, out, err)


def _run(files: tuple[Path, Path], function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    for path, stream in zip(files, (sys.stdout, sys.stderr), strict=True):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, stream.fileno())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = function(*arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code if isinstance(code, int) else 0)
