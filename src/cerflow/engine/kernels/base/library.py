"""Finds the compiled library of all kernels, or unpacks or builds it.

The library is part of the package, with each kernel for one or two levels of processors, or is kept in the user's
`cache_folder`, for that of this machine. Its name holds a hash of the sources. It does not depend on Python, NumPy or
Numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import platform
import re
import sys
import sysconfig
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path

import pyarrow as pa

from cerflow.base.cache_folder import cache_folder, keep, open_own
from cerflow.base.errors import CerflowError

PACKAGE = "cerflow.engine.kernels"
#: The sources of kernels: their folder, and modules whose constants they use.
_SOURCES = (
    "engine/kernels",
    "engine/layout.py",
    "engine/opcodes.py",
    "engine/scan/layout.py",
    "logic/conditions/register_values.py",
    "base/array_types.py",
)
#: A comment or docstring on lines of its own.
_COMMENT = r'(?m)^ *(#.*|"""[^"]*(?:"{1,2}[^"]+)*""")\n'
_log = logging.getLogger("cerflow")


@cache
def sources() -> dict[str, str]:
    """The texts of all modules that kernels are compiled from, without comments on lines of their own."""
    found, names = {}, [*_SOURCES]
    for name in names:
        place = files("cerflow") / name
        if place.is_dir():
            names += [f"{name}/{entry.name}" for entry in place.iterdir()]
        elif name.endswith(".py"):
            text = re.sub(_COMMENT, "", place.read_text("utf-8"))
            found[f"cerflow/{name}".removesuffix(".py").replace("/", ".")] = text
    return found


@cache
def library_name(machine: str = "", processor: str = "") -> str:
    """The name of the library for a machine (empty: this one) and a level of processors (empty: all)."""
    stamp = hashlib.sha256(repr(sorted(sources().items())).encode()).hexdigest()[:16]
    return f"{'-'.join(filter(None, ('kernels', stamp, machine_name(machine), processor)))}.so"


def machine_name(machine: str = "") -> str:
    """The name of a machine (empty: this one) with its system."""
    return f"linux-{machine}" if machine else sysconfig.get_platform()


def processors(machine: str = "") -> tuple[str, ...]:
    """LLVM's names of the levels of processors of a machine (empty: this one), in ascending order."""
    return ("x86-64", "x86-64-v3") if (machine or platform.machine()) in ("x86_64", "AMD64") else ("generic",)


def own_processor() -> str:
    """The level of this processor."""
    # Processors got AVX2 last of all that x86-64-v3 requires.
    return processors()[-1 if pa.runtime_info().detected_simd_level in ("avx2", "avx512") else 0]


def symbol(kernel: str, processor: str = "") -> str:
    """The name of a kernel in the library, for a level of processors (empty: that of this one)."""
    return f"cerflow_{kernel}_{processor or own_processor()}"


@cache
def load_kernels() -> Callable[[str], int]:
    """The library, as a function from names to addresses; it is found, unpacked or built.

    Raises `CerflowError` if it must be built without Numba.
    """
    began, path, library = time.perf_counter(), kept_path(), find_library()
    if library is None:
        try:
            from cerflow.engine.kernels.base import building
        except ImportError as error:
            raise CerflowError(
                f"this installation of cerflow has no compiled kernels for {sysconfig.get_platform()}, "
                f"and cannot compile them ({error}): install the extra 'compile', as by pip install 'cerflow[compile]'"
            ) from error
        if path is not None:
            # The lock ends with the process. Windows and some file systems do not have it.
            with path.with_name("lock").open("a") as lock:
                with suppress(ImportError, OSError):
                    import fcntl

                    fcntl.flock(lock, fcntl.LOCK_EX)
                # Another process may have built it meanwhile.
                library = find_library() or (find_library() if building.build(path, [own_processor()]) else None)
        if library is None:
            return building.in_process()
    _log.info("loaded the kernels in %.2f s", time.perf_counter() - began)
    return lambda name: ctypes.cast(library[name], ctypes.c_void_p).value or 0


def find_library() -> ctypes.CDLL | None:
    """The library of the package or of the user's folder, where one in an archive is unpacked; None without any."""
    place, path, began = files(PACKAGE) / library_name(), kept_path(), time.perf_counter()
    with suppress(OSError):
        if isinstance(place, Path):
            return ctypes.CDLL(str(place))
        if path is not None and open_own(path) is None:
            keep(path, place.read_bytes())
            _log.warning("unpacked the kernels to '%s' in %.2f s", path, time.perf_counter() - began)
    if path is not None and (file := open_own(path)) is not None:
        with file, suppress(OSError):
            # Load the file that was checked, even if another one has its name by now.
            return ctypes.CDLL(f"/proc/self/fd/{file.fileno()}" if sys.platform == "linux" else str(path))
    return None


def kept_path() -> Path | None:
    """The path of a library outside the package; None without a folder for it."""
    folder = cache_folder()
    return None if folder is None else folder / library_name(processor=own_processor())
