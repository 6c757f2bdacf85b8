"""Computed columns: expressions over the events of each match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

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
from cerflow.engine.events.store import one_batch
from cerflow.engine.layout import NULL
from cerflow.engine.results.report import ARROW_TYPES, SELECTING, Report, selected_attribute
from cerflow.language import condition as c
from cerflow.language.condition import COUNT_DISTINCT
from cerflow.language.node import Node, fold, walk, with_children
from cerflow.language.predicates.asking import Each, ask_of_set
from cerflow.language.predicates.registry import Predicate, PredicateKind
from cerflow.language.printer import show
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions.evaluate import constant_value
from cerflow.logic.conditions.guards import bare
from cerflow.logic.conditions.register_values import WORD
from cerflow.logic.rewriting.times import as_microseconds

if TYPE_CHECKING:
    from cerflow.engine.matches.unfolding import Part, Unfolded

#: The flat name of the match number.
_NUMBER = "\0number"


class LabelAttributes:
    """The attributes of labelled events, one row per match, under flat names; ``numbers`` are the matches' numbers."""

    def __init__(self, report: Report, found: Unfolded, part: Part, numbers: Ints) -> None:
        self.found = found
        self.label_sets = part.label_sets
        self.kept = part.kept
        self.schema = report.events
        self.predicates = report.predicates
        #: The column with the positions of events in the whole stream, unless ``found`` has them.
        self.numbered = report.position
        self._position: dict[str, Ints] = {}
        self._flat: dict[str, tuple[str, str] | c.Aggregate | c.SetTest | c.PredicateCall] = {}
        self._columns: dict[str, pa.Array] = {_NUMBER: array_of_numbers(numbers)} if report.numbers_matches else {}

    def compute(self, expression: c.Expression, target: pa.DataType) -> pa.Array:
        """The value of an expression for each match; null where a label has no event.

        A label has at most one event in a match, except in aggregates, tests and predicates of sets.
        """
        column = self.attribute(expression)
        if column is not None:
            values = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column.cast(target)
            # Attributes of events are unchanged; an expression is null instead of NaN.
            return nan_as_null(values)
        # Columns of times hold microseconds.
        flat = fold(as_microseconds(expression, self.schema), self.flatten)
        return _array(self._rows(flat).value(cast(c.Expression, flat)), target, len(self.found))

    def attribute(self, expression: c.Expression) -> pa.Array | None:
        """The column of an expression that takes an attribute unchanged; None for others."""
        attribute = selected_attribute(expression)
        if attribute is None:
            return None
        assert attribute.label is not None
        if isinstance(expression, c.Aggregate):
            events = self.events(attribute.label)
            values = events.value(attribute) if expression.name in ("min", "max") else None
            at = chosen(expression.name, events.groups, values)
            positions = np.where(at < 0, -1, np.append(events.positions, -1)[at])
            return self.kept.column(self.schema.column(attribute.name), positions)
        return self.column(attribute.label, attribute.name)

    def events(self, label: str) -> _LabelEvents:
        """All events of a label in all matches."""
        match, positions = self._having(label)
        return _LabelEvents(self, positions, Grouping(np.bincount(match, minlength=len(self.found))))

    def positions(self, label: str) -> Ints:
        """The position of the label's event in each match, -1 without one."""
        if label not in self._position:
            match, positions = self._having(label)
            self._position[label] = np.full(len(self.found), -1, np.int64)
            self._position[label][match] = positions
        return self._position[label]

    def _having(self, label: str) -> tuple[Ints, Ints]:
        """The events of a label: their matches and positions, match by match."""
        found = self.found
        having = np.array([label in s for s in self.label_sets], bool)[found.labels][found.events]
        match = np.repeat(np.arange(len(found)), np.diff(found.offsets))
        return match[having], found.positions[found.events[having]]

    def column(self, label: str, name: str) -> pa.Array:
        """An attribute of the label's event in each match."""
        return self.kept.column(self.schema.column(name), self.positions(label))

    def flatten(self, current: Node, children: Sequence[Node]) -> Node:
        """Replace ``x.a``, ``time(x)``, aggregates and calls by bare attributes of the gathered rows."""
        match current:
            case c.Aggregate() | c.SetTest() | c.PredicateCall():
                flat = f"\0{show(current)}"
                self._flat[flat] = current
                value = c.Attribute(None, flat)
                return value if isinstance(current, c.Aggregate) else c.Comparison(Operator.EQ, value, c.Literal(True))
            case c.Attribute(str(label), name):
                return self._name(label, name)
            case c.Function(c.MATCH_NUMBER):
                return c.Attribute(None, _NUMBER)
            case c.Function("position" | "time" as name, (c.LabelReference(str(label)),)):
                return self._name(label, f"\0{name}")
        return with_children(current, children)

    def _name(self, label: str, name: str) -> c.Attribute:
        flat = f"{label}.{name}"
        self._flat[flat] = (label, name)
        return c.Attribute(None, flat)

    def _make(self, flat: str) -> pa.Array:
        """Gather the column behind a flat name."""
        made = self._flat[flat]
        if isinstance(made, c.Aggregate):
            return self._aggregate(made)
        if isinstance(made, c.SetTest | c.PredicateCall):
            return _array(self._truth(made).vector(), pa.bool_(), len(self.found))
        label, name = made
        if name == "\0time":
            name = self.schema.time or "\0position"
        return self._places(label) if name == "\0position" else self.column(label, name)

    def _aggregate(self, aggregate: c.Aggregate) -> pa.Array:
        column, argument = self.attribute(aggregate), aggregate.argument
        if column is not None:
            return column
        events = self.events(next(iter(condition_labels(argument))))
        values = None if isinstance(argument, c.LabelReference) else events.value(argument)
        if aggregate.name in SELECTING and values is not None:
            value = values.taken(chosen(aggregate.name, events.groups, values))
        else:
            value = aggregated(aggregate.name, events.groups, values)
        return _array(value, ARROW_TYPES[value.kind], len(events.groups.sizes))

    def _truth(self, call: c.SetTest | c.PredicateCall) -> TruthVector:
        if isinstance(call, c.SetTest):
            events = self.events(next(iter(condition_labels(call))))
            return in_order(call.name, events.groups, events.value(call.argument))
        predicate = self.predicates[call.name]
        if predicate.kind is PredicateKind.SET:
            return self._answers_about_sets(predicate, call)
        # Only a missing event is null.
        asked = np.ones(len(self.found), bool)
        given: list[c.Expression] = []
        for argument in call.arguments:
            if isinstance(argument, c.LabelReference):
                assert argument.label is not None
                asked &= self.positions(argument.label) >= 0
                names = readable(self.schema, self.numbered)
                given.append(WholeEvent(names, tuple(self._name(argument.label, name) for name in names)))
            else:
                given.append(cast(c.Expression, fold(argument, self.flatten)))
        bound = Call(predicate, tuple(given))
        return self._rows(bound).truth(bound, asked)

    def _answers_about_sets(self, predicate: Predicate, call: c.PredicateCall) -> TruthVector:
        columns: list[list[Any]] = []
        numbers = {label: k for k, label in enumerate(condition_labels(call))}
        for argument in call.arguments:
            label = next(iter(condition_labels(argument)), None)
            if label is None:
                columns.append([constant_value(argument)] * len(self.found))
                continue
            events = self.events(label)
            values = events.python_values(argument)
            parts = zip(events.groups.starts.tolist(), events.groups.sizes.tolist())
            columns.append([Each(values[start : start + size], numbers[label]) for start, size in parts])
        found = [ask_of_set(predicate, given) for given in zip(*columns)]
        return TruthVector(np.array([a is True for a in found], bool), np.array([a is None for a in found], bool))

    def _places(self, label: str) -> pa.Array:
        """The position of the label's event in the whole stream."""
        if self.numbered is not None:
            return self.column(label, self.numbered).cast(pa.int64())
        positions = self.positions(label)
        return array_of_numbers(positions, positions < 0)

    def _rows(self, flat: Node) -> BatchRows:
        """Rows to evaluate an expression of flat names on."""
        for leaf in walk(flat):
            if isinstance(leaf, c.Attribute) and leaf.name not in self._columns:
                self._columns[leaf.name] = self._make(leaf.name)
        count = len(self.found)
        columns = {"\0type": pa.nulls(count, pa.string()), **self._columns}
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        schema = Schema(batch.schema, type="\0type")
        return BatchRows(batch, schema, np.zeros(count, np.int64), finest_unit(self.schema))


