"""The targets of output: files are replaced as a whole; pipes and devices are written to directly.

A file is written under a temporary name in its folder and renamed when it is complete, so there is never half an
output. It is locked while it is written, so a temporary file without a lock was left by a process that is gone.
Runs that would write to a file that they read, or to one file twice, are refused: identities are compared, not names.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from cerflow.base import limits
from cerflow.base.errors import OutputError
from cerflow.cli.output.reporting import warn
from cerflow.files.sources import STANDARD_INPUT, Source, is_hidden

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

STANDARD_OUTPUT = "-"

#: Characters of a name that the names of temporary files begin with.
_NAME = 40
#: The identity of a file: device and inode; for a file that does not exist yet, those of its directory and its name.
_Identity = tuple[int | str, ...]


class OutputStream:
    """A binary stream that counts its bytes; its first error is kept for `check`, and later bytes are dropped.

    So writers of formats meet no errors of their streams, which they would wrap in their own, or not survive. An error
    of the system becomes an OutputError that names the target.
    """

    closed = False

    def __init__(self, name: str, below: BinaryIO, directory: Path | None = None) -> None:
        self._name = name
        self._below = below
        self._directory = directory
        self._size = 0
        self._look = limits.DISK_LOOK_BYTES
        self._failure: OSError | None = None

    def write(self, data: bytes | memoryview) -> int:
        """Take all bytes; also a disk that is nearly full is an error."""
        if self._failure is None:
            with self._kept():
                self._below.write(data)
                self._size += len(data)
                self._look_at_disk()
        return len(data)

    def flush(self) -> None:
        """Write buffered bytes to the stream below."""
        if self._failure is None:
            with self._kept():
                self._below.flush()

    def put(self, data: bytes | memoryview) -> None:
        """Write all bytes at once, or raise the error."""
        self.write(data)
        self.check()

    def check(self) -> None:
        """Flush, and raise the error that was kept, if there is one."""
        self.flush()
        if self._failure is not None:
            raise self._failure

    def tell(self) -> int:
        """The number of bytes written, even if the stream below cannot tell."""
        return self._size

    def close(self) -> None:
        """Do nothing: the code that opened the stream below closes it."""

    def _look_at_disk(self) -> None:
        if self._directory is None or self._size < self._look:
            return
        self._look += limits.DISK_LOOK_BYTES
        disk = shutil.disk_usage(self._directory)
        if disk.free < min(limits.DISK_LEFT_FREE, disk.total // 100):
            raise OutputError(
                f"cannot write to {self._name}: its disk has only {disk.free >> 20:,} MiB left; "
                "free some space, write to another disk, or ask for less (LIMIT, COUNT(*), aggregates)"
            )

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            with _failing(self._name):
                yield
        except OSError as error:
            self._failure = error


@contextmanager
def _failing(name: str) -> Iterator[None]:
    """Turn errors of the system in the block into OutputErrors that name a target."""
    try:
        yield
    except (OutputError, BrokenPipeError):
        raise
    except OSError as error:
        reason = "a part of its path is not a directory" if error.errno == errno.ENOTDIR else error.strerror
        raise OutputError(f"cannot write to {name}: {reason or error}") from error


def check_writable(target: str) -> None:
    """Raise OutputError if the target cannot be written to, before any work is done."""
    if descriptor_of(target) is not None:
        return
    status = _status(target)
    mode, replaced = 0 if status is None else status.st_mode, _is_replaced(status)
    parent = Path(os.path.realpath(target) if os.path.islink(target) else target).parent
    problems = {
        "it is a directory": stat.S_ISDIR(mode),
        "it is a socket": stat.S_ISSOCK(mode),
        "no permission": status is not None and not os.access(target, os.W_OK),
        f"there is no directory '{parent}'": replaced and not parent.is_dir(),
        f"the directory '{parent}' is not writable": replaced and not os.access(parent, os.W_OK | os.X_OK),
    }
    for problem in filter(problems.get, problems):
        raise OutputError(f"cannot write to '{target}': {problem}")


def descriptor_of(target: str) -> int | None:
    """The number of the descriptor of this process that a path such as /dev/stdout leads to; None for other paths."""
    if target == STANDARD_OUTPUT:
        return 1
    path, seen = target, 0
    while seen < 40 and os.path.islink(path):
        directory, name = os.path.split(os.path.abspath(path))
        if name.isdecimal() and os.path.realpath(directory) == os.path.realpath("/proc/self/fd"):
            return int(name)
        path, seen = os.path.join(directory, os.readlink(path)), seen + 1
    return None


def free_space(target: str) -> int | None:
    """The free bytes on the disk of a target; None if the target is not a file."""
    if descriptor_of(target) is not None or not _is_replaced(_status(target)):
        return None
    return shutil.disk_usage(Path(os.path.realpath(target)).parent).free


@contextmanager
def open_target(target: str) -> Iterator[OutputStream]:
    """A stream to a target.

    A file (for a link, the file it leads to) is replaced at the end of the block and keeps its mode and owner; on an
    error inside the block it stays as it was. Pipes and devices are opened and written into. Raises OutputError.
    """
    with ExitStack() as opened:
        name, directory = repr(target), None
        number, status = descriptor_of(target), _status(target)
        if target == STANDARD_OUTPUT:
            name, below = "standard output", sys.stdout.buffer
        elif number is None and _is_replaced(status):
            path = Path(os.path.realpath(target))
            below, directory = opened.enter_context(_replacing(target, path, status)), path.parent
        else:
            with _failing(name):
                # Writing to an open descriptor continues at its position, as a shell's redirection does.
                below = os.fdopen(os.open(target, os.O_WRONLY) if number is None else os.dup(number), "wb")
            opened.callback(_close, below)
        stream = OutputStream(name, below, directory)
        yield stream
        stream.check()


def _close(file: BinaryIO) -> None:
    with suppress(OSError):
        file.close()


@contextmanager
def _replacing(target: str, path: Path, old: os.stat_result | None) -> Iterator[BinaryIO]:
    with _failing(repr(target)):
        _remove_left_behind(path)
        partial, number = _partial(path, old)
    file = os.fdopen(number, "wb")
    try:
        if old is not None:
            _like(target, path, old, number)
        yield file
        with _failing(repr(target)):
            os.fsync(number)
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
        _close(file)


def _partial(path: Path, old: os.stat_result | None) -> tuple[Path, int]:
    """A new file next to a path, open and locked; if it will replace a file, nobody else can read it until then."""
    while True:
        name = f".{path.name[:_NAME]}.{os.getpid()}-{secrets.token_hex(4)}.partial"
        partial = path.with_name(name)
        number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if old is None else 0o600)
        # Another process that removes abandoned files may have removed it before it was locked.
        if _lock(number) is not False and partial.exists():
            return partial, number
        os.close(number)


def _lock(number: int) -> bool | None:
    """Lock an open file as long as it is open; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system of a network without locks
        return None
    return True


