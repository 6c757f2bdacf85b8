"""The folder for what is computed once per machine: tables of parsers, compiled kernels. It may be deleted any time.

Kernels are executed. So a folder is used only if nobody else can put anything there: it and all folders above it belong
to the user or to root, and nobody else can write to them. Above it a folder like ``/tmp``, in which only owners can
replace what is there, will do.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["cache_folder", "usable"]


def cache_folder() -> Path | None:
    """``$CERFLOW_CACHE_DIR``, else ``cerflow`` in the user's folder for caches, else one of the user's in ``/tmp``.

    The folder is made. None if the variable names a place that cannot be used, or if there is no place at all.
    """
    given = os.environ.get("CERFLOW_CACHE_DIR")
    if given:
        return usable(Path(given))
    folder = _of_user()
    return (folder and usable(folder)) or _temporary()


def usable(folder: Path) -> Path | None:
    """The folder, without links on the way, if files can be made in it, by nobody else; it is made if it is not there.

    A warning says why a folder is not used to which others can write.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.resolve(strict=True)
        reason = _doubt(found)
        if reason is None:
            tempfile.TemporaryFile(dir=found).close()
            return found
    except (OSError, RuntimeError):  # links in a circle
        return None
    _warn(f"nothing is kept in '{folder}', because what lies there is executed, and {reason}")
    return None


def _doubt(folder: Path) -> str | None:
    """Why somebody else may put files into a folder; None if nobody can."""
    if not hasattr(os, "getuid"):  # on Windows profiles are closed to others
        return None
    for place in (folder, *folder.parents):
        status = place.stat()
        if status.st_uid not in (0, os.getuid()):
            return f"'{place}' belongs to the user with number {status.st_uid}"
        mode = status.st_mode
        if mode & stat.S_ISVTX and place != folder:
            continue
        if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _is_private(status.st_gid)):
            return f"others can write to '{place}' (mode {stat.S_IMODE(mode):o}; chmod go-w would do)"
    return None


def _is_private(group: int) -> bool:
    """Whether a group is the user's own, as many systems make one for every user."""
    import grp
    import pwd

    try:
        user, found = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_gid == user.pw_gid and found.gr_name == user.pw_name and not set(found.gr_mem) - {user.pw_name}


@cache
def _warn(text: str) -> None:
    logging.getLogger("cerflow").warning("%s", text)


def _of_user() -> Path | None:
    base = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "cerflow"
    except RuntimeError:  # there is no home, as for the user under whom a cluster may run its tasks
        return None


def _temporary() -> Path | None:
    """A folder of the user's own where everybody may make folders."""
    if not hasattr(os, "getuid"):
        return None
    folder = Path(tempfile.gettempdir()) / f"cerflow-{os.getuid()}"
    # Somebody may have put a link there, to a folder of the user's that is for other things.
    return None if folder.is_symlink() else usable(folder)
