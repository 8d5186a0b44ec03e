"""Who runs the runs of a sweep? Processes, one for each, which begin and end with it.

They are forked from a process that has loaded everything and runs nothing, so a beginning costs
little and a crash ends one run alone. They never see Ctrl-C, which is for the sweep to handle: it
asks them to save and stop; so does its end, whatever ends it.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

from ezgreedy.results.store import InUseError
from ezgreedy.running.sweep_directory import is_full_disk

_context = multiprocessing.get_context("forkserver")
_MODULES = [
    *("ezgreedy.running.driver", "ezgreedy.agents.r2d2", "ezgreedy.agents.rainbow"),
    *("tensorboardX", "torch._dynamo"),  # the second for the first optimiser, which takes seconds
]
_GAMES = ["ale_py", "minatar", "gymnasium"]  # as far as the sweep has met games that need them

ENDED, IN_USE, NO_ROOM, BROKEN = "ended", "in use", "no room", "broken"


class Outcome(NamedTuple):
    """What became of a process: a word from above, and more words or what it computed."""

    kind: str
    told: Any


class Job:
    """A process that computes something, with its words in a file.

    Args:
        function: what is called, importable.
        arguments: of it.
        log: where its output goes, appended.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], log: Path) -> None:
        # Before the first process: libraries read it when they are loaded.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        _context.set_forkserver_preload(_MODULES + [name for name in _GAMES if name in sys.modules])
        self._reader, writer = _context.Pipe(duplex=False)
        self._process: ForkServerProcess = _context.Process(
            target=_call, args=(function, arguments, log, writer)
        )
        self._process.start()
        writer.close()
        self._was_asked = False

    @property
    def sentinel(self) -> int:
        """Something to wait for the end with."""
        return self._process.sentinel

    def ask_to_stop(self) -> None:
        """To save and stop; being asked again means at once, so this asks only once."""
        if not self._was_asked and self._process.is_alive():
            self._process.terminate()
        self._was_asked = True

    def stop(self, seconds: float) -> None:
        """Makes it stop: it may take so long, and is killed after."""
        self._process.terminate()
        self._process.join(seconds)
        self._process.kill()

    def outcome(self) -> Outcome:
        """What became of it; waits for its end."""
        self._process.join()
        try:
            told = self._reader.recv() if self._reader.poll() else None
        except EOFError:
            told = None
        self._reader.close()
        if isinstance(told, Outcome):
            return told
        if self._was_asked:
            return Outcome(ENDED, None)  # before there was anything to save
        code = self._process.exitcode or 0
        told = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return Outcome(BROKEN, f"its process ended with {told}")


def run_to_the_end(directory: Path, seconds_between_checkpoints: float) -> int:
    """A run from wherever it is, also from its very beginning; the exit code."""
    from ezgreedy.running.driver import DriveOptions, resume  # PyTorch is for these processes alone

    return resume(directory, DriveOptions(seconds_between_checkpoints, is_quiet=True))


def _call(
    function: Callable[..., Any], arguments: tuple[Any, ...], log: Path, writer: Connection
) -> None:
    os.setsid()  # a terminal's Ctrl-C goes to the sweep alone
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    with log.open("a", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    outcome = _outcome(function, arguments)
    if outcome.kind != ENDED:
        sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {outcome.told}\n")
        sys.stderr.flush()
    writer.send(outcome)


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    try:
        return Outcome(ENDED, function(*arguments))
    except InUseError as error:
        return Outcome(IN_USE, str(error))
    except OSError as error:
        if is_full_disk(error.errno):
            return Outcome(NO_ROOM, f"{error.strerror}: {error.filename}")
        traceback.print_exc()
        return Outcome(BROKEN, f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        return Outcome(ENDED, 130)
    except Exception as error:
        # Whatever an environment or a library throws must end this run and no other.
        traceback.print_exc()
        return Outcome(BROKEN, f"{type(error).__name__}: {error}")


def _stop_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
