"""The folder for what is computed once per machine: tables of parsers, compiled kernels. It may be deleted any time."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

__all__ = ["cache_folder", "writable"]


def cache_folder() -> Path | None:
    """``$CERFLOW_CACHE_DIR``, else ``cerflow`` in the user's folder for caches, else one of the user's in ``/tmp``.

    The folder is made. None if the variable names a place that cannot be written to, or if there is no place at all.
    """
    given = os.environ.get("CERFLOW_CACHE_DIR")
    if given:
        return Path(given) if writable(Path(given)) else None
    folder = _of_user()
    if folder is not None and writable(folder):
        return folder
    return _temporary()


def writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _of_user() -> Path | None:
    base = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "cerflow"
    except RuntimeError:  # there is no home, as for the user under whom a cluster may run its tasks
        return None


def _temporary() -> Path | None:
    """A folder that nobody else can write to: what lies in it is executed."""
    if not hasattr(os, "getuid"):
        return None
    folder = Path(tempfile.gettempdir()) / f"cerflow-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if own and writable(folder) else None
