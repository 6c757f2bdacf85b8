"""Computed columns: expressions over the events of each match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa

from cerflow.base.array_types import Floats, Ints, Mask
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, nan_as_null, numbers_of
from cerflow.base.operators import ORDERS, Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.binding import Call, WholeEvent, readable
from cerflow.engine.evaluate.predicate_answers import EventArgument, python_arguments
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.engine.evaluate.string_codes import ranks_of
from cerflow.engine.evaluate.vectors import TruthVector, Vector, compare_vectors, word
from cerflow.engine.events.store import StoredEvents, one_batch
from cerflow.engine.layout import NULL
from cerflow.engine.results.report import ARROW_TYPES, SELECTING, Report, selected_attribute
from cerflow.engine.results.taking import taken_or_null
from cerflow.engine.results.unfolded_events import UnfoldedEvents
from cerflow.language import condition as c
from cerflow.language.condition import COUNT_DISTINCT
from cerflow.language.node import Node, fold, walk, with_children
from cerflow.language.predicates.asking import Each, ask_of_set
from cerflow.language.predicates.registry import PredicateKind
from cerflow.language.printer import show
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions.evaluate import constant_value
from cerflow.logic.conditions.guards import bare
from cerflow.logic.conditions.register_values import WORD
from cerflow.logic.rewriting.times import as_microseconds

#: The flat name of the match number.
_NUMBER = "\0number"


class ComputedColumns:
    """The computed columns of some matches; ``numbers`` are the matches' numbers.

    Expressions are evaluated on one row per match, whose columns have flat names and are gathered on demand.
    """

    def __init__(self, report: Report, events: UnfoldedEvents, kept: StoredEvents, numbers: Ints) -> None:
        self.events = events
        self.kept = kept
        self.schema = report.events
        #: The column with the positions of events in the whole stream, unless matches have them.
        self.numbered = report.position
        self._predicates = report.predicates
        self._makers: dict[str, Callable[[], pa.Array]] = {}
        self._columns: dict[str, pa.Array] = {_NUMBER: array_of_numbers(numbers)} if report.numbers_matches else {}

    def column(self, expression: c.Expression, target: pa.DataType) -> pa.Array:
        """The value of an expression for each match; null where a label has no event.

        A label has at most one event in a match, except in aggregates, tests and predicates of sets.
        """
        column = self._attribute(expression)
        if column is not None:
            values = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column.cast(target)
            # Attributes of events are unchanged; an expression is null instead of NaN.
            return nan_as_null(values)
        # Columns of times hold microseconds.
        flat = fold(as_microseconds(expression, self.schema), self._flatten)
        return _array(self._rows(flat).value(cast(c.Expression, flat)), target, len(self.events.found))

    def _attribute(self, expression: c.Expression) -> pa.Array | None:
        """The column of an expression that takes an attribute unchanged; None for others."""
        attribute = selected_attribute(expression)
        if attribute is None:
            return None
        assert attribute.label is not None
        if not isinstance(expression, c.Aggregate):
            return self._of_event(attribute.label, attribute.name)
        events = _LabelEvents(self, attribute.label)
        values = events.value(attribute) if expression.name in ("min", "max") else None
        at = chosen(expression.name, events.groups, values)
        numbers = np.where(at < 0, -1, np.append(events.numbers, -1)[at])
        return taken_or_null(self.events.rows.column(self.schema.column(attribute.name)), numbers)

    def _of_event(self, label: str, name: str) -> pa.Array:
        """An attribute of the label's event in each match."""
        column, place = self.schema.column(name), self.events.place_of(label)
        rows = None if place is None else self.events.rows_at(place)
        if rows is not None:
            return rows.column(column)
        return taken_or_null(self.events.rows.column(column), self.events.one_of(label))

    def _place(self, label: str) -> pa.Array:
        """The position of the label's event in the whole stream."""
        if self.numbered is not None:
            return self._of_event(label, self.numbered).cast(pa.int64())
        at = self.events.one_of(label)
        return array_of_numbers(np.append(self.events.found.listed.positions, -1)[at], at < 0)

    def _flatten(self, current: Node, children: Sequence[Node]) -> Node:
        """Replace ``x.a``, ``time(x)``, aggregates and calls by bare attributes of the gathered rows."""
        match current:
            case c.Aggregate():
                return self._named(f"\0{show(current)}", partial(self._aggregate, current))
            case c.SetTest() | c.PredicateCall():
                value = self._named(f"\0{show(current)}", partial(self._answer, current))
                return c.Comparison(Operator.EQ, value, c.Literal(True))
            case c.Attribute(str(label), name):
                return self._named(f"{label}.{name}", partial(self._of_event, label, name))
            case c.Function(c.MATCH_NUMBER):
                return c.Attribute(None, _NUMBER)
            case c.Function("time", (c.LabelReference(str(label)),)) if self.schema.time is not None:
                return self._named(f"{label}.{self.schema.time}", partial(self._of_event, label, self.schema.time))
            case c.Function("position" | "time", (c.LabelReference(str(label)),)):
                return self._named(f"{label}.\0position", partial(self._place, label))
        return with_children(current, children)

    def _named(self, name: str, make: Callable[[], pa.Array]) -> c.Attribute:
        self._makers[name] = make
        return c.Attribute(None, name)

    def _rows(self, flat: Node) -> BatchRows:
        """Rows to evaluate an expression of flat names on."""
        for leaf in walk(flat):
            if isinstance(leaf, c.Attribute) and leaf.name not in self._columns:
                self._columns[leaf.name] = self._makers[leaf.name]()
        count = len(self.events.found)
        columns = {"\0type": pa.nulls(count, pa.string()), **self._columns}
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        schema = Schema(batch.schema, type="\0type")
        return BatchRows(batch, schema, np.zeros(count, np.int64), finest_unit(self.schema))

    def _aggregate(self, aggregate: c.Aggregate) -> pa.Array:
        column, argument = self._attribute(aggregate), aggregate.argument
        if column is not None:
            return column
        events = _LabelEvents(self, next(iter(condition_labels(argument))))
        values = None if isinstance(argument, c.LabelReference) else events.value(argument)
        if aggregate.name in SELECTING and values is not None:
            value = values.taken(chosen(aggregate.name, events.groups, values))
        else:
            value = aggregated(aggregate.name, events.groups, values)
        return _array(value, ARROW_TYPES[value.kind], len(events.groups.sizes))

    def _answer(self, call: c.SetTest | c.PredicateCall) -> pa.Array:
        """Whether a test or a predicate holds of each match."""
        if isinstance(call, c.SetTest):
            events = _LabelEvents(self, next(iter(condition_labels(call))))
            truth = in_order(call.name, events.groups, events.value(call.argument))
        elif self._predicates[call.name].kind is PredicateKind.SET:
            truth = self._answers_about_sets(call)
        else:
            truth = self._answers(call)
        return _array(truth.vector(), pa.bool_(), len(self.events.found))

    def _answers(self, call: c.PredicateCall) -> TruthVector:
        # Only a missing event is null.
        asked = np.ones(len(self.events.found), bool)
        given: list[c.Expression] = []
        for argument in call.arguments:
            if isinstance(argument, c.LabelReference):
                label = argument.label
                assert label is not None
                asked &= self.events.one_of(label) >= 0
                names = readable(self.schema, self.numbered)
                values = [self._named(f"{label}.{name}", partial(self._of_event, label, name)) for name in names]
                given.append(WholeEvent(names, tuple(values)))
            else:
                given.append(cast(c.Expression, fold(argument, self._flatten)))
        bound = Call(self._predicates[call.name], tuple(given))
        return self._rows(bound).truth(bound, asked)

    def _answers_about_sets(self, call: c.PredicateCall) -> TruthVector:
        columns: list[list[Any]] = []
        numbers = {label: k for k, label in enumerate(condition_labels(call))}
        for argument in call.arguments:
            label = next(iter(condition_labels(argument)), None)
            if label is None:
                columns.append([constant_value(argument)] * len(self.events.found))
                continue
            events = _LabelEvents(self, label)
            values = events.python_values(argument)
            parts = zip(events.groups.starts.tolist(), events.groups.sizes.tolist())
            columns.append([Each(values[start : start + size], numbers[label]) for start, size in parts])
        found = [ask_of_set(self._predicates[call.name], given) for given in zip(*columns)]
        return TruthVector(np.array([a is True for a in found], bool), np.array([a is None for a in found], bool))


