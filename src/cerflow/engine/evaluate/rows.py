"""Evaluates the expressions and conditions of a transducer on the rows of a record batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from operator import add

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.array_types import Ints, Mask
from cerflow.base.arrow_columns import array_of_numbers, numbers_of, plain_array, plain_type, values_taken
from cerflow.base.decimals import written_text
from cerflow.base.events import microseconds_since_epoch, parsed_moment
from cerflow.base.graphs import grouped
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.base.text_patterns import Texts, found_in, like, part_of_text, parts_of_texts
from cerflow.base.units import PER_SECOND, finest
from cerflow.engine.evaluate import vectors
from cerflow.engine.evaluate.binding import Call, CallOfSet, WholeEvent
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED, Precomputed, precomputed_truth
from cerflow.engine.evaluate.predicate_answers import EventArgument, answers, answers_about_sets
from cerflow.engine.evaluate.vectors import TruthVector, Vector
from cerflow.engine.scan.columns import texts_equal
from cerflow.language import condition as c
from cerflow.language.node import Node, fold
from cerflow.logic.conditions.evaluate import zone_called
from cerflow.logic.conditions.guards import Satisfied, StreamTest, TypeTest
from cerflow.logic.conditions.register_values import Dated, DatePart, Known, Microseconds, Whole, Word

#: What is found for a part of a tree, for each row.
_Found = Vector | TruthVector | EventArgument


def finest_unit(schema: Schema) -> str:
    """The unit in which all timestamps of a schema are integers (at least microseconds)."""
    units = [f.type.unit for f in schema.columns if pa.types.is_timestamp(f.type)]
    return finest([*units, "us"])


def instant(text: str, unit: str) -> int:
    """An ISO 8601 text as a number of units since the epoch; without an offset it is UTC. Raises ValueError."""
    return microseconds_since_epoch(parsed_moment(text)) * PER_SECOND[unit] // 10**6


class BatchRows:
    """Some rows of a batch; columns are read and expressions evaluated on demand, each once.

    ``positions`` count the events as they come, ``numbers`` are their positions in the whole stream, if different.
    Conditions and computed columns use ``numbers``, windows and contiguity use ``positions``.
    """

    def __init__(
        self, batch: pa.RecordBatch, schema: Schema, positions: Ints | range, unit: str, numbers: Ints | None = None
    ) -> None:
        self.batch = batch
        self.schema = schema
        self.count = len(positions)
        self.unit = unit
        self._positions = positions
        self._numbers = numbers
        self._vectors: dict[str, Vector] = {}
        #: The rows for which predicates are called, None for all; answers for other rows are ignored.
        self.asked: Mask | None = None

    @property
    def positions(self) -> Ints:
        """The positions, for each row."""
        if isinstance(self._positions, range):
            self._positions = np.arange(self._positions.start, self._positions.stop)
        return self._positions

    @property
    def numbers(self) -> Ints:
        """The positions in the whole stream, for each row."""
        return self.positions if self._numbers is None else self._numbers

    def positions_at(self, indices: Ints) -> tuple[Ints, Ints | None]:
        """The positions of some rows, and their numbers if these differ."""
        begins = self._positions
        some = begins.start + indices if isinstance(begins, range) else begins[indices]
        return some, None if self._numbers is None else self._numbers[indices]

    def attribute(self, name: str) -> Vector:
        """The values of an attribute; ``type`` is the type of the event if no attribute has that name."""
        column = self.schema.column(name)
        if column not in self._vectors:
            self._vectors[column] = self._read(column)
        return self._vectors[column]

    def read_at(self, column: str, indices: Ints) -> Vector:
        """The values of a column in some rows only."""
        known = self._vectors.get(column)
        return known.chosen(indices) if known is not None else self._read(column, indices)

    def named(self, column: str, name: str) -> Mask:
        """Where a column of text has this one."""
        values = self.batch.column(column)
        if type(self) is BatchRows and column not in self._vectors and not pa.types.is_dictionary(values.type):
            # The codes of all texts take longer.
            return texts_equal(values, name)
        return vectors.compare_vectors(Operator.EQ, self.attribute(column), vectors.literal_vector(name)).true

    def _read(self, column: str, indices: Ints | None = None) -> Vector:
        values = self.batch.column(column)
        some = plain_array(values, plain_type(values.type)) if indices is None else values_taken(values, indices)
        return vectors.column_vector(some, self.unit)

    def at(self, indices: Ints) -> BatchRows:
        """Some of the rows, in their order."""
        if len(indices) == self.count:
            return self
        return _SomeRows(self, indices)

    def time(self) -> Vector:
        """The time of each event, without a time column its position."""
        return Vector(ValueKind.INTEGER, self.numbers) if self.schema.time is None else self.attribute(self.schema.time)

    def value(self, expression: c.Expression, asked: Mask | None = None) -> Vector:
        """An expression on each row; predicates are called only on the rows ``asked`` for."""
        self.asked = asked
        result = fold(expression, self._visit)
        assert isinstance(result, Vector)
        return result

    def truth(self, condition: c.Condition, asked: Mask | None = None) -> TruthVector:
        """A condition on each row, three-valued; predicates are called only on the rows ``asked`` for."""
        self.asked = asked
        result = fold(condition, self._visit)
        assert isinstance(result, TruthVector)
        return result

    def held(self, tests: Iterable[tuple[int, c.Condition]]) -> list[frozenset[int]]:
        """For each row, the numbers of the tests that are true of it."""
        held = ((number, np.broadcast_to(self.truth(test).true, (self.count,))) for number, test in tests)
        pairs = ((row, number) for number, true in held for row in np.flatnonzero(true).tolist())
        return [*map(frozenset, grouped(self.count, pairs))]

    def _visit(self, current: Node, below: Sequence[_Found]) -> _Found:
        found = _OPERATIONS[type(current)](self, current, *below)
        if getattr(current, "negated", False):
            assert isinstance(found, TruthVector)
            return ~found
        return found


class _SomeRows(BatchRows):
    """A selection of other rows, which uses the values that those have read."""

    def __init__(self, rows: BatchRows, indices: Ints) -> None:
        positions, numbers = rows.positions_at(indices)
        super().__init__(rows.batch, rows.schema, positions, rows.unit, numbers)
        self._rows = rows
        self._indices = indices

    def _read(self, column: str, indices: Ints | None = None) -> Vector:
        return self._rows.read_at(column, self._indices if indices is None else self._indices[indices])


def _as_decimal(vector: Vector) -> Vector:
    """A literal as an exact decimal; NULL and exact decimals are unchanged."""
    if vector.kind is ValueKind.DECIMAL or vector.data.ndim or vector.missing().any():
        return vector
    value = vector.dictionary[0] if vector.kind is ValueKind.STRING else vector.data.item()
    return Vector(ValueKind.DECIMAL, np.array(0), None, (written_text(value),))


# -- conditions


def _type_test(rows: BatchRows, test: TypeTest) -> TruthVector:
    found = rows.named(rows.schema.type, test.type)
    return TruthVector(found if test.stream is None else found & _stream_test(rows, test).true)


def _stream_test(rows: BatchRows, test: TypeTest | StreamTest) -> TruthVector:
    if rows.schema.stream is None or test.stream is None:
        return TruthVector(np.array(True))
    return TruthVector(rows.named(rows.schema.stream, test.stream))


def _compared(rows: BatchRows, operator: Operator, left: Vector, right: Vector) -> TruthVector:
    return vectors.compare_vectors(operator, *_aligned(rows, left, right))


def _aligned(rows: BatchRows, left: Vector, right: Vector) -> tuple[Vector, Vector]:
    """Turn texts compared with timestamps into timestamps, and literals compared with decimals into decimals."""
    if ValueKind.DECIMAL in (left.kind, right.kind):
        return _as_decimal(left), _as_decimal(right)
    if left.kind is ValueKind.TIMESTAMP and right.kind is ValueKind.STRING:
        return left, Vector(ValueKind.TIMESTAMP, np.array(instant(right.dictionary[0], rows.unit)))
    if right.kind is ValueKind.TIMESTAMP and left.kind is ValueKind.STRING:
        return Vector(ValueKind.TIMESTAMP, np.array(instant(left.dictionary[0], rows.unit))), right
    return left, right


def _between(rows: BatchRows, current: c.Between, value: Vector, *bounds: Vector) -> TruthVector:
    outcome = TruthVector(np.array(True))
    if current.low is not None:
        outcome = _compared(rows, Operator.GE, value, bounds[0])
    if current.high is not None:
        outcome = outcome & _compared(rows, Operator.LE, value, bounds[-1])
    return outcome


def _among(rows: BatchRows, current: c.In, value: Vector, *items: Vector) -> TruthVector:
    outcome = TruthVector(np.array(False))
    alike: dict[ValueKind, list[Vector]] = {}
    for item in items:
        _, aligned = _aligned(rows, value, item)
        if value.kind is ValueKind.DECIMAL or item.missing():
            outcome = outcome | _compared(rows, Operator.EQ, value, item)
        else:
            alike.setdefault(aligned.kind, []).append(aligned)
    for some in alike.values():
        outcome = outcome | vectors.equals_any(value, some)
    return outcome


# -- functions of several operands, of texts and of times


def _either(first: Mask, then: Vector, otherwise: Vector) -> Vector:
    """One value where ``first`` is true, the other elsewhere; NULL takes the kind of the other."""
    then, otherwise = _beside(then, otherwise), _beside(otherwise, then)
    if ValueKind.FLOAT in (then.kind, otherwise.kind):
        return Vector(ValueKind.FLOAT, np.where(first, then.floats(), otherwise.floats()))
    dictionary = [*then.dictionary, *otherwise.dictionary]
    missing = np.where(first, then.missing(), otherwise.missing())
    # A column of nulls alone has no texts, so that its codes would lie behind all others.
    data = np.where(missing, 0, np.where(first, then.data, otherwise.data + len(then.dictionary)))
    return Vector(then.kind, data, missing, dictionary)


def _beside(value: Vector, other: Vector) -> Vector:
    if value.kind is not ValueKind.FLOAT or other.kind is ValueKind.FLOAT or not value.missing().all():
        return value
    shape = value.data.shape
    return Vector(other.kind, np.zeros(shape, np.int64), np.ones(shape, bool), ("",) * other.kind.coded)


def _on_texts(function: Callable[..., str | None], operands: Sequence[Vector]) -> Vector:
    """A function of texts and integers, null if any of them is; it is called once for equal operands."""
    columns = [operand for operand in operands if operand.data.ndim]
    constants = [operand for operand in operands if not operand.data.ndim]
    if len(columns) == 1 and columns[0].kind is ValueKind.STRING and not any(o.missing().any() for o in constants):
        return _on_dictionary(function, operands, columns[0])
    arrays = np.broadcast_arrays(*(operand.data for operand in operands))
    missing = np.broadcast_arrays(*(operand.missing() for operand in operands))
    unknown = np.logical_or.reduce(missing)
    rows = np.stack([np.where(unknown, 0, array).astype(np.int64).ravel() for array in arrays], axis=1)
    distinct, codes = np.unique(rows, axis=0, return_inverse=True)
    known = np.zeros(len(distinct), bool)
    known[codes.ravel()[~unknown.ravel()]] = True
    texts: list[str | None] = []
    for row, is_known in zip(distinct.tolist(), known.tolist()):
        given = (o.dictionary[value] if o.kind is ValueKind.STRING else value for o, value in zip(operands, row))
        texts.append(function(*given) if is_known else None)
    data = codes.reshape(unknown.shape)
    unknown = unknown | np.array([text is None for text in texts] or [True])[data]
    return Vector(ValueKind.STRING, data, unknown, [text or "" for text in texts])


def _substr(operands: Sequence[Vector]) -> Vector:
    column, *numbers = operands
    if isinstance(column.dictionary, Texts) and not any(n.data.ndim or n.missing() for n in numbers):
        first, *length = (int(number.data) for number in numbers)
        if not length or length[0] >= 0:
            texts = parts_of_texts(column.dictionary, first, *length)
            return Vector(column.kind, column.data, column.nulls, texts)
    return _on_texts(part_of_text, operands)


def _on_dictionary(function: Callable[..., str | None], operands: Sequence[Vector], column: Vector) -> Vector:
    """The same where all operands but one column of texts are constants: its texts change, and its codes stay."""
    at = next(k for k, operand in enumerate(operands) if operand is column)
    given = [o.dictionary[int(o.data)] if o.dictionary else o.data.item() for o in operands if o is not column]
    texts = [function(*given[:at], text, *given[at:]) for text in column.dictionary]
    missing, unknown = column.missing(), np.array([text is None for text in texts] or [True])
    nulls = missing | unknown[np.where(missing, 0, column.data)] if unknown.any() else missing
    return Vector(ValueKind.STRING, column.data, nulls, [text or "" for text in texts])


def _date_parts(operand: Vector, part: str, zone: str | None) -> Vector:
    """A part of moments in microseconds since 1970, see `cerflow.logic.conditions.register_values.DatePart`."""
    known = np.where(operand.missing(), 0, operand.data).ravel().astype(np.int64, copy=False)
    moments = array_of_numbers(known).cast(pa.timestamp("us"))
    if zone is not None:
        offset = zone_called(zone).utcoffset(None)
        if offset is None:
            moments = moments.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
        else:
            moments = pc.add(moments, pa.scalar(offset, pa.duration("us")))
    found = pc.day_of_week(moments, count_from_zero=False) if part == "weekday" else getattr(pc, part)(moments)
    values = numbers_of(found.cast(pa.int64()))
    return Vector(ValueKind.INTEGER, values.reshape(operand.data.shape), operand.missing())


# -- what stands for each kind of node, given the rows, the node, and what was found for its children

_FUNCTIONS: dict[str, Callable[..., Vector]] = {
    "position": lambda rows, *_: Vector(ValueKind.INTEGER, rows.numbers),
    "time": lambda rows, *_: rows.time(),
    "coalesce": lambda rows, *operands: reduce(lambda others, v: _either(~v.missing(), v, others), reversed(operands)),
    "substr": lambda rows, *operands: _substr(operands),
    "||": lambda rows, *operands: _on_texts(add, operands),
}


def _function(rows: BatchRows, call: c.Function, *operands: Vector) -> Vector:
    known = _FUNCTIONS.get(call.name)
    return vectors.unary_function(call.name, *operands) if known is None else known(rows, *operands)


_OPERATIONS: dict[type[Node], Callable[..., _Found]] = {
    c.Literal: lambda rows, node: vectors.literal_vector(node.value),
    c.Attribute: lambda rows, node: rows.attribute(node.name),
    c.Arithmetic: lambda rows, node, left, right: vectors.vector_arithmetic(node.operator, left, right),
    c.Negative: lambda rows, node, operand: vectors.unary_function("-", operand),
    c.Function: _function,
    # A label as the argument of position or time: the current event.
    c.LabelReference: lambda rows, node: Vector(ValueKind.INTEGER, rows.positions),
    c.TruthValue: lambda rows, node, truth: truth.vector(),
    c.If: lambda rows, node, truth, then, otherwise: _either(truth.true, then, otherwise),
    Known: lambda rows, node, operand: Vector(ValueKind.INTEGER, (~operand.missing()).astype(np.int64)),
    Word: lambda rows, node, operand: vectors.word(operand, node.high),
    Microseconds: lambda rows, node, operand: vectors.microseconds(operand, rows.unit),
    DatePart: lambda rows, node, operand: _date_parts(operand, node.part, node.zone),
    Dated: lambda rows, node, operand: vectors.dated(operand),
    Whole: lambda rows, node, operand: vectors.whole(operand),
    WholeEvent: lambda rows, node, *values: EventArgument(node.names, values),
    Call: lambda rows, node, *given: answers(node.predicate, given, rows.count, rows.asked, rows.unit),
    CallOfSet: lambda rows, node, *given: answers_about_sets(node, given, rows.count, rows.asked, rows.unit),
    c.Constant: lambda rows, node: TruthVector(np.array(node.value)),
    c.And: lambda rows, node, left, right: left & right,
    c.Or: lambda rows, node, left, right: left | right,
    c.Not: lambda rows, node, truth: ~truth,
    Satisfied: lambda rows, node, truth: TruthVector(truth.true),
    TypeTest: _type_test,
    StreamTest: _stream_test,
    Precomputed: lambda rows, node: precomputed_truth(rows.attribute(PRECOMPUTED), node.number),
    c.Comparison: lambda rows, node, left, right: _compared(rows, node.operator, left, right),
    c.Between: _between,
    c.In: _among,
    c.Like: lambda rows, node, text: vectors.tested(text, partial(like, pattern=node.pattern)),
    c.Regexp: lambda rows, node, text: vectors.tested(text, partial(found_in, expression=node.pattern)),
    c.IsNull: lambda rows, node, operand: TruthVector(operand.missing()),
}
