"""The equations of R2D2's targets: value rescaling, expected SARSA(λ) and priorities.

Networks predict h(Q), which grows like a root, so that rewards need no clipping. Tensors are
time-major, and `_t` marks step t of T: a step's action is taken in observation t and leads to
observation t + 1. Functions are deterministic and keep no state.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ezgreedy.agents.r2d2.learner_settings import ReturnSettings


class Steps(NamedTuple):
    """The trained steps of a batch of windows; steps beyond a window's length are never read."""

    actions: Tensor  # [T, batch]
    rewards: Tensor  # [T, batch]
    behaviour: Tensor  # probabilities of the actions when chosen, [T, batch]
    lengths: Tensor  # [batch]
    terminated: Tensor  # whether the last step ended the game, [batch]

    @property
    def is_valid(self) -> Tensor:
        """Whether each step is within its window, [T, batch]."""
        return _times(self) < self.lengths

    @property
    def is_last(self) -> Tensor:
        """Whether each step is the last of its window, [T, batch]."""
        return _times(self) == self.lengths - 1


def rescale(x: Tensor, epsilon: float) -> Tensor:
    """h(x) = sign(x)·(√(|x| + 1) − 1) + εx, in a form that is accurate near 0."""
    size = x.abs()
    return x.sign() * (size / ((size + 1.0).sqrt() + 1.0)) + epsilon * x


def unscale(x: Tensor, epsilon: float) -> Tensor:
    """The inverse of `rescale`, h⁻¹.

    The textbook form subtracts nearly equal numbers; this one does not. With
    s = √(1 + 4ε(|x| + 1 + ε)) and z = √(|h⁻¹(x)| + 1) − 1 = 2|x| / (s + 1 + 2ε), h⁻¹(x) is
    sign(x)·z·(z + 2).
    """
    size = x.abs()
    root = (1.0 + 4.0 * epsilon * (size + 1.0 + epsilon)).sqrt()
    z = 2.0 * size / (root + 1.0 + 2.0 * epsilon)
    return x.sign() * z * (z + 2.0)


def epsilon_greedy(q: Tensor, epsilon: float) -> Tensor:
    """π(a) = (1 − ε)·1[a = argmax q] + ε/|A|, ties to the first, [..., actions]."""
    policy = torch.full_like(q, epsilon / q.shape[-1])
    greedy = q.argmax(dim=-1, keepdim=True)
    return policy.scatter_(-1, greedy, 1.0 - epsilon + epsilon / q.shape[-1])


def chosen(values: Tensor, actions: Tensor) -> Tensor:
    """The values of the chosen actions, [T, batch, heads].

    Args:
        values: [T, batch, heads, actions].
        actions: [T, batch].
    """
    index = actions[..., None, None].expand(*values.shape[:-1], 1)
    return values.gather(-1, index).squeeze(-1)


def traced_returns(
    r_t: Tensor, discount: float, v_tp1: Tensor, baseline_tp1: Tensor, trace_t: Tensor
) -> Tensor:
    """G_t = r_t + γ·[v_{t+1} + κ_t·(G_{t+1} − b_{t+1})], backwards from κ = 0.

    With b = v and κ = λ this is the uncorrected λ-return; with b = q(a_{t+1}), that of Harutyunyan
    et al.; with κ = 0, the one-step return. Arguments broadcast against each other and have time
    first. The trace must be 0 where a window ends, and v must be 0 where the game ends.
    """
    returns = torch.zeros_like(v_tp1)
    following = torch.zeros_like(v_tp1[0])
    for t in reversed(range(len(v_tp1))):
        mixed = v_tp1[t] + trace_t[t] * (following - baseline_tp1[t])
        following = r_t[t] + discount * mixed
        returns[t] = following
    return returns


def n_step_returns(
    r_t: Tensor, discount: float, v_tp1: Tensor, is_last: Tensor, num_steps: int
) -> Tensor:
    """G_t = r_t + γ·(r_{t+1} + … γ·v_{t+n}), with fewer steps where a window ends.

    With n = 1 this is the one-step return; with n at least the window's length, the full return.
    """
    returns = r_t + discount * v_tp1
    for _ in range(num_steps - 1):
        following = torch.cat([returns[1:], returns[-1:]])
        returns = r_t + discount * torch.where(is_last, v_tp1, following)
    return returns


