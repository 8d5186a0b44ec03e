"""The roles of a fleet without Ray: who plays what, what travels, what comes twice."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from ezgreedy.agents.agent import game_spec
from ezgreedy.agents.r2d2.actor import Whereabouts
from ezgreedy.agents.r2d2.roles import NetworkCopy
from ezgreedy.fleet.fleet_settings import FleetSettings, Patience, spread
from ezgreedy.fleet.roles import ActorRole, EvaluatorRole, Key, LearnerRole, ShardRole
from ezgreedy.fleet.transport import num_bytes, pack, unpack
from ezgreedy.learning.gradients import NotFiniteError
from ezgreedy.runs.evaluation import evaluate_agent
from ezgreedy.runs.training import Training
from support.small_runs import small_sequence_run
from support.states import bits

SETTINGS = small_sequence_run("r2d2-ez", lanes=8)


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
    played = game_spec(Training(replace(SETTINGS, lanes=1)).lanes)
    report, notice = role.begin(SETTINGS, played, 0, 1, str(directory), snapshot)
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
    later = next(window for window in windows if window.start)
    report = role.add(Key(0, 0, 1), pack([later]))
    assert (report.kept, report.windows, report.lost) == (0, 0, 1)
    report = role.add(Key(0, 0, 2), pack(first))
    assert (report.kept, report.lost, report.effective_capacity) == (len(first), 1, 300)


def test_a_memory_comes_back_as_it_was_at_the_snapshot_that_is_named(tmp_path, windows):
    role, *_ = shard(tmp_path)
    role.add(Key(0, 0, 1), pack(windows[:8]))
    role.save(1)
    expected = role.sample(4)[1]
    role.add(Key(0, 0, 2), pack(windows[8:]))
    role.save(2)
    again, report, notice = shard(tmp_path, snapshot=1)
    assert notice is None
    assert report.windows == 8
    assert np.array_equal(again.sample(4)[1].slots, expected.slots)
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


def test_a_learner_learns_the_same_in_a_process_of_its_own():
    settings = small_sequence_run("r2d2-rnd")
    training = Training(settings)
    while training.agent.num_updates < 3:
        training.step()
    agent, role = training.agent, LearnerRole()
    assert role.begin(settings, game_spec(training.lanes), agent.learning.state_dict()) == 3
    batch = agent.replay.sample(4)
    expected, found = agent.learning.update(batch), role.update(batch).learned
    assert np.array_equal(found.priorities, expected.priorities)
    assert found.measured == expected.measured | agent.learning.measurements()
    assert bits(role.state()) == bits(agent.learning.state_dict())


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
        (lambda: FleetSettings(evaluation_seconds=-1.0), "evaluation_seconds must be finite"),
        (lambda: FleetSettings(object_store_megabytes=0), "object_store_megabytes must be"),
        (lambda: Patience(heartbeat=3.0, silence=2.0), "silence must be more than heartbeat"),
        (lambda: Patience(call=0.0), "call must be positive"),
    ],
)
def test_bad_fleets_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
