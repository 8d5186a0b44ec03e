"""How arguments are refused: by name, with the rule they broke and the value received.

Every public entry of the package checks its arguments here before it changes anything, so that a
failed call leaves its object as it was. Nothing is coerced: a float is not an int, True is not 1.
"""

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

LARGEST_INT64 = 2**63 - 1

_MOST_NAMES = 3  # that an unknown one suggests
_LEAST_BEGINNING = 3  # characters that suggest the names that begin with them


class Described(str):
    """A description of the value received, shown without the quotes of a received string."""


def refuse(name: str, rule: str, value: object, way: str = "") -> ValueError:
    """The exception for an argument of the right type with a forbidden value.

    Args:
        name: the argument.
        rule: the rule it broke.
        value: the value received.
        way: words that say what to do instead; "" if the rule says it.
    """
    return ValueError(f"{name} must {rule}; got {_short(value)}{_in_brackets(way)}")


def refuse_type(name: str, rule: str, value: object, way: str = "") -> TypeError:
    """The exception for an argument of the wrong type.

    Args:
        name: the argument.
        rule: the rule it broke.
        value: the value received.
        way: words that say what to pass instead; "" if the rule says it.
    """
    received = f"{name} must {rule}; got {type(value).__name__} {_short(value)}"
    return TypeError(received + _in_brackets(way))


def refuse_name(name: str, rule: str, value: object, known: Iterable[str]) -> ValueError:
    """The exception for an unknown name; it suggests the known names closest to it.

    Args:
        name: the argument.
        rule: the rule it broke, such as "be a MinAtar game".
        value: the unknown name.
        known: all known names.
    """
    return refuse(name, rule + near(str(value), known), value)


def near(name: str, known: Iterable[str]) -> str:
    """Words that suggest the known names closest to an unknown one; "" if none is close."""
    return suggested(nearest(name, known))


def suggested(names: Sequence[str]) -> str:
    """Words that suggest names; "" if there are none."""
    return f" (did you mean {' or '.join(names)}?)" if names else ""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names closest to an unknown one; none if none is close.

    Case and punctuation do not count. A known name within the unknown one is closest (Pong for
    PongNoFrameskip-v4), then those that begin with it.
    """
    plain, given = {_plain(item): item for item in known}, _plain(name)
    within = [item for item in plain if item in given]
    begun = [item for item in plain if item.startswith(given) and len(given) >= _LEAST_BEGINNING]
    close = within or begun[:_MOST_NAMES] or difflib.get_close_matches(given, plain, n=_MOST_NAMES)
    return [plain[item] for item in close]


def integer(name: str, value: object, least: int, most: int | None = LARGEST_INT64) -> int:
    """An int (not a bool, not a float) within [least, most]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise refuse_type(name, "be an int", value)
    if value < least or (most is not None and value > most):
        rule = f"be at least {least}" if value < least else f"be at most {most}"
        raise refuse(name, rule, value)
    return int(value)


def num_actions(value: object) -> int:
    """A number of actions: an int, or Gymnasium's (or Gym's) `Discrete` space."""
    if "Discrete" not in (parent.__name__ for parent in type(value).__mro__):
        if hasattr(value, "sample"):  # a Box, a MultiDiscrete, ...
            rule = "be an int or a Discrete space"
            raise refuse_type("num_actions", rule, value, _way_to_actions(value))
        for space_name in ("single_action_space", "action_space"):
            if hasattr(value, space_name):  # an environment, or a batch of them
                whose = "envs" if space_name.startswith("single") else "env"
                rule, way = "be an int or a Discrete space", f"pass {whose}.{space_name}"
                raise refuse_type("num_actions", rule, value, way)
        return integer("num_actions", value, least=1)
    space: Any = value
    if getattr(space, "start", 0) != 0:
        rule = f"start at 0: pass {space.n}, and add {space.start} to the actions"
        raise refuse("num_actions", rule, value)
    return int(space.n)


