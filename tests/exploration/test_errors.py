"""Refusals: by name, with the rule and the value, and without a trace in the state."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ezgreedy import ActionRepeats, EpsilonGreedy, EZGreedy, Linear, TemporallyExtended, Zeta
from support.twins import tape


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 1.5}, ValueError, r"epsilon must lie in \[0, 1\]; got 1\.5"),
        ({"epsilon": -0.1}, ValueError, r"epsilon must lie in \[0, 1\]; got -0\.1"),
        ({"epsilon": math.nan}, ValueError, r"epsilon must lie in \[0, 1\]; got nan"),
        ({"epsilon": "0.1"}, TypeError, "number per lane, or a schedule .*; got str '0.1'"),
        ({"epsilon": True}, TypeError, "epsilon must be a number, .*; got bool True"),
        ({"epsilon": None}, TypeError, "epsilon must be a number, .*; got NoneType None"),
        ({"epsilon": [0.1]}, ValueError, r"epsilon must have shape \(3,\), one number per lane"),
        ({"epsilon": [0.1, 2.0, 0.3]}, ValueError, "got 2.0 at position 1"),
        ({"epsilon": [0.1, math.nan, 0.3]}, ValueError, "got nan at position 1"),
        ({"epsilon": ["a", "b", "c"]}, TypeError, "epsilon must hold numbers"),
        ({"num_actions": 0}, ValueError, "num_actions must be at least 1; got 0"),
        ({"num_actions": 4.0}, TypeError, r"num_actions must be an int; got float 4\.0"),
        ({"lanes": 0}, ValueError, "lanes must be at least 1; got 0"),
        ({"lanes": "3"}, TypeError, "lanes must be an int"),
        ({"seed": -1}, ValueError, "seed must be at least 0; got -1"),
        ({"seed": 0.5}, TypeError, "seed must be an int"),
        ({"first_lane": -2}, ValueError, "first_lane must be at least 0"),
        ({"durations": 5}, TypeError, "durations must be a duration law"),
        ({"carries_over_episodes": 1}, TypeError, "carries_over_episodes must be a bool"),
        ({"action_weights": [1, 2]}, ValueError, r"action_weights must have shape \(4,\)"),
        ({"action_weights": [0, 0, 0, 0]}, ValueError, "not all zero"),
        ({"action_weights": [1, -1, 1, 1]}, ValueError, "action_weights must be finite"),
        ({"action_weights": [1, math.nan, 1, 1]}, ValueError, "action_weights must be finite"),
        ({"action_weights": "abcd"}, TypeError, "action_weights must be an array"),
    ],
)
def test_constructor_arguments(arguments, error, message):
    defaults = {"num_actions": 4, "epsilon": 0.1, "lanes": 3}
    with pytest.raises(error, match=message):
        EZGreedy(**(defaults | arguments))


BAD_CALLS = [
    ({"greedy": [0, 1]}, ValueError, r"greedy must have shape \(3,\); got \(2,\)"),
    ({"greedy": [0, 4, 1]}, ValueError, r"greedy must lie in \[0, 4\); got 4 at position 1"),
    ({"greedy": [0, 1, -1]}, ValueError, r"greedy must lie in \[0, 4\); got -1 at position 2"),
    ({"greedy": [0.0, 1.0, 2.0]}, TypeError, "greedy must hold ints, not float64"),
    ({"greedy": np.zeros((3, 4))}, TypeError, r"pass argmax\(axis=1\) of values"),
    ({"greedy": np.array([True, False, True])}, TypeError, "greedy must hold ints, not bool"),
    ({"greedy": np.array([2**63, 0, 0], dtype=np.uint64)}, ValueError, "greedy must lie in"),
    ({"greedy": 1}, TypeError, "greedy must be an int array; got int 1"),
    ({"greedy": None}, TypeError, "greedy must be an int array; got NoneType"),
    ({"greedy": [[0], [1, 2], [3]]}, TypeError, "greedy must be an int array"),
    ({"greedy": lambda lanes: np.zeros(len(lanes))}, TypeError, r"greedy\(lanes\) must hold ints"),
    ({"greedy": lambda lanes: np.zeros(99, int)}, ValueError, r"greedy\(lanes\) must have shape"),
    ({"greedy": lambda lanes: lanes + 9}, ValueError, r"greedy\(lanes\) must lie in \[0, 4\)"),
    ({"starts": [True, False]}, ValueError, r"starts must have shape \(3,\); got \(2,\)"),
    ({"starts": [1, 0, 0]}, TypeError, "starts must be a bool array"),
    ({"starts": True}, TypeError, "starts must be a bool array; got bool True"),
    ({"ends": [True, False]}, ValueError, r"ends must have shape \(3,\); got \(2,\)"),
    ({"ends": [0.5, 0.0, 1.0]}, TypeError, "ends must be a bool array"),
    ({"active": np.ones(3)}, TypeError, r"active must be a bool array of shape \(3,\)"),
    ({"active": np.ones((3, 1), bool)}, ValueError, r"active must have shape \(3,\)"),
    ({"legal": np.ones((3, 5), bool)}, ValueError, r"legal must have shape \(3, 4\)"),
    ({"legal": np.ones((3, 4))}, TypeError, "legal must be a bool array"),
    (
        {"legal": np.array([[True] * 4, [False] * 4, [True] * 4])},
        ValueError,
        "legal must leave every active lane an action; got none at position 1",
    ),
]


MAKERS = {
    "EZGreedy": lambda epsilon: EZGreedy(4, epsilon, lanes=3, seed=1),
    "EpsilonGreedy": lambda epsilon: EpsilonGreedy(4, epsilon, lanes=3, seed=1),
    "TemporallyExtended": lambda epsilon: TemporallyExtended(
        ActionRepeats(4), epsilon, lanes=3, seed=1
    ),
}
each_policy = pytest.mark.parametrize("kind", MAKERS)


def policies(epsilon=0.5):
    return [make(epsilon) for make in MAKERS.values()]


@each_policy
@pytest.mark.parametrize(("arguments", "error", "message"), BAD_CALLS)
def test_bad_calls_are_refused_and_change_nothing(kind, arguments, error, message):
    explore = MAKERS[kind](0.5)
    tape(explore, 9)
    explore.reset(np.array([True, False, False]))  # at least this lane decides next
    state = explore.state_dict()
    decision = explore.exploring.tolist(), explore.remaining.tolist()
    with pytest.raises(error, match=message):
        explore(**({"greedy": np.zeros(3, dtype=int)} | arguments))
    assert explore.state_dict() == state
    assert (explore.exploring.tolist(), explore.remaining.tolist()) == decision


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_call_that_fails_late_changes_nothing(data):
    # The greedy action turns out illegal after episode starts and masks have been looked at.
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    arguments = (5, 0.5, Zeta(cap=30), 4, int(rng.integers(0, 100)))
    tried, untried = EZGreedy(*arguments), EZGreedy(*arguments)
    for _ in range(30):
        greedy, starts = rng.integers(0, 5, 4), rng.random(4) < 0.3
        legal = rng.random((4, 5)) < 0.6
        legal[:, 0] |= ~legal.any(axis=1)
        try:
            tried(greedy, starts=starts, legal=legal)
        except ValueError:
            assert tried.state_dict() == untried.state_dict()
        else:
            untried(greedy, starts=starts, legal=legal)
        np.testing.assert_array_equal(tried(greedy), untried(greedy))


def test_an_exception_of_the_greedy_function_changes_nothing():
    def broken(lanes):
        raise RuntimeError("no network today")

    for explore in policies():
        tape(explore, 5)
        state = explore.state_dict()
        with pytest.raises(RuntimeError, match="no network today"):
            explore(broken, starts=np.ones(3, dtype=bool))
        assert explore.state_dict() == state


def test_a_greedy_action_that_is_illegal_where_played_is_refused():
    for explore in policies(epsilon=0.0):
        legal = np.ones((3, 4), dtype=bool)
        legal[2, 1] = False
        with pytest.raises(ValueError, match="greedy must be legal where it is played; got action"):
            explore(np.array([1, 1, 1]), legal=legal)
        explore(np.array([1, 1, 1]), legal=legal, active=np.array([True, True, False]))


def test_weights_and_masks_that_leave_nothing_are_refused():
    explore = EZGreedy(3, 0.5, lanes=1, action_weights=[0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="an action of positive weight; got none at position 0"):
        explore(np.array([0]), legal=np.array([[True, False, False]]))


def test_reset_refuses_masks_of_the_wrong_kind():
    for explore in policies():
        with pytest.raises(ValueError, match=r"finished must have shape \(3,\)"):
            explore.reset(np.array([True]))
        with pytest.raises(TypeError, match="finished must be a bool array"):
            explore.reset(np.array([1, 0, 0]))


@pytest.mark.parametrize("value", [1.5, math.nan, -1, "x"])
def test_a_schedule_that_leaves_the_range_is_refused_at_its_step(value):
    for explore in policies(epsilon=lambda step: value if step == 3 else 0.1):
        tape(explore, 3)
        state = explore.state_dict()
        with pytest.raises((ValueError, TypeError), match=r"epsilon\(step=3\) must"):
            explore(np.zeros(3, dtype=int))
        assert explore.state_dict() == state


def test_assigning_a_bad_epsilon_keeps_the_old_one():
    for explore in policies():
        with pytest.raises(ValueError, match="epsilon must lie in"):
            explore.epsilon = 7
        assert explore.epsilon == 0.5


def test_the_epsilon_array_cannot_be_changed_behind_the_policys_back():
    explore = EZGreedy(4, [0.1, 0.2, 0.3], lanes=3)
    with pytest.raises(ValueError, match="read-only"):
        explore.epsilon[0] = 1.0


def changed(state, key, value):
    return state | {key: value}


def without(state, key):
    return {k: v for k, v in state.items() if k != key}


BAD_STATES = [
    (lambda s: changed(s, "lanes", 4), r"must equal 3; got 4 \(make the policy with lanes=4\)"),
    (lambda s: changed(s, "lanes", "4"), r"state\['lanes'\] must equal 3; got '4'$"),
    (lambda s: changed(s, "seed", 9), r"state\['seed'\] must equal 1; got 9 \(.* seed=9\)"),
    (lambda s: changed(s, "num_actions", 5), r"state\['num_actions'\] must equal 4; got 5"),
    (lambda s: changed(s, "first_lane", 8), r"state\['first_lane'\] must equal 0; got 8"),
    (lambda s: changed(s, "policy", "Other"), r"state\['policy'\] must equal"),
    (lambda s: changed(s, "format", 2), r"state\['format'\] must equal 1; got 2"),
    (lambda s: changed(s, "steps", [1, 2]), r"state\['steps'\] must be a list of 3 ints"),
    (lambda s: changed(s, "steps", [1, 2, -3]), r"state\['steps'\] must be at least 0; got -3"),
    (lambda s: changed(s, "steps", [1, 2, 0.5]), r"state\['steps'\] must be an int"),
    (lambda s: changed(s, "epsilon", 3.0), r"epsilon must lie in \[0, 1\]"),
    (lambda s: changed(s, "epsilon", "function"), r"state\['epsilon'\] must equal 0.5"),
    (lambda s: changed(s, "counters", {}), r"state\['counters'\] must have the keys"),
    (lambda s: without(s, "steps"), r"missing \['steps'\], unknown \[\]"),
    (lambda s: changed(s, "extra", 1), r"missing \[\], unknown \['extra'\]"),
    (lambda s: [1, 2], "state must be a mapping"),
]


@each_policy
@pytest.mark.parametrize(("damage", "message"), BAD_STATES)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(kind, damage, message):
    explore = MAKERS[kind](0.5)
    tape(explore, 12)
    before = explore.state_dict()
    with pytest.raises((ValueError, TypeError), match=message):
        explore.load_state_dict(damage(explore.state_dict()))
    assert explore.state_dict() == before


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("remaining", [0, 0, 10**7], r"state\['remaining'\] must be at most 10000"),
        ("option_actions", [0, 0, 4], r"state\['option_actions'\] must be at most 3; got 4"),
        ("durations", {"law": "Fixed", "n": 2}, r"state\['durations'\] must equal"),
        ("action_weights", [1, 1, 1, 1], r"state\['action_weights'\] must equal None"),
        ("carries_over_episodes", True, r"state\['carries_over_episodes'\] must equal False"),
    ],
)
def test_a_state_of_another_ez_greedy_is_refused(key, value, message):
    explore = EZGreedy(4, 0.5, lanes=3, seed=1)
    with pytest.raises(ValueError, match=message):
        explore.load_state_dict(changed(explore.state_dict(), key, value))


def test_a_state_of_another_schedule_is_refused():
    saved = EZGreedy(4, Linear(1.0, 0.1, 100)).state_dict()
    with pytest.raises(ValueError, match=r"state\['epsilon'\] must equal"):
        EZGreedy(4, Linear(1.0, 0.1, 200)).load_state_dict(saved)
    with pytest.raises(ValueError, match=r"state\['epsilon'\] must equal"):
        EZGreedy(4, 0.1).load_state_dict(saved)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Linear(1.5, 0.1, 10), r"start must lie in \[0, 1\]; got 1\.5"),
        (lambda: Linear(1.0, -1, 10), r"end must lie in \[0, 1\]; got -1"),
        (lambda: Linear(1.0, 0.1, 0), "steps must be at least 1; got 0"),
    ],
)
def test_schedules_refuse_values_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make()
