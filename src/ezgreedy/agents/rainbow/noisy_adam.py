"""Adam and the norm of gradients, for parameters that include those of noisy layers.

A noisy weight is μ + σ ⊙ ε_out ε_inᵀ, so the gradient of σ is that of μ times ε_out ε_inᵀ. It is
never written to memory: the norm and Adam multiply it out as they read, and clipping is a factor
that Adam applies as it reads. The arithmetic is that of `torch.optim.Adam`, whose state is used as
it is. For CPUs only. Needs torch and numba.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ezgreedy.compilation import jit_sums
from ezgreedy.learning.gradients import NotFiniteError

_Floats = NDArray[np.float32]


class Gradient(NamedTuple):
    """The gradient of one parameter: a matrix times an outer product of two vectors.

    Args:
        parameter: the parameter.
        matrix: the matrix, [rows, columns], one row per entry of the parameter's first dimension.
        factor_out: factor of each row, [rows]; 1 everywhere if None.
        factor_in: factor of each column, [columns]; 1 everywhere if None.
    """

    parameter: nn.Parameter
    matrix: Tensor
    factor_out: Tensor | None = None
    factor_in: Tensor | None = None

    def values(self) -> Tensor:
        """The gradient itself, in the parameter's shape."""
        factor_out, factor_in = map(torch.from_numpy, self.factors())
        return (self.matrix * torch.outer(factor_out, factor_in)).view_as(self.parameter)

    def factors(self) -> tuple[_Floats, _Floats]:
        """Both vectors."""
        rows, columns = self.matrix.shape
        factor_out, factor_in = self.factor_out, self.factor_in
        return (
            _ones(rows) if factor_out is None else factor_out.numpy(),
            _ones(columns) if factor_in is None else factor_in.numpy(),
        )


def gradient_norm(gradients: Sequence[Gradient], network: nn.Module, step: int, seed: int) -> float:
    """The norm of all gradients together.

    Args:
        gradients: gradients of a network's parameters.
        network: the network, for the names of its parameters.
        step: number of updates before this one, for the message.
        seed: the learner's seed, for the message.

    Raises:
        NotFiniteError: naming the first parameter whose gradient is not finite.
    """
    total = sum(_squares(each.matrix.numpy(), *each.factors()) for each in gradients)
    if not math.isfinite(total):
        found = {each.parameter: each for each in gradients}
        for name, parameter in network.named_parameters():
            if parameter in found and not torch.isfinite(found[parameter].values()).all():
                raise NotFiniteError(f"gradient of {name}", step, seed)
        raise NotFiniteError("norm of the gradient", step, seed)
    return math.sqrt(total)


class NoisyAdam:
    """Steps of Adam over the memory of a torch optimiser.

    Args:
        optimizer: optimiser with its state in place; its own `step` is not called.
    """

    def __init__(self, optimizer: torch.optim.Adam) -> None:
        self._options: dict[str, Any] = optimizer.param_groups[0]
        self._counts: list[Tensor] = []
        self._arrays: dict[nn.Parameter, list[_Floats]] = {}
        for parameter in self._options["params"]:
            state = optimizer.state[parameter]
            self._counts.append(state["step"])
            self._arrays[parameter] = [
                values.detach().view(len(parameter), -1).numpy()
                for values in (parameter, state["exp_avg"], state["exp_avg_sq"])
            ]

    def step(self, gradients: Sequence[Gradient], scale: float = 1.0) -> None:
        """One step.

        Args:
            gradients: gradients of all parameters.
            scale: factor applied to them first.
        """
        torch._foreach_add_(self._counts, 1.0)
        numbers = self._numbers(float(self._counts[0]), scale)
        for gradient in gradients:
            values, first, second = self._arrays[gradient.parameter]
            factors = gradient.factors()
            _step(values, first, second, gradient.matrix.numpy(), *factors, numbers)

    def _numbers(self, step: float, scale: float) -> _Floats:
        """The constants of one step, in this order."""
        beta1, beta2 = self._options["betas"]
        rate = self._options["lr"] / (1.0 - beta1**step)
        root = 1.0 / math.sqrt(1.0 - beta2**step)
        numbers = [scale, 1.0 - beta1, 1.0 - beta2, rate, root, self._options["eps"]]
        with np.errstate(over="ignore"):  # infinities show up in the results
            return np.array(numbers, dtype=np.float32)


@cache
def _ones(size: int) -> _Floats:
    return np.ones(size, dtype=np.float32)


@jit_sums
def _squares(matrix: _Floats, factor_out: _Floats, factor_in: _Floats) -> float:
    total = 0.0
    for row in range(matrix.shape[0]):
        of_row = np.float32(0.0)
        for column in range(matrix.shape[1]):
            product = matrix[row, column] * factor_in[column]
            of_row += product * product
        total += np.float64(of_row) * np.float64(factor_out[row]) ** 2
    return total


@jit_sums
def _step(
    values: _Floats,
    first: _Floats,
    second: _Floats,
    matrix: _Floats,
    factor_out: _Floats,
    factor_in: _Floats,
    numbers: _Floats,
) -> None:
    scale, rate1, rate2 = numbers[0], numbers[1], numbers[2]
    step, root, epsilon = numbers[3], numbers[4], numbers[5]
    for row in range(values.shape[0]):
        factor = factor_out[row] * scale
        for column in range(values.shape[1]):
            slope = matrix[row, column] * (factor * factor_in[column])
            mean, square = first[row, column], second[row, column]
            mean += rate1 * (slope - mean)
            square += rate2 * (slope * slope - square)
            first[row, column], second[row, column] = mean, square
            values[row, column] -= step * mean / (np.sqrt(square) * root + epsilon)
