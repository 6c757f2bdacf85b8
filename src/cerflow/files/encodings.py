"""The bytes of a file of text as UTF-8: unpacked, without a byte order mark, whatever encoding they came in."""

from __future__ import annotations

import codecs
import encodings.aliases
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from cerflow.base import limits
from cerflow.base.errors import InputError, nearest


@dataclass(frozen=True)
class FilePiece:
    """The bytes of a file from one place to another, and what is to be read before them (a header)."""

    path: Path
    begin: int
    end: int
    head: bytes


@dataclass(frozen=True)
class Utf8:
    """Pieces of standard input as they come, in UTF-8 whatever encoding they came in."""

    pieces: Iterable[bytes]


#: A file, a piece of it, or what comes by standard input.
Content = Path | FilePiece | bytes | Utf8

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


def utf8_of(content: Content | Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """The bytes in UTF-8, as they come, with a line break at the end.

    What could not be decoded stands there as `MARKS`.
    """
    decoder = codecs.getincrementaldecoder("utf-8" if isinstance(content, Utf8) else encoding)(errors=_MARK)
    pieces, waits = _bytes_of(content), isinstance(content, Iterator | Utf8)
    begun, final, last = False, False, "\n"
    data = next(pieces, b"")
    while not final:
        # Of a file it is known which piece is the last; what a pipe gives must not wait for more.
        following = b"" if waits else next(pieces, b"")
        final = not (data if waits else following)
        decoded = decoder.decode(data, final=final)
        text = decoded if begun else decoded.removeprefix("\ufeff")
        begun, last = begun or bool(decoded), text[-1:] or last
        if final and last not in "\r\n":
            text += "\n"
        if text:
            yield text.encode()
        data = next(pieces, b"") if waits else following


def _bytes_of(content: Content | Iterator[bytes]) -> Iterator[bytes]:
    if isinstance(content, Iterator | Utf8):
        yield from content.pieces if isinstance(content, Utf8) else content
    elif isinstance(content, bytes):
        for begin in range(0, len(content), limits.READ_BYTES):
            yield content[begin : begin + limits.READ_BYTES]
    elif isinstance(content, FilePiece):
        if content.head:
            yield content.head
        with content.path.open("rb") as file:
            file.seek(content.begin)
            while piece := file.read(min(limits.READ_BYTES, content.end - file.tell())):
                yield piece
    else:
        with pa.input_stream(str(content), compression="detect") as stream:
            while piece := stream.read(limits.READ_BYTES):
                yield piece


def path_of(content: Content) -> Path | None:
    """The file that a content is or is from; None for standard input."""
    if isinstance(content, FilePiece):
        return content.path
    return content if isinstance(content, Path) else None


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
