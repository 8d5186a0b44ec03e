"""How are numbers stored for a reader? Checked, rounded to a few digits, with gaps as None."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ezgreedy import requirements as require
from ezgreedy.requirements import FloatArray

DIGITS = 4
X_DIGITS = 6


def numbers(name: str, values: ArrayLike) -> FloatArray:
    """Numbers of any shape; None, which marks a gap in JSON, counts as NaN."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise require.refuse_type(name, "hold numbers in rows of one length", values) from error
    if np.isinf(array).any() or np.isnan(array).all():
        raise require.refuse(name, "hold finite numbers", array.tolist())
    return array


def rounded(values: FloatArray, digits: int) -> list[Any]:
    """Significant digits only, whole numbers without a point, and gaps as None."""
    if values.ndim > 1:
        return [rounded(row, digits) for row in values]
    return [None if np.isnan(value) else short(float(value), digits) for value in values]


def short(value: float, digits: int = X_DIGITS) -> int | float:
    """A number with this many significant digits: 1 rather than 1.0."""
    number = float(f"{value:.{digits}g}")
    return int(number) if number.is_integer() else number


def words(name: str, value: object) -> str:
    """Text for a reader; an empty string is refused."""
    if not isinstance(value, str) or not value:
        raise require.refuse(name, "be words", value)
    return value


def check_labels(name: str, labels: Sequence[str]) -> None:
    """Refuses labels that are empty or not unique."""
    for label in labels:
        words(f"label of a {name}", label)
    if len(set(labels)) < len(labels):
        raise require.refuse(f"labels of {name}s", "differ", list(labels))
