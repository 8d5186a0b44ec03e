"""Networks: sizes, noise, the duelling combination, and where randomness comes from."""

import math

import numpy as np
import pytest
import torch

from ezgreedy.agents.rainbow import targets
from ezgreedy.agents.rainbow.learner_settings import NetworkSettings
from ezgreedy.agents.rainbow.network import NoisyLinear, RainbowNetwork
from ezgreedy.learning.settings import MINATAR_TORSO

SMALL = NetworkSettings(
    num_actions=3,
    input_shape=(4, 10, 10),
    torso=MINATAR_TORSO,
    hidden_size=16,
    num_atoms=11,
    largest_pixel=1.0,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def small(**changes):
    return RainbowNetwork(NetworkSettings(**{**vars(SMALL), **changes}), generator())


def states(batch=5, seed=1):
    return torch.randint(0, 2, (batch, 4, 10, 10), generator=generator(seed), dtype=torch.uint8)


def noisy_layers(network):
    return [layer for layer in network.modules() if isinstance(layer, NoisyLinear)]


def count(network):
    return sum(parameter.numel() for parameter in network.parameters())


CONVOLUTIONS = (32 * 4 * 64 + 32) + (64 * 32 * 16 + 64) + (64 * 64 * 9 + 64)
HIDDEN = 2 * (3136 * 512 + 512)
HEADS = 19 * 51 * 512


@pytest.mark.parametrize(
    ("sigma0", "expected", "millions"),
    [
        (0.1, CONVOLUTIONS + 2 * HIDDEN + 2 * HEADS + 19 * 51, 7.50),
        (None, CONVOLUTIONS + HIDDEN + HEADS + 19 * 51, 3.79),
    ],
    ids=["noisy", "plain"],
)
def test_the_atari_network_has_the_published_size(sigma0, expected, millions):
    network = RainbowNetwork(NetworkSettings(num_actions=18, sigma0=sigma0), generator())
    assert count(network) == expected
    assert round(expected / 1e6, 2) == millions
    with torch.no_grad():
        logits = network(torch.zeros(2, 4, 84, 84, dtype=torch.uint8))
    assert logits.shape == (2, 18, 51)
    assert network.atoms[1] - network.atoms[0] == pytest.approx(0.4)


def test_logits_combine_the_streams_atom_by_atom():
    network = small(sigma0=None)
    features = network.torso(states().float()).flatten(1)
    value = network.streams["value"](features)
    advantage = network.streams["advantage"](features).view(5, 3, 11)
    logits = network(states())
    for action in range(3):
        expected = value + advantage[:, action] - advantage.mean(1)
        torch.testing.assert_close(logits[:, action], expected)
    torch.testing.assert_close(logits.mean(1), value)


def test_inputs_are_divided_by_the_largest_pixel():
    grey, binary = small(sigma0=None, largest_pixel=255.0), small(sigma0=None)
    torch.testing.assert_close(grey(states() * 255), binary(states()))


@pytest.mark.parametrize("sigma0", [0.1, 0.5, 0.017])
def test_sigma_of_the_built_network_is_what_was_set(sigma0):
    layers = noisy_layers(small(sigma0=sigma0))
    assert len(layers) == 4
    for layer in layers:
        expected = sigma0 / math.sqrt(layer.weight_mean.shape[1])
        for sigma in (layer.weight_sigma, layer.bias_sigma):
            np.testing.assert_allclose(sigma.detach(), np.full(sigma.shape, expected), rtol=1e-6)
    assert noisy_layers(small(sigma0=None)) == []


def test_only_hidden_layers_have_a_mean_bias():
    biases = [layer.bias_mean is not None for layer in noisy_layers(small())]
    assert biases == [True, False, True, False]


@pytest.mark.parametrize("batch", [1, 6, 40])
def test_a_noisy_layer_is_the_sum_of_two_products(batch):
    layer, twin = NoisyLinear(7, 5, 0.5, generator(4)), NoisyLinear(7, 5, 0.5, generator(4))
    inputs = torch.randn(batch, 7, generator=generator(9))
    noise_in, noise_out = twin.draw_noise().split((7, 5))
    mean = inputs @ layer.weight_mean.T + layer.bias_mean
    noise = ((inputs * noise_in) @ layer.weight_sigma.T + layer.bias_sigma) * noise_out
    torch.testing.assert_close(layer(inputs), mean + noise)


def test_noise_is_the_signed_root_of_a_normal_variable():
    layer = NoisyLinear(60_000, 1, 0.1, generator())
    noise = layer.draw_noise().double()
    squares = noise.abs() * noise  # undoes f: standard normal again
    assert abs(squares.mean()) < 5 / math.sqrt(60_000)
    assert abs(squares.var() - 1.0) < 5 * math.sqrt(2 / 60_000)


def test_every_forward_call_has_noise_of_its_own():
    network = small()
    outputs = [network(states()) for _ in range(3)]
    assert not torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[1], outputs[2])


