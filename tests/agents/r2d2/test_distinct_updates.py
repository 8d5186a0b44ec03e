"""Updates and actions of R2D2 by distinct fields: those of torch's own layers, on real screens."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ezgreedy.agents.r2d2.learner import SequenceLearner
from ezgreedy.agents.r2d2.learner_settings import RecurrentNetworkSettings
from ezgreedy.agents.r2d2.network import State
from ezgreedy.games.atari.palette import colours
from ezgreedy.learning import torso as torso_module
from support.tensors import assert_same
from support.windows import SETTINGS, random_batch, rubbish

SMALL = {"feature_size": 12, "memory_size": 8, "hidden_size": 10}
NETWORK = RecurrentNetworkSettings(num_actions=3, has_codes=True, **SMALL)
KINDS = {"plain": NETWORK, "bootstrapped": replace(NETWORK, num_heads=3)}
STEPS = SETTINGS.burn_in + SETTINGS.length
NUM_CODES = len(colours())


def make(network=NETWORK, seed=0):
    return SequenceLearner(network, replace(SETTINGS, batch_size=3), seed=seed)


def make_plain(network=NETWORK, seed=0):
    """A learner whose convolutions are torch's."""
    learner = make(network, seed)
    for part in (learner.online, learner.target, learner._actor):
        part.torso.largest_share = 0.0
    return learner


def windows_of(screens, network=NETWORK, seed=0):
    """A batch of real windows with prefixes of 3, 0 and 1 steps, some of them short."""
    starts = np.random.default_rng(seed).integers(0, len(screens) - STEPS, 3)
    observations = np.stack([screens[start : start + STEPS + 1] for start in starts])
    return random_batch(seed, 3, observations=observations, state=network.state_shape)


def noise_batch():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, NUM_CODES, (3, STEPS + 1, 1, 210, 160)).astype(np.uint16)
    whole = {"prefix_lengths": np.full(3, 3), "lengths": np.full(3, 5)}
    return random_batch(0, 3, observations=noise, **whole)


def gradients(learner, windows):
    losses = learner.losses(windows, learner.errors(windows))
    learner.online.zero_grad()
    (windows.weights * losses).mean().backward()
    return {name: p.grad.clone() for name, p in learner.online.named_parameters()}


def doubled(learner, batch):
    """The learner and its windows with twice the usual digits."""
    for network in (learner.online, learner.target):
        network.double()
        network.torso.seeing.colours = torch.from_numpy(colours().astype(np.float64) / 255.0)
    windows = learner.windows(batch)
    steps = windows.steps._replace(
        rewards=windows.steps.rewards.double(), behaviour=windows.steps.behaviour.double()
    )
    return windows._replace(
        rewards=windows.rewards.double(),
        state=State(*(part.double() for part in windows.state)),
        steps=steps,
        weights=windows.weights.double(),
    )


@pytest.mark.parametrize(
    ("game", "kind"),
    [
        ("Breakout", "plain"),
        ("Freeway", "bootstrapped"),
        ("MsPacman", "plain"),
        ("UpNDown", "bootstrapped"),
    ],
)
def test_gradients_are_those_of_torch_s_convolutions(game, kind, screens_of):
    """In double precision: in single, a unit within rounding of 0 may be on here and off there."""
    network, found = KINDS[kind], {}
    batch = windows_of(screens_of(game), network)
    for learner in (make(network), make_plain(network)):
        learner.target.load_state_dict(make(network, seed=1).online.state_dict())
        windows = doubled(learner, batch)
        found[windows.fields is not None] = gradients(learner, windows)
    for name, gradient in found[True].items():
        scale = found[False][name].abs().max()
        assert scale > 0.0, name
        assert (gradient - found[False][name]).abs().max() <= 1e-11 * scale, name


@pytest.mark.parametrize("kind", KINDS)
def test_updates_are_those_of_torch_s_convolutions(kind, screens_of):
    """All of it in single precision: a network follows the other for several updates."""
    ours, theirs = make(KINDS[kind]), make_plain(KINDS[kind])
    screens = np.concatenate([screens_of(game)[:12] for game in ("Freeway", "Hero", "UpNDown")])
    for number in range(4):  # the target network follows the online one after the third
        batch = windows_of(screens, KINDS[kind], seed=number)
        update, expected = ours.update(batch), theirs.update(batch)
        assert update.loss == pytest.approx(expected.loss, rel=1e-4)
        assert update.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-3)
        np.testing.assert_allclose(update.priorities, expected.priorities, rtol=1e-3)
    for (name, own), other in zip(
        ours.online.named_parameters(), theirs.online.parameters(), strict=True
    ):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=4e-6, msg=name)


def test_actions_are_those_of_torch_s_convolutions(screens_of):
    ours, theirs = make(), make_plain()
    screens = screens_of("MontezumaRevenge")[:16]
    actions, rewards = np.resize([-1, 0, 1, 2], 16), np.linspace(-1.0, 1.0, 16, dtype=np.float32)
    state = ours.online.initial_state(16)
    q, following = ours.values(screens, actions, rewards, state)
    expected, other = theirs.values(screens, actions, rewards, state)
    assert ours.online.torso.fields(torch.from_numpy(screens.view(np.int16))) is not None
    np.testing.assert_allclose(q, expected, rtol=0.0, atol=1e-6)
    torch.testing.assert_close(following.c, other.c, rtol=0.0, atol=1e-6)


def test_a_restored_learner_continues_to_the_last_bit(screens_of):
    learner, restored = make(), make(seed=7)
    screens = screens_of("MsPacman")
    learner.update(windows_of(screens))
    restored.load_state_dict(learner.state_dict())
    for number in range(1, 3):
        batch = windows_of(screens, seed=number)
        update, same = learner.update(batch), restored.update(batch)
        assert (update.loss, update.gradient_norm) == (same.loss, same.gradient_norm)
        np.testing.assert_array_equal(update.priorities, same.priorities)
    assert_same(learner.state_dict(), restored.state_dict())


def test_observations_that_do_not_matter_are_never_looked_at(screens_of):
    batch = windows_of(screens_of("Pong"))
    garbled = rubbish(batch, SETTINGS.burn_in)  # with codes of no colour
    assert garbled.observations.max() >= NUM_CODES
    learner, other = make(), make()
    update, same = learner.update(batch), other.update(garbled)
    assert update.loss == same.loss
    assert_same(learner.state_dict(), other.state_dict())


def test_noise_is_learned_from_by_torch_s_convolutions():
    ours, theirs = make(), make_plain()
    assert ours.windows(noise_batch()).fields is None
    assert ours.update(noise_batch()).loss == theirs.update(noise_batch()).loss
    assert_same(ours.state_dict(), theirs.state_dict())


@pytest.mark.parametrize("frames", ["screens", "noise"])
def test_the_fields_of_a_batch_are_looked_for_once(frames, monkeypatch, screens_of):
    """By both networks together, over prefixes and trained steps, even in vain."""
    calls, find_fields = [], torso_module.find_fields

    def counted(*arguments, **options):
        calls.append(len(options["rows"]))
        return find_fields(*arguments, **options)

    monkeypatch.setattr(torso_module, "find_fields", counted)
    batch = windows_of(screens_of("Pong")) if frames == "screens" else noise_batch()
    make().update(batch)
    assert calls == [3 * (STEPS + 1)]
