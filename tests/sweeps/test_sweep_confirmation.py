"""A sweep that takes more than an hour asks, on a real terminal, and does as it is told."""

import os
import select
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ezgreedy.runs.run_directory import PAUSED, RunDirectory
from ezgreedy.sweeps.definitions import find, members
from ezgreedy.sweeps.sweep_directory import SweepDirectory
from support.processes import stat_fields

SOURCES = Path(__file__).parents[2] / "src"
SECONDS = 240.0  # for anything; the machine may be busy
CTRL_C, CTRL_D = b"\x03", b"\x04"
CHANGES = [
    *("lanes=2", "agent.hidden_size=8", "agent.least_replay=40", "agent.replay_capacity=300"),
    *("agent.learner.batch_size=4", "evaluation.frames=60", "evaluation.lanes=2"),
]


@pytest.fixture
def out(tmp_path):
    """A sweep of one run that has shown ten frames a second, so that nothing is to be measured."""
    asked = replace(find("minatar"), games=("minatar/breakout",), agents=("rainbow",), num_seeds=1)
    (run,) = members(asked, CHANGES)
    place = SweepDirectory(tmp_path / "out")
    with place:
        place.open(asked, CHANGES, [run])
        place.begin(run)
    place.run(run.id).write_status(PAUSED, frames=0, frames_per_second=10.0)
    return place.path


class Terminal:
    """A command with a terminal of its own, at which somebody sits."""

    def __init__(self, command):
        self.said = ""
        self._end, other_end = os.openpty()
        name = os.ttyname(other_end)
        self._process = subprocess.Popen(
            # What opens a terminal first, in a session without one, is interrupted by its Ctrl-C.
            ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', name, *command],
            env=os.environ | {"PYTHONPATH": str(SOURCES)},
            start_new_session=True,
        )
        self._other_end = other_end  # open, or reading would fail until the command has it

    def read_until(self, text):
        end = time.monotonic() + SECONDS
        while text not in self.said:
            assert time.monotonic() < end, self.said
            if self._process.poll() is not None and not self._has_more():
                raise AssertionError(f"it ended: {self.said}")
            if self._has_more():
                self.said += os.read(self._end, 4096).decode()

    def type(self, keys):
        os.write(self._end, keys)

    def wait_until_it_waits(self):
        """Until Python has begun to wait for an answer.

        A Ctrl-C that comes after the question is shown and before that is noticed with the next key
        only: nobody types so fast, but a test does.
        """
        end = time.monotonic() + SECONDS
        while stat_fields(self._process.pid)[0] != "S":
            assert time.monotonic() < end, self.said

    def exit_code(self):
        """Waits for the end; what is said until then is read."""
        end = time.monotonic() + SECONDS
        while self._process.poll() is None or self._has_more():
            assert time.monotonic() < end, self.said
            if self._has_more():
                self.said += os.read(self._end, 4096).decode()
        return self._process.returncode

    def close(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._end)
        os.close(self._other_end)

    def _has_more(self):
        return bool(select.select([self._end], [], [], 0.05)[0])


@pytest.fixture
def terminal(out):
    """The sweep's command, up to its question."""
    command = [
        *(sys.executable, "-m", "ezgreedy", "sweep", "minatar", "--out", str(out)),
        *("--games", "minatar/breakout", "--agents", "rainbow", "--seeds", "1", "--jobs", "1"),
        *(word for change in CHANGES for word in ("--set", change)),
    ]
    terminal = Terminal(command)
    terminal.read_until("it takes about 13.9 h. Start? [y/N] ")
    terminal.wait_until_it_waits()
    yield terminal
    terminal.close()


def owner(out):
    """How the run is, and who runs it."""
    (run,) = (out / "runs").iterdir()
    return RunDirectory(run).status()


@pytest.mark.parametrize("keys", [b"n\n", b"\n", CTRL_D, CTRL_C])
def test_without_a_yes_nothing_is_begun(terminal, out, keys):
    before = owner(out)
    terminal.type(keys)
    assert terminal.exit_code() == (130 if keys == CTRL_C else 2)
    assert "Traceback" not in terminal.said
    assert owner(out) == before
    assert not list((out / "logs").iterdir())


def test_a_yes_begins_it_and_ctrl_c_saves_and_stops_it(terminal, out):
    terminal.type(b"Y\n")
    end = time.monotonic() + SECONDS
    while owner(out)["state"] != "running":
        assert time.monotonic() < end, terminal.said
        time.sleep(0.05)
    terminal.type(CTRL_C)
    assert terminal.exit_code() == 130
    assert "stopped; repeat the command to continue" in terminal.said
    assert owner(out)["state"] == PAUSED
