"""The convolutions of a network over byte frames, computed once for each distinct field.

`Torso` is a stack of convolutions and ReLUs like any other: its parameters, its results and its
gradients are those of `nn.Conv2d`, up to the order of sums. On a CPU it first finds the distinct
receptive fields of its frames (`distinct_fields`) and multiplies only those. In the forward pass,
each layer is one matrix product of its distinct patches; in the backward pass, the gradients of all
places where a field is seen are added up before the products. Frames with little to share, and
other devices, use torch's own convolutions. Needs torch and numba.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ezgreedy import requirements as require
from ezgreedy.compilation import jit
from ezgreedy.learning.distinct_fields import Fields, Origins, find_fields
from ezgreedy.learning.settings import Convolution

# With more distinct fields than this in the first layer, torch's convolutions are as fast. Where
# fields do not overlap, patches take no more memory than the frames, and are always faster.
LARGEST_SHARE = 0.5

_Floats = NDArray[np.float32]


class Torso(nn.Sequential):
    """Convolutions over byte frames, each followed by a ReLU; the features are flat.

        torso = Torso((4, 84, 84), ATARI_TORSO)
        features = torso(frames)  # uint8 [states, 4, 84, 84] -> float32 [states, 3136]

    Args:
        input_shape: shape of a state, [planes, height, width].
        convolutions: the layers, first to last.
        largest_pixel: divisor of bytes.
        generator: random generator of the initial parameters; torch's own generator if None.
        largest_share: use torch's convolutions if a larger share of the first layer's fields is
            distinct; 0 to use them always, None for the fastest.
    """

    def __init__(
        self,
        input_shape: tuple[int, int, int],
        convolutions: Sequence[Convolution],
        *,
        largest_pixel: float = 255.0,
        generator: torch.Generator | None = None,
        largest_share: float | None = None,
    ) -> None:
        channels, height, width = input_shape
        layers: list[nn.Module] = []
        for row in convolutions:
            layer = nn.Conv2d(channels, row.channels, row.size, row.stride, device="meta")
            layer.to_empty(device="cpu")
            initialise(layer, channels * row.size**2, generator)
            layers += [layer, nn.ReLU(inplace=True)]
            channels = row.channels
            height, width = ((n - row.size) // row.stride + 1 for n in (height, width))
            if height < 1 or width < 1:
                raise require.refuse("torso", f"fit {input_shape}", tuple(convolutions))
        super().__init__(*layers)
        self.input_shape = input_shape
        self.convolutions = tuple(convolutions)
        self.largest_pixel = largest_pixel
        if largest_share is None:
            overlaps = any(row.size > row.stride for row in convolutions)
            largest_share = LARGEST_SHARE if overlaps else 1.0
        self.largest_share = require.number("largest_share", largest_share, 0.0, 1.0)
        self.num_features = channels * height * width

    def forward(self, frames: Tensor) -> Tensor:
        """Features, [states, num_features].

        Args:
            frames: the frames, uint8, [states, *input_shape].
        """
        fields = self.fields(frames)
        if fields is None:
            return self.dense(frames)
        return self.of_fields(fields)[0] if torch.is_grad_enabled() else self.of_second(fields)

    def fields(self, frames: Tensor, split: int | None = None) -> Fields | None:
        """The distinct fields of some frames; None where torch's convolutions are as fast.

        Args:
            frames: the frames, uint8, [states, *input_shape].
            split: number of states in the first group, whose features are differentiable; all
                if None, none without gradients.
        """
        if split is None:
            split = len(frames) if torch.is_grad_enabled() else 0
        if tuple(frames.shape[1:]) != tuple(self.input_shape):
            rule = f"have shape [states, {', '.join(map(str, self.input_shape))}]"
            raise require.refuse("frames", rule, tuple(frames.shape))
        if not len(frames) or self.largest_share == 0.0 or frames.device.type != "cpu":
            return None
        return find_fields(frames.numpy(), self.convolutions, split, self.largest_share)

    def of_fields(self, fields: Fields) -> tuple[Tensor, Tensor]:
        """Features of the first group, which are differentiable, and of the second, which are not.

        Args:
            fields: the fields that `fields` found.
        """
        apply: Any = _Distinct.apply  # without annotations in some versions of torch
        return cast(tuple[Tensor, Tensor], apply(self, fields, *self.parameters()))

    @torch.no_grad()
    def of_second(self, fields: Fields) -> Tensor:
        """Features of the second group only, not differentiable."""
        layers = _forward(self, fields, tuple(self.parameters()), starts_with_second=True)
        return _features(fields, layers[-1].outputs, fields.split, len(fields.frames))

    def dense(self, frames: Tensor) -> Tensor:
        """The same features by torch's own convolutions."""
        # One product takes a fraction of a conversion and a division.
        pixels = frames * (1.0 / self.largest_pixel)
        if len(self.convolutions) > 1:
            # Deep torsos are faster with the channels of a pixel side by side; a single
            # convolution does not earn back the rearrangement.
            pixels = pixels.contiguous(memory_format=torch.channels_last)
        for layer in self:
            pixels = layer(pixels)
        return pixels.flatten(1)


