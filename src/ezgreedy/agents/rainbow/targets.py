"""The equations of distributional double Q-learning, one function each.

A value is a distribution over fixed, evenly spaced atoms z (C51). `_tm1` marks quantities of the
state in which an action was taken and `_t` those of the state n steps later. Functions take and
return tensors, keep no state and draw nothing at random.
"""

import torch
from torch import Tensor


def support(least: float, most: float, num_atoms: int) -> Tensor:
    """The atoms z, evenly spaced from `least` to `most`, [atoms]."""
    if not least < most:
        raise ValueError(f"least must be less than most; got {least} and {most}")
    if num_atoms < 2:
        raise ValueError(f"num_atoms must be at least 2; got {num_atoms}")
    return torch.linspace(least, most, num_atoms)


def expected_values(logits: Tensor, atoms: Tensor) -> Tensor:
    """Q(a) = Σᵢ zᵢ·pᵢ(a).

    Args:
        logits: logits, [batch, actions, atoms].
        atoms: atoms, [atoms].
    """
    return logits.softmax(dim=-1) @ atoms


def chosen(logits: Tensor, actions: Tensor) -> Tensor:
    """The logits of one action for each row, [batch, atoms].

    Args:
        logits: logits, [batch, actions, atoms].
        actions: actions, [batch].
    """
    return logits[torch.arange(len(actions), device=logits.device), actions]


def projection(probabilities: Tensor, positions: Tensor, atoms: Tensor) -> Tensor:
    """mᵢ = Σⱼ pⱼ·max(0, 1 − |xⱼ − zᵢ|/Δz): mass at any positions, shared out between atoms.

    Positions beyond the first or last atom count as that atom. Mass on an atom stays there whole,
    and no mass is lost: Σm = Σp.

    Args:
        probabilities: mass at each position, [batch, positions].
        positions: positions x, [batch, positions].
        atoms: evenly spaced atoms z, [atoms].

    Returns:
        [batch, atoms].
    """
    first, last = atoms[0], atoms[-1]
    inside = positions.clamp(first, last)
    scale = (1 - len(atoms)) / (last - first)
    kernel = (inside.unsqueeze(1) - atoms.unsqueeze(-1)).abs_()  # [batch, atoms, positions]
    kernel = kernel.mul_(scale).add_(1.0).clamp_(min=0.0)
    return (kernel @ probabilities.unsqueeze(-1)).squeeze(-1)


def double_q_target(
    r_t: Tensor, discount_t: Tensor, logits_t: Tensor, selector_logits_t: Tensor, atoms: Tensor
) -> Tensor:
    """The projection of R + D·z under p(s_t, a*), with a* = argmax_a Q of the selector.

    With selector = target this is the ordinary maximum; with D = 0 all mass lies at R. Of actions
    with equal values the first is chosen. No gradient flows through the result.

    Args:
        r_t: n-step returns R, [batch].
        discount_t: n-step discounts D, [batch].
        logits_t: logits of the target network, [batch, actions, atoms].
        selector_logits_t: logits of the online network, [batch, actions, atoms].
        atoms: atoms, [atoms].

    Returns:
        [batch, atoms].
    """
    a_star = expected_values(selector_logits_t, atoms).argmax(dim=-1)
    p_t = chosen(logits_t, a_star).softmax(dim=-1)
    positions = r_t.unsqueeze(-1) + discount_t.unsqueeze(-1) * atoms
    return projection(p_t, positions, atoms).detach()


def cross_entropy(logits_tm1: Tensor, a_tm1: Tensor, target: Tensor) -> Tensor:
    """−Σᵢ mᵢ·log pᵢ(s_tm1, a_tm1), one unweighted loss for each row, [batch].

    Args:
        logits_tm1: logits, [batch, actions, atoms].
        a_tm1: actions, [batch].
        target: target distributions m, [batch, atoms].
    """
    return -(target * chosen(logits_tm1, a_tm1).log_softmax(dim=-1)).sum(dim=-1)


def weighted_loss(losses: Tensor, weights: Tensor) -> Tensor:
    """The mean of wᵢ·lossᵢ over the batch; its sum is not divided by Σw."""
    return (weights * losses).mean()
