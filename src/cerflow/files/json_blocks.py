"""JSON as blocks of rows: one object a line, or one array of objects.

Most blocks are split by Arrow; it stops at the first line that it cannot read, and it takes the process with it where
JSON is nested deep or a line is not an object. What it might read differently is read by Python, line by line.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from cerflow import limits
from cerflow.errors import InputError
from cerflow.files import encodings as e
from cerflow.files.encodings import Content, readable_text
from cerflow.files.raw_rows import Block, Malformed, too_long

_SPACE = " \t\r\n"
_BLANKS = b" \t\r"
_BRACKETS = re.compile(r"[\[\]{}]")
_WRONG = re.compile(e.MARKS)
#: An escape that may be half of a character.
_HALF = re.compile(r"\\u[dD][89a-fA-F]..")
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
#: Integers beyond 64 bits have at least as many digits.
_DIGITS = 19
#: Digits beyond which an integer is not a double either.
_LONGEST = 308


class _InvalidJsonError(Exception):
    """Why a piece of JSON is not a row."""


def json_blocks(content: Content, name: str, encoding: str, as_text: Collection[str]) -> Iterator[Block]:
    """The blocks of a file; none if it is empty.

    Values in the columns ``as_text`` are JSON text, unless they are strings. Raises InputError for a broken array, and
    for lines and arrays that are too long.
    """
    problem = f"{name} is not {encoding} there; {e.wrong_encoding(content, encoding)}"
    number = 0
    begun = False
    rest = bytearray()
    with e.open_text(content, encoding) as stream:
        while True:
            piece = stream.read(limits.TEXT_BLOCK_BYTES)
            if not begun and (first := piece.lstrip()[:1]):
                begun = True
                if first == b"[" and not isinstance(content, e.FilePiece | e.LaterLines):
                    yield _array(_whole(rest + piece, stream, name), name, as_text, problem)
                    return
            cut = piece.rfind(b"\n") + 1
            rest += piece[:cut]
            if cut or not piece:
                # Only line feeds and carriage returns end lines; others may stand in strings.
                lines = [line for line in bytes(rest).splitlines() if line and not line.isspace()]
                rest.clear()
                if lines:
                    yield _block(lines, number, as_text, problem)
                    number += len(lines)
            rest += piece[cut:]
            if len(rest) > limits.TEXT_ROW_BYTES:
                raise too_long(name, "json", number - 1, "are line breaks missing?")
            if not piece:
                return


def _whole(data: bytearray, stream: io.BufferedReader, name: str) -> bytearray:
    """The rest of a stream after what was read of it."""
    while piece := stream.read(limits.TEXT_BLOCK_BYTES):
        data += piece
        if len(data) > limits.JSON_ARRAY_BYTES:
            size = f"{limits.JSON_ARRAY_BYTES >> 20} MB"
            raise InputError(
                f"cannot read {name} as json: the array has more than {size}; write it with one object a line"
            )
    return data


def _block(lines: list[bytes], number: int, as_text: Collection[str], problem: str) -> Block:
    table = _by_arrow(b"\n".join(line.strip(_BLANKS) for line in lines), as_text)
    if table is not None:
        return Block(table, np.arange(number, number + len(lines)))
    found: list[dict[str, Any]] = []
    rows: list[int] = []
    malformed: list[Malformed] = []
    decoder = _Decoder(problem)
    for row, line in enumerate(lines, number):
        text = line.strip().decode()
        try:
            if not text.isascii() and (wrong := _WRONG.search(text)):
                raise _InvalidJsonError(f"character {wrong.start()} of the line: {problem}")
            _refuse_depth(text)
            value, end = decoder.value(text, 0)
            if end < len(text):
                raise _InvalidJsonError(f"not JSON: there is text after it, at character {end}")
            found.append(decoder.row(value, text))
            rows.append(row)
        except json.JSONDecodeError as error:
            malformed.append((row, readable_text(text), f"not JSON: {error.msg}, at character {error.pos}"))
        except _InvalidJsonError as error:
            malformed.append((row, readable_text(text), str(error)))
    return Block(_table_of(found, as_text), np.array(rows, np.int64), malformed=malformed)


def _by_arrow(data: bytes, as_text: Collection[str]) -> pa.Table | None:
    """The table of lines that are all plain objects; None if lines have to be read one by one."""
    signs = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(signs == ord("\n"))
    begins = np.concatenate(([0], breaks + 1))
    if not (np.all(signs[begins] == ord("{")) and np.all(signs[np.append(breaks, len(signs)) - 1] == ord("}"))):
        return None
    opened = (signs == ord("{")) | (signs == ord("["))
    # Every line has one bracket, so only if there are this many more can a line have too many.
    more = np.count_nonzero(opened) - len(begins)
    if more >= limits.JSON_DEPTH and np.add.reduceat(opened, begins, dtype=np.int64).max() > limits.JSON_DEPTH:
        return None
    named = np.all(signs[begins + 1] == ord('"')) or np.all(np.logical_or.reduceat(signs == ord('"'), begins))
    if not named:
        return None  # an object without names
    if e.MARK_BYTES in data or b"NaN" in data or b"Inf" in data or _has_long_numbers(data):
        return None
    try:
        table = _arrow_table(data)
        moments = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
        if moments:
            # Arrow drops their zones, so they are read as text.
            table = _arrow_table(data, moments).select(table.column_names)
    except pa.ArrowInvalid:
        return None
    if len(table) != len(begins) or any(map(_holds_times, table.schema.types)):
        return None
    for name in set(as_text).intersection(table.column_names):
        found = table.schema.field(name).type
        if pa.types.is_floating(found) or pa.types.is_nested(found):
            return None  # how they were written is lost
        index = table.column_names.index(name)
        table = table.set_column(index, name, table.column(index).cast(pa.string()))
    return table


def _arrow_table(data: bytes, texts: Collection[str] = ()) -> pa.Table:
    schema = pa.schema([(name, pa.string()) for name in texts]) if texts else None
    options = pyarrow.json.ParseOptions(explicit_schema=schema)
    table = pyarrow.json.read_json(pa.BufferReader(data), parse_options=options)
    # Where the first values of arrays are null, Arrow loses some and makes a table that is too short.
    table.validate()
    return table


def _has_long_numbers(data: bytes) -> bool:
    """Whether there are this many digits in a row that an integer might be beyond 64 bits."""
    ends = pa.py_buffer(np.array([0, len(data)]))
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, pa.py_buffer(data)])
    return bool(pc.match_substring_regex(whole, f"[0-9]{{{_DIGITS}}}")[0].as_py())


def _holds_times(data_type: pa.DataType) -> bool:
    """Whether Arrow has taken text within arrays or objects for times."""
    if pa.types.is_timestamp(data_type):
        return True
    return any(_holds_times(data_type.field(k).type) for k in range(data_type.num_fields))


def _array(data: bytearray, name: str, as_text: Collection[str], problem: str) -> Block:
    """An array, read as a whole."""
    text = data.decode()
    broken = f"cannot read {name} as json: the JSON array is broken"
    try:
        _refuse_depth(text)
    except _InvalidJsonError as error:
        raise InputError(f"cannot read {name} as json: {error}") from error
    decoder = _Decoder(problem)
    found: list[dict[str, Any]] = []
    rows: list[int] = []
    malformed: list[Malformed] = []
    place, row = _after_space(text, text.index("[") + 1), 0
    more = text[place : place + 1] != "]"
    while more:
        start = place
        try:
            value, place = decoder.value(text, start)
        except json.JSONDecodeError as error:
            raise InputError(f"{broken}: {error}") from error
        try:
            found.append(decoder.row(value, text[start:place]))
            rows.append(row)
        except _InvalidJsonError as error:
            malformed.append((row, readable_text(text[start:place]), str(error)))
        place = _after_space(text, place)
        more = text[place : place + 1] == ","
        if more:
            place, row = _after_space(text, place + 1), row + 1
    if text[place : place + 1] != "]" or _after_space(text, place + 1) < len(text):
        raise InputError(f"{broken} after its row {row}")
    return Block(_table_of(found, as_text), np.array(rows, np.int64), malformed=malformed)


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in _SPACE:
        place += 1
    return place


def _refuse_depth(text: str) -> None:
    """Raise _InvalidJsonError for brackets within brackets that might be too many for readers further on."""
    if text.count("[") + text.count("{") <= limits.JSON_DEPTH:
        return
    depth = 0
    for sign in _BRACKETS.finditer(_STRINGS.sub("", text)):
        depth += 1 if sign[0] in "[{" else -1
        if depth > limits.JSON_DEPTH:
            raise _InvalidJsonError(f"brackets are nested more than {limits.JSON_DEPTH} deep")


class _Decoder:
    """Reads JSON values, and says what makes one invalid though it is JSON."""

    def __init__(self, problem: str) -> None:
        self._problem = problem
        self._fault: str | None = None
        self._decoder = json.JSONDecoder(object_pairs_hook=self._object, parse_float=self._float, parse_int=self._int)

    def value(self, text: str, place: int) -> tuple[Any, int]:
        """The value at a place of a text, and the place after it; raises JSONDecodeError."""
        self._fault = None
        return self._decoder.raw_decode(text, place)

    def row(self, value: Any, text: str) -> dict[str, Any]:
        """The value read last, which stood as this text, if it can be a row; raises _InvalidJsonError."""
        if not isinstance(value, dict):
            raise _InvalidJsonError("not a JSON object")
        if not value:
            raise _InvalidJsonError("the object is empty")
        if self._fault is not None:
            raise _InvalidJsonError(self._fault)
        if not text.isascii() and _WRONG.search(text):
            raise _InvalidJsonError(self._problem)
        half = _HALF.search(text)
        if half is not None:
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError as error:
                raise _InvalidJsonError(f"an escape like {half[0]} is half of a character") from error
        return value

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            double = next(name for name in names if names.count(name) > 1)
            self._fault = f"the name '{double}' occurs more than once"
        return found

    def _int(self, text: str) -> int:
        if len(text) > _LONGEST:
            self._fault = f"a number of {len(text)} digits is out of range"
            return 0
        return int(text)

    def _float(self, text: str) -> float:
        value = float(text)
        if math.isinf(value):
            self._fault = f"the number {text} is out of range"
        return value


def _table_of(rows: list[dict[str, Any]], as_text: Collection[str]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: _column([row.get(name) for row in rows], name in as_text) for name in names})


def _column(values: list[Any], as_text: bool) -> pa.Array:
    """Values of one kind as that; of several kinds, and integers beyond 64 bits, as JSON text."""
    kinds = {type(value) for value in values if value is not None}
    try:
        if not as_text and kinds == {int, float}:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        if not as_text and len(kinds) < 2:
            return pa.array(values, pa.int64() if kinds == {int} else None)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    texts = (v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values)
    return pa.array(list(texts), pa.string())
