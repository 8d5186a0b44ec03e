"""How hot code is compiled: once, cached on disk, inlined into its callers.

Steps of environments, draws of policies and updates of agents are small functions of scalars. Plain
classes and the fast kernels call the same ones, so they cannot disagree. Needs numba.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """The function, compiled when first called; its Python original is its `py_func`."""
    # NumPy's division rule saves a zero test, and with it an exit, in every inlined step.
    return cast(Function, numba.njit(cache=True, error_model="numpy")(function))


def jit_unlocked(function: Function) -> Function:
    """Like `jit`, for loops over large arrays, during which other threads of Python may run."""
    return cast(Function, numba.njit(cache=True, error_model="numpy", nogil=True)(function))


def jit_borrowing(function: Function) -> Function:
    """Like `jit`, for functions that neither make nor keep arrays.

    They do not count references to the arrays they are passed, which would take longer than loops
    over a few dozen numbers; a caller in Python holds the arrays anyway.
    """
    return _compiled(function, {})


def jit_sums(function: Function) -> Function:
    """Like `jit_borrowing`, for functions that add up a row in any order the compiler chooses.

    Processors then add several terms at a time. One processor always uses the same order,
    wherever the function is inlined; another kind may differ in the last digits.
    """
    return _compiled(function, {"fastmath": {"reassoc"}})


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    njit: Any = numba.njit  # its annotations leave out the switch for counting references
    # A tuple of arrays is about sixty words; passing them on every step took nearly half the time.
    switches = {"_nrt": False, "forceinline": True, **options}
    return cast(Function, njit(cache=True, error_model="numpy", **switches)(function))


@jit
def place(number: int) -> int:
    """A number that is known not to be negative, as an index.

    Compiled code checks whether a signed index counts from the end; an unsigned index saves the
    check, which takes a sixth of the time of a tabular step.
    """
    return np.uint64(number)  # type: ignore[return-value]
