"""Guards, registers and values in words."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from cerflow.automata.model.diagrams import show_condition
from cerflow.automata.model.runs import Content, Memory
from cerflow.automata.model.transducer import Register
from cerflow.conditions.guards import Stored, StreamTest, TypeTest
from cerflow.language.condition import Attribute, Condition
from cerflow.language.formula import DurationWindow
from cerflow.language.node import walk
from cerflow.values.events import Event, Value

__all__ = ["shown_guard", "shown_memory", "shown_pairs", "shown_value"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


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
                read[name] = shown_value(event.attribute(name))
            case Stored(register, place):
                kept = memory[register]
                read[f"r{register}"] = shown_value(kept[place]) if isinstance(kept, tuple) else _content(kept)
    values = ", ".join(f"{name} = {value}" for name, value in read.items())
    text = show_condition(part, registers)
    return f"{text} ({values})" if values else text


def shown_memory(memory: Memory, registers: Sequence[Register], events: Sequence[Event]) -> tuple[tuple[str, str], ...]:
    """The registers that hold something: their names with what they mean, and their contents."""
    return tuple(
        (f"r{number}: {register.meaning}", _content(_as_time(content, register, events)))
        for number, (content, register) in enumerate(zip(memory, registers))
        if content is not None
    )


def _as_time(content: Content, register: Register, events: Sequence[Event]) -> Content:
    """The start of a window of time as a timestamp, where times are timestamps."""
    if isinstance(register.window, DurationWindow) and isinstance(content, tuple) and events[0].moment is not None:
        return tuple(_moment(value) for value in content)
    return content


def _moment(value: Value) -> Value:
    return _EPOCH + datetime.timedelta(microseconds=value) if isinstance(value, int) else value


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
