"""A run that does not fit is refused before anything heavy is loaded or built."""

import subprocess
import sys
from dataclasses import replace

import pytest

from ezgreedy.agents.registry import run_of
from ezgreedy.runs.memory import memory_bytes, require_enough

PAPER = ["train", "r2d2", "--game", "Breakout", "--out"]
REFUSED = """
import sys
from ezgreedy.runs import memory
memory.available_bytes = lambda: 4 * 10**9
from ezgreedy.cli import main
code = main(sys.argv[1:])
print([name for name in ("torch", "numba", "ray", "minatar") if name in sys.modules])
sys.exit(code)
"""


def test_the_paper_s_r2d2_is_refused_before_torch_is_loaded_and_nothing_is_written(tmp_path):
    command = [sys.executable, "-c", REFUSED, *PAPER, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "must fit into the 4.0 GB of memory" in done.stderr
    assert "with 320 lanes" in done.stderr
    assert done.stdout.split() == ["[]"]
    assert not (tmp_path / "run").exists()


def test_the_capacity_that_is_named_fits_and_the_next_does_not():
    settings = run_of("rainbow", "paper", "minatar/breakout")
    available = memory_bytes(settings, (4, 10, 10)) - 10**8
    with pytest.raises(ValueError, match=r"agent.replay_capacity must be at most \d+ ") as told:
        require_enough(settings, available)
    fitting = int(str(told.value).split("at most ")[1].split()[0])
    for capacity, fits in ((fitting, True), (fitting + 1000, False)):
        smaller = replace(settings, agent=replace(settings.agent, replay_capacity=capacity))
        assert (memory_bytes(smaller, (4, 10, 10)) <= available) == fits
