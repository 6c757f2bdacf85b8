"""How Python calls kernels: by the address of a row of words, through ctypes."""

from __future__ import annotations

import ctypes
from array import array
from functools import cached_property, partial
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.engine.kernels.base.library import load_kernels, symbol

#: All kernels of the table, by the units that are compiled together.
UNITS: dict[str, list[Kernel]] = {}
#: C functions without Python's lock, and with it: releasing it costs as much as a small kernel.
_FREE, _HELD = ctypes.CFUNCTYPE(ctypes.c_int64), ctypes.PYFUNCTYPE(ctypes.c_int64)
#: Without the lock, for a row that is only read: its bytes are passed by their address.
_READING = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)


class Kernel:
    """A kernel of the table; ``where`` is its module. Other kernels call an ``inner`` one, with its arguments directly.

    A call takes numbers and arrays without gaps, and returns an integer (0 without ``results``), or a tuple of several.
    For frequent calls, make a `Row` once.
    """

    def __init__(
        self, unit: str, where: str, name: str, arguments: str, results: int = 1, *, inner: bool = False
    ) -> None:
        self.where, self.name, self.results, self.inner = where, name, results, inner
        #: The type of each argument, and its number of axes (0: a number).
        self.arguments = [(np.dtype(kind[0]), int(kind[1:] or 0)) for kind in arguments.split()]
        #: The words of a row.
        self.size = sum(1 + axes for _, axes in self.arguments) + max(results - 1, 0)
        self._packed = Struct(f"{self.size}q").pack
        UNITS.setdefault(unit, []).append(self)

    @cached_property
    def address(self) -> int:
        """The address of its code."""
        return load_kernels()(symbol(self.name))

    @cached_property
    def free(self) -> Any:
        """The function of a row, without Python's lock."""
        return _FREE(self.address)

    @cached_property
    def _reading(self) -> Any:
        return _READING(self.address)

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel."""
        words: list[int] = []
        for (dtype, axes), argument in zip(self.arguments, arguments, strict=True):
            if axes == 0:
                words.append(int(argument))
                continue
            flags = argument.flags
            if argument.dtype != dtype or argument.ndim != axes or not (flags.c_contiguous and flags.aligned):
                kind = f"{argument.dtype} of shape {argument.shape}, {argument.strides}"
                raise TypeError(f"the kernel {self.name} cannot use {kind}: it needs {dtype} with {axes} axes")
            # NumPy takes six times as long to give the address.
            words.append(pa.py_buffer(argument).address)
            words += argument.shape
        if self.results <= 1:
            return self._reading(self._packed(*words))
        row = array("q", words + [0] * (self.results - 1))
        return (self.free(ctypes.c_void_p(row.buffer_info()[0])), *row[1 - self.results :])


class Row:
    """A row of words for many calls of a kernel, without arrays: ``words`` can be written to.

    ``call()`` calls the kernel; ``call_held()`` keeps Python's lock, for kernels that take less than a microsecond.
    """

    def __init__(self, kernel: Kernel, *words: int) -> None:
        row = array("q", [*words, *[0] * (kernel.size - len(words))])
        self.words, address = memoryview(row), ctypes.c_void_p(row.buffer_info()[0])
        self.call, self.call_held = partial(kernel.free, address), partial(_HELD(kernel.address), address)
