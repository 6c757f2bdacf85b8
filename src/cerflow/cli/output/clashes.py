"""Refuses runs that would write to a file that they read, or to one file twice; compares file identities, not names."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from cerflow.base.errors import OutputError
from cerflow.cli.output.targets import STANDARD_OUTPUT, descriptor_of
from cerflow.files.sources import STANDARD_INPUT, Source

#: The identity of a file: device and inode; for a file that does not exist yet, those of its directory and its name.
_Identity = tuple[int | str, ...]


def refuse_clashes(
    sources: Sequence[Source], read_too: Iterable[str], *, output: str, directory: bool, dead_letters: str | None
) -> None:
    """Raise OutputError if the matches or the dead letters would replace each other or a file that is read.

    ``directory`` says that the output is a directory of files; ``read_too`` are files besides the inputs.
    """
    read = {_identity(path): f"that is '{path}', which is read" for path in read_too if os.path.isfile(path)}
    for source in sources:
        read |= {_identity(str(file)): f"that is the input '{file}'" for file in source.files}
        if source.path == STANDARD_INPUT:
            read[_identity_of(sys.stdin)] = "that is the file that standard input reads"
    written = {"matches": output} | ({} if dead_letters is None else {"dead letters": dead_letters})
    if directory:
        place = Path(written.pop("matches").removeprefix("file://"))
        if dead_letters is not None and Path(os.path.realpath(dead_letters)).is_relative_to(place.resolve()):
            raise OutputError("the dead letters cannot be in the directory of the matches, which may be replaced")
        refused = f"the matches cannot be written to the directory '{place}'"
        for file in (file for source in sources for file in source.files):
            if file.resolve().is_relative_to(place.resolve()):
                raise OutputError(f"{refused}: the input '{file}' is in it")
        _refuse_among_inputs(str(place), sources, refused)
    for what, target in written.items():
        identity = _identity(target)
        if identity is None:
            continue
        refused = f"the {what} cannot be written to '{target}'"
        if identity in read:
            raise OutputError(f"{refused}: {read[identity]}")
        read[identity] = f"the {what} go there"
        _refuse_among_inputs(target, sources, refused)


def _refuse_among_inputs(target: str, sources: Iterable[Source], refused: str) -> None:
    """Raise OutputError if a file or directory at a target would belong to an input, which is a directory."""
    for source in sources:
        if target == STANDARD_OUTPUT or not os.path.isdir(source.path):
            continue
        place, directory = Path(os.path.realpath(target)), Path(source.path).resolve()
        # Files and directories whose names begin with a dot or an underscore are not read.
        if place.is_relative_to(directory) and not any(p[0] in "._" for p in place.relative_to(directory).parts):
            raise OutputError(f"{refused}: that is in the directory '{source.path}', which is read as a whole")


def _identity(path: str) -> _Identity | None:
    """The identity of the file at a path; None for devices and sockets, which lose nothing when they are written."""
    number = descriptor_of(path)
    if path == STANDARD_OUTPUT or number == 1:
        return _identity_of(sys.stdout) or ("standard output",)
    try:
        status = os.stat(path) if number is None else os.fstat(number)
    except OSError:
        place = Path(os.path.realpath(path))
        try:
            parent = os.stat(place.parent)
        except OSError:
            return (str(place),)
        return (parent.st_dev, parent.st_ino, place.name)
    return _of(status)


def _identity_of(stream: TextIO | None) -> _Identity | None:
    try:
        return None if stream is None else _of(os.fstat(stream.fileno()))
    except (OSError, ValueError):  # it is closed, or no file
        return None


def _of(status: os.stat_result) -> _Identity | None:
    lasting = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or stat.S_ISFIFO(status.st_mode)
    return (status.st_dev, status.st_ino) if lasting else None