class _LabelEvents:
    """The events of a label in each match: their ``numbers``, match by match. Each is looked into once."""

    def __init__(self, of: ComputedColumns, label: str) -> None:
        offsets, self.numbers = of.events.of(label)
        self.groups = Grouping(np.diff(offsets).astype(np.int64))
        having = of.events.having(label)
        self._row = (np.cumsum(having) - 1)[self.numbers]
        positions = of.events.found.listed.positions[having]
        batch = one_batch(of.kept.at(positions))
        numbers = positions if of.numbered is None else numbers_of(batch.column(of.numbered).cast(pa.int64()))
        self._rows = BatchRows(batch, of.schema, positions, finest_unit(of.schema), numbers)
        self._names = readable(of.schema, of.numbered)

    def value(self, argument: c.Expression) -> Vector:
        """The value of an expression on each event."""
        own = bare(argument)
        assert isinstance(own, c.Expression)
        return self._rows.value(own).over(self._rows.count).chosen(self._row)

    def python_values(self, argument: c.Expression) -> list[Any]:
        """The same as Python values; a label stands for whole events."""
        given: Vector | EventArgument
        row = self._row
        if isinstance(argument, c.LabelReference):
            given = EventArgument(self._names, tuple(self._rows.attribute(name) for name in self._names))
        else:
            given, row = self.value(argument), np.arange(len(row))
        return python_arguments(given, row, self._rows.unit)


