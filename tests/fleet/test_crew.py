"""Crashes are counted, what they took is given up, and too many end the run; without Ray."""

import time

import pytest

from ezgreedy.fleet.crew import Call, Crew, FleetError, Member
from ezgreedy.fleet.settings import Patience
from ezgreedy.fleet.status import Gauges
from ezgreedy.running.driver import DriveOptions, FailedTrainingError, drive
from ezgreedy.running.run_directory import RunDirectory
from ezgreedy.running.training import Training
from support.small_runs import small_sequence_run


def crew_of(*names, **patience):
    crew = Crew(Patience(**patience))
    return crew, [crew.join(Member(name, None, lambda member: None)) for name in names]


def wake(member, pid):
    member.pid, member.is_ready = pid, True


def test_what_a_process_was_asked_for_is_lost_with_it_and_nothing_else():
    crew, (one, other) = crew_of("one", "other")
    lost = []
    for number, member in enumerate((one, other, one)):
        call = Call(member, number, 0.0, lost.append, lambda n=number: lost.append(n), 1.0)
        crew._calls[number] = call
    wake(one, 10)
    crew.crash(one, "was killed")
    assert lost == [0, 2]
    assert list(crew._calls) == [1]
    assert (one.is_ready, one.pid, one.dead_pids) == (False, None, {10})


def test_one_death_is_counted_once_however_many_calls_tell_of_it():
    crew, (member,) = crew_of("actor 0")
    wake(member, 10)
    for _ in range(3):
        crew.crash(member, "was killed")
    assert crew.num_restarts == len(member.crashes) == 1


def test_the_crash_after_the_last_that_is_borne_ends_the_run_with_its_reason():
    crew, (member,) = crew_of("actor 0", most_crashes=2)
    for pid in (10, 11):
        wake(member, pid)
        crew.crash(member, "was killed")
    wake(member, 12)
    with pytest.raises(FleetError, match=r"actor 0 crashed 3 times within 600 s.* out of memory"):
        crew.crash(member, "out of memory")


def test_crashes_of_long_ago_do_not_count():
    crew, (member,) = crew_of("actor 0", most_crashes=1, crash_period=5.0)
    member.crashes.extend([time.monotonic() - 6.0] * 4)
    wake(member, 10)
    crew.crash(member, "was killed")
    assert len(member.crashes) == 1


def test_a_fleet_that_cannot_go_on_is_a_failed_run(tmp_path):
    class Broken(Training):
        def step(self):
            raise FleetError("the learner did not start within 180 s")

    place = RunDirectory(tmp_path / "run")
    settings = small_sequence_run("r2d2", lanes=1)
    place.create(settings)
    assert issubclass(FleetError, FailedTrainingError)
    assert drive(place, Broken(settings), DriveOptions(is_quiet=True)) == 1
    status = place.status()
    assert status["state"] == "failed"
    assert "did not start" in status["reason"]


def test_gauges_are_rates_and_means_over_their_stretch():
    gauges = Gauges(frames=100, updates=10, lags=[2, 4], since=time.monotonic() - 2.0)
    gauges.learner_waited, gauges.learner_worked = 1.0, 3.0
    view = gauges.view()
    assert view["frames_per_second"] == pytest.approx(50.0, rel=0.1)
    assert view["updates_per_second"] == pytest.approx(5.0, rel=0.1)
    assert view["parameter_lag"] == 3.0
    assert view["learner_wait_share"] == 0.25
