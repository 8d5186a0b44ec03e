"""A real Ray cluster of three machines, in network namespaces: one is lost, cut off, and the head.

The fleet fills all of its CPUs, so whoever is lost needs the place of an actor.
"""

import importlib.util
import os
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest

from ezgreedy.results.store import read_results
from ezgreedy.runs.run_directory import RunDirectory
from support.machines import RayMachines, require_machines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(5400),  # 723 s on two cores with a load of 15
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]

SECONDS = 900.0  # for anything; the machine may be busy
CUT_SECONDS = 20.0
CPUS = (1, 3, 3)  # the learner and its memory do not fit on the head
ACTORS = 4
PROCESSES = ACTORS + 3
SMALL = [
    *("--set", "agent.learner.batch_size=4", "--set", "agent.learner.burn_in=2"),
    *("--set", "agent.stride=4", "--set", "agent.learner.length=8"),
    *("--set", "agent.feature_size=8", "--set", "agent.memory_size=6"),
    *("--set", "agent.hidden_size=7", "--set", "agent.samples_per_insert=1.5"),
    *("--set", "agent.replay_capacity=3000", "--set", "agent.least_windows=10"),
    *("--set", "evaluation.frames=60", "--set", "evaluation.lanes=2"),
    *("--set", "evaluation.frames_between=20000", "--set", "frames_per_report=500"),
]
OFTEN = ["--checkpoint-seconds", "3", "--checkpoint-share", "1"]


class Trained:
    """A run on the cluster, driven from its head."""

    def __init__(self, machines):
        self.machines = machines
        self.place = RunDirectory(machines.shared / "run")
        self._log = machines.shared / "log"

    @contextmanager
    def driven(self, *arguments):
        """The command at work; it is interrupted at the end of the block, if it has not ended."""
        with self._log.open("a") as log:
            quiet = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self.driver = self.machines.ezgreedy(0, *arguments, *OFTEN, **quiet)
            try:
                yield self
                if self.driver.poll() is None:
                    self.driver.send_signal(signal.SIGINT)
                self.driver.wait(SECONDS)
            finally:
                self.driver.kill()

    @property
    def said(self):
        return self._log.read_text()

    @property
    def rows(self):
        """Reports so far."""
        results = self.place.results
        rows = read_results(results) if results.exists() else []
        return [row for row in rows if row["kind"] == "training"]

    def wait_until(self, condition):
        """How long it took."""
        begun = time.monotonic()
        while not condition():
            assert self.driver.poll() is None, self.said
            assert time.monotonic() - begun < SECONDS, self.said
            time.sleep(0.2)
        return time.monotonic() - begun

    def goes_on(self, num_actors):
        """Waits until this many actors play and the learner learns; how long it took."""
        before = len(self.rows)

        def does():
            rows = self.rows[before:]
            is_whole = [row for row in rows if row["live_actors"] == num_actors]
            return len(is_whole) > 2 and is_whole[-1]["updates"] > is_whole[0]["updates"]

        return self.wait_until(does)

    def saved(self):
        """Frames and updates of the newest checkpoint."""
        training = self.place.checkpoint_store().load().state["training"]
        return training["frames"], int(training["agent"]["learner"]["num_updates"])

    def machine_of(self, role):
        """The machine on which Ray runs the process of a role."""
        for machine in range(len(CPUS)):
            if self.machines.find(machine, f"ray::{role}"):
                return machine
        raise AssertionError(f"{role} is nowhere")


def lose_a_machine(run):
    """The learner and its memory go elsewhere, actors give way, and all are back in the end."""
    machines, machine = run.machines, run.machine_of("LearnerRole")
    assert machine != 0
    assert run.machine_of("ShardRole") == machine
    run.wait_until(lambda: run.place.checkpoints.exists() and run.saved()[1] > 0)
    frames, updates = run.saved()
    num_rows = len(run.rows)
    [raylet] = machines.find(machine, "raylet")
    os.kill(raylet, signal.SIGKILL)
    run.wait_until(lambda: "the learner was lost and is being restarted" in run.said)
    run.wait_until(lambda: f"the run wants {PROCESSES} CPUs, and the cluster has 4" in run.said)
    run.wait_until(lambda: "3 of 4 actors give way until there are more" in run.said)
    run.goes_on(num_actors=1)
    # Nothing that was saved is lost: neither frames, which are counted here, nor updates.
    rows = run.rows[num_rows:]
    assert all(row["frames"] > frames for row in rows)
    assert min(row["updates"] for row in rows) >= updates
    machines.end(machine)
    machines.join([machine])
    run.goes_on(num_actors=ACTORS)
    assert f"all {PROCESSES} processes have places again" in run.said


def cut_a_link(run):
    machine = run.machine_of("LearnerRole")
    run.machines.cut(machine)
    time.sleep(CUT_SECONDS)
    run.machines.mend(machine)
    run.goes_on(num_actors=ACTORS)


def lose_the_head(run):
    machines = run.machines
    [head] = machines.find(0, "gcs_server")
    os.kill(head, signal.SIGKILL)
    assert run.driver.wait(SECONDS) == 1
    assert f"the head of the Ray cluster, {machines.head}, does not answer" in run.said
    status = run.place.status()
    assert status["state"] == "failed"
    assert "start the cluster again and resume the run" in status["reason"]


def test_a_fleet_on_three_machines_outlives_a_machine_a_cut_and_is_resumed_without_its_head():
    require_machines()
    with RayMachines(CPUS) as machines:
        run = Trained(machines)
        fleet = ["--engine", "ray", "--address", machines.head, "--actors", str(ACTORS)]
        train = ["train", "r2d2-ez", "--game", "minatar/breakout", "--out", str(run.place.path)]
        with run.driven(*train, *fleet, "--scale", "laptop", "--frames", "100000000", *SMALL):
            run.wait_until(lambda: len(run.rows) > 2)
            run.goes_on(num_actors=ACTORS)
            lose_a_machine(run)
            cut_a_link(run)
            lose_the_head(run)
        frames, updates = run.saved()
        for machine in range(len(CPUS)):
            machines.end(machine)
        machines.start_ray()
        with run.driven("resume", str(run.place.path)):
            run.wait_until(lambda: f"continuing at {frames:,} of" in run.said)
            run.goes_on(num_actors=ACTORS)
        assert run.driver.returncode == 128 + signal.SIGINT
        assert run.place.status()["state"] == "paused"
        later = [row for row in run.rows if row["frames"] > frames]
        assert min(row["updates"] for row in later) >= updates
        at = [row["frames"] for row in run.rows]
        assert at == sorted(set(at))
