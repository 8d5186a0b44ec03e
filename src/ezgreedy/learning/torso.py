"""The convolutions of a network over frames, computed once for each distinct receptive field.

`Torso` is a stack of convolutions and ReLUs like any other: its parameters, its results and its
gradients are those of `nn.Conv2d`, up to the order of sums. On a CPU it first finds the distinct
receptive fields of its frames (`distinct_fields`) and multiplies only those. In the forward pass,
each layer is a matrix product of its distinct patches; in the backward pass, the gradients of all
places where a field is seen are added up before the products. Frames with little to share, and
other devices, use torch's own convolutions. Needs torch and numba.

All layers work alike. A layer looks at an array of numbers, and a number stands for a row of
values: in the first layer for the colours of a pixel, in the others for the outputs of a field of
the layer below. A patch is the rows of its numbers side by side.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
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
from ezgreedy.learning.layers import convolutions as stack
from ezgreedy.learning.seeing import Seeing, seen_values
from ezgreedy.learning.settings import Convolution, Sight
from ezgreedy.requirements import IntArray

# With more distinct fields than this in the first layer, torch's convolutions are as fast. Where
# fields do not overlap, patches take no more memory than the frames, and are always faster.
LARGEST_SHARE = 0.5

# Patches are made so many bytes at a time, so that they stay in the processor's cache. They are
# made again in the backward pass, which is faster than keeping them, and takes no memory.
_BLOCK_BYTES = 1 << 20

# Frames through torch's convolutions at once without gradients; bounds memory.
_FRAMES_AT_ONCE = 1024

_Floats = NDArray[np.float32]


class Torso(nn.Sequential):
    """Convolutions over frames, each followed by a ReLU; the features are flat.

        torso = Torso(Sight((4, 84, 84)), ATARI_TORSO)
        features = torso(frames)  # uint8 [states, 4, 84, 84] -> float32 [states, 3136]

    Its layers are `seeing`, which has no parameters, and then those of a plain stack by their usual
    names: 0, 1, 2, …

    Args:
        sight: format of the observations; vectors pass through.
        convolutions: the layers, first to last; none for vectors.
        padding: "valid" for none, "same" for outputs of ⌈input / stride⌉.
        generator: random generator of the initial parameters; torch's own generator if None.
        largest_share: use torch's convolutions if a larger share of the first layer's fields is
            distinct; 0 to use them always, None for the fastest.
    """

    seeing: Seeing

    def __init__(
        self,
        sight: Sight,
        convolutions: Sequence[Convolution],
        *,
        padding: str = "valid",
        generator: torch.Generator | None = None,
        largest_share: float | None = None,
    ) -> None:
        rows = tuple(convolutions)
        layers, num_features = stack(sight.input_shape, rows, padding, generator)
        super().__init__(OrderedDict(seeing=Seeing(sight), **dict(layers.named_children())))
        self.sight = sight
        self.convolutions = rows
        self.num_features = num_features
        self.has_padding = padding != "valid"
        if largest_share is None:
            overlaps = any(row.size > row.stride for row in rows)
            largest_share = LARGEST_SHARE if overlaps else 1.0
            if len(rows) < 2:  # a single small layer has little to share
                largest_share = 0.0
        self.largest_share = require.number("largest_share", largest_share, 0.0, 1.0)

    def forward(self, frames: Tensor) -> Tensor:
        """Features, [states, num_features].

        Args:
            frames: the frames, bytes or codes of colours, [states, *sight.shape].
        """
        fields = self.fields(frames)
        if fields is None:
            return self.dense(frames)
        return self.of_fields(fields)[0] if torch.is_grad_enabled() else self.of_second(fields)

    def fields(
        self,
        frames: Tensor,
        split: int | None = None,
        *,
        rows: IntArray | None = None,
        lanes: int = 1,
    ) -> Fields | None:
        """The distinct fields of some frames; None where torch's convolutions are as fast.

        Args:
            frames: the frames, bytes or codes of colours, [any number, *sight.shape].
            split: number of states in the first group, whose features are differentiable; all
                if None, none without gradients.
            rows: which frames are the states, in their order; all of them if None.
            lanes: a state is probably most like the one so many before it. Matters only for speed.
        """
        shape = self.sight.shape
        if tuple(frames.shape[1:]) != shape:
            rule = f"have shape [states, {', '.join(map(str, shape))}]"
            raise require.refuse("frames", rule, tuple(frames.shape))
        is_here = frames.device.type == "cpu" and not frames.is_floating_point()
        num_states = len(frames) if rows is None else len(rows)
        if not (is_here and num_states and self.largest_share) or self.has_padding:
            return None
        if split is None:
            split = num_states if torch.is_grad_enabled() else 0
        pixels = frames.numpy()
        pixels = pixels.view(np.uint16) if pixels.dtype == np.int16 else pixels
        return find_fields(
            pixels, self.convolutions, split, self.largest_share, rows=rows, lanes=lanes
        )

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
        return _features(fields, layers[-1].outputs, slice(fields.split, None))

    def dense(self, frames: Tensor) -> Tensor:
        """The same features by torch's own convolutions."""
        if torch.is_grad_enabled() or len(frames) <= _FRAMES_AT_ONCE:
            return self._dense(frames)
        starts = range(0, len(frames), _FRAMES_AT_ONCE)
        return torch.cat([self._dense(frames[i : i + _FRAMES_AT_ONCE]) for i in starts])

    def _dense(self, frames: Tensor) -> Tensor:
        seeing, *layers = self
        pixels = seeing(frames)
        if len(self.convolutions) > 1:
            # Deep torsos are faster with the channels of a pixel side by side; a single
            # convolution does not earn back the rearrangement.
            pixels = pixels.contiguous(memory_format=torch.channels_last)
        for layer in layers:
            pixels = layer(pixels)
        return pixels.flatten(1)


