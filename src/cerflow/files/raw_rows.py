"""Files of text before types are known: as UTF-8, in pieces that end where rows end, and in blocks of rows.

Bytes are unpacked, and lose a byte order mark, whatever encoding they came in.
"""

from __future__ import annotations

import codecs
import encodings.aliases
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.errors import InputError, nearest

#: Number of the row in its file (from 0), its text, what is wrong with it.
Malformed = tuple[int, str, str]

#: How compressed data begins, by the program that unpacks it.
_PACKED = {"zstd": b"\x28\xb5\x2f\xfd", "gzip": b"\x1f\x8b", "lz4": b"\x04\x22\x4d\x18", "bzip2": b"BZh9"}

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
    unfit = found.name.replace("_", "-") in _UNFIT
    try:
        "".encode(name)
    except (LookupError, UnicodeError):  # it makes bytes of bytes
        unfit = True
    if unfit:
        raise InputError(f"'{name}' is not an encoding of text; try utf-8, utf-16, latin-1 or cp1252")
    return "utf-8" if found.name == "utf-8-sig" else found.name


def delimiter_named(text: str) -> str:
    """The character that separates the fields of CSV; raises InputError if it cannot be one."""
    found = "\t" if text == "\\t" else text
    if len(found) != 1 or not found.isascii() or found in '"\r\n\0':
        raise InputError(f"'{text}' cannot separate columns; a delimiter is one ASCII character, such as ; or \\t")
    return found


@lru_cache
def pattern_of_row(delimiter: bytes) -> bytes:
    """The pattern of a row of CSV; quotation marks have a meaning only where a field begins."""
    field = rb'(?:"(?:[^"]+|"")*+"[^D\r\n]*|(?:[^"D\r\n][^D\r\n]*)?)'.replace(b"D", re.escape(delimiter))
    return rb"(?:%b%b)*+%b(?:\r?\n|\r)" % (field, re.escape(delimiter), field)


def utf8_of(content: FilePart, encoding: str) -> Iterator[bytes]:
    """The bytes in UTF-8, as they come, with a line break at the end.

    Bytes that cannot be decoded become one of `MARKS`.
    """
    begun, last = False, "\n"
    for text in codecs.iterdecode(unpacked_bytes(content), "utf-8" if content.decoded else encoding, _MARK):
        if not begun:
            begun, text = True, text.removeprefix("\ufeff")
        last = text[-1:] or last
        if text:
            yield text.encode()
    if last not in "\r\n":
        yield b"\n"


def unpacked_bytes(content: FilePart) -> Iterator[bytes]:
    """The bytes as they are, unpacked; no piece is empty."""
    if content.path is None:
        for k, piece in enumerate(filter(None, content.data)):
            packed = next((program for program, sign in _PACKED.items() if piece.startswith(sign)), None)
            if packed is not None and not (k or content.decoded):
                hint = f"unpack it before ({packed} -dc FILE | cerflow …)"
                raise InputError(f"{content.name} is compressed with {packed}; {hint}")
            yield piece
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


@dataclass(frozen=True)
class Block:
    """Some rows of a file, in order.

    ``rows`` numbers the rows of ``table`` in the file, from 0; blank lines are not rows. ``spoilt`` says of rows of the
    table (by place) why they cannot be used whatever they are taken for. ``malformed`` are rows that are not in the
    table at all.
    """

    table: pa.Table
    rows: Ints
    spoilt: dict[int, list[str]] = field(default_factory=dict)
    malformed: list[Malformed] = field(default_factory=list)

    def behind(self, rows: int) -> Block:
        """The same with this many rows of the file before it, which were read elsewhere."""
        malformed = [(row + rows, text, reason) for row, text, reason in self.malformed]
        return replace(self, rows=self.rows + rows, malformed=malformed)


class RowPieces:
    """Whole rows of CSV or JSON, in pieces of UTF-8 with a line break at the end; an array of JSON is one piece.

    Who takes the pieces counts the rows ``done``. Raises InputError for rows and arrays that are too long.
    """

    def __init__(self, content: FilePart, encoding: str, kind: str, delimiter: str = ",") -> None:
        self.done = 0
        #: Whether the piece is an array of JSON, which a piece of a file cannot be.
        self.is_array = False
        self._data = utf8_of(content, encoding)
        self._name = content.name
        self._kind = kind
        self._delimiter = delimiter.encode()
        self._lines = kind == "csv" or content.end is not None

    def __iter__(self) -> Iterator[bytes]:
        rest = bytearray()
        for more in self._data:
            rest += more
            if not self._lines and (first := rest.lstrip()[:1]):
                self._lines, self.is_array = True, first == b"["
            if self.is_array:
                if len(rest) > limits.JSON_ARRAY_BYTES:
                    most = f"{limits.JSON_ARRAY_BYTES >> 20} MB"
                    raise self.error(f"the array has more than {most}; write it with one object a line")
                continue
            end = end_of_rows(rest, self._delimiter) if self._kind == "csv" else rest.rfind(b"\n") + 1
            if not end and len(rest) > limits.TEXT_ROW_BYTES:
                raise self.too_long()
            if end:
                yield bytes(rest[:end])
                del rest[:end]
        if rest:
            yield bytes(rest)

    def error(self, problem: str) -> InputError:
        """The error about a file that cannot be read."""
        return InputError(f"cannot read {self._name} as {self._kind}: {problem}")

    def too_long(self) -> InputError:
        """The error about a row that is too long to be read."""
        where = f"a row after row {self.done - 1}" if self.done else "a row at the beginning"
        hint = "is a quotation mark not closed?" if self._kind == "csv" else "are line breaks missing?"
        return self.error(f"{where} has more than {limits.TEXT_ROW_BYTES >> 20} MB; {hint}")


def end_of_rows(data: bytes | bytearray, delimiter: bytes = b",") -> int:
    """Where the last row of CSV ends that ends in the data; 0 if none does."""
    sign = b"\n" if b"\n" in data else b"\r"
    end = len(data) - (sign == b"\r")  # a line feed may follow
    if b'"' not in data:
        return data.rfind(sign, 0, end) + 1
    signs = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(signs == ord('"'))
    before = signs[quotes[2 * (quotes[0] == 0) :: 2] - 1]
    if not np.isin(before, np.frombuffer(delimiter + b'\n\r"', np.uint8)).all():
        # Some are parts of words.
        found = re.match(rb"(?:%b)*+" % pattern_of_row(delimiter), data)
        return found.end() if found is not None else 0
    breaks = np.flatnonzero(signs[:end] == ord(sign))
    # Those within quotation marks end no row.
    ends = breaks[np.searchsorted(quotes, breaks) % 2 == 0]
    return int(ends[-1]) + 1 if len(ends) else 0


def header_of(data: bytes, delimiter: bytes = b",") -> bytes:
    """The first row of CSV that is not blank, and what stands before it."""
    found = re.match(rb"[\r\n]*+" + pattern_of_row(delimiter), data)
    return data if found is None else found[0]
