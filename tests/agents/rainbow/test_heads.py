"""The heads written out: the numbers of the network and autograd, on real frames too."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ezgreedy.agents.rainbow import noise as noise_module
from ezgreedy.agents.rainbow.heads import Heads, loss_gradient, target_distribution
from ezgreedy.agents.rainbow.learner import Learner
from ezgreedy.agents.rainbow.learner_settings import LearnerSettings, NetworkSettings
from ezgreedy.agents.rainbow.network import RainbowNetwork
from ezgreedy.agents.rainbow.targets import cross_entropy, double_q_target, projection
from ezgreedy.learning.settings import DER_TORSO
from ezgreedy.replay.transition_replay import Batch

SMALL = NetworkSettings(5, torso=DER_TORSO, hidden_size=24, num_atoms=11)
KINDS = {
    "noisy": SMALL,
    "plain": replace(SMALL, sigma0=None),
    "one hidden layer": replace(SMALL, shares_hidden=True),
}


def network_of(settings, seed=0):
    return RainbowNetwork(settings, torch.Generator().manual_seed(seed))


def features_of(network, batch=9):
    return torch.rand(batch, network.torso.num_features, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_gives_the_logits_of_the_network_under_the_same_noise(kind):
    ours, theirs = network_of(KINDS[kind]), network_of(KINDS[kind])
    features, heads = features_of(ours), Heads(ours)
    for _ in range(3):
        with torch.no_grad():
            expected = theirs.heads(features)
        (passed,) = heads.run(features)
        torch.testing.assert_close(passed.logits, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block_size", [2**18, 700])
def test_passes_together_are_those_one_after_the_other(kind, block_size, monkeypatch):
    monkeypatch.setattr(noise_module, "_BLOCK_SIZE", block_size)
    together, apart = Heads(network_of(KINDS[kind])), Heads(network_of(KINDS[kind]))
    batches = features_of(together._network), features_of(together._network, batch=4)
    expected = [apart.run(features)[0] for features in batches]
    for found, other in zip(together.run(*batches), expected, strict=True):
        assert torch.equal(found.logits, other.logits)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block_size", [2**18, 700])
def test_gradients_are_those_of_autograd(kind, block_size, monkeypatch):
    monkeypatch.setattr(noise_module, "_BLOCK_SIZE", block_size)
    ours, theirs = network_of(KINDS[kind]), network_of(KINDS[kind])
    features, heads = features_of(ours), Heads(ours)
    rng = np.random.default_rng(2)
    actions = rng.integers(0, 5, 9)
    weights = rng.uniform(0.2, 1.0, 9).astype(np.float32)
    target = rng.dirichlet(np.ones(11), 9).astype(np.float32)

    (passed,) = heads.run(features)
    losses, of_outputs = loss_gradient(passed.logits, actions, target, weights)
    of_features, gradients = heads.gradients(passed, of_outputs)

    leaf = features.clone().requires_grad_()
    expected = cross_entropy(theirs.heads(leaf), torch.as_tensor(actions), torch.as_tensor(target))
    (expected * torch.as_tensor(weights)).mean().backward()
    np.testing.assert_allclose(losses, expected.detach().numpy(), rtol=1e-5)
    torch.testing.assert_close(of_features, leaf.grad, rtol=1e-4, atol=1e-7)
    by_parameter = {gradient.parameter: gradient.values() for gradient in gradients}
    names = dict(theirs.named_parameters())
    heads_names = [name for name in names if name.startswith("streams")]
    assert len(by_parameter) == len(heads_names)
    for name, parameter in ours.named_parameters():
        if name in heads_names:
            torch.testing.assert_close(
                by_parameter[parameter], names[name].grad, rtol=1e-4, atol=1e-7, msg=name
            )


def test_targets_are_the_projected_distributions_of_the_chosen_actions():
    generator, rng = torch.Generator().manual_seed(0), np.random.default_rng(0)
    logits_t = torch.randn(40, 5, 11, generator=generator)
    selector_t = torch.randn(40, 5, 11, generator=generator)
    atoms = torch.linspace(-10.0, 10.0, 11)
    returns = rng.normal(0.0, 6.0, 40).astype(np.float32)
    returns[:4] = (-40.0, 40.0, 10.0, -10.0)  # beyond the atoms, and on them
    discounts = np.where(rng.random(40) < 0.3, 0.0, 0.9).astype(np.float32)
    expected = double_q_target(
        torch.as_tensor(returns), torch.as_tensor(discounts), logits_t, selector_t, atoms
    )
    a_t = (selector_t.softmax(-1) @ atoms).argmax(-1)
    found = target_distribution(returns, discounts, logits_t, a_t, atoms)
    np.testing.assert_allclose(found, expected.numpy(), atol=2e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-5)
    # On an atom, all of the mass stays there.
    at_ends = projection(torch.ones(1, 1), torch.tensor([[10.0]]), atoms)
    assert at_ends[0, -1] == 1.0


def batches(frames, num_actions, size=32, seed=0):
    rng = np.random.default_rng(seed)
    while True:
        places = rng.integers(0, len(frames), (2, size))
        yield Batch(
            frames=frames[places],
            actions=rng.integers(0, num_actions, size),
            returns=rng.normal(0.0, 1.0, size).astype(np.float32),
            discounts=np.where(rng.random(size) < 0.2, 0.0, 0.8).astype(np.float32),
            weights=rng.uniform(0.2, 1.0, size),
            slots=np.arange(size),
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("period", [2, 1], ids=["target network", "none"])
def test_updates_are_those_of_autograd_and_torch_s_layers(kind, period, frames_of):
    """The whole of it: fields, torso, heads, clipping and Adam against the plain formulation."""
    settings = LearnerSettings(
        updates_per_target_sync=period, learning_rate=1e-4, largest_gradient_norm=0.1
    )
    ours, theirs = (Learner(KINDS[kind], settings, seed=4) for _ in range(2))
    for torso in (theirs.online.torso, theirs.target.torso):
        torso.largest_share = 0.0
    frames = np.concatenate([frames_of(game)[:8] for game in ("Freeway", "Hero", "UpNDown")])
    drawn = batches(frames, 5)
    for number in range(1, 4):
        batch = next(drawn)
        update = ours.update(batch)
        expected = theirs._differentiate(batch)
        theirs._optimizer.step()
        theirs._optimizer.zero_grad(set_to_none=True)
        theirs.num_updates += 1
        if number % period == 0:
            theirs._sync()
        np.testing.assert_allclose(update.losses, expected.losses, rtol=1e-4)
        assert update.loss == pytest.approx(expected.loss, rel=1e-5)
        assert update.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-4)
        assert update.q_values == pytest.approx(expected.q_values, rel=1e-4, abs=1e-6)
    for (name, own), other in zip(
        ours.online.named_parameters(), theirs.online.parameters(), strict=True
    ):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=2e-6, msg=name)