def number(name: str, value: object, least: float, most: float = math.inf) -> float:
    """A finite int or float within [least, most]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise refuse_type(name, "be a number", value)
    if not math.isfinite(value) or not least <= value <= most:
        bounds = f"lie in [{least:g}, {most:g}]" if most < math.inf else f"be at least {least:g}"
        raise refuse(name, f"be finite and {bounds}" if most == math.inf else bounds, value)
    return float(value)


def flag(name: str, value: object) -> bool:
    """A bool, and nothing that merely looks like one."""
    if not isinstance(value, (bool, np.bool_)):
        raise refuse_type(name, "be a bool", value)
    return bool(value)


def one_of(name: str, value: object, choices: Sequence[str]) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in choices:
        raise refuse(name, f"be one of {', '.join(map(repr, choices))}", value)
    return value


def mask(name: str, value: object, shape: tuple[int, ...]) -> BoolArray:
    """A bool array of exactly this shape."""
    array = _as_array(name, value, "be a bool array", shape)
    if array.dtype != np.bool_:
        rule = f"be a bool array of shape {shape}, not {array.dtype}"
        raise refuse_type(name, rule, value, _way_to_a_mask(name, value, array, shape))
    if array.shape != shape:
        raise refuse(name, f"have shape {shape}", array.shape)
    return array


def probabilities(name: str, value: object, length: int) -> FloatArray:
    """Finite, non-negative numbers, not all zero, one for each of `length` things."""
    array = _as_array(name, value, "be an array of numbers", (length,), per="")
    if array.dtype.kind not in "iuf":
        raise refuse_type(name, f"hold numbers, not {array.dtype}", value)
    if array.shape != (length,):
        raise refuse(name, f"have shape {(length,)}", array.shape)
    if not np.isfinite(array).all() or (array < 0).any() or not array.any():
        raise refuse(name, "be finite, non-negative and not all zero", array.tolist())
    return array.astype(np.float64)


def actions(name: str, value: object, length: int, num_actions: int, per: str = "lane") -> IntArray:
    """Action indices in [0, num_actions), one for each of `length` lanes (or what `per` says)."""
    array = value
    if type(array) is not np.ndarray:
        array = _as_array(name, value, "be an int array", (length,), per)
    if array.dtype.kind not in "iu":
        way = _way_to_ints(name, value, array, length)
        raise refuse_type(name, f"hold ints, not {array.dtype}", value, way)
    if array.shape != (length,):
        lanes = _way_to_lanes(array.shape, length) if (name, per) == ("greedy", "lane") else ""
        received = f"{array.shape} (one entry per {per}{lanes})"
        raise refuse(name, f"have shape {(length,)}", Described(received))
    if array.dtype != np.int64:
        if array.dtype == np.uint64 and (array > LARGEST_INT64).any():
            raise refuse(name, f"lie in [0, {num_actions})", array.max())
        array = array.astype(np.int64)
    # Seen as unsigned, a negative action is a huge one: one reduction checks both ends.
    if length and np.maximum.reduce(array.view(np.uint64)) >= num_actions:
        lane = int(np.flatnonzero((array < 0) | (array >= num_actions))[0])
        raise refuse(
            name, f"lie in [0, {num_actions})", Described(f"{array[lane]} at position {lane}")
        )
    return array


def _as_array(
    name: str, value: object, rule: str, shape: tuple[int, ...], per: str = "lane"
) -> NDArray[Any]:
    """Lists and tuples are spelled-out arrays; anything else must be an array already."""
    if isinstance(value, np.ndarray):
        return value
    if not isinstance(value, (list, tuple)):
        raise refuse_type(name, rule, value, _way_to_an_array(value, shape, per))
    try:
        array = np.array(value)
    except ValueError as error:
        raise refuse_type(name, f"{rule} (rows of one length)", value) from error
    return array


def _way_to_an_array(value: object, shape: tuple[int, ...], per: str) -> str:
    """What to pass instead of a tensor or a scalar; "" for other things."""
    if isinstance(value, (bool, int, float, np.generic)):
        many = f"an array of {shape[0]}" if len(shape) == 1 else f"an array of shape {shape}"
        entry = "entry" if len(shape) == 1 else "row"
        way = f"pass {f'[{value}]' if shape == (1,) else many}"
        return f"one {entry} per {per}: {way}" if per else way
    package = type(value).__module__.partition(".")[0]
    if package == "torch":
        # Values have an axis more than actions.
        is_of_values = len(shape) == 1 and getattr(value, "ndim", 1) == 2
        array = "tensor.argmax(1).cpu().numpy()" if is_of_values else "tensor.cpu().numpy()"
        return f"pass {array}, or use ezgreedy.exploration.tensors.TensorEZGreedy"
    if hasattr(value, "__array__"):
        return "pass numpy.asarray of it"
    return ""


def _way_to_a_mask(name: str, value: object, array: NDArray[Any], shape: tuple[int, ...]) -> str:
    """What to pass instead of numbers, which are truth values or the numbers of lanes."""
    if array.dtype.kind not in "iuf" or not array.size:
        return ""
    is_truth = array.shape == shape and bool(np.isin(array, (0, 1)).all())
    if array.dtype.kind in "iu" and len(shape) == 1 and array.ndim == 1 and not is_truth:
        return f"to mark lanes by number pass numpy.isin(numpy.arange({shape[0]}), {name})"
    # Gymnasium's masks of legal actions are int8.
    return f"pass {name}.astype(bool)" if array is value else f"pass numpy.array({name}, bool)"


def _way_to_ints(name: str, value: object, array: NDArray[Any], length: int) -> str:
    """What to pass instead of values, or of actions that are whole numbers of another type."""
    if array.ndim == 2:  # values have an axis more than actions
        return "pass argmax(axis=1) of values"
    if array.dtype.kind != "f" or array.ndim != 1:
        return ""
    if array.shape == (length,):
        return f"pass {name}.astype(int)" if array is value else "pass ints"
    return "pass [values.argmax()]" if length == 1 else ""


def _way_to_lanes(shape: tuple[int, ...], length: int) -> str:
    """What to do about a policy that was made with another number of lanes."""
    if len(shape) == 1 and shape[0] > length:
        return f": make the policy with lanes={shape[0]}"
    return ", and lanes are fixed: `active` leaves some out"


def _way_to_actions(space: Any) -> str:
    """What to pass instead of a space whose actions cannot be numbered as they are."""
    way = "options repeat one of finitely many actions: map numbers to actions in a wrapper"
    if type(space).__name__ == "Box":
        return f"for continuous actions use HeldActions or HeldNoise; {way}"
    sizes = np.ravel(getattr(space, "nvec", ()))
    if sizes.size and (sizes == sizes[0]).all():
        return f"for vector environments pass envs.single_action_space; {way}"
    return way


def _in_brackets(way: str) -> str:
    return f" ({way})" if way else ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _short(value: object) -> str:
    text = str(value) if isinstance(value, Described) else repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
