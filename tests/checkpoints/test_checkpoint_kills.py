"""A process killed at any moment leaves a checkpoint that was saved as a whole."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("safetensors")

from ezgreedy.checkpoints.store import Checkpoints
from support.states import assert_same

NUM_KILLS = 60

STATES = """
import numpy as np
from ezgreedy.checkpoints.append_only_ring import AppendOnlyRing

def state_at(step):
    num_written = 7 * step
    items = np.arange(max(0, num_written - 50), num_written)
    ring = np.zeros((50, 30), dtype=np.uint8)
    ring[items % 50] = items[:, None]
    weights = np.random.default_rng(step).normal(size=100)
    return {"step": step, "weights": weights, "ring": AppendOnlyRing(ring, num_written)}
"""
# Importing takes longer than all saves, so one process imports and then forks each saver.
SAVERS = (
    STATES
    + """
import os
import sys
from pathlib import Path
from ezgreedy.checkpoints.store import Checkpoints
import safetensors.numpy

def save_forever():
    checkpoints = Checkpoints(Path(sys.argv[1]), {})
    loaded = checkpoints.load()
    step = loaded.step if loaded else 0
    print(os.getpid(), flush=True)
    while True:
        step += 1
        checkpoints.save(step, state_at(step))
        print(step, flush=True)

for _ in range(int(sys.argv[2])):
    saver = os.fork()
    if saver == 0:
        save_forever()
    _, status = os.waitpid(saver, 0)
    print("ended", os.waitstatus_to_exitcode(status), flush=True)
    sys.stdin.readline()
"""
)


def test_killed_saves_leave_whole_checkpoints(tmp_path: Path) -> None:
    scope: dict = {}
    exec(STATES, scope)
    rng = np.random.default_rng(0)
    newest, num_inside = 0, 0
    command = [sys.executable, "-c", SAVERS, str(tmp_path), str(NUM_KILLS)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as savers:
        assert savers.stdin is not None
        assert savers.stdout is not None
        for _ in range(NUM_KILLS):
            saver = int(savers.stdout.readline())
            reported = [savers.stdout.readline() for _ in range(rng.integers(4))]
            time.sleep(rng.uniform(0.0, 0.03))
            os.kill(saver, signal.SIGKILL)
            ending = f"ended {-signal.SIGKILL}\n"
            for line in iter(savers.stdout.readline, ""):
                if "ended" in line:
                    assert line.endswith(ending), "a save failed by itself"
                    break
                reported.append(line)
            num_inside += any(tmp_path.glob(".tmp*"))
            loaded = Checkpoints(tmp_path, {}).load()
            last = int(reported[-1]) if reported else newest
            # What was reported is there, and at most the save under way beyond it.
            newest = loaded.step if loaded else 0
            assert newest in (last, last + 1)
            if loaded:
                assert loaded.notices == ()
                assert_same(loaded.state, scope["state_at"](newest))
            savers.stdin.write("next\n")
    assert savers.returncode == 0
    assert newest > NUM_KILLS
    assert num_inside >= NUM_KILLS // 5
    checkpoints = Checkpoints(tmp_path, {})
    checkpoints.load()
    checkpoints.save(newest + 1, {"ring": None})
    checkpoints.save(newest + 2, {"ring": None})
    assert not any((tmp_path / "segments").iterdir())
    assert not any(tmp_path.glob(".tmp*"))


# Kills itself right before the n-th operation on names that a save does, for n = 0, 1, 2, …
EVERY_MOMENT = (
    STATES
    + """
import os, shutil, signal, sys
from pathlib import Path
from ezgreedy.checkpoints.store import Checkpoints
import safetensors.numpy

OPERATIONS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir"}

def save_and_die(directory, num_operations):
    checkpoints = Checkpoints(directory, {})
    step = checkpoints.load().step
    state = state_at(step + 1)
    remaining = num_operations

    def count(event, args):
        nonlocal remaining
        if event in OPERATIONS:
            remaining -= 1
            if remaining < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    checkpoints.save(step + 1, state)
    os._exit(0)

base = Path(sys.argv[1])
for number in range(200):
    directory = base.with_name(f"killed-{number:03d}")
    shutil.copytree(base, directory)
    saver = os.fork()
    if saver == 0:
        save_and_die(directory, number)
    _, status = os.waitpid(saver, 0)
    if status == 0:
        break
"""
)


def test_a_save_can_be_killed_between_any_two_operations(tmp_path: Path) -> None:
    scope: dict = {}
    exec(STATES, scope)
    state_at = scope["state_at"]
    checkpoints = Checkpoints(tmp_path / "base", {})
    for step in range(1, 21):  # so that the ring has run over and the next save removes segments
        checkpoints.save(step, state_at(step))
    command = [sys.executable, "-c", EVERY_MOMENT, str(tmp_path / "base")]
    subprocess.run(command, check=True, timeout=120)
    found = []
    for directory in sorted(tmp_path.glob("killed-*")):
        checkpoints = Checkpoints(directory, {})
        loaded = checkpoints.load()
        assert loaded is not None
        assert loaded.notices == ()
        assert_same(loaded.state, state_at(loaded.step))
        found.append(loaded.step)
        for path in directory.glob("checkpoint-*"):
            assert len(list(path.iterdir())) == 2  # an old one is there as a whole or not at all
        for step in (22, 23):
            checkpoints.save(step, state_at(step))
        assert_same(Checkpoints(directory, {}).load().state, state_at(23))
        assert not any(directory.glob(".tmp*"))
        # Two windows of 50 items, 7 apart: 9 segments of 7.
        assert len(list((directory / "segments").iterdir())) <= 10
    assert found == sorted(found)
    assert found.count(20) >= 8
    assert found.count(21) >= 6
