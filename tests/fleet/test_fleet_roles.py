"""The roles of a fleet without Ray: who plays what, what travels, what comes twice."""

import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

from ezgreedy.agents.agent import game_spec
from ezgreedy.agents.r2d2.actor import Whereabouts, codec
from ezgreedy.agents.r2d2.roles import NetworkCopy, R2D2Learner
from ezgreedy.fleet.fleet_settings import FleetSettings, Patience, spread
from ezgreedy.fleet.roles import (
    ActorRole,
    EvaluatorRole,
    Key,
    LearnerRole,
    ShardRole,
    network_copy,
)
from ezgreedy.fleet.transport import num_bytes, pack, unpack
from ezgreedy.games.lanes import Lanes
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.learning.tensor_states import tensor
from ezgreedy.replay.compressed_batch import BatchDecoder
from ezgreedy.runs.evaluation import evaluate_agent
from ezgreedy.runs.training import Training
from support.small_runs import small_sequence_run
from support.states import bits

SETTINGS = small_sequence_run("r2d2-ez", lanes=8)
SPEC = game_spec(Lanes(SETTINGS.game, 1, SETTINGS.protocol, seed=0))


def started(where, settings=SETTINGS, incarnation=0, number=0):
    role = ActorRole()
    role.begin(settings, number, where, incarnation, None)
    return role


def tape(deliveries, lanes=8):
    """All actions of each lane, as they arrive in a memory."""
    actions = [[] for _ in range(lanes)]
    for packed in deliveries:
        for window in unpack(packed) if packed is not None else []:
            for block in window.blocks:
                actions[window.lane] += block.actions.tolist()
    return actions


def fleet_tape(actors, num_steps=60):
    roles = [started(where) for where in spread(8, actors)]
    return tape([role.play(num_steps, 0, None)[1] for role in roles])


@pytest.fixture(scope="module")
def windows():
    return unpack(started(Whereabouts(8)).play(40, 0, None)[1])


