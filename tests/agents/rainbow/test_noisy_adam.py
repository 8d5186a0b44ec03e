"""Adam and norms over factored gradients: the numbers of torch's own."""

import math

import pytest
import torch
from torch import nn

from ezgreedy.agents.rainbow.noisy_adam import Gradient, NoisyAdam, gradient_norm
from ezgreedy.learning import tensor_states
from ezgreedy.learning.gradients import NotFiniteError


class Pair(nn.Module):
    """A weight with a scale beside it, and a bias."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        for name, shape in (("mean", (7, 5)), ("sigma", (7, 5)), ("bias", (7,))):
            self.register_parameter(name, nn.Parameter(torch.randn(shape, generator=generator)))


def gradients_of(pair, seed):
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(7, 5, generator=generator)
    of_bias = torch.randn(7, 1, generator=generator)
    noise_out, noise_in = torch.randn(7, generator=generator), torch.randn(5, generator=generator)
    return [
        Gradient(pair.mean, matrix),
        Gradient(pair.sigma, matrix, noise_out, noise_in),
        Gradient(pair.bias, of_bias, noise_out),
    ]


def test_steps_are_those_of_torch_s_adam():
    ours, theirs = Pair(), Pair()
    optimizer = tensor_states.adam(ours, 3e-3, 1e-4)
    adam = NoisyAdam(optimizer)
    reference = torch.optim.Adam(theirs.parameters(), lr=3e-3, eps=1e-4)
    for step in range(20):
        gradients, scale = gradients_of(ours, step), 1.0 / (1 + step % 3)
        by_parameter = {gradient.parameter: gradient for gradient in gradients}
        for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            other.grad = by_parameter[own].values() * scale
        adam.step(gradients, scale)
        reference.step()
    for (name, own), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-6)
        for moment in ("step", "exp_avg", "exp_avg_sq"):
            mine, other_moment = optimizer.state[own][moment], reference.state[other][moment]
            torch.testing.assert_close(mine, other_moment, rtol=1e-5, atol=1e-7, msg=name)


def test_values_are_the_matrix_times_the_outer_product():
    pair = Pair()
    mean, sigma, bias = gradients_of(pair, 3)
    assert torch.equal(mean.values(), mean.matrix)
    outer = sigma.factor_out[:, None] * sigma.factor_in[None]
    torch.testing.assert_close(sigma.values(), sigma.matrix * outer)
    torch.testing.assert_close(bias.values(), bias.matrix[:, 0] * bias.factor_out)


def test_the_norm_is_that_of_all_gradients_written_out():
    pair = Pair()
    gradients = gradients_of(pair, 5)
    expected = math.hypot(*(float(each.values().norm()) for each in gradients))
    assert gradient_norm(gradients, pair, 0, 0) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("place", "name"), [(0, "mean"), (1, "sigma"), (2, "bias")])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_is_named(place, name, value):
    pair = Pair()
    gradients = gradients_of(pair, 6)
    # A σ's gradient is not finite by itself if its noise is not.
    if name == "sigma":
        gradients[1].factor_in[2] = value
    else:
        gradients[place].matrix.data[3, 0] = value
    with pytest.raises(NotFiniteError, match=rf"^gradient of {name}: .* after 4 updates"):
        gradient_norm(gradients, pair, 4, 9)
