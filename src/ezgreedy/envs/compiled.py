"""How an environment's dynamics are compiled: once, cached on disk, inlined into any kernel.

The steps of the study are small functions of scalars that allocate nothing. Gymnasium's classes and
the fast kernels call the same ones, so an environment cannot mean two things.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """The function, compiled when first called; its Python original is its `py_func`."""
    # NumPy's rule for division spares a zero test, and with it a way out, in every inlined step.
    return cast(_Function, numba.njit(cache=True, error_model="numpy")(function))
