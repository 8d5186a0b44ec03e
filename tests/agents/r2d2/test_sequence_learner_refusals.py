"""The learner of R2D2: what it refuses, leaving everything as it was, and how it continues."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from ezgreedy.agents.r2d2.learner_settings import SequenceLearnerSettings
from ezgreedy.learning.gradients import NotFiniteError
from support.tensors import assert_same, flat
from support.windows import NETWORK, RETURNS, VECTORS, make_learner, random_batch

# What it refuses.


def poisoned(array, value):
    array = array.copy()
    array[0, ...] = value
    return array


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(
    "site", ["rewards", "previous_reward", "weights", "state_h", "state_c", "observations"]
)
def test_what_is_not_finite_is_refused_and_changes_nothing(site, value):
    learner, batch = make_learner(VECTORS, seed=5), random_batch(shape=(6,))
    learner.update(batch)
    before = learner.state_dict()
    with pytest.raises(NotFiniteError, match=rf"^{site}: .* after 1 updates$"):
        learner.update(batch._replace(**{site: poisoned(getattr(batch, site), value)}))
    assert_same(before, learner.state_dict())


def test_seen_rewards_that_are_not_finite_are_refused():
    batch = random_batch()
    batch = batch._replace(seen_rewards=poisoned(batch.rewards, math.nan))
    with pytest.raises(NotFiniteError, match=r"^seen_rewards:"):
        make_learner().update(batch)


def test_losses_and_gradients_that_are_not_finite_change_nothing():
    learner, twin, batch = make_learner(), make_learner(), random_batch()
    before = learner.state_dict()
    with pytest.raises(NotFiniteError, match=r"^losses:"):
        learner.update(batch._replace(rewards=np.full_like(batch.rewards, 3e38)))
    assert_same(before, learner.state_dict())
    handle = learner.online.features.bias.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(NotFiniteError, match=r"^gradient of features\.bias:"):
        learner.update(batch)
    handle.remove()
    assert_same(before, learner.state_dict())
    np.testing.assert_array_equal(learner.update(batch).priorities, twin.update(batch).priorities)
    assert_same(learner.state_dict(), twin.state_dict())


def test_values_that_are_not_finite_are_refused():
    learner = make_learner()
    with torch.no_grad():
        learner.online.features.bias.fill_(math.nan)
    frames = random_batch().observations[:, 0]
    with pytest.raises(NotFiniteError, match=r"^values:"):
        learner.values(
            frames, np.zeros(6, np.int64), np.zeros(6, np.float32), learner.online.initial_state(6)
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": np.full((6, 8), 3)}, r"^actions must lie in \[0, 2\]; got 3"),
        ({"actions": np.full((7, 8), 0)}, r"^batch must hold 6 rows; got 7"),
        ({"actions": np.full((6, 9), 0)}, r"^actions must have shape \(6, 8\)"),
        ({"lengths": np.zeros(6, np.int64)}, r"^lengths must lie in \[1, 5\]; got 0"),
        ({"lengths": np.full(6, 6)}, r"^lengths must lie in \[1, 5\]; got 6"),
        ({"prefix_lengths": np.full(6, 4)}, r"^prefix_lengths must lie in \[0, 3\]; got 4"),
        ({"previous_action": np.full(6, -2)}, r"^previous_action must lie in \[-1, 2\]; got -2"),
        ({"rewards": np.zeros((6, 7), np.float32)}, r"^rewards must have shape \(6, 8\)"),
        ({"seen_rewards": np.zeros((6, 7), np.float32)}, r"^seen_rewards must have shape"),
        ({"weights": np.ones((6, 1))}, r"^weights must have shape \(6,\)"),
        ({"state_h": np.zeros((5, 8), np.float32)}, "^state_h must hold 6 rows; got 5"),
        ({"state_c": np.zeros((6, 9), np.float32)}, r"^state must have shape \[batch, 8\]"),
        (
            {"observations": np.zeros((6, 8, 4, 10, 10), np.uint8)},
            r"^observations must have shape \[6, 9, \.\.\.\]",
        ),
        (
            {"observations": np.zeros((6, 9, 3, 10, 10), np.uint8)},
            r"^observations must have shape \[batch, steps \+ 1, 4, 10, 10\]",
        ),
    ],
)
def test_batches_that_do_not_fit_are_refused_and_change_nothing(changes, message):
    learner = make_learner()
    before = learner.state_dict()
    with pytest.raises(ValueError, match=message):
        learner.update(random_batch()._replace(**changes))
    assert_same(before, learner.state_dict())


def test_retrace_refuses_actions_of_no_probability():
    learner = make_learner(returns=replace(RETURNS, form="retrace"))
    batch = random_batch()._replace(behaviour_probabilities=np.zeros((6, 8), np.float32))
    with pytest.raises(ValueError, match=r"^behaviour_probabilities must lie in \(0, 1\]"):
        learner.update(batch)
    make_learner().update(batch)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.0}, "^learning_rate must be positive"),
        ({"adam_epsilon": math.nan}, "^adam_epsilon must be finite"),
        ({"batch_size": 0}, "^batch_size must be at least 1"),
        ({"burn_in": -1}, "^burn_in must be at least 0"),
        ({"length": 0}, "^length must be at least 1"),
        ({"updates_per_target_sync": 0}, "^updates_per_target_sync must be at least 1"),
        ({"largest_gradient_norm": -1.0}, "^largest_gradient_norm must be"),
        ({"loss": "absolute"}, "^loss must be one of 'squared', 'huber'"),
        ({"max_share": 1.5}, "^max_share must lie in"),
        ({"least_priority": 0.0}, "^least_priority must be positive"),
    ],
)
def test_settings_of_learners_are_checked(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SequenceLearnerSettings(**changes)


# How it continues.


@pytest.mark.parametrize("updates_before", [0, 4])
def test_a_restored_learner_continues_to_the_last_bit(updates_before):
    learner = make_learner()
    for index in range(updates_before):
        learner.update(random_batch(index))
    state = learner.state_dict()
    kept = dict(flat(learner.state_dict()))
    restored = make_learner(seed=9)
    restored.load_state_dict(state)
    for index in range(5):
        batch = random_batch(100 + index)
        ours, theirs = learner.update(batch), restored.update(batch)
        assert (ours.loss, ours.gradient_norm) == (theirs.loss, theirs.gradient_norm)
        np.testing.assert_array_equal(ours.priorities, theirs.priorities)
    assert_same(learner.state_dict(), restored.state_dict())
    assert learner.num_updates == restored.num_updates == updates_before + 5
    # A state is a copy: updates since have not reached it.
    assert all(torch.equal(tensor, kept[name]) for name, tensor in flat(state))
    assert all(type(part) is torch.Tensor for part in kept.values())


def test_states_of_another_learner_are_refused_and_change_nothing():
    learner = make_learner()
    before = learner.state_dict()
    wider = make_learner(replace(NETWORK, memory_size=9)).state_dict()
    with pytest.raises(ValueError, match=r"^state\.online\.\S+ must be torch.float32 of shape"):
        learner.load_state_dict(wider)
    with pytest.raises(ValueError, match=r"^state must hold online, target, optimizer"):
        learner.load_state_dict({"online": before["online"]})
    with pytest.raises(TypeError, match=r"^state\.num_updates must be a tensor; got int 3"):
        learner.load_state_dict({**before, "num_updates": 3})
    assert_same(before, learner.state_dict())
