"""Conditions on one event and values on which two evaluations of them are likely to differ."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from cerflow.base.operators import Operator
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.language.condition import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Expression,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Regexp,
)
from cerflow.logic.conditions.guards import TypeTest
from cerflow.logic.conditions.register_values import Microseconds

INTEGERS = (0, 1, -1, 7, 127, -128, 2**31 - 1, -(2**31), 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, 2.5, -2.5, 0.1, math.nan, math.inf, -math.inf, 5e-324, 2.0**53, 2.0**53 + 2, 1e308, -1e308)
TEXTS = (
    "", "a", "A", "b", "ab", "ba", "aba", "a%b", "%", "_", "\\", "\\%", "a\\b", "a_b", "axb", "é", "e\u0301", "É",
    "ß", "SS", "\U0001f600", "a\U0001f600b", "\ufffd", "\uffff", "a ", " a", "a\nb", "\0", "a\0b", "ı", "İ",
)  # fmt: skip
PATTERNS = (
    "", "%", "a%", "%a", "%b%", "a%b", "a%b%", "_", "__", "a_b", "a\\%b", "\\", "a\\", "\\\\", "\\_", "%\\%%", "a\\b",
    "\U0001f600", "a_", "%\U0001f600%", "a\U0001f600_", "é", "%%", "a%%b", "_%", "%é",
)  # fmt: skip
EPOCH = datetime.datetime(1970, 1, 1)
MOMENTS = [
    EPOCH + datetime.timedelta(microseconds=n) for n in (0, 1, -1, 86_400_000_000, 1_711_846_800_000_000, -(10**15))
]
#: Microseconds whose differences may leave 64 bits.
TICKS = (0, 1, -1, 60_000_000, -60_000_000, 300_000_001, 86_400_000_000, -(10**15), 2**62, -(2**62) - 7)
INSTANTS = (
    "1970-01-01",
    "1970-01-01T00:00:00.000001",
    "2024-03-31T01:00:00",
    "2024-03-31T01:00:00+02:00",
    "0001-01-01",
)

_VALUES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "type": (pa.string(), TEXTS),
    "i8": (pa.int8(), (0, 1, -1, 127, -128)),
    "i32": (pa.int32(), tuple(n for n in INTEGERS if abs(n) < 2**31)),
    "i64": (pa.int64(), INTEGERS),
    "j64": (pa.int64(), INTEGERS),
    "f32": (pa.float32(), (0.0, -0.0, 2.5, math.nan, math.inf, -math.inf, float(np.float32(0.1)), 2.0**24)),
    "f64": (pa.float64(), FLOATS),
    "g64": (pa.float64(), FLOATS),
    "dec": (pa.decimal128(12, 3), (Decimal("0.000"), Decimal("0.100"), Decimal("-2.500"), Decimal("999999999.999"))),
    "whole": (pa.decimal128(18, 0), (Decimal(0), Decimal(10**18 - 1), Decimal(-(2**53) - 1), Decimal(3))),
    "wide": (pa.decimal128(30, 2), (Decimal("0.00"), Decimal(2**60) / 4, Decimal("-2.50"))),
    "s": (pa.string(), TEXTS),
    "r": (pa.string(), TEXTS),
    "flag": (pa.bool_(), (True, False)),
    "zoned": (pa.timestamp("us", "UTC"), tuple(m.replace(tzinfo=datetime.UTC) for m in MOMENTS)),
    "naive": (pa.timestamp("us"), tuple(MOMENTS)),
    "day": (pa.date32(), tuple(m.date() for m in MOMENTS)),
    "zoned2": (pa.timestamp("us", "UTC"), TICKS),
    "naive2": (pa.timestamp("us"), tuple(MOMENTS)),
    "span": (pa.duration("us"), TICKS),
    "span2": (pa.duration("us"), TICKS),
}
TIMES = (("zoned", "zoned2"), ("naive", "naive2"), ("span", "span2"))


def _table(rows: int) -> pa.Table:
    draw = random.Random(7)
    columns = {}
    for name, (data_type, values) in _VALUES.items():
        # Each value at least once.
        chosen = [*values, *(draw.choice((*values, None)) for _ in range(rows - len(values)))]
        draw.shuffle(chosen)
        columns[name] = pa.array(chosen, data_type)
    return pa.table(columns)


TABLE = _table(300)
SCHEMA = Schema(TABLE.schema)
_NUMERIC = ("i8", "i32", "i64", "j64", "f32", "f64", "g64", "dec", "whole")
_LITERALS = (*INTEGERS, *FLOATS, None)


def _number(draw: st.DrawFn, depth: int = 2) -> Expression:
    match draw(st.integers(0, 7)) if depth else 7:
        case 0 | 1:
            sign = draw(st.sampled_from("+-*/%"))
            return Arithmetic(sign, _number(draw, depth - 1), _number(draw, depth - 1))
        case 2:
            return Negative(_number(draw, depth - 1))
        case 3:
            return Function(draw(st.sampled_from(("abs", "abs", "floor", "round"))), (_number(draw, depth - 1),))
        case 4:
            return Function("length", (_text(draw),))
        case 5:
            return Literal(draw(st.sampled_from(_LITERALS)))
    return Attribute(None, draw(st.sampled_from(_NUMERIC)))


def _of_times(draw: st.DrawFn, operator: Operator) -> Condition:
    """A comparison of microseconds, as queries with durations are rewritten."""
    first, second = (Microseconds(Attribute(None, n)) for n in draw(st.permutations(draw(st.sampled_from(TIMES)))))
    left = draw(st.sampled_from((first, Arithmetic("-", first, second))))
    literal = Literal(draw(st.sampled_from((*TICKS, *(b - a for a in TICKS for b in TICKS if abs(b - a) < 2**63)))))
    return Comparison(operator, left, draw(st.sampled_from((literal, literal, second))))


def _text(draw: st.DrawFn) -> Expression:
    base = Attribute(None, draw(st.sampled_from(("s", "r", "type"))))
    return Function(draw(st.sampled_from(("lower", "upper"))), (base,)) if draw(st.integers(0, 7)) == 0 else base


def _elementary(draw: st.DrawFn) -> Condition:
    operator = draw(st.sampled_from(tuple(Operator)))
    equal = draw(st.sampled_from((Operator.EQ, Operator.NE)))
    negated = draw(st.booleans())
    sides: tuple[Expression, Expression]
    match draw(st.integers(0, 18)):
        case 17 | 18:
            return _of_times(draw, operator)
        case 0 | 1 | 2 | 3:
            sides = (_number(draw), Literal(draw(st.sampled_from(_LITERALS))))
            return Comparison(operator, *(sides if draw(st.booleans()) else sides[::-1]))
        case 4:
            return Comparison(operator, _number(draw), _number(draw))
        case 15:
            wide = Attribute(None, "wide")
            if draw(st.booleans()):
                return In(wide, (Literal(0), Literal("288230376151711744.00"), Literal(2.5)), negated)
            return Comparison(operator, wide, Literal(draw(st.sampled_from((0, -2.5, "288230376151711743.99", None)))))
        case 5 | 6:
            return Comparison(operator, _text(draw), Literal(draw(st.sampled_from(TEXTS))))
        case 7:
            return Comparison(operator, _text(draw), _text(draw))
        case 8 | 9:
            return Like(_text(draw), draw(st.sampled_from(PATTERNS)), negated)
        case 10:
            items = draw(st.lists(st.sampled_from((*INTEGERS[1:-1], 2.5, None)), min_size=1, max_size=12))
            return In(_number(draw, draw(st.integers(0, 1))), tuple(map(Literal, items)), negated)
        case 11:
            items = draw(st.lists(st.sampled_from((*TEXTS, None)), min_size=1, max_size=12))
            return In(_text(draw), tuple(map(Literal, items)), negated)
        case 12:
            ends = [draw(st.sampled_from((None, *map(Literal, _LITERALS)))) for _ in range(2)]
            if ends == [None, None]:
                ends[0] = Literal(1)
            return Between(_number(draw, 1), *ends, negated)
        case 13:
            name = draw(st.sampled_from(tuple(_VALUES)))
            return IsNull(Attribute(None, name) if draw(st.booleans()) else _number(draw), negated)
        case 14:
            moment = Attribute(None, draw(st.sampled_from(("zoned", "naive", "day"))))
            if draw(st.integers(0, 4)) == 0:
                return Comparison(operator, moment, moment)
            return Comparison(operator, moment, Literal(draw(st.sampled_from(INSTANTS))))
    return draw(
        st.sampled_from(
            (
                TypeTest(draw(st.sampled_from(TEXTS))),
                Comparison(equal, Attribute(None, "flag"), Literal(draw(st.booleans()))),
                Regexp(Attribute(None, "s"), "a.b", negated),
            )
        )
    )


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> Condition:
    """A condition on the columns of `TABLE`."""
    match draw(st.integers(0, 5)) if depth else 5:
        case 0:
            return And(draw(conditions(depth - 1)), draw(conditions(depth - 1)))
        case 1:
            return Or(draw(conditions(depth - 1)), draw(conditions(depth - 1)))
        case 2:
            return Not(draw(conditions(depth - 1)))
    return _elementary(draw)


def truth(condition: Condition) -> list[bool]:
    """For each row of `TABLE` whether a condition is true, to the engine."""
    (batch,) = TABLE.combine_chunks().to_batches()
    rows = BatchRows(batch, SCHEMA, np.arange(len(batch)), finest_unit(SCHEMA))
    return np.broadcast_to(rows.truth(condition).true, (len(batch),)).tolist()
