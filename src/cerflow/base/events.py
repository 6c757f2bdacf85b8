"""Events, streams and complex events as the semantics sees them."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, overload

from cerflow.base.errors import InputError, shown
from cerflow.base.nested import flattened
from cerflow.base.units import MICROSECONDS, TimeUnit

#: Values of attributes. Timestamps are datetimes in UTC, durations whole numbers of microseconds; None is null, and so
#: is NaN. Decimals are compared exactly.
Value = int | float | str | bool | datetime.datetime | datetime.timedelta | Decimal | None

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FINE = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")


@dataclass(frozen=True)
class Event:
    """One event.

    ``position`` counts events of the whole stream from 0. ``time`` is the raw time: a number, microseconds since the
    epoch for timestamps, the position where there is no time column. ``stream`` names the input it came from,
    ``moment`` is the time where it is a timestamp.
    """

    position: int
    type: str
    time: int | float | Fraction
    attributes: Mapping[str, Value]
    stream: str | None = None
    moment: datetime.datetime | None = None

    def __hash__(self) -> int:
        # Attributes stand in a dict; of a stream the position is enough.
        return hash((self.position, self.type))

    def attribute(self, name: str) -> Value:
        """The value of an attribute, null if the event does not carry it; ``type`` is the event type by default."""
        if name in self.attributes:
            return self.attributes[name]
        return self.type if name == "type" else None


class Stream(Sequence[Event]):
    """Events in the order of their positions, with the unit of their times.

    ``microseconds_per_tick`` is 1 for timestamps, that of the unit for numeric times, None without times.
    """

    def __init__(self, events: Iterable[Event], microseconds_per_tick: Fraction | int | None = None) -> None:
        self._events = tuple(events)
        self.microseconds_per_tick = microseconds_per_tick

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Stream: ...
    def __getitem__(self, index: int | slice) -> Event | Stream:
        if isinstance(index, slice):
            return Stream(self._events[index], self.microseconds_per_tick)
        return self._events[index]

    def ticks(self, duration: int) -> int | float | Fraction:
        """A number of microseconds as a difference of times: a float where times are floats, else exact."""
        assert self.microseconds_per_tick is not None
        size = Fraction(duration) / self.microseconds_per_tick
        return float(size) if any(isinstance(event.time, float) for event in self._events[:1]) else size

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    @classmethod
    def from_dicts(
        cls,
        rows: Iterable[Mapping[str, Any]],
        *,
        type: str = "type",
        time: str | None = None,
        time_unit: TimeUnit | None = None,
        stream: str | None = None,
    ) -> Stream:
        """The stream of a list of dicts, ordered stably by time where there is one; fields of dicts in them are nested
        attributes.

        ``time_unit`` is what times that are numbers count, milliseconds unless given. Every key of any row is an
        attribute of every event, null where the row lacks it. Raises `InputError` for a row without type, time or
        (where asked for) name of the stream.
        """
        table = [dict(flattened(row)) for row in rows]
        names = dict.fromkeys(name for row in table for name in row)
        for index, row in enumerate(table):
            for role, column in (("type", type), ("time", time), ("stream", stream)):
                if column is not None and as_value(row.get(column)) is None:
                    raise InputError(f"row {index} has no {role} (column '{column}')")
        values = [{name: as_value(row.get(name)) for name in names} for row in table]
        # A column has one kind: whole numbers among fractions are floats.
        for name in names:
            if any(isinstance(row[name], float) for row in values):
                for row in values:
                    number = row[name]
                    row[name] = float(number) if isinstance(number, int) else number
        if time is not None:
            values.sort(key=lambda row: raw_time(row[time]))
        timestamps = time is not None and any(isinstance(row[time], datetime.datetime) for row in values)
        return cls(
            (
                Event(
                    position,
                    str(row[type]),
                    position if time is None else raw_time(row[time]),
                    row,
                    None if stream is None else str(row[stream]),
                    row[time] if timestamps else None,  # type: ignore[index, arg-type]
                )
                for position, row in enumerate(values)
            ),
            None if time is None else 1 if timestamps else MICROSECONDS[time_unit or "ms"],
        )


#: A stream as people give it: events, or a list of dicts.
StreamGiven = Sequence[Event] | Iterable[Mapping[str, Any]]


def as_stream(given: StreamGiven) -> Sequence[Event]:
    """A stream, or the stream of a list of dicts with the column ``type``; raises `InputError` for anything else."""
    if isinstance(given, Stream):
        return given
    if not isinstance(given, Iterable):
        raise InputError(f"a stream is a list of events or of dicts, not {shown(given)} of type {type(given).__name__}")
    rows: list[Any] = list(given)
    if all(isinstance(row, Event) for row in rows):
        return rows
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"row {index} of the stream is {shown(row)} of type {type(row).__name__}, and not a dict")
    return Stream.from_dicts(rows)


def as_value(raw: Any) -> Value:
    """A Python value as one of the kinds the language knows.

    NaN is null, naive timestamps are UTC, and of durations less than a microsecond is cut off.
    """
    match raw:
        case None | bool() | int() | str():
            return raw
        case Mapping():
            # Only whether there is one can be asked.
            return True
        case float():
            return None if math.isnan(raw) else raw
        case Decimal():
            return raw if raw.is_finite() else as_value(float(raw))
        case datetime.datetime():
            return raw.replace(tzinfo=datetime.UTC) if raw.tzinfo is None else raw.astimezone(datetime.UTC)
        case datetime.date():
            return datetime.datetime(raw.year, raw.month, raw.day, tzinfo=datetime.UTC)
        case datetime.timedelta():
            return datetime.timedelta(microseconds=raw // datetime.timedelta(microseconds=1))
    raise InputError(f"{raw!r} is not a value that conditions can read")


def parsed_moment(text: str) -> datetime.datetime:
    """The timestamp that a text of ISO 8601 says, in UTC.

    Raises `ValueError` for other texts, digits beyond the microsecond, and times that are not in the years 1 to 9999.
    """
    if _FINE.search(text):
        raise ValueError("it has digits beyond the microsecond")
    try:
        moment = as_value(datetime.datetime.fromisoformat(text))
    except OverflowError:
        raise ValueError("in UTC it is not in the years 1 to 9999") from None
    assert isinstance(moment, datetime.datetime)
    return moment


def is_moment(value: object) -> bool:
    """Whether a value is a string that can be compared with timestamps."""
    if not isinstance(value, str):
        return False
    try:
        parsed_moment(value)
    except ValueError:
        return False
    return True


def microseconds_since_epoch(moment: datetime.datetime) -> int:
    """Microseconds since the epoch."""
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


def moment_at(microseconds: int) -> datetime.datetime:
    """The moment so long after the epoch; raises `OverflowError` beyond the years 1 to 9999."""
    return _EPOCH + datetime.timedelta(microseconds=microseconds)


def raw_time(value: Value) -> int | float | Fraction:
    """A time as events have it: a number as it is, a timestamp in microseconds since the epoch, exactly."""
    if isinstance(value, datetime.datetime):
        # Timestamps of pandas have nanoseconds.
        beyond = getattr(value, "nanosecond", 0)
        return microseconds_since_epoch(value) + (Fraction(beyond, 1000) if beyond else 0)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        return float(value) if value % 1 else int(value)
    raise InputError(f"{value!r} is not a time")


#: A label without a name: it counts in the support of a complex event, and results do not show it.
UNNAMED = "\0event"

#: Pairs (label, position); positions count within the stream that is evaluated.
ComplexEvent = frozenset[tuple[str, int]]


def support(complex_event: ComplexEvent) -> frozenset[int]:
    """The positions of a complex event."""
    return frozenset(p for _, p in complex_event)


def next_at_most(first: Collection[int], second: Collection[int]) -> bool:
    """``first ≤next second``: they are equal, or the least position at which they differ is in the second (P1 §4)."""
    differing = set(first) ^ set(second)
    return not differing or min(differing) in second


def last_at_most(first: Collection[int], second: Collection[int]) -> bool:
    """``first ≤last second``: they are equal, or the greatest position where they differ is in the second (P1 §4)."""
    differing = set(first) ^ set(second)
    return not differing or max(differing) in second
