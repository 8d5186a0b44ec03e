"""Crashes are counted, what they took is given up, and too many end the run; without Ray."""

import time
from types import SimpleNamespace

import pytest

from ezgreedy.fleet.fleet_settings import Patience
from ezgreedy.fleet.status import Gauges
from ezgreedy.fleet.supervision import Call, FleetError, Process, Supervisor
from ezgreedy.runs.run_directory import RunDirectory
from ezgreedy.runs.run_loop import DriveOptions, FailedTrainingError, drive
from ezgreedy.runs.training import Training
from support.small_runs import small_sequence_run


def supervised(*names, **patience):
    supervisor = Supervisor(Patience(**patience))
    processes = [Process(name, None, lambda process: None) for name in names]
    return supervisor, [supervisor.add(process) for process in processes]


def wake(process, pid):
    process.pid, process.is_ready = pid, True


def test_what_a_process_was_asked_for_is_lost_with_it_and_nothing_else():
    supervisor, (one, other) = supervised("one", "other")
    lost = []
    for number, process in enumerate((one, other, one)):
        call = Call(process, number, 0.0, lost.append, lambda n=number: lost.append(n), 1.0)
        supervisor._register(call)
    wake(one, 10)
    supervisor.crash(one, "was killed")
    assert lost == [0, 2]
    assert (list(one.calls), list(other.calls), supervisor.num_pending) == ([], [1], 1)
    assert (one.is_ready, one.pid, one.past_lives) == (False, None, {("", 10)})


def test_one_death_is_counted_once_however_many_calls_tell_of_it():
    supervisor, (process,) = supervised("actor 0")
    wake(process, 10)
    for _ in range(3):
        supervisor.crash(process, "was killed")
    assert supervisor.num_restarts == len(process.crashes) == 1


def test_the_crash_after_the_last_that_is_borne_ends_the_run_with_its_reason():
    supervisor, (process,) = supervised("actor 0", most_crashes=2)
    for pid in (10, 11):
        wake(process, pid)
        supervisor.crash(process, "was killed")
    wake(process, 12)
    with pytest.raises(FleetError, match=r"actor 0 crashed 3 times within 600 s.* out of memory"):
        supervisor.crash(process, "out of memory")


def test_crashes_of_long_ago_do_not_count():
    supervisor, (process,) = supervised("actor 0", most_crashes=1, crash_period=5.0)
    process.crashes.extend([time.monotonic() - 6.0] * 4)
    wake(process, 10)
    supervisor.crash(process, "was killed")
    assert len(process.crashes) == 1


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
    gauges = Gauges(frames=100, updates=10, plays=2, lags=6, since=time.monotonic() - 2.0)
    gauges.learner_waited, gauges.learner_worked = 1.0, 3.0
    view = gauges.view()
    assert view["frames_per_second"] == pytest.approx(50.0, rel=0.1)
    assert view["updates_per_second"] == pytest.approx(5.0, rel=0.1)
    assert view["parameter_lag"] == 3.0
    assert view["learner_wait_share"] == 0.25


class Clocked(Supervisor):
    """Ray's supervisor with a clock of its own, and processes that always answer."""

    time = 100.0

    def now(self):
        return self.time

    def _watch(self, ref):
        pass

    def _read_ping(self, process, ref):
        process.ping = None

    def kill(self, process, reason):
        raise AssertionError(f"{process.name} was killed: {reason}")


def test_nobody_is_found_silent_whose_answer_waits_for_a_busy_coordinator():
    supervisor = Clocked(Patience(heartbeat=5.0, silence=30.0))
    handle = SimpleNamespace(ping=SimpleNamespace(remote=object))
    process = supervisor.add(Process("actor 0", handle, lambda _: None, pid=10))
    supervisor._arrived.put(object())
    supervisor.turn()
    supervisor._arrived.put(process.ping)
    supervisor.time += 100.0  # a long checkpoint
    supervisor.turn()
    supervisor.time += 31.0
    with pytest.raises(AssertionError, match="actor 0 was killed: no sign of life for 30 s"):
        supervisor.turn()  # now it does not answer


def test_a_process_without_a_place_is_not_waited_for():
    supervisor = Clocked(Patience(start=10.0))
    process = supervisor.add(Process("actor 0", None, lambda _: None))
    supervisor.time += 1000.0
    supervisor.turn()
    handle = SimpleNamespace(ping=SimpleNamespace(remote=object))
    supervisor.place(process, handle)
    supervisor.turn()
    assert process.ping is not None
    supervisor.time += 11.0
    with pytest.raises(FleetError, match="actor 0 did not start within 10 s"):
        supervisor.turn()
