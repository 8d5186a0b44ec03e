"""Simulated fleets against what can be computed by hand, and what must hold in all of them."""

import json
from dataclasses import replace

import pytest

from ezgreedy.agents.r2d2.presets import R2D2_EZ
from ezgreedy.agents.run_settings import EvaluationSettings
from ezgreedy.cli import main
from ezgreedy.commands import fleet as fleet_command
from ezgreedy.fleet.coordinator import FleetTraining
from ezgreedy.fleet.costs import Costs, on_gpu
from ezgreedy.fleet.fleet_settings import FleetSettings
from ezgreedy.fleet.simulation import FAULTS, PIPELINE, Scenario, simulate
from ezgreedy.fleet.virtual_time import VirtualSupervisor

SETTINGS = R2D2_EZ.at_scale("paper", "minatar/breakout")
FREE = Costs.of(step=3e-3, update=1e-6)  # everything but play is free


def run(
    actors=20, costs=FREE, lanes=1, faults=(), seconds=60.0, settings=SETTINGS, cpus=(), **fleet
):
    fleet = FleetSettings(actors=actors, **fleet)
    return simulate(Scenario(fleet, lanes, costs, tuple(faults), seconds, cpus), settings)


@pytest.mark.parametrize(
    ("actors", "lanes", "seconds"), [(2, 1, 900.0), (20, 16, 90.0), (320, 1, 20.0)]
)
def test_without_other_costs_all_actors_play_all_the_time(actors, lanes, seconds):
    found = run(actors, lanes=lanes, seconds=seconds)
    # An actor plays its lanes one after another, so their number does not matter.
    assert found.frames_per_second == pytest.approx(actors / FREE.step, rel=0.05)
    assert found.saturated == "actors"
    assert found.waiting["actors"] < 0.02
    ratio = found.updates_per_second / found.frames_per_second
    preset = SETTINGS.agent
    expected = preset.samples_per_insert / preset.stride / preset.learner.batch_size
    assert ratio == pytest.approx(expected, rel=0.1)


def test_lanes_share_what_a_step_of_their_actor_takes_beside_theirs():
    costs = replace(FREE, act=0.01)
    found = run(20, costs, lanes=16)
    together = costs.act + 16 * costs.step
    assert found.frames_per_second == pytest.approx(20 * 16 / together, rel=0.05)


def test_a_coordinator_that_answers_late_makes_actors_wait():
    late = replace(FREE, latency=0.03)
    found = run(20, late)
    played = 40 * FREE.step
    share = played / (played + 2 * late.latency)
    assert found.frames_per_second == pytest.approx(share * 20 / FREE.step, rel=0.05)
    assert found.waiting["actors"] == pytest.approx(1.0 - share, abs=0.03)


@pytest.mark.parametrize("update", [0.5, 5.0])
def test_a_slow_learner_holds_play_to_its_ratio(update):
    found = run(320, replace(FREE, update=update), seconds=200.0)
    preset = SETTINGS.agent
    windows = preset.learner.batch_size / preset.samples_per_insert / update
    assert found.updates_per_second == pytest.approx(1.0 / update, rel=0.05)
    assert found.frames_per_second == pytest.approx(windows * preset.stride, rel=0.1)
    assert found.saturated == "learner"
    assert found.waiting["learner"] < 0.02


def test_a_slow_memory_is_named_and_more_of_them_help():
    costs = replace(FREE, update=0.05, draw=0.5 / 64)
    one, four = run(320, costs), run(320, costs, shards=4)
    assert one.saturated == "shards"
    assert one.updates_per_second == pytest.approx(2.0, rel=0.05)
    assert four.updates_per_second > 2.0 * one.updates_per_second
    assert four.saturated == PIPELINE  # no more than four batches are drawn at once


def evaluated(evaluators, seconds, between):
    """A fleet whose evaluations take some seconds and are due some seconds apart."""
    speed = 20 / FREE.step
    evaluation = EvaluationSettings(frames_between=int(between * speed), frames=1000)
    settings = replace(SETTINGS, evaluation=evaluation)
    costs = replace(FREE, evaluate=seconds / 1000)
    return run(20, costs, seconds=300.0, settings=settings, evaluators=evaluators)


