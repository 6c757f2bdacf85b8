"""The folder for what is computed once per machine: parser tables, compiled kernels. It may be deleted at any time.

Kernels are executed. So a folder is used only if it belongs to the user or to root and nobody else can write to it. It
may have been open before, and others may put another one in its place: so each file is checked too, once it is open.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO

#: To open a pipe without these would wait for its writer.
_FLAGS = sum(getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "BINARY", "CLOEXEC"))


def cache_folder() -> Path | None:
    """``$CERFLOW_CACHE_DIR``, else ``cerflow`` in the user's folder for caches, else one of the user's in ``/tmp``.

    The folder is made. None if the variable names a place that cannot be used, or if there is no place at all. A
    warning says why a folder is not used that the variable names, or to which others can write.
    """
    named = os.environ.get("CERFLOW_CACHE_DIR")
    for folder in [Path(named)] if named else _places():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.resolve(strict=True)
            reason = _others(found.stat())
            if reason is None:
                tempfile.TemporaryFile(dir=found).close()
                return found
            reason = f"it {reason}; delete it, as a change of its mode would keep what others put there"
        except (OSError, RuntimeError) as error:  # links in a circle are a RuntimeError
            reason = str(getattr(error, "strerror", None) or error) if named else None
        if reason is not None:
            _warn(f"no cache is kept in '{folder}': {reason}")
    return None


def open_own(path: Path) -> BinaryIO | None:
    """A file of the folder, open for reading; None if there is none, or if it may come from somebody else.

    It must be a regular file without a second name, that belongs to the user or to root and that nobody else can write
    to. A warning names a file that is not, unless it is a link.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    status = os.fstat(descriptor)
    plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    reason = _others(status) if plain else "is not a regular file with one name"
    if reason is None:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    _warn(f"'{path}' is not read, because it {reason}: others may have put it there, so delete '{path.parent}'")
    return None


def keep(path: Path, content: bytes) -> None:
    """Write a file at once, so that nobody reads a part of it, and only its owner can write to it."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder, "made")
        with open(made, "xb", opener=partial(os.open, mode=0o644)) as file:
            file.write(content)
        made.replace(path)


def _others(status: os.stat_result) -> str | None:
    """What lets somebody else write to a file or folder; None if nobody can."""
    if not hasattr(os, "getuid"):  # on Windows profiles are closed to others
        return None
    if status.st_uid not in (0, os.getuid()):
        return f"belongs to the user with number {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written by others (mode {stat.S_IMODE(status.st_mode):o})"
    return None


@cache
def _warn(text: str) -> None:
    logging.getLogger("cerflow").warning("%s", text)


def _places() -> Iterator[Path]:
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    # The user may lack a home, as the one under whom a cluster may run its tasks.
    with suppress(RuntimeError):
        yield (Path(base) if base else Path.home() / ".cache") / "cerflow"
    if hasattr(os, "getuid"):
        folder = Path(tempfile.gettempdir()) / f"cerflow-{os.getuid()}"
        # Somebody may have put a link there, to a folder of the user's that is for other things.
        if not folder.is_symlink():
            yield folder
