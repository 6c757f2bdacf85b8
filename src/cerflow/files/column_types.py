"""The type as which a column is read: it depends on its values, on the query, and on the user's options."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import InputError, did_you_mean
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
#: The forms of values that have a type.
_FORMS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (pa.types.is_boolean, ("booleans",)),
    (pa.types.is_integer, ("integers", "numbers")),
    (pa.types.is_floating, ("numbers",)),
)


class NoValueFitsError(InputError):
    """A column has values, but none that its use allows."""


@dataclass(frozen=True)
class Look:
    """The forms of the values of a column: how many are not null, and how many of these have each form.

    ``text`` counts those that are text in a format that has other types too. ``integers`` and ``wide`` are those
    within and beyond 64 bits, ``numbers`` all numbers; ``times`` are ``dates`` and times, ``zoned`` those with a zone;
    there are ``booleans``. Where it only matters whether all values are something, a count that is not all of them may
    be 0. ``nested`` is the common type of arrays and objects, ``mixed`` says that there is none. ``example`` is a value
    with its row and file, ``padded`` an integer that begins with 0.
    """

    values: int = 0
    forms: Counter[str] = field(default_factory=Counter)
    nested: pa.DataType | None = None
    mixed: bool = False
    example: tuple[str, int, str] | None = None
    padded: str | None = None

    def all(self, form: str) -> bool:
        """Whether all values have a form."""
        return self.forms[form] == self.values

    def behind(self, rows: int) -> Look:
        """The same with this many rows of the file before the values."""
        if self.example is None:
            return self
        value, row, file = self.example
        return replace(self, example=(value, row + rows, file))

    def __add__(self, other: Look) -> Look:
        """The forms of the values of two pieces of a column together."""
        nested, mixed = self.nested or other.nested, self.mixed or other.mixed
        if self.nested is not None and other.nested is not None and self.nested != other.nested:
            pair = [pa.schema([("", look.nested)]) for look in (self, other)]
            try:
                nested = _plain(pa.unify_schemas(pair, promote_options="permissive").field(0).type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
                nested = None
            mixed = mixed or nested is None
        example, padded = self.example or other.example, self.padded or other.padded
        return Look(self.values + other.values, self.forms + other.forms, nested, mixed, example, padded)


def look_at(
    column: pa.ChunkedArray, rows: Ints, file: str, use: Use, *, typed: bool, notation: c.Notation = c.USUAL
) -> Look:
    """The forms of the values of a column.

    ``rows`` are the numbers of the values in the file; ``typed`` says that the format has types, so that what is text
    there is not taken for numbers unless somebody needs them. ``notation`` is that of the values.
    """
    values = len(column) - column.null_count
    if not values:
        return Look()
    array = one_array(column)
    first = int(np.argmax(array.is_valid().to_numpy(zero_copy_only=False))) if array.null_count else 0
    found = Look(values, example=(str(array[first].as_py()), int(rows[first]), file))
    names = next((names for of_type, names in _FORMS if of_type(array.type)), ())
    if names or pa.types.is_nested(array.type):
        nested = None if names else _plain(array.type)
        counts = Counter(dict.fromkeys(names, values))
        return replace(found, forms=counts, nested=nested, mixed=not names and nested is None)
    whole = Counter(text=values) if typed or use == "text" else Counter()
    if use == "text":
        return replace(found, forms=whole)
    text = pc.drop_null(c.without_spaces(notation.usual(c.plain_text(array), times=use == "time")))
    forms = _forms(text, exact=use != "other", typed=typed)
    padded = text.filter(pc.starts_with(text, "0")) if forms["numbers"] else text[:0]
    padded = padded.filter(pc.match_substring_regex(padded, "^0[0-9]{1,18}$"))
    return replace(found, forms=whole + forms, padded=padded[0].as_py() if len(padded) else None)


def _forms(text: pa.Array, *, exact: bool, typed: bool) -> Counter[str]:
    """The counts of a `Look` at text.

    Counts that are not ``exact`` may be 0 where they are not all; ``typed`` says that nobody asks for numbers then.
    """
    whole, sample = len(text), text.slice(0, limits.SAMPLED_VALUES)

    def count(pattern: str, some: pa.Array = text) -> int:
        return int(pc.sum(pc.match_substring_regex(some, pattern)).as_py())

    def likely(pattern: str) -> bool:
        return exact or count(pattern, sample) == len(sample)

    # Nearly all columns of times are of one form, and of numbers plain ones.
    alike = c.times_of_one_form(text)
    if alike is not None:
        _, form = alike
        return Counter(times=whole, zoned=whole * form.endswith("Z"), dates=whole * (len(form) == 10))
    found: Counter[str] = Counter()
    if exact or not typed:
        if c.cast_at_once(text, pa.int64()) is not None:
            return Counter(integers=whole, numbers=whole)
        found["numbers"] = whole - c.converted(text, pa.float64()).null_count if likely(c.FLOAT) else 0
        if found["numbers"]:
            # A plain number has at most one point, and an integer has none.
            plain = found["numbers"] == whole and c.is_plain(text)
            digits = whole - int((c.bytes_of(text)[0] == ord(".")).sum()) if plain else count(c.INTEGER)
            if digits:
                found["integers"] = whole - c.converted(text, pa.int64()).null_count
                found["wide"] = digits - found["integers"]
            if found["numbers"] == whole:
                return found
    if likely(c.TIME):
        found["times"] = whole - c.converted(text, _UTC).null_count
    if found["times"]:
        found += Counter(zoned=count(c.ZONE), dates=count(c.DATE))
    if exact or not (found["numbers"] or typed):
        found["booleans"] = count(c.BOOLEAN) if likely(c.BOOLEAN) else 0
    return found


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


def type_of(
    column: str, look: Look, use: Use, declared: pa.DataType | None, notation: c.Notation = c.USUAL
) -> pa.DataType:
    """The type as which a column is read; null if it has no values and nothing says more.

    Raises NoValueFitsError if it has values, but none that its use allows.
    """
    if declared is not None:
        return _declared(column, look, declared)
    if use == "text":
        return pa.string()
    if use == "time" and look.values:
        number = look.forms["numbers"] > look.forms["times"]
        usual = "ISO 8601, or a number; time_format= (--time-format) names another form"
        wanted = f"a time ({notation.time_format or usual})"
        _refuse_hopeless(column, look, look.forms["numbers" if number else "times"], wanted)
        return _number(look) if number else _time(look)
    if use == "number" and look.values:
        _refuse_hopeless(column, look, look.forms["numbers"], "a number")
        return _number(look)
    # Two columns of words may be ordered too: only if most values are numbers the others are mistakes.
    if use == "ordered" and 2 * look.forms["numbers"] > look.values:
        return _number(look)
    return _inferred(look)


def _inferred(look: Look) -> pa.DataType:
    forms = look.forms
    if not look.values:
        return pa.null()
    if look.nested is not None and not (look.mixed or forms["numbers"] or forms["booleans"] or forms["text"]):
        return look.nested
    if look.all("times"):
        return pa.date32() if look.all("dates") else _time(look)
    if forms["text"] or look.mixed:
        return pa.string()
    if look.all("booleans"):
        return pa.bool_()
    # Integers beyond 64 bits are not brought to the nearest double: they may be keys.
    if look.all("numbers") and forms["integers"] + forms["wide"] < look.values:
        return pa.float64()
    return pa.int64() if look.all("integers") else pa.string()


def right(look: Look, data_type: pa.DataType) -> int:
    """How many values of a column are known to be of a type."""
    forms = {"int64": "integers", "double": "numbers", "bool": "booleans", "date32[day]": "dates"}
    form = "times" if pa.types.is_timestamp(data_type) else forms.get(str(data_type))
    return look.values if form is None else look.forms[form]


def _number(look: Look) -> pa.DataType:
    return pa.int64() if look.forms["integers"] == look.forms["numbers"] else pa.float64()


def _time(look: Look) -> pa.DataType:
    return _UTC if look.forms["zoned"] else _TYPES["timestamp"]


def _declared(column: str, look: Look, declared: pa.DataType) -> pa.DataType:
    if declared == pa.string() or not look.values:
        return declared
    # A declared boolean may be 1 or 0, too.
    known = look.forms["booleans"] + look.forms["integers"] if declared == pa.bool_() else right(look, declared)
    _refuse_hopeless(column, look, known, called(declared))
    return _time(look) if declared == _TYPES["timestamp"] else declared


def called(data_type: pa.DataType) -> str:
    """A type with its article, as messages name it."""
    if pa.types.is_nested(data_type):
        return f"of the type {data_type}"
    words = {"int64": "an integer", "double": "a number", "bool": "a boolean", "date32[day]": "a date"}
    return words.get(str(data_type), "a time")


def _refuse_hopeless(column: str, look: Look, known: int, wanted: str) -> None:
    if known == 0 and look.example is not None:
        value, row, file = look.example
        hint = "; is the decimal point a comma?" if wanted == "a number" and c.has_decimal_comma(value) else ""
        raise NoValueFitsError(
            f"no value of the column '{column}' is {wanted}; row {row} of {file}, for example, has '{value}'{hint}"
        )


def type_named(name: str) -> pa.DataType:
    """The type of a column that a user says; raises InputError for any other word."""
    if name in _TYPES:
        return _TYPES[name]
    raise InputError(f"there is no column type '{name}'{did_you_mean(name, _TYPES, 'types')}")
