"""Rows of a file as they are, before their types are known: pieces of text that end where a row ends, and blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.errors import InputError
from cerflow.files.encodings import FilePart, utf8_of

#: Number of the row in its file (from 0), its text, what is wrong with it.
Malformed = tuple[int, str, str]

#: Fields, rows and the header of CSV; quotation marks have a meaning only where a field begins.
_FIELD = rb'(?:"(?:[^"]+|"")*+"[^,\r\n]*|(?:[^",\r\n][^,\r\n]*)?)'
_ROW = rb"(?:%b,)*+%b(?:\r?\n|\r)" % (_FIELD, _FIELD)
_FIRST, _ROWS = re.compile(rb"[\r\n]*+" + _ROW), re.compile(rb"(?:%b)*+" % _ROW)


@dataclass(frozen=True)
class Block:
    """Some rows of a file, in order.

    ``rows`` numbers the rows of ``table`` in the file, from 0; blank lines are not rows. ``spoilt`` says of rows of the
    table (by place) why they cannot be used whatever they are taken for. ``malformed`` are rows that are not in the
    table at all. ``plain`` are columns of text as numbers or times, if whoever looked at them found that every value is
    one.
    """

    table: pa.Table
    rows: Ints
    spoilt: dict[int, list[str]] = field(default_factory=dict)
    malformed: list[Malformed] = field(default_factory=list)
    plain: dict[str, pa.Array] = field(default_factory=dict)

    def behind(self, rows: int) -> Block:
        """The same with this many rows of the file before it, which were read elsewhere."""
        malformed = [(row + rows, text, reason) for row, text, reason in self.malformed]
        return replace(self, rows=self.rows + rows, malformed=malformed)


class RowPieces:
    """Whole rows of CSV or JSON, in pieces of UTF-8 with a line break at the end; an array of JSON is one piece.

    Who takes the pieces counts the rows ``done``. Raises InputError for rows and arrays that are too long.
    """

    def __init__(self, content: FilePart, encoding: str, kind: str) -> None:
        self.done = 0
        #: Whether the piece is an array of JSON, which a piece of a file cannot be.
        self.is_array = False
        self._data = utf8_of(content, encoding)
        self._name = content.name
        self._kind = kind
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
            end = end_of_rows(rest) if self._kind == "csv" else rest.rfind(b"\n") + 1
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


def end_of_rows(data: bytes | bytearray) -> int:
    """Where the last row of CSV ends that ends in the data; 0 if none does."""
    quotes: Any = ()
    if b'"' in data:
        signs = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(signs == ord('"'))
        before = signs[quotes[2 * (quotes[0] == 0) :: 2] - 1]
        if not np.isin(before, np.frombuffer(b',\n\r"', np.uint8)).all():
            # Some are parts of words.
            found = _ROWS.match(data)
            return found.end() if found is not None else 0
    sign = b"\n" if b"\n" in data else b"\r"
    place = len(data) - (sign == b"\r")  # a line feed may follow
    while (place := data.rfind(sign, 0, place)) >= 0:
        before = int(np.searchsorted(quotes, place))
        if before % 2 == 0:
            return place + 1
        place = int(quotes[before - 1])
    return 0


def header_of(data: bytes) -> bytes:
    """The first row of CSV that is not blank, and what stands before it."""
    found = _FIRST.match(data)
    return data if found is None else found[0]
