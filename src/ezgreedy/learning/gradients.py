"""Gradients before a step: none but finite ones, and none too long."""

import math

import torch
from torch import nn


class NotFiniteError(ArithmeticError):
    """NaN or infinity was about to be learned from; the learner is as it was before.

    Args:
        site: where it was seen.
        step: how many updates were made before.
        seed: of the learner.
    """

    def __init__(self, site: str, step: int, seed: int) -> None:
        super().__init__(f"{site}: NaN or infinity after {step} updates (seed {seed})")
        self.site, self.step, self.seed = site, step, seed

    def __reduce__(self) -> tuple[type["NotFiniteError"], tuple[str, int, int]]:
        # Exceptions are otherwise made again from their message, in the process that reads them.
        return type(self), (self.site, self.step, self.seed)


def clip_gradients(network: nn.Module, largest_norm: float, step: int, seed: int) -> float:
    """Scale all gradients down together to a largest norm; the norm they had.

    Args:
        network: what they belong to.
        largest_norm: what the norm of them all is at most afterwards.
        step: how many updates were made before, for the message.
        seed: of the learner, likewise.

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
