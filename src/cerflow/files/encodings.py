"""The bytes of a file of text as UTF-8: unpacked, without a byte order mark, whatever encoding they came in."""

from __future__ import annotations

import codecs
import encodings.aliases
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa

from cerflow.base import limits
from cerflow.base.errors import InputError, nearest


@dataclass(frozen=True)
class FilePart:
    """A file, a piece of it with what is to be read before it (``head``), or without a path what is ``data``.

    ``decoded`` says that the data is UTF-8 already, whatever encoding it came in.
    """

    path: Path | None = None
    begin: int = 0
    end: int | None = None
    head: bytes = b""
    data: Iterable[bytes] = ()
    decoded: bool = False

    @property
    def name(self) -> str:
        """The name in messages."""
        return "standard input" if self.path is None else str(self.path)


_MARK = "cerflow-mark"
#: Codecs of Python that have no bytes that could be wrong, or that are for something else than files.
_UNFIT = ("idna", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7")

#: A byte that cannot be decoded becomes two of the characters that Unicode keeps for such use within programs, which no
#: text has: so it is found again in the row in which it stands, and all readers take what they get for UTF-8.
_HIGH, _LOW = 0xFDD0, 0xFDE0
_MARKED = re.compile("[\ufdd0-\ufddf][\ufde0-\ufdef]")
#: How such characters begin in UTF-8, and a pattern for those that cannot be used.
MARK_BYTES = b"\xef\xb7"
MARKS = "[\ufdd0-\ufdef]"


def _marked(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(chr(_HIGH + (byte >> 4)) + chr(_LOW + (byte & 15)) for byte in wrong), error.end


codecs.register_error(_MARK, _marked)


def encoding_named(name: str) -> str:
    """The canonical name of an encoding that Python knows by this name; raises InputError for any other."""
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        near = nearest(name, {*encodings.aliases.aliases.values(), "utf-8", "utf-16", "utf-32", "latin-1"})
        hint = f"; did you mean '{near.replace('_', '-')}'?" if near else "; try utf-8, utf-16, latin-1 or cp1252"
        raise InputError(f"there is no encoding '{name}'{hint}") from None
    if not _is_of_text(name) or found.name.replace("_", "-") in _UNFIT:
        raise InputError(f"'{name}' is not an encoding of text; try utf-8, utf-16, latin-1 or cp1252")
    return "utf-8" if found.name == "utf-8-sig" else found.name


def _is_of_text(name: str) -> bool:
    """Whether an encoding makes bytes of texts, and not of bytes."""
    try:
        "".encode(name)
    except (LookupError, UnicodeError):
        return False
    return True


def utf8_of(content: FilePart, encoding: str) -> Iterator[bytes]:
    """The bytes in UTF-8, as they come, with a line break at the end.

    What could not be decoded stands there as `MARKS`.
    """
    decoder = codecs.getincrementaldecoder("utf-8" if content.decoded else encoding)(errors=_MARK)
    begun, last = False, "\n"
    for data in chain(_bytes_of(content), (b"",)):
        text = decoder.decode(data, final=not data)
        if text and not begun:
            begun, text = True, text.removeprefix("\ufeff")
        last = text[-1:] or last
        if not data and last not in "\r\n":
            text += "\n"
        if text:
            yield text.encode()


def _bytes_of(content: FilePart) -> Iterator[bytes]:
    """The bytes as they are, unpacked; no piece is empty."""
    if content.path is None:
        yield from filter(None, content.data)
        return
    if content.head:
        yield content.head
    with pa.input_stream(str(content.path), compression="detect") as stream:
        if content.begin:
            stream.seek(content.begin)
        most, left = limits.READ_BYTES, sys.maxsize if content.end is None else content.end - content.begin
        while left and (piece := stream.read(min(most, left))):
            left -= len(piece)
            yield piece


def readable_text(text: str) -> str:
    """Text of a stream for a message or a dead letter: bytes that could not be decoded stand as ``\\xff``."""
    return _MARKED.sub(lambda m: f"\\x{(ord(m[0][0]) - _HIGH) << 4 | (ord(m[0][1]) - _LOW):02x}", text)


def wrong_encoding(content: FilePart, encoding: str) -> str:
    """Advice, to stand after a comma, on a file that is not in its encoding."""
    if encoding == "utf-8" and content.path is not None:
        with pa.input_stream(str(content.path), compression="detect") as stream:
            if bytes(stream.read(2)) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                return "the file begins with the mark of UTF-16: give the encoding utf-16"
    return f"if the file is not {encoding}, give its encoding, such as latin-1 or cp1252"