def equal(one, other):
    return all(
        np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("actors", [2, 4, 3, 8])
def test_tapes_do_not_depend_on_how_lanes_are_spread(actors):
    whole, parts = fleet_tape(1), fleet_tape(actors)
    assert all(len(lane) >= 40 for lane in whole)
    assert parts == whole


def test_tapes_are_those_of_a_single_process():
    training = Training(SETTINGS)
    actions = [[] for _ in range(8)]
    act = training.agent.act

    def noted(observations, starts):
        chosen = act(observations, starts)
        for lane, action in enumerate(chosen.tolist()):
            actions[lane].append(action)
        return chosen

    training.agent.act = noted
    training.agent.limiter.least_size = training.agent.limiter.centre = 10**9  # frozen weights
    for _ in range(60):
        training.step()
    for lane, there in zip(actions, fleet_tape(2), strict=True):
        assert lane[: len(there)] == there


def test_a_new_incarnation_plays_otherwise():
    tapes = [
        tape([started(Whereabouts(8), incarnation=number).play(40, 0, None)[1]])
        for number in (0, 1, 2)
    ]
    assert tapes[0] != tapes[1] != tapes[2] != tapes[0]


@pytest.mark.parametrize(("lanes", "actors"), [(8, 1), (8, 3), (320, 20), (7, 7)])
def test_lanes_are_dealt_out_evenly_and_each_once(lanes, actors):
    where = spread(lanes, actors)
    numbers = [n for one in where for n in range(one.first_lane, one.first_lane + one.lanes)]
    assert numbers == list(range(lanes))
    assert max(one.lanes for one in where) - min(one.lanes for one in where) <= 1
    assert {one.fleet for one in where} == {lanes}


def test_windows_survive_the_journey(windows):
    assert len(windows) >= 8
    arrived = unpack(pickle.loads(pickle.dumps(pack(windows))))
    for one, other in zip(windows, arrived, strict=True):
        assert one.blocks
        assert all(equal(a, b) for a, b in zip(one.blocks, other.blocks, strict=True))
        assert equal(one._replace(blocks=()), other._replace(blocks=()))


def test_what_arrives_shares_no_memory_with_what_was_sent(windows):
    packed = {name: array.copy() for name, array in pack(windows).items()}
    arrived = unpack(packed)
    assert num_bytes(packed) > 0
    for array in packed.values():
        array.fill(0)
    assert all(equal(a.blocks[0], b.blocks[0]) for a, b in zip(windows, arrived, strict=True))
    assert all(np.array_equal(a.state_h, b.state_h) for a, b in zip(windows, arrived, strict=True))


def shard(directory, snapshot=None):
    role = ShardRole()
    report, notice = role.begin(SETTINGS, SPEC, 0, 1, str(directory), snapshot)
    return role, report, notice


def test_a_delivery_that_comes_twice_is_kept_once(tmp_path, windows):
    role, *_ = shard(tmp_path)
    first = role.add(Key(0, 0, 1), pack(windows))
    again = role.add(Key(0, 0, 1), pack(windows))
    assert first.kept == len(windows) == again.windows
    assert (again.kept, again.duplicates) == (0, 1)
    assert role.add(Key(0, 1, 1), pack(windows)).kept > 0  # of another incarnation


def test_a_memory_reports_what_it_lost_and_has_room_for(tmp_path, windows):
    role, begun, _ = shard(tmp_path)
    assert (begun.windows, begun.lost, begun.effective_capacity) == (0, 0, 300)
    first = [window for window in windows if window.start == 0]
    longer = unpack(started(Whereabouts(8)).play(200, 0, None)[1])
    later = next(window for window in longer if window.start)
    report = role.add(Key(0, 0, 1), pack([later]))
    assert (report.kept, report.windows, report.lost) == (0, 0, 1)
    report = role.add(Key(0, 0, 2), pack(first))
    assert (report.kept, report.lost, report.effective_capacity) == (len(first), 1, 300)


def test_a_memory_comes_back_as_it_was_at_the_snapshot_that_is_named(tmp_path, windows):
    role, *_ = shard(tmp_path)
    role.add(Key(0, 0, 1), pack(windows[:8]))
    role.save(1)
    expected = role.sample(4)[1].rest
    role.add(Key(0, 0, 2), pack(windows[8:]))
    role.save(2)
    again, report, notice = shard(tmp_path, snapshot=1)
    assert notice is None
    assert report.windows == 8
    assert np.array_equal(again.sample(4)[1].rest["slots"], expected["slots"])
    assert again.add(Key(0, 0, 1), pack(windows[:8])).duplicates == 1
    assert again.add(Key(0, 0, 2), pack(windows[8:])).kept > 0
    again.save(2)  # in place of the one that nobody named


def test_a_memory_without_its_snapshot_says_so_and_begins_empty(tmp_path, windows):
    role, *_ = shard(tmp_path)
    role.add(Key(0, 0, 1), pack(windows))
    role.save(1)
    for path in tmp_path.rglob("arrays.safetensors"):
        path.write_bytes(b"spoilt")
    again, report, notice = shard(tmp_path, snapshot=1)
    assert report.windows == 0
    assert "starts empty" in notice
    again.add(Key(0, 0, 2), pack(windows))
    again.save(2)


def test_several_deliveries_in_one_call_are_counted_once_each(tmp_path, windows):
    role, *_ = shard(tmp_path)
    first, second = pack(windows[:3]), pack(windows[3:])
    assert role.add_all([Key(0, 0, 1), Key(1, 0, 1)], first, second).kept == len(windows)
    report = role.add_all([Key(0, 0, 1), Key(1, 0, 2)], first, second)
    assert (report.duplicates, report.kept) == (1, len(windows) - 3)


def test_an_actor_goes_on_from_its_state():
    role = started(Whereabouts(4))
    role.play(13, 0, None)
    state = role.state()
    expected = role.play(30, 0, None)
    again = ActorRole()
    again.begin(SETTINGS, 0, Whereabouts(4), 0, state)
    report, packed = again.play(30, 0, None)
    assert report.key == expected[0].key == Key(0, 0, 2)
    assert tape([packed]) == tape([expected[1]])


def test_actors_act_with_the_weights_they_are_given():
    learner = LearnerRole()
    learner.begin(replace(SETTINGS, seed=5), game_spec(Training(SETTINGS).lanes), None)
    version, weights = learner.weights()
    with_own, with_others = started(Whereabouts(8)), started(Whereabouts(8))
    own = tape([with_own.play(40, 0, None)[1]])
    report, packed = with_others.play(40, version, weights)
    assert tape([packed]) != own
    assert report.version == version


def test_bonuses_travel_to_actors_with_the_weights():
    settings = small_sequence_run("r2d2-rnd", lanes=8)
    training = Training(settings)
    while training.agent.num_updates < 6:
        training.step()
    learning, spec = training.agent.learning, game_spec(training.lanes)
    weights = learning.weights()
    frames = training.agent.replay.sample(4).observations.reshape(-1, *spec.observation_shape)
    expected = learning.first_bonus(frames)
    assert expected.max() > 0.0
    copy = NetworkCopy(settings.agent, spec, seed=9, is_actor=True)
    assert not copy.first_bonus(frames).any()
    copy.follow(weights)
    np.testing.assert_array_equal(copy.first_bonus(frames), expected)
    # Evaluations follow the same weights, and pay nothing.
    evaluates = NetworkCopy(settings.agent, spec, seed=9)
    evaluates.follow(weights)
    assert evaluates.first_bonus is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_changed_on_their_way_are_refused_by_name(value):
    settings = small_sequence_run("r2d2-ez", lanes=8)
    training = Training(settings)
    weights = training.agent.learning.weights()
    name = "memory.bias_ih"  # an infinite one saturates gates, and values stay finite
    weights[name] = weights[name].copy()
    weights[name][0] = value
    copy = NetworkCopy(settings.agent, game_spec(training.lanes), seed=9)
    with pytest.raises(ValueError, match=rf"weights {name} must be finite; got {value} at"):
        copy.follow(weights)


def test_actors_give_first_priorities_with_bonuses():
    settings = small_sequence_run("r2d2-rnd", lanes=8)
    training = Training(settings)
    while training.agent.num_updates < 6:
        training.step()
    weights = training.agent.learning.weights()
    unpaid = {**weights, "novelty.moments": np.zeros(3)}
    paid, free = (
        unpack(started(Whereabouts(8), settings).play(40, 6, given)[1])
        for given in (weights, unpaid)
    )
    pairs = list(zip(paid, free, strict=True))
    assert any(ours.priority != theirs.priority for ours, theirs in pairs)
    for ours, theirs in pairs:
        for block, same in zip(ours.blocks, theirs.blocks, strict=True):
            np.testing.assert_array_equal(block.rewards, same.rewards)


def test_an_evaluation_is_the_same_in_a_process_of_its_own():
    training = Training(SETTINGS)
    while training.agent.num_updates < 3:
        training.step()
    role = EvaluatorRole()
    role.begin(SETTINGS, game_spec(training.lanes))
    for number in (0, 4):
        expected = evaluate_agent(SETTINGS, training.agent, number)
        assert role.evaluate(number, training.agent.learning.weights()) == expected


def updated_agent(agent="r2d2-rnd", num_updates=3, **changes):
    settings = small_sequence_run(agent, **changes)
    training = Training(settings)
    while training.agent.num_updates < num_updates:
        training.step()
    return training


def learner_role(training, **more):
    role, learning = LearnerRole(), training.agent.learning
    spec = game_spec(training.lanes)
    assert role.begin(training.settings, spec, learning.state_dict(), **more) == 3
    return role


def decoded(training, drawn):
    """A batch as the replay of a single process would have decoded it."""
    preset = training.settings.agent
    decoder = BatchDecoder(codec(preset, game_spec(training.lanes)), preset.sequences)
    return decoder(drawn, np.empty(decoder.shape(drawn.num_windows), decoder.dtype))


@pytest.mark.parametrize(
    ("game", "threads"), [("minatar/breakout", 1), ("Freeway", 2), ("memory_chain/5", 2)]
)
def test_a_learner_learns_the_same_in_a_process_of_its_own(game, threads):
    training = updated_agent(game=game)
    agent, role = training.agent, learner_role(training, decode_threads=threads)
    for _ in range(4):
        drawn = agent.replay.draw(4)
        expected = agent.learning.update(decoded(training, drawn))
        found = role.update(drawn).learned
        assert np.array_equal(found.slots, expected.slots)
        assert np.array_equal(found.priorities, expected.priorities)
        assert found.measured == expected.measured | agent.learning.measurements()
    assert bits(role.state()) == bits(agent.learning.state_dict())


def test_batches_are_decoded_in_turns_and_learned_from_one_after_another():
    """Two calls at a time, as in a fleet: every batch counts once, and none is overwritten."""
    training = updated_agent()
    agent, role = training.agent, learner_role(training, decode_threads=2)
    batches = [agent.replay.draw(4) for _ in range(12)]
    with ThreadPoolExecutor(LearnerRole.calls_at_once["update"]) as callers:
        reports = list(callers.map(role.update, batches))
        version, _ = role.weights()
    assert version == 15
    order = np.argsort([report.num_updates for report in reports])
    assert sorted(report.num_updates for report in reports) == list(range(4, 16))
    for number in order:
        expected = agent.learning.update(decoded(training, batches[number]))
        assert np.array_equal(reports[number].learned.priorities, expected.priorities)
    assert bits(role.state()) == bits(agent.learning.state_dict())
    assert all(report.waited >= 0.0 and report.seconds > 0.0 for report in reports)


def test_an_update_that_fails_frees_its_buffer():
    training = updated_agent("r2d2-ez")
    role = learner_role(training)
    drawn = training.agent.replay.draw(4)
    bad = drawn._replace(
        rest={**drawn.rest, "rewards": np.full_like(drawn.rest["rewards"], np.nan)}
    )
    for _ in range(3):  # more than there are buffers
        with pytest.raises(NotFiniteError):
            role.update(bad)
    assert role.update(drawn).num_updates == 4


@pytest.mark.parametrize("agent", ["r2d2-ez", "r2d2-rnd"])
def test_a_learner_takes_observations_that_are_tensors_already(agent):
    """As they are if they were copied to another device while it computed."""
    training = updated_agent(agent, game="Freeway")
    twin = R2D2Learner(training.settings.agent, game_spec(training.lanes), seed=1)
    twin.load_state_dict(training.agent.learning.state_dict())
    batch = decoded(training, training.agent.replay.draw(4))
    tensors = batch._replace(observations=tensor(batch.observations, torch.device("cpu")))
    ours, theirs = twin.update(tensors), training.agent.learning.update(batch)
    assert np.array_equal(ours.priorities, theirs.priorities)
    assert ours.measured == theirs.measured


def num_floats():
    """Floats of all tensors here, each once."""
    found = (one for one in gc.get_objects() if issubclass(type(one), torch.Tensor))
    return sum({one.untyped_storage().data_ptr(): one.numel() for one in found}.values())


@pytest.mark.parametrize("agent", ["r2d2-ez", "r2d2-bootstrap"])
def test_actors_and_evaluators_hold_one_network_and_no_optimiser(agent):
    settings = small_sequence_run(agent)
    learner = R2D2Learner(settings.agent, SPEC, seed=0).learner
    gc.collect()
    before = num_floats()
    copy = network_copy(settings, SPEC, is_actor=True)
    assert copy.num_parameters == sum(one.numel() for one in learner.online.parameters())
    gc.collect()
    assert num_floats() - before == copy.num_parameters


def test_errors_about_numbers_travel_between_processes():
    error = pickle.loads(pickle.dumps(NotFiniteError("losses", 3, 7)))
    assert (error.site, error.step, error.seed) == ("losses", 3, 7)
    assert str(error) == str(NotFiniteError("losses", 3, 7))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: spread(8, 9), "actors must be at most 8, the number of lanes; got 9"),
        (lambda: FleetSettings(actors=0), "actors must be at least 1; got 0"),
        (lambda: FleetSettings(actors=2, shards=3), "shards must be at most 2"),
        (lambda: FleetSettings(evaluators=0), "evaluators must be at least 1; got 0"),
        (lambda: FleetSettings(decode_threads=0), "decode_threads must be at least 1; got 0"),
        (lambda: FleetSettings(evaluation_seconds=-1.0), "evaluation_seconds must be finite"),
        (lambda: FleetSettings(object_store_megabytes=0), "object_store_megabytes must be"),
        (lambda: Patience(heartbeat=3.0, silence=2.0), "silence must be more than heartbeat"),
        (lambda: Patience(call=0.0), "call must be positive"),
    ],
)
def test_bad_fleets_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
