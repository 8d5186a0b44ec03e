"""A turn of the coordinator costs as much as what has happened, however many actors there are."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ezgreedy.agents.r2d2.presets import R2D2_EZ
from ezgreedy.fleet.coordinator import FleetTraining
from ezgreedy.fleet.costs import Costs
from ezgreedy.fleet.fleet_settings import FleetSettings, Patience
from ezgreedy.fleet.supervision import Call, Process, Supervisor
from ezgreedy.fleet.virtual_time import VirtualSupervisor
from support.counted_work import lines_executed

COSTS = Costs(start=0.0, update=0.01, send=0.0, draw=0.0, decode=0.0, call=1e-5)
FLEET_CODE = "ezgreedy/fleet"


def fleet(actors, tmp_path):
    settings = R2D2_EZ.at_scale("paper", "minatar/breakout")
    settings = replace(settings, agent=replace(settings.agent, least_windows=10), lanes=actors)
    supervisor = VirtualSupervisor(COSTS)
    training = FleetTraining(settings, FleetSettings(actors=actors, shards=2), tmp_path, supervisor)
    training.__enter__()
    for _ in range(3 * actors + 200):
        training.step()
    return training, supervisor


def work(actors, tmp_path):
    """Lines for each turn or call, over many turns."""
    training, supervisor = fleet(actors, tmp_path)
    before = supervisor.num_turns + supervisor.num_asked

    def turn():
        for _ in range(300):
            training.step()

    lines = lines_executed(turn, FLEET_CODE)
    return lines / (supervisor.num_turns + supervisor.num_asked - before)


def test_work_does_not_grow_with_the_number_of_actors(tmp_path):
    few, many = work(20, tmp_path), work(1000, tmp_path)
    assert 5.0 < few < 150.0
    assert many < 1.2 * few


def test_a_turn_in_which_little_happens_is_short(tmp_path):
    training, supervisor = fleet(1000, tmp_path)
    lines = []
    for _ in range(50):
        before = supervisor.num_asked
        executed = lines_executed(training.step, FLEET_CODE)
        # Actors of equal speed may answer in the same turn.
        lines.append(executed / max(supervisor.num_asked - before, 1))
    assert min(lines) < 200


class Clocked(Supervisor):
    """Ray's supervisor with a clock of its own, and answers that the test gives."""

    time = 100.0

    def now(self):
        return self.time

    def _settle(self, call):
        call.then(None)

    def _watch(self, ref):
        pass


def supervised(num_processes):
    supervisor = Clocked(Patience(silence=1e6))
    handle = SimpleNamespace(ping=SimpleNamespace(remote=object))
    processes = [
        supervisor.add(Process(f"actor {number}", handle, lambda _: None, pid=number))
        for number in range(num_processes)
    ]
    supervisor._arrived.put(object())
    supervisor.turn()  # sends all the first pings
    for process in processes:
        supervisor._register(Call(process, f"{process.name}", 0.0, list, list, 1e9))
    return supervisor, processes


@pytest.mark.parametrize("answered", [1, 4])
def test_processes_that_did_not_answer_cost_nothing(answered):
    lines = []
    for num_processes in (10, 1000):
        supervisor, processes = supervised(num_processes)
        for process in processes[:answered]:
            process.calls[process.name].then = lambda _: None
            supervisor._arrived.put(process.name)
        lines.append(lines_executed(supervisor.turn, FLEET_CODE))
        assert supervisor.num_pending == num_processes - answered
    assert lines[0] == lines[1] < 40 + 15 * answered


def test_every_process_is_still_checked_in_time():
    supervisor, processes = supervised(100)
    pings = {id(process.ping) for process in processes}
    for process in processes:
        process.ping = None  # all were answered
    supervisor.time += supervisor.patience.heartbeat + 0.1
    supervisor._arrived.put(object())
    supervisor.turn()
    assert all(process.ping is not None for process in processes)
    assert pings.isdisjoint({id(process.ping) for process in processes})
