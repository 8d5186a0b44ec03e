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

from ezgreedy.running.checkpoints import Checkpoints
from support.states import assert_same

NUM_KILLS = 60

STATES = """
import numpy as np
from ezgreedy.tail import Tail

def state_at(step):
    num_written = 7 * step
    items = np.arange(max(0, num_written - 50), num_written)
    ring = np.zeros((50, 30), dtype=np.uint8)
    ring[items % 50] = items[:, None]
    weights = np.random.default_rng(step).normal(size=100)
    return {"step": step, "weights": weights, "ring": Tail(ring, num_written)}
"""
# Importing takes longer than all saves, so one process imports and then forks each saver.
SAVERS = (
    STATES
    + """
import os
import sys
from pathlib import Path
from ezgreedy.running.checkpoints import Checkpoints
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
            reported += iter(savers.stdout.readline, f"ended {-signal.SIGKILL}\n")
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
