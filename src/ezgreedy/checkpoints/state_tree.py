"""A run's state as plain data and named arrays, and back again unchanged.

States are nested dicts, lists and tuples of None, bools, ints, floats, strings, bytes, NumPy arrays
and numbers, and append-only rings. Values that JSON would change (large ints, keys other than
strings, tuples) are written as a JSON object with one tag. Nothing here can hold code, and
non-finite values are refused.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ezgreedy import requirements as require
from ezgreedy.checkpoints.append_only_ring import NUMBER_KINDS, NUMBERS, AppendOnlyRing

Array = NDArray[Any]

MOST_NESTED = 100
_CONTENTS = "hold only None, bool, int, float, str, bytes, lists, dicts, NumPy data and rings"


@dataclass
class Encoded:
    """A state taken apart: plain data for JSON, and the arrays it refers to by path."""

    tree: Any = None
    arrays: dict[str, Array] = field(default_factory=dict)
    tails: dict[str, AppendOnlyRing] = field(default_factory=dict)


def encode(state: Mapping[str, Any]) -> Encoded:
    """Take a state apart, or refuse it and name the path that cannot be saved."""
    if not isinstance(state, Mapping):
        raise require.refuse_type("state", "be a dict", state)
    encoder = _Encoder()
    encoder.parts.tree = encoder.node("state", state, 0)
    return encoder.parts


class NotFiniteStateError(ValueError):
    """NaN or infinity was about to be saved; nothing was saved."""


def require_finite(path: str, array: Array) -> None:
    """Refuse an array with NaN or an infinity in it, and say where."""
    if array.dtype.kind in "fc" and not (finite := np.isfinite(array)).all():
        index = tuple(int(i) for i in np.argwhere(~finite)[0])
        value = require.Described(f"{array[index]} at {list(index)}" if index else str(array))
        raise NotFiniteStateError(str(require.refuse(path, "be finite", value)))


class _Encoder:
    def __init__(self) -> None:
        self.parts = Encoded()

    def node(self, path: str, value: Any, depth: int) -> Any:
        if depth > MOST_NESTED:
            rule = f"be nested at most {MOST_NESTED} deep"
            raise require.refuse("state", rule, require.Described("more"))
        if value is None or type(value) in (bool, str):
            return value
        if type(value) in (int, float):
            return _number(path, value)
        if isinstance(value, Mapping) or type(value) in (list, tuple):
            return self._container(path, value, depth)
        return self._reference(path, value)

    def _container(self, path: str, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            for key in value:
                if type(key) not in (str, int):
                    raise require.refuse_type(path, "have keys that are str or int", key)
            items = [
                [_key(key), self.node(f"{path}[{key!r}]", inner, depth + 1)]
                for key, inner in value.items()
            ]
            return {"dict": items}
        inner = [self.node(f"{path}[{i}]", item, depth + 1) for i, item in enumerate(value)]
        return inner if type(value) is list else {"tuple": inner}

    def _reference(self, path: str, value: Any) -> Any:
        if isinstance(value, AppendOnlyRing):
            self.parts.tails[path] = value
            return {"tail": path}
        if type(value) is bytes:
            return self._array("bytes", path, np.frombuffer(value, dtype=np.uint8))
        if isinstance(value, np.generic):
            return self._array("number", path, np.asarray(value))
        if type(value) in (np.ndarray, np.memmap):
            return self._array("array", path, value)
        raise require.refuse_type(path, _CONTENTS, value)

    def _array(self, tag: str, path: str, array: Array) -> dict[str, Any]:
        if array.dtype.kind not in NUMBER_KINDS:
            raise require.refuse_type(path, f"be {NUMBERS}, not {array.dtype}", array)
        require_finite(path, array)
        self.parts.arrays[path] = array
        return {tag: path, "dtype": array.dtype.str, "shape": list(array.shape)}


def _number(path: str, value: Any) -> Any:
    if type(value) is float:
        if not math.isfinite(value):
            raise NotFiniteStateError(str(require.refuse(path, "be finite", value)))
        return value
    # JSON readers agree on 64 bits, and Python's own refuses ints of many thousand digits.
    return value if -(2**63) <= value < 2**63 else {"int": hex(value)}


def _key(key: str | int) -> Any:
    return key if isinstance(key, str) else {"int": hex(key)}


def decode(
    tree: Any, array_at: Callable[[str], Array], tail_at: Callable[[str], AppendOnlyRing | None]
) -> Any:
    """Put a state together again; data that `encode` never writes raises one of many errors.

    Args:
        tree: the tree from `encode`, read back from JSON.
        array_at: returns the array of a path; only its bytes matter.
        tail_at: returns the tail of a path.
    """
    if isinstance(tree, list):
        return [decode(item, array_at, tail_at) for item in tree]
    if not isinstance(tree, dict):
        return tree
    (tag, value), *_ = tree.items()
    if tag == "dict":
        return {
            decode(key, array_at, tail_at): decode(inner, array_at, tail_at) for key, inner in value
        }
    if tag == "tuple":
        return tuple(decode(value, array_at, tail_at))
    if tag == "int":
        return int(value, 16)
    if tag == "tail":
        return tail_at(value)
    return _restored(tag, array_at(value), tree)


def _restored(tag: str, raw: Array, node: dict[str, Any]) -> Any:
    dtype, shape = checked_layout(node["dtype"], node["shape"])
    if raw.nbytes != dtype.itemsize * prod(shape):
        raise ValueError("an array's size differs from its shape")
    array = np.ascontiguousarray(raw).reshape(-1).view(np.uint8).view(dtype).reshape(shape)
    if tag == "bytes":
        return array.tobytes()
    if tag == "number":
        return array[()]
    if tag == "array":
        return array if array.flags.writeable else array.copy()
    raise ValueError(f"unknown tag {tag!r}")


def without_rings(state: Any) -> Any:
    """The same state with None in place of append-only rings, as readers without them see it."""
    if isinstance(state, AppendOnlyRing):
        return None
    if isinstance(state, Mapping):
        return {key: without_rings(part) for key, part in state.items()}
    if type(state) in (list, tuple):
        return type(state)(without_rings(part) for part in state)
    return state


def checked_layout(dtype: Any, shape: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """A stored dtype and shape; refuses any that `encode` does not write."""
    parsed = np.dtype(str(dtype))
    if parsed.kind not in NUMBER_KINDS or parsed.str != dtype:
        raise ValueError(f"unknown dtype {dtype!r}")
    if not isinstance(shape, Sequence) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"not a shape: {shape!r}")
    return parsed, tuple(shape)