def _remove_left_behind(path: Path) -> None:
    """Remove temporary files for a path whose processes were killed; files of running processes are locked."""
    left = re.compile(re.escape(f".{path.name[:_NAME]}.") + r"\d+-[0-9a-f]{8}\.partial")
    for name in os.listdir(path.parent):
        if left.fullmatch(name) is None:
            continue
        # Files that cannot be opened or removed stay: others own them.
        with suppress(OSError):
            number = os.open(path.with_name(name), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(number, "rb", buffering=0):
                if _lock(number):
                    path.with_name(name).unlink()


def _like(target: str, path: Path, old: os.stat_result, number: int) -> None:
    """Give an open file the owner, the attributes (access lists among them) and the mode of an old one."""
    new, mode = os.fstat(number), stat.S_IMODE(old.st_mode)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(number, old.st_uid, old.st_gid)
        except PermissionError:
            with suppress(PermissionError):
                os.fchown(number, -1, old.st_gid)
            mode &= ~(stat.S_ISUID | stat.S_ISGID)
            warn(f"'{target}' belonged to another user, who cannot be kept as its owner")
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in os.listxattr(path):
                os.setxattr(number, name, os.getxattr(path, name))
    os.fchmod(number, mode)


def _status(target: str) -> os.stat_result | None:
    """The status of the file at a path, after all links; None if there is none. Raises OutputError on other errors."""
    with _failing(repr(target)), suppress(FileNotFoundError):
        return os.stat(target)
    return None


def _is_replaced(status: os.stat_result | None) -> bool:
    return status is None or stat.S_ISREG(status.st_mode)


def refuse_clashes(
    sources: Sequence[Source], read_too: Iterable[str], *, output: str, directory: bool, dead_letters: str | None
) -> None:
    """Raise OutputError if the matches or the dead letters would replace each other or a file that is read.

    ``directory`` says that the output is a directory of files; ``read_too`` are files besides the inputs.
    """
    inputs = [file for source in sources for file in source.files]
    taken = {_identity(path): f"that is '{path}', which is read" for path in read_too if os.path.isfile(path)}
    taken |= {_identity(str(file)): f"that is the input '{file}'" for file in inputs}
    if any(source.path == STANDARD_INPUT for source in sources):
        taken[_identity_of(sys.stdin)] = "that is the file that standard input reads"
    written = {"matches": output} | ({} if dead_letters is None else {"dead letters": dead_letters})
    if directory:
        place = Path(written.pop("matches").removeprefix("file://"))
        if dead_letters is not None and Path(os.path.realpath(dead_letters)).is_relative_to(place.resolve()):
            raise OutputError("the dead letters cannot be in the directory of the matches, which may be replaced")
        refused = f"the matches cannot be written to the directory '{place}'"
        for file in inputs:
            if file.resolve().is_relative_to(place.resolve()):
                raise OutputError(f"{refused}: the input '{file}' is in it")
        _refuse_among_inputs(str(place), sources, refused)
    for what, target in written.items():
        identity, refused = _identity(target), f"the {what} cannot be written to '{target}'"
        if identity is not None:
            if identity in taken:
                raise OutputError(f"{refused}: {taken[identity]}")
            taken[identity] = f"the {what} go there"
            _refuse_among_inputs(target, sources, refused)


def _refuse_among_inputs(target: str, sources: Iterable[Source], refused: str) -> None:
    """Raise OutputError if a file or directory at a target would belong to an input, which is a directory."""
    for source in sources:
        if target == STANDARD_OUTPUT or not os.path.isdir(source.path):
            continue
        place, directory = Path(os.path.realpath(target)), Path(source.path).resolve()
        if place.is_relative_to(directory) and not is_hidden(place.relative_to(directory)):
            raise OutputError(f"{refused}: that is in the directory '{source.path}', which is read as a whole")


def _identity(path: str) -> _Identity | None:
    """The identity of the file at a path; None for devices and sockets, which lose nothing when they are written."""
    number = descriptor_of(path)
    if number == 1:
        return _identity_of(sys.stdout) or ("standard output",)
    try:
        return _of(os.stat(path) if number is None else os.fstat(number))
    except OSError:
        place = Path(os.path.realpath(path))
    try:
        parent = os.stat(place.parent)
    except OSError:
        return (str(place),)
    return (parent.st_dev, parent.st_ino, place.name)


def _identity_of(stream: TextIO) -> _Identity | None:
    try:
        return _of(os.fstat(stream.fileno()))
    except (OSError, ValueError):  # it is closed, or no file
        return None


def _of(status: os.stat_result) -> _Identity | None:
    lasting = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or stat.S_ISFIFO(status.st_mode)
    return (status.st_dev, status.st_ino) if lasting else None