def test_evaluations_for_which_nobody_is_free_are_skipped_and_play_goes_on():
    enough, few, more = evaluated(1, 5.0, 10.0), evaluated(1, 30.0, 10.0), evaluated(3, 30.0, 10.0)
    assert (enough.evaluations, enough.skipped) == (pytest.approx(30, abs=2), 0)
    assert few.evaluations == pytest.approx(10, abs=1)
    assert few.skipped == pytest.approx(20, abs=2)
    assert few.waiting["evaluators"] < 0.05
    assert more.evaluations + more.skipped == pytest.approx(30, abs=2)
    assert more.evaluations >= 2.4 * few.evaluations
    for found in (few, more):
        assert found.frames_per_second == pytest.approx(enough.frames_per_second, rel=0.01)


FAULTS_OF_PROCESSES = tuple(fault for fault in FAULTS if fault != "machine-lost")


@pytest.mark.parametrize(
    "faults", [(), *((fault,) for fault in FAULTS_OF_PROCESSES), FAULTS_OF_PROCESSES]
)
def test_windows_are_neither_lost_nor_made_up(faults):
    found = run(20, Costs(), shards=2, faults=faults, seconds=140.0)  # losses after 30 and 90 s
    assert found.windows_inserted > 0
    assert found.windows_delivered == found.windows_inserted + found.windows_in_transit
    assert found.restarts == (2 if "actor-lost" in faults else 0)
    assert found.largest_weight_age < 100


def test_a_fleet_survives_its_faults_at_some_cost():
    whole, lost, stalled = (
        run(20, FREE, faults=faults, seconds=180.0)
        for faults in ((), ("actor-lost",), ("stalled-shard",))
    )
    assert 0.9 * whole.frames_per_second < lost.frames_per_second
    assert 0.4 * whole.frames_per_second < stalled.frames_per_second < whole.frames_per_second


def test_a_lost_machine_costs_the_time_to_replace_the_learner_and_then_its_share_of_actors():
    start = 10.0
    costs = replace(FREE, start=start)
    whole, lost = (
        run(20, costs, faults=faults, seconds=300.0, cpus=(8, 8, 8))
        for faults in ((), ("machine-lost",))
    )
    assert lost.restarts == 8
    # Nobody learns until it is known to be dead and others have started; then 13 of 20 play, since
    # three CPUs of 16 are for others, and all 20 once it is back and they have started.
    missing = (15.0 + 3.0 + start) + (120.0 - 28.0 + start) * 7 / 20
    expected = 1.0 - missing / 300.0
    assert lost.frames_per_second / whole.frames_per_second == pytest.approx(expected, abs=0.08)


def test_on_machines_that_are_too_small_there_are_fewer_actors_for_the_same_lanes():
    found = run(20, cpus=(8, 8))
    assert (found.actors, found.lanes) == (13, 20)
    assert found.frames_per_second == pytest.approx(13 / FREE.step, rel=0.1)


def test_more_actors_than_a_learner_needs_do_no_harm():
    """They all ask to play at the same moment; the learner still gets its batches in time."""
    enough, many = (run(actors, Costs(), shards=4, seconds=20.0) for actors in (320, 1000))
    assert enough.saturated == many.saturated == "learner"
    for found in (enough, many):
        assert found.updates_per_second == pytest.approx(1.0 / Costs().update, rel=0.03)
    assert many.frames_per_second == pytest.approx(enough.frames_per_second, rel=0.05)


def test_batches_that_take_long_to_decode_are_the_limit_until_there_are_more_threads():
    costs = replace(FREE, update=0.1, decode=0.4 / 64)
    one, two, eight = (run(320, costs, decode_threads=threads) for threads in (1, 2, 8))
    assert (one.saturated, two.saturated, eight.saturated) == ("decoders", "decoders", "learner")
    assert one.updates_per_second == pytest.approx(1.0 / 0.4, rel=0.05)
    assert two.updates_per_second == pytest.approx(1.0 / 0.2, rel=0.05)
    assert eight.updates_per_second == pytest.approx(1.0 / 0.1, rel=0.05)


