"""The type as which a column is read: it depends on its values, on the query, and on the user's options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import InputError, nearest
from cerflow.files import conversion as c

#: The types that a user may give a column.
ColumnType = Literal["text", "integer", "float", "timestamp", "boolean"]
#: The use of a column: its role, or how the query reads it; "other" says nothing about its type.
Use = Literal["text", "time", "number", "ordered", "other"]

_TYPES: dict[ColumnType, pa.DataType] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "float": pa.float64(),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
}
_UTC = pa.timestamp("us", tz="UTC")


class NoValueFitsError(InputError):
    """A column has values, but none that its use allows."""


@dataclass(frozen=True)
class Look:
    """The forms of the values of a column: how many are not null, and how many of these have each form.

    ``text`` counts those that are text in a format that has other types too. ``integers`` and ``wide`` are those
    within and beyond 64 bits, ``numbers`` all numbers; ``times`` are dates and times, ``zoned`` those with a zone.
    Where it only matters whether all values are something, a count that is not all of them may be 0. ``nested`` is
    the common type of arrays and objects, ``mixed`` says that there is none. ``example`` is a value with its row and
    file, ``padded`` an integer that begins with 0.
    """

    values: int = 0
    text: int = 0
    integers: int = 0
    wide: int = 0
    numbers: int = 0
    booleans: int = 0
    dates: int = 0
    times: int = 0
    zoned: int = 0
    nested: pa.DataType | None = None
    mixed: bool = False
    example: tuple[str, int, str] | None = None
    padded: str | None = None

    def behind(self, rows: int) -> Look:
        """The same with this many rows of the file before the values."""
        if self.example is None:
            return self
        value, row, file = self.example
        return replace(self, example=(value, row + rows, file))


def look_at(column: pa.ChunkedArray, rows: Ints, file: str, use: Use, *, typed: bool) -> tuple[Look, pa.Array | None]:
    """The forms of the values of a column, and text as numbers or times if every value plainly is one.

    ``rows`` are the numbers of the values in the file; ``typed`` says that the format has types, so that what is text
    there is not taken for numbers unless somebody needs them.
    """
    values = len(column) - column.null_count
    if not values:
        return Look(), None
    array = one_array(column)
    first = int(np.argmax(array.is_valid().to_numpy(zero_copy_only=False))) if array.null_count else 0
    found = Look(values, example=(str(array[first].as_py()), int(rows[first]), file))
    if not c.is_text(array.type):
        return _look_at_typed(array.type, found), None
    if use == "text":
        return replace(found, text=values), None
    text = pc.drop_null(c.without_spaces(c.plain_text(array)))
    forms, plain = _forms(text, exact=use != "other", typed=typed)
    found = replace(found, text=values if typed else 0, **forms)
    return found, plain if values == len(column) else None


def _look_at_typed(data_type: pa.DataType, found: Look) -> Look:
    if pa.types.is_boolean(data_type):
        return replace(found, booleans=found.values)
    if pa.types.is_integer(data_type):
        return replace(found, integers=found.values, numbers=found.values)
    if pa.types.is_floating(data_type):
        return replace(found, numbers=found.values)
    plain = _plain(data_type)
    return replace(found, nested=plain, mixed=plain is None)


def _forms(text: pa.Array, *, exact: bool, typed: bool) -> tuple[dict[str, Any], pa.Array | None]:
    """The counts of a `Look` at text, and its values as numbers or times if every one is.

    Counts that are not ``exact`` may be 0 where they are not all; ``typed`` says that nobody asks for numbers then.
    """

    def read(kind: pa.DataType, pattern: str) -> pa.Array:
        some = exact or matching(pattern, sample) == len(sample)
        return c.converted(text, kind) if some else pa.nulls(len(text), kind)

    def matching(pattern: str, some: pa.Array = text) -> int:
        return int(pc.sum(pc.match_substring_regex(some, pattern)).as_py())

    sample = text.slice(0, limits.SAMPLED_VALUES)

    whole = len(text)
    # Nearly all columns of times are of one form, and of numbers plain ones.
    alike = c.times_of_one_form(text)
    if alike is not None:
        values, form = alike
        return {"times": whole, "zoned": whole * form.endswith("Z"), "dates": whole * (len(form) == 10)}, values
    found: dict[str, Any] = {}
    if exact or not typed:
        integers = c.cast_at_once(text, pa.int64())
        if integers is not None:
            return {"integers": whole, "numbers": whole, "padded": _padded(text)}, integers
        floats = read(pa.float64(), c.FLOAT)
        numbers = whole - floats.null_count
        if numbers:
            found = {"numbers": numbers, "padded": _padded(text)}
            # A plain number has at most one point, and an integer has none.
            plain = numbers == whole and c.is_plain(text)
            points = int(np.count_nonzero(c.bytes_of(text)[0] == ord("."))) if plain else 0
            digits = whole - points if plain else matching(c.INTEGER)
            if digits:
                found["integers"] = whole - c.converted(text, pa.int64()).null_count
                found["wide"] = digits - found["integers"]
            if numbers == whole:
                return found, floats
    times = whole - read(_UTC, c.TIME).null_count
    if times:
        found |= {"times": times, "zoned": matching(c.ZONE), "dates": matching(c.DATE)}
    if exact or not (found.get("numbers") or typed):
        found["booleans"] = matching(c.BOOLEAN) if exact or matching(c.BOOLEAN, sample) == len(sample) else 0
    return found, None


def _padded(text: pa.Array) -> str | None:
    """An integer that begins with 0."""
    zeros = text.filter(pc.starts_with(text, "0"))
    zeros = zeros.filter(pc.match_substring_regex(zeros, "^0[0-9]{1,18}$"))
    return zeros[0].as_py() if len(zeros) else None


def _plain(nested: pa.DataType) -> pa.DataType | None:
    """The type of arrays or objects with types in it that every runner has; None if there are others."""
    if pa.types.is_null(nested):
        return pa.string()
    if pa.types.is_list(nested):
        inner = _plain(nested.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(nested):
        fields = [(nested.field(k).name, _plain(nested.field(k).type)) for k in range(nested.num_fields)]
        return pa.struct(fields) if fields and all(kind is not None for _, kind in fields) else None
    return nested if nested in (pa.int64(), pa.float64(), pa.bool_(), pa.string()) else None


def merged(looks: Iterable[Look]) -> Look:
    """The forms of the values of several pieces of a column together."""
    return reduce(_both, looks, Look())


def _both(a: Look, b: Look) -> Look:
    nested, mixed = a.nested or b.nested, a.mixed or b.mixed
    if a.nested is not None and b.nested is not None and a.nested != b.nested:
        pair = [pa.schema([("", look.nested)]) for look in (a, b)]
        try:
            nested = _plain(pa.unify_schemas(pair, promote_options="permissive").field(0).type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            nested = None
        mixed = mixed or nested is None
    counts = ("values", "text", "integers", "wide", "numbers", "booleans", "dates", "times", "zoned")
    return Look(
        **{name: getattr(a, name) + getattr(b, name) for name in counts},
        nested=nested,
        mixed=mixed,
        example=a.example or b.example,
        padded=a.padded or b.padded,
    )


def type_of(column: str, look: Look, use: Use, declared: pa.DataType | None) -> pa.DataType:
    """The type as which a column is read; null if it has no values and nothing says more.

    Raises NoValueFitsError if it has values, but none that its use allows.
    """
    if declared is not None:
        return _declared(column, look, declared)
    if use == "text":
        return pa.string()
    if use == "time" and look.values:
        number = look.numbers > look.times
        _refuse_hopeless(column, look, look.numbers if number else look.times, "a time (ISO 8601, or a number)")
        return _number(look) if number else (_UTC if look.zoned else _TYPES["timestamp"])
    if use == "number" and look.values:
        _refuse_hopeless(column, look, look.numbers, "a number")
        return _number(look)
    # Two columns of words may be ordered too: only if most values are numbers the others are mistakes.
    if use == "ordered" and 2 * look.numbers > look.values:
        return _number(look)
    return _inferred(look)


def _inferred(look: Look) -> pa.DataType:
    if not look.values:
        return pa.null()
    if look.nested is not None and not (look.mixed or look.numbers or look.booleans or look.text):
        return look.nested
    if look.times == look.values:
        if look.dates == look.values:
            return pa.date32()
        return _UTC if look.zoned else _TYPES["timestamp"]
    if look.text or look.mixed:
        return pa.string()
    if look.booleans == look.values:
        return pa.bool_()
    # Integers beyond 64 bits are not brought to the nearest double: they may be keys.
    if look.numbers == look.values and look.integers + look.wide < look.numbers:
        return pa.float64()
    return pa.int64() if look.integers == look.values else pa.string()


def right(look: Look, data_type: pa.DataType) -> int:
    """How many values of a column are known to be of a type."""
    counts = {
        "int64": look.integers,
        "double": look.numbers,
        "bool": look.booleans,
        "date32[day]": look.dates,
        "timestamp[us]": look.times,
        "timestamp[us, tz=UTC]": look.times,
    }
    return counts.get(str(data_type), look.values)


def _number(look: Look) -> pa.DataType:
    return pa.int64() if look.integers == look.numbers else pa.float64()


def _declared(column: str, look: Look, declared: pa.DataType) -> pa.DataType:
    if declared == pa.string() or not look.values:
        return declared
    # A declared boolean may be 1 or 0, too.
    known = look.booleans + look.integers if declared == pa.bool_() else right(look, declared)
    _refuse_hopeless(column, look, known, called(declared))
    return _UTC if declared == _TYPES["timestamp"] and look.zoned else declared


def called(data_type: pa.DataType) -> str:
    """A type with its article, as messages name it."""
    if pa.types.is_nested(data_type):
        return f"of the type {data_type}"
    words = {"int64": "an integer", "double": "a number", "bool": "a boolean", "date32[day]": "a date"}
    return words.get(str(data_type), "a time")


def _refuse_hopeless(column: str, look: Look, known: int, wanted: str) -> None:
    if known == 0 and look.example is not None:
        value, row, file = look.example
        raise NoValueFitsError(
            f"no value of the column '{column}' is {wanted}; row {row} of {file}, for example, has '{value}'"
        )


def type_named(name: str) -> pa.DataType:
    """The type of a column that a user says; raises InputError for any other word."""
    if name in _TYPES:
        return _TYPES[name]
    near = nearest(name, _TYPES)
    hint = f"; did you mean '{near}'?" if near else ""
    raise InputError(f"there is no column type '{name}'{hint}; the types are {', '.join(_TYPES)}")
