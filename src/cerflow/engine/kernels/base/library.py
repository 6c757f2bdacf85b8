"""The library of all kernels: where it is, that it belongs to these sources and to nobody else, and what is in it.

It is in the package, or it is unpacked or built into the user's `cache_folder`. It has each kernel for one or two
levels of processors. It knows nothing of Python, NumPy or Numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import pyarrow as pa

from cerflow.cache_folder import cache_folder, open_own
from cerflow.errors import CerflowError

_PACKAGE = "cerflow.engine.kernels"
#: Modules whose numbers are compiled into kernels.
_CONSTANTS = (
    "conditions.register_values",
    "engine.layout",
    "engine.opcodes",
    "engine.scan.layout",
    "values.array_types",
)
#: Its name in the package.
LIBRARY = "kernels.so"
_log = logging.getLogger("cerflow")
_lock = Lock()
#: The library, once it is needed.
_loaded: list[Callable[[str], int]] = []


@cache
def sources() -> dict[str, bytes]:
    """The texts of all modules that kernels are compiled from."""
    found = dict(_modules(files(_PACKAGE), _PACKAGE))
    for name in _CONSTANTS:
        *package, module = f"cerflow.{name}".split(".")
        found[f"cerflow.{name}"] = (files(".".join(package)) / f"{module}.py").read_bytes()
    return found


def _modules(folder: Traversable, package: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield f"{package}.{entry.name.removesuffix('.py')}", entry.read_bytes()
        elif entry.is_dir():
            yield from _modules(entry, f"{package}.{entry.name}")


@cache
def stamp() -> str:
    """The name in the library that says which sources it belongs to."""
    return f"cerflow_of_{hashlib.sha256(repr(sorted(sources().items())).encode()).hexdigest()[:16]}"


def symbol(kernel: str, level: str = "") -> str:
    """The name of a kernel in the library, for a level of processors (empty: that of this one)."""
    return f"cerflow_{kernel}_{level or _level()}"


@cache
def _level() -> str:
    """``v3`` on a processor of x86-64-v3: AVX2 is the last part of it that processors got."""
    wide = pa.runtime_info().detected_simd_level in ("avx2", "avx512")
    return "v3" if wide and platform.machine() in ("x86_64", "AMD64") else "base"


def is_at_hand() -> bool:
    """Whether the library need not be built."""
    return (packaged() or _kept()) is not None


def load_kernels() -> Callable[[str], int]:
    """The library, as a function from names to addresses; it is found, unpacked or built if it is not there.

    Raises `CerflowError` if it has to be built, but there is no Numba.
    """
    with _lock:
        if not _loaded:
            _loaded.append(_load())
    return _loaded[0]


def _load() -> Callable[[str], int]:
    began, path, library = time.perf_counter(), kept_path(), packaged() or _kept()
    if library is None and path is not None:
        with _alone(path.with_name("lock")):
            # Another process may have built it meanwhile.
            library = _kept() or (_kept() if _building().build(path) else None)
    if library is None:
        found: Callable[[str], int] = _building().in_process()
        return found
    _log.info("loaded the kernels in %.2f s", time.perf_counter() - began)
    return lambda name: ctypes.cast(library[name], ctypes.c_void_p).value or 0


def _building() -> Any:
    """What builds a library."""
    try:
        from cerflow.engine.kernels.base import building
    except ImportError as error:
        raise CerflowError(
            f"this installation of cerflow has no compiled kernels for {sysconfig.get_platform()}, "
            f"and cannot compile them ({error}): install the extra 'compile', as by pip install 'cerflow[compile]'"
        ) from error
    return building


def packaged() -> ctypes.CDLL | None:
    """The library of the package, if it belongs to these sources; from an archive it is unpacked."""
    place, began = files(_PACKAGE) / LIBRARY, time.perf_counter()
    with suppress(OSError):
        content = place.read_bytes()
        if stamp().encode() not in content:
            return None
        if isinstance(place, Path):
            return ctypes.CDLL(str(place))
        path = kept_path()
        if path is not None and _kept() is None:
            keep(content, path)
            _log.warning("unpacked the kernels to '%s' in %.2f s", path, time.perf_counter() - began)
        return _kept()
    return None


def _kept() -> ctypes.CDLL | None:
    """The library in the user's folder."""
    path = kept_path()
    file = None if path is None else open_own(path)
    if file is None:
        return None
    with file:
        if stamp().encode() not in file.read():
            return None
        # Load the file that was checked, even if another one has its name by now.
        return ctypes.CDLL(f"/proc/self/fd/{file.fileno()}" if sys.platform == "linux" else str(path))


def keep(content: bytes, path: Path) -> None:
    """Write a file at once, so that nobody reads a part of it, and only its owner can write to it."""
    with TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder, "made")
        made.touch(0o644)
        made.write_bytes(content)
        os.replace(made, path)


@cache
def kept_path() -> Path | None:
    """The path of a library that is not part of the package; None if there is no folder for it."""
    folder = cache_folder()
    return None if folder is None else folder / f"kernels-{stamp()}-{sysconfig.get_platform()}.so"


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, whatever happens to it."""
    with path.open("a") as file:
        # There is no fcntl on Windows, where Spark's workers are not forked either; and file systems without locks.
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
