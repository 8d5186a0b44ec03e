"""When runs are saved: by the clock, and by what saving costs."""

from functools import partial
from itertools import count, pairwise

import pytest

from ezgreedy.runs import run_loop
from ezgreedy.runs.pace import SavingPace
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import DriveOptions, train
from support.small_runs import small_run


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def move(self, seconds):
        self.now += seconds


def saves(costs, *, seconds=60.0, share=0.02, until=36_000, step=1.0):
    """The times at which saves begin, in a run of one-second steps; costs are of each save."""
    clock = Clock()
    pace, begun, times = SavingPace(seconds, share, clock), clock.now, []
    while clock.now - begun < until:
        clock.move(step)
        if pace.is_due:
            times.append(clock.now - begun)
            pace.save(partial(clock.move, costs[min(len(times), len(costs)) - 1]))
    return times


def test_cheap_checkpoints_come_at_the_least_interval():
    assert saves([1.0], until=400) == [60.0, 121.0, 182.0, 243.0, 304.0, 365.0]


def test_dear_checkpoints_take_their_share_of_time():
    times = saves([6.0])
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # The first is taken at 60 s to learn its cost; n of them are 2 % after 300 n seconds.
    assert times[:3] == [60.0, 595.0, 895.0]
    assert set(gaps[1:]) == {300.0}
    assert 6.0 * len(times) / 36_000 == pytest.approx(0.02, rel=0.02)


def test_what_the_first_costs_more_is_paid_back_and_then_forgotten():
    times = saves([30.0, 1.0], until=4000)
    assert times[:2] == [60.0, 2971.0]  # (30 + 30) / 0.02 − 30
    assert times[2] == 3032.0


def test_a_share_of_one_is_no_limit_and_none_is_never():
    assert len(saves([50.0], seconds=0.0, share=1.0, until=510)) == 10
    assert saves([50.0], share=0.0) == []


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="checkpoint_share must"):
        DriveOptions(checkpoint_share=share)


@pytest.mark.parametrize(("share", "most"), [(0.0, 1), (0.05, 10), (1.0, 130)])
def test_a_run_saves_at_its_pace_and_always_at_the_end(share, most, tmp_path, monkeypatch):
    clock = partial(next, count(0.0, 0.5))  # every look at it takes half a second
    monkeypatch.setattr(run_loop, "SavingPace", partial(SavingPace, clock=clock))
    run = RunDirectory(tmp_path / "run")
    settings = small_run(game="deep_sea/6", lanes=1, frames=120)
    assert train(run.path, settings, DriveOptions(0.0, is_quiet=True, checkpoint_share=share)) == 0
    loaded = run.checkpoint_store().load()
    assert loaded.state["training"]["frames"] >= 120
    assert most / 2 < loaded.step <= most
