"""How kernels are compiled.

They work on arrays that Python holds while they run and make none themselves, so reference counts are left out
(``_nrt=False``): with them every access to an array costs two atomic operations, in all a hundred times the work
that is done for an event.

A kernel is compiled together with all kernels below it, over again for each one above. So what only some queries
need is a kernel of its own, which others call by its address, and which is compiled or loaded when one of them comes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import cfunc, njit, types

__all__ = ["address_of_kernel", "inlined", "kernel", "part"]

_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False, "error_model": "numpy"}

#: A kernel that Python calls.
kernel = njit(**_OPTIONS, cache=True)
#: A part of other kernels.
part = njit(**_OPTIONS)
#: A part of other kernels that has no function of its own.
inlined = njit(**_OPTIONS, inline="always")


@cache
def address_of_kernel(function: Any, arguments: int) -> int:
    """The address of a plain function, compiled, whose arguments and result are 64-bit integers."""
    signature = types.int64(*[types.int64] * arguments)
    return int(cfunc(signature, cache=True, _nrt=False, error_model="numpy")(function).address)
