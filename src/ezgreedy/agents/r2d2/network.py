"""The network of R2D2: convolutions, a memory, a duelling head; or several heads over one torso.

Observations, previous actions and previous rewards in, rescaled values of every action out. Time
comes first, then lanes or windows. A bootstrapped network computes its heads in stacked matrix
products; a plain one is the same with a single head. Initial parameters come from the generator
passed to the network.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ezgreedy import requirements as require
from ezgreedy.agents.r2d2.learner_settings import RecurrentNetworkSettings
from ezgreedy.learning.torso import Torso
from ezgreedy.replay.sequence_batch import NO_ACTION


class State(NamedTuple):
    """LSTM state between two observations: [batch, memory] or [batch, heads, memory] each."""

    h: Tensor
    c: Tensor

    def restarted(self, starts: Tensor) -> "State":
        """The state with zeros where an episode starts (bool, [batch])."""
        rows = starts.view(-1, *[1] * (self.h.ndim - 1))
        return State(self.h.masked_fill(rows, 0.0), self.c.masked_fill(rows, 0.0))


class StackedLinear(nn.Module):
    """Linear layers of the same shape, one for each head.

    Args:
        num_heads: number of heads.
        num_inputs: number of input features.
        num_outputs: number of output features.
        generator: random generator of the initial parameters, U(±1/√num_inputs).
    """

    def __init__(
        self, num_heads: int, num_inputs: int, num_outputs: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(num_inputs)
        self.weight = _uniform((num_heads, num_outputs, num_inputs), bound, generator)
        self.bias = _uniform((num_heads, num_outputs), bound, generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """Outputs of every head, [heads, rows, outputs].

        Args:
            inputs: [heads, rows, inputs], or [1, rows, inputs] to share among all heads.
        """
        if len(inputs) > 1:
            return torch.baddbmm(self.bias.unsqueeze(1), inputs, self.weight.mT)
        outputs = functional.linear(inputs[0], self.weight.flatten(0, 1), self.bias.flatten())
        return outputs.view(-1, *self.bias.shape).transpose(0, 1)


class StackedMemory(nn.Module):
    """LSTMs of the same shape, one for each head.

    Args:
        num_heads: number of heads.
        num_inputs: number of input features.
        size: units of each LSTM.
        forget_bias: initial bias of the forget gates; all else is drawn from U(±1/√size).
        generator: random generator of the initial parameters.
    """

    def __init__(
        self,
        num_heads: int,
        num_inputs: int,
        size: int,
        forget_bias: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.size = size
        bound = 1.0 / math.sqrt(size)
        # Gates in torch's order: input, forget, cell, output.
        self.weight_ih = _uniform((num_heads, 4 * size, num_inputs), bound, generator)
        self.weight_hh = _uniform((num_heads, 4 * size, size), bound, generator)
        self.bias_ih = _uniform((num_heads, 4 * size), bound, generator)
        self.bias_hh = _uniform((num_heads, 4 * size), bound, generator)
        with torch.no_grad():
            self.bias_ih[:, size : 2 * size] = forget_bias
            self.bias_hh[:, size : 2 * size] = 0.0

    def forward(self, inputs: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs [heads, T, batch, memory], and h and c after the last.

        Args:
            inputs: [heads, T, batch, inputs].
            h: [heads, batch, memory].
            c: [heads, batch, memory].
        """
        if inputs.shape[1] == 1:
            h, c = self._step(inputs[:, 0], h, c)
            return h.unsqueeze(1), h, c
        # Torch's own loop over time is faster than ours, by more than stacking heads would gain.
        parameters = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        weights = zip(*(parameter.unbind() for parameter in parameters), strict=True)
        each = zip(inputs.unbind(), h.unbind(), c.unbind(), weights, strict=True)
        unrolled = [_unroll(*head) for head in each]
        outputs, h_n, c_n = (torch.stack(parts) for parts in zip(*unrolled, strict=True))
        return outputs, h_n, c_n

    def _step(self, inputs: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """One step of all heads at once, for acting."""
        bias = (self.bias_ih + self.bias_hh).unsqueeze(1)
        gates = torch.baddbmm(bias, inputs, self.weight_ih.mT)
        gates = torch.baddbmm(gates, h, self.weight_hh.mT)
        i, f, g, o = gates.chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class RecurrentNetwork(nn.Module):
    """Torso, features, LSTM over features and the last action and reward, duelling streams.

    Q = V + A − mean_a A for each head.

    Args:
        settings: architecture of the network.
        generator: CPU random generator of the initial parameters.
    """

    def __init__(self, settings: RecurrentNetworkSettings, generator: torch.Generator) -> None:
        super().__init__()
        self.settings = settings
        self.torso = Torso(
            settings.sight, settings.torso, padding=settings.padding, generator=generator
        )
        num_heads = settings.num_streams
        num_memories = 1 if settings.shares_memory else num_heads
        self.features = StackedLinear(
            num_memories, self.torso.num_features, settings.feature_size, generator
        )
        num_inputs = settings.feature_size + settings.num_actions + 1
        self.memory = StackedMemory(
            num_memories, num_inputs, settings.memory_size, settings.forget_bias, generator
        )
        self.streams = nn.ModuleDict()
        for name, outputs in {"value": 1, "advantage": settings.num_actions}.items():
            self.streams[name] = nn.Sequential(
                StackedLinear(num_heads, settings.memory_size, settings.hidden_size, generator),
                nn.ReLU(inplace=True),
                StackedLinear(num_heads, settings.hidden_size, outputs, generator),
            )

    def initial_state(self, batch_size: int) -> State:
        """The LSTM state at the start of an episode: zeros."""
        zeros = self.features.weight.new_zeros((batch_size, *self.settings.state_shape))
        return State(zeros, zeros.clone())

    def forward(
        self, observations: Tensor, actions: Tensor, rewards: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """Rescaled values, [T, batch, (heads,) actions], and the state after the last.

        Heads have an axis if the network is bootstrapped.

        Args:
            observations: bytes, codes or float32, [T, batch, ...].
            actions: action before each observation, −1 where an episode starts, [T, batch].
            rewards: reward of that action, [T, batch].
            state: LSTM state before the first observation.
        """
        return self.values(self.look(observations), actions, rewards, state)

    def step(
        self, observations: Tensor, actions: Tensor, rewards: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """One step of all lanes: `forward` without the axis of time."""
        q, following = self(observations[None], actions[None], rewards[None], state)
        return q[0], following

    def look(self, observations: Tensor) -> Tensor:
        """The torso's features, [T, batch, features], which depend on nothing else.

        Args:
            observations: bytes, codes or float32, [T, batch, ...].
        """
        shape = self.settings.sight.shape
        if observations.shape[2:] != shape:
            rule = f"have shape [T, batch, {', '.join(map(str, shape))}]"
            raise require.refuse("observations", rule, tuple(observations.shape))
        frames = observations.flatten(0, 1)
        return self.torso(frames).view(*observations.shape[:2], self.torso.num_features)

    def values(
        self, features: Tensor, actions: Tensor, rewards: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """`forward` from the features of the observations."""
        outputs, following = self._remember(features, actions, rewards, state)
        q = self._values(outputs.flatten(1, 2))
        q = q.reshape(*features.shape[:2], *q.shape[1:])
        return (q.squeeze(2) if self.settings.num_heads is None else q), following

    def advance(self, features: Tensor, actions: Tensor, rewards: Tensor, state: State) -> State:
        """The LSTM state after observations with these features, without values: for prefixes."""
        return self._remember(features, actions, rewards, state)[1]

    def _remember(
        self, features: Tensor, actions: Tensor, rewards: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """Outputs of the LSTMs, [memories, T, batch, memory], and the state after them."""
        settings = self.settings
        if not settings.shares_memory:
            features = self._share(features)
        seen = functional.relu(self.features(features.flatten(0, 1).unsqueeze(0)))
        if settings.reward_input == "tanh":
            rewards = rewards.tanh()
        if not settings.has_memory:
            actions, rewards = torch.full_like(actions, NO_ACTION), torch.zeros_like(rewards)
        # "No action" is a row of zeros: its one-hot column is dropped.
        done = functional.one_hot(actions.flatten() + 1, settings.num_actions + 1)[:, 1:]
        extras = torch.cat([done.to(seen.dtype), rewards.reshape(-1, 1)], dim=1)
        inputs = torch.cat([seen, extras.expand(len(seen), -1, -1)], dim=2)
        h, c = (_heads_first(part, settings.state_shape) for part in state)
        over_time = inputs.view(len(inputs), *features.shape[:2], -1)
        if settings.has_memory:
            outputs, h, c = self.memory(over_time, h, c)
        else:
            outputs = self._forgetful(over_time)
        following = State(
            *(part.transpose(0, 1).reshape(-1, *settings.state_shape) for part in (h, c))
        )
        return outputs, following

    def _forgetful(self, inputs: Tensor) -> Tensor:
        """Outputs of the LSTMs for each step by itself, [memories, T, batch, memory]."""
        steps = inputs.flatten(1, 2).unsqueeze(1)
        zeros = inputs.new_zeros((len(inputs), steps.shape[2], self.settings.memory_size))
        return self.memory(steps, zeros, zeros)[0].view(*inputs.shape[:3], -1)

    def _values(self, outputs: Tensor) -> Tensor:
        """Q, [rows, heads, actions], from [memories, rows, memory]."""
        if self.settings.shares_memory:
            outputs = self._share(outputs)
        value, advantage = self.streams["value"](outputs), self.streams["advantage"](outputs)
        return (value + advantage - advantage.mean(dim=2, keepdim=True)).transpose(0, 1)

    def _share(self, shared: Tensor) -> Tensor:
        """Make gradients below here means over heads, not sums (Osband et al., 2016)."""
        num_heads = self.settings.num_streams
        if shared.requires_grad and num_heads > 1:
            shared.register_hook(lambda gradient: gradient / num_heads)  # type: ignore[no-untyped-call]
        return shared


def _unroll(
    inputs: Tensor, h: Tensor, c: Tensor, weights: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """One head's LSTM over time: outputs [T, batch, memory], and h and c after them."""
    state = (h.unsqueeze(0).contiguous(), c.unsqueeze(0).contiguous())
    outputs, h_n, c_n = torch.lstm(
        inputs.contiguous(), state, list(weights), True, 1, 0.0, False, False, False
    )
    return outputs, h_n[0], c_n[0]


def _heads_first(part: Tensor, state_shape: tuple[int, ...]) -> Tensor:
    """[batch, memory] or [batch, heads, memory] as [memories, batch, memory]."""
    if part.shape[1:] != state_shape:
        rule = f"have shape [batch, {', '.join(map(str, state_shape))}]"
        raise require.refuse("state", rule, tuple(part.shape))
    return part.unsqueeze(0) if len(state_shape) == 1 else part.transpose(0, 1)


def _uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))
