"""Examples run as they are, and say what they promise."""

import importlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "add_ez_to_your_loop.py": "reward",
    "compare_durations.py": "",
    "coverage_of_your_policy.py": "drew coverage.png, first_visits_eps.png",
    "dqn_loop.py": "Disabled: last episodes",
    "fast_torso.py": "nn.Conv2d takes",
    "own_agent.py": "rainbow-rocking on deep_sea/6 after 3,0",
    "own_game.py": "rainbow-ez on corridor/12 after 3,0",
    "own_option_set.py": "strides of 1, 2 or 4 rooms: full coverage",
}


@pytest.mark.parametrize("name", SAYS)
def test_examples_run(name):
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert SAYS[name] in ran.stdout
    assert ran.stdout.strip()
    if name == "fast_torso.py":
        assert float(ran.stdout.splitlines()[0].rpartition(": ")[2]) < 1e-3


def test_the_option_set_of_the_example_draws_what_its_branches_say(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    options = importlib.import_module("own_option_set").Strides(2, (1, 2, 4))
    middles = (np.arange(6) + 0.5) / 6  # equally many uniforms for each option
    drawn = Counter(options.draw(choice, n).name for choice in middles for n in middles)
    assert {name: count / 36 for name, count in drawn.items()} == pytest.approx(
        {branch.option.name: branch.probability for branch in options.branches()}
    )


def test_no_example_is_left_out():
    assert sorted(SAYS) == sorted(path.name for path in EXAMPLES.glob("*.py"))
