"""What does a linear agent see of a state? Cosines of every frequency: the Fourier basis.

A feature is cos(π c·x̃) for a vector c of whole numbers 0 … order and the state x̃ scaled to
[0, 1] in every dimension (Konidaris, Osentoski and Thomas, 2011). Cosines are slow, and few are
needed: with z_d = exp(iπ x̃_d), the feature is the real part of a product of powers of z_d. The
powers come from one sine and one cosine per dimension, all products over the first half of the
dimensions and over the second half are tabled, and a feature is a product of two table entries.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ezgreedy import requirements as require
from ezgreedy.compilation import jit
from ezgreedy.requirements import FloatArray, IntArray

LARGEST_ORDER = 100
LARGEST_NUM_FEATURES = 2**22

Coefficients = Sequence[tuple[int, ...]]


class Products(NamedTuple):
    """A table of products of powers: each entry is an earlier entry times one power.

    Entry 0 is 1; entry i is entry `parents[i]` times z_d to the k with d = `dimensions[i]` and
    k = `powers[i]`. `real` and `imaginary` hold the values of the latest state.
    """

    parents: IntArray
    dimensions: IntArray
    powers: IntArray
    real: NDArray[np.floating]
    imaginary: NDArray[np.floating]


class Evaluator(NamedTuple):
    """A basis as compiled code takes it, with room for its intermediate values."""

    lows: FloatArray
    spans: FloatArray
    real_powers: FloatArray  # [dimensions, order + 1]
    imaginary_powers: FloatArray
    heads: Products
    tails: Products


class FourierBasis:
    """The features of states within a box.

    Args:
        order: the highest frequency in every dimension.
        ranges: (low, high) of every dimension of the state. Values outside are clipped, so states
            out there look like those on the edge.
        coupling: how many dimensions one feature may depend on; any number of them if None,
            which gives (order + 1)^dimensions features.
    """

    def __init__(
        self, order: int, ranges: Sequence[tuple[float, float]], coupling: int | None = None
    ) -> None:
        self.order = require.integer("order", order, least=0, most=LARGEST_ORDER)
        self.ranges = _checked_ranges(ranges)
        self.num_dimensions = len(self.ranges)
        self.coupling = self.num_dimensions
        if coupling is not None:
            self.coupling = require.integer("coupling", coupling, 0, self.num_dimensions)
        self._is_full = self.coupling == self.num_dimensions
        self._heads, self._tails = self._halves()
        self.num_features = len(self._heads) * len(self._tails)
        if self.num_features > LARGEST_NUM_FEATURES:
            raise require.refuse(
                "order", f"give at most {LARGEST_NUM_FEATURES} features", self.num_features
            )
        self._evaluator = self.evaluator(np.float64)

    @property
    def coefficients(self) -> IntArray:
        """All vectors c, [features, dimensions], in the order of the features."""
        pairs = itertools.product(self._heads, self._tails)
        return np.array([np.add(*pair) for pair in pairs], dtype=np.int64)

    @property
    def scales(self) -> FloatArray:
        """What Konidaris et al. multiply each feature's step size by: 1/‖c‖, and 1 for c = 0."""
        norms = np.linalg.norm(self.coefficients, axis=1)
        return 1.0 / np.where(norms > 0.0, norms, 1.0)

    def __call__(self, state: ArrayLike) -> FloatArray:
        """The features of one state, [features]."""
        values = np.asarray(state, dtype=np.float64)
        if values.shape != (self.num_dimensions,):
            raise require.refuse("state", f"have shape {(self.num_dimensions,)}", values.shape)
        features = np.empty(self.num_features)
        evaluate(self._evaluator, values, features)
        return features

    def evaluator(self, dtype: DTypeLike) -> Evaluator:
        """What `evaluate` needs; each caller has its own, for it is written to."""
        lows, highs = np.array(self.ranges).T
        powers = np.zeros((2, self.num_dimensions, self.order + 1))
        tables = (_products(half, dtype) for half in (self._heads, self._tails))
        return Evaluator(lows.copy(), highs - lows, powers[0], powers[1], *tables)

    def _halves(self) -> tuple[Coefficients, Coefficients]:
        """Vectors c whose pairwise sums are all that there are, in lexicographic order.

        Only a full basis is a product of halves; a limited one is all head.
        """
        frequencies = range(self.order + 1)
        dimensions = self.num_dimensions
        if not self._is_full:
            return list(_coupled(self.order, dimensions, self.coupling)), [(0,) * dimensions]
        split = dimensions // 2
        heads = itertools.product(frequencies, repeat=split)
        tails = itertools.product(frequencies, repeat=dimensions - split)
        return (
            [(*head, *(0,) * (dimensions - split)) for head in heads],
            [(*(0,) * split, *tail) for tail in tails],
        )


