"""Batches of windows: which places are used, and which batches are none."""

import numpy as np
import pytest

from ezgreedy.replay.sequence_batch import SequenceBatch, check


def make(**changes):
    batch = SequenceBatch(
        observations=np.zeros((3, 6, 1, 2, 2), dtype=np.uint8),
        actions=np.zeros((3, 5), dtype=np.int64),
        rewards=np.zeros((3, 5), dtype=np.float32),
        previous_action=np.array([-1, 0, 1]),
        previous_reward=np.zeros(3, dtype=np.float32),
        state_h=np.zeros((3, 4), dtype=np.float32),
        state_c=np.zeros((3, 4), dtype=np.float32),
        prefix_lengths=np.array([0, 1, 2]),
        lengths=np.array([3, 1, 2]),
        terminated=np.zeros(3, dtype=np.bool_),
        weights=np.ones(3),
        masks=np.zeros((3, 5), dtype=np.uint8),
        behaviour_probabilities=np.ones((3, 5), dtype=np.float32),
        slots=np.arange(3),
        generations=np.zeros(3, dtype=np.int64),
    )
    return batch._replace(**changes)


def test_prefixes_end_and_trained_steps_begin_at_one_position():
    trained = [[0, 0, 1, 1, 1], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0]]
    used = [[0, 0, 1, 1, 1], [0, 1, 1, 0, 0], [1, 1, 1, 1, 0]]
    np.testing.assert_array_equal(make().is_trained(2), np.array(trained, dtype=bool))
    np.testing.assert_array_equal(make().is_used(2), np.array(used, dtype=bool))


def test_networks_see_what_is_learned_from_unless_told_otherwise():
    batch = make()
    assert batch.inputs is batch.rewards
    seen = np.ones((3, 5), dtype=np.float32)
    assert make(seen_rewards=seen).inputs is seen


def test_padded_actions_may_be_anything():
    batch = make()
    batch.actions[~batch.is_used(2)] = 99
    check(batch, burn_in=2, length=3, num_actions=2)
    batch.actions[1, 1] = 2
    with pytest.raises(ValueError, match=r"^actions must lie in \[0, 1\]; got 2"):
        check(batch, burn_in=2, length=3, num_actions=2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": np.zeros((3, 5, 2))}, r"^observations must have shape \[3, 6, \.\.\.\]"),
        ({"masks": np.zeros((3, 4), np.uint8)}, r"^masks must have shape \(3, 5\)"),
        ({"behaviour_probabilities": np.ones((2, 5))}, r"^behaviour_probabilities must have"),
        ({"terminated": np.zeros((3, 1), bool)}, r"^terminated must have shape \(3,\)"),
        ({"prefix_lengths": np.array([0, 3, 0])}, r"^prefix_lengths must lie in \[0, 2\]; got 3"),
        ({"lengths": np.array([0, 1, 1])}, r"^lengths must lie in \[1, 3\]; got 0"),
        ({"previous_action": np.array([0, 0, 2])}, r"^previous_action must lie in \[-1, 1\]"),
        ({"state_c": np.zeros((4, 4))}, r"^state_c must hold 3 rows; got 4"),
    ],
)
def test_what_is_no_batch_of_windows_is_refused(changes, message):
    check(make(), burn_in=2, length=3, num_actions=2)
    with pytest.raises(ValueError, match=message):
        check(make(**changes), burn_in=2, length=3, num_actions=2)