@pytest.mark.parametrize(
    ("spread", "expected"),
    [(False, [(4, "PACK"), (2, "SPREAD")]), (True, [(1, "PACK"), (3, "SPREAD"), (2, "SPREAD")])],
)
def test_memories_have_places_with_the_learner_unless_told_otherwise(spread, expected, tmp_path):
    asked = []

    class Asked(VirtualSupervisor):
        def reserve(self, bundles, strategy):
            asked.append((len(bundles), strategy))
            return super().reserve(bundles, strategy)

    fleet = FleetSettings(actors=3, shards=3, evaluators=2, spread_shards=spread)
    settings = replace(SETTINGS, lanes=3)
    supervisor = Asked(FREE, cpus=(5, 5))
    with FleetTraining(settings, fleet, tmp_path, supervisor) as training:
        for _ in range(2000):
            training.step()
        assert asked == expected
        assert training.num_updates == 0 < training.frames
        memories = {memory.machine for memory in training.members.memories}
        if not spread:
            assert memories == {training.members.learner.machine}


def test_a_core_instead_of_a_gpu_is_the_limit_that_scaling_says():
    found = run(320, on_gpu(Costs(), is_gpu=False), settings=SETTINGS)
    assert found.saturated == "learner"
    assert found.updates_per_second == pytest.approx(1.0 / 5.8, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--actors", "1"], "actors must be at least 2; got 1"),
        (["--actors", "20", "1001"], "actors must be at most 1000; got 1001"),
        (["--shards", "9"], "shards must be at most 8; got 9"),
        (["--actors", "2", "--shards", "3"], "shards must be at most 2, the number of actors"),
        (["--evaluators", "0"], "evaluators must be at least 1; got 0"),
        (["--lanes-per-actor", "0"], "lanes_per_actor must be at least 1; got 0"),
        (["--seconds", "0"], "seconds must be more than 0; got 0.0"),
        (["--cost", "stp=1"], "(did you mean step?); got 'stp=1'"),
        (["--cost", "step=soon"], "--cost must be NAME=SECONDS, with seconds of at least 0"),
        (["--cost", "step=0"], "step must be more than 0"),
        (["--cost", "start=200"], "start must be less than 180, after which a process is given up"),
        (
            ["--actors", "20", "--machines", "2", "--cpus-per-machine", "2", "--evaluators", "3"],
            "1 shard and 3 evaluators must leave room for the learner and 1 actor, 6 CPUs in all; "
            "the simulated cluster has 4 CPUs",
        ),
        (["--machines", "2"], "--machines and --cpus-per-machine must be given together"),
        (["--machines", "0", "--cpus-per-machine", "4"], "--machines must be at least 1; got 0"),
        (["--machines", "2", "--cpus-per-machine", "0"], "--cpus-per-machine must be at least 1"),
        (["--fault", "machine-lost"], "machines must be at least 2 if one is lost; got 1"),
    ],
)
def test_impossible_fleets_are_refused_by_name(arguments, message, capsys, tmp_path):
    out = tmp_path / "out"
    assert main(["fleet", "simulate", *arguments, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_the_command_offers_every_fault():
    assert fleet_command._FAULTS == FAULTS


def test_the_command_shows_a_table_and_writes_figure_and_numbers(tmp_path, capsys):
    arguments = ["--actors", "2", "8", "--seconds", "5", "--game", "minatar/breakout"]
    assert main(["fleet", "simulate", *arguments, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    for name in ("frames/s", "updates/s", "age of weights", "learner wait", "saturated first"):
        assert name in shown
    assert "2 × 1 lanes" in shown
    found = json.loads((tmp_path / "simulation.json").read_text())["fleets"]
    assert [one["scenario"]["fleet"]["actors"] for one in found] == [2, 8]
    assert found[1]["found"]["frames_per_second"] > found[0]["found"]["frames_per_second"]
    assert (tmp_path / "simulation.svg").exists()
