"""Pieces of large files that can be read in parallel: files are cut at line ends if these are row ends."""

from __future__ import annotations

import codecs
import mmap
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from cerflow import limits
from cerflow.files.encodings import Content, FilePiece
from cerflow.files.sources import COMPRESSIONS, InputFormat, Source


def cut_file(source: Source, file: Path) -> list[Content]:
    """A file of CSV or JSON cut at line ends, or as a whole if it is small or cannot be cut.

    Files that are compressed, in another encoding than UTF-8, or a JSON array cannot be cut. If `has_quotes` of any
    piece of CSV, rows may have line breaks in them, and the file must be read as a whole.
    """
    size = file.stat().st_size
    if size <= limits.FILE_PIECE_BYTES or source.encoding != "utf-8" or file.suffix.lower() in COMPRESSIONS:
        return [file]
    with file.open("rb") as stream:
        head = _head(stream.read(limits.FILE_HEAD_BYTES), source.format)
        if head is None:
            return [file]
        places = range(limits.FILE_PIECE_BYTES, size, limits.FILE_PIECE_BYTES)
        cuts = [0, *(_line_after(stream, place) for place in places), size]
    return [FilePiece(file, a, b, head if a else b"") for a, b in pairwise(cuts) if a < b]


def has_quotes(piece: FilePiece) -> bool:
    """Whether there is a quotation mark in a piece."""
    with piece.path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b'"', piece.begin, piece.end) >= 0


def _head(beginning: bytes, kind: InputFormat) -> bytes | None:
    """The header of CSV, nothing for JSON; None if the file cannot be cut."""
    if kind is InputFormat.JSON:
        first = beginning.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
        return b"" if first not in (b"", b"[") else None
    header = beginning[: beginning.find(b"\n") + 1]
    names = header.removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
    # Blank lines before the header, and lines that end at a carriage return alone, are left to the reader of files.
    return header if names and b"\r" not in names else None


def _line_after(stream: BinaryIO, place: int) -> int:
    """Where the first line begins that does not begin before a place."""
    stream.seek(place - 1)
    while (line := stream.readline(limits.READ_BYTES)) and not line.endswith(b"\n"):
        pass
    return stream.tell()
