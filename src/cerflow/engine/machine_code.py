"""Machine code on disk and in this process, as LLVM makes it, without the compiler that it comes from.

A file holds the object code of one kernel, for one version of all that it depends on (see
`cerflow.engine.kernel_cache`). Its one symbol is the function that Python or another kernel calls.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from cerflow.cache_folder import open_own
from cerflow.engine.kernel_cache import kernels_folder, kernels_version

__all__ = ["API", "SYMBOL", "kept_code", "loaded_address", "loaded_function", "target_machine"]

#: The name of the function in its file.
SYMBOL = "cerflow_entry"
#: The functions of Python that kernels call.
API = (
    "PyBool_FromLong",
    "PyErr_BadArgument",
    "PyErr_Occurred",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyFloat_AsDouble",
    "PyLong_AsLongLong",
    "PyLong_FromLongLong",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
)
#: Python passes the arguments as an array.
_METH_FASTCALL = 0x80
_DIGEST = 16
#: Execution engines and definitions that stay for the life of the process.
_held: list[Any] = []


class _MethodDef(ctypes.Structure):
    """Python's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def kept_code(label: str, compile_it: Callable[[], bytes]) -> bytes:
    """The object code under a label, from its file; it is compiled if there is no such file, or a damaged one."""
    folder = kernels_folder()
    if folder is None:
        return _compiled(label, compile_it)
    path = folder / f"{label}.{kernels_version()}.o"
    file = open_own(path)
    kept = b""
    if file is not None:
        with file, suppress(OSError):
            kept = file.read()
    if len(kept) > _DIGEST and _digest(kept[_DIGEST:]) == kept[:_DIGEST]:
        return kept[_DIGEST:]
    code = _compiled(label, compile_it)
    try:
        _keep(code, path)
    except OSError as error:  # a full disk, for example
        logging.getLogger("cerflow").warning(
            "the next process compiles again, as '%s' cannot be written: %s", path, error
        )
    return code


def _keep(code: bytes, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(_digest(code) + code)
            file.close()
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)
            raise


def _compiled(label: str, compile_it: Callable[[], bytes]) -> bytes:
    begin = time.perf_counter()
    code = compile_it()
    logging.getLogger("cerflow").debug("compiled %s in %.1f s", label, time.perf_counter() - begin)
    return code


def _digest(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=_DIGEST).digest()


@cache
def target_machine() -> Any:
    """LLVM's description of this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in API:
        llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    target = llvm.Target.from_default_triple()
    reloc = "static" if target.name.startswith("x86") else "default"
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc=reloc, codemodel="jitdefault", jit=True
    )


def loaded_address(label: str, code: bytes) -> int:
    """The address of the function in object code."""
    machine = target_machine()
    # The code of each kernel has an engine of its own, so no name in one can be taken for a name in another.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _held.append(engine)
    address: int = engine.get_function_address(SYMBOL)
    if not address:
        raise ImportError(f"there is no kernel in the code kept for {label}")
    return address


def loaded_function(label: str, code: bytes) -> Any:
    """The function in object code, for Python; it takes the type of arrays as the module that it belongs to."""
    definition = _MethodDef(label.encode(), loaded_address(label, code), _METH_FASTCALL, None)
    _held.append(definition)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p)
    return make(definition, np.ndarray, None)
