"""What does a linear agent see of a state? Cosines of every frequency: the Fourier basis.

A feature is cos(π c·x̃) for a vector c of whole numbers 0 … order and the state x̃ scaled to
[0, 1] in every dimension (Konidaris, Osentoski and Thomas, 2011). Cosines are slow, and few are
needed: with z_d = exp(iπ x̃_d), the feature is the real part of a product of powers of z_d. The
powers come from one sine and one cosine per dimension. All products over the first half of the
dimensions and over the second half are tabulated, and a feature is a product of two table entries.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ezgreedy import requirements as require
from ezgreedy.compilation import jit_borrowing
from ezgreedy.requirements import FloatArray, IntArray

LARGEST_ORDER = 100
LARGEST_NUM_FEATURES = 2**22

Floats = NDArray[np.floating]
Coefficients = Sequence[tuple[int, ...]]


class Evaluator(NamedTuple):
    """A basis as compiled code takes it, with room for its intermediate values.

    A table holds products of powers: entry 0 is 1, and entry i is entry p times z_d to the k, where
    links[:, i] = p, d, k. Numbers are complex: row 0 is their real part, row 1 the imaginary one.
    """

    box: FloatArray  # [2, dimensions]: low ends and widths
    powers: FloatArray  # [2, dimensions, order + 1]
    head_links: IntArray  # [3, heads]
    heads: Floats  # [2, heads]
    tail_links: IntArray  # [3, tails]
    tails: Floats  # [2, tails]


class FourierBasis:
    """The features of states within a box.

    Args:
        order: the highest frequency in every dimension.
        ranges: (low, high) of every dimension of the state. Values outside are clipped, so states
            outside look like those on the edge.
        coupling: the most dimensions a feature may depend on; any number of them if None,
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
        """Konidaris et al.'s factor of each feature's step size: 1/‖c‖, and 1 for c = 0."""
        norms = np.linalg.norm(self.coefficients, axis=1)
        return 1.0 / np.where(norms > 0.0, norms, 1.0)

    def __call__(self, state: ArrayLike) -> FloatArray:
        """The features of one state, [features]."""
        values = np.asarray(state, dtype=np.float64)
        if values.shape != (self.num_dimensions,):
            raise require.refuse("state", f"have shape {(self.num_dimensions,)}", values.shape)
        features = np.empty((1, self.num_features))
        evaluate(self._evaluator, values, features, 0)
        return features[0]

    def evaluator(self, dtype: DTypeLike) -> Evaluator:
        """The arrays for `evaluate`; each caller needs its own, because they are written to."""
        lows, highs = np.array(self.ranges).T
        powers = np.zeros((2, self.num_dimensions, self.order + 1))
        heads, tails = _table(self._heads, dtype), _table(self._tails, dtype)
        return Evaluator(np.array([lows, highs - lows]), powers, *heads, *tails)

    def _halves(self) -> tuple[Coefficients, Coefficients]:
        """Vectors c whose pairwise sums are all vectors, in lexicographic order.

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


@jit_borrowing
def evaluate(
    basis: Evaluator, state: FloatArray | tuple[float, ...], features: Floats, place: int
) -> None:
    """Writes a state's features to features[place].

    The state may have more numbers than the basis has dimensions.
    """
    box, powers, head_links, heads, tail_links, tails = basis
    for d in range(box.shape[1]):
        angle = math.pi * min(max((state[d] - box[0, d]) / box[1, d], 0.0), 1.0)
        cosine, sine = math.cos(angle), math.sin(angle)
        real, imaginary = 1.0, 0.0
        for k in range(powers.shape[2]):
            powers[0, d, k], powers[1, d, k] = real, imaginary
            real, imaginary = real * cosine - imaginary * sine, real * sine + imaginary * cosine
    _multiply_out(head_links, powers, heads)
    _multiply_out(tail_links, powers, tails)
    _pair(heads, tails, features, place)


@jit_borrowing
def _multiply_out(links: IntArray, powers: FloatArray, table: Floats) -> None:
    for i in range(1, table.shape[1]):
        parent, d, k = links[0, i], links[1, i], links[2, i]
        real, imaginary = table[0, parent], table[1, parent]
        table[0, i] = real * powers[0, d, k] - imaginary * powers[1, d, k]
        table[1, i] = real * powers[1, d, k] + imaginary * powers[0, d, k]


@jit_borrowing
def _pair(heads: Floats, tails: Floats, features: Floats, place: int) -> None:
    width = tails.shape[1]
    if width == 1:
        for i in range(heads.shape[1]):
            features[place, i] = heads[0, i]
        return
    for i in range(heads.shape[1]):
        real, imaginary, begin = heads[0, i], heads[1, i], i * width
        for j in range(width):
            features[place, begin + j] = real * tails[0, j] - imaginary * tails[1, j]


def _coupled(order: int, dimensions: int, coupling: int) -> Iterable[tuple[int, ...]]:
    """Vectors with at most `coupling` non-zero entries, in lexicographic order."""
    if dimensions == 0:
        yield ()
        return
    for frequency in range(order + 1 if coupling else 1):
        for rest in _coupled(order, dimensions - 1, coupling - (frequency > 0)):
            yield (frequency, *rest)


def _table(coefficients: Coefficients, dtype: DTypeLike) -> tuple[IntArray, Floats]:
    """The table for these vectors: setting the last non-zero entry to zero gives the parent."""
    places = {vector: place for place, vector in enumerate(coefficients)}
    links = np.zeros((3, len(coefficients)), dtype=np.int64)
    for place, vector in enumerate(coefficients):
        if place:
            last = max(d for d, frequency in enumerate(vector) if frequency)
            parent = (*vector[:last], *(0,) * (len(vector) - last))
            links[:, place] = places[parent], last, vector[last]
    values = np.zeros((2, len(coefficients)), dtype=dtype)
    values[0, 0] = 1.0
    return links, values


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