def test_a_batch_shares_one_draw():
    network = small(sigma0=2.0)
    repeated = states(1).expand(4, -1, -1, -1)
    logits = network(repeated)
    torch.testing.assert_close(logits, logits[:1].expand_as(logits))


def test_target_and_online_networks_have_different_noise():
    online, target = small(), RainbowNetwork(SMALL, generator(1))
    target.load_state_dict(online.state_dict())
    assert not torch.equal(online(states()), target(states()))
    for network in (online, target):
        network.set_noise(False)
    assert torch.equal(online(states()), target(states()))


def test_noise_of_layers_and_calls_is_uncorrelated():
    layers = [NoisyLinear(1000, 1000, 0.1, shared) for shared in [generator()] * 3]
    draws = [layer.draw_noise() for _ in range(2) for layer in layers]
    correlations = np.corrcoef(torch.stack(draws).numpy())
    off_diagonal = correlations[~np.eye(6, dtype=bool)]
    assert abs(off_diagonal).max() < 5 / math.sqrt(2000)


def test_layers_of_a_pass_share_no_noise():
    noises = small().draw_noises()
    assert [len(noise) for noise in noises] == [1024 + 16, 16 + 11, 1024 + 16, 16 + 33]
    assert len(torch.cat(noises).unique()) == sum(map(len, noises))
    other = small()
    assert not torch.equal(other.draw_noises()[0], other.draw_noises()[0])


def test_without_noise_a_layer_is_linear_in_its_means():
    network = small()
    network.set_noise(False)
    assert torch.equal(network(states()), network(states()))
    layer = noisy_layers(network)[0]
    inputs = torch.randn(3, layer.weight_mean.shape[1], generator=generator())
    torch.testing.assert_close(layer(inputs), inputs @ layer.weight_mean.T + layer.bias_mean)
    network.set_noise(True)
    assert not torch.equal(network(states()), network(states()))


def test_a_saved_generator_continues_the_noise():
    source = generator(3)
    network = RainbowNetwork(SMALL, source)
    network(states())
    saved = source.get_state()
    first = network(states())
    source.set_state(saved)
    assert torch.equal(network(states()), first)


def test_torchs_own_generator_is_left_alone():
    before = torch.get_rng_state()
    for sigma0 in (None, 0.1):
        small(sigma0=sigma0)(states())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("sigma0", [None, 0.1])
def test_parameters_start_within_one_over_the_root_of_their_inputs(sigma0):
    network = small(sigma0=sigma0)
    convolution = network.torso.get_submodule("0")
    bound = 1 / math.sqrt(4 * 9)
    for parameter in convolution.parameters():
        assert 0.7 * bound < parameter.abs().max() <= bound
    assert convolution.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.1)
    hidden = network.streams["value"][0]
    weight = hidden.weight if sigma0 is None else hidden.weight_mean
    bound = 1 / math.sqrt(16 * 8 * 8)
    assert 0.99 * bound < weight.abs().max() <= bound


@pytest.mark.parametrize("sigma0", [None, 0.1])
def test_a_network_overfits_one_batch(sigma0):
    network = small(sigma0=sigma0)
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    batch, actions = states(8), torch.arange(8) % 3
    goal = targets.projection(
        torch.ones(8, 1), torch.linspace(-9.0, 9.0, 8).unsqueeze(1), network.atoms
    )
    entropy = -(goal * goal.clamp(min=1e-12).log()).sum(-1).mean().item()
    for _ in range(300):
        optimiser.zero_grad()
        loss = targets.cross_entropy(network(batch), actions, goal).mean()
        loss.backward()
        optimiser.step()
    assert loss.item() - entropy < 0.1
    values = network.values(batch)[torch.arange(8), actions].detach()
    np.testing.assert_allclose(values, np.linspace(-9.0, 9.0, 8), atol=1.0)


def test_every_parameter_gets_a_gradient():
    network = small()
    loss = targets.cross_entropy(network(states()), torch.zeros(5).long(), torch.ones(5, 11) / 11)
    loss.mean().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="frames must have shape"):
        small()(torch.zeros(1, 4, 9, 10, dtype=torch.uint8))
    with pytest.raises(ValueError, match="torso must fit"):
        RainbowNetwork(NetworkSettings(num_actions=3, input_shape=(4, 10, 10)), generator())
    with pytest.raises(ValueError, match="least_value must be less than"):
        NetworkSettings(num_actions=3, least_value=10.0)
    with pytest.raises(ValueError, match="sigma0 must be finite and be at least 0"):
        NetworkSettings(num_actions=3, sigma0=-0.1)
