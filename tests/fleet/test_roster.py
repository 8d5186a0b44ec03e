"""Who has a place when CPUs are short? In virtual time, with machines that are lost."""

from dataclasses import replace

import pytest

from ezgreedy.agents.r2d2.presets import R2D2_EZ
from ezgreedy.fleet.coordinator import FleetTraining
from ezgreedy.fleet.costs import Costs
from ezgreedy.fleet.fleet_settings import FleetSettings, Patience
from ezgreedy.fleet.roster import MOST_SECONDS_WITHOUT_HEAD
from ezgreedy.fleet.supervision import FleetError
from ezgreedy.fleet.virtual_time import SECONDS_UNTIL_DEAD, VirtualSupervisor

COSTS = Costs(start=5.0, update=0.01, send=0.0, draw=0.0)
# Until a machine is known to be dead, others have given way, and those who come first are there.
SOON = SECONDS_UNTIL_DEAD + 5.0 + COSTS.start + 1.0


def trained(tmp_path, cpus, supervisor=None, **fleet):
    """A fleet on machines with these CPUs, after a while."""
    fleet = FleetSettings(**{"actors": 4} | fleet)
    settings = R2D2_EZ.at_scale("paper", "minatar/breakout")
    preset = replace(settings.agent, least_windows=10)
    settings = replace(settings, agent=preset, lanes=2 * fleet.actors, frames=10**12)
    supervisor = supervisor or VirtualSupervisor(COSTS, cpus=cpus)
    training = FleetTraining(settings, fleet, tmp_path, supervisor)
    training.__enter__()
    run(training, 15.0)
    return training


def run(training, seconds):
    supervisor = training.members.supervisor
    end = supervisor.now() + seconds
    supervisor.at(end, lambda: None)
    while supervisor.now() < end:
        training.step()


def first(training):
    members = training.members
    return [members.learner, *members.memories, *members.evaluators]


def num_playing(training):
    return sum(actor.is_ready for actor in training.members.actors)


def goes_on(training, seconds=10.0):
    frames, updates = training.frames, training.num_updates
    run(training, seconds)
    return training.frames > frames and training.num_updates > updates


def lose_machine_of(training, process):
    machine = process.machine
    training.members.supervisor.lose_machine(machine)
    return machine


def test_with_enough_cpus_everybody_has_a_place_and_nothing_is_said(tmp_path):
    training = trained(tmp_path, (4, 3))
    assert num_playing(training) == 4
    assert goes_on(training)
    assert training.take_notices() == []


def test_the_learner_and_its_memories_are_on_one_machine_if_they_fit(tmp_path):
    training = trained(tmp_path, (2, 3, 4), shards=2)
    machines = {one.machine for one in (training.members.learner, *training.members.memories)}
    assert machines == {"machine 2"}


def test_actors_for_which_there_is_no_cpu_are_named_and_the_rest_plays(tmp_path):
    training = trained(tmp_path, (3, 2))
    assert num_playing(training) == 2
    assert all(one.is_ready for one in first(training))
    assert goes_on(training)
    assert training.take_notices() == [
        "the run wants 7 CPUs, and the cluster has 5 on 2 machines, 0 of them free; 2 of 4 actors "
        "give way until there are more"
    ]


@pytest.mark.parametrize("cpus", [(4, 4, 4), (3, 3, 3), (4, 3, 2), (2, 2, 2, 2), (6, 6, 1)])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_whichever_machine_is_lost_those_who_come_first_are_back_and_play_goes_on(
    tmp_path, cpus, number
):
    training = trained(tmp_path, cpus, shards=2)
    lost = f"machine {number}"
    training.members.supervisor.lose_machine(lost)
    run(training, SOON)
    left = sum(cpus) - cpus[number]
    assert all(one.is_ready and one.machine != lost for one in first(training))
    run(training, COSTS.start + 3.0)
    assert num_playing(training) == min(left - len(first(training)), 4)
    assert goes_on(training)
    training.members.supervisor.cluster.bring_back(lost)
    run(training, COSTS.start + 4.0)
    assert num_playing(training) == min(sum(cpus) - len(first(training)), 4)
    assert goes_on(training)


