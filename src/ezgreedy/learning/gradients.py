"""Are gradients fit for a step? They must be finite, and long ones are clipped."""

import math

import torch
from torch import nn


class NotFiniteError(ArithmeticError):
    """NaN or infinity was about to be learned from; the learner is unchanged.

    Args:
        site: where it was found.
        step: number of updates before it.
        seed: the learner's seed. A run derives it from its own, which its message gives instead.
    """

    def __init__(self, site: str, step: int, seed: int) -> None:
        super().__init__(f"{site}: NaN or infinity after {step} updates")
        self.site, self.step, self.seed = site, step, seed

    def __reduce__(self) -> tuple[type["NotFiniteError"], tuple[str, int, int]]:
        # Otherwise, another process would rebuild the exception from its message only.
        return type(self), (self.site, self.step, self.seed)


def clip_gradients(network: nn.Module, largest_norm: float, step: int, seed: int) -> float:
    """Scale all gradients down together to a largest norm; return the norm they had.

    Args:
        network: the network with the gradients.
        largest_norm: upper bound of their joint norm afterwards.
        step: number of updates before this one, for the message.
        seed: the learner's seed, for the message.

    Raises:
        NotFiniteError: naming the first parameter whose gradient is not finite.
    """
    parameters = dict(network.named_parameters())
    gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
    norm = float(nn.utils.get_total_norm(list(gradients.values())))
    if not math.isfinite(norm):
        for name, gradient in gradients.items():
            if not torch.isfinite(gradient).all():
                raise NotFiniteError(f"gradient of {name}", step, seed)
        raise NotFiniteError("norm of the gradient", step, seed)
    if norm > largest_norm:
        torch._foreach_mul_(list(gradients.values()), largest_norm / norm)
    return norm