@jit
def evaluate(basis: Evaluator, state: FloatArray, features: NDArray[np.floating]) -> None:
    """Writes a state's features; the state may be longer than the basis has dimensions."""
    for d in range(len(basis.lows)):
        share = (state[d] - basis.lows[d]) / basis.spans[d]
        angle = math.pi * min(max(share, 0.0), 1.0)
        real, imaginary = math.cos(angle), math.sin(angle)
        basis.real_powers[d, 0], basis.imaginary_powers[d, 0] = 1.0, 0.0
        for k in range(1, basis.real_powers.shape[1]):
            before_real, before_imaginary = (
                basis.real_powers[d, k - 1],
                basis.imaginary_powers[d, k - 1],
            )
            basis.real_powers[d, k] = before_real * real - before_imaginary * imaginary
            basis.imaginary_powers[d, k] = before_real * imaginary + before_imaginary * real
    _multiply_out(basis.heads, basis)
    _multiply_out(basis.tails, basis)
    tail_real, tail_imaginary = basis.tails.real, basis.tails.imaginary
    if len(tail_real) == 1:
        features[:] = basis.heads.real
        return
    width = len(tail_real)
    for i in range(len(basis.heads.real)):
        real_part, imaginary_part = basis.heads.real[i], basis.heads.imaginary[i]
        row = features[i * width : (i + 1) * width]
        for j in range(width):
            row[j] = real_part * tail_real[j] - imaginary_part * tail_imaginary[j]


@jit
def _multiply_out(table: Products, basis: Evaluator) -> None:
    table.real[0], table.imaginary[0] = 1.0, 0.0
    for i in range(1, len(table.parents)):
        parent, d, k = table.parents[i], table.dimensions[i], table.powers[i]
        real, imaginary = table.real[parent], table.imaginary[parent]
        power_real, power_imaginary = basis.real_powers[d, k], basis.imaginary_powers[d, k]
        table.real[i] = real * power_real - imaginary * power_imaginary
        table.imaginary[i] = real * power_imaginary + imaginary * power_real


def _coupled(order: int, dimensions: int, coupling: int) -> Iterable[tuple[int, ...]]:
    """Vectors with at most `coupling` non-zero entries, in lexicographic order."""
    if dimensions == 0:
        yield ()
        return
    for frequency in range(order + 1 if coupling else 1):
        for rest in _coupled(order, dimensions - 1, coupling - (frequency > 0)):
            yield (frequency, *rest)


def _products(coefficients: Coefficients, dtype: DTypeLike) -> Products:
    """The table for these vectors: setting the last non-zero entry to zero gives the parent."""
    places = {vector: place for place, vector in enumerate(coefficients)}
    links = np.zeros((3, len(coefficients)), dtype=np.int64)
    for place, vector in enumerate(coefficients):
        if place:
            last = max(d for d, frequency in enumerate(vector) if frequency)
            parent = (*vector[:last], *(0,) * (len(vector) - last))
            links[:, place] = places[parent], last, vector[last]
    values = np.zeros((2, len(coefficients)), dtype=dtype)
    return Products(*links, *values)


def _checked_ranges(ranges: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if not isinstance(ranges, Sequence) or not ranges:
        raise require.refuse("ranges", "hold a (low, high) for every dimension", ranges)
    checked = []
    for position, pair in enumerate(ranges):
        name = f"ranges[{position}]"
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise require.refuse(name, "be a pair (low, high)", pair)
        low, high = (require.number(name, end, -math.inf) for end in pair)
        if not low < high:
            raise require.refuse(name, "have low < high", pair)
        checked.append((low, high))
    return checked