def targets(steps: Steps, selector_q: Tensor, q: Tensor, settings: ReturnSettings) -> Tensor:
    """h(G_t) under the target policy, [T, batch, heads]; no gradient flows through it.

    The values of the target network are unscaled and then averaged under the policy that is
    ε-greedy for the online network: v_t = Σ_a π(a)·h⁻¹(q(a)).

    Args:
        steps: trained steps.
        selector_q: values of the online network, [T + 1, batch, heads, actions].
        q: values of the target network, [T + 1, batch, heads, actions].
        settings: form and constants of the return.
    """
    with torch.no_grad():
        policy = epsilon_greedy(selector_q[1:], settings.target_epsilon)
        real_q = unscale(q[1:], settings.rescaling)
        # Steps after the end of a game do not belong to it and may hold anything.
        ends = (steps.is_last & steps.terminated).unsqueeze(-1)
        v_tp1 = (policy * real_q).sum(dim=-1).masked_fill(ends, 0.0)
        r_t = steps.rewards.unsqueeze(-1)
        is_last = steps.is_last.unsqueeze(-1)
        if settings.form == "n-step":
            returns = n_step_returns(r_t, settings.discount, v_tp1, is_last, settings.num_steps)
        else:
            trace_t = torch.full_like(r_t, settings.decay).masked_fill(is_last, 0.0)
            baseline_tp1 = v_tp1
            if settings.form != "peng":
                a_tp1 = _shifted(steps.actions)
                baseline_tp1 = chosen(real_q, a_tp1)
                if settings.form == "retrace":
                    ratio = chosen(policy, a_tp1) / _shifted(steps.behaviour).unsqueeze(-1)
                    trace_t = trace_t * ratio.clamp(max=1.0)
            returns = traced_returns(r_t, settings.discount, v_tp1, baseline_tp1, trace_t)
        return rescale(returns, settings.rescaling)


def td_errors(steps: Steps, q: Tensor, targets_t: Tensor) -> Tensor:
    """δ_t = h(G_t) − q(a_t), 0 for padding, [T, batch, heads].

    Args:
        steps: trained steps.
        q: values of the online network, differentiable, [T + 1, batch, heads, actions].
        targets_t: targets, [T, batch, heads].
    """
    errors = targets_t - chosen(q[:-1], steps.actions)
    return errors.masked_fill(~steps.is_valid.unsqueeze(-1), 0.0)


def priorities(steps: Steps, errors: Tensor, max_share: float, least: float) -> Tensor:
    """η·max_t|δ_t| + (1 − η)·mean_t|δ_t| of each head, averaged over heads, [batch].

    Args:
        steps: trained steps, for their lengths.
        errors: errors δ, 0 for padding, [T, batch, heads].
        max_share: η, the weight of the maximum.
        least: smallest priority.
    """
    sizes = errors.abs()
    mean = sizes.sum(dim=0) / steps.lengths.unsqueeze(-1)
    mixed = max_share * sizes.amax(dim=0) + (1.0 - max_share) * mean
    return mixed.mean(dim=-1).clamp(min=least)


def greedy_mean(steps: Steps, q: Tensor, epsilon: float) -> Tensor:
    """The mean of h⁻¹(max_a q_t(a)) over the trained steps and heads, a scalar.

    Args:
        steps: trained steps.
        q: values, [T + 1, batch, heads, actions].
        epsilon: constant of the rescaling h.
    """
    return unscale(q[:-1].amax(dim=-1)[steps.is_valid], epsilon).mean()


def _shifted(values: Tensor) -> Tensor:
    """The values of the next step; the last step has none, and a trace of 0."""
    return torch.cat([values[1:], values[-1:]])


def _times(steps: Steps) -> Tensor:
    return torch.arange(len(steps.actions), device=steps.actions.device).unsqueeze(-1)
