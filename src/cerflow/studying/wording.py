"""Guards, registers and values in words."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from fractions import Fraction

from cerflow.automata.model.diagrams import show_condition
from cerflow.automata.model.runs import Content, Memory
from cerflow.automata.model.transducer import Register
from cerflow.conditions.guards import Stored, StreamTest, TypeTest
from cerflow.errors import dotted
from cerflow.language.condition import Attribute, Condition
from cerflow.language.node import walk
from cerflow.values.events import Event, Value

#: A time in the unit of a stream.
Time = int | float | Fraction

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


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
            return value.replace(tzinfo=None).isoformat(" ")
        case Event():
            return f"event {value.position}"
    return str(value)


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
                read[f"r{register}"] = shown_value(kept[place]) if isinstance(kept, tuple) else _content(kept)
    values = ", ".join(f"{name} = {value}" for name, value in read.items())
    text = show_condition(part, registers)
    return f"{text} ({values})" if values else text


def shown_memory(memory: Memory, registers: Sequence[Register]) -> tuple[tuple[str, str], ...]:
    """The registers that hold something: their names with what they mean, and their contents."""
    return tuple(
        (f"r{number}: {register.meaning}", _content(content))
        for number, (content, register) in enumerate(zip(memory, registers))
        if content is not None
    )


def with_times(memory: Memory, timed: Collection[int], events: Sequence[Event]) -> Memory:
    """The registers with times as conditions see them in those that are ``timed``."""
    return tuple(
        tuple(time_of(value, events) if isinstance(value, int | float) else value for value in content)
        if number in timed and isinstance(content, tuple)
        else content
        for number, content in enumerate(memory)
    )


def time_of(time: Time, events: Sequence[Event]) -> Value:
    """A raw time as conditions see it: a timestamp where the times of events are timestamps."""
    if events and events[0].moment is not None:
        return _EPOCH + datetime.timedelta(microseconds=int(time))
    return int(time) if time == int(time) else float(time)


def _content(content: Content) -> str:
    match content:
        case None:
            return "empty"
        case tuple():
            shown = ", ".join(map(shown_value, content))
            return shown if len(content) == 1 else f"({shown})"
    return "{" + ", ".join(sorted(_content(row) for row in content)) + "}"


def shown_pairs(pairs: frozenset[tuple[str, int]]) -> str:
    """A complex event: each event with its labels, in order of position."""
    labels: dict[int, list[str]] = {}
    for label, position in sorted(pairs):
        labels.setdefault(position, []).append(label)
    return "{" + ", ".join(f"{'/'.join(labels[p])}@{p}" for p in sorted(labels)) + "}"