class _Layer:
    """One layer's pass: its patches, its weight in their order, and its outputs."""

    def __init__(self, patches: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.patches = patches  # [distinct, inputs]
        self.weight = weight  # [channels, inputs]
        self.outputs = torch.addmm(bias, patches, weight.t()).relu_()


def _forward(
    torso: Torso, fields: Fields, parameters: tuple[Tensor, ...], *, starts_with_second: bool
) -> list[_Layer]:
    """All layers, over all fields or over those of the second group only."""
    layers: list[_Layer] = []
    for depth, row in enumerate(torso.convolutions):
        weight, bias = parameters[2 * depth : 2 * depth + 2]
        found = fields.layers[depth]
        begin = found.second if starts_with_second else 0
        origins = found.origins[begin:]
        patches = np.empty((len(origins), weight[0].numel()), dtype=_dtype(weight))
        if depth == 0:
            offsets = _offsets(fields.frames.shape[1:], row.size)
            scale = patches.dtype.type(1.0 / torso.largest_pixel)
            _copy_pixels(fields.frames.reshape(-1), origins, offsets, scale, patches)
            flat = weight.flatten(1)
        else:
            below = fields.layers[depth - 1]
            sources = layers[-1].outputs.numpy()
            offsets = _offsets((1, *below.ids.shape[1:]), row.size)
            first = below.second if starts_with_second else 0
            _copy_rows(sources, below.ids.reshape(-1), origins, offsets, first, patches)
            flat = weight.permute(0, 2, 3, 1).flatten(1)
        layers.append(_Layer(torch.from_numpy(patches), flat.detach(), bias.detach()))
    return layers


def _features(fields: Fields, outputs: Tensor, begin: int, end: int) -> Tensor:
    """The last layer's outputs at every place of some states, [states, channels · places]."""
    last = fields.layers[-1]
    ids = last.ids.reshape(len(last.ids), -1)[begin:end]
    first = 0 if len(outputs) == last.num_distinct else last.second
    features = np.empty((len(ids), outputs.shape[1], ids.shape[1]), dtype=_dtype(outputs))
    _spread(outputs.numpy(), ids, first, features)
    return torch.from_numpy(features).flatten(1)


class _Distinct(torch.autograd.Function):
    """Features of both groups; only the first group's have a gradient."""

    @staticmethod
    def forward(
        ctx: Any, torso: Torso, fields: Fields, *parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        layers = _forward(torso, fields, parameters, starts_with_second=False)
        outputs = layers[-1].outputs
        first = _features(fields, outputs, 0, fields.split)
        second = _features(fields, outputs, fields.split, len(fields.frames))
        ctx.mark_non_differentiable(second)
        ctx.torso, ctx.fields, ctx.layers = torso, fields, layers
        return first, second

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, delta: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        torso, fields, layers = ctx.torso, ctx.fields, ctx.layers
        last = fields.layers[-1]
        ids = last.ids.reshape(len(last.ids), -1)[: fields.split]
        of_outputs = np.zeros((last.first, layers[-1].outputs.shape[1]), dtype=_dtype(delta))
        _add_up(delta.contiguous().view(len(ids), of_outputs.shape[1], -1).numpy(), ids, of_outputs)
        gradients: list[Tensor] = []
        for depth in reversed(range(len(layers))):
            layer, num_rows = layers[depth], fields.layers[depth].first
            of_sums = torch.from_numpy(of_outputs)
            of_sums.mul_(layer.outputs[:num_rows] > 0.0)
            of_weight = of_sums.t() @ layer.patches[:num_rows]
            gradients += [of_sums.sum(dim=0), _like_weight(of_weight, torso, depth)]
            if depth:
                below, row = fields.layers[depth - 1], torso.convolutions[depth]
                of_patches = (of_sums @ layer.weight).numpy()
                channels = layers[depth - 1].outputs.shape[1]
                of_outputs = np.zeros((below.first, channels), dtype=_dtype(delta))
                offsets = _offsets((1, *below.ids.shape[1:]), row.size)
                origins = fields.layers[depth].origins[:num_rows]
                _add_rows(of_patches, below.ids.reshape(-1), origins, offsets, of_outputs)
        return None, None, *reversed(gradients)


def _like_weight(gradient: Tensor, torso: Torso, depth: int) -> Tensor:
    """A gradient in the order of patches as one in the order of the parameter."""
    size = torso.convolutions[depth].size
    if depth == 0:
        return gradient.view(len(gradient), -1, size, size)
    return gradient.view(len(gradient), size, size, -1).permute(0, 3, 1, 2).contiguous()


@cache
def _offsets(shape: tuple[int, ...], size: int) -> NDArray[np.uint64]:
    """Offsets of a field's elements from its origin: planes, then rows, columns."""
    planes, rows, columns = shape
    side = np.arange(size)
    plane = np.arange(planes)[:, None, None] * (rows * columns)
    return (plane + side[:, None] * columns + side).reshape(-1).astype(np.uint64)


def _dtype(tensor: Tensor) -> Any:
    """NumPy's name for a tensor's type: float32, or float64 for checks to more digits."""
    return np.float64 if tensor.dtype == torch.float64 else np.float32


@jit
def _copy_pixels(
    pixels: NDArray[np.uint8],
    origins: Origins,
    offsets: Origins,
    scale: np.float32,
    patches: _Floats,
) -> None:
    for row in range(len(origins)):
        for column in range(len(offsets)):
            pixel = pixels[origins[row] + offsets[column]]
            patches[row, column] = scale * pixel


@jit
def _copy_rows(
    sources: _Floats,
    ids: NDArray[np.int32],
    origins: Origins,
    offsets: Origins,
    first: int,
    patches: _Floats,
) -> None:
    """The rows of the layer below that make up a field, side by side."""
    size = sources.shape[1]
    for row in range(len(origins)):
        for index in range(len(offsets)):
            source = ids[origins[row] + offsets[index]] - first
            begin = index * size
            for column in range(size):
                patches[row, begin + column] = sources[source, column]


@jit
def _add_rows(
    patches: _Floats,
    ids: NDArray[np.int32],
    origins: Origins,
    offsets: Origins,
    sums: _Floats,
) -> None:
    """The reverse of `_copy_rows`: adds every row to the place it came from."""
    size = sums.shape[1]
    for row in range(len(origins)):
        for index in range(len(offsets)):
            target = ids[origins[row] + offsets[index]]
            begin = index * size
            for column in range(size):
                sums[target, column] += patches[row, begin + column]


@jit
def _spread(outputs: _Floats, ids: NDArray[np.int32], first: int, features: _Floats) -> None:
    for state in range(len(ids)):
        for place in range(ids.shape[1]):
            source = ids[state, place] - first
            for channel in range(outputs.shape[1]):
                features[state, channel, place] = outputs[source, channel]


@jit
def _add_up(features: _Floats, ids: NDArray[np.int32], sums: _Floats) -> None:
    """The reverse of `_spread`."""
    for state in range(len(ids)):
        for place in range(ids.shape[1]):
            target = ids[state, place]
            for channel in range(sums.shape[1]):
                sums[target, channel] += features[state, channel, place]


def initialise(layer: nn.Module, fan_in: int, generator: torch.Generator | None) -> None:
    """Weights and biases from U(±1/√fan_in), torch's own law, without torch's own generator.

    Layers come here without values, from the meta device, so that nothing draws from that one.
    """
    bound = 1.0 / math.sqrt(fan_in)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
