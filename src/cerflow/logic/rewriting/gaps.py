"""Windows that follow from gaps: ``FILTER b.t - a.t < 5 MINUTES`` bounds a match as ``WITHIN 5 MINUTES`` does.

That is so if every match begins with an event of label a and ends with one of label b. Then partial matches are
forgotten when the window is over, and streams can be divided by time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import floor

import pyarrow as pa

from cerflow.base.schema import Schema, ValueKind
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language.node import Node, fold_each, walk
from cerflow.language.select import Select
from cerflow.logic.conditions.connectives import conjuncts
from cerflow.logic.rewriting.implied import difference_of, in_nanoseconds
from cerflow.logic.rewriting.rebuild import transformed

#: The labels that the first event of every complex event has, and those of the last one.
_Ends = tuple[frozenset[str], frozenset[str]]
_NO_ENDS: _Ends = frozenset(), frozenset()
#: A schema whose time column no attribute names.
_UNKNOWN = Schema(pa.schema({"type": pa.string(), "\0time": pa.int64()}), time="\0time")


def with_windows_of_gaps(select: Select, schema: Schema | None) -> Select:
    """The query with windows of time around filters that bound the time from the first to the last event.

    It is the query itself if there are none. Deadlines and float times are left alone. Without a schema only
    ``time(a)`` is a time.
    """
    schema = schema or _UNKNOWN
    if schema.time is None or schema.kind(schema.time) not in (ValueKind.INTEGER, ValueKind.TIMESTAMP):
        return select
    nodes = list(walk(select.formula))
    if not any(isinstance(node, f.Filter) for node in nodes) or any(isinstance(n, f.NotFollowedBy) for n in nodes):
        return select
    ends = fold_each(select.formula, _ends)

    def change(index: int, current: Node) -> Node:
        match current:
            case f.Within(f.Within(operand, f.DurationWindow(inner)), f.DurationWindow(outer)):
                return f.Within(operand, f.DurationWindow(min(inner, outer)), span=current.span)
        if not isinstance(current, f.Filter) or is_gapless(current.operand):
            # Without gaps a partial match waits for the next event alone.
            return current
        least = min(_extents(current.condition, *ends[index], schema), default=None)
        return current if least is None else f.Within(current, f.DurationWindow(least), span=current.span)

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


def _ends(current: Node, below: Sequence[_Ends]) -> _Ends:
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
    return below[0] if isinstance(current, f.Formula) and below else _NO_ENDS


def _extents(condition: c.Condition, first: frozenset[str], last: frozenset[str], schema: Schema) -> list[int]:
    """Windows in microseconds that parts of a condition imply."""
    found: list[int] = []
    for part in conjuncts(condition):
        difference = difference_of(part, schema)
        for (x, y), (size, closed) in () if difference is None else difference.edges.items():
            least = floor(size) + (closed or size.denominator > 1) + in_nanoseconds(schema)
            if x in last and y in first and least > 0:
                found.append(least)
    return found