class _Layer:
    """One layer's pass over its distinct fields from some number on.

    Args:
        fields: the distinct fields of all layers.
        depth: which layer.
        parameters: weight and bias.
        below: the rows of values that numbers stand for, [rows, values].
        first: the number that the first of these rows stands for.
        begin: the first field.
    """

    def __init__(
        self,
        fields: Fields,
        depth: int,
        parameters: Sequence[Tensor],
        below: _Floats,
        first: int = 0,
        begin: int = 0,
    ) -> None:
        weight, bias = (parameter.detach() for parameter in parameters)
        numbers = fields.layers[depth - 1].ids[:, None] if depth else fields.frames
        self._numbers = numbers.reshape(-1)
        self._below, self._first = below, first
        self._offsets = _offsets(numbers.shape[1:], weight.shape[-1])
        self._origins = fields.layers[depth].origins[begin:]
        # In the order of patches: planes, rows, columns, and the values of a number.
        shape = (len(weight), numbers.shape[1], -1, *weight.shape[2:])
        by_value = weight.reshape(shape).permute(0, 1, 3, 4, 2)
        self._weight = by_value.flatten(1)
        self._shape = by_value.shape
        self.outputs = torch.empty((len(self._origins), len(bias)), dtype=weight.dtype)
        for rows, patches in self._blocks(len(self._origins)):
            torch.addmm(bias, patches, self._weight.t(), out=self.outputs[rows]).relu_()

    def gradients(self, of_outputs: Tensor, of_below: _Floats | None) -> tuple[Tensor, Tensor]:
        """The gradients of weight and bias, from those of the first outputs.

        Args:
            of_outputs: overwritten, [fields, channels].
            of_below: where to add the gradients of the rows below, if they are wanted.
        """
        of_sums = of_outputs.mul_(self.outputs[: len(of_outputs)] > 0.0)
        of_weight = torch.zeros_like(self._weight)
        for rows, patches in self._blocks(len(of_sums)):
            of_weight.addmm_(of_sums[rows].t(), patches)
            if of_below is not None:
                of_patches = torch.mm(of_sums[rows], self._weight, out=patches).numpy()
                origins = self._origins[rows]
                _add_rows(of_patches, self._numbers, origins, self._offsets, of_below)
        in_order = of_weight.view(self._shape).permute(0, 1, 4, 2, 3)
        return in_order.flatten(1, 2).contiguous(), of_sums.sum(dim=0)

    def _blocks(self, num_rows: int) -> Iterator[tuple[slice, Tensor]]:
        """The first patches, some rows at a time; each block is overwritten by the next."""
        width = self._weight.shape[1]
        most = max(_BLOCK_BYTES // (width * self._below.itemsize), 1)
        block = np.empty((min(most, num_rows), width), dtype=self._below.dtype)
        for begin in range(0, num_rows, most):
            rows = slice(begin, min(begin + most, num_rows))
            patches, origins = block[: rows.stop - begin], self._origins[rows]
            numbers = self._numbers, origins, self._offsets, self._first
            largest = _copy_rows(self._below, *numbers, patches)
            if largest >= len(self._below):
                rule = f"hold codes of colours below {len(self._below)}"
                raise require.refuse("frames", rule, largest)
            yield rows, torch.from_numpy(patches)


def _forward(
    torso: Torso, fields: Fields, parameters: Sequence[Tensor], *, starts_with_second: bool
) -> list[_Layer]:
    """All layers, over all fields or over those of the second group only."""
    layers: list[_Layer] = []
    below, first = seen_values(torso.sight, _dtype(parameters[0])), 0
    for depth, found in enumerate(fields.layers):
        begin = found.second if starts_with_second else 0
        layer = _Layer(fields, depth, parameters[2 * depth : 2 * depth + 2], below, first, begin)
        layers.append(layer)
        below, first = layer.outputs.numpy(), begin
    return layers


def _features(fields: Fields, outputs: Tensor, states: slice) -> Tensor:
    """The last layer's outputs at every place of some states, [states, channels · places].

    Args:
        fields: the distinct fields of all layers.
        outputs: outputs of all fields, or of those of the second group.
        states: which states.
    """
    last = fields.layers[-1]
    ids = last.ids.reshape(len(last.ids), -1)[states]
    features = np.empty((len(ids), outputs.shape[1], ids.shape[1]), dtype=_dtype(outputs))
    _spread(outputs.numpy(), ids, last.num_distinct - len(outputs), features)
    return torch.from_numpy(features).flatten(1)


class _Distinct(torch.autograd.Function):
    """Features of both groups; only the first group's have a gradient."""

    @staticmethod
    def forward(
        ctx: Any, torso: Torso, fields: Fields, *parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        layers = _forward(torso, fields, parameters, starts_with_second=False)
        outputs, split = layers[-1].outputs, fields.split
        first, second = (_features(fields, outputs, s) for s in (slice(split), slice(split, None)))
        ctx.mark_non_differentiable(second)
        ctx.fields, ctx.layers = fields, layers
        return first, second

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, delta: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        fields: Fields = ctx.fields
        layers: list[_Layer] = ctx.layers
        # Of the outputs of each layer's first group.
        deltas = [
            np.zeros((found.first, layer.outputs.shape[1]), dtype=_dtype(delta))
            for found, layer in zip(fields.layers, layers, strict=True)
        ]
        last = fields.layers[-1].ids
        ids = last.reshape(len(last), -1)[: fields.split]
        _add_up(delta.contiguous().view(len(ids), deltas[-1].shape[1], -1).numpy(), ids, deltas[-1])
        gradients: list[Tensor] = []
        for depth in reversed(range(len(layers))):
            of_below = deltas[depth - 1] if depth else None
            of_weight, of_bias = layers[depth].gradients(torch.from_numpy(deltas[depth]), of_below)
            gradients += [of_bias, of_weight]
        return None, None, *reversed(gradients)


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
def _copy_rows(
    below: _Floats,
    numbers: NDArray[Any],
    origins: Origins,
    offsets: Origins,
    first: int,
    patches: _Floats,
) -> int:
    """The rows that the numbers of each field stand for, side by side; returns the largest."""
    size, last, largest = below.shape[1], len(below) - 1, 0
    for row in range(len(origins)):
        for index in range(len(offsets)):
            source = numbers[origins[row] + offsets[index]] - first
            largest = max(largest, source)
            source = min(source, last)  # reads nothing outside; the caller refuses the frames
            if size == 1:  # bytes: a loop would take several times as long
                patches[row, index] = below[source, 0]
                continue
            begin = index * size
            for column in range(size):
                patches[row, begin + column] = below[source, column]
    return largest


@jit
def _add_rows(
    patches: _Floats,
    numbers: NDArray[Any],
    origins: Origins,
    offsets: Origins,
    sums: _Floats,
) -> None:
    """The reverse of `_copy_rows`: adds every row to the place it came from."""
    size = sums.shape[1]
    for row in range(len(origins)):
        for index in range(len(offsets)):
            target = numbers[origins[row] + offsets[index]]
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
