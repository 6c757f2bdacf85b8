"""Decorators for the functions of kernels, and the names of Numba and LLVM that they use.

Only a process that builds the library compiles them (see `cerflow.engine.kernels.base.building`). In all others they
are plain functions of Python, and neither Numba nor LLVM is imported.
"""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from typing import Any

#: The environment variable of a process that builds.
BUILDING = "CERFLOW_BUILDING"
#: Numba's options for all kernels, which do not count references to arrays.
OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}

ir: Any
types: Any
arrayobj: Any
numba: Any
ir = types = arrayobj = numba = None
if os.environ.get(BUILDING):
    ir, types, arrayobj, numba = map(import_module, ("llvmlite.ir", "numba.types", "numba.np.arrayobj", "numba"))


def intrinsic(function: Any) -> Any:
    """A function that writes LLVM's text."""
    return numba.extending.intrinsic(function) if numba else function


def part(function: Any, **options: Any) -> Any:
    """A function that kernels call: compiled once for all widths of signed integers, constant or not."""
    if numba is None:
        return function
    made = numba.njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options, **OPTIONS)
    resolve = made.get_call_template
    made.get_call_template = lambda kinds, named: resolve([*map(_wide, kinds)], named)
    return made


def _wide(kind: Any) -> Any:
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind


inlined = partial(part, forceinline=True)
#: A part that Python may call, too: `cerflow.engine.kernels.table` lists it.
kernel = part
