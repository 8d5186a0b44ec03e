"""The learner of R2D2: what it computes from windows, and how it steps."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from ezgreedy.agents.r2d2 import returns
from ezgreedy.agents.r2d2.learner import SequenceLearner, initial_priorities
from ezgreedy.agents.r2d2.learner_settings import (
    ReturnSettings,
)
from ezgreedy.agents.r2d2.network import State
from support.tensors import assert_same
from support.windows import (
    NETWORK,
    RETURNS,
    SETTINGS,
    VECTORS,
    Play,
    make_learner,
    random_batch,
    rubbish,
)


def make_apart(**changes):
    """A learner whose target network is another."""
    learner = make_learner(**changes)
    learner.target.load_state_dict(make_learner(**changes, seed=1).online.state_dict())
    return learner


def gradients(learner, batch):
    """Of the loss of a batch, before they are clipped."""
    windows = learner.windows(batch)
    losses = learner.losses(windows, learner.errors(windows))
    learner.online.zero_grad()
    (windows.weights * losses).mean().backward()
    return {name: p.grad.clone() for name, p in learner.online.named_parameters()}


# Windows and memories.


@pytest.mark.parametrize(("start", "length"), [(0, 5), (1, 5), (2, 4), (3, 5), (9, 1), (7, 5)])
def test_a_fresh_window_reproduces_the_actor_s_values(start, length):
    learner = make_learner()
    play = Play(learner, num_steps=14, lanes=6)
    batch = play.window(start, length, learner.settings)
    with torch.no_grad():
        q = learner._unroll(learner.online, learner.windows(batch)).squeeze(2)
    torch.testing.assert_close(q, play.values(start, length), rtol=0.0, atol=1e-6)


def test_a_fresh_window_taken_step_by_step_reproduces_them_to_the_last_bit():
    learner = make_learner()
    play = Play(learner, num_steps=14, lanes=6)
    windows = learner.windows(play.window(7, 5, learner.settings))
    state, q = windows.state, []
    for frames, actions, rewards in zip(*windows[:3], strict=True):
        with torch.no_grad():
            values, state = learner.online.step(frames, actions, rewards, state)
        q.append(values)
    assert torch.equal(torch.stack(q[3:]), play.values(7, 5))


@pytest.mark.parametrize("state_lag", [1, 3])
def test_a_state_of_the_wrong_moment_would_be_noticed(state_lag):
    learner = make_learner()
    play = Play(learner, num_steps=14, lanes=6)
    batch = play.window(7, 5, learner.settings, state_lag=state_lag)
    with torch.no_grad():
        q = learner._unroll(learner.online, learner.windows(batch)).squeeze(2)
    assert (q[0] - play.values(7, 5)[0]).abs().max() > 1e-4


def after_prefix(network, learner, batch):
    """States after each row's prefix, one row and one step at a time."""
    windows, states = learner.windows(batch), []
    for row, prefix in enumerate(batch.prefix_lengths.tolist()):
        state = State(*(part[row : row + 1] for part in windows.state))
        for t in range(learner.settings.burn_in - prefix, learner.settings.burn_in):
            inputs = (part[t, row : row + 1] for part in windows[:3])
            with torch.no_grad():
                _, state = network.step(*inputs, state)
        states.append(state)
    return State(*(torch.cat(parts) for parts in zip(*states, strict=True)))


def without_prefix(learner, batch, state):
    """The same windows from given states, for a learner without burn-in."""
    first = learner.settings.burn_in
    rows = np.arange(len(batch.actions))
    empty = batch.prefix_lengths == 0
    return batch._replace(
        observations=batch.observations[:, first:],
        previous_action=np.where(empty, batch.previous_action, batch.actions[rows, first - 1]),
        previous_reward=np.where(empty, batch.previous_reward, batch.rewards[rows, first - 1]),
        state_h=state.h.numpy(),
        state_c=state.c.numpy(),
        prefix_lengths=np.zeros_like(batch.prefix_lengths),
        **{
            name: getattr(batch, name)[:, first:]
            for name in ("actions", "rewards", "masks", "behaviour_probabilities")
        },
    )


def test_no_gradient_flows_through_the_prefix():
    # Were it to, windows would have other gradients than windows without a prefix that start from
    # the very same states.
    learner, cold, batch = make_learner(), make_learner(burn_in=0), random_batch()
    state = after_prefix(learner.online, learner, batch)
    ours = gradients(learner, batch)
    theirs = gradients(cold, without_prefix(learner, batch, state))
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-4, atol=1e-6)
    # And the prefix matters to them.
    others = gradients(cold, without_prefix(learner, batch, learner.windows(batch).state))
    assert not torch.allclose(ours["memory.weight_hh"], others["memory.weight_hh"], atol=1e-4)


