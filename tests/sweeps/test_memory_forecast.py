"""Forecasts of memory against the peak of real runs, small ones with a full replay."""

import sys

import pytest

from ezgreedy.agents.registry import run_of
from ezgreedy.runs.memory import memory_bytes
from ezgreedy.runs.settings_codec import with_setting
from support.peaks import peak

CHANGES = {
    "rainbow": {
        "agent.least_replay": "500",
        "agent.replay_capacity": "1000",
        "evaluation.frames": "200",
        "frames": "1600",
    },
    "r2d2": {
        "agent.least_windows": "10",
        "agent.replay_capacity": "1000",
        "evaluation.frames": "200",
        "frames": "1600",
    },
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read as Linux counts them")
@pytest.mark.parametrize("agent", CHANGES)
def test_the_forecast_of_a_small_run_is_its_peak_or_up_to_a_tenth_more(agent, tmp_path):
    settings = run_of(agent, "laptop", "minatar/breakout")
    command = ["train", agent, "--game", "minatar/breakout"]
    command += ["--scale", "laptop", "--out", str(tmp_path / "run"), "--quiet"]
    # On a busy machine a run takes long enough to be saved more than once.
    command += ["--checkpoint-seconds", "1000000"]
    for name, value in CHANGES[agent].items():
        settings = with_setting(settings, name, value)
        command += ["--set", f"{name}={value}"]
    peak(command)  # the first may compile, which takes more
    (tmp_path / "run").rename(tmp_path / "first")
    share = memory_bytes(settings, (4, 10, 10)) / peak(command)
    assert 1.0 <= share <= 1.1, share
