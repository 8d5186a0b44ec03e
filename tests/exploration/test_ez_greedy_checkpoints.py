"""States of εz-greedy: saved anywhere, continued exactly."""

import copy
import json
import pickle

import numpy as np
import pytest

from ezgreedy import (
    EZGreedy,
    Linear,
)
from support.twins import tape

# Checkpoints.


@pytest.mark.parametrize("num_steps", [1, 7, 64, 300])
def test_a_state_saved_inside_options_continues_the_same_tape(num_steps):
    def make():
        return EZGreedy(9, Linear(1.0, 0.2, 100), lanes=12, seed=2**80, first_lane=3)

    original = make()
    tape(original, num_steps)
    assert num_steps < 7 or (original.remaining > 0).any()
    state = json.loads(json.dumps(original.state_dict()))
    restored = make()
    restored.load_state_dict(state)
    assert restored.state_dict() == original.state_dict()
    np.testing.assert_array_equal(tape(restored, 200), tape(original, 200))
    assert restored.counters == original.counters


def test_a_state_from_before_options_could_be_ended_is_loaded():
    original = EZGreedy(4, 0.5, lanes=3)
    tape(original, 50)
    state = original.state_dict()
    del state["counters"]["cut_by_caller"]
    restored = EZGreedy(4, 0.5, lanes=3)
    restored.load_state_dict(state)
    assert restored.state_dict() == original.state_dict()


def test_numbers_assigned_to_epsilon_are_part_of_the_state():
    original = EZGreedy(4, 0.5, lanes=3)
    original.epsilon = [0.0, 0.3, 1.0]
    restored = EZGreedy(4, 0.5, lanes=3)
    restored.load_state_dict(original.state_dict())
    np.testing.assert_array_equal(tape(restored, 100), tape(original, 100))


def test_a_state_holds_plain_data_only():
    explore = EZGreedy(4, 0.5, lanes=3, action_weights=[1, 2, 3, 4])
    tape(explore, 50)

    def check(value):
        if isinstance(value, dict):
            assert all(type(key) is str for key in value)
            value = list(value.values())
        if type(value) is list:
            for item in value:
                check(item)
        else:
            assert value is None or type(value) in (int, float, str, bool)

    check(explore.state_dict())


def test_copies_go_their_own_ways():
    original = EZGreedy(5, 0.3, lanes=4, seed=1)
    tape(original, 30)
    for twin in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        ahead = tape(twin, 50)
        fresh = copy.deepcopy(original)
        np.testing.assert_array_equal(tape(fresh, 50), ahead)


def test_evaluation_with_its_own_policy_does_not_move_training():
    training, undisturbed = (EZGreedy(5, 0.3, lanes=4, seed=1) for _ in range(2))
    evaluation = EZGreedy(5, 0.001, lanes=4, seed=2)
    for _ in range(100):
        actions = training(np.zeros(4, dtype=int))
        tape(evaluation, 3)
        np.testing.assert_array_equal(actions, undisturbed(np.zeros(4, dtype=int)))
