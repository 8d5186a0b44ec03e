"""Runs of a sweep on one machine share its GPUs."""

import os
from dataclasses import replace

import pytest

from ezgreedy.sweeps.jobs import ENDED, VISIBLE_GPUS, LocalEngine, Work, visible_gpus
from support.small_runs import small_run

CPU = small_run()
CUDA = replace(CPU, device="cuda")


def seen():
    """The GPUs that this process sees; runs in the processes of the engine."""
    return os.environ.get(VISIBLE_GPUS)


def told_to(engine, runs, log):
    jobs = [engine.begin(Work(seen, (), log), settings) for settings in runs]
    outcomes = [job.outcome() for job in jobs]
    assert {outcome.kind for outcome in outcomes} == {ENDED}
    return [outcome.told for outcome in outcomes]


def test_runs_take_gpus_in_turns_and_others_none(tmp_path, monkeypatch):
    monkeypatch.delenv(VISIBLE_GPUS, raising=False)
    engine = LocalEngine(lambda: ["0", "1", "GPU-7"])
    runs = [CUDA, CUDA, CPU, CUDA, CUDA]
    assert told_to(engine, runs, tmp_path / "log") == ["0", "1", None, "GPU-7", "0"]


def test_gpus_are_counted_once_and_only_if_needed(tmp_path):
    counted = []
    engine = LocalEngine(lambda: counted.append(1) or ["3"])
    told_to(engine, [CPU], tmp_path / "log")
    assert not counted
    assert told_to(engine, [CUDA, CUDA], tmp_path / "log") == ["3", "3"]
    assert counted == [1]


def test_without_a_gpu_runs_see_what_the_sweep_sees(tmp_path, monkeypatch):
    monkeypatch.delenv(VISIBLE_GPUS, raising=False)
    assert told_to(LocalEngine(lambda: []), [CUDA, CUDA], tmp_path / "log") == [None, None]


@pytest.mark.parametrize(
    ("limit", "count", "names"),
    [
        (None, 2, ["0", "1"]),
        (None, 0, []),
        ("", 0, []),
        ("2,5", 2, ["2", "5"]),
        ("2,5", 1, ["2"]),
        ("GPU-a,GPU-b", 2, ["GPU-a", "GPU-b"]),
    ],
)
def test_visible_gpus_are_those_that_the_user_left(limit, count, names, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    if limit is None:
        monkeypatch.delenv(VISIBLE_GPUS, raising=False)
    else:
        monkeypatch.setenv(VISIBLE_GPUS, limit)
    assert visible_gpus() == names
