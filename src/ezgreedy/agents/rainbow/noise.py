"""Factorised noise, and products with noisy weights.

A noisy weight μ + σ ⊙ f(ε_out)f(ε_in)ᵀ is as large as its layer and lives for one product. Writing
it to memory as a whole costs more than the product. On a CPU it is therefore made block by block,
each small enough to stay in the cache until the product has read it. Needs torch and numba.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ezgreedy.compilation import jit, jit_borrowing, jit_sums

# Two megabytes of floats.
_BLOCK_SIZE = 2**19

# Batches up to this size are multiplied while the weight is read, without writing a noisy one.
_MOST_ROWS_BY_HAND = 8

_Floats = NDArray[np.float32]


def signed_root_noise(size: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """f(ε) = sign(ε)·√|ε| of independent standard normal ε, [size].

    Args:
        size: number of values.
        generator: a CPU generator.
        device: device of the result.
    """
    noise = torch.randn(size, generator=generator)
    return torch.copysign(noise.abs().sqrt_(), noise).to(device)


def noisy_product(
    inputs: Tensor, mean: Tensor, sigma: Tensor, bias: Tensor, noise: Tensor
) -> Tensor:
    """x·(μ + σ ⊙ ε_out ε_inᵀ)ᵀ + b, differentiable except in the noise, [batch, outputs].

    Args:
        inputs: x, [batch, inputs].
        mean: μ, [outputs, inputs].
        sigma: σ, shaped like the mean.
        bias: b, [outputs].
        noise: ε_in, then ε_out, [inputs + outputs].
    """
    if torch.is_grad_enabled() or mean.device.type != "cpu":
        num_inputs = mean.shape[1]
        outer = torch.outer(noise[num_inputs:], noise[:num_inputs])
        return functional.linear(inputs, torch.addcmul(mean, sigma, outer), bias)
    if len(inputs) <= _MOST_ROWS_BY_HAND:
        outputs = inputs.new_empty(len(inputs), len(mean))
        arrays = [each.detach().numpy() for each in (inputs, mean, sigma, bias, noise, outputs)]
        _multiply_few(*arrays)
        return outputs
    return NoisyBlocks(mean, sigma).products([Factors(inputs, bias, noise)])[0]


class Factors(NamedTuple):
    """The factors of a noisy weight: see `noisy_product`."""

    inputs: Tensor
    bias: Tensor
    noise: Tensor


class NoisyBlocks:
    """A noisy weight on a CPU, some rows at a time.

    Args:
        mean: μ, [outputs, inputs]; read in place for every product.
        sigma: σ, shaped like the mean.
    """

    def __init__(self, mean: Tensor, sigma: Tensor) -> None:
        num_outputs, self._num_inputs = mean.shape
        num_blocks = -(-mean.numel() // _BLOCK_SIZE)
        num_rows = -(-num_outputs // num_blocks)
        means, sigmas = mean.detach().numpy(), sigma.detach().numpy()
        self._scratch = mean.new_empty(num_rows, self._num_inputs)
        self._blocks = []
        for first in range(0, num_outputs, num_rows):
            rows = slice(first, min(first + num_rows, num_outputs))
            weight = self._scratch[: rows.stop - first]
            self._blocks.append((rows, means[rows], sigmas[rows], weight, weight.numpy()))

    def products(self, each: Sequence[Factors]) -> list[Tensor]:
        """x·Wᵀ + b with several noises, not differentiable, [batch, outputs] each.

        μ and σ are read once for all of them.
        """
        if len(self._blocks) == 1:
            return [
                torch.addmm(bias, inputs, self._weight(0, noise).t())
                for inputs, bias, noise in each
            ]
        outputs = [inputs.new_empty(len(inputs), len(bias)) for inputs, bias, _ in each]
        for number, (rows, *_) in enumerate(self._blocks):
            for (inputs, bias, noise), out in zip(each, outputs, strict=True):
                weight = self._weight(number, noise)
                torch.addmm(bias[rows], inputs, weight.t(), out=out[:, rows])
        return outputs

    def add_back(self, delta: Tensor, noise: Tensor, of_inputs: Tensor) -> None:
        """Add δ·W, the gradient of the product's inputs, to `of_inputs`.

        Args:
            delta: the gradient of its outputs, [batch, outputs].
            noise: the noise of the product.
            of_inputs: the gradient to add to, [batch, inputs].
        """
        for number, (rows, *_) in enumerate(self._blocks):
            of_inputs.addmm_(delta[:, rows], self._weight(number, noise))

    def _weight(self, number: int, noise: Tensor) -> Tensor:
        """One block of rows, in memory that the next block overwrites."""
        rows, mean, sigma, weight, array = self._blocks[number]
        noises = noise.numpy()
        noise_in, noise_out = noises[: self._num_inputs], noises[self._num_inputs :]
        _add_noise(mean, sigma, noise_out[rows], noise_in, array)
        return weight


@jit_borrowing
def _add_noise(
    mean: _Floats, sigma: _Floats, noise_out: _Floats, noise_in: _Floats, weight: _Floats
) -> None:
    for row in range(mean.shape[0]):
        for column in range(mean.shape[1]):
            noise = noise_out[row] * noise_in[column]
            weight[row, column] = mean[row, column] + sigma[row, column] * noise


@jit
def _multiply_few(
    inputs: _Floats, mean: _Floats, sigma: _Floats, bias: _Floats, noise: _Floats, outputs: _Floats
) -> None:
    """μx + ε_out ⊙ σ(ε_in ⊙ x) + b of a few rows x."""
    num_outputs, num_inputs = mean.shape
    noisy_inputs = inputs * noise[:num_inputs]
    for unit in range(num_outputs):
        for row in range(len(inputs)):
            exact = _dot(mean[unit], inputs[row])
            noisy = _dot(sigma[unit], noisy_inputs[row])
            outputs[row, unit] = exact + noisy * noise[num_inputs + unit] + bias[unit]


@jit_sums
def _dot(one: _Floats, other: _Floats) -> np.float32:
    total = np.float32(0.0)
    for index in range(len(one)):
        total += one[index] * other[index]
    return total
