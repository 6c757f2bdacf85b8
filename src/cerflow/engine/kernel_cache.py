"""Where compiled kernels are kept, what they are valid for, and that one process of a machine compiles them for all.

A cluster unpacks what it ships in another place for every application, or does not unpack it; and a kernel is compiled
together with those that it calls. So kernels are kept under a hash of the text of all their sources. Numba's own cache
looks at the path and the time of one source, and cannot be read without Numba.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from cerflow.cache_folder import cache_folder, usable

__all__ = ["compile_once", "is_complete", "kernels_folder", "kernels_stamp", "kernels_version"]

_KERNELS = "cerflow.engine.kernels"
#: Modules whose numbers are compiled into kernels.
_CONSTANTS = (
    ("cerflow.conditions", "register_values.py"),
    ("cerflow.engine", "layout.py"),
    ("cerflow.engine", "opcodes.py"),
    ("cerflow.engine.scan", "layout.py"),
    ("cerflow.values", "array_types.py"),
)


@cache
def kernels_stamp() -> str:
    """A hash of all sources that kernels are compiled from."""
    sources = dict(_modules(files(_KERNELS), _KERNELS))
    sources |= {f"{package}/{name}": files(package) / name for package, name in _CONSTANTS}
    digest = hashlib.sha256()
    for name, source in sorted(sources.items()):
        digest.update(name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def _modules(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        path = f"{name}/{entry.name}"
        if entry.name.endswith(".py"):
            yield path, entry
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _modules(entry, path)


@cache
def kernels_folder() -> Path | None:
    """The folder of compiled kernels; None if there is no place that this user, and nobody else, can write to.

    It is in `cache_folder` if ``CERFLOW_CACHE_DIR`` names one, else in ``$NUMBA_CACHE_DIR``, else beside the sources,
    else in the default `cache_folder`.
    """
    folder = next(filter(None, map(usable, _places())), None)
    if folder is None:
        logging.getLogger("cerflow").warning(
            "there is no place for compiled kernels, so each process compiles them: "
            "let CERFLOW_CACHE_DIR name a folder to which nobody else can write"
        )
    return folder


def _places() -> Iterator[Path]:
    own = f"kernels-{kernels_stamp()}"
    folder = cache_folder()
    if folder is not None and os.environ.get("CERFLOW_CACHE_DIR"):
        yield folder / own
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"]) / own
    beside = files(_KERNELS)
    if isinstance(beside, Path):
        yield beside / "__pycache__"
    if folder is not None:
        yield folder / own


@cache
def kernels_version() -> str:
    """A hash of all that compiled kernels depend on: their sources, what compiles and calls them, and the processor."""
    processor = (llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    libraries = (version("numba"), llvmlite.__version__, np.__version__.partition(".")[0])
    valid_for = (kernels_stamp(), *libraries, sys.implementation.cache_tag, object.__basicsize__, *processor)
    return hashlib.sha256(repr(valid_for).encode()).hexdigest()[:16]


def is_complete() -> bool:
    """Whether all kernels of this version, for this processor, are kept already."""
    marker = _marker()
    return marker is not None and marker.exists()


def compile_once(work: Callable[[], None]) -> None:
    """Let one process of all that share the folder do the work, which compiles all kernels; the others wait for it.

    If that process dies, the next one does it. Where files cannot be locked, several may do it at the same time.
    """
    marker = _marker()
    if marker is None:
        work()
        return
    with _alone(marker.with_name("lock")):
        if not marker.exists():
            work()
            with suppress(OSError):  # a full disk
                marker.touch()


def _marker() -> Path | None:
    folder = kernels_folder()
    if folder is None:
        return None
    return folder / f"complete-{kernels_version()}"


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, whatever happens to it."""
    try:
        import fcntl
    except ImportError:  # Windows, where Spark's workers are not forked either
        yield
        return
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # a file system of a network without locks
            logging.getLogger("cerflow").debug("'%s' cannot be locked", path)
        yield
