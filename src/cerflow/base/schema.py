"""The schema of events: which column is the type, which the time, and the attributes with their kinds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base.arrow_columns import Rows, encoded_texts, plain_type, values_taken
from cerflow.base.errors import InputError, did_you_mean, expect
from cerflow.base.events import UNNAMED
from cerflow.base.nested import attribute_named, field_type, field_values, is_nested, parts_of, root_of
from cerflow.base.units import MICROSECONDS, PER_SECOND, UNIT_NAMES, TimeUnit, check_unit, since_1970

#: Columns that no input has: the types of events, where no column of the input holds them as text; and the one of
#: events without types.
TYPE_TEXT, UNTYPED = HIDDEN_TYPES = "\0type", "\0no type"

#: Texts whose lengths are compared together, so that they stay in the caches.
_AT_ONCE = 1 << 15


class ValueKind(StrEnum):
    """The kinds of value that conditions distinguish."""

    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    #: Decimals that are neither whole numbers of 64 bits nor surely apart as floats: compared, but not computed with.
    DECIMAL = "decimal"
    OTHER = "other"

    @property
    def numeric(self) -> bool:
        """Whether arithmetic and comparison with numbers make sense."""
        return self in (ValueKind.INTEGER, ValueKind.FLOAT)

    @property
    def coded(self) -> bool:
        """Whether the engine has values of the kind as codes into a table of texts."""
        return self in (ValueKind.STRING, ValueKind.DECIMAL)


#: How a column of other values becomes one of times.
_TIME_HINTS = {
    ValueKind.DECIMAL: " that fits 64 bits: cast it to int64",
    ValueKind.STRING: "; convert text first: pandas.to_datetime(frame['{0}']), str.to_datetime() in Polars, "
    "to_timestamp in Spark and DuckDB, or read the file by cerflow.read_events(path, time='{0}')",
}
#: The same for fields of structs.
_FIELD_HINTS = {
    ValueKind.STRING: "; make a column of times first, such as SELECT *, to_timestamp({0}) AS at in Spark and "
    "CAST({0} AS TIMESTAMP) in DuckDB, or read the field as one (--columns of cerflow stream)"
}
#: The greatest precision and scale of decimals that stay distinct and ordered as 64-bit floats, in every system that
#: converts them.
_FLOAT_DIGITS, _FLOAT_SCALE = 15, 22
#: Whole numbers of up to this number of digits fit 64 bits.
_WHOLE_DIGITS = 18


def kind_of(data_type: pa.DataType) -> ValueKind:
    """The kind of an Arrow type; types no condition can read (lists, structs, …) are ``OTHER``."""
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return kind_of(data_type.value_type)
    if pa.types.is_boolean(data_type):
        return ValueKind.BOOLEAN
    if pa.types.is_integer(data_type):
        return ValueKind.INTEGER
    if pa.types.is_floating(data_type):
        return ValueKind.FLOAT
    if pa.types.is_decimal(data_type):
        return _kind_of_decimal(data_type.precision, data_type.scale)
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return ValueKind.STRING
    if pa.types.is_timestamp(data_type) or pa.types.is_date(data_type):
        return ValueKind.TIMESTAMP
    if pa.types.is_duration(data_type):
        return ValueKind.DURATION
    return ValueKind.OTHER


def _kind_of_decimal(precision: int, scale: int) -> ValueKind:
    if scale <= 0 and precision - scale <= _WHOLE_DIGITS:
        return ValueKind.INTEGER
    return ValueKind.FLOAT if precision <= _FLOAT_DIGITS and 0 < scale <= _FLOAT_SCALE else ValueKind.DECIMAL


#: Rows that are looked at first for some types.
_LOOKED_AT = 1 << 14


@dataclass(frozen=True)
class Schema:
    """The columns of an event table and the roles of some of them.

    ``columns`` is the Arrow schema of the input. ``type`` names the column that holds the event type (text, integers or
    booleans), ``time`` the one that holds its time (None: time is the position), ``stream`` the one that holds the name
    of the input stream (None: one unnamed stream). Events have no types with ``type=None``, and where no column has the
    name ``"type"``; ``constant_type`` gives all of them one. Every column is an attribute of every event (null where an
    event does not carry it), the type column too. ``time_unit`` is what a numeric time column counts (None: not said,
    milliseconds). The names may be those of fields of structs, ``device.os``, where no column is called so; `reading`
    adds the fields that queries read.
    ``forget`` is a number of microseconds: a substream whose next event comes later than that after its last one starts
    again (None: it never does).
    """

    columns: pa.Schema
    type: str = "type"
    time: str | None = None
    stream: str | None = None
    time_unit: TimeUnit | None = None
    forget: int | None = None
    constant_type: str | None = None
    #: Types that no event has, of those that a query might take for labels.
    absent_types: frozenset[str] = frozenset()
    #: Columns of integers or times that are known neither to decrease nor to be null.
    ascending: frozenset[str] = frozenset()
    #: The column whose values the types are, as text; None if ``type`` itself holds them, or no column.
    typed_by: str | None = None
    #: The columns in which the engine needs the values as 64 bits, with the greatest magnitude of whole numbers there:
    #: an event with another value cannot be used. Plans say which.
    held: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    _kinds: Mapping[str, ValueKind] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        expect(self.columns, pa.Schema, "the schema of events must be one of Arrow, such as table.schema")
        for role in ("type", "time", "stream"):
            self._settle_field(role)
        self._settle_type()
        names = self.columns.names
        for role, name in (("type", self.type), ("time", self.time), ("stream", self.stream)):
            if name is not None and name not in names:
                raise InputError(f"the {role} column '{name}' is not in the input{did_you_mean(name, names)}")
        doubles = sorted({n for n in names if names.count(n) > 1})
        if doubles:
            raise InputError(f"the input has more than one column called '{doubles[0]}'")
        # Batches are brought to the types named here.
        plain = [f.with_type(self._plain(f)) for f in self.columns]
        object.__setattr__(self, "columns", pa.schema(plain, self.columns.metadata))
        object.__setattr__(self, "_kinds", {f.name: kind_of(f.type) for f in self.columns})
        if self.time is not None and not (self.counts_time or self.kind(self.time) is ValueKind.TIMESTAMP):
            raise InputError(
                f"the time column '{self.time}' has type {self.columns.field(self.time).type}; "
                "it must be a timestamp, a date, or a number"
                + (_FIELD_HINTS if is_nested(self.time) else _TIME_HINTS)
                .get(self.kind(self.time), "")
                .format(self.time)
            )
        if self.forget is not None and self.time is None:
            raise InputError(
                "forget= (--key-timeout) measures how long a key had no events, but no time column is named"
            )
        if self.time_unit is not None:
            self._check_unit(self.time_unit)

    def in_default_unit(self) -> Schema:
        """The same schema, with one of the two spellings of milliseconds."""
        return replace(self, time_unit=None) if self.time_unit == "ms" else self

    def _settle_field(self, role: str) -> None:
        """Name the field of a struct that has a role, and add its column."""
        name = getattr(self, role)
        if isinstance(name, str) and name not in self.columns.names:
            found = attribute_named(self.columns, name)
            object.__setattr__(self, role, found)
            object.__setattr__(self, "columns", self.reading([found]).columns)

    def reading(self, names: Iterable[str]) -> Schema:
        """The schema with columns for the nested attributes among some names, as far as there are such fields."""
        fields = [name for name in names if is_nested(name) and name not in self.columns.names]
        found = {name: field_type(self.columns, parts_of(name)) for name in sorted(fields)}
        added = [pa.field(name, data_type) for name, data_type in found.items() if data_type is not None]
        return replace(self, columns=pa.schema([*self.columns, *added], self.columns.metadata)) if added else self

    def _settle_type(self) -> None:
        """Name the column that `with_types` adds, where none of the input holds the types as text."""
        names, hidden = self.columns.names, None
        if self.constant_type is not None:
            hidden = TYPE_TEXT
        elif self.type is None or (self.type == "type" and "type" not in names):
            hidden = UNTYPED
        elif self.type in names and self._names_types():
            object.__setattr__(self, "typed_by", self.type)
            hidden = TYPE_TEXT
        if hidden is not None:
            object.__setattr__(self, "type", hidden)
        if self.type in HIDDEN_TYPES and self.type not in names:
            added = pa.field(self.type, pa.dictionary(pa.int32(), pa.string()))
            object.__setattr__(self, "columns", self.columns.append(added))

    def _names_types(self) -> bool:
        """Whether the text of the type column's values are the types; internal columns are not those of the input."""
        found = plain_type(self.columns.field(self.type).type)
        return not self.type.startswith("\0") and bool(pa.types.is_integer(found) or pa.types.is_boolean(found))

    @property
    def untyped(self) -> bool:
        """Whether events have no types."""
        return self.type == UNTYPED

    def types_in(self, rows: pa.Table, wanted: Collection[str] = ()) -> frozenset[str] | None:
        """The types of events, as text; None if events have no types.

        If some are ``wanted``, they may be all that are found.
        """
        if self.untyped:
            return None
        types, found = self.completed(rows).column(self.type), set[str]()
        at, size = 0, _LOOKED_AT if wanted else len(types)
        while at < len(types) and not (wanted and found.issuperset(wanted)):
            found.update(str(value) for value in types.slice(at, size).unique().to_pylist() if value is not None)
            at, size = at + size, 8 * size
        return frozenset(found)

    def lacking(self, names: Collection[str], rows: pa.Table) -> Schema:
        """The schema of events with these ``rows``, which says which of some names are the type of none of them."""
        if not names or self.only_type is not None:
            return self
        left = frozenset(names)
        for values in self.completed(rows).column(self.type).chunks:
            left -= self.types_among(left, values) if left else left
        return replace(self, absent_types=left) if left else self

    @staticmethod
    def types_among(names: Collection[str], types: pa.Array) -> frozenset[str]:
        """Those of some names that are among the ``types`` of events, an array of text; all if it is none."""
        texts = types.dictionary if pa.types.is_dictionary(types.type) else types
        views = pa.types.is_string_view(texts.type)
        if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type) or views):
            return frozenset(names)
        width, data = np.int64 if pa.types.is_large_string(texts.type) else np.int32, texts.buffers()[1] or b""
        # A view begins with the length of its text.
        numbers = np.frombuffer(data, width)[:: 4 if views else 1][texts.offset : texts.offset + len(texts) + 1]
        found: set[str] = set()
        for start in range(0, len(texts), _AT_ONCE):
            some = numbers[start : start + _AT_ONCE + 1]
            sizes = some[:_AT_ONCE] if views else np.diff(some)
            for size in {len(name.encode()) for name in names}:
                # Hardly any text is as short as a label.
                some = np.flatnonzero(sizes == size)
                if len(some):
                    found.update(values_taken(texts, start + some).unique().to_pylist())
        return frozenset(names) & found

    def completed(self, rows: Rows) -> Rows:
        """Events with the columns that the input lacks: nested attributes, and types as text."""
        if rows.schema.equals(self.columns):
            return rows
        given = rows.schema.names
        for name in filter(is_nested, self.columns.names):
            root = root_of(name)
            if name not in given and root in given:
                field = self.columns.field(name)
                rows = rows.append_column(field, field_values(rows.column(root), name).cast(field.type))
        return self._with_types(rows)

    def _with_types(self, rows: Rows) -> Rows:
        if self.type not in HIDDEN_TYPES or self.type in rows.schema.names:
            return rows
        if self.typed_by is None:
            codes = pa.array(np.zeros(rows.num_rows, np.int32))
            # Zeros need no check, which would touch the memory of all rows.
            types = pa.DictionaryArray.from_arrays(codes, pa.array([self.only_type], pa.string()), safe=False)
        elif self.typed_by not in rows.schema.names:
            return rows
        else:
            types = encoded_texts(rows.column(self.typed_by))
        return rows.append_column(self.columns.field(self.type), types)

    @property
    def only_type(self) -> str | None:
        """The type of all events where no column has types, `UNNAMED` if they have none; or else None."""
        return UNNAMED if self.untyped else self.constant_type

    @property
    def completing(self) -> Callable[[Mapping[str, Any]], dict[str, Any]] | None:
        """A function that completes an event given as a mapping, as `completed` does; None if nothing is missing."""
        fields = [(name, parts_of(name)) for name in self.columns.names if is_nested(name)]
        if self.type not in HIDDEN_TYPES and not fields:
            return None
        hidden, column = self.type if self.type in HIDDEN_TYPES else None, self.typed_by

        def completed(event: Mapping[str, Any]) -> dict[str, Any]:
            found = dict(event)
            for name, parts in fields:
                found[name] = _field_of(event, parts)
            if hidden is not None:
                value = self.only_type if column is None else found.get(column)
                text = str(value).lower() if isinstance(value, bool) else value
                found[hidden] = None if text is None else str(text)
            return found

        return completed

    def _check_unit(self, unit: TimeUnit) -> None:
        check_unit(unit)
        if self.time is None:
            raise InputError(f"the time unit '{unit}' is given, but no time column is named")
        if self.kind(self.time) is ValueKind.TIMESTAMP:
            raise InputError(
                f"the time unit '{unit}' is given, but the time column '{self.time}' holds times of type "
                f"{self.columns.field(self.time).type}, not numbers; leave the unit out"
            )

    def doubtful_unit(self, least: float | None, greatest: float | None) -> str | None:
        """A warning if no unit was given and times from ``least`` to ``greatest`` look like another unit, else None."""
        if least is None or greatest is None or self.time is None or self.time_unit is not None:
            return None
        if not self.kind(self.time).numeric:
            return None
        for unit, name in UNIT_NAMES.items():
            if unit != "ms" and all(since_1970(bound / PER_SECOND[unit]) for bound in (least, greatest)):
                return (
                    f"the numbers in the time column '{self.time}', such as {least}, look like {name} since 1970, but "
                    f"count as milliseconds; if they are {name}, pass time_unit='{unit}' (--time-unit {unit})"
                )
        return None

    @property
    def microseconds(self) -> Fraction:
        """The microseconds that one in a numeric time column counts."""
        return MICROSECONDS[self.time_unit or "ms"]

    @property
    def counts_time(self) -> bool:
        """Whether the time column holds numbers."""
        return self.time is not None and self.kind(self.time).numeric

    def ticks(self, microseconds: int) -> int | float:
        """A duration as a number of what the numeric time column counts: whole if it is and fits 64 bits."""
        exact = microseconds / self.microseconds
        return int(exact) if exact.denominator == 1 and abs(exact) < 2**63 else float(exact)

    def _plain(self, field: pa.Field) -> pa.DataType:
        """The type in which a column is read; a column without any value has the role that it is given."""
        found = plain_type(field.type)
        if not pa.types.is_null(found) or field.name not in (self.type, self.time, self.stream):
            return found
        return pa.int64() if field.name == self.time else pa.string()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute names, in the order of the columns."""
        return tuple(self.columns.names)

    @property
    def known_names(self) -> tuple[str, ...]:
        """The names of the input's columns."""
        return tuple(name for name in self.columns.names if name not in HIDDEN_TYPES and not is_nested(name))

    @property
    def given(self) -> pa.Schema:
        """The columns of the input, without those that `completed` adds."""
        return pa.schema([self.columns.field(name) for name in self.known_names])

    def has(self, attribute: str) -> bool:
        """Whether there is an attribute of this name."""
        return attribute in self._kinds

    def column(self, attribute: str) -> str:
        """The column of an attribute: ``type`` is the type of the event if no attribute is called so."""
        return self.type if attribute == "type" and "type" not in self._kinds else attribute

    def key_kind(self, key: Sequence[str]) -> ValueKind:
        """The kind of a partition key that attributes are: floats where integers meet floats; nulls go with all."""
        kinds = {self._kinds[self.column(name)] for name in key} - {ValueKind.OTHER}
        if ValueKind.FLOAT in kinds:
            return ValueKind.FLOAT
        return kinds.pop() if kinds else ValueKind.OTHER

    def kind(self, attribute: str) -> ValueKind:
        """The kind of an attribute; raises KeyError if there is none of that name."""
        return self._kinds[attribute]


def _field_of(event: Mapping[str, Any], parts: Sequence[str]) -> Any:
    """The value of a nested attribute of an event; null where a dict on the way lacks it."""
    found: Any = event
    for number, part in enumerate(parts):
        if found is None:
            return None
        if not isinstance(found, Mapping):
            raise InputError(
                f"the value {found!r} of '{'.'.join(parts[:number])}' is not a dict, so it has no field '{part}'"
            )
        found = found.get(part)
    return found