def expected_errors(learner, batch, target_warmer):
    """δ when states of the target network come from another network's pass over the prefix."""
    windows, burn_in = learner.windows(batch), learner.settings.burn_in
    inputs = [part[burn_in:] for part in windows[:3]]
    with torch.no_grad():
        q = learner.online(*inputs, after_prefix(learner.online, learner, batch))[0]
        target_q = learner.target(*inputs, after_prefix(target_warmer, learner, batch))[0]
    q, target_q = q.unsqueeze(2), target_q.unsqueeze(2)
    targets = returns.targets(windows.steps, q, target_q, learner.return_settings)
    return returns.td_errors(windows.steps, q, targets)


def test_each_network_warms_up_with_its_own_parameters():
    learner, batch = make_apart(), random_batch()
    errors = learner.errors(learner.windows(batch)).detach()
    own = expected_errors(learner, batch, learner.target)
    torch.testing.assert_close(errors, own, rtol=0.0, atol=1e-5)
    wrong = expected_errors(learner, batch, learner.online)
    assert (errors - wrong).abs().max() > 1e-3


def test_q_values_are_the_mean_greedy_values_of_the_trained_steps():
    learner, batch = make_learner(), random_batch()
    windows, burn_in = learner.windows(batch), learner.settings.burn_in
    inputs = [part[burn_in:] for part in windows[:3]]
    with torch.no_grad():
        rescaled, _ = learner.online(*inputs, after_prefix(learner.online, learner, batch))
    epsilon, values = learner.return_settings.rescaling, []
    for row, length in enumerate(batch.lengths.tolist()):
        for x in rescaled[:length, row].amax(dim=-1).tolist():
            # The textbook form of the inverse.
            root = math.sqrt(1.0 + 4.0 * epsilon * (abs(x) + 1.0 + epsilon))
            values.append(math.copysign(((root - 1.0) / (2.0 * epsilon)) ** 2 - 1.0, x))
    assert learner.update(batch).q_values == pytest.approx(np.mean(values), rel=1e-3)


@pytest.mark.parametrize("network", [NETWORK, VECTORS], ids=["frames", "vectors"])
@pytest.mark.parametrize("form", ["peng", "retrace"])
def test_what_stands_in_padded_places_never_matters(network, form):
    batch = random_batch(shape=network.input_shape)
    assert not batch.is_used(3).all()
    assert batch.terminated.any()
    returns = replace(RETURNS, form=form)
    learner, other = make_learner(network, returns), make_learner(network, returns)
    ours, theirs = learner.update(batch), other.update(rubbish(batch, 3))
    assert (ours.loss, ours.gradient_norm) == (theirs.loss, theirs.gradient_norm)
    assert ours.q_values == theirs.q_values
    np.testing.assert_array_equal(ours.priorities, theirs.priorities)
    assert_same(learner.state_dict(), other.state_dict())


def test_short_windows_count_as_much_as_if_none_were_padded():
    batch = random_batch(lengths=np.full(6, 2))
    cut = batch._replace(
        observations=batch.observations[:, :6],
        **{
            name: getattr(batch, name)[:, :5]
            for name in ("actions", "rewards", "masks", "behaviour_probabilities")
        },
    )
    ours, theirs = make_learner().update(batch), make_learner(length=2).update(cut)
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-6)
    np.testing.assert_allclose(ours.priorities, theirs.priorities, rtol=1e-6)


def test_networks_see_the_rewards_that_actors_saw():
    learner, batch = make_learner(), random_batch()
    q = learner._unroll(learner.online, learner.windows(batch))
    richer = batch._replace(rewards=batch.rewards + 1.0, seen_rewards=batch.rewards)
    assert torch.equal(q, learner._unroll(learner.online, learner.windows(richer)))
    confused = batch._replace(rewards=batch.rewards + 1.0)
    assert not torch.equal(q, learner._unroll(learner.online, learner.windows(confused)))
    assert learner.update(richer).loss != make_learner().update(batch).loss


# Losses and priorities.


def silent(learner):
    """All values are 0, whatever is seen."""
    with torch.no_grad():
        for network in (learner.online, learner.target):
            for parameter in network.parameters():
                parameter.zero_()
    return learner


