"""Values in JSON, column by column: each distinct value is written once, and Arrow puts the texts together."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, numbers_of, python_values

#: Begins texts that stand for numbers with more digits than Python's floats have; being random, it occurs in no data.
_MARK = f"number {secrets.token_hex(16)} "
_MARKED = re.compile(rf'"{_MARK}(-?[0-9.]+)"')
_TEXT = pa.large_string()
#: So few values are written one by one.
_FEW = 32


def json_lines(batch: pa.RecordBatch) -> memoryview:
    """The rows as JSON objects, each on a line, in UTF-8."""
    lines = _joined(_known(json_texts(batch.to_struct_array())), "\n")
    end = int(np.frombuffer(lines.buffers()[1], np.int64)[len(lines)])
    return memoryview(lines.buffers()[2])[:end]


def json_texts(column: pa.Array) -> pa.Array:
    """The values in JSON, null where they are null."""
    kind = column.type
    if pa.types.is_struct(kind):
        names = [_json(field.name) for field in kind]
        # Where the whole is null, its fields may be anything.
        texts_of_fields = map(_known, map(json_texts, column.flatten()))
        parts = [(f"{', ' * (k > 0)}{name}: ", texts) for k, (name, texts) in enumerate(zip(names, texts_of_fields))]
        texts = _joined("{", *(part for pair in parts for part in pair), "}") if parts else _repeated("{}", column)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        ends = numbers_of(column.offsets).astype(np.int64)
        values = _known(json_texts(column.values[ends[0] : ends[-1]]))
        lists = pa.LargeListArray.from_arrays(array_of_numbers(ends - ends[0]), values)
        texts = _joined("[", pc.binary_join(lists, _texts([", "])[0]), "]")
    else:
        return _texts_of_distinct(column)
    return pc.if_else(column.is_valid(), texts, pa.nulls(1, _TEXT)[0]) if column.null_count else texts


def _texts_of_distinct(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column):
        return json_texts(column.dictionary_decode())
    if len(column) < _FEW and not pa.types.is_dictionary(column.type):
        return _texts_of(column)
    try:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except pa.ArrowNotImplementedError:
        return _texts_of(column)
    values = encoded.dictionary
    return (json_texts(values) if pa.types.is_nested(values.type) else _texts_of(values)).take(encoded.indices)


def _texts_of(column: pa.Array) -> pa.Array:
    return _texts([None if value is None else _json(value) for value in _values(column)])


def _values(column: pa.Array) -> list[Any]:
    # Python's datetime counts microseconds.
    in_time = pa.types.is_timestamp(column.type)
    return python_values(column.cast(pa.timestamp("us", column.type.tz), safe=False) if in_time else column)


def csv_fields(column: pa.Array) -> list[Any]:
    """The values of a column as fields of CSV."""
    if pa.types.is_nested(column.type.value_type if pa.types.is_dictionary(column.type) else column.type):
        texts: list[Any] = json_texts(column).to_pylist()
        return texts
    return [_field(value) for value in _values(column)]


def _texts(texts: Sequence[str | None]) -> pa.Array:
    # Unlike `pa.array` and `pa.scalar` this does not import pandas.
    return array_of_texts(texts).cast(_TEXT)


def _known(texts: pa.Array) -> pa.Array:
    return texts.fill_null(_texts(["null"])[0]) if texts.null_count else texts


def _joined(*parts: pa.Array | str) -> pa.Array:
    """Texts that are put together; one of the parts is an array."""
    given = [_texts([part])[0] if isinstance(part, str) else part for part in (*parts, "")]
    return pc.binary_join_element_wise(*given)


def _repeated(text: str, column: pa.Array) -> pa.Array:
    return pa.repeat(_texts([text])[0], len(column))


def _json(value: Any) -> str:
    try:
        text = _ENCODER.encode(value)
    except ValueError:
        text = _ENCODER.encode(_finite(value))
    return _MARKED.sub(r"\1", text) if _MARK in text else text


def _finite(value: Any) -> Any:
    """A value for JSON, which has no infinity and no NaN: they become text and null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    return value


def _plain(value: Any) -> Any:
    """A value without a notation in JSON: times and durations in ISO 8601, the rest as text."""
    if isinstance(value, datetime):
        in_thousandths = value.microsecond and value.microsecond % 1000 == 0
        text = value.isoformat(timespec="milliseconds" if in_thousandths else "auto")
        return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return _number(value)
    return str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)


def _field(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str | int | float):
        return value
    found = _plain(value)
    return found.removeprefix(_MARK) if isinstance(found, str) else found


def _duration(value: timedelta) -> str:
    """A duration in ISO 8601 with all its microseconds: ``PT5M``, ``P1DT2.5S``, ``-PT1H``."""
    days, seconds = abs(value).days, abs(value).seconds
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    rest = f".{abs(value).microseconds:06}".rstrip("0").rstrip(".")
    clock = "".join(f"{amount}{unit}" for amount, unit in ((hours, "H"), (minutes, "M")) if amount)
    clock += f"{seconds}{rest}S" if seconds or rest or not (days or clock) else ""
    return "-" * (value < timedelta(0)) + "P" + f"{days}D" * bool(days) + ("T" + clock) * bool(clock)


def _number(value: Decimal) -> int | float | str:
    """A decimal as the number with its digits; a text with a mark where Python has no such number."""
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else f"{_MARK}{value:f}"
