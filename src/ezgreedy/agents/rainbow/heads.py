"""The heads of a Rainbow network and their gradients, written out for a CPU.

An update of Rainbow consists of a few large products and a great many small operations between
them, which take longer to dispatch than to compute. Here a layer is arrays over the memory of its
parameters; one compiled function goes from logits to the gradients of the streams' outputs; and a
layer's gradients are its products. The results are those of `network` and autograd, up to the
order of sums. Needs torch and numba.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ezgreedy.agents.rainbow.network import NoisyLinear, RainbowNetwork
from ezgreedy.agents.rainbow.noise import Factors, NoisyBlocks
from ezgreedy.agents.rainbow.noisy_adam import Gradient
from ezgreedy.compilation import jit
from ezgreedy.requirements import IntArray

_Floats = NDArray[np.float32]


class HeadsPass(NamedTuple):
    """One pass through the heads, with the inputs of its gradients."""

    logits: Tensor  # [batch, actions, atoms]
    features: Tensor  # [batch, features]
    hidden: "dict[_Layer, Tensor]"  # outputs of each first layer, after its ReLU, [batch, units]
    noises: "dict[_Layer, Tensor]"  # noise of each layer


class LossGradient(NamedTuple):
    """The losses of a batch and their gradient in the streams' outputs."""

    losses: _Floats  # unweighted cross-entropy of each transition, [batch]
    of_outputs: dict[str, Tensor]  # for the weighted mean of the losses, [batch, rows · atoms]


class Heads:
    """Both streams of a network, over the memory of its parameters.

    Args:
        network: a network on a CPU; its parameters must stay where they are from now on.
    """

    def __init__(self, network: RainbowNetwork) -> None:
        self._network = network
        layers: dict[nn.Module, _Layer] = {}
        self._streams: dict[str, tuple[_Layer, _Layer]] = {}
        for name, (first, last) in network.streams_in_layers().items():
            for layer in (first, last):
                layers.setdefault(layer, _layer(layer))
            self._streams[name] = layers[first], layers[last]

    def run(self, *features: Tensor) -> list[HeadsPass]:
        """Passes of several batches, each with fresh noise, without autograd.

        Args:
            features: features from the torso, [batch, features] each.
        """
        noises = [self._draw() for _ in features]
        hidden: list[dict[_Layer, Tensor]] = [{} for _ in features]
        outputs: dict[str, list[Tensor]] = {}
        for name, (first, last) in self._streams.items():
            if first not in hidden[0]:  # streams may share it
                found = first.products(features, [drawn[first] for drawn in noises])
                for own, units in zip(hidden, found, strict=True):
                    own[first] = units.relu_()
            inputs = [own[first] for own in hidden]
            outputs[name] = last.products(inputs, [drawn[last] for drawn in noises])
        both = zip(outputs["value"], outputs["advantage"], strict=True)
        logits = [self._logits(value, advantage) for value, advantage in both]
        return list(map(HeadsPass, logits, features, hidden, noises))

    def _draw(self) -> "dict[_Layer, Tensor]":
        """Noise of one pass by layer, in the network's own order."""
        layers = dict.fromkeys(layer for stream in self._streams.values() for layer in stream)
        drawn = self._network.draw_noises() or [torch.empty(0)] * len(layers)
        return dict(zip(layers, drawn, strict=True))

    def _logits(self, value: Tensor, advantage: Tensor) -> Tensor:
        settings = self._network.settings
        logits = advantage.view(-1, settings.num_actions, settings.num_atoms)
        _combine(value.numpy(), logits.numpy())
        return logits

    def gradients(
        self, passed: HeadsPass, of_outputs: Mapping[str, Tensor]
    ) -> tuple[Tensor, list[Gradient]]:
        """The gradients of the features and of all parameters.

        Args:
            passed: the pass.
            of_outputs: the gradients of each stream's outputs, [batch, rows · atoms].
        """
        gradients: list[Gradient] = []
        deltas = {first: torch.zeros_like(hidden) for first, hidden in passed.hidden.items()}
        for name, (first, last) in self._streams.items():
            delta, noise = of_outputs[name], passed.noises[last]
            gradients += last.gradients(passed.hidden[first], delta, noise)
            last.add_back(delta, noise, deltas[first])
        of_features = torch.zeros_like(passed.features)
        for first, delta in deltas.items():
            delta.mul_(passed.hidden[first] > 0.0)
            gradients += first.gradients(passed.features, delta, passed.noises[first])
            first.add_back(delta, passed.noises[first], of_features)
        return of_features, gradients


