"""A single event, given as a mapping, as a batch of one row in place: kernels read it without new Arrow arrays.

Events with values that need more become a new batch of one row.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from struct import Struct
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa

from cerflow.base.arrow_columns import without_codes
from cerflow.base.event_tables import from_rows
from cerflow.base.schema import Schema
from cerflow.base.units import MICROSECONDS
from cerflow.engine.evaluate.ranges import limits
from cerflow.engine.evaluate.rows import finest_unit
from cerflow.engine.events.store import one_batch
from cerflow.engine.scan.columns import ExportedBatch
from cerflow.engine.scan.program.compiler import computed_column

#: Codes of integers by their bits.
_CODES = {8: "b7x", 16: "h6x", 32: "i4x", 64: "q"}
#: Bytes of the longest text that a row holds.
_LONGEST = 1 << 10
_EPOCH = datetime.datetime(1970, 1, 1)
_UTC_EPOCH = _EPOCH.replace(tzinfo=datetime.UTC)
#: Time zones that give the offset from UTC at every moment.
_ZONES = (datetime.timezone, ZoneInfo)
#: The greatest number of microseconds that surely fits durations and timestamps in nanoseconds.
_MOST = 2**63 // 1000 - 1


class _Field(NamedTuple):
    """How a column gets a value of the Python type ``kind`` (None: not here), written by a ``code`` of `struct`.

    ``taken`` gives the integer of a time, and a text itself. It returns None for values that a batch must check, which
    are also those beyond ``most``, and NaN. Of a text the offsets are written: 0, and the length.
    """

    name: str
    kind: type | None = None
    code: str = ""
    taken: Callable[[Any], int | str | None] | None = None
    most: float | None = None


class EventFields:
    """What the values of a single event must be, for each column of a schema; the columns ``wanted`` must be plain."""

    def __init__(self, schema: Schema, wanted: Collection[str]) -> None:
        unit, most = finest_unit(schema), limits(schema)
        fields = [_field(field, unit, most.get(field.name)) for field in schema.columns]
        #: The number of columns, which is that of values if all are plain.
        self.count = len(fields)
        self._left_out = frozenset(field.name for field in fields if field.kind is None).difference(wanted)
        self._fields: list[tuple[str, Any, Callable[[Any], Any] | None, float | None]] = [
            (field.name, field.kind, field.taken, field.most) for field in fields
        ]
        self._type, self._time = schema.type, schema.time

    def plain(self, event: Mapping[str, Any], latest: int | float | None) -> dict[str, Any] | None:
        """The columns of an event, times as integers; None if a batch must check it, whichever queries need that.

        Unusual values and bad records need that. Values of columns that no row holds, such as exact decimals, are left
        out. ``latest`` is the time of the event before.
        """
        values: dict[str, Any] = {}
        get = event.get
        for name, kind, taken, most in self._fields:
            value: Any = get(name)
            if value is not None:
                if type(value) is not kind:
                    if name in self._left_out:
                        continue
                    return None
                if most is not None:
                    if not -most <= value <= most:
                        return None
                elif taken is not None:
                    value = taken(value)
                    if value is None:
                        return None
            values[name] = value
        if values[self._type] is None:
            return None
        if self._time is not None:
            moment = values.get(self._time)
            if moment is None or (latest is not None and moment < latest):
                return None
        return values


class EventRow:
    """A batch of one row, with the columns of a schema, whose values are written over those of the event before.

    Only columns in ``read`` are written; the others are null. A column of a dictionary of texts is one of plain texts.
    There is a `computed_column` more for each of some tests.
    """

    def __init__(self, schema: Schema, read: Collection[str], tests: Iterable[int] = ()) -> None:
        unit = finest_unit(schema)
        fields = [_field(field, unit, None) for field in schema.columns if field.name in read]
        arrays = {field.name: pa.nulls(1, field.type) for field in schema.columns}
        for number in tests:
            fields.append(_Field(computed_column(number), int, _CODES[8]))
            arrays[fields[-1].name] = pa.nulls(1, pa.int8())
        fields = [field for field in fields if field.kind is not None]
        #: The columns that are written.
        self.names = [field.name for field in fields]
        packed = Struct("=" + "".join(field.code for field in fields))
        self._pack, self._values = packed.pack_into, bytearray(packed.size)
        #: Whether each value is known, as a byte each. Arrow counts now that none is, so kernels will look.
        self._known, self._some_unknown = bytearray(len(fields)), True
        #: The columns of text, by number, with room for a text.
        self._texts = [(k, memoryview(bytearray(_LONGEST))) for k, field in enumerate(fields) if field.kind is str]
        rooms, at = dict(self._texts), 0
        for k, field in enumerate(fields):
            places = [pa.py_buffer(self._known).slice(k), pa.py_buffer(self._values).slice(at)]
            places += [pa.py_buffer(rooms[k])] if k in rooms else []
            arrays[field.name] = pa.Array.from_buffers(without_codes(arrays[field.name].type), 1, places)
            at += Struct("=" + field.code).size
        self.batch = pa.RecordBatch.from_pydict(arrays)
        self.exported = ExportedBatch(self.batch)

    def write(self, values: Mapping[str, Any]) -> None:
        """Write the values that `EventFields.plain` gave, and truth values of tests.

        Raises ValueError if a text does not fit.
        """
        words = [values[name] for name in self.names]
        for k, room in self._texts:
            if words[k] is not None:
                text = words[k].encode()
                words[k] = size = len(text)
                room[:size] = text
        unknown = None in words
        if unknown or self._some_unknown:
            self._known[:] = bytes([word is not None for word in words])
            self._some_unknown = unknown
            words = [word or 0 for word in words]
        self._pack(self._values, 0, *words)


def _field(field: pa.Field, unit: str, most: int | None) -> _Field:
    """How a column gets values, at most ``most`` if given; ``unit`` is the finest unit of timestamps in the schema."""
    name, data_type = field.name, without_codes(field.type)
    if pa.types.is_signed_integer(data_type):
        # The least 64-bit integer stands for null.
        width = data_type.bit_width
        return _Field(name, int, _CODES[width], None, 2 ** (width - 1) - 1 if most is None else most)
    if pa.types.is_float64(data_type):
        return _Field(name, float, "d", None, math.inf)
    if pa.types.is_string(data_type):
        return _Field(name, str, "4xi", _encodable)
    if pa.types.is_large_string(data_type):
        return _Field(name, str, "8xq", _encodable)
    if pa.types.is_boolean(data_type):
        return _Field(name, bool, "?7x")
    if pa.types.is_timestamp(data_type):
        return _Field(name, datetime.datetime, "q", _in_own_unit(_since_1970, data_type.unit, unit == "ns"))
    if pa.types.is_duration(data_type):
        return _Field(name, datetime.timedelta, "q", _in_own_unit(_length, data_type.unit, data_type.unit == "ns"))
    return _Field(name)


def _encodable(text: str) -> str | None:
    """A text; None if it is not one of Unicode, because half a surrogate pair is in it."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return None
    return text


def _in_own_unit(microseconds: Callable[[Any], int | None], unit: str, limited: bool) -> Callable[[Any], int | None]:
    """The function from times to numbers of a unit; ``limited`` says that these must fit 64 bits as nanoseconds."""
    if unit == "us" and not limited:
        return microseconds
    size = MICROSECONDS[unit]

    def taken(value: Any) -> int | None:
        found = microseconds(value)
        # Arrow rounds what is not a whole number of units.
        if found is None or (limited and abs(found) > _MOST) or found % size:
            return None
        return int(found / size)

    return taken


def _since_1970(value: datetime.datetime) -> int | None:
    zone = value.tzinfo
    if zone is None:
        since = value - _EPOCH
    elif isinstance(zone, _ZONES):
        since = value - _UTC_EPOCH
    else:
        return None
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _length(value: datetime.timedelta) -> int | None:
    found = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    return found if abs(found) < 2**62 else None


def as_batch(event: Mapping[str, Any], columns: pa.Schema) -> pa.RecordBatch:
    """One event as a record batch; raises `InputError` for values that do not fit the columns."""
    return one_batch(from_rows([event], columns))