def tiny_batch(rewards, lengths, terminated, weights):
    batch = random_batch(size=2, burn_in=0, length=3)
    earned = np.zeros((2, 3), dtype=np.float32)
    for row, values in enumerate(rewards):
        earned[row, : len(values)] = values
    return batch._replace(
        rewards=earned,
        lengths=np.array(lengths),
        terminated=np.array(terminated),
        weights=np.array(weights),
    )


def test_the_loss_of_a_tiny_batch_is_as_computed_by_hand():
    # All values are 0, λ = 1 and γ = ½. With h(x) = √(x + 1) − 1 + x/1000, h(8) = 2.008 and
    # h(15) = 3.015.
    returns = ReturnSettings(decay=1.0, discount=0.5, target_epsilon=0.0)
    learner = silent(
        SequenceLearner(
            NETWORK, replace(SETTINGS, batch_size=2, burn_in=0, length=3), returns, seed=0
        )
    )
    batch = tiny_batch([[4.0, 8.0, 0.0], [0.5, 15.0]], [3, 2], [False, True], [1.0, 0.25])
    # Row 0: G = 4 + ½·8 = 8, 8, 0. Row 1: G = 0.5 + ½·15 = 8, 15.
    first = 0.5 * (2.008**2 + 2.008**2 + 0.0)
    second = 0.5 * (2.008**2 + 3.015**2)
    update = learner.update(batch)
    assert update.loss == pytest.approx((1.0 * first + 0.25 * second) / 2.0, rel=1e-6)
    expected = [0.9 * 2.008 + 0.1 * 2.008 * 2 / 3, 0.9 * 3.015 + 0.1 * (2.008 + 3.015) / 2]
    np.testing.assert_allclose(update.priorities, expected, rtol=1e-6)


def test_huber_s_loss_grows_linearly():
    returns = ReturnSettings(decay=1.0, discount=0.5, target_epsilon=0.0)
    settings = replace(SETTINGS, batch_size=2, burn_in=0, length=3, loss="huber")
    learner = silent(SequenceLearner(NETWORK, settings, returns, seed=0))
    batch = tiny_batch([[8.0], [0.44]], [1, 1], [True, True], [1.0, 1.0])
    small = 0.2 + 0.00044
    assert learner.update(batch).loss == pytest.approx((1.508 + 0.5 * small**2) / 2.0, rel=1e-5)


def test_losses_are_sums_over_time_and_means_over_windows():
    learner, batch = make_apart(), random_batch()
    windows = learner.windows(batch)
    errors = learner.errors(windows).detach().squeeze(2).double().numpy()
    totals = []
    for row, length in enumerate(batch.lengths):
        totals.append(batch.weights[row] * sum(0.5 * d * d for d in errors[:length, row]))
    assert learner.update(batch).loss == pytest.approx(np.mean(totals), rel=1e-5)


def test_priorities_are_sizes_of_errors_and_independent_of_weights():
    learner, batch = make_apart(), random_batch()
    errors = learner.errors(learner.windows(batch)).detach().squeeze(2).double().numpy()
    expected = [
        0.9 * np.abs(errors[:n, row]).max() + 0.1 * np.abs(errors[:n, row]).mean()
        for row, n in enumerate(batch.lengths)
    ]
    assert (errors < 0).any()
    assert (errors > 0).any()
    lighter = make_apart().update(batch._replace(weights=batch.weights / 10.0))
    update = learner.update(batch)
    np.testing.assert_allclose(update.priorities, expected, rtol=1e-5)
    np.testing.assert_array_equal(update.priorities, lighter.priorities)
    assert lighter.loss == pytest.approx(update.loss / 10.0)


@pytest.mark.parametrize("form", ["peng", "harutyunyan", "retrace", "n-step"])
@pytest.mark.parametrize(("length", "terminated"), [(5, False), (5, True), (3, True), (1, False)])
def test_an_actor_s_priorities_are_those_the_learner_would_give(form, length, terminated):
    learner = make_learner(returns=replace(RETURNS, form=form))
    play = Play(learner, num_steps=14, lanes=6)
    batch = play.window(7, length, learner.settings, terminated)
    q = np.full((6, 6, 3), np.float32(7.0))
    q[:, : length + 1] = play.values(7, length).transpose(0, 1)
    received = initial_priorities(
        q,
        batch.actions[:, 3:],
        batch.rewards[:, 3:],
        batch.lengths,
        batch.terminated,
        settings=learner.settings,
        return_settings=learner.return_settings,
        behaviour=batch.behaviour_probabilities[:, 3:],
    )
    np.testing.assert_allclose(received, learner.update(batch).priorities, rtol=1e-5, atol=1e-6)