class _Plain:
    """A linear layer without noise."""

    def __init__(self, layer: nn.Linear) -> None:
        self._parameters: tuple[Any, Any] = (layer.weight, layer.bias)  # not known as parameters
        self._weight, self._bias = layer.weight.detach(), layer.bias.detach()

    def products(self, inputs: Sequence[Tensor], _: Sequence[Tensor]) -> list[Tensor]:
        return [torch.addmm(self._bias, each, self._weight.t()) for each in inputs]

    def add_back(self, delta: Tensor, _: Tensor, of_inputs: Tensor) -> None:
        of_inputs.addmm_(delta, self._weight)

    def gradients(self, inputs: Tensor, delta: Tensor, _: Tensor) -> list[Gradient]:
        weight, bias = self._parameters
        return [
            Gradient(weight, delta.t() @ inputs),
            Gradient(bias, delta.sum(dim=0).unsqueeze(1)),
        ]


class _Noisy:
    """A noisy linear layer; noise is ε_in, then ε_out."""

    def __init__(self, layer: NoisyLinear) -> None:
        self._layer = layer
        self._blocks = NoisyBlocks(layer.weight_mean, layer.weight_sigma)
        self._bias_sigma = layer.bias_sigma.detach()
        self._bias_mean = None if layer.bias_mean is None else layer.bias_mean.detach()
        self._sizes = layer.weight_mean.shape[::-1]

    def products(self, inputs: Sequence[Tensor], noises: Sequence[Tensor]) -> list[Tensor]:
        pairs = zip(inputs, noises, strict=True)
        return self._blocks.products([Factors(x, self._bias(noise), noise) for x, noise in pairs])

    def _bias(self, noise: Tensor) -> Tensor:
        bias = self._bias_sigma * noise[self._sizes[0] :]
        return bias if self._bias_mean is None else bias.add_(self._bias_mean)

    def add_back(self, delta: Tensor, noise: Tensor, of_inputs: Tensor) -> None:
        self._blocks.add_back(delta, noise, of_inputs)

    def gradients(self, inputs: Tensor, delta: Tensor, noise: Tensor) -> list[Gradient]:
        layer = self._layer
        noise_in, noise_out = noise.split_with_sizes(self._sizes)
        of_weight, of_bias = delta.t() @ inputs, delta.sum(dim=0).unsqueeze(1)
        gradients = [
            Gradient(layer.weight_mean, of_weight),
            Gradient(layer.weight_sigma, of_weight, noise_out, noise_in),
            Gradient(layer.bias_sigma, of_bias, noise_out),
        ]
        if layer.bias_mean is not None:
            gradients.append(Gradient(layer.bias_mean, of_bias))
        return gradients


_Layer = _Plain | _Noisy


def _layer(layer: nn.Module) -> _Layer:
    if isinstance(layer, NoisyLinear):
        return _Noisy(layer)
    assert isinstance(layer, nn.Linear)
    return _Plain(layer)


def target_distribution(
    r_t: _Floats, discount_t: _Floats, logits_t: Tensor, a_t: Tensor, atoms: Tensor
) -> _Floats:
    """The projection of R + D·z under p(s_t, a_t), as in `targets.projection`, [batch, atoms].

    Args:
        r_t: n-step returns R, [batch].
        discount_t: n-step discounts D, [batch].
        logits_t: logits of the target network, [batch, actions, atoms].
        a_t: the actions that it values, [batch].
        atoms: the atoms, [atoms].
    """
    target = np.zeros((len(r_t), len(atoms)), dtype=np.float32)
    _project(r_t, discount_t, logits_t.numpy(), a_t.numpy(), atoms.numpy(), target)
    return target