def _array(vector: Vector, target: pa.DataType, count: int) -> pa.Array:
    if pa.types.is_null(target):
        return pa.nulls(count)
    data = np.broadcast_to(vector.data, (count,))
    mask = np.broadcast_to(vector.missing(), (count,))
    if vector.kind is ValueKind.STRING:
        texts = array_of_texts(vector.dictionary)
        return texts.take(array_of_numbers(data, mask)) if len(texts) else pa.nulls(count, pa.string())
    return array_of_numbers(data, mask).cast(target)


# -- aggregates, those of `cerflow.theory.semantics.operators.aggregate` to the last bit -------------------------------


@dataclass(frozen=True)
class Grouping:
    """Values in consecutive groups: group g has the values ``[starts[g], starts[g] + sizes[g])``."""

    sizes: Ints

    @property
    def starts(self) -> Ints:
        """Where each group begins."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def of(self) -> Ints:
        """The group of each value."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def sums(self, values: Ints) -> Ints:
        """The sum of each group."""
        total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
        return np.asarray(total[self.starts + self.sizes] - total[self.starts])

    def sums_in_order(self, values: Floats) -> Floats:
        """The sum of each group; values are added one after the other."""
        # NumPy's other sums add values in pairs, which rounds differently.
        return np.asarray(np.bincount(self.of, weights=values, minlength=len(self.sizes)), np.float64)


def chosen(name: str, groups: Grouping, values: Vector | None) -> Ints:
    """The index of the first, last, least or greatest (known) value of each group, -1 for an empty group.

    ``values`` may be left out for the first and the last. If all values of a group are null, one of them is chosen.
    """
    starts, sizes = groups.starts, groups.sizes
    if name == "last":
        return np.where(sizes > 0, starts + sizes - 1, -1)
    found = starts
    if name in ("min", "max"):
        assert values is not None
        found = _least(groups, _order(values, reverse=name == "max"), values.missing())
    return np.where(sizes > 0, found, -1)


