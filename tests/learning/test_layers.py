"""Initial parameters: of the named kind, and from our generator alone."""

import math

import pytest
import torch

from ezgreedy.learning.layers import convolutions, linear
from ezgreedy.learning.settings import Convolution

TORSO = (Convolution(5, 3), Convolution(7, 2))


def made(initialisation, seed=0):
    generator = torch.Generator().manual_seed(seed)
    torso, _ = convolutions((2, 8, 8), TORSO, "valid", generator, initialisation)
    wide, narrow = (linear(*sizes, generator, initialisation) for sizes in ((4, 9), (9, 4)))
    return [torso[0], torso[2], wide, narrow]


def test_orthogonal_weights_have_norm_root_2_and_no_biases():
    for layer in made("orthogonal"):
        weight = layer.weight.detach().flatten(1).double()
        rows, columns = weight.shape
        product = weight @ weight.T if rows <= columns else weight.T @ weight
        torch.testing.assert_close(
            product, 2.0 * torch.eye(min(rows, columns)).double(), rtol=0.0, atol=1e-5
        )
        assert not layer.bias.any()


def test_uniform_parameters_fill_their_interval():
    for layer in made("uniform"):
        bound = 1.0 / math.sqrt(layer.weight[0].numel())
        assert 0.8 * bound < layer.weight.abs().max() <= bound
        assert layer.bias.any()


@pytest.mark.parametrize("initialisation", ["orthogonal", "uniform"])
def test_initial_parameters_come_from_our_generator_alone(initialisation):
    before = torch.get_rng_state()
    ours, same, other = made(initialisation), made(initialisation), made(initialisation, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    for a, b, c in zip(ours, same, other, strict=True):
        assert torch.equal(a.weight, b.weight)
        assert not torch.equal(a.weight, c.weight)


def test_an_unknown_initialisation_is_refused():
    with pytest.raises(ValueError, match=r"^initialisation must be one of 'uniform', 'orthogonal'"):
        made("zeros")
