"""Expressions and conditions on one event, evaluated for a whole batch at once.

Values are NumPy arrays: integers, booleans and timestamps as int64 with a mask of nulls, floats as float64 with NaN for
null, strings as codes into a dictionary. Literals are zero-dimensional arrays, which broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cerflow.base.array_types import Floats, Ints, Mask
from cerflow.base.arrow_columns import (
    array_of_texts,
    nearest_floats,
    numbers_of,
    plain_array,
    plain_type,
    truths_of,
    values_taken,
)
from cerflow.base.decimals import decimal_text
from cerflow.base.errors import InputError
from cerflow.base.operators import RELATIONS, Operator
from cerflow.base.schema import ValueKind, kind_of
from cerflow.base.text_patterns import among, cased, lengths_of, texts_in_place
from cerflow.base.units import MICROSECONDS
from cerflow.engine.layout import NULL
from cerflow.logic.conditions.register_values import FIRST_MOMENT, LAST_MOMENT, WORD


@dataclass(frozen=True)
class Vector:
    """Values of one kind; ``nulls`` is None without nulls.

    Strings and exact decimals (see `decimals`) are codes into a ``dictionary``, which only these have.
    """

    kind: ValueKind
    data: Ints | Floats
    nulls: Mask | None = None
    dictionary: Sequence[str] = ()

    def missing(self) -> Mask:
        """Where the value is null."""
        if self.kind is ValueKind.FLOAT:
            return np.isnan(self.data)
        return np.zeros(self.data.shape, bool) if self.nulls is None else self.nulls

    def floats(self) -> Floats:
        """The numbers as floats, NaN for null."""
        values = self.data.astype(np.float64)
        if self.kind is not ValueKind.FLOAT and self.nulls is not None:
            values = np.where(self.nulls, np.nan, values)
        return values

    def integers(self) -> Ints:
        """The values as int64, `NULL` for null; raises `InputError` if a value equals `NULL`."""
        values = self.data.astype(np.int64, copy=False)
        if values.size and values.min() == NULL and (values == NULL)[~self.missing()].any():
            raise InputError(f"the value {NULL} cannot be used: it represents null")
        return values if self.nulls is None else np.where(self.nulls, NULL, values)

    def over(self, count: int) -> Vector:
        """One value for each of ``count`` rows, even for a literal."""
        nulls = None if self.nulls is None else np.broadcast_to(self.nulls, (count,))
        data: NDArray[Any] = np.broadcast_to(self.data, (count,))
        return Vector(self.kind, data, nulls, self.dictionary)

    def chosen(self, rows: Ints) -> Vector:
        """The values of some rows."""
        data: NDArray[Any] = self.data[rows]
        nulls = None if self.nulls is None else self.nulls[rows]
        if len(self.dictionary) <= len(rows):
            return Vector(self.kind, data, nulls, self.dictionary)
        # Drop the texts of other rows.
        used, codes = np.unique(data, return_inverse=True)
        return Vector(self.kind, codes, nulls, [self.dictionary[k] for k in used.tolist()])

    def taken(self, rows: Ints) -> Vector:
        """The values of some rows; a negative row number gives null."""
        missing = np.append(self.missing(), True)[rows] | (rows < 0)
        if self.kind is ValueKind.FLOAT:
            return Vector(self.kind, np.where(missing, np.nan, np.append(self.floats(), np.nan)[rows]))
        return Vector(self.kind, np.append(self.data, 0)[rows].astype(np.int64), missing, self.dictionary)


class TextVector(Vector):
    """The texts of a column, which get codes when these are asked for."""

    column: pa.Array

    def __init__(self, column: pa.Array) -> None:
        object.__setattr__(self, "kind", ValueKind.STRING)
        object.__setattr__(self, "nulls", None if column.null_count == 0 else truths_of(column.is_null()))
        object.__setattr__(self, "column", column)

    @cached_property
    def _encoded(self) -> tuple[Ints, pa.Array]:
        return encoded(self.column)

    @property
    def data(self) -> Ints:
        """The code of each text."""
        return self._encoded[0]

    @cached_property
    def dictionary(self) -> Sequence[str]:
        """The distinct texts."""
        return texts_in_place(self._encoded[1])

    @property
    def is_encoded(self) -> bool:
        """Whether the texts have codes."""
        return "_encoded" in self.__dict__

    def missing(self) -> Mask:
        """Where the text is null."""
        return np.zeros(len(self.column), np.bool_) if self.nulls is None else self.nulls

    def chosen(self, rows: Ints) -> Vector:
        """The texts of some rows."""
        return super().chosen(rows) if self.is_encoded else TextVector(values_taken(self.column, rows))


@dataclass(frozen=True)
class TruthVector:
    """A three-valued result: where it is true, and where it is unknown."""

    true: Mask
    unknown: Mask | None = None

    def __invert__(self) -> TruthVector:
        false = ~self.true if self.unknown is None else ~(self.true | self.unknown)
        return TruthVector(false, self.unknown)

    def __and__(self, other: TruthVector) -> TruthVector:
        true = self.true & other.true
        if self.unknown is None and other.unknown is None:
            return TruthVector(true)
        return TruthVector(true, self._possible() & other._possible() & ~true)

    def __or__(self, other: TruthVector) -> TruthVector:
        true = self.true | other.true
        if self.unknown is None and other.unknown is None:
            return TruthVector(true)
        return TruthVector(true, (self._possible() | other._possible()) & ~true)

    def _possible(self) -> Mask:
        return self.true if self.unknown is None else self.true | self.unknown

    def vector(self) -> Vector:
        """As a boolean value, null where unknown."""
        return Vector(ValueKind.BOOLEAN, self.true.astype(np.int64), self.unknown)


def column_vector(column: pa.Array, unit: str) -> Vector:
    """The values of an Arrow column: durations in microseconds, timestamps in ``unit`` (s, ms, us or ns) since 1970.

    Columns of types that conditions cannot read only have nulls. Raises `InputError` for integers beyond 64 bits.
    """
    kind = kind_of(column.type)
    nulls = None if column.null_count == 0 else truths_of(column.is_null())
    if kind is ValueKind.STRING:
        if column.type in (pa.string(), pa.large_string()):
            return TextVector(column)
        codes, texts = encoded(column)
        return Vector(kind, codes, nulls, texts_in_place(texts))
    column = plain_array(column, plain_type(column.type))
    if kind is ValueKind.DECIMAL:
        codes, values = encoded(column)
        return Vector(kind, codes, nulls, [decimal_text(value) for value in values.to_pylist()])
    if pa.types.is_null(column.type):
        return Vector(ValueKind.FLOAT, np.full(len(column), np.nan))
    if kind is ValueKind.FLOAT:
        return Vector(kind, nearest_floats(column))
    if kind is ValueKind.OTHER:
        # Conditions can only test such a column for null.
        return Vector(ValueKind.INTEGER, np.zeros(len(column), np.int64), nulls)
    size = MICROSECONDS[column.type.unit] if kind is ValueKind.DURATION else None
    try:
        if kind is ValueKind.TIMESTAMP:
            column = column.cast(pa.timestamp(unit, tz=getattr(column.type, "tz", None)))
        numbers = numbers_of(column.cast(pa.int64()))
    except pa.ArrowInvalid as error:
        raise InputError(f"a value does not fit 64 bits: {error}") from error
    return Vector(kind, numbers if size is None else numbers * size.numerator // size.denominator, nulls)


def plain_numbers(column: pa.Array) -> Ints | Floats:
    """The numbers or times of a column in its own unit, dates in milliseconds; NaN for null floats, or any number."""
    if kind_of(column.type) is ValueKind.FLOAT:
        return nearest_floats(column)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    # Values that do not fit are refused anyway.
    return numbers_of(column.cast(pa.int64(), safe=False))


def literal_vector(value: int | float | str | bool | timedelta | None) -> Vector:
    """A literal as a zero-dimensional vector."""
    if isinstance(value, timedelta):
        return Vector(ValueKind.DURATION, np.array(value // timedelta(microseconds=1), np.int64))
    if value is None:
        return Vector(ValueKind.FLOAT, np.array(np.nan))
    if isinstance(value, str):
        return Vector(ValueKind.STRING, np.array(0), None, (value,))
    if isinstance(value, bool):
        return Vector(ValueKind.BOOLEAN, np.array(int(value)))
    if isinstance(value, int):
        return Vector(ValueKind.INTEGER, np.array(value, np.int64))
    return Vector(ValueKind.FLOAT, np.array(value, np.float64))


_COMPARED: dict[Operator, Callable[..., pa.Array]] = {
    Operator.EQ: pc.equal,
    Operator.NE: pc.not_equal,
    Operator.LT: pc.less,
    Operator.LE: pc.less_equal,
    Operator.GT: pc.greater,
    Operator.GE: pc.greater_equal,
}


def _as_texts(vector: Vector) -> pa.Array | pa.Scalar | None:
    """The texts as Arrow compares them; None if they have codes."""
    if isinstance(vector, TextVector):
        return None if vector.is_encoded else vector.column
    return array_of_texts(vector.dictionary)[0] if vector.kind is ValueKind.STRING and not vector.data.ndim else None


def compare_vectors(operator: Operator, left: Vector, right: Vector) -> TruthVector:
    """``left operator right``, unknown where either is null."""
    compare: Callable[..., Mask] = RELATIONS[operator]
    unknown = None
    if ValueKind.FLOAT in (left.kind, right.kind) or left.nulls is not None or right.nulls is not None:
        unknown = left.missing() | right.missing()
    if left.kind.coded and right.kind.coded:
        if isinstance(left, TextVector) and not left.is_encoded and (other := _as_texts(right)) is not None:
            # The bytes of texts are in the order of their characters.
            outcome = truths_of(_COMPARED[operator](left.column, other))
        elif 0 in (left.data.ndim, right.data.ndim):
            one, other = (left, right) if right.data.ndim == 0 else (right, left)
            if operator is Operator.EQ and other.dictionary:
                allowed = among(one.dictionary, other.dictionary)
            else:
                # NumPy's own strings lose zeros at their end.
                allowed = compare(*(np.array([*v.dictionary], dtype=object) for v in (left, right))).astype(bool)
            outcome = allowed[one.data] if len(allowed) else np.zeros(one.data.shape, bool)
        else:
            order = {s: k for k, s in enumerate(sorted({*left.dictionary, *right.dictionary}))}
            ranks = [np.array([order[s] for s in v.dictionary] or [0], np.int64)[v.data] for v in (left, right)]
            outcome = compare(*ranks)
    elif left.kind is ValueKind.FLOAT or right.kind is ValueKind.FLOAT:
        outcome = compare(left.floats(), right.floats())
    else:
        outcome = compare(left.data, right.data)
    return TruthVector(outcome if unknown is None else outcome & ~unknown, unknown)


def equals_any(value: Vector, items: Sequence[Vector]) -> TruthVector:
    """Whether a value equals one of several non-null literals of one kind; unknown where the value is null.

    The values are looked up, so a long list costs little more than a short one.
    """
    missing = value.missing()
    if value.kind is ValueKind.STRING:
        texts = {item.dictionary[0] for item in items}
        outcome = among(value.dictionary or [""], texts)[value.data]
    elif ValueKind.FLOAT in (value.kind, items[0].kind):
        outcome = np.isin(value.floats(), np.array([item.floats() for item in items]))
    else:
        outcome = np.isin(value.data, np.array([item.data for item in items]))
    return TruthVector(outcome & ~missing, missing) if missing.any() else TruthVector(outcome)


def vector_arithmetic(operator: str, left: Vector, right: Vector) -> Vector:
    """``left operator right`` on numbers: integers stay integers except under ``/``; null without a result."""
    with np.errstate(all="ignore"):
        if operator == "/" or ValueKind.FLOAT in (left.kind, right.kind):
            a, b = left.floats(), right.floats()
            if operator in "/%":
                b = np.where(b == 0.0, np.nan, b)
            results = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}
            return Vector(ValueKind.FLOAT, results[operator](a, b))
        i, j = left.data.astype(np.int64), right.data.astype(np.int64)
        if operator == "+":
            c = i + j
            lost = ((i ^ c) & (j ^ c)) < 0
        elif operator == "-":
            c = i - j
            lost = ((i ^ j) & (i ^ c)) < 0
        elif operator == "*":
            c = i * j
            safe = np.where(i == 0, 1, i)
            lost = (i != 0) & ((c // safe != j) | (c % safe != 0))
        else:
            c = np.fmod(i, np.where(j == 0, 1, j))
            lost = j == 0
        # The smallest integer represents null.
        return Vector(ValueKind.INTEGER, c, left.missing() | right.missing() | lost | (c == NULL))


def _rounded(values: Floats) -> Floats:
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1.0, values), whole)


_FLOAT_FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    "abs": np.abs,
    "-": np.negative,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": _rounded,
}


def unary_function(name: str, operand: Vector) -> Vector:
    """A scalar function of `cerflow.language.condition.FUNCTIONS`, or unary minus (``-``)."""
    if name in ("lower", "upper"):
        return Vector(operand.kind, operand.data, operand.nulls, cased(operand.dictionary, name))
    if name == "length":
        lengths = lengths_of(operand.dictionary or [""])
        return Vector(ValueKind.INTEGER, lengths[operand.data], operand.nulls)
    if operand.kind is ValueKind.FLOAT:
        with np.errstate(invalid="ignore"):
            return Vector(ValueKind.FLOAT, _FLOAT_FUNCTIONS[name](operand.data.astype(np.float64)))
    if name in ("abs", "-"):
        with np.errstate(over="ignore"):
            changed = np.abs(operand.data) if name == "abs" else -operand.data
        # The smallest integer cannot be negated.
        return Vector(ValueKind.INTEGER, changed, operand.missing() | (operand.data == NULL))
    return operand


def word(operand: Vector, high: bool) -> Vector:
    """The high or low word of numbers, see `cerflow.logic.conditions.register_values.Word`; 0 for null."""
    if operand.kind is ValueKind.FLOAT:
        if high:
            return Vector(ValueKind.INTEGER, np.zeros(operand.data.shape, np.int64))
        return Vector(ValueKind.FLOAT, np.where(operand.missing(), 0.0, operand.data))
    values = np.where(operand.missing(), 0, operand.data)
    low = np.fmod(values, WORD)
    return Vector(ValueKind.INTEGER, (values - low) // WORD if high else low)


def microseconds(operand: Vector, unit: str) -> Vector:
    """The microseconds of durations, or of timestamps in ``unit``, rounded down."""
    if operand.kind is ValueKind.DURATION:
        return Vector(ValueKind.INTEGER, operand.data, operand.nulls)
    return Vector(ValueKind.INTEGER, operand.data // MICROSECONDS[unit].denominator, operand.nulls)


def dated(operand: Vector) -> Vector:
    """Null beyond the years 1 to 9999, see `cerflow.logic.conditions.register_values.Dated`."""
    beyond = (operand.data < FIRST_MOMENT) | (operand.data > LAST_MOMENT)
    return Vector(ValueKind.INTEGER, operand.data, operand.missing() | beyond)


def whole(operand: Vector) -> Vector:
    """Numbers as integers, see `cerflow.logic.conditions.register_values.Whole`."""
    values = operand.floats()
    with np.errstate(invalid="ignore"):
        beyond = ~(np.abs(values) < 2.0**63)
    return Vector(ValueKind.INTEGER, _rounded(np.where(beyond, 0.0, values)).astype(np.int64), beyond)


def tested(operand: Vector, test: Callable[[Sequence[str]], Mask]) -> TruthVector:
    """Of which strings a test is true, asked once per distinct string."""
    allowed = test(operand.dictionary or [""])
    outcome = allowed[operand.data]
    return TruthVector(outcome if operand.nulls is None else outcome & ~operand.nulls, operand.nulls)


def encoded(column: pa.Array) -> tuple[Ints, pa.Array]:
    """The code of each text and the distinct texts; codes of nulls are arbitrary."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return numbers_of(column.indices.cast(pa.int64())), column.dictionary
