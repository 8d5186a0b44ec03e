"""Bootstrapped heads: who learns what, how they act together, and one head as R2D2."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ezgreedy.agents.r2d2.bootstrap import draw_masks, ensemble_policy, head_masks
from ezgreedy.agents.r2d2.learner import SequenceLearner, initial_priorities
from ezgreedy.agents.r2d2.learner_settings import (
    ReturnSettings,
)
from ezgreedy.agents.r2d2.network import State
from support.statistics import assert_follows
from support.windows import NETWORK, SETTINGS, Play, random_batch, rubbish

HEADED = replace(NETWORK, num_heads=3)
EVERY_HEAD = np.full((6, 8), 255, dtype=np.uint8)


def make(network=HEADED, seed=0, **changes):
    return SequenceLearner(network, replace(SETTINGS, **changes), seed=seed)


def headed_batch(seed=0, **changes):
    return random_batch(seed, state=(3, 8), **changes)


def single(learner, head):
    """A learner without heads, of the parameters of one head in both networks."""
    plain = make(NETWORK)
    for name in ("online", "target"):
        state = getattr(learner, name).state_dict()
        own = {k: v if k.startswith("torso") else v[head : head + 1] for k, v in state.items()}
        getattr(plain, name).load_state_dict(own)
    return plain


def apart(**changes):
    """A learner whose target network is another."""
    learner = make(**changes)
    learner.target.load_state_dict(make(**changes, seed=1).online.state_dict())
    return learner


def test_one_head_that_learns_from_everything_is_r2d2_to_the_last_bit():
    plain, headed = make(NETWORK), make(replace(NETWORK, num_heads=1))
    for seed in range(5):
        batch = random_batch(seed, masks=EVERY_HEAD)
        with_axis = batch._replace(state_h=batch.state_h[:, None], state_c=batch.state_c[:, None])
        ours, theirs = headed.update(with_axis), plain.update(batch)
        assert (ours.loss, ours.gradient_norm) == (theirs.loss, theirs.gradient_norm)
        np.testing.assert_array_equal(ours.priorities, theirs.priorities)
    for name, parameter in plain.online.named_parameters():
        assert torch.equal(parameter, headed.online.state_dict()[name])


def test_without_heads_masks_are_not_looked_at():
    updates = [make(NETWORK).update(random_batch(masks=m)) for m in (EVERY_HEAD, 0 * EVERY_HEAD)]
    assert updates[0].loss == updates[1].loss


def test_heads_learn_as_if_alone_but_for_what_they_share():
    learner, batch = apart(), headed_batch(masks=EVERY_HEAD)
    alone = []
    for head in range(3):
        own = batch._replace(state_h=batch.state_h[:, head], state_c=batch.state_c[:, head])
        alone.append(single(learner, head).update(own))
    update = learner.update(batch)
    assert update.loss == pytest.approx(sum(each.loss for each in alone), rel=1e-5)
    mean = np.mean([each.priorities for each in alone], axis=0)
    np.testing.assert_allclose(update.priorities, mean, rtol=1e-5)


def test_masks_choose_steps_of_the_loss_and_nothing_else():
    learner, batch = apart(), headed_batch()
    windows = learner.windows(batch)
    errors = learner.errors(windows).detach().double().numpy()
    total = 0.0
    for row, length in enumerate(batch.lengths):
        for t in range(length):
            for head in range(3):
                if batch.masks[row, 3 + t] >> head & 1:
                    total += batch.weights[row] * 0.5 * errors[t, row, head] ** 2
    masked, full = learner.update(batch), apart().update(batch._replace(masks=EVERY_HEAD))
    assert masked.loss == pytest.approx(total / 6, rel=1e-5)
    # Returns pass through masked steps: errors, and so priorities, stay the same.
    np.testing.assert_array_equal(masked.priorities, full.priorities)
    assert masked.loss < full.loss


def test_a_head_that_learns_from_nothing_stays_as_it_is():
    learner = make()
    before = learner.state_dict()["online"]
    learner.update(headed_batch(masks=np.full((6, 8), 0b101, dtype=np.uint8)))
    for name, parameter in learner.online.named_parameters():
        if not name.startswith("torso"):
            assert torch.equal(parameter[1], before[name][1]), name
            assert not torch.equal(parameter[0], before[name][0]), name
            assert not torch.equal(parameter[2], before[name][2]), name


@pytest.mark.parametrize("shares_memory", [False, True])
def test_all_memories_of_a_fresh_window_reproduce_the_actor_s_values(shares_memory):
    learner = make(replace(HEADED, shares_memory=shares_memory))
    play = Play(learner, num_steps=12, lanes=6)
    batch = play.window(5, 5, learner.settings)
    with torch.no_grad():
        q = learner._unroll(learner.online, learner.windows(batch))
    assert q.shape == (6, 6, 3, 3)
    torch.testing.assert_close(q, play.values(5, 5), rtol=0.0, atol=1e-6)
    received = initial_priorities(
        play.values(5, 5).transpose(0, 1).numpy(),
        batch.actions[:, 3:],
        batch.rewards[:, 3:],
        batch.lengths,
        batch.terminated,
        settings=learner.settings,
        return_settings=ReturnSettings(),
    )
    np.testing.assert_allclose(received, learner.update(batch).priorities, rtol=1e-4)


def test_padded_places_never_matter_to_any_head():
    learner, other, batch = make(), make(), headed_batch()
    ours, theirs = learner.update(batch), other.update(rubbish(batch, 3))
    assert (ours.loss, ours.gradient_norm) == (theirs.loss, theirs.gradient_norm)


def test_a_restored_bootstrapped_learner_continues_to_the_last_bit():
    learner, restored = make(), make(seed=4)
    learner.update(headed_batch())
    restored.load_state_dict(learner.state_dict())
    ours, theirs = learner.update(headed_batch(1)), restored.update(headed_batch(1))
    assert (ours.loss, ours.gradient_norm) == (theirs.loss, theirs.gradient_norm)


def test_heads_start_apart():
    learner = make()
    state = learner.online.initial_state(6)
    frames = headed_batch().observations[:, 0]
    q, following = learner.values(frames, np.full(6, -1), np.zeros(6, np.float32), state)
    assert q.shape == (6, 3, 3)
    assert isinstance(following, State)
    assert len(np.unique(q[0, :, 0])) == 3


def test_a_fixed_batch_is_learned_by_every_head():
    learner = make(updates_per_target_sync=10_000, learning_rate=5e-3)
    batch = headed_batch(masks=EVERY_HEAD)
    windows = learner.windows(batch)
    first = learner.errors(windows).detach().square().sum(dim=(0, 1))
    for _ in range(120):
        learner.update(batch)
    last = learner.errors(windows).detach().square().sum(dim=(0, 1))
    assert (last < 0.1 * first).all()


def test_masks_are_bits():
    masks = np.array([[0b000, 0b101], [0b110, 0b11111010]], dtype=np.uint8)
    expected = [[[0, 0, 0], [1, 0, 1]], [[0, 1, 1], [0, 1, 0]]]
    np.testing.assert_array_equal(head_masks(masks, 3), np.array(expected, dtype=bool))


def test_masks_hold_fair_and_independent_coins():
    masks = draw_masks((50, 400), 3, rng=np.random.default_rng(0))
    assert masks.shape == (50, 400)
    assert masks.dtype == np.uint8
    unfair = np.array([0.5**3] * 8) + 0.02 * np.array([1, -1] * 4)
    tied = np.array([0.25, 0.0, 0.25, 0.0, 0.0, 0.25, 0.0, 0.25])
    assert_follows(
        masks.ravel().astype(np.int64), [0.5**3] * 8, rejects={"unfair": unfair, "tied": tied}
    )
    assert (draw_masks((9,), 8, 1.0, rng=np.random.default_rng(0)) == 255).all()
    assert (draw_masks((9,), 8, 0.0, rng=np.random.default_rng(0)) == 0).all()


def test_the_ensemble_mixes_policies_and_not_values():
    # Two heads slightly prefer action 0, one is all for action 2: a mean of values would say 2.
    q = np.array([[[1.0, 0.9, 0.0], [1.0, 0.9, 0.0], [0.0, 0.0, 9.0]]])
    np.testing.assert_allclose(ensemble_policy(q, 0.0), [[2 / 3, 0.0, 1 / 3]])
    expected = 0.7 * np.array([[2 / 3, 0.0, 1 / 3]]) + 0.1
    np.testing.assert_allclose(ensemble_policy(q, 0.3), expected)
    np.testing.assert_allclose(ensemble_policy(q[:, :1], 0.3), [[0.8, 0.1, 0.1]])
    ties = np.zeros((4, 2, 3))
    np.testing.assert_array_equal(ensemble_policy(ties, 0.0), [[1.0, 0.0, 0.0]] * 4)


def test_arguments_of_masks_and_policies_are_checked():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"^num_heads must be at most 8"):
        draw_masks((2,), 9, rng=rng)
    with pytest.raises(ValueError, match=r"^probability must lie in \[0, 1\]"):
        draw_masks((2,), 2, 1.5, rng=rng)
    with pytest.raises(ValueError, match=r"^epsilon must lie in \[0, 1\]"):
        ensemble_policy(np.zeros((1, 2, 3)), -0.1)
