"""Inputs of about the same size in every element, by what was seen there so far. Needs torch."""

import torch
from torch import Tensor, nn

# Elements that hardly ever changed are divided by this instead: inputs are numbers of about 1, so
# that one grey level more where nothing had ever moved becomes 4 standard deviations.
LEAST_STD = 1e-3


class Whitening(nn.Module):
    """Subtracts the running mean of each element, divides by its running standard deviation, clips.

    Every input is counted once and never forgotten. Statistics are kept in double precision, and
    are the module's state.

    Args:
        shape: shape of an input.
        bound: whitened inputs are clipped to ± this.
    """

    count: Tensor
    mean: Tensor
    squares: Tensor

    def __init__(self, shape: tuple[int, ...], bound: float) -> None:
        super().__init__()
        self.bound = bound
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("squares", torch.zeros(shape, dtype=torch.float64))  # Σ(x − mean)²

    @property
    def std(self) -> Tensor:
        """Standard deviation of each element, at least `LEAST_STD`; 1 before the first input."""
        if not self.count:
            return torch.ones_like(self.squares)
        return (self.squares / self.count).sqrt().clamp(min=LEAST_STD)

    @torch.no_grad()
    def forward(self, inputs: Tensor) -> Tensor:
        """Whitened inputs, [batch, *shape]."""
        mean, scale = self.mean.to(inputs.dtype), (1.0 / self.std).to(inputs.dtype)
        return (inputs - mean).mul_(scale).clamp_(-self.bound, self.bound)

    @torch.no_grad()
    def update(self, inputs: Tensor) -> None:
        """Count these inputs.

        Args:
            inputs: finite numbers, [batch, *shape].
        """
        if not len(inputs):
            return
        variance, mean = torch.var_mean(inputs, dim=0, correction=0)
        shift, size = mean.double() - self.mean, len(inputs)
        total = self.count + size
        self.squares += variance.double() * size + shift.square() * (self.count * size / total)
        self.mean += shift * (size / total)
        self.count.copy_(total)
