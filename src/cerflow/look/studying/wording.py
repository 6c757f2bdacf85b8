"""Guards, registers and values in words."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

from cerflow.automata.model.diagrams import show_condition
from cerflow.automata.model.runs import Content, Memory
from cerflow.automata.model.transducer import Register
from cerflow.base.errors import dotted
from cerflow.base.events import Event, Value, moment_at
from cerflow.base.graphs import gathered
from cerflow.base.units import PER_SECOND, TimeUnit, since_1970
from cerflow.language.condition import Attribute, Condition
from cerflow.language.node import walk
from cerflow.logic.conditions.guards import Stored, StreamTest, TypeTest

#: A time in the unit of a stream.
Time = int | float | Fraction


def sentence(text: object) -> str:
    """A text with a capital letter at its beginning."""
    shown = str(text)
    return shown[:1].upper() + shown[1:]


def shown_value(value: object) -> str:
    """A value as text: strings in quotes, null for None, times without a zone."""
    match value:
        case None:
            return "null"
        case str():
            return f"'{value}'"
        case bool():
            return str(value).upper()
        case datetime.datetime():
            return _without_zeros(value.replace(tzinfo=None).isoformat(" "))
        case datetime.timedelta():
            return shown_duration(value)
        case Event():
            return f"event {value.position}"
    return str(value)


def shown_time(value: object, unit: TimeUnit | None = None) -> str:
    """A time; numbers that count seconds since 1970, in this unit, as the date, and others as hours and minutes."""
    if isinstance(value, int | float):
        seconds = value / PER_SECOND[unit or "ms"]
        if not since_1970(seconds):
            return shown_duration(value, unit)
        value = moment_at(0) + datetime.timedelta(seconds=seconds)
    return shown_value(value)


def shown_duration(value: object, unit: TimeUnit | None = None) -> str:
    """A duration, as hours, minutes and seconds; numbers are in this unit."""
    if isinstance(value, int | float):
        value = datetime.timedelta(seconds=value / PER_SECOND[unit or "ms"])
    if isinstance(value, datetime.timedelta) and value < datetime.timedelta(minutes=1):
        return f"{round(value.total_seconds(), 6):g} s"
    return _without_zeros(str(value))


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def shown_guard(part: Condition, registers: Sequence[Register], event: Event, memory: Memory) -> str:
    """A part of a guard, with the values that it reads on an event and in registers."""
    read: dict[str, str] = {}
    for node in walk(part):
        match node:
            case TypeTest():
                read["type"] = event.type
            case StreamTest():
                read["stream"] = str(event.stream)
            case Attribute(_, name):
                read[dotted(name)] = shown_value(event.attribute(name))
            case Stored(register, place):
                kept = memory[register]
                read[f"r{register}"] = shown_value(kept[place]) if isinstance(kept, tuple) else shown_content(kept)
    values = ", ".join(f"{name} = {value}" for name, value in read.items())
    text = show_condition(part, registers)
    return f"{text} ({values})" if values else text


def time_of(time: Time, events: Sequence[Event]) -> Value:
    """A raw time as conditions see it: a timestamp where the times of events are timestamps."""
    if events and events[0].moment is not None:
        return moment_at(int(time))
    return int(time) if time == int(time) else float(time)


def shown_content(content: Content) -> str:
    """The content of a register as text."""
    match content:
        case None:
            return "empty"
        case tuple():
            shown = ", ".join(map(shown_value, content))
            return shown if len(content) == 1 else f"({shown})"
    return "{" + ", ".join(sorted(map(shown_content, content))) + "}"


def shown_pairs(pairs: frozenset[tuple[str, int]]) -> str:
    """A complex event: each event with its labels, in order of position."""
    labels = gathered((position, label) for label, position in sorted(pairs))
    return "{" + ", ".join(f"{'/'.join(labels[p])}@{p}" for p in sorted(labels)) + "}"


def cells(row: Mapping[str, Any], times: Collection[str | None], unit: TimeUnit | None) -> dict[str, Any]:
    """The values of a row as they stand in tables, given the columns of ``times`` and what numbers in these count."""
    return {n: shown_time(v, unit) if n in times and v is not None else cell(v) for n, v in row.items()}


def cell(value: Any) -> Any:
    """A value as it stands in a table: numbers as they are, without needless zeros, nothing for null, and text."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else shown_value(value)
