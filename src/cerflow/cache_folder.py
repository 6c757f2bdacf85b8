"""The folder for what is computed once per machine: parser tables, compiled kernels. It may be deleted at any time.

Kernels are executed. So a folder is used only if nobody else can put anything there: it and all folders above it belong
to the user or to root, and nobody else can write to them. Above it a folder like ``/tmp``, in which only owners can
replace what is there, will do. The folder may have been open to others before, so each file is checked too once it is
open.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import BinaryIO

_FLAGS = ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC")
#: Folders with a file that is not read; one warning is enough.
_distrusted: set[Path] = set()


def cache_folder() -> Path | None:
    """``$CERFLOW_CACHE_DIR``, else ``cerflow`` in the user's folder for caches, else one of the user's in ``/tmp``.

    The folder is made. None if the variable names a place that cannot be used, or if there is no place at all.
    """
    given = os.environ.get("CERFLOW_CACHE_DIR")
    if given:
        return usable(Path(given), asked=True)
    folder = _of_user()
    return (folder and usable(folder)) or _temporary()


def usable(folder: Path, *, asked: bool = False) -> Path | None:
    """The folder, without links on the way, if files can be made in it, by nobody else; it is made if it is not there.

    A warning says why a folder is not used to which others can write or, if the user has ``asked`` for it, any other.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.resolve(strict=True)
        reason = _doubt(found)
        if reason is None:
            tempfile.TemporaryFile(dir=found).close()
            return found
    except (OSError, RuntimeError) as error:  # links in a circle are a RuntimeError
        if asked:
            said = getattr(error, "strerror", None) or error
            _warn(f"no cache is kept in '{folder}', which CERFLOW_CACHE_DIR names: {said}")
        return None
    _warn(f"no cache is kept in '{folder}', because its files are executed, and {reason}")
    return None


def open_own(path: Path) -> BinaryIO | None:
    """A file of a `usable` folder, open for reading; None if there is none, or if it may come from somebody else.

    It must be a regular file without a second name, and no link, that belongs to the user or to root and that nobody
    else can write to. A warning names the first file of a folder that is not.
    """
    try:
        # Nonblocking, because to open a pipe would wait for its writer.
        descriptor = os.open(path, sum(getattr(os, name, 0) for name in _FLAGS))
    except OSError as error:
        if error.errno == errno.ELOOP:
            _distrust(path, "is a link")
        return None
    status = os.fstat(descriptor)
    reason = _others(status)
    if not stat.S_ISREG(status.st_mode):
        reason = "is not a regular file"
    elif status.st_nlink > 1:
        reason = "has another name elsewhere"
    if reason is None:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    _distrust(path, reason)
    return None


def _doubt(folder: Path) -> str | None:
    """Why somebody else may put files into a folder, and the remedy; None if nobody can."""
    for place in (folder, *folder.parents):
        status = place.stat()
        reason = _others(status)
        if reason is None or (place != folder and status.st_mode & stat.S_ISVTX and status.st_uid in _trusted()):
            continue
        above = "" if place == folder else f"choose another folder, or close '{place}' to others and "
        return f"'{place}' {reason}: {above}delete '{folder}', as a change of its mode would keep what others put there"
    return None


def _others(status: os.stat_result) -> str | None:
    """What lets somebody else write to a file or folder; None if nobody can."""
    if not hasattr(os, "getuid"):  # on Windows profiles are closed to others
        return None
    if status.st_uid not in _trusted():
        return f"belongs to the user with number {status.st_uid}"
    mode = status.st_mode
    if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _is_private(status.st_gid)):
        return f"can be written by others (mode {stat.S_IMODE(mode):o})"
    return None


def _trusted() -> tuple[int, int]:
    return 0, os.getuid()


def _is_private(group: int) -> bool:
    """Whether a group is the user's own, as many systems make one for every user."""
    import grp
    import pwd

    try:
        user, found = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_gid == user.pw_gid and found.gr_name == user.pw_name and not set(found.gr_mem) - {user.pw_name}


def _distrust(path: Path, reason: str) -> None:
    if path.parent not in _distrusted:
        _distrusted.add(path.parent)
        _warn(f"'{path}' is not read, because it {reason}: others may have put it there, so delete '{path.parent}'")


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
