"""Actors act with weights of at most 100 steps, the paper's 400 frames; in virtual time."""

from bisect import bisect_left
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ezgreedy.agents.r2d2.presets import R2D2_EZ
from ezgreedy.fleet.coordinator import FleetTraining, steps_per_call
from ezgreedy.fleet.costs import Costs
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.fleet.virtual_time import VirtualActor, VirtualSupervisor
from ezgreedy.fleet.weights import STEPS_PER_WEIGHT_PULL, PublishedWeights, calls_in_flight


class NotedActor(VirtualActor):
    """An actor that writes down when each of its steps begins, and with which weights."""

    def do_begin(self, *arguments):
        self.steps = []
        return super().do_begin(*arguments)

    def do_play(self, steps, version, weights):
        answer = super().do_play(steps, version, weights)
        each = answer[0] / steps
        self.steps += [(self._begun + each * step, self._version) for step in range(steps)]
        return answer


class NotedSupervisor(VirtualSupervisor):
    def launch(self, role, **options):
        member = super().launch(role, **options)
        return NotedActor(self.costs) if type(member) is VirtualActor else member


def trained(actors, costs, seconds, tmp_path, stride=40):
    """A fleet of the paper's R2D2 with one lane for each actor, after some virtual seconds."""
    settings = R2D2_EZ.at_scale("paper", "minatar/breakout")
    # Few actors learn as often as many do.
    ratio = max(320.0 / actors, 1.0)
    ratio *= stride / 40
    preset = replace(
        settings.agent,
        learner=replace(settings.agent.learner, burn_in=min(20, stride)),
        least_windows=5 * actors,
        samples_per_insert=ratio,
        stride=stride,
    )
    settings = replace(settings, agent=preset, lanes=actors)
    supervisor = NotedSupervisor(costs)
    training = FleetTraining(settings, FleetSettings(actors=actors), tmp_path, supervisor)
    training.__enter__()
    while supervisor.now() < seconds:
        training.step()
    return training, supervisor


def ages(actor, learner):
    """Steps begun, before each step, since its weights were no longer the learner's newest."""
    times = [time for time, _ in actor.steps]
    found = []
    for number, (_, version) in enumerate(actor.steps):
        outdated = learner.ends[version] if version < len(learner.ends) else float("inf")
        found.append(max(number - bisect_left(times, outdated), 0))
    return found


COSTS = {
    "usual": Costs(start=0.0),
    "fast learner": Costs(start=0.0, update=1e-3, send=0.0, draw=1e-5, decode=0.0),
    "slow weights": Costs(start=0.0, update=0.05, send=0.0, publish=0.5),
    "slow coordinator": Costs(start=0.0, update=0.01, send=0.0, call=5e-3),
    "far away": Costs(start=0.0, update=0.02, send=0.0, latency=0.05),
}


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize(
    # Calls of 40 steps, or of 32.
    ("actors", "stride", "calls"),
    [(1, 40, 1), (2, 40, 1), (20, 40, 1), (320, 40, 1), (2, 4, 2), (320, 4, 2)],
)
def test_weights_are_at_most_400_frames_old_at_every_step(actors, stride, calls, costs, tmp_path):
    training, _ = trained(actors, COSTS[costs], 20.0, tmp_path, stride)
    assert training._weights.calls_in_flight == calls
    learner = training.members.learner.handle
    assert training.num_updates > 5
    largest = 0
    for actor in training.members.actors:
        assert len(actor.handle.steps) > 100
        largest = max(largest, *ages(actor.handle, learner))
    assert largest < STEPS_PER_WEIGHT_PULL
    view = training.report()
    frame_skip = training.settings.protocol.frame_skip
    said = view["largest_weight_age_in_frames"] / frame_skip
    assert largest <= said < STEPS_PER_WEIGHT_PULL
    assert 0.0 < view["weight_age_in_frames"] / frame_skip <= said


def test_every_call_starts_with_the_newest_weights_that_are_here(tmp_path):
    training, supervisor = trained(4, COSTS["fast learner"], 20.0, tmp_path)
    learner = training.members.learner.handle
    published = training._weights.version
    assert published > len(learner.ends) - 1000  # it keeps up
    for actor in training.members.actors:
        versions = [version for _, version in actor.handle.steps]
        assert versions == sorted(versions)
        assert len(set(versions)) > 20
        assert supervisor.num_calls(actor) <= 1


def test_an_actor_with_short_calls_does_not_wait_for_the_coordinator(tmp_path):
    """A second call is there when the first one ends, unless weights or the limiter forbid it."""
    costs = Costs.of(step=3.2e-3, update=1e-3, call=0.5e-3, latency=0.02)
    shares = {}
    for stride in (4, 40):
        training, supervisor = trained(4, costs, 0.0, tmp_path, stride)
        most = 0
        while supervisor.now() < 20.0:
            training.step()
            most = max(most, *(supervisor.num_calls(actor) for actor in training.members.actors))
        assert most == (2 if stride == 4 else 1)
        worked = [actor.handle.worked(supervisor.now()) for actor in training.members.actors]
        shares[stride] = sum(worked) / 4 / supervisor.now()
    assert shares[4] > 0.95
    assert shares[40] < 0.85


def test_actors_wait_for_fresh_weights_and_then_go_on(tmp_path):
    training, supervisor = trained(3, replace(COSTS["fast learner"], publish=5.0), 0.0, tmp_path)
    plays = training._plays
    for _ in range(3):
        while not plays._starved:
            training.step()
        frames, begun = training.frames, supervisor.now()
        while plays._starved:
            training.step()
        assert supervisor.now() > begun
        while training.frames < frames + 3 * STEPS_PER_WEIGHT_PULL:
            training.step()


@pytest.mark.parametrize(
    ("lanes", "stride", "expected"),
    [(1, 40, 40), (16, 40, 40), (1, 4, 32), (2, 20, 40), (1, 80, 50)],
)
def test_a_call_is_at_most_half_of_what_weights_last_for(lanes, stride, expected):
    assert steps_per_call(lanes, stride) == expected


@pytest.mark.parametrize(("steps", "calls"), [(1, 2), (20, 2), (33, 2), (34, 1), (40, 1), (50, 1)])
def test_weights_last_for_a_call_after_those_in_flight(steps, calls):
    assert calls_in_flight(steps) == calls
    assert calls == 1 or (calls + 1) * steps <= STEPS_PER_WEIGHT_PULL


def test_steps_that_ended_in_the_turn_that_told_of_an_update_count_as_later():
    members = SimpleNamespace(
        fleet=SimpleNamespace(actors=2), supervisor=SimpleNamespace(num_turns=1), num_updates=0
    )
    weights = PublishedWeights(members, 40)
    weights.version, weights.weights = 0, "weights"
    assert [weights.take(number).age for number in (0, 1)] == [0, 0]
    weights.give_back(0, 40)  # in turn 1, when there was no update
    members.supervisor.num_turns = 2
    weights.give_back(1, 40)  # perhaps after the update that is told next
    members.num_updates = 1
    weights.note_update()
    assert [weights.age(number) for number in (0, 1)] == [0, 40]
    assert weights.take(1).steps == 40
    assert weights.take(1).steps == 20
    assert weights.take(1) is None
