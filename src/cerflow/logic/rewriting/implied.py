"""What conditions on times imply: other conditions, and windows.

``abs(time(a) - time(b)) <= w`` with ``WITHIN w`` would cost a register for each order in which a and b may come. The
known bounds on differences of times are edges of a graph over the labels. A condition follows from the others if a path
is at most as long as it allows (simple temporal networks: Dechter, Meiri and Pearl 1991).

``FILTER b.t - a.t < 5 MINUTES`` bounds a match as ``WITHIN 5 MINUTES`` does if every match begins with an event of
label a and ends with one of label b, and ``position(b) - position(a) < 9`` as ``WITHIN 9 EVENTS``. Then partial matches
are forgotten when the window is over, and streams can be divided by time.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import permutations, product
from math import floor

import pyarrow as pa

from cerflow.base import limits
from cerflow.base.operators import MIRRORED, Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language.node import Node, fold, walk
from cerflow.language.select import Select
from cerflow.logic.analysis.scopes import Labels, handed_down, occurrences, of_operands, resolve
from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.logic.rewriting.rebuild import transformed

#: A bound on a difference of times in microseconds, and whether the difference may equal it; lesser ones are tighter.
_Bound = tuple[Fraction, bool]
TimeEdges = dict[tuple[str, str], _Bound]
_NO_TIME = Fraction(0), True
_FARTHEST = 2**63

#: The labels that the first event of every complex event has, and those of the last one.
_Ends = tuple[frozenset[str], frozenset[str]]
_NO_ENDS: _Ends = frozenset(), frozenset()
#: A schema whose time column no attribute names.
_UNKNOWN = Schema(pa.schema({"type": pa.string(), "\0time": pa.int64()}), time="\0time")


class _TimeComparison(Enum):
    """How a condition on two times is written; times to which something is added may leave 64 bits by themselves."""

    PLAIN = "x < y"
    SUBTRACTED = "x - y < size"
    MOVED = "x < y + size"


@dataclass(frozen=True)
class Difference:
    """A condition on t(x) - t(y): it says what ``edges`` do."""

    x: str
    y: str
    edges: TimeEdges
    form: _TimeComparison


def without_implied_times(select: Select, schema: Schema) -> Select:
    """The query without conditions on differences of times that hold wherever its other parts do; itself if none do.

    Windows are windows of time already where they can be. Float times are left alone, since their differences are
    rounded.
    """
    if schema.time is None or schema.kind(schema.time) not in (ValueKind.INTEGER, ValueKind.TIMESTAMP):
        return select
    known: dict[c.Condition, Difference] = {}
    for filtered in walk(select.formula):
        if isinstance(filtered, f.Filter):
            for part in conjuncts(filtered.condition):
                found = _difference_of(part, schema)
                if found is not None and found.form is not _TimeComparison.MOVED:
                    known[part] = found
    if not known:
        return select
    labels = resolve(select.formula).labels
    windows = _windows(select)
    orders = label_orders(select.formula, labels, {label for d in known.values() for label in (d.x, d.y)})

    def change(index: int, current: Node) -> Node:
        if not isinstance(current, f.Filter):
            return current
        kept = _needed(conjuncts(current.condition), known, labels[index], windows.get(index), orders[index], schema)
        if kept is None:
            return current
        return f.Filter(current.operand, conjunction(kept), span=current.span) if kept else current.operand

    formula = transformed(select.formula, change)
    return select if formula == select.formula else replace(select, formula=formula)


def _needed(
    parts: list[c.Condition],
    known: dict[c.Condition, Difference],
    labels: Labels,
    window: int | None,
    order: frozenset[tuple[str, str]],
    schema: Schema,
) -> list[c.Condition] | None:
    """The parts of a filter that others do not imply; None if all are needed."""
    own = {p: d for p in parts if (d := known.get(p)) is not None and {d.x, d.y} <= labels.assigned}
    names = sorted({label for d in own.values() for label in (d.x, d.y)})
    if not own:
        return None
    given: TimeEdges = {pair: _NO_TIME for pair in order if set(pair) <= set(names)}
    if window is not None:
        # Nanoseconds are rounded down before they are subtracted, so a rounded difference may equal the window.
        widest = Fraction(window), in_nanoseconds(schema)
        given |= {pair: min(given.get(pair, widest), widest) for pair in permutations(names, 2)}
    kept = dict(own)
    for part in reversed(own):
        edges = dict(given)
        for other, difference in kept.items():
            if other != part:
                for pair, bound in difference.edges.items():
                    edges[pair] = min(edges.get(pair, bound), bound)
        if _implied(own[part], edges, names, labels.bound, schema):
            del kept[part]
    return None if len(kept) == len(own) else [p for p in parts if p not in own or p in kept]


def _implied(asked: Difference, edges: TimeEdges, names: list[str], single: frozenset[str], schema: Schema) -> bool:
    shortest = dict(edges)
    # A label without an event bounds nothing, so paths use labels that have one.
    stops = [n for n in names if n in single] if len(names) <= limits.TIMES_COMPARED else []
    for via, (x, y) in product(stops, list(permutations(names, 2))):
        first, second = shortest.get((x, via)), shortest.get((via, y))
        if first is not None and second is not None:
            bound = first[0] + second[0], first[1] and second[1]
            shortest[x, y] = min(shortest.get((x, y), bound), bound)
    if asked.form is _TimeComparison.SUBTRACTED and schema.counts_time:
        # A difference beyond 64 bits is null, and a comparison with null does not hold.
        farthest = _FARTHEST * schema.microseconds
        both = (asked.x, asked.y), (asked.y, asked.x)
        if any(pair not in shortest or abs(shortest[pair][0]) >= farthest for pair in both):
            return False
    elif asked.form is _TimeComparison.PLAIN and in_nanoseconds(schema):
        # Other bounds are on whole microseconds.
        return False
    return all(pair in shortest and shortest[pair] <= bound for pair, bound in asked.edges.items())


def in_nanoseconds(schema: Schema) -> bool:
    """Whether the time column counts nanoseconds, as timestamps."""
    assert schema.time is not None
    kind = schema.columns.field(schema.time).type
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


def _difference_of(condition: c.Condition, schema: Schema | None) -> Difference | None:
    """What a condition says of the difference of the times of two labels; None for all other conditions.

    Without a schema it is that of their positions.
    """
    if not isinstance(condition, c.Comparison):
        return None
    left, operator, right = condition.left, condition.operator, condition.right
    if isinstance(right, c.Function) and right.name == "abs":
        left, operator, right = right, MIRRORED[operator], left
    around = isinstance(left, c.Function) and left.name == "abs"
    if around:
        left = left.arguments[0]  # type: ignore[attr-defined]
    one, other = (fold(side, lambda current, below: _summed(current, below, schema)) for side in (left, right))
    if one is None or other is None:
        return None
    labels = Counter(one[0])
    labels.subtract(other[0])
    if sorted(sign for sign in labels.values() if sign) != [-1, 1]:
        return None
    x, y = max(labels, key=labels.__getitem__), min(labels, key=labels.__getitem__)
    sums = sum(isinstance(n, c.Arithmetic) for n in walk(condition))
    form = _TimeComparison.PLAIN
    if sums:
        form = _TimeComparison.SUBTRACTED if sums == 1 and not (one[0] and other[0]) else _TimeComparison.MOVED
    bound = other[1] - one[1]
    edges: TimeEdges = {}
    if operator in (Operator.LT, Operator.LE, Operator.EQ):
        edges[x, y] = bound, operator is not Operator.LT
    if operator in (Operator.GT, Operator.GE, Operator.EQ):
        edges[y, x] = -bound, operator is not Operator.GT
    if around:
        if form is not _TimeComparison.SUBTRACTED or operator not in (Operator.LT, Operator.LE):
            return None
        edges[y, x] = edges[x, y]
    return Difference(x, y, edges, form) if edges else None


#: A sum: how often the time or the position of each label is in it, and a number. None for what is none.
_Sum = tuple[Mapping[str, int], Fraction] | None


def _summed(current: Node, below: Sequence[_Sum], schema: Schema | None) -> _Sum:
    """An expression as a sum, from those of its parts."""
    found = _position_of(current) if schema is None else _time_of(current, schema)
    match current, *below:
        case c.Negative(), (labels, size) if not labels:
            return {}, -size
        case c.Arithmetic("+" | "-" as sign), (one, size), (other, more):
            labels = Counter(one)
            (labels.update if sign == "+" else labels.subtract)(other)
            return labels, size + more if sign == "+" else size - more
    return found


def _position_of(current: Node) -> _Sum:
    match current:
        case c.Function("position", (c.LabelReference(str(label)),)):
            return {label: 1}, Fraction(0)
        case c.Literal(int() as number) if type(number) is int:
            return {}, Fraction(number)
    return None


def _time_of(current: Node, schema: Schema) -> _Sum:
    """A time, or a duration in microseconds; numbers count what a numeric time column counts."""
    match current:
        case c.Function("time", (c.LabelReference(str(label)),)):
            return {label: 1}, Fraction(0)
        case c.Attribute(str(label), name) if name == schema.time:
            return {label: 1}, Fraction(0)
        case c.Literal(datetime.timedelta() as duration):
            size = Fraction(duration // datetime.timedelta(microseconds=1))
            whole = not schema.counts_time or (size / schema.microseconds).denominator == 1
            return ({}, size) if whole else None
        case c.Literal(int() as number) if schema.counts_time and type(number) is int:
            return {}, number * schema.microseconds
    return None


def _windows(select: Select) -> dict[int, int | None]:
    """For each formula the microseconds of the least window of time around it, by its occurrence; None without one."""

    def enter(_: int, current: f.Formula, around: int | None) -> int | None:
        # Strategies compare complex events that the window would leave out.
        kept = around if current.whole else None
        if isinstance(current, f.Within) and isinstance(current.window, f.DurationWindow):
            return current.window.microseconds if kept is None else min(kept, current.window.microseconds)
        return kept

    whole = select.formula if select.window is None else f.Within(select.formula, select.window)
    return handed_down(whole, None, enter)


def label_orders(root: f.Formula, labels: dict[int, Labels], asked: set[str]) -> dict[int, frozenset[tuple[str, str]]]:
    """For each occurrence the pairs of labels of which all events of the first come before all of the second."""
    places = occurrences(root)

    def order(
        index: int, current: f.Formula, below: Sequence[frozenset[tuple[str, str]]]
    ) -> frozenset[tuple[str, str]]:
        if labels[index].wildcard or not below:
            return frozenset()
        if isinstance(current, f.Filter | f.Within | f.Selection | f.Start | f.Exclusion):
            return below[0]
        if not isinstance(current, f.Sequence | f.StrictSequence | f.Conjunction | f.Disjunction):
            return frozenset()
        names = [labels[side].assigned & asked for side in places[index].operands]
        either = below[0] | below[1]
        if isinstance(current, f.Conjunction):
            return either
        if isinstance(current, f.Disjunction):
            sides = [*zip(below, names)]
            return frozenset(p for p in either if all(p in found or not set(p) <= own for found, own in sides))
        twice = names[0] & names[1]
        inside = {pair for pair in either if not twice & set(pair)}
        return frozenset(inside | set(product(names[0] - twice, names[1] - twice)))

    return of_operands(places, order)


def with_windows_of_gaps(select: Select, schema: Schema | None) -> Select:
    """The query with windows around filters that bound the time from the first to the last event, or their positions.

    It is the query itself if there are none. Deadlines and float times are left alone, and positions beside other
    windows. Without a schema only ``time(a)`` is a time.
    """
    schema = schema or _UNKNOWN
    timed = schema.time is not None and schema.kind(schema.time) in (ValueKind.INTEGER, ValueKind.TIMESTAMP)
    nodes = list(walk(select.formula))
    alone = select.window is None and not any(isinstance(node, f.Within) for node in nodes)
    if not any(isinstance(node, f.Filter) for node in nodes) or any(isinstance(n, f.NotFollowedBy) for n in nodes):
        return select
    ends = of_operands(occurrences(select.formula), _ends)

    def change(index: int, current: Node) -> Node:
        match current:
            case f.Within(f.Within(operand, f.DurationWindow(inner)), f.DurationWindow(outer)):
                return f.Within(operand, f.DurationWindow(min(inner, outer)), span=current.span)
        if not isinstance(current, f.Filter) or is_gapless(current.operand):
            # Without gaps a partial match waits for the next event alone.
            return current
        if timed and (times := _extents(current.condition, *ends[index], schema)):
            return f.Within(current, f.DurationWindow(min(times)), span=current.span)
        if alone and (positions := _extents(current.condition, *ends[index], None)):
            return f.Within(current, f.CountWindow(min(positions)), span=current.span)
        return current

    formula, window = transformed(select.formula, change), select.window
    if isinstance(formula, f.Within) and formula.window not in (None, window) and isinstance(formula.operand, f.Filter):
        # One window around all costs less than two.
        if window is None:
            return replace(select, formula=formula.operand, window=formula.window)
        if isinstance(window, f.DurationWindow) and isinstance(formula.window, f.DurationWindow):
            least = min(window.microseconds, formula.window.microseconds)
            return replace(select, formula=formula.operand, window=f.DurationWindow(least, span=window.span))
    return select if formula == select.formula else replace(select, formula=formula)


def is_gapless(formula: f.Formula) -> bool:
    """True only if the events of every match are consecutive, and the last of them detects it."""
    return all(node.gapless for node in walk(formula) if isinstance(node, f.Formula))


def _ends(_: int, current: f.Formula, below: Sequence[_Ends]) -> _Ends:
    """The labels of the first and the last event of a formula, from those of its operands."""
    match current:
        case f.EventType():
            return frozenset({current.name}), frozenset({current.name})
        case f.SingleEvent() | f.All() | f.Project():
            # Projection may leave no event, or others.
            return _NO_ENDS
        case f.As():
            first, last = below[0]
            return first | {current.label}, last | {current.label}
        case f.Rename():
            first, last = (
                frozenset(current.new if label == current.old else label for label in labels) for labels in below[0]
            )
            return first, last
        case f.Join():
            return below[0][0], below[1][1]
        case f.Combination():
            return below[0][0] & below[1][0], below[0][1] & below[1][1]
        case f.Repetition(least=0):
            return _NO_ENDS
    # Other formulas begin and end as their first operand does.
    return below[0] if below else _NO_ENDS


def _extents(condition: c.Condition, first: frozenset[str], last: frozenset[str], schema: Schema | None) -> list[int]:
    """Windows in microseconds that parts of a condition imply, or in events without a schema."""
    found: list[int] = []
    for part in conjuncts(condition):
        difference = _difference_of(part, schema)
        for (x, y), (size, closed) in () if difference is None else difference.edges.items():
            least = floor(size) + (closed or size.denominator > 1) + (schema is not None and in_nanoseconds(schema))
            if x in last and y in first and least > 0:
                found.append(least)
    return found
