"""The compilation of kernels.

Kernels work on arrays that Python holds while they run, and make none themselves, so reference counts are left out
(``_nrt=False``). With them, every access to an array costs two atomic operations, in all a hundred times the work for
an event.

A kernel is compiled together with all kernels below it, again for each one above. So a part that only some queries need
is a kernel of its own, called by its address, and compiled or loaded only for such a query.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import cfunc, njit, types

from cerflow.engine.kernel_cache import keep_kernels

__all__ = ["by_address", "inlined", "kernel", "part"]

_OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
_KEPT = keep_kernels()
_PART: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

#: A kernel that Python calls.
kernel = njit(**_OPTIONS, nogil=True, cache=_KEPT)
#: A part of other kernels. It has no wrapper for Python; calling it from there is fatal.
part = njit(**_PART)
#: A part of other kernels without a function of its own.
inlined = njit(**_PART, forceinline=True)


@cache
def by_address(function: Any, arguments: int) -> Any:
    """A plain function as a kernel with an ``address``; its arguments and its result are 64-bit integers.

    It is compiled or loaded at once, and stays for the life of the process.
    """
    signature = types.int64(*[types.int64] * arguments)
    return cfunc(signature, cache=_KEPT, **_OPTIONS)(function)
