"""The bytes of a file of text as UTF-8: unpacked, without a byte order mark, whatever encoding they came in."""

from __future__ import annotations

import codecs
import encodings.aliases
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from cerflow import limits
from cerflow.errors import InputError, nearest


@dataclass(frozen=True)
class FilePiece:
    """The bytes of a file from one place to another, and what is to be read before them (a header)."""

    path: Path
    begin: int
    end: int
    head: bytes


class DecodedText(bytes):
    """Bytes of standard input that are UTF-8 already, whatever encoding they came in."""


class LaterLines(DecodedText):
    """The same after other lines, so that none begins an array of all events."""


class Readable(Protocol):
    """Bytes that are still to come; `read` waits for some, and returns none at the end."""

    def read(self, size: int) -> bytes:
        """Some of the bytes, at most ``size``."""

    def close(self) -> None:
        """Give up the bytes that are left."""


#: A file, a piece of it, or the bytes of standard input.
Content = Path | FilePiece | bytes

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


def open_text(content: Content | Readable, encoding: str) -> io.BufferedReader:
    """A stream of UTF-8 that ends with a line break; what could not be decoded stands there as `MARKS`."""
    head = b""
    source: Any
    if isinstance(content, bytes):
        source = io.BytesIO(content)
        encoding = "utf-8" if isinstance(content, DecodedText) else encoding
    elif isinstance(content, Path):
        source = pa.input_stream(str(content), compression="detect")
    elif not isinstance(content, FilePiece):
        source = content
    else:
        head = content.head
        with pa.memory_map(str(content.path)) as file:
            file.seek(content.begin)
            source = pa.BufferReader(file.read_buffer(content.end - content.begin))
    return io.BufferedReader(_Utf8(source, encoding, head), limits.READ_BYTES)


def path_of(content: Content) -> Path | None:
    """The file that a content is or is from; None for standard input."""
    if isinstance(content, bytes):
        return None
    return content.path if isinstance(content, FilePiece) else content


class _Utf8(io.RawIOBase):
    def __init__(self, source: Any, encoding: str, head: bytes) -> None:
        super().__init__()
        self._source = source
        self._head = head
        self._decoder = codecs.getincrementaldecoder(encoding)(errors=_MARK)
        self._waiting = b""
        self._last = b"\n"
        self._begun = False
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._waiting and not self._ended:
            self._waiting = self._next()
        count = min(len(buffer), len(self._waiting))
        buffer[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count

    def _next(self) -> bytes:
        piece, self._head = self._head or bytes(self._source.read(limits.READ_BYTES)), b""
        while not self._begun and 0 < len(piece) < 3 and (more := self._source.read(limits.READ_BYTES)):
            piece += more  # a byte order mark has three bytes
        self._ended = not piece
        piece = self._decoder.decode(piece, final=self._ended).encode()
        if piece and not self._begun:
            self._begun = True
            piece = piece.removeprefix(codecs.BOM_UTF8)
        if self._ended and (piece or self._last)[-1:] not in b"\r\n":
            piece += b"\n"
        self._last = piece or self._last
        return piece

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


def readable_text(text: str) -> str:
    """Text of a stream for a message or a dead letter: bytes that could not be decoded stand as ``\\xff``."""
    return _MARKED.sub(lambda m: f"\\x{(ord(m[0][0]) - _HIGH) << 4 | (ord(m[0][1]) - _LOW):02x}", text)


def wrong_encoding(content: Content, encoding: str) -> str:
    """Advice, to stand after a comma, on a file that is not in its encoding."""
    path = path_of(content)
    if encoding == "utf-8" and path is not None:
        with pa.input_stream(str(path), compression="detect") as stream:
            if bytes(stream.read(2)) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                return "the file begins with the mark of UTF-16: give the encoding utf-16"
    return f"if the file is not {encoding}, give its encoding, such as latin-1 or cp1252"
