"""What runs ask of machines, and which machines have it."""

import importlib.util

import pytest

from ezgreedy.cli import main
from ezgreedy.packages import install_command
from ezgreedy.runs.memory import memory_bytes
from ezgreedy.runs.settings_codec import with_setting
from ezgreedy.sweeps.placement import Demand, Node, Share, lacking, num_places, require_place
from support.small_runs import small_run

SHAPE = (4, 10, 10)
GIGABYTE = 10**9
SMALL = Node("a", "small", Demand(4.0, 8 * GIGABYTE, 0.0))
LARGE = Node("b", "large", Demand(16.0, 64 * GIGABYTE, 2.0))


def test_a_run_asks_for_its_threads_its_memory_and_its_device():
    settings = small_run("rainbow-ez", threads=3)
    demand = Share().of(settings, SHAPE)
    assert demand == Demand(3.0, memory_bytes(settings, SHAPE), 0.0)
    assert demand.memory > settings.agent.replay_bytes(SHAPE)
    assert Share().of(with_setting(settings, "device", "cuda"), SHAPE).gpus == 1.0
    assert Share(0.5, 2.5, 0.25).of(settings, SHAPE) == Demand(0.5, 2_500_000_000, 0.25)


@pytest.mark.parametrize(
    ("demand", "places"),
    [
        (Demand(1.0, GIGABYTE, 0.0), 4 + 16),
        (Demand(1.0, 4 * GIGABYTE, 0.0), 2 + 16),
        (Demand(0.1, 1, 0.0), 40 + 160),
        (Demand(1.0, GIGABYTE, 0.5), 4),
        (Demand(8.0, GIGABYTE, 0.0), 2),
        (Demand(17.0, GIGABYTE, 0.0), 0),
    ],
)
def test_places_are_counted_by_what_is_scarcest(demand, places):
    assert num_places(demand, [SMALL, LARGE]) == places
    assert bool(lacking(demand, [SMALL, LARGE])) == (places == 0)


def test_a_run_that_fits_on_two_machines_together_fits_nowhere():
    asked = Demand(17.0, 8 * GIGABYTE, 0.0)
    with pytest.raises(ValueError, match=r"17 CPUs, 8.0 GB .* the largest of 2, large, has 16 CPU"):
        require_place([Demand(1.0, 1, 0.0), asked], [SMALL, LARGE])
    require_place([Demand(16.0, 64 * GIGABYTE, 2.0)], [SMALL, LARGE])
    assert lacking(asked, []).endswith("the cluster has no machine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cpus-per-run", "0"], "--cpus-per-run must lie in [0.001, 4096]; got 0.0"),
        (["--cpus-per-run", "-1"], "--cpus-per-run must lie in [0.001, 4096]; got -1.0"),
        (["--memory-per-run", "nan"], "--memory-per-run must be finite and be at least 0.001"),
        (["--gpus-per-run", "-1"], "--gpus-per-run must lie in [0.001, 64]; got -1.0"),
        (["--gpus-per-run", "1.5"], "--gpus-per-run must be a whole number above 1; got 1.5"),
        (
            ["--set", "device=cuda", "--gpus-per-run", "0"],
            "--gpus-per-run must be positive if device is cuda; got 0.0",
        ),
        (["--address", "head"], "--address must be HOST:PORT of a Ray cluster; got 'head'"),
    ],
)
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_bad_shares_are_named_and_nothing_is_written(arguments, message, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["sweep", "minatar", "--out", str(out), "--engine", "ray", *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not out.exists()


def test_without_ray_its_extra_is_named(tmp_path, monkeypatch, capsys):
    find = importlib.util.find_spec
    hidden = lambda name, *more: None if name == "ray" else find(name, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    out = tmp_path / "out"
    assert main(["sweep", "minatar", "--out", str(out), "--engine", "ray"]) == 2
    assert f"needs ray, which is not installed ({install_command('ray')})" in (
        capsys.readouterr().err
    )
    assert not out.exists()
