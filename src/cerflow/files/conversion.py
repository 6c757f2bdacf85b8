"""Text becomes numbers, times and truth values, value by value: a value that does not parse is reported, not fatal.

These are the rules for all files and both runners:

- an *integer* is decimal digits with or without a sign, within 64 bits;
- a *float* is a number in decimal notation, with or without an exponent, in the range of doubles, or ``nan``, ``inf``,
  ``infinity``;
- a *boolean* is ``true`` or ``false``; where it is asked for also ``1`` or ``0``;
- a *date* is ``2024-03-15``, and a *time* (timestamp) is a date with or without a time of day, in ISO 8601, with a
  zone or without; digits beyond the microsecond are cut.

Space around a value and upper and lower case do not count. Numbers with a decimal comma, and times in another form,
become such text first (`Notation`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base import limits
from cerflow.base.array_types import Smalls
from cerflow.base.errors import InputError

INTEGER = r"^[+-]?[0-9]+$"
FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^(?i:nan|[+-]?inf|[+-]?infinity)$"
BOOLEAN = r"^(?i:true|false)$"
DATE = r"^(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-[0-9]{2}-[0-9]{2}$"
TIME = DATE[:-1] + r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$"
ZONE = r"[T ].*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
#: Times of one form, with 0 for every digit.
_FORM = re.compile(r"0000-00-00([T ]00:00(:00(\.0{1,6})?)?Z?)?")
_DIGIT = re.compile("[0-9]")
_YEAR_ONE = -62_135_596_800_000_000
#: What Arrow takes for a number and we do not has this sign; and the pattern of numbers.
_NUMBERS = {pa.int64(): ("x", INTEGER), pa.float64(): ("(", FLOAT)}
#: Unlike None and `pa.scalar` this does not import pandas.
_NOTHING = pa.nulls(1, pa.string())[0]
_INFINITE = r"^(?i:[+-]?inf|[+-]?infinity)$"


#: Directives of `strptime` that can be read at once, the parts of ISO 8601 that they are, and what stands before these.
_DIRECTIVES = dict.fromkeys("mdHMS", "([0-9]{2})") | {"Y": "([0-9]{4})", "f": "([0-9]{1,6})"}
_DIRECTIVES["z"] = "(Z|[+-][0-9]{2}:?[0-9]{2})"
_SIGNS = {"Y": "", "m": "-", "d": "-", "H": "T", "M": ":", "S": ":", "f": ".", "z": ""}
#: A number with one sign of those that may be its decimal point.
_AROUND = r"^(\s*[+-]?[0-9]*)%s([0-9]*(?:[eE][+-]?[0-9]+)?\s*)$"
#: What is neither a number nor a time.
_UNFIT = "?"


@dataclass(frozen=True)
class Notation:
    """How numbers and times are written in text: the decimal point, and the format of times (None: ISO 8601)."""

    decimal_point: str = "."
    time_format: str | None = None

    def usual(self, text: pa.Array, *, times: bool) -> pa.Array:
        """Text as this module reads it; of a column of times the times, of others the numbers."""
        if times and self.time_format is not None:
            return _as_iso(without_spaces(text), self.time_format)
        if self.decimal_point == ".":
            return text
        # A number with a point is none any more.
        others = pc.replace_substring_regex(text, _AROUND % r"\.", rf"\1{_UNFIT}\2")
        return pc.replace_substring_regex(others, _AROUND % ",", r"\1.\2")


USUAL = Notation()


def notation_of(decimal_point: str = ".", time_format: str | None = None) -> Notation:
    """The notation that a user describes; raises InputError if there is none such."""
    if decimal_point not in (".", ","):
        raise InputError(f"the decimal point may be . or , but not '{decimal_point}'")
    if time_format is not None:
        try:
            example = datetime(2024, 3, 15, tzinfo=UTC).strftime(time_format)
            datetime.strptime(example, time_format).isoformat()
            valid = example != time_format
        except (ValueError, re.error):
            valid = False
        if not valid:
            raise InputError(f"'{time_format}' is not a format of times, such as '%d.%m.%Y %H:%M:%S'")
    return Notation(decimal_point, time_format)


def has_decimal_comma(text: str) -> bool:
    """Whether text is a number with a decimal comma."""
    return re.match(_AROUND % ",", text) is not None


def _as_iso(text: pa.Array, time_format: str) -> pa.Array:
    """Times in a format as times in ISO 8601; what is none becomes something that is none."""
    found = _as_iso_at_once(text, time_format)
    left = pc.and_(text.is_valid(), found.is_null())
    if not pc.any(left).as_py():
        return found
    encoded = text.filter(left).dictionary_encode()
    values = []
    for value in encoded.dictionary.to_pylist():
        try:
            values.append(datetime.strptime(value, time_format).isoformat())
        except ValueError:
            values.append(_UNFIT)
    return pc.replace_with_mask(found, left, pa.array(values, pa.string()).take(encoded.indices))


def _as_iso_at_once(text: pa.Array, time_format: str) -> pa.Array:
    """The same for values with all digits, in formats of numbers alone; null for the others."""
    parts = re.split("(%.)", time_format, flags=re.DOTALL)
    given = [part[1] for part in parts[1::2]]
    known = [name for name in _SIGNS if name in given]
    if sorted(known) != sorted(given) or not re.fullmatch("Ymd(HM(Sf?)?z?)?", "".join(known)):
        return pa.nulls(len(text), pa.string())
    patterns = (_DIRECTIVES[part[1]] if k % 2 else re.escape(part) for k, part in enumerate(parts))
    pattern = f"^{''.join(patterns)}$"
    iso = "".join(f"{_SIGNS[name]}\\{given.index(name) + 1}" for name in known)
    fits = pc.match_substring_regex(text, pattern)
    return pc.if_else(fits, pc.replace_substring_regex(text, pattern, iso), _NOTHING)


def converted(column: pa.Array, target: pa.DataType) -> pa.Array:
    """The values of a column as a type that a column may be read as: int64, float64, bool, date32, timestamp, string.

    Values of other types are converted where that loses nothing but digits of a fraction, else by way of their text.
    What does not parse is null.
    """
    kind = column.type
    if kind == target:
        return column
    if pa.types.is_null(kind) or pa.types.is_null(target):
        return pa.nulls(len(column), target)
    if pa.types.is_nested(target):
        return _nested(column, target)
    widened = pa.types.is_integer(kind) and pa.types.is_floating(target)
    if widened or (pa.types.is_temporal(kind) and pa.types.is_temporal(target)):
        return column.cast(target, safe=False)
    text = plain_text(column)
    return text if pa.types.is_string(target) else _parsers[target.id](without_spaces(text), target)


def _nested(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Arrays or objects as those of another type; null for those that have values of other types."""
    try:
        # Integers may become doubles next to fractions, but not the other way round.
        return column.cast(target, safe="int64" in str(target))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(column) == 1:
            return pa.nulls(1, target)
        return pa.concat_arrays([_nested(column.slice(k, 1), target) for k in range(len(column))])


