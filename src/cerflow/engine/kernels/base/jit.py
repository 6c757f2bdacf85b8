"""The compilation of kernels.

Kernels work on arrays that Python holds while they run, and make none themselves, so reference counts are left out
(``_nrt=False``). With them, every access to an array costs two atomic operations, in all a hundred times the work for
an event.

A kernel is optimised together with all functions below it. So a part that only some queries need is a kernel of its
own, called by its address, and compiled or loaded only for such a query. Integers that are arguments of functions have
64 bits (see `cerflow.engine.kernels.base.pipeline`).

Numba is imported when something has to be compiled. Compiled kernels are loaded without it (see
`cerflow.engine.machine_code`), as its import and its own caches take longer than all else before a first match.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from threading import RLock
from typing import Any, ClassVar

import numpy as np

from cerflow.engine.machine_code import kept_code, loaded_address, loaded_function

__all__ = [
    "OPTIONS",
    "Kernel",
    "KernelPart",
    "Late",
    "by_address",
    "inlined",
    "intrinsic",
    "ir",
    "kernel",
    "part",
    "types",
]

_PACKAGE = "cerflow.engine.kernels."
#: Numba's options for all kernels.
OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
_PART: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_lock = RLock()


class Late:
    """A module that is imported when something of it is needed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


ir, types = Late("llvmlite.ir"), Late("numba.types")


class KernelPart:
    """A function that is compiled as a part of kernels; ``py_func`` is the function in Python."""

    options: ClassVar[dict[str, Any]] = _PART

    def __init__(self, function: Any) -> None:
        if "<locals>" in function.__qualname__:
            raise ValueError(f"'{function.__qualname__}' needs a __qualname__ that no other function has")
        self.py_func = function
        self.__doc__ = function.__doc__

    @cached_property
    def _numba_type_(self) -> Any:
        """The type by which Numba knows such a function in the functions that call it."""
        from numba import njit

        from cerflow.engine.kernels.base.pipeline import Pipeline

        # The type does not hold the compiled function.
        self._dispatcher = njit(pipeline_class=Pipeline, **self.options)(self.py_func)
        return types.Dispatcher(self._dispatcher)


class _Inlined(KernelPart):
    """A part of kernels without a function of its own."""

    options: ClassVar = {**_PART, "forceinline": True}


class Kernel(KernelPart):
    """A kernel that Python calls, with numbers, arrays without gaps, and tuples of these.

    For each combination of types it is compiled or loaded at its first call. It returns numbers, truth values, or a
    tuple of these; 0 if it returns nothing. Python's lock is released meanwhile.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        #: The functions by the types of their arguments.
        self.compiled: dict[str, Any] = {}
        self._latest: Any = _fits_nothing

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel."""
        try:
            return self._latest(*arguments)
        except TypeError:
            pass  # other types than at the last call
        fitting = self.load(*arguments)
        if not any(isinstance(argument, tuple) for argument in arguments):
            # Only Python looks at the types of arrays within tuples.
            self._latest = fitting
        return fitting(*arguments)

    def load(self, *arguments: Any) -> Any:
        """The compiled function for arguments of these types, which is compiled or loaded but not called."""
        name = _name(self.py_func)
        kinds = "-".join(_kind(argument, name) for argument in arguments)
        with _lock:
            if kinds not in self.compiled:

                def compile_it() -> bytes:
                    from cerflow.engine.kernels.base.compiling import code_for_python

                    return code_for_python(self, arguments)

                label = f"{name}-{kinds}"
                self.compiled[kinds] = loaded_function(label, _code(self.py_func, label, compile_it))
            return self.compiled[kinds]


class _Intrinsic:
    """A function that writes instructions itself: `numba.extending.intrinsic`, when Numba is there."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        self._made = made = intrinsic(self.function)
        # Numba looks at new functions when it begins to compile one.
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(made)


#: Decorators for these functions
kernel, part, inlined, intrinsic = Kernel, KernelPart, _Inlined, _Intrinsic


@cache
def by_address(function: Callable[..., Any], arguments: int) -> int:
    """The address of a plain function as a kernel; its arguments and its result are 64-bit integers.

    It is compiled or loaded at once, and stays for the life of the process.
    """

    def compile_it() -> bytes:
        from cerflow.engine.kernels.base.compiling import code_of_integers

        return code_of_integers(function, arguments)

    with _lock:
        label = f"{_name(function)}-{arguments}"
        return loaded_address(label, _code(function, label, compile_it))


def _code(function: Any, label: str, compile_it: Callable[[], bytes]) -> bytes:
    """The object code of a function; only that of the package is kept, since its version is known."""
    return kept_code(label, compile_it) if function.__module__.startswith(_PACKAGE) else compile_it()


def _name(function: Any) -> str:
    return f"{function.__module__.removeprefix(_PACKAGE)}.{function.__qualname__}"


def _kind(argument: Any, name: str) -> str:
    """The type of an argument, as a part of the name of a file."""
    if type(argument) is np.ndarray and argument.flags.c_contiguous and argument.flags.aligned:
        if argument.dtype.kind in "biuf" and argument.dtype.isnative:
            return f"{argument.dtype.str[1:]}x{argument.ndim}"
    elif isinstance(argument, tuple):
        return f"({'-'.join(_kind(value, name) for value in argument)})"
    for kind, letter in ((bool | np.bool_, "b"), (int | np.integer, "i"), (float, "f")):
        if isinstance(argument, kind):
            return letter
    raise TypeError(f"the kernel {name} cannot use {argument!r:.200} of type {type(argument).__name__}")


def _fits_nothing(*arguments: Any) -> Any:
    raise TypeError