def test_what_is_missing_is_said_at_once_and_that_it_is_over(tmp_path):
    training = trained(tmp_path, (4, 4))
    members = training.members
    lost = lose_machine_of(training, members.learner)
    run(training, 1.0)
    losses = training.take_notices()
    assert "the learner was lost and is being restarted (its machine was lost)" in losses
    run(training, SECONDS_UNTIL_DEAD + 3.0)
    said = " | ".join(training.take_notices())
    assert "no place for the learner, memory 0" in said
    assert "the run wants 7 CPUs, and the cluster has 4 on 1 machine" in said
    assert "of 4 actors give way until there are more" in said
    run(training, 30.0)
    assert num_playing(training) == 1
    training.take_notices()
    members.supervisor.cluster.bring_back(lost)
    run(training, 30.0)
    assert num_playing(training) == 4
    assert training.take_notices() == ["all 7 processes have places again"]


def test_actors_that_gave_way_come_back_with_random_streams_of_their_own(tmp_path):
    training = trained(tmp_path, (4, 4))
    lost = lose_machine_of(training, training.members.learner)
    run(training, SOON + 10.0)
    training.members.supervisor.cluster.bring_back(lost)
    run(training, 30.0)
    incarnations = [actor.incarnation for actor in training.members.actors]
    assert sorted(incarnations)[0] == 0  # at least one was never interrupted
    assert sorted(incarnations)[1:] == [1, 1, 1]
    for actor in training.members.actors:
        assert len(actor.past_lives) == actor.incarnation


def test_giving_way_is_no_crash(tmp_path):
    training = trained(tmp_path, (4, 4))
    before = training.num_restarts
    on_it = [p for p in training.members.supervisor.processes if p.machine == "machine 0"]
    training.members.supervisor.lose_machine("machine 0")
    run(training, SOON)
    assert training.num_restarts == before + len(on_it)


@pytest.mark.parametrize("lost", ["learner", "evaluators"])
def test_a_process_that_crashes_keeps_its_place_though_others_wait_for_one(tmp_path, lost):
    training = trained(tmp_path, (3, 2))
    process = {"learner": training.members.learner, "evaluators": training.members.evaluators[0]}
    machine = process[lost].machine
    training.members.supervisor.lose(process[lost])
    run(training, COSTS.start + 1.0)
    assert process[lost].is_ready
    assert process[lost].machine == machine
    assert num_playing(training) == 2


@pytest.mark.parametrize(
    ("cpus", "evaluators", "message"),
    [
        ((2, 4), 2, r"no place for .*the learner.*any actor for 180 s: the run wants 8 CPUs"),
        ((3, 2), 1, r"no place for any actor for 180 s: .* and the cluster has 3 on 1 machine"),
    ],
)
def test_a_fleet_that_cannot_go_on_says_who_lacks_which_cpus(tmp_path, cpus, evaluators, message):
    training = trained(tmp_path, cpus, evaluators=evaluators)
    training.members.supervisor.lose_machine("machine 1")
    with pytest.raises(FleetError, match=message):
        run(training, 400.0)


class Slow(VirtualSupervisor):
    """The third actor does not answer when it is launched for the first time."""

    num_launched = 0

    def place(self, process, handle):
        self.num_launched += 1
        if self.num_launched == 3:
            process.handle, process.waking_since = handle, self.now()
            return
        super().place(process, handle)


def test_an_actor_that_does_not_start_is_tried_again_while_others_play(tmp_path):
    supervisor = Slow(COSTS, Patience(start=60.0), (8,))
    training = trained(tmp_path, (8,), supervisor)
    assert num_playing(training) == 3
    run(training, 100.0)
    assert num_playing(training) == 4
    assert any("did not start within 60 s; trying again" in n for n in training.take_notices())


class Headless(VirtualSupervisor):
    """A cluster whose head does not answer between two times."""

    lost = (1e9, 1e9)

    def head(self):
        return "10.0.0.1:6379"

    def head_answers(self):
        return not self.lost[0] <= self.now() < self.lost[1]


def test_a_lost_head_is_noticed_and_waited_for(tmp_path):
    supervisor = Headless(COSTS)
    training = trained(tmp_path, (), supervisor)
    supervisor.lost = (supervisor.now(), supervisor.now() + 20.0)
    run(training, 40.0)
    assert training.take_notices() == [
        "the head of the Ray cluster, 10.0.0.1:6379, does not answer; waiting for it for 45 s",
        "the head of the Ray cluster answers again",
    ]
    supervisor.lost = (supervisor.now(), 1e9)
    with pytest.raises(
        FleetError, match=r"10.0.0.1:6379, does not answer; start the cluster again"
    ):
        run(training, MOST_SECONDS_WITHOUT_HEAD + 15.0)
