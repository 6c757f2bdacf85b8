"""The compilation of kernels.

Kernels work on arrays that Python holds while they run, and make none themselves, so reference counts are left out
(``_nrt=False``). With them, every access to an array costs two atomic operations, in all a hundred times the work for
an event.

A kernel is compiled together with all kernels below it, again for each one above. So a part that only some queries need
is a kernel of its own, called by its address, and compiled or loaded only for such a query.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import cfunc, njit, types

from cerflow.engine.kernel_cache import keep_kernels

__all__ = ["by_address", "inlined", "kernel", "part"]

_OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
_KEPT = keep_kernels()
_PART: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _compiled(**options: Any) -> Callable[[Any], Any]:
    """A decorator for functions with a name of their own.

    The symbols of compiled functions consist of a name and a number that every process counts for itself. Functions of
    one name would be taken for each other where kernels that two processes have compiled are loaded together.
    """
    compile_function = njit(**options)

    def decorate(function: Any) -> Any:
        if "<locals>" in function.__qualname__:
            raise ValueError(f"'{function.__qualname__}' needs a __qualname__ that no other function has")
        return compile_function(function)

    return decorate


#: A kernel that Python calls.
kernel = _compiled(**_OPTIONS, nogil=True, cache=_KEPT)
#: A part of other kernels. It has no wrapper for Python; calling it from there is fatal.
part = _compiled(**_PART)
#: A part of other kernels without a function of its own.
inlined = _compiled(**_PART, forceinline=True)


@cache
def by_address(function: Any, arguments: int) -> Any:
    """A plain function as a kernel with an ``address``; its arguments and its result are 64-bit integers.

    It is compiled or loaded at once, and stays for the life of the process.
    """
    signature = types.int64(*[types.int64] * arguments)
    return cfunc(signature, cache=_KEPT, **_OPTIONS)(function)
