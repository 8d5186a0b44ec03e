"""What a loop knows when a decision is due, checked once for all who judge by it."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.requirements import BoolArray, FloatArray

_FLOATS = np.dtype(np.float64)


class Seen(NamedTuple):
    """What a loop knows before a decision, one entry per lane; None where it was not given.

    Args:
        observations: the present observations.
        rewards: rewards of the step that led to them.
        values: the agent's estimates of their values, such as the largest action value.
        starts: lanes whose observation is the first of an episode.
        active: lanes that take a step now.
    """

    observations: NDArray[Any] | None
    rewards: FloatArray | None
    values: FloatArray | None
    starts: BoolArray
    active: BoolArray

    @classmethod
    def checked(
        cls,
        lanes: int,
        observations: object,
        rewards: object,
        values: object,
        starts: object,
        active: object,
    ) -> "Seen":
        """These arguments as arrays, or an error that names the one that is wrong."""
        return cls(
            _rows(observations, lanes),
            _numbers("rewards", rewards, lanes),
            _numbers("values", values, lanes),
            _mask("starts", starts, lanes, otherwise=False),
            _mask("active", active, lanes, otherwise=True),
        )


def _mask(name: str, value: object, lanes: int, *, otherwise: bool) -> BoolArray:
    return _constant(lanes, otherwise) if value is None else require.mask(name, value, (lanes,))


@lru_cache(maxsize=16)
def _constant(lanes: int, value: bool) -> BoolArray:
    mask = np.full(lanes, value)
    mask.setflags(write=False)  # shared by all calls
    return mask


def _rows(observations: object, lanes: int) -> NDArray[Any] | None:
    if observations is None:
        return None
    array = np.asarray(observations)
    if array.ndim == 0 or len(array) != lanes:
        raise require.refuse("observations", f"have {lanes} entries", array.shape)
    return array


def _numbers(name: str, value: object, lanes: int) -> FloatArray | None:
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype is not _FLOATS and array.dtype.kind not in "biuf":
        raise require.refuse_type(name, f"hold numbers, not {array.dtype}", value)
    if array.shape != (lanes,):
        raise require.refuse(name, f"have shape {(lanes,)}", array.shape)
    if np.count_nonzero(np.isfinite(array)) < lanes:
        raise require.refuse(name, "be finite", array.tolist())
    return array if array.dtype is _FLOATS else array.astype(np.float64)
