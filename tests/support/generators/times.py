"""Random conditions and values that compute with timestamps and durations.

``u`` is a timestamp and ``d`` a duration, both sometimes null; ``t`` is the time of an event, a timestamp unless
``numeric``.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from cerflow.base.operators import Operator
from cerflow.language.condition import (
    DATE_PARTS,
    Aggregate,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Expression,
    Function,
    In,
    IsNull,
    LabelReference,
    Literal,
    Negative,
    SetTest,
)
from support.generators.limits import FLOATS, INTEGERS, MOMENTS, SPANS

BEGIN = datetime(2024, 3, 15, tzinfo=UTC)
_SPANS = [timedelta(milliseconds=k) for k in (-1, 0, 1, 1, 2, 2.5, 4)]
_FAR = [*SPANS, timedelta(days=2_000_000)]
_NUMBERS = (*(0, 1, 2, -1, 0.5, 1.5) * 6, *INTEGERS, *filter(math.isfinite, FLOATS))


def moments(far: bool) -> st.SearchStrategy[datetime]:
    """Values of ``u``; with ``far`` also the first and the last ones there are."""
    near = [BEGIN + timedelta(milliseconds=k) for k in range(5)]
    return st.sampled_from([*near * 3, *MOMENTS] if far else near)


def spans(far: bool) -> st.SearchStrategy[timedelta]:
    """Values of ``d``."""
    return st.sampled_from([span for span in _SPANS * 9 + _FAR * far if far or span.microseconds % 1000 == 0])


class Times:
    """Draws values of each kind that read some labels."""

    def __init__(self, draw: st.DrawFn, labels: list[Any], numeric: bool) -> None:
        self._draw = draw
        self._labels = labels
        self._numeric = numeric

    def _label(self) -> Any:
        return self._draw(st.sampled_from(self._labels))

    def _time(self) -> Expression:
        return self._draw(
            st.sampled_from((Function("time", (LabelReference(self._label()),)), Attribute(self._label(), "t")))
        )

    def number(self) -> Expression:
        """A number of no time."""
        if self._draw(st.integers(0, 4)) == 0:
            shifted = Arithmetic("+", Attribute(self._label(), "u"), self.span(0))
            moment = self._draw(st.sampled_from((shifted, Attribute(self._label(), "u"))))
            return Function(self._draw(st.sampled_from(DATE_PARTS)), (moment,))
        if self._draw(st.integers(0, 2)) == 0:
            return Attribute(self._label(), self._draw(st.sampled_from("vw")))
        return Literal(self._draw(st.sampled_from(_NUMBERS)))

    def moment(self, depth: int = 2) -> Expression:
        """A timestamp."""
        match self._draw(st.integers(0, 5)) if depth else 0:
            case 4:
                return Arithmetic(self._draw(st.sampled_from("+-")), self.moment(depth - 1), self.span(depth - 1))
            case 5:
                return Arithmetic("+", self.span(depth - 1), self.moment(depth - 1))
            case 1:
                return Function("coalesce", (Attribute(self._label(), "u"), self.moment(depth - 1)))
            case 2 | 3 if not self._numeric:
                return self._time()
        return Attribute(self._label(), "u")

    def span(self, depth: int = 2) -> Expression:
        """A duration."""
        match self._draw(st.integers(0, 9)) if depth else self._draw(st.integers(0, 3)):
            case 0 | 1:
                return Attribute(self._label(), "d")
            case 2 | 3:
                return Literal(self._draw(st.sampled_from(_SPANS * 9 + _FAR)))
            case 4:
                return Arithmetic(self._draw(st.sampled_from("+-")), self.span(depth - 1), self.span(depth - 1))
            case 5:
                sides = [self.span(depth - 1), self.number()]
                return Arithmetic("*", *(sides if self._draw(st.booleans()) else sides[::-1]))
            case 6:
                return Arithmetic("/", self.span(depth - 1), self.number())
            case 7:
                inner = self.span(depth - 1)
                return Function("abs", (inner,)) if self._draw(st.booleans()) else Negative(inner)
            case 8:
                text = Literal("2024-03-15T01:00:00.002+01:00")
                sides = [self.moment(depth - 1), text]
                return Arithmetic("-", *(sides if self._draw(st.booleans()) else sides[::-1]))
        return Arithmetic("-", self.moment(depth - 1), self.moment(depth - 1))

    def ticks(self) -> Expression:
        """A number that counts the numeric time."""
        match self._draw(st.integers(0, 3)):
            case 0:
                return Arithmetic(self._draw(st.sampled_from("+-")), self._time(), self.span(1))
            case 1:
                return Arithmetic("+", self.span(0), self._time())
            case 2:
                return Function("abs", (Arithmetic("-", self._time(), self._time()),))
        return Arithmetic("-", self._time(), self._time())

    def atom(self) -> Condition:
        """A condition on times."""
        operator = self._draw(st.sampled_from((*Operator, Operator.NE, Operator.LE, Operator.GE)))
        match self._draw(st.integers(0, 9)):
            case 0 | 1:
                return Comparison(operator, self.moment(), self.moment())
            case 2:
                return Comparison(operator, self.moment(), Literal("2024-03-15 00:00:00.002"))
            case 3:
                ratio = Arithmetic("/", self.span(1), self.span(1))
                return Comparison(operator, ratio, Literal(self._draw(st.sampled_from(_NUMBERS))))
            case 4:
                low, high = (self.span(1), None) if self._draw(st.booleans()) else (self.span(0), self.span(0))
                return Between(self.span(), low, high, self._draw(st.booleans()))
            case 5:
                items = tuple(
                    map(Literal, self._draw(st.lists(st.sampled_from([*_SPANS, None]), min_size=1, max_size=3)))
                )
                return In(self.span(), items, self._draw(st.booleans()))
            case 6:
                return IsNull(self.moment() if self._draw(st.booleans()) else self.span(), self._draw(st.booleans()))
            case 7 | 8 if self._numeric:
                return Comparison(operator, self.ticks(), self.span(1) if self._draw(st.booleans()) else self.ticks())
        return Comparison(operator, self.span(), self.span())

    def of_set(self, label: str) -> Expression:
        """A duration made of all events of a label."""
        inner = Times(self._draw, [label], self._numeric)
        match self._draw(st.integers(0, 3)):
            case 0 | 1:
                name = self._draw(st.sampled_from(("sum", "avg", "min", "max", "first", "last")))
                return Aggregate(name, inner.span(1))
            case 2:
                names = st.sampled_from(("min", "max", "first", "last"))
                return Arithmetic("-", *(Aggregate(self._draw(names), inner.moment(1)) for _ in range(2)))
        return Arithmetic("+", Aggregate("sum", Attribute(label, "d")), Literal(timedelta(milliseconds=1)))

    def set_atom(self, label: str) -> Condition:
        """A condition on all events of a label."""
        inner = Times(self._draw, [label], self._numeric)
        match self._draw(st.integers(0, 3)):
            case 0:
                tests = st.sampled_from(("increasing", "nondecreasing", "decreasing"))
                return SetTest(self._draw(tests), inner.moment(1) if self._draw(st.booleans()) else inner.span(1))
            case 1:
                return Comparison(Operator.LE, Aggregate("max", inner.moment(1)), self.moment(1))
        return Comparison(
            self._draw(st.sampled_from((Operator.LE, Operator.GE, Operator.NE))), self.of_set(label), self.span(1)
        )
