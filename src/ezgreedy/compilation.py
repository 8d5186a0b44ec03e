"""How hot code is compiled: once, cached on disk, inlined into whatever calls it.

Steps of environments, draws of policies and updates of agents are small functions of scalars. Plain
classes and the fast kernels call the same ones, so nothing can mean two things. Needs numba.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """The function, compiled when first called; its Python original is its `py_func`."""
    # NumPy's rule for division spares a zero test, and with it a way out, in every inlined step.
    return cast(Function, numba.njit(cache=True, error_model="numpy")(function))


def jit_sums(function: Function) -> Function:
    """Like `jit`, for functions that add up a row: the order of additions is the compiler's.

    Processors then add several terms at a time. One processor always takes the same order, in
    whatever the function is inlined; another kind may differ in the last digits.
    """
    compiled = numba.njit(cache=True, error_model="numpy", fastmath={"reassoc"})(function)
    return cast(Function, compiled)
