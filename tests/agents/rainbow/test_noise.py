"""Noisy products: block by block they equal the product with the whole noisy weight."""

import pytest
import torch

from ezgreedy.agents.rainbow import noise as module
from ezgreedy.agents.rainbow.noise import Factors, NoisyBlocks, noisy_product, signed_root_noise

INPUTS, OUTPUTS, BATCH = 7, 11, 5


def operands(seed=0, batch=BATCH):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, INPUTS), (OUTPUTS, INPUTS), (OUTPUTS, INPUTS), (OUTPUTS,)]
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    noise = torch.randn(INPUTS + OUTPUTS, generator=generator, dtype=torch.float64)
    return [tensor.requires_grad_() for tensor in drawn], noise


def whole_product(inputs, mean, sigma, bias, noise):
    weight = mean + sigma * noise[INPUTS:, None] * noise[None, :INPUTS]
    return inputs @ weight.T + bias


# In rows: all at once, blocks of 6 and 5, of 4, 4 and 3, of 1 each.
@pytest.mark.parametrize("block_size", [INPUTS * OUTPUTS, 6 * INPUTS, 4 * INPUTS, 1])
def test_blocks_give_the_products_of_the_whole_forwards_and_back(block_size, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_SIZE", block_size)
    (inputs, mean, sigma, bias), noise = operands()
    expected = whole_product(inputs, mean, sigma, bias, noise)
    delta = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator())
    (of_inputs,) = torch.autograd.grad(expected, [inputs], delta)
    blocks = NoisyBlocks(mean, sigma)
    with torch.no_grad():
        torch.testing.assert_close(blocks.products([Factors(inputs, bias, noise)])[0], expected)
        found = torch.ones_like(inputs)
        blocks.add_back(delta, noise, found)
    torch.testing.assert_close(found, of_inputs + 1.0)


@pytest.mark.parametrize("batch", [1, 8, 9], ids=["one row", "a few", "more"])
def test_a_product_is_the_same_with_and_without_gradients(batch):
    (inputs, *others), noise = operands(batch=batch)
    outputs = noisy_product(inputs, *others, noise)
    torch.testing.assert_close(outputs, whole_product(inputs, *others, noise))
    with torch.no_grad():
        torch.testing.assert_close(noisy_product(inputs, *others, noise), outputs)


def test_blocks_follow_the_parameters_they_are_of():
    (inputs, mean, sigma, bias), noise = operands()
    blocks = NoisyBlocks(mean, sigma)
    with torch.no_grad():
        mean += 1.0
        sigma *= 2.0
        expected = whole_product(inputs, mean, sigma, bias, noise)
        torch.testing.assert_close(blocks.products([Factors(inputs, bias, noise)])[0], expected)


def test_noise_keeps_the_sign_and_takes_the_root():
    noise = signed_root_noise(1000, torch.Generator().manual_seed(3), torch.device("cpu"))
    normal = torch.randn(1000, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(noise * noise.abs(), normal)