def plain_text(column: pa.Array) -> pa.Array:
    """The values of a column as text; lists and structs as JSON, and the rest as Python shows it."""
    try:
        return column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([v if v is None else _dumped(v) for v in column.to_pylist()], pa.string())


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return str(value)


def without_spaces(text: pa.Array) -> pa.Array:
    """Text without the space around it."""
    least, greatest = byte_range(text)
    # All space is below or beyond these.
    return text if least > ord(" ") and greatest < 128 else pc.utf8_trim_whitespace(text)


def byte_range(text: pa.Array) -> tuple[int, int]:
    """The least and the greatest byte of a column of text, of all values together; (0, 255) if there is none.

    This is by far cheaper than a look at every value, and often says enough.
    """
    signs, _ = bytes_of(text)
    return (int(signs.min()), int(signs.max())) if len(signs) else (0, 255)


def bytes_of(text: pa.Array) -> tuple[npt.NDArray[np.uint8], Smalls]:
    """The bytes of all values of a column of strings, and where in them each value begins, and the last ends."""
    _, ends, data = text.buffers()
    if ends is None or data is None:
        return np.array([], np.uint8), np.zeros(len(text) + 1, np.int32)
    bounds = np.frombuffer(ends, np.int32)[text.offset : text.offset + len(text) + 1]
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]], bounds - bounds[0]


def is_plain(text: pa.Array) -> bool:
    """Whether text has only digits and ``+,-./``: what Arrow takes for a number of these is one by our rules too."""
    least, greatest = byte_range(text)
    return least >= ord("+") and greatest <= ord("9")


