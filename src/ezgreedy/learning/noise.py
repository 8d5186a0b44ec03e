"""Factorised noise, and products with weights that it is part of.

A noisy weight μ + σ ⊙ f(ε_out)f(ε_in)ᵀ is as large as its layer and lives for one product, forwards
and backwards. Written to memory as a whole it costs more than the product; it is therefore made
block by block, each small enough to stay in the processor's cache until the product has read it.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

# 2 MB of floats. Graphics processors take a layer whole.
_BLOCK_SIZE = 2**19


def signed_root_noise(size: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """f(ε) = sign(ε)·√|ε| of independent standard normal ε, [size].

    Args:
        size: how many.
        generator: a CPU generator.
        device: where the noise is needed.
    """
    noise = torch.randn(size, generator=generator)
    return torch.copysign(noise.abs().sqrt_(), noise).to(device)


def noisy_product(
    inputs: Tensor, mean: Tensor, sigma: Tensor, bias: Tensor, noise: Tensor
) -> Tensor:
    """x·(μ + σ ⊙ ε_out ε_inᵀ)ᵀ + b, differentiable in all but the noise, [batch, outputs].

    Args:
        inputs: x, [batch, inputs].
        mean: μ, [outputs, inputs].
        sigma: σ, like the mean.
        bias: b, [outputs].
        noise: ε_in, then ε_out, [inputs + outputs].
    """
    if _rows_of_block(mean) == len(mean):
        num_inputs = mean.shape[1]
        outer = torch.outer(noise[num_inputs:], noise[:num_inputs])
        return functional.linear(inputs, torch.addcmul(mean, sigma, outer), bias)
    if torch.is_grad_enabled():
        apply: Any = _NoisyProduct.apply  # without annotations in some versions of torch
        return cast(Tensor, apply(inputs, mean, sigma, bias, noise))
    return _product(inputs, mean, sigma, bias, noise)


def _product(inputs: Tensor, mean: Tensor, sigma: Tensor, bias: Tensor, noise: Tensor) -> Tensor:
    outputs = inputs.new_empty(len(inputs), len(mean))
    noise_in, noise_out = noise.split_with_sizes(mean.shape[::-1])
    num_rows = _rows_of_block(mean)
    scratch = torch.empty_like(mean[:num_rows])
    for first in range(0, len(mean), num_rows):
        rows = slice(first, first + num_rows)
        weight = scratch[: len(mean) - first]
        torch.outer(noise_out[rows], noise_in, out=weight)
        torch.addcmul(mean[rows], sigma[rows], weight, out=weight)
        torch.addmm(bias[rows], inputs, weight.t(), out=outputs[:, rows])
    return outputs


class _NoisyProduct(torch.autograd.Function):
    """The same, and its gradients: of the mean δᵀx, of σ that times ε_out ε_inᵀ, of x δ·W."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, mean: Tensor, sigma: Tensor, bias: Tensor, noise: Tensor
    ) -> Tensor:
        ctx.save_for_backward(inputs, mean, sigma, noise)
        return _product(inputs, mean, sigma, bias, noise)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, delta: Tensor) -> tuple[Tensor | None, ...]:
        inputs, mean, sigma, noise = ctx.saved_tensors
        of_mean, of_sigma = torch.empty_like(mean), torch.empty_like(sigma)
        of_inputs = torch.zeros_like(inputs)
        noise_in, noise_out = noise.split_with_sizes(mean.shape[::-1])
        num_rows = _rows_of_block(mean)
        scratch = torch.empty_like(mean[:num_rows])
        for first in range(0, len(mean), num_rows):
            rows = slice(first, first + num_rows)
            weight, part = scratch[: len(mean) - first], delta[:, rows]
            torch.outer(noise_out[rows], noise_in, out=weight)
            torch.mm(part.t(), inputs, out=of_mean[rows])
            torch.mul(of_mean[rows], weight, out=of_sigma[rows])
            torch.addcmul(mean[rows], sigma[rows], weight, out=weight)
            of_inputs.addmm_(part, weight)
        return of_inputs, of_mean, of_sigma, delta.sum(dim=0), None


def _rows_of_block(weight: Tensor) -> int:
    """As many rows as fit, in blocks of about one size."""
    num_blocks = -(-weight.numel() // _BLOCK_SIZE) if weight.device.type == "cpu" else 1
    return -(-len(weight) // num_blocks)
