"""The answer to a question about all streams, the stream that proves it, and the limit of the search."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cerflow.automata.model.transducer import TYPE_LABEL
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import ComplexEvent
from cerflow.base.schema import ValueKind
from cerflow.theory.deciding.event_spaces import EventSpace


class Budget:
    """A number of steps that may still be taken: ``limits.DECISION_STEPS`` unless given.

    It does not depend on the machine.
    """

    def __init__(self, steps: int | None = None) -> None:
        self._steps = limits.DECISION_STEPS if steps is None else steps
        self._left = self._steps

    @property
    def exhausted(self) -> bool:
        """Whether more steps were taken than there were."""
        return self._left < 0

    def spend(self, steps: int = 1) -> None:
        """Take steps; raises `UnsupportedQueryError` once there are none left."""
        self._left -= steps
        if self._left < 0:
            raise UnsupportedQueryError(
                f"too large to decide: the automata need more than {self._steps:,} steps",
                hint="Compare smaller formulas, use smaller windows, or give a greater limit.",
            )


@dataclass(frozen=True)
class Witness:
    """A match that one formula has and the other lacks: (``detected_at``, ``complex_event``) in ``events``.

    ``side`` is 0 if the first formula has it, 1 if the second. ``columns`` are the Arrow types of the events.
    """

    events: tuple[Mapping[str, Any], ...]
    columns: pa.Schema
    complex_event: ComplexEvent
    side: int

    @property
    def detected_at(self) -> int:
        """The position of the last event."""
        return len(self.events) - 1


@dataclass(frozen=True)
class Answer:
    """Whether there is a witness (None if that is not known, for a ``reason``), and one of the shortest."""

    exists: bool | None
    witness: Witness | None = None
    reason: str | None = None


#: Whether one side has a witness by definition, and the other lacks it.
Replay = Callable[[Witness], bool]


def witness_of(
    rows: Sequence[Mapping[str, Any]], labels: Sequence[frozenset[str]], side: int, event_space: EventSpace
) -> Witness:
    """The witness with these values, by column, and these labels of its events."""
    columns: dict[str, tuple[pa.Field, Sequence[Any]]] = {}
    read = sorted(map(event_space.column, event_space.kinds))
    names = dict.fromkeys((event_space.type, event_space.stream, event_space.time, *read))
    for name in (name for name in names if name is not None):
        kind, values = _column(name, [row.get(name) for row in rows], event_space)
        required = name in event_space.required
        if required:
            values = [_some(kind) if v is None else v for v in values]
        columns[name] = pa.field(name, kind, nullable=not required), values
    events = tuple({name: values[k] for name, (_, values) in columns.items()} for k in range(len(rows)))
    complex_event = frozenset(
        (str(row.get(event_space.type)) if label == TYPE_LABEL else label, k)
        for k, (row, own) in enumerate(zip(rows, labels))
        for label in own
    )
    return Witness(events, pa.schema([field for field, _ in columns.values()]), complex_event, side)


def _some(kind: pa.DataType) -> Any:
    """A value of a type, where any will do."""
    return pa.array(["" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else 0]).cast(kind)[0].as_py()


_COLUMNS = {
    ValueKind.FLOAT: pa.float64(),
    ValueKind.INTEGER: pa.int64(),
    ValueKind.BOOLEAN: pa.bool_(),
    ValueKind.TIMESTAMP: pa.timestamp("us", "UTC"),
    ValueKind.DURATION: pa.duration("us"),
}


def _column(name: str, values: Sequence[Any], event_space: EventSpace) -> tuple[pa.DataType, Sequence[Any]]:
    if name == event_space.time:
        # Events come one after the other.
        values = range(len(values))
        if pa.types.is_temporal(event_space.columns[name]):
            start = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
            values = [start + datetime.timedelta(days=k) for k in values]
    if name in event_space.columns:
        return event_space.columns[name], values
    if name in (event_space.type, event_space.stream):
        return pa.string(), values
    kind = event_space.kinds[name]
    compared = kind is ValueKind.FLOAT and name not in event_space.computed
    if compared and all(v is None or (v.is_integer() and abs(v) < 2**53) for v in values):
        # Whole numbers read better as such, and where they are only compared they are the same.
        return pa.int64(), [None if v is None else int(v) for v in values]
    return _COLUMNS.get(kind, pa.string()), values