def cast_at_once(text: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Numbers, if all values are what Arrow takes for numbers just as we do; None if they have to be looked at."""
    try:
        # Arrow makes a message for every value that is none, which takes longer than all that follows.
        text.slice(0, limits.SAMPLED_VALUES).cast(target)
        values = text.cast(target)
    except pa.ArrowInvalid:
        return None
    if is_plain(text):
        return values
    # Hexadecimal integers, and nan(1), are none here.
    others = pc.match_substring(text, _NUMBERS[target][0], ignore_case=True)
    return None if pc.any(others).as_py() else values


def _to_numbers(text: pa.Array, target: pa.DataType) -> pa.Array:
    """Integers or doubles, null for what is none or is out of range."""
    values = cast_at_once(text, target)
    if values is None:
        fits = pc.match_substring_regex(text, _NUMBERS[target][1])
        digits = pc.replace_substring_regex(pc.if_else(fits, text, _NOTHING), r"^\+", "")
        try:
            values = digits.cast(target)
        except pa.ArrowInvalid:  # some integers leave 64 bits
            found = (None if digit is None else int(digit[:400]) for digit in digits.to_pylist())
            values = pa.array([v if v is None or -(2**63) <= v < 2**63 else None for v in found], target)
    if pa.types.is_integer(target):
        return values
    infinite = pc.is_inf(values)
    if pc.any(infinite).as_py():
        beyond = pc.and_(infinite, pc.invert(pc.match_substring_regex(text, _INFINITE)))
        values = pc.if_else(beyond, pa.nulls(1, target)[0], values)
    return values


def _to_booleans(text: pa.Array, target: pa.DataType) -> pa.Array:
    small = pc.utf8_lower(text)
    true, false = (pc.is_in(small, pa.array(words)) for words in (["true", "1"], ["false", "0"]))
    return pc.if_else(pc.or_(true, false), true, pa.nulls(1, target)[0])


def _to_dates(text: pa.Array, target: pa.DataType) -> pa.Array:
    dates = pc.if_else(pc.match_substring_regex(text, DATE), text, _NOTHING)
    return _to_times(dates, pa.timestamp("us")).cast(target)


def times_of_one_form(text: pa.Array) -> tuple[pa.Array, str] | None:
    """Times that have digits and signs in the same places, as programs write them, and their form with 0 for digits.

    None if the values are something else or have to be looked at one by one.
    """
    first = text[0].as_py() if len(text) else None
    form = _DIGIT.sub("0", first or "")
    signs, bounds = bytes_of(text)
    if not _FORM.fullmatch(form) or (np.diff(bounds) != len(form)).any():
        return None
    least = np.frombuffer(form.encode(), np.uint8)
    more = np.where(least == ord("0"), np.uint8(9), np.uint8(0))
    # A difference of bytes wraps around, so that less than the least is more as well.
    if ((signs - np.tile(least, len(text))) > np.tile(more, len(text))).any():
        return None
    try:
        values = text.cast(pa.timestamp("us", "UTC" if form.endswith("Z") else None))
    except pa.ArrowInvalid:
        return None
    return (values, form) if pc.min(values.cast(pa.int64())).as_py() >= _YEAR_ONE else None


def _to_times(text: pa.Array, target: pa.DataType) -> pa.Array:
    """Times as timestamps in microseconds, null for what is none.

    In UTC times without a zone are taken for such in UTC; without a zone times with one are null.
    """
    alike = times_of_one_form(text)
    if alike is not None:
        values, _ = alike
        if values.type == target:
            return values
        return pa.nulls(len(text), target) if target.tz is None else pc.assume_timezone(values, "UTC")
    times = pc.if_else(pc.match_substring_regex(text, TIME), text, _NOTHING)
    # Digits beyond the microsecond would not convert.
    kept = pc.replace_substring_regex(times, r"(\.[0-9]{6})[0-9]+", r"\1")
    has_zone = pc.match_substring_regex(kept, ZONE)
    local = _cast_times(pc.if_else(has_zone, _NOTHING, kept), pa.timestamp("us"))
    if target.tz is None:
        return local
    return pc.coalesce(_cast_times(pc.if_else(has_zone, kept, _NOTHING), target), pc.assume_timezone(local, "UTC"))


_parsers: dict[int, Callable[[pa.Array, pa.DataType], pa.Array]] = {
    pa.int64().id: _to_numbers,
    pa.float64().id: _to_numbers,
    pa.bool_().id: _to_booleans,
    pa.date32().id: _to_dates,
    pa.timestamp("us").id: _to_times,
}


def _cast_times(text: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return text.cast(target)
    except pa.ArrowInvalid:
        # A 30th of February somewhere: look at each distinct value by itself.
        encoded = text.dictionary_encode()
        values: list[datetime | None] = []
        for value in encoded.dictionary.to_pylist():
            try:
                moment = datetime.fromisoformat(value)
                values.append(moment if target.tz is None else moment.astimezone(UTC))
            except (ValueError, OverflowError):
                values.append(None)
        return pa.array(values, target).take(encoded.indices)