@dataclass(frozen=True)
class _LabelEvents:
    """The events of a label in each match, in the order of their positions."""

    of: LabelAttributes
    positions: Ints
    groups: Grouping

    def value(self, argument: c.Expression) -> Vector:
        """The value of an expression on each event."""
        own = bare(argument)
        assert isinstance(own, c.Expression)
        return self._rows().value(own).over(len(self.positions))

    def python_values(self, argument: c.Expression) -> list[Any]:
        """The same as Python values; a label stands for whole events."""
        given: Vector | EventArgument
        if isinstance(argument, c.LabelReference):
            rows, names = self._rows(), readable(self.of.schema, self.of.numbered)
            given = EventArgument(names, tuple(rows.attribute(name) for name in names))
        else:
            given = self.value(argument)
        return python_arguments(given, np.arange(len(self.positions)), finest_unit(self.of.schema))

    def _rows(self) -> BatchRows:
        schema, numbered = self.of.schema, self.of.numbered
        batch = one_batch(self.of.kept.at(self.positions))
        numbers = self.positions if numbered is None else numbers_of(batch.column(numbered).cast(pa.int64()))
        return BatchRows(batch, schema, self.positions, finest_unit(schema), numbers)


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
        key = _order(values, reverse=name == "max")
        order = np.lexsort((key, values.missing(), groups.of))
        # An empty group at the end begins after the last value.
        found = np.append(order, -1)[starts]
    return np.where(sizes > 0, found, -1)


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
