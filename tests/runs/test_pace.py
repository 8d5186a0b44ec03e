"""When runs are saved: by the clock, and by what saving costs."""

from functools import partial
from itertools import count, pairwise

import pytest

from ezgreedy.runs import run_loop
from ezgreedy.runs.pace import RecentSpeed, SavingPace
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


def speeds(steps):
    """Speeds shown for frames and times, one after another."""
    speed = RecentSpeed(0, 0.0)
    return [speed.see(frames, now) for frames, now in steps]


def test_a_steady_run_has_its_speed_from_the_second_look_on():
    shown = speeds([(50 * n, 0.5 * n) for n in range(1, 200)])
    assert shown == [pytest.approx(100.0)] * 199


def test_bursts_are_averaged():
    burst = [(400 * (n // 8), 0.5 * n) for n in range(1, 400)]  # 400 frames every 4 s
    assert all(85.0 < speed < 115.0 for speed in speeds(burst)[80:])


def test_there_is_no_speed_while_nothing_moves_and_no_trace_of_it_afterwards():
    moving = [(50 * n, 0.5 * n) for n in range(1, 101)]
    still = [(5000, 50.0 + 0.5 * n) for n in range(1, 401)]
    again = [(5000 + 50 * n, 250.0 + 0.5 * n) for n in range(1, 101)]
    shown = speeds([*moving, *still, *again])
    assert shown[99] == pytest.approx(100.0)
    assert set(shown[130:500]) == {0.0}
    assert shown[501:] == [pytest.approx(100.0)] * 99


def test_an_evaluation_between_two_looks_is_soon_forgotten():
    before = [(50 * n, 0.5 * n) for n in range(1, 101)]
    after = [(5000 + 50 * n, 650.0 + 0.5 * n) for n in range(1, 101)]
    assert speeds([*before, *after])[103:] == [pytest.approx(100.0)] * 97


def test_steps_that_take_long_are_not_a_standstill():
    assert speeds([(64 * n, 55.0 * n) for n in range(1, 20)])[1:] == [pytest.approx(64 / 55)] * 18
