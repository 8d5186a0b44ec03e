"""Sizes by arithmetic are those of the networks that are built."""

from dataclasses import replace

import pytest
import torch

from ezgreedy.agents.network_sizes import COPIES_OF_PARAMETERS, FLOAT_BYTES, torso_size
from ezgreedy.agents.r2d2.network import RecurrentNetwork
from ezgreedy.agents.r2d2.presets import R2D2_PRESETS
from ezgreedy.agents.r2d2.sizes import num_parameters
from ezgreedy.agents.rainbow.learner_settings import NetworkSettings
from ezgreedy.agents.rainbow.network import RainbowNetwork
from ezgreedy.agents.rainbow.presets import RAINBOW_PRESETS
from ezgreedy.learning.layers import convolutions
from ezgreedy.learning.settings import ATARI_TORSO, MINATAR_TORSO, Sight

torch.set_num_threads(1)
GENERATOR = torch.Generator()


def size(network):
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(
    ("shape", "torso"), [((4, 84, 84), ATARI_TORSO), ((6, 10, 9), MINATAR_TORSO), ((7,), ())]
)
def test_a_torso_has_the_size_of_the_one_that_is_built(shape, torso, padding):
    built, num_features = convolutions(shape, torso, padding, GENERATOR)
    found = torso_size(shape, torso, padding)
    assert (found.num_parameters, found.num_features) == (size(built), num_features)
    sizes = []
    for layer in built:
        if isinstance(layer, torch.nn.Conv2d):
            layer.register_forward_hook(lambda *told: sizes.append(told[-1].numel()))
    built(torch.zeros(1, *shape))
    assert found.num_activations == sum(sizes)


@pytest.mark.parametrize("name", ["r2d2", "r2d2-bootstrap"])
@pytest.mark.parametrize("shares_memory", [False, True])
def test_parameters_of_r2d2_are_those_of_the_network(name, shares_memory):
    preset = replace(R2D2_PRESETS[name], shares_memory=shares_memory, feature_size=24)
    preset = replace(preset, memory_size=16, hidden_size=8)
    network = preset.network(Sight((1, 210, 160), has_codes=True), num_actions=5)
    assert num_parameters(network) == size(RecurrentNetwork(network, GENERATOR))


@pytest.mark.parametrize("name", ["rainbow", "rainbow-cts"])
def test_memory_of_rainbow_counts_the_weights_of_its_networks(name):
    settings = RAINBOW_PRESETS[name].at_scale("paper", "Freeway")
    preset = settings.agent
    network = NetworkSettings(18, sigma0=preset.sigma0, num_atoms=preset.num_atoms)
    counted = preset.working_bytes((1, 84, 84), settings.protocol, lanes=1)
    built = COPIES_OF_PARAMETERS * FLOAT_BYTES * size(RainbowNetwork(network, GENERATOR))
    assert counted == pytest.approx(built, rel=0.01)
