"""Rings of rows that are added and never changed, so that a save writes only the new ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require

Array = NDArray[Any]

# Bools, ints, unsigned ints, floats and complex numbers: values that their bytes determine.
NUMBER_KINDS = "biufc"
NUMBERS = "an array of numbers or bools"


class AppendOnlyRing:
    """The newest rows of an endless sequence, which a checkpoint needs to write only once.

    Items are numbered from 0. The array is a ring: item i is in row i % len(array), so that it
    holds items [max(0, num_written − len(array)), num_written). An item never changes once it is
    written; unwritten rows mean nothing, and are restored as zeros.

    Args:
        array: the ring, [length, ...], with at least one byte per row. It is not copied.
        num_written: number of items in the sequence so far.
    """

    def __init__(self, array: Array, num_written: int) -> None:
        if not isinstance(array, np.ndarray) or array.dtype.kind not in NUMBER_KINDS:
            raise require.refuse_type("array", f"be {NUMBERS}", array)
        if array.ndim == 0 or array.nbytes == 0:
            raise require.refuse("array", "have rows, and bytes in them", array.shape)
        self.array = array
        self.num_written = require.integer("num_written", num_written, least=0)

    @property
    def window(self) -> range:
        """The numbers of the items it holds."""
        return range(max(0, self.num_written - len(self.array)), self.num_written)

    def rows(self, items: range) -> list[Array]:
        """The rows of consecutive items it holds, as one or two views."""
        if not len(items):
            return []
        length = len(self.array)
        first, end = items.start % length, (items.stop - 1) % length + 1
        if first < end:
            return [self.array[first:end]]
        return [self.array[first:], self.array[:end]]

    def __repr__(self) -> str:
        shape, dtype = self.array.shape, self.array.dtype
        return f"AppendOnlyRing(array of {dtype} {shape}, num_written={self.num_written})"
