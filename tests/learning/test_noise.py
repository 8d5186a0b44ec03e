"""Noisy products: block by block they equal the product with the whole noisy weight."""

import pytest
import torch

from ezgreedy.learning import noise as module
from ezgreedy.learning.noise import noisy_product, signed_root_noise

INPUTS, OUTPUTS, BATCH = 7, 11, 5


def operands(seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(BATCH, INPUTS), (OUTPUTS, INPUTS), (OUTPUTS, INPUTS), (OUTPUTS,)]
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    noise = torch.randn(INPUTS + OUTPUTS, generator=generator, dtype=torch.float64)
    return [tensor.requires_grad_() for tensor in drawn], noise


def whole_product(inputs, mean, sigma, bias, noise):
    weight = mean + sigma * noise[INPUTS:, None] * noise[None, :INPUTS]
    return inputs @ weight.T + bias


# In rows: all at once, blocks of 6 and 5, of 4, 4 and 3, of 1 each.
@pytest.mark.parametrize("block_size", [INPUTS * OUTPUTS, 6 * INPUTS, 4 * INPUTS, 1])
def test_blocks_give_the_products_and_gradients_of_the_whole(block_size, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_SIZE", block_size)
    drawn, noise = operands()
    outputs = noisy_product(*drawn, noise)
    expected = whole_product(*drawn, noise)
    torch.testing.assert_close(outputs, expected)
    with torch.no_grad():
        torch.testing.assert_close(noisy_product(*drawn, noise), expected)
    delta = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator())
    ours = torch.autograd.grad(outputs, drawn, delta)
    theirs = torch.autograd.grad(expected, drawn, delta)
    for gradient, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(gradient, other)


def test_a_product_between_forward_and_backward_does_not_reach_the_gradients(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_SIZE", 4 * INPUTS)
    drawn, noise = operands()
    undisturbed = torch.autograd.grad(noisy_product(*drawn, noise).sum(), drawn)
    outputs = noisy_product(*drawn, noise)
    noisy_product(*drawn, -noise.flip(0))
    disturbed = torch.autograd.grad(outputs.sum(), drawn)
    for gradient, other in zip(undisturbed, disturbed, strict=True):
        assert torch.equal(gradient, other)


def test_noise_keeps_the_sign_and_takes_the_root():
    noise = signed_root_noise(1000, torch.Generator().manual_seed(3), torch.device("cpu"))
    normal = torch.randn(1000, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(noise * noise.abs(), normal)
