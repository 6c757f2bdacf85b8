"""The answer to a question about all streams, the stream that proves it, and the limit of the search.

Streams are searched in *event spaces*, the forms that events can have: the kind of every attribute, and whether streams
have names. A column has one kind throughout. Without a schema it is read off the conditions; where these leave a choice
that matters, each combination is an event space of its own, and a property of all streams must hold in each.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import pyarrow as pa

from cerflow.automata.model.transducer import TYPE_LABEL, Transducer
from cerflow.base import limits
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.base.events import ComplexEvent
from cerflow.base.schema import Schema, ValueKind
from cerflow.language import condition as c
from cerflow.language.formula import AnyEvent, EventType
from cerflow.language.node import Node, walk
from cerflow.logic.analysis.columns import KIND_WORDS, KindDemands
from cerflow.logic.conditions.guards import StreamTest, TypeTest


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


#: From here on integers are rounded where they meet floats, so that it matters which of both an attribute holds.
_EXACT = 2**53 - 2**10


@dataclass(frozen=True)
class EventSpace:
    """One combination of kinds of the columns.

    ``kinds`` gives the kind of every attribute that is read, ``columns`` the types where a schema names them. ``type``
    is the column with the event's type, ``stream`` the one with the stream's name (None: the streams have no names),
    ``time`` that with the time, if known; ``computed`` are attributes that are computed with, ``required`` columns that
    are never null.
    """

    kinds: Mapping[str, ValueKind]
    type: str = "type"
    stream: str | None = None
    time: str | None = None
    columns: Mapping[str, pa.DataType] = field(default_factory=dict)
    computed: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()

    def column(self, attribute: str) -> str:
        """The column that an attribute reads: ``type`` is the event's type unless a column is called so."""
        return self.type if attribute == "type" and "type" not in self.columns else attribute


def expressions_of(transducer: Transducer) -> list[Node]:
    """The conditions and expressions of all transitions."""
    return [tree for t in transducer.transitions for tree in (t.test, *t.trees)]


def event_spaces_of(roots: Iterable[Node], schema: Schema | None = None) -> list[EventSpace]:
    """The event spaces that formulas or conditions can be evaluated in.

    Raises `QueryError` if an attribute is used as no kind of value allows, `UnsupportedQueryError` if there
    are too many event spaces.
    """
    trees = list(roots)
    demands = KindDemands(durations=True)
    for tree in trees:
        demands.read(tree)
    if demands.faults:
        raise demands.faults[0]
    sources = (n for tree in trees for n in walk(tree) if isinstance(n, EventType | AnyEvent | TypeTest | StreamTest))
    named = any(source.stream is not None for source in sources)
    computed = frozenset(demands.computed)
    if schema is not None:
        kinds = {name: schema.kind(name if schema.has(name) else schema.type) for name in demands.names}
        columns = {f.name: f.type for f in schema.columns}
        required = frozenset(f.name for f in schema.columns if not f.nullable)
        return [EventSpace(kinds, schema.type, schema.stream, schema.time, columns, computed, required)]
    names = demands.names
    for name, is_string in (("type", True), ("stream", named)):
        if is_string and name in names:
            demands.demand(c.Attribute(None, name), ValueKind.STRING, c.Attribute(None, name))
    large = {demands.find(name) for tree in trees for name in _beside_large_numbers(tree)}
    choices = [_kinds(name, demands.of(name), demands.find(name) in large) for name in names]
    groups = list(map(demands.find, names))
    streams: list[str | None] = [None, "stream"] if named else [None]
    found = [
        EventSpace(dict(zip(names, chosen)), stream=stream, computed=computed)
        for chosen in islice(_choices(groups, choices), limits.EVENT_SPACES + 1)
        for stream in streams
    ]
    if len(found) > limits.EVENT_SPACES:
        raise UnsupportedQueryError(
            f"too large to decide: the attributes can have more than {limits.EVENT_SPACES} combinations of kinds",
            hint="Give a schema.",
        )
    return found


def _choices(groups: Sequence[str], choices: Sequence[Sequence[ValueKind]]) -> Iterable[tuple[ValueKind, ...]]:
    """One kind for each attribute; those that are compared with one another are moments or strings together."""
    for chosen in product(*choices):
        textual = {pair for pair in zip(groups, chosen) if pair[1] in (ValueKind.STRING, ValueKind.TIMESTAMP)}
        if len(textual) == len({group for group, _ in textual}):
            yield chosen


def _kinds(name: str, demanded: Mapping[ValueKind, Node], large: bool) -> list[ValueKind]:
    """The kinds that an attribute may have, as far as that makes a difference."""
    words = {KIND_WORDS[kind]: place for kind, place in demanded.items()}
    if len(words) > 1:
        (first, _), (second, place) = list(words.items())[:2]
        raise QueryError(
            f"attribute '{name}' is a {second} here and a {first} elsewhere, so no events fit", span=place.span
        )
    if ValueKind.TIMESTAMP in demanded and ValueKind.STRING not in demanded:
        return [ValueKind.STRING, ValueKind.TIMESTAMP]
    for kind in (ValueKind.STRING, ValueKind.BOOLEAN, ValueKind.DURATION):
        if kind in demanded:
            return [kind]
    # An attribute that is never compared with a literal can be of any kind; numbers do for all.
    return [ValueKind.FLOAT, ValueKind.INTEGER] if large else [ValueKind.FLOAT]


def _beside_large_numbers(tree: Node) -> Iterator[str]:
    for current in walk(tree):
        for comparison in c.comparisons(current):
            nodes = list(walk(comparison))
            numbers = [n.value for n in nodes if isinstance(n, c.Literal) and isinstance(n.value, int | float)]
            if any(abs(number) >= _EXACT for number in numbers):
                yield from (n.name for n in nodes if isinstance(n, c.Attribute))