def test_retrace_asks_actors_for_their_probabilities():
    with pytest.raises(ValueError, match=r"^behaviour must be given for retrace"):
        initial_priorities(
            np.zeros((1, 2, 3), np.float32),
            np.zeros((1, 1), np.int64),
            np.zeros((1, 1), np.float32),
            np.ones(1, np.int64),
            np.zeros(1, bool),
            settings=SETTINGS,
            return_settings=replace(RETURNS, form="retrace"),
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"form": "harutyunyan"},
        {"form": "retrace"},
        {"form": "n-step"},
        {"decay": 0.2},
        {"discount": 0.5},
        {"target_epsilon": 0.5},
        {"rescaling": 0.1},
    ],
    ids=str,
)
def test_every_setting_of_returns_matters(changes):
    ours = make_apart(returns=replace(RETURNS, **changes)).update(random_batch())
    assert ours.loss != make_apart().update(random_batch()).loss
    if "form" in changes and changes["form"] == "n-step":
        fewer = replace(RETURNS, num_steps=2, **changes)
        assert make_apart(returns=fewer).update(random_batch()).loss != ours.loss


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"learning_rate": 1e-2}, "parameters"),
        ({"adam_epsilon": 1.0}, "parameters"),
        ({"largest_gradient_norm": 1e-4}, "parameters"),
        ({"loss": "huber"}, "loss"),
        ({"max_share": 0.1}, "priorities"),
        ({"least_priority": 100.0}, "priorities"),
    ],
    ids=str,
)
def test_every_setting_of_learning_matters(changes, name):
    observables = []
    for learner in (make_learner(), make_learner(**changes)):
        update = learner.update(random_batch())
        parameters = learner.online.streams["value"][2].bias.tolist()
        observables.append(
            {
                "loss": update.loss,
                "priorities": update.priorities.tolist(),
                "parameters": parameters,
            }[name]
        )
    assert observables[0] != observables[1]


def test_one_fixed_batch_is_learned_by_heart():
    learner = make_learner(updates_per_target_sync=10_000, learning_rate=5e-3)
    batch = random_batch(lengths=np.full(6, 5))
    first = learner.update(batch).loss
    for _ in range(200):
        last = learner.update(batch).loss
    assert last < 0.05 * first


# How it steps.


def test_the_target_network_is_copied_every_so_many_updates():
    learner = make_learner()
    assert_same(learner.online.state_dict(), learner.target.state_dict())
    for update in range(1, 8):
        before = learner.state_dict()["target"]
        learner.update(random_batch(update))
        is_due = update % 3 == 0
        bias = learner.target.state_dict()["features.bias"]
        assert torch.equal(bias, learner.online.features.bias) == is_due
        assert torch.equal(bias, before["features.bias"]) != is_due
    assert learner.num_updates == 7


@pytest.mark.parametrize("largest", [1e-3, 1e3])
def test_the_first_step_is_adam_s_on_gradients_of_at_most_the_largest_norm(largest):
    learner, batch = make_learner(largest_gradient_norm=largest, adam_epsilon=0.05), random_batch()
    before = learner.state_dict()["online"]
    found = gradients(make_learner(), batch)
    norm = math.sqrt(sum(float(g.square().sum()) for g in found.values()))
    update = learner.update(batch)
    assert update.gradient_norm == pytest.approx(norm, rel=1e-4)
    for name, parameter in learner.online.named_parameters():
        g = found[name] * min(1.0, largest / norm)
        # Both moments are the gradient's own after bias correction.
        expected = before[name] - 1e-3 * g / (g.abs() + 0.05)
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-5, atol=1e-7)


def test_actors_follow_every_update_and_can_be_written_to():
    learner = make_learner()
    for index in range(4):
        learner.update(random_batch(index))
        frames = random_batch(index).observations[:, 0]
        actions, rewards = np.full(6, -1), np.zeros(6, dtype=np.float32)
        state = learner.online.initial_state(6)
        q, following = learner.values(frames, actions, rewards, state)
        with torch.no_grad():
            inputs = (torch.as_tensor(array) for array in (frames, actions, rewards))
            expected = learner.online.step(*inputs, state)[0]
        np.testing.assert_array_equal(q, expected)
        following.h[0] = 0.0


def test_batches_may_be_read_only():
    batch = random_batch()
    for array in batch:
        if array is not None:
            array.flags.writeable = False
    assert make_learner().update(batch).loss == make_learner().update(random_batch()).loss


def test_nothing_comes_from_the_global_generator():
    before = torch.get_rng_state()
    make_learner().update(random_batch())
    assert torch.equal(before, torch.get_rng_state())
