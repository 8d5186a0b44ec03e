"""Into which cell does an observation fall? Finite cells for any space of numbers.

States are counted within small regions, as the paper does for its continuous problems: one or two
dimensions of the observation are cut into equal bins, the others are ignored. The bins of a
discrete dimension are its values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from ezgreedy import requirements as require
from ezgreedy.requirements import FloatArray, IntArray

DEFAULT_COUNT = 12
LARGEST_COUNT = 10_000
LARGEST_CELLS = 1_000_000

# Some spaces write "unbounded" as the largest float there is.
_UNBOUNDED = 1e30


class Dimension(NamedTuple):
    """One number of an observation: its range, and its number of values if finite."""

    low: float
    high: float
    num_values: int | None


class RangeNeeded(ValueError):
    """A dimension cannot be cut into bins unless the caller gives its range.

    Args:
        dimension: its number.
        rule: the rule that it broke.
        received: what breaks it.
    """

    def __init__(self, dimension: int, rule: str, received: object) -> None:
        self.dimension, self.rule, self.received = dimension, rule, received
        super().__init__(str(self.naming(f"ranges={{{dimension}: (low, high)}}")))

    def naming(self, way: str) -> ValueError:
        """The same error for callers who give ranges in this way."""
        name = f"dimension {self.dimension} of the observation"
        return require.refuse(name, f"{self.rule}, or be given a range: {way}", self.received)


@dataclass(frozen=True)
class Bins:
    """Equal bins along some dimensions of an observation.

    Values outside the range fall into the nearest bin.

    Args:
        dims: indices of one or two numbers of the flattened observation.
        low: lower end of each dimension's first bin.
        high: upper end of each dimension's last bin.
        counts: number of bins of each dimension; the cells are laid out in this shape.
        is_discrete: whether each dimension's bins are its values.
    """

    dims: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    counts: tuple[int, ...]
    is_discrete: tuple[bool, ...]

    @classmethod
    def of(
        cls,
        space: spaces.Space[Any],
        count: int = DEFAULT_COUNT,
        dims: Sequence[int] | None = None,
        ranges: Mapping[int, tuple[float, float]] | None = None,
    ) -> "Bins":
        """Bins that fit an observation space.

        Args:
            space: a Box, Discrete, MultiDiscrete, MultiBinary, or a Tuple of Discrete.
            count: bins along each continuous dimension.
            dims: the dimensions to look at; the first two (or the only one) if None.
            ranges: {dimension: (low, high)} of dimensions that are unbounded or need other ends.
        """
        require.integer("bins", count, least=1, most=LARGEST_COUNT)
        dimensions = _dimensions(space)
        chosen = _checked_dims(dims, len(dimensions))
        given = _checked_ranges(ranges, len(dimensions))
        cut = [_cut(dim, dimensions[dim], given.get(dim), count) for dim in chosen]
        counts = tuple(dimension.num_values or count for dimension in cut)
        if np.prod(counts) > LARGEST_CELLS:
            raise require.refuse("bins", f"make at most {LARGEST_CELLS} cells", counts)
        return cls(
            chosen,
            tuple(dimension.low for dimension in cut),
            tuple(dimension.high for dimension in cut),
            counts,
            tuple(dimension.num_values is not None for dimension in cut),
        )

    @property
    def num_cells(self) -> int:
        """The total number of cells."""
        return int(np.prod(self.counts))

    def cells(self, observations: Sequence[Any]) -> IntArray:
        """The cell of each observation, numbered along the last dimension first, [observations]."""
        numbers = np.array(observations, dtype=np.float64).reshape(len(observations), -1)
        numbers = numbers[:, self.dims]
        if np.isnan(numbers).any():
            raise require.refuse("observation", "hold numbers", numbers.tolist())
        low, counts = np.array(self.low), np.array(self.counts)
        # Whole bins of width 1 stay exact only if the number is not divided by the range first.
        positions = np.floor((numbers - low) * (counts / (np.array(self.high) - low)))
        indices = np.clip(positions, 0, counts - 1).astype(np.int64)
        return np.ravel_multi_index(tuple(indices.T), self.counts)


def _dimensions(space: spaces.Space[Any]) -> list[Dimension]:
    """The numbers of a space's flattened observation."""
    if isinstance(space, spaces.Discrete):
        return [_values(space.start, space.n)]
    if isinstance(space, spaces.MultiBinary):
        return [_values(0, 2)] * int(np.prod(space.shape))
    if isinstance(space, spaces.MultiDiscrete):
        starts = np.broadcast_to(space.start, space.nvec.shape)
        return [_values(s, n) for s, n in zip(starts.flat, space.nvec.flat, strict=True)]
    if isinstance(space, spaces.Box):
        bounds: tuple[FloatArray, FloatArray] = (space.low.ravel(), space.high.ravel())
        return [Dimension(float(a), float(b), None) for a, b in zip(*bounds, strict=True)]
    if isinstance(space, spaces.Tuple) and all(isinstance(s, spaces.Discrete) for s in space):
        return [_values(s.start, s.n) for s in space]
    rule = "be a Box, Discrete, MultiDiscrete or MultiBinary space, or a Tuple of Discrete ones"
    raise require.refuse("the observation space", rule, space)


def _values(start: Any, count: Any) -> Dimension:
    return Dimension(float(start), float(start + count), int(count))


def _checked_dims(dims: Sequence[int] | None, available: int) -> tuple[int, ...]:
    if dims is None:
        return tuple(range(min(available, 2)))
    chosen = tuple(require.integer("dims", dim, least=0, most=available - 1) for dim in dims)
    if len(set(chosen)) != len(chosen) or len(chosen) not in (1, 2):
        raise require.refuse("dims", "name one or two different dimensions", list(dims))
    return chosen


def _checked_ranges(ranges: object, available: int) -> dict[int, tuple[Any, Any]]:
    if ranges is None:
        return {}
    if not isinstance(ranges, Mapping):
        raise require.refuse_type("ranges", "be a mapping {dimension: (low, high)}", ranges)
    for dim, ends in ranges.items():
        require.integer("range dimension", dim, least=0, most=available - 1)
        if not isinstance(ends, (tuple, list, np.ndarray)) or len(ends) != 2:
            raise require.refuse_type(f"ranges[{dim}]", "be (low, high)", ends)
    return {dim: (low, high) for dim, (low, high) in ranges.items()}


def _cut(
    number: int, dimension: Dimension, given: tuple[float, float] | None, count: int
) -> Dimension:
    """The dimension with the range to be cut into bins."""
    if given is not None:
        low = require.number("range low", given[0], least=-_UNBOUNDED, most=_UNBOUNDED)
        high = require.number("range high", given[1], least=-_UNBOUNDED, most=_UNBOUNDED)
        if not low < high:
            raise require.refuse(
                f"the range of dimension {number}", "be a low below a high", [low, high]
            )
        return Dimension(low, high, None)
    if max(abs(dimension.low), abs(dimension.high)) >= _UNBOUNDED:
        raise RangeNeeded(number, "be bounded", [dimension.low, dimension.high])
    if dimension.low == dimension.high:
        raise RangeNeeded(number, "vary", dimension.low)
    return dimension
