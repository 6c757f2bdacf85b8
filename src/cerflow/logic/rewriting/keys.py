"""Keys that follow from equalities: ``a.user = b.user`` says that both events of a match have one user.

If so of all events that a formula reads, each user's events are a stream of their own, as with PARTITION BY. Then
equalities hold by themselves, and a negated part concerns only partial matches of its own key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, product

import pyarrow as pa

from cerflow.base import limits
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language.node import Node, fold_only, walk
from cerflow.language.select import Consumption, CountItem, ExpressionItem, LabelItem, ProjectionKind, Select
from cerflow.logic.analysis.scopes import Labels, condition_labels, occurrences, of_operands, resolve
from cerflow.logic.conditions.connectives import conjunction, conjuncts, conjuncts_opened
from cerflow.logic.rewriting.rebuild import transformed

#: What counts events of the whole stream, or reads them in a notation of its own.
_OF_THE_STREAM = (f.StrictSequence, f.StrictIteration, f.Start, f.Embedded)
#: The start of the names of columns that the input does not have, see `total_key`.
_VALUE, _MISSING = "\0value of ", "\0missing "


@dataclass(frozen=True)
class ImpliedKey:
    """An attribute on which all events of a match agree; ``total`` says that a match of one event may have none."""

    attribute: str
    total: bool


def total_key(attribute: str) -> tuple[str, str]:
    """Two columns that are not null, and together tell the values of an attribute and null apart."""
    return _VALUE + attribute, _MISSING + attribute


def key_source(column: str) -> str:
    """The attribute from which a column of `total_key` is made; any other column is its own."""
    return column.removeprefix(_VALUE).removeprefix(_MISSING)


def partitioned_by(select: Select, keys: Sequence[ImpliedKey]) -> Select:
    """The query with these keys beside its own; its conditions stay, so events of several keys may be read together."""
    return replace(select, partition=(*select.partition, *((key.attribute,) for key in keys)), key_spans=())


def with_implied_keys(select: Select, schema: Schema) -> Select:
    """The query divided by the keys that follow from its equalities, without these; itself if that saves nothing.

    Only queries with a negated part are divided. Others find runs by the values in their registers and join events by
    columns that must be equal; keys would save some of them time, but cost others, such as NEXT without a window.
    """
    if not any(isinstance(node, f.Exclusion) for node in walk(select.formula)):
        return select
    given = {key[0] for key in select.partition if len(key) == 1}
    keys = {key.attribute: key.total and key.attribute not in given for key in implied_keys(select, schema)}
    if not keys:
        return select
    scopes = resolve(select.formula)

    def change(index: int, current: Node) -> Node:
        if not isinstance(current, f.Filter):
            return current
        own, outer = scopes.labels[index], scopes.outer[index]
        parts = [_within_key(part, keys, own.assigned, own.bound.union(outer)) for part in conjuncts(current.condition)]
        kept = [part for part in parts if part is not None]
        return f.Filter(current.operand, conjunction(kept), span=current.span) if kept else current.operand

    columns = [total_key(name) if total else (name,) for name, total in keys.items() if name not in given]
    partition = (*select.partition, *((column,) for column in chain.from_iterable(columns)))
    return replace(select, formula=transformed(select.formula, change), partition=partition, key_spans=())


def keys_added(select: Select, divided: Select) -> list[str]:
    """The attributes by which `with_implied_keys` has ``divided`` a query."""
    added = divided.partition[len(select.partition) :]
    return list(dict.fromkeys(key_source(column) for key in added for column in key))


def _within_key(part: c.Condition, keys: dict[str, bool], own: Set[str], single: Set[str]) -> c.Condition | None:
    """What a part of a filter asks of events that agree on some ``keys``; None for nothing.

    The filtered formula assigns the labels ``own``, and exactly one event has each of those that are ``single``.
    """
    equal = _equality(part)
    if equal is None or equal.attribute not in keys:
        return part
    if not keys[equal.attribute]:
        return None
    # The value of one side is that of the other; it is asked only where both have events.
    for one, other in ((equal.x, equal.y), (equal.y, equal.x)):
        if one in own and other in single:
            return c.IsNull(c.Attribute(one, equal.attribute), negated=True)
    return part


@dataclass(frozen=True)
class _Equality:
    """``x.attribute = y.attribute``."""

    x: str
    y: str
    attribute: str


def _equality(part: c.Condition) -> _Equality | None:
    match part:
        case c.Comparison(Operator.EQ, c.Attribute(str(x), name), c.Attribute(str(y), other)):
            return _Equality(x, y, name) if name == other and x != y else None
    return None


# -- which attributes are keys ---------------------------------------------------------------------------------------


def implied_keys(select: Select, schema: Schema) -> list[ImpliedKey]:
    """The attributes by which the stream may be divided, since equalities connect all events that a match reads.

    Every match of a negated part must be connected likewise. There are none if anything depends on events of other
    keys: on their number, on which of them comes last before a deadline, or on how many matches there are.
    """
    filters = [node.condition for node in walk(select.formula) if isinstance(node, f.Filter)]
    equal = filter(None, (_equality(part) for condition in filters for part in conjuncts_opened(condition)))
    names = [name for name in dict.fromkeys(equality.attribute for equality in equal) if _serves(name, schema)]
    if not names or schema.forget is not None or not _divisible(select):
        return []
    places, scopes = occurrences(select.formula), resolve(select.formula)
    found = []
    for name in names:
        connected = _Connected(name, scopes.outer, scopes.labels)
        readings = of_operands(places, connected.visit)[max(places)]
        if readings and all(len(one) == 1 and not one[0].many for one in readings) and _apart(select, readings):
            found.append(ImpliedKey(name, total=not all(one[0].known for one in readings)))
    return found


def _serves(name: str, schema: Schema) -> bool:
    """Whether values of an attribute are one key exactly if they are equal, for every value but null."""
    if name not in schema.attributes or name == schema.type:
        return False
    kind, data_type = schema.kind(name), schema.columns.field(name).type
    whole = kind is ValueKind.INTEGER and pa.types.is_integer(data_type)
    return whole or kind in (ValueKind.STRING, ValueKind.BOOLEAN, ValueKind.TIMESTAMP)


def _divisible(select: Select) -> bool:
    """Whether nothing but the events of a match decides about it."""
    nodes = list(walk(select))
    for node in nodes:
        if isinstance(node, _OF_THE_STREAM) or (isinstance(node, f.Repetition) and node.strict):
            return False
        if isinstance(node, f.Window) and not isinstance(node, f.DurationWindow):
            return False
        if isinstance(node, f.Selection) and node.strategy in (f.Strategy.STRICT, f.Strategy.ANY):
            return False
    if (
        select.strategy is f.Strategy.STRICT
        or select.consume is not Consumption.NONE
        or c.calls(select, c.MATCH_NUMBER)
    ):
        return False
    if not any(isinstance(node, f.NotFollowedBy) for node in nodes):
        return True
    # One event may show deadlines of many keys, and its matches are then chosen or counted together.
    chosen = select.strategy is not f.Strategy.ALL or select.limit is not None
    chosen |= any(isinstance(node, f.Selection | CountItem) for node in nodes)
    return not (chosen or select.projection.kind is ProjectionKind.NONE) and not _meets_deadlines(select.formula)


def _meets_deadlines(formula: f.Formula) -> bool:
    """Whether it matters which event is the last one before a deadline, not only that it has passed."""

    def visit(_: int, current: f.Formula, below: Sequence[tuple[bool, bool]]) -> tuple[bool, bool]:
        waits, meets = (any(values) for values in zip(*below)) if below else (False, False)
        if isinstance(current, f.NotFollowedBy | f.Conjunction):
            meets |= waits
        elif isinstance(current, f.Exclusion):
            meets |= below[1][0]
        return waits or isinstance(current, f.NotFollowedBy), meets

    return fold_only(formula, f.Formula, visit)[1]


def _apart(select: Select, readings: Iterable[_Reading]) -> bool:
    """Whether matches of different keys stay different as they are reported, if an event may detect both."""
    items = select.projection.items
    listed = {item.label for item in items if isinstance(item, LabelItem)}
    waits = any(isinstance(node, f.NotFollowedBy) for node in walk(select.formula))
    if not waits or not listed:
        return True
    computed = [item.expression for item in items if isinstance(item, ExpressionItem)]
    kept = listed.union(*map(condition_labels, computed))
    return all(not kept.isdisjoint(events.labels) for one in readings for events in one)


# -- which events agree ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Agreeing:
    """Events of a match that agree on an attribute.

    Each of ``labels`` is one of some of them, and each of ``outside`` a label of an event around the formula that
    agrees with them, with the occurrence that binds it. An iteration reads ``many`` such groups. Their value is
    ``known`` not to be null.
    """

    labels: frozenset[str]
    outside: frozenset[tuple[int, str]] = frozenset()
    many: bool = False
    known: bool = False


#: The groups of events of some matches of a formula. All events of a match are in one of them.
_Reading = tuple[_Agreeing, ...]
#: Those of all matches of a formula; none if it is not known which events agree.
_Readings = tuple[_Reading, ...]


@dataclass(frozen=True)
class _Connected:
    """Finds which events equalities on an attribute connect; the rest is as in `Scopes`."""

    attribute: str
    outer: dict[int, dict[str, int]]
    labels: dict[int, Labels]

    def visit(self, index: int, current: f.Formula, below: Sequence[_Readings]) -> _Readings:
        """The groups of events of a formula, from those of its operands."""
        found = self._readings(index, current, below) if all(below) else ()
        if not found:
            return ()
        if max(len(found), *map(len, found)) > limits.AGREEING:
            return ()
        found = tuple(self._bound(index, reading) for reading in found)
        return tuple(dict.fromkeys(found)) if len(found) > 1 else found

    def _readings(self, index: int, current: f.Formula, below: Sequence[_Readings]) -> _Readings:
        match current:
            case f.EventType(name):
                return ((_Agreeing(frozenset([name])),),)
            case f.SingleEvent():
                return ((_Agreeing(frozenset([f.UNNAMED])),),)
            case f.As(_, label):
                return _renamed(below[0], lambda labels: labels | {label} if labels else labels)
            case f.Rename(_, old, new):
                return _renamed(below[0], lambda labels: frozenset(new if name == old else name for name in labels))
            case f.Project(kept):
                return _renamed(below[0], lambda labels: labels.intersection(kept))
            case f.Filter(_, condition):
                asked = conjuncts_opened(condition)
                return tuple(self._filtered(index, asked, reading) for reading in below[0])
            case f.Disjunction():
                return below[0] + below[1]
            case f.Combination():
                return tuple(one + other for one, other in product(*below))
            case f.Repeating(times=(least, most)):
                repeated = _once_or_more(below[0]) if most > 1 else below[0]
                return ((), *repeated) if repeated and least == 0 else repeated
            case f.Exclusion():
                tied = all(events.outside for reading in below[1] for events in reading)
                return below[0] if tied else ()
            case f.Selection():
                # It compares the matches that end with the same event, so these must agree before it does.
                alike = all((len(one) == 1 and not one[0].many) or all(e.outside for e in one) for one in below[0])
                return below[0] if alike else ()
        return below[0]

    def _filtered(self, index: int, asked: Sequence[c.Condition], reading: _Reading) -> _Reading:
        own, outer = self.labels[index].assigned, self.outer[index]
        for part in asked:
            equal = _equality(part)
            if equal is None or equal.attribute != self.attribute:
                reading = self._known(part, reading)
                continue
            for one, other in ((equal.x, equal.y), (equal.y, equal.x)):
                if one in own and other in outer:
                    tie = frozenset([(outer[other], other)])
                    reading = tuple(replace(e, outside=e.outside | tie) if one in e.labels else e for e in reading)
            pair = {equal.x, equal.y}
            if all(any(label in events.labels for events in reading) for label in pair):
                reading = _joined(reading, pair)
        return reading

    def _known(self, part: c.Condition, reading: _Reading) -> _Reading:
        """The groups after a condition that does not hold of events without a value."""
        match part:
            case c.IsNull(c.Attribute(str(label), self.attribute), True):
                pass
            case c.Comparison(_, c.Attribute(str(label), self.attribute), c.Literal()):
                pass
            case _:
                return reading
        return tuple(replace(events, known=True) if label in events.labels else events for events in reading)

    def _bound(self, index: int, reading: _Reading) -> _Reading:
        """The groups of a formula whose labels are read inside it."""
        for label in sorted({label for events in reading for place, label in events.outside if place == index}):
            tie = index, label
            # The label is bound, so one event has it.
            if any(label in events.labels for events in reading):
                reading = _joined(reading, {label}, tie)
            reading = tuple(replace(events, outside=events.outside - {tie}) for events in reading)
        return reading


def _renamed(readings: _Readings, change: Callable[[frozenset[str]], frozenset[str]]) -> _Readings:
    return tuple(tuple(replace(events, labels=change(events.labels)) for events in one) for one in readings)


def _once_or_more(readings: _Readings) -> _Readings:
    """The groups of an iteration, whose parts may each be read in another way."""
    if len(readings) == 1:
        return (tuple(replace(events, many=True) for events in readings[0]),)
    if any(len(one) != 1 for one in readings):
        return ()
    groups = [one[0] for one in readings]
    labels = frozenset.intersection(*(events.labels for events in groups))
    outside = frozenset.intersection(*(events.outside for events in groups))
    return ((_Agreeing(labels, outside, many=True, known=all(events.known for events in groups)),),)


def _joined(reading: _Reading, labels: Set[str], tie: tuple[int, str] | None = None) -> _Reading:
    """The groups with one in place of those that have some of the ``labels``, or the ``tie`` to an event outside."""
    some = [events for events in reading if tie in events.outside or not labels.isdisjoint(events.labels)]
    own = frozenset[str]().union(*(events.labels for events in some))
    outside = frozenset[tuple[int, str]]().union(*(events.outside for events in some))
    return (_Agreeing(own, outside, known=True), *(events for events in reading if events not in some))
