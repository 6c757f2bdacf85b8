"""The forms that events can have: the kind of every attribute, and whether streams have names.

A column has one kind throughout. Without a schema it is read off the conditions; where these leave a choice that
matters, each combination is an event space of its own, and a property of all streams must hold in every event space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice, product

import pyarrow as pa

from cerflow import limits
from cerflow.conditions.contradiction import is_moment
from cerflow.conditions.guards import StreamTest, TypeTest
from cerflow.errors import QueryError, UnsupportedQueryError
from cerflow.language import condition as c
from cerflow.language.formula import AnyEvent, AttributeWindow, EventType
from cerflow.language.node import Node, fold, walk
from cerflow.schema import Schema, ValueKind

#: From here on integers are rounded where they meet floats, so that it matters which of both an attribute holds.
_EXACT = 2**53 - 2**10
#: An attribute, the kind of another expression, or None for what goes with everything.
_Meaning = c.Attribute | ValueKind | None


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


def event_spaces_of(roots: Iterable[Node], schema: Schema | None = None) -> list[EventSpace]:
    """The event spaces that formulas or conditions can be evaluated in.

    Raises `QueryError` if an attribute is used as no kind of value allows, `UnsupportedQueryError` if there
    are too many event spaces.
    """
    reading = _KindDemands()
    named = False
    for root in roots:
        for current in walk(root):
            named |= isinstance(current, EventType | AnyEvent | TypeTest | StreamTest) and current.stream is not None
            if isinstance(current, c.Condition):
                reading.condition(current)
            elif isinstance(current, c.Attribute):
                reading.find(current.name)
            elif isinstance(current, AttributeWindow):
                reading.demand(c.Attribute(None, current.attribute), ValueKind.FLOAT, current)
    computed = frozenset(reading.computed)
    if schema is not None:
        kinds = {name: schema.kind(name if schema.has(name) else schema.type) for name in reading.above}
        columns = {f.name: f.type for f in schema.columns}
        required = frozenset(f.name for f in schema.columns if not f.nullable)
        return [EventSpace(kinds, schema.type, schema.stream, schema.time, columns, computed, required)]
    for name, is_string in (("type", True), ("stream", named)):
        if is_string and name in reading.above:
            reading.demand(c.Attribute(None, name), ValueKind.STRING, c.Attribute(None, name))
    names = sorted(reading.above)
    choices = [reading.kinds(name) for name in names]
    groups = [reading.find(name) for name in names]
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
        textual: dict[str, ValueKind] = {}
        if all(
            kind not in (ValueKind.STRING, ValueKind.TIMESTAMP) or textual.setdefault(group, kind) is kind
            for group, kind in zip(groups, chosen)
        ):
            yield chosen


class _KindDemands:
    """The comparisons of attributes in conditions: with one another, and with values of a kind.

    A demand is FLOAT for a number of either kind, STRING, BOOLEAN, or TIMESTAMP for a literal that may be read as a
    string or as a moment.
    """

    def __init__(self) -> None:
        self.above: dict[str, str] = {}
        self.computed: set[str] = set()
        self._demands: dict[str, dict[ValueKind, Node]] = {}
        self._large: set[str] = set()
        self._known: set[c.Condition] = set()

    def find(self, name: str) -> str:
        """The attribute that stands for all that are compared with this one."""
        self.above.setdefault(name, name)
        while self.above[name] != name:
            name = self.above[name]
        return name

    def kinds(self, name: str) -> list[ValueKind]:
        """The kinds that an attribute may have, as far as that makes a difference."""
        group = [other for other in self.above if self.find(other) == self.find(name)]
        demanded: dict[ValueKind, Node] = {}
        for other in group:
            for kind, place in self._demands.get(other, {}).items():
                demanded.setdefault(kind, place)
        words = {_NAMES[kind]: place for kind, place in demanded.items()}
        if len(words) > 1:
            (first, _), (second, place) = list(words.items())[:2]
            raise QueryError(
                f"attribute '{name}' is a {second} here and a {first} elsewhere, so no events fit",
                span=place.span,
            )
        if ValueKind.TIMESTAMP in demanded and ValueKind.STRING not in demanded:
            return [ValueKind.STRING, ValueKind.TIMESTAMP]
        for kind in (ValueKind.STRING, ValueKind.BOOLEAN, ValueKind.DURATION):
            if kind in demanded:
                return [kind]
        # An attribute that is never compared with a literal can be of any kind; numbers do for all.
        return [ValueKind.FLOAT, ValueKind.INTEGER] if self._large.intersection(group) else [ValueKind.FLOAT]

    def demand(self, what: _Meaning, kind: ValueKind, place: Node) -> None:
        """Demand a kind of an attribute (None: of nothing); raises `QueryError` for an expression of another kind."""
        if isinstance(what, c.Attribute):
            self._demands.setdefault(self.find(what.name), {}).setdefault(kind, place)
        elif what is not None and _NAMES[what] != _NAMES[kind]:
            raise QueryError(f"this is a {_NAMES[what]}, but a {_NAMES[kind]} is needed", span=place.span)

    def condition(self, condition: c.Condition) -> None:
        """Collect the comparisons of one condition."""
        if condition in self._known:
            return
        self._known.add(condition)
        match condition:
            case c.Comparison() | c.In() | c.Between():
                for comparison in c.comparisons(condition):
                    self._compared(comparison.left, comparison.right)
            case c.Like() | c.Regexp():
                self.demand(fold(condition.operand, self._meaning), ValueKind.STRING, condition.operand)

    def _compared(self, left: c.Expression, right: c.Expression) -> None:
        first, second = fold(left, self._meaning), fold(right, self._meaning)
        if isinstance(first, ValueKind):
            self.demand(second, first, right)
        elif isinstance(second, ValueKind):
            self.demand(first, second, left)
        elif first is not None and second is not None:
            # Demands stay with their attribute; `kinds` joins those of a group.
            self.above[self.find(first.name)] = self.find(second.name)
        nodes = [*walk(left), *walk(right)]
        if any(isinstance(n, c.Literal) and _is_large(n.value) for n in nodes):
            self._large.update(n.name for n in nodes if isinstance(n, c.Attribute))

    def _meaning(self, current: Node, below: Sequence[_Meaning]) -> _Meaning:
        """The attribute that an expression is, else its kind, or None if it goes with everything."""
        needed: ValueKind | None = ValueKind.FLOAT
        gives: ValueKind | None = ValueKind.FLOAT
        match current:
            case c.Attribute():
                self.find(current.name)
                return current
            case c.Literal():
                return _kind_of_literal(current.value)
            case c.Function("position") | c.Aggregate(name="count" | "count distinct"):
                return ValueKind.FLOAT
            case c.Aggregate(name="sum" | "avg" | "stddev"):
                pass
            case c.Aggregate():
                return below[0]
            case c.Function("time"):
                return None
            case c.TruthValue():
                return ValueKind.BOOLEAN
            case c.Function("lower" | "upper" | "substr" | "||"):
                # The numbers of substr are integers, which hardly ever are attributes.
                needed = gives = ValueKind.STRING
                below = below[:1] if current.name == "substr" else below
            case c.Function("length"):
                needed = ValueKind.STRING
            case c.Function("coalesce") | c.If():
                needed = gives = None
            case c.Function(name) if name in c.DATE_PARTS:
                needed = None
            case c.Arithmetic(sign) if _may_be_time(sign, below):
                needed = gives = None
            case _ if not isinstance(current, c.Arithmetic | c.Negative | c.Function):
                return None
        if isinstance(current, c.Negative) or (
            isinstance(current, c.Function | c.Aggregate) and current.name in _OF_TIME
        ):
            if isinstance(below[0], c.Attribute):
                self.computed.add(below[0].name)
            if not isinstance(below[0], ValueKind) or below[0] is ValueKind.DURATION:
                return below[0]
        for child, what in zip(current.children, below):
            if needed is not None:
                self.demand(what, needed, child)
            if isinstance(what, c.Attribute):
                self.computed.add(what.name)
        return gives


#: What keeps the kind of its argument, which may be a duration.
_OF_TIME = ("abs", "sum", "avg")


def _may_be_time(sign: str, below: Sequence[_Meaning]) -> bool:
    """Whether operands may be timestamps or durations."""
    known = sum(isinstance(kind, ValueKind) for kind in below)
    times = any(kind in (ValueKind.DURATION, ValueKind.TIMESTAMP) for kind in below)
    return times or (sign in ("+", "-") and known == 0) or (sign in ("*", "/") and known < len(below))


def _kind_of_literal(value: object) -> ValueKind | None:
    match value:
        case timedelta():
            return ValueKind.DURATION
        case bool():
            return ValueKind.BOOLEAN
        case int() | float():
            return ValueKind.FLOAT
        case str():
            return ValueKind.TIMESTAMP if is_moment(value) else ValueKind.STRING
    return None


def _is_large(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) >= _EXACT


_NAMES = {
    ValueKind.FLOAT: "number",
    ValueKind.STRING: "string",
    ValueKind.TIMESTAMP: "string",
    ValueKind.BOOLEAN: "boolean",
    ValueKind.DURATION: "duration",
}