def loss_gradient(
    logits_tm1: Tensor, a_tm1: IntArray, target: _Floats, weights: _Floats
) -> LossGradient:
    """The cross-entropy to targets, and the gradient of its weighted mean over the batch.

    Args:
        logits_tm1: logits, [batch, actions, atoms].
        a_tm1: actions, [batch].
        target: distributions over the atoms, [batch, atoms].
        weights: weight of each transition, [batch].
    """
    batch, actions, atoms = logits_tm1.shape
    losses = np.empty(batch, dtype=np.float32)
    of_value = np.empty((batch, atoms), dtype=np.float32)
    of_advantage = np.empty((batch, actions, atoms), dtype=np.float32)
    _descend(logits_tm1.numpy(), a_tm1, target, weights, losses, of_value, of_advantage)
    advantage = torch.from_numpy(of_advantage).view(batch, -1)
    return LossGradient(losses, {"value": torch.from_numpy(of_value), "advantage": advantage})


@jit
def _combine(value: _Floats, advantage: _Floats) -> None:
    """advantage[a] becomes value + advantage[a] − mean of advantage, [batch, actions, atoms]."""
    batch, num_actions, num_atoms = advantage.shape
    even = np.float32(1.0 / num_actions)
    shift = np.empty(num_atoms, dtype=np.float32)
    for row in range(batch):
        shift[:] = 0.0
        for action in range(num_actions):
            for atom in range(num_atoms):
                shift[atom] += advantage[row, action, atom]
        for atom in range(num_atoms):
            shift[atom] = value[row, atom] - shift[atom] * even
        for action in range(num_actions):
            for atom in range(num_atoms):
                advantage[row, action, atom] += shift[atom]


@jit
def _project(
    returns: _Floats,
    discounts: _Floats,
    logits: _Floats,
    actions: IntArray,
    atoms: _Floats,
    target: _Floats,
) -> None:
    """Every position's mass goes to its two neighbours among the atoms."""
    num_atoms = len(atoms)
    first, last = atoms[0], atoms[num_atoms - 1]
    scale = np.float32(num_atoms - 1) / (last - first)
    exponentials = np.empty(num_atoms, dtype=np.float32)
    for row in range(len(returns)):
        chosen = logits[row, actions[row]]
        largest = chosen.max()
        total = np.float32(0.0)
        for atom in range(num_atoms):
            exponentials[atom] = np.exp(chosen[atom] - largest)
            total += exponentials[atom]
        for atom in range(num_atoms):
            position = returns[row] + discounts[row] * atoms[atom]
            place = (np.minimum(np.maximum(position, first), last) - first) * scale
            lower = np.minimum(np.int64(place), np.int64(num_atoms - 2))
            share = place - np.float32(lower)
            mass = exponentials[atom] / total
            target[row, lower] += mass * (np.float32(1.0) - share)
            target[row, lower + 1] += mass * share


@jit
def _descend(
    logits: _Floats,
    actions: IntArray,
    target: _Floats,
    weights: _Floats,
    losses: _Floats,
    of_value: _Floats,
    of_advantage: _Floats,
) -> None:
    """Logits = v + adv − mean of adv, so v gets the whole gradient and the actions share it."""
    batch, num_actions, num_atoms = logits.shape
    even = np.float32(1.0 / num_actions)
    for row in range(batch):
        chosen = logits[row, actions[row]]
        largest = chosen.max()
        total = np.float32(0.0)
        for atom in range(num_atoms):
            of_value[row, atom] = np.exp(chosen[atom] - largest)
            total += of_value[row, atom]
        log_total = largest + np.log(total)
        mass, loss = np.float32(0.0), np.float32(0.0)
        for atom in range(num_atoms):
            mass += target[row, atom]
            loss -= target[row, atom] * (chosen[atom] - log_total)
        losses[row] = loss
        factor = weights[row] / np.float32(batch)
        for atom in range(num_atoms):
            slope = of_value[row, atom] / total * mass - target[row, atom]
            of_value[row, atom] = slope * factor
        for action in range(num_actions):
            share = np.float32(action == actions[row]) - even
            for atom in range(num_atoms):
                of_advantage[row, action, atom] = share * of_value[row, atom]
