"""Decorators for the functions of kernels, and the names of Numba and LLVM that they use.

Only a process that builds the library compiles them (see `cerflow.engine.kernels.base.building`). In all others they
are plain functions of Python, and neither Numba nor LLVM is imported.
"""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from typing import Any

__all__ = ["BUILDING", "OPTIONS", "arrayobj", "inlined", "intrinsic", "ir", "kernel", "part", "types"]

#: The variable that is set for a process that builds.
BUILDING = "CERFLOW_BUILDING"
#: Numba's options for all kernels. They hold no references to arrays, so these are not counted.
OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}

ir: Any
types: Any
arrayobj: Any
part: Any
inlined: Any
intrinsic: Any
if os.environ.get(BUILDING):
    from numba import njit
    from numba.extending import intrinsic

    ir, types, arrayobj = map(import_module, ("llvmlite.ir", "numba.types", "numba.np.arrayobj"))
    compiled: Any = partial(njit, no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)
    part, inlined = compiled(), compiled(forceinline=True)
else:
    ir = types = arrayobj = None

    def part(function: Any) -> Any:
        """Leave a function as it is."""
        return function

    inlined = intrinsic = part
#: A part that Python may call, too: `cerflow.engine.kernels.table` lists it.
kernel = part
