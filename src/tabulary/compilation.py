"""Compiled loops: numba, with its cache where there is a place for one."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Return the function compiled at its first call, from a cache on disk where there is a place for one.

    Importing this module loads the compiler, which takes a moment: only modules of kernels do, and those are
    imported where they are first needed.
    """
    try:
        made = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        # A read-only install without a writable home has no place for a cache.
        made = numba.njit(nogil=True)(function)
    return cast(Function, made)


def inlined(function: Function) -> Function:
    """Return the function compiled into each compiled loop that calls it: for small ones that are called often.

    Division by zero gives infinity or NaN, as in numpy: a function that may raise is slow to call.
    """
    return cast(Function, numba.njit(nogil=True, forceinline=True, error_model="numpy")(function))
