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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Any

from cerflow.cache_folder import cache_folder, open_own
from cerflow.errors import CerflowError

__all__ = [
    "LIBRARY",
    "address_of_kernel",
    "is_at_hand",
    "keep",
    "kept_path",
    "load_kernels",
    "packaged",
    "sources",
    "stamp",
    "symbol",
]

_PACKAGE = "cerflow.engine.kernels"
#: Modules whose numbers are compiled into kernels.
_CONSTANTS = (
    ("cerflow.conditions", "register_values.py"),
    ("cerflow.engine", "layout.py"),
    ("cerflow.engine", "opcodes.py"),
    ("cerflow.engine.scan", "layout.py"),
    ("cerflow.values", "array_types.py"),
)
#: Its name in the package.
LIBRARY = "kernels.so"
#: What a processor must have beside the first 64-bit ones of its kind to run the quicker kernels (x86-64-v3).
_V3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm"}
_lock = Lock()
#: The library, once it is needed.
_loaded: list[Callable[[str], int]] = []


@cache
def sources() -> dict[str, bytes]:
    """The texts of all modules that kernels are compiled from."""
    found = {f"{_PACKAGE}.{name}": source.read_bytes() for name, source in _modules(files(_PACKAGE), "")}
    for package, name in _CONSTANTS:
        found[f"{package}.{name.removesuffix('.py')}"] = (files(package) / name).read_bytes()
    return found


def _modules(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield name + entry.name.removesuffix(".py"), entry
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _modules(entry, f"{name}{entry.name}.")


@cache
def stamp() -> str:
    """The name in the library that says which sources it belongs to."""
    digest = hashlib.sha256()
    for name, source in sorted(sources().items()):
        digest.update(name.encode() + b"\0" + source)
    return f"cerflow_of_{digest.hexdigest()[:16]}"


def symbol(kernel: str, level: str) -> str:
    """The name of a kernel in the library, for a level of processors."""
    return f"cerflow_{kernel}_{level}"


@cache
def _level() -> str:
    """``v3`` on a processor of x86-64-v3, else ``base``; only Linux is asked."""
    if platform.machine() in ("x86_64", "AMD64"):
        with suppress(OSError), open("/proc/cpuinfo", "rb") as file:
            line = next((line for line in file if line.startswith(b"flags")), b"")
            if set(line.decode().split()) >= _V3:
                return "v3"
    return "base"


def address_of_kernel(name: str) -> int:
    """The address of a kernel; the library is found, unpacked or built if it is not there."""
    return load_kernels()(symbol(name, _level()))


def is_at_hand() -> bool:
    """Whether the library need not be built."""
    return (packaged() or _kept()) is not None


def load_kernels(*, told: bool = False) -> Callable[[str], int]:
    """The library, as a function from names to addresses; ``told`` says that the user knows that it may take long.

    Raises `CerflowError` if it has to be built, but there is no Numba.
    """
    with _lock:
        if not _loaded:
            _loaded.append(_load(told))
    return _loaded[0]


def _load(told: bool) -> Callable[[str], int]:
    path, library = kept_path(), packaged() or _kept()
    if library is None and path is not None:
        with _alone(path.with_name("lock")):
            # Another process may have built it meanwhile.
            library = _kept()
            if library is None and _building(told).build(path):
                library = _kept()
    if library is None:
        found: Callable[[str], int] = _building(told).in_process()
        return found
    return lambda name: ctypes.cast(library[name], ctypes.c_void_p).value or 0


def _building(told: bool) -> Any:
    """What builds a library; unless the user was ``told``, a line says so."""
    try:
        from cerflow.engine.kernels.base import building
    except ImportError as error:
        raise CerflowError(
            f"this installation of cerflow has no compiled kernels for {sysconfig.get_platform()}, "
            f"and cannot compile them ({error}): install the extra 'compile', as by pip install 'cerflow[compile]'"
        ) from error
    if not told:
        logging.getLogger("cerflow").warning("compiling the kernels, for one to three minutes; this is kept")
    return building


def packaged() -> ctypes.CDLL | None:
    """The library of the package, if it belongs to these sources; from an archive it is unpacked."""
    place = files(_PACKAGE) / LIBRARY
    with suppress(OSError):
        content = place.read_bytes()
        if stamp().encode() not in content:
            return None
        if isinstance(place, Path):
            return ctypes.CDLL(str(place))
        path = kept_path()
        if path is not None and _kept() is None:
            keep(content, path)
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
    """Write a file at once, so that nobody reads a part of it."""
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(content)
            file.close()
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)
            raise


@cache
def kept_path() -> Path | None:
    """The path of a library that is not part of the package; None if there is no folder for it."""
    folder = cache_folder()
    return None if folder is None else folder / f"kernels-{stamp()}-{sysconfig.get_platform()}.so"


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, whatever happens to it."""
    try:
        import fcntl
    except ImportError:  # Windows, where Spark's workers are not forked either
        yield
        return
    with path.open("a") as file:
        with suppress(OSError):  # a file system of a network without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