def _least(groups: Grouping, keys: Ints | Floats, missing: Mask) -> Ints:
    """The index of the first least key of each group; where all are missing, that of its first one."""
    starts, filled = groups.starts, groups.sizes > 0
    if not filled.any():
        return starts
    last = np.inf if keys.dtype.kind == "f" else np.iinfo(np.int64).max
    least = np.minimum.reduceat(np.where(missing, last, keys), starts[filled])
    reached = ~missing & (keys == np.repeat(least, groups.sizes[filled]))
    at = np.where(reached, np.arange(len(keys)), len(keys))
    found = starts.copy()
    found[filled] = np.minimum.reduceat(at, starts[filled])
    return np.where(found < len(keys), found, starts)


def _order(values: Vector, *, reverse: bool) -> Ints | Floats:
    """Numbers in the order of the values, or in the reverse order."""
    if values.kind is ValueKind.FLOAT:
        return -values.floats() if reverse else values.floats()
    places = ranks_of(values.dictionary or [""])[values.data] if values.kind.coded else values.data.astype(np.int64)
    return np.invert(places) if reverse else places


def aggregated(name: str, groups: Grouping, values: Vector | None) -> Vector:
    """``count`` (also of distinct values), ``sum``, ``avg`` or ``stddev`` of each group.

    Without values it counts events.
    """
    if values is None:
        return Vector(ValueKind.INTEGER, groups.sizes)
    known = ~values.missing()
    count = groups.sums(known.astype(np.int64))
    if name == "count":
        return Vector(ValueKind.INTEGER, count)
    if name == COUNT_DISTINCT:
        return Vector(ValueKind.INTEGER, _distinct(groups, values, known))
    if values.kind is not ValueKind.FLOAT and name == "sum":
        high, low = _words(groups, values)
        total = high * WORD + low
        beyond = (high < -(WORD // 2)) | (high >= WORD // 2) | (total == NULL)
        return Vector(ValueKind.INTEGER, total, (count == 0) | beyond)
    if values.kind is ValueKind.FLOAT:
        sums = groups.sums_in_order(np.asarray(word(values, high=False).data, np.float64))
    else:
        # The float nearest to the exact sum of whole numbers.
        high, low = _words(groups, values)
        sums = high.astype(np.float64) * WORD + low.astype(np.float64)
    with np.errstate(all="ignore"):
        if name == "sum":
            return Vector(ValueKind.FLOAT, np.where(count == 0, np.nan, sums))
        mean = sums / count
        if name == "avg":
            return Vector(ValueKind.FLOAT, mean)
        away = np.where(known, values.floats() - mean[groups.of], 0.0)
        variance = groups.sums_in_order(away * away) / (count - 1)
        return Vector(ValueKind.FLOAT, np.where(count < 2, np.nan, np.sqrt(variance)))


def _distinct(groups: Grouping, values: Vector, known: Mask) -> Ints:
    """The number of distinct values in each group, without nulls."""
    data = values.data[known]
    if values.kind.coded and len(data):
        # Functions of texts may give one text several codes.
        data = np.unique(np.array(values.dictionary, object), return_inverse=True)[1][data]
    distinct, codes = np.unique(data, return_inverse=True)
    pairs = np.unique(groups.of[known] * max(1, len(distinct)) + codes)
    return np.bincount(pairs // max(1, len(distinct)), minlength=len(groups.sizes)).astype(np.int64)


def in_order(name: str, groups: Grouping, values: Vector) -> TruthVector:
    """Whether the values of each group are in the order of a test of `SET_TESTS`, unknown where one is null."""
    count = len(values.data)
    compared = compare_vectors(ORDERS[name], values.chosen(np.arange(count - 1)), values.chosen(np.arange(1, count)))
    failing = (~compared).true
    inside = np.diff(groups.of) == 0
    fails = groups.sums(np.append(failing & inside, False).astype(np.int64)[:count]) > 0
    nulls = groups.sums(values.missing().astype(np.int64)) > 0
    return TruthVector(~fails & ~nulls, nulls & ~fails)


def _words(groups: Grouping, values: Vector) -> tuple[Ints, Ints]:
    """The sum of each group's whole numbers in two words, the low one in ``[0, WORD)``."""
    high, low = (groups.sums(np.asarray(word(values, high=h).data, np.int64)) for h in (True, False))
    return high + low // WORD, low % WORD
