"""JSON as blocks of rows: one object a line, or one array of objects.

Most blocks are split by Arrow; it stops at the first line that it cannot read, and it takes the process with it where
JSON is nested deep or a line is not an object. What it might read differently is read by Python, line by line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from cerflow.base import limits
from cerflow.files import raw_rows as raw

#: What stands before and behind the values of an array.
_SIGN = re.compile(r"[ \t\r\n]*([\[,\]]?)[ \t\r\n]*")
_BRACKETS = re.compile(r"[\[\]{}]")
_WRONG = re.compile(raw.MARKS)
#: An escape that may be half of a character.
_HALF = re.compile(r"\\u[dD][89a-fA-F]..")
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
#: Integers beyond 64 bits have at least as many digits.
_DIGITS = 19
#: Digits beyond which an integer is not a double either.
_LONGEST = 308
_DEEP = f"brackets are nested more than {limits.JSON_DEPTH} deep"


def json_blocks(content: raw.FilePart, encoding: str, as_text: Collection[str]) -> Iterator[raw.Block]:
    """The blocks of a file; none if it is empty.

    Values in the columns ``as_text`` are JSON text, unless they are strings. Raises InputError for a broken array, and
    for lines and arrays that are too long.
    """
    problem = f"{content.name} is not {encoding} there; {raw.wrong_encoding(content, encoding)}"
    pieces = raw.RowPieces(content, encoding, "json")
    for piece in pieces:
        # Only line feeds and carriage returns end lines; others may stand in strings.
        lines = (
            _items(piece, pieces) if pieces.is_array else [row for line in piece.splitlines() if (row := line.strip())]
        )
        if lines:
            yield _block(lines, pieces.done, as_text, problem)
            pieces.done += len(lines)


def _items(data: bytes, pieces: raw.RowPieces) -> list[bytes]:
    """The values of an array, each as a line; raises InputError if it is broken."""
    text = data.decode()
    found: list[bytes] = []
    decoder = json.JSONDecoder(parse_int=len, parse_float=len)

    def sign_at(place: int) -> re.Match[str]:
        return _SIGN.match(text, place)  # type: ignore[return-value]

    sign = sign_at(0)
    if text.startswith("]", sign.end()):
        sign = sign_at(sign.end())
    while sign[1] == ("," if found else "["):
        begin = sign.end()
        try:
            _, end = decoder.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            raise pieces.error(f"the JSON array is broken: {error}") from error
        except RecursionError as error:
            raise pieces.error(_DEEP) from error
        # Line breaks between the parts of a value are space.
        found.append(text[begin:end].replace("\r", " ").replace("\n", " ").encode())
        sign = sign_at(end)
    if sign[1] != "]" or sign.end() < len(text):
        raise pieces.error(f"the JSON array is broken after its row {max(0, len(found) - 1)}")
    return found


def _block(lines: list[bytes], number: int, as_text: Collection[str], problem: str) -> raw.Block:
    table = _by_arrow(b"\n".join(lines), as_text)
    if table is not None:
        return raw.Block(table, np.arange(number, number + len(lines)))
    found: list[dict[str, Any]] = []
    rows: list[int] = []
    malformed: list[raw.Malformed] = []
    for row, line in enumerate(lines, number):
        text = line.decode()
        try:
            found.append(_row(text, problem))
            rows.append(row)
        except ValueError as error:
            said = str(error)
            if isinstance(error, json.JSONDecodeError):
                said = f"not JSON: {error.msg}, at character {error.pos}"
            malformed.append((row, raw.readable_text(text), said))
    names = dict.fromkeys(name for row_found in found for name in row_found)
    columns = {name: _column([row_found.get(name) for row_found in found], name in as_text) for name in names}
    return raw.Block(pa.table(columns), np.array(rows, np.int64), malformed=malformed)


def _row(text: str, problem: str) -> dict[str, Any]:
    """The object that a text is; raises ValueError with what makes it none, or none that can be a row."""
    wrong = None if text.isascii() else _WRONG.search(text)
    if wrong is not None:
        raise ValueError(f"character {wrong.start()} of the row: {problem}")
    if _is_deep(text):
        raise ValueError(_DEEP)
    value, end = _DECODER.raw_decode(text)
    if end < len(text):
        raise ValueError(f"not JSON: there is text after it, at character {end}")
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    if not value:
        raise ValueError("the object is empty")
    half = _HALF.search(text)
    if half is not None:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"an escape like {half[0]} is half of a character") from error
    return value


def _made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name '{next(n for n in names if names.count(n) > 1)}' occurs more than once")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST:
        raise ValueError(f"a number of {len(digits)} digits is out of range")
    return int(digits)


def _fraction(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits} is out of range")
    return value


#: Reads JSON, and refuses what is JSON, but cannot be a value.
_DECODER = json.JSONDecoder(object_pairs_hook=_made, parse_float=_fraction, parse_int=_integer)


def _by_arrow(data: bytes, as_text: Collection[str]) -> pa.Table | None:
    """The table of lines that are all plain objects; None if lines have to be read one by one."""
    signs = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(signs == ord("\n"))
    begins, ends = np.concatenate(([0], breaks + 1)), np.append(breaks, len(signs)) - 1
    if not (np.all(signs[begins] == ord("{")) and np.all(signs[ends] == ord("}"))):
        return None
    opened = (signs == ord("{")) | (signs == ord("["))
    # Every line has one bracket, so only if there are this many more can a line have too many.
    more = np.count_nonzero(opened) - len(begins)
    if more >= limits.JSON_DEPTH and np.add.reduceat(opened, begins, dtype=np.int64).max() > limits.JSON_DEPTH:
        return None
    named = np.all(signs[begins + 1] == ord('"')) or np.all(np.logical_or.reduceat(signs == ord('"'), begins))
    if not named:
        return None  # an object without names
    if raw.MARK_BYTES in data or b"NaN" in data or b"Inf" in data or _has_long_numbers(data):
        return None
    try:
        table = _arrow_table(data)
        moments = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
        if moments:
            # Arrow drops their zones, so they are read as text.
            table = _arrow_table(data, moments).select(table.column_names)
    except pa.ArrowInvalid:
        return None
    # Text in arrays and objects may have been taken for times, too.
    if len(table) != len(begins) or any("timestamp[" in str(kind) for kind in table.schema.types):
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


def _is_deep(text: str) -> bool:
    """Whether there are brackets within brackets that might be too many for readers further on."""
    if text.count("[") + text.count("{") <= limits.JSON_DEPTH:
        return False
    signs = (1 if sign[0] in "[{" else -1 for sign in _BRACKETS.finditer(_STRINGS.sub("", text)))
    return max(accumulate(signs)) > limits.JSON_DEPTH


def _column(values: list[Any], as_text: bool) -> pa.Array:
    """Values of one kind as that; of several kinds, and integers beyond 64 bits, as JSON text."""
    kinds = {type(value) for value in values if value is not None}
    with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
        if not as_text and kinds == {int, float}:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        if not as_text and len(kinds) < 2:
            return pa.array(values, pa.int64() if kinds == {int} else None)
    texts = (v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values)
    return pa.array(list(texts), pa.string())
