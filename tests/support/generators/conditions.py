"""Random conditions (Hypothesis strategies) over the attributes of `generators.queries`, true of many events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from cerflow.base.operators import Operator
from cerflow.language.condition import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Between,
    Bracket,
    Comparison,
    Condition,
    Constant,
    Expression,
    Function,
    If,
    In,
    IsNull,
    LabelReference,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    PredicateCall,
    Regexp,
    SetTest,
    Some,
)
from cerflow.logic.analysis.scopes import condition_labels
from support.generators.limits import FLOATS, INTEGERS, TEXTS, mostly
from support.generators.times import Times

TYPES = ("A", "B", "C")
STRINGS = ("", "p", "pq", "Pq", "q_")


@dataclass(frozen=True)
class Fragment:
    """Which part of the language to draw from."""

    depth: int = 3
    relating: bool = True  # atoms over several labels
    outer: bool = True  # labels bound by an enclosing formula
    aggregates: bool = False
    some: bool = False  # existential conditions
    neighbours: bool = False  # brackets with prev
    predicates: bool = False  # those of `support.generators.predicates`
    strict: bool = True  # `:` and `:+`
    windows: bool = True
    projection: bool = True
    nulls: bool = True
    wild: bool = True  # EVENT and NOT
    times: bool = False  # those of `support.generators.times`
    numeric: bool = False  # the time is a number there
    more: bool = False  # AND, ALL, UNLESS, WITHOUT, START, STRICT, NEXT, LAST, MAX
    deadlines: bool = False  # NOT FOLLOWED BY


FIRST = Fragment()


#: Bounds of BETWEEN at the limits
_BOUNDS = ((-(2**63) + 1, 2**63 - 1), (2**53, None), (2**53 + 1, 2**53), (-math.inf, 2**62), (None, 5e-324))


def _literals(*near: Any) -> st.SearchStrategy[Any]:
    """Numbers for literals, now and then at the limits; text has no NaN or infinity."""
    return mostly(st.sampled_from(near), (*INTEGERS, *filter(math.isfinite, FLOATS)), 12)


def _numbers(draw: st.DrawFn, label: str | None) -> Expression:
    """A numeric expression over one event."""
    base: Expression = Attribute(label, draw(st.sampled_from(("v", "v", "w", "k", "n"))))
    match draw(st.integers(0, 13)):
        case 6:
            return _case(draw, label, base, Attribute(label, draw(st.sampled_from("vw"))))
        case 0:
            return Arithmetic(draw(st.sampled_from("+-*/%")), base, Literal(draw(_literals(0, 1, 2, 0.5))))
        case 1:
            return Arithmetic(draw(st.sampled_from("+-")), base, Attribute(label, draw(st.sampled_from(("v", "w")))))
        case 2:
            return Negative(base)
        case 3:
            return Function(draw(st.sampled_from(("abs", "floor", "ceil", "round"))), (base,))
        case 4:
            return Function("length", (_texts(draw, label),))
        case 5:
            return Function("coalesce", (base, Attribute(label, draw(st.sampled_from("vw"))), Literal(1)))
    return base


def _case(draw: st.DrawFn, label: str | None, *values: Expression) -> Expression:
    """CASE over one event, with one or two conditions."""
    null = Literal(None)
    rest = draw(st.sampled_from((*values, null)))
    for _ in range(draw(st.integers(1, 2))):
        test = Comparison(draw(st.sampled_from(Operator)), Attribute(label, draw(st.sampled_from("vwk"))), Literal(1))
        condition = draw(st.sampled_from((test, Not(test), IsNull(_text(draw, label)))))
        rest = If(condition, draw(st.sampled_from(values)), rest)
    return rest


def _text(draw: st.DrawFn, label: str | None) -> Attribute:
    """A column of text; conditions on two of them are asked when the texts of both are known."""
    return Attribute(label, draw(st.sampled_from("sse")))


def _texts(draw: st.DrawFn, label: str | None) -> Expression:
    """A string made of one event."""
    base: Expression = _text(draw, label)
    match draw(st.integers(0, 7)):
        case 5:
            return _case(draw, label, base, Literal("pq"))
        case 0:
            return Function(draw(st.sampled_from(("lower", "upper"))), (base,))
        case 1:
            return Function("coalesce", (base, Literal("p")))
        case 2:
            return Function("||", (base, Literal("q")) if draw(st.booleans()) else (base, base))
        case 3:
            places = draw(st.sampled_from(((2,), (1, 1), (0, 2), (-1,), (2, -1), (1, None))))
            return Function("substr", (base, *map(Literal, places)))
        case 4:
            return Function("substr", (base, Attribute(label, "k"), Literal(1)))
    return base


def _atom_on_one(draw: st.DrawFn, label: str | None) -> Condition:
    operator = st.sampled_from(tuple(Operator))
    lenient = st.sampled_from((Operator.NE, Operator.GE, Operator.GE, Operator.GT))
    match draw(st.integers(0, 15)):
        case 0:
            return Comparison(draw(operator), _numbers(draw, label), Literal(draw(_literals(0, 1, 2))))
        case 1:
            return Comparison(
                draw(operator), _text(draw, label), Literal(draw(mostly(st.sampled_from(STRINGS), TEXTS)))
            )
        case 2:
            pattern = draw(st.sampled_from(("%", "p%", "%q%", "_q", "q\\_", "%P%")))
            return Like(_text(draw, label), pattern, draw(st.booleans()))
        case 3:
            return Regexp(_text(draw, label), draw(st.sampled_from(("q", "^p?", "[pP]q$"))), draw(st.booleans()))
        case 4:
            items = tuple(Literal(i) for i in draw(st.lists(_literals(0, 1, 2, None), min_size=1, max_size=3)))
            return In(Attribute(label, draw(st.sampled_from(("v", "k")))), items, draw(st.booleans()))
        case 5:
            low, high = draw(mostly(st.sampled_from(((0, 2), (0.5, 3), (None, 2), (1, None))), _BOUNDS))
            ends = [None if end is None else Literal(end) for end in (low, high)]
            return Between(_numbers(draw, label), ends[0], ends[1], draw(st.integers(0, 3)) == 0)
        case 6:
            return IsNull(Attribute(label, draw(st.sampled_from(("v", "w", "s", "e")))), draw(st.integers(0, 3)) > 0)
        case 7:
            return Comparison(draw(lenient), _texts(draw, label), Literal(draw(st.sampled_from(("pq", "p", "pqq")))))
        case 8:
            kind = Literal(draw(st.sampled_from(TYPES)))
            return Comparison(draw(st.sampled_from((Operator.EQ, Operator.NE))), Attribute(label, "type"), kind)
        case 9:
            return Constant(draw(st.integers(0, 3)) > 0)
    return Comparison(
        draw(lenient), Attribute(label, draw(st.sampled_from("vvw"))), Literal(draw(_literals(-1, -1, 0, 1)))
    )


def atom_on_several(draw: st.DrawFn, labels: list[str]) -> Condition:
    first, second = draw(st.sampled_from(labels)), draw(st.sampled_from(labels))
    lenient = st.sampled_from((Operator.NE, Operator.LE, Operator.GE, Operator.LE, Operator.GE, Operator.LT))
    match draw(st.integers(0, 8)):
        case 7:
            third = Attribute(draw(st.sampled_from(labels)), "w")
            test = Comparison(draw(lenient), Attribute(first, "w"), Attribute(second, "v"))
            chosen = If(test, Attribute(first, "v"), If(Not(test), third, Literal(1)))
            return Comparison(draw(lenient), chosen, Attribute(second, draw(st.sampled_from("vw"))))
        case 0:
            return Comparison(Operator.EQ, Attribute(first, "k"), Attribute(second, "k"))
        case 1:
            return Comparison(draw(lenient), Attribute(first, "w"), Attribute(second, "v"))
        case 2:
            return Comparison(draw(lenient), _text(draw, first), _text(draw, second))
        case 3:
            third = draw(st.sampled_from(labels))
            total = Arithmetic(draw(st.sampled_from("+-")), Attribute(second, "v"), Attribute(third, "v"))
            return Comparison(draw(lenient), Attribute(first, "v"), total)
        case 4:
            name = draw(st.sampled_from(("position", "time")))
            gap = Arithmetic("-", Function(name, (LabelReference(second),)), Function(name, (LabelReference(first),)))
            return Comparison(draw(lenient), gap, Literal(draw(_literals(*range(-1, 5)))))
        case 5:
            known = Function("coalesce", (Attribute(first, "w"), Attribute(second, "w"), Literal(1)))
            return Comparison(draw(lenient), known, Attribute(second, "v"))
        case 6:
            known = Function("coalesce", (_text(draw, first), _text(draw, second), Literal("p")))
            return Comparison(draw(lenient), known, _texts(draw, second))
    return Comparison(draw(lenient), Attribute(first, "v"), Attribute(second, "v"))


def call(draw: st.DrawFn, labels: Sequence[str | None], aggregates: bool = False) -> Condition:
    """A call of a predicate of `support.generators.predicates` on events of some of the labels."""
    named = [label for label in labels if label is not None]
    if aggregates and named and draw(st.integers(0, 3)) == 0:
        others = (
            aggregate(draw, draw(st.sampled_from(named))),
            Literal(1.5),
            _numbers(draw, draw(st.sampled_from(labels))),
        )
        return PredicateCall("close", (aggregate(draw, draw(st.sampled_from(named))), draw(st.sampled_from(others))))

    def label() -> str | None:
        return draw(st.sampled_from(labels))

    def anything() -> Expression:
        match draw(st.integers(0, 9)):
            case 0 | 1:
                return LabelReference(label())
            case 2:
                return Literal(draw(st.sampled_from((0, 1.5, "p", True, None))))
            case 3:
                return Function(draw(st.sampled_from(("position", "time"))), (LabelReference(label()),))
            case 4:
                return _numbers(draw, label())
        return Attribute(label(), draw(st.sampled_from(("v", "w", "s", "k", "n", "t", "type"))))

    match draw(st.integers(0, 8)):
        case 8:
            # Arguments of different labels, several of one label, and constants.
            values = [Attribute(label(), draw(st.sampled_from("vwsknt"))) for _ in range(3)]
            values[2:] = draw(st.sampled_from(([], values[2:], [LabelReference(label())], [Literal(2)])))
            return PredicateCall("weighed", tuple(values))
        case 6 | 7:
            one = label()
            name = draw(st.sampled_from(("narrow", "alike", "walk")))
            base = Attribute(one, draw(st.sampled_from("vwn"))) if name == "narrow" else Attribute(one, "s")
            if name == "walk":
                labels = [one]
                base = draw(st.sampled_from((LabelReference(one), Attribute(one, "v"), Attribute(one, "t"), base)))
            return PredicateCall(name, (base, *draw(st.sampled_from(((), (Literal(1),), (Attribute(one, "v"),))))))
        case 0 | 1:
            return PredicateCall("close", (_numbers(draw, label()), _numbers(draw, label())))
        case 2:
            name = draw(st.sampled_from(("some", "few")))
            one = label()
            base = Attribute(one, draw(st.sampled_from("vw"))) if name == "some" else Attribute(one, "s")
            return PredicateCall(name, (base, *draw(st.sampled_from(((), (Literal(1),))))))
    return PredicateCall("ordered", (anything(), *(anything() for _ in range(draw(st.integers(0, 2))))))


def _atom_on_set(draw: st.DrawFn, labels: list[str], fragment: Fragment) -> Condition:
    """An aggregate or a test on a set, perhaps beside labels that stand for one event each."""
    label = draw(st.sampled_from(labels))
    lenient = st.sampled_from((Operator.NE, Operator.LE, Operator.GE, Operator.LT, Operator.EQ))
    match draw(st.integers(0, 11)):
        case 0 | 1 | 2:
            return _set_test(draw, label)
        case 3:
            return _atom_on_strings(draw, label)
        case 4:
            # Rounding leaves thresholds such as these alone.
            spread = Aggregate("stddev", Attribute(label, draw(st.sampled_from("vw"))))
            return Comparison(draw(lenient), spread, Literal(draw(st.sampled_from((0.1234, 0.9876, 1.2345)))))
        case 5:
            either = draw(st.sampled_from((And, Or)))
            return Bracket(label, either(_set_test(draw, label), _atom_on_one(draw, None)))
        case 6:
            return IsNull(aggregate(draw, label), draw(st.booleans()))
        case 7 | 8 if fragment.relating:
            single = Attribute(draw(st.sampled_from(labels)), draw(st.sampled_from("vw")))
            return Comparison(draw(lenient), single, aggregate(draw, label))
        case 9 if fragment.relating:
            other = aggregate(draw, draw(st.sampled_from(labels)))
            third = Attribute(draw(st.sampled_from(labels)), "v")
            right = Arithmetic(draw(st.sampled_from("+-*")), other, third) if draw(st.booleans()) else other
            return Comparison(draw(lenient), aggregate(draw, label), right)
    return Comparison(draw(lenient), aggregate(draw, label), Literal(draw(_literals(*range(4)))))


def _set_test(draw: st.DrawFn, label: str) -> Condition:
    name = draw(st.sampled_from(("increasing", "decreasing", "nondecreasing", "nonincreasing")))
    return SetTest(name, Attribute(label, draw(st.sampled_from("vws"))))


def _atom_on_strings(draw: st.DrawFn, label: str) -> Condition:
    """Strings that an aggregate selects, and functions of them."""
    chosen = Aggregate(draw(st.sampled_from(("min", "max", "first", "last"))), Attribute(label, "s"))
    match draw(st.integers(0, 3)):
        case 0:
            return Like(chosen, draw(st.sampled_from(("%", "p%", "%q%"))), draw(st.booleans()))
        case 1:
            size = Function("length", (chosen,))
            return Comparison(draw(st.sampled_from((Operator.LE, Operator.GE))), size, Literal(1))
        case 2:
            upper = Function("upper", (chosen,))
            return Comparison(draw(st.sampled_from((Operator.NE, Operator.LE))), upper, Literal("PQ"))
    return Comparison(draw(st.sampled_from((Operator.GE, Operator.NE, Operator.LT))), chosen, Literal("p"))


def aggregate(draw: st.DrawFn, label: str) -> Expression:
    """An aggregate that gives a number, without those that are rounded in another way by each evaluation."""
    name = draw(st.sampled_from(("count", "count", "sum", "sum", "avg", "min", "max", "first", "last")))
    if name == "count" and draw(st.booleans()):
        return Aggregate(name, LabelReference(label))
    value: Expression = Attribute(label, draw(st.sampled_from("vw")))
    if draw(st.integers(0, 5)) == 0:
        value = _case(draw, label, value, Literal(1))
    elif draw(st.integers(0, 5)) == 0:
        value = Arithmetic(draw(st.sampled_from("+*-/")), value, Attribute(label, draw(st.sampled_from("vk"))))
    return Aggregate(name, value)


def _in_bracket(draw: st.DrawFn, own: str, labels: list[str], depth: int) -> Condition:
    match draw(st.integers(0, 5)) if depth else 5:
        case 0 | 1:
            return And(_in_bracket(draw, own, labels, depth - 1), _in_bracket(draw, own, labels, depth - 1))
        case 2 | 3:
            return Or(_in_bracket(draw, own, labels, depth - 1), _in_bracket(draw, own, labels, depth - 1))
        case 4:
            return Not(_in_bracket(draw, own, labels, depth - 1))
    if labels and draw(st.integers(0, 3)) == 0:
        other = draw(st.sampled_from(labels))
        return Comparison(draw(st.sampled_from(tuple(Operator))), Attribute(None, "v"), Attribute(other, "v"))
    return _atom_on_one(draw, None)


def _some(draw: st.DrawFn, labels: list[str], fragment: Fragment) -> Condition:
    """An existential condition; now and then it leaves out a label that must have one event then."""
    one = draw(st.sampled_from(labels))
    inner: Condition
    match draw(st.integers(0, 5)):
        case 0:
            inner = Bracket(one, _in_bracket(draw, one, labels if fragment.relating else [], 2))
        case 1:
            inner = draw(st.sampled_from((And, Or)))(_atom_on_one(draw, one), Not(_atom_on_one(draw, one)))
        case 2 | 3 | 4 if fragment.relating:
            inner = atom_on_several(draw, labels)
            if draw(st.booleans()):
                inner = draw(st.sampled_from((And, Or)))(inner, atom_on_several(draw, labels))
        case _:
            inner = _atom_on_one(draw, one)
    read = list(condition_labels(inner))
    if not read:
        return inner
    listed = read[1:] if len(read) > 1 and draw(st.integers(0, 4)) == 0 else read
    return Some(tuple(listed), inner)


def _between_neighbours(draw: st.DrawFn) -> Condition:
    """A condition that compares an event with the one of its label before it."""
    lenient = st.sampled_from((Operator.NE, Operator.LE, Operator.GE, Operator.GE, Operator.GT))
    match draw(st.integers(0, 4)):
        case 0:
            name = draw(st.sampled_from(("position", "time")))
            here = Function(name, (LabelReference(None),))
            gap = Arithmetic("-", here, Function("prev", (here,)))
            found: Condition = Comparison(Operator.LE, gap, Literal(draw(st.integers(1, 4))))
        case 1:
            found = Comparison(draw(lenient), Attribute(None, "s"), Function("prev", (Attribute(None, "s"),)))
        case _:
            found = Comparison(draw(lenient), _numbers(draw, None), Function("prev", (_numbers(draw, None),)))
    match draw(st.integers(0, 4)):
        case 0:
            return And(found, _atom_on_one(draw, None))
        case 1:
            return Or(found, _atom_on_one(draw, None))
        case 2:
            return Not(found)
    return found


@st.composite
def conditions(draw: st.DrawFn, labels: list[str], fragment: Fragment = FIRST, depth: int = 2) -> Condition:
    """A condition over some of the labels."""
    if depth and draw(st.integers(0, 2)) == 0:
        left = draw(conditions(labels, fragment, depth - 1))
        match draw(st.integers(0, 4)):
            case 0 | 1:
                return And(left, draw(conditions(labels, fragment, depth - 1)))
            case 2 | 3:
                return Or(left, draw(conditions(labels, fragment, depth - 1)))
        return Not(left)
    kind = draw(st.integers(0, 9))
    if fragment.times and kind < 6:
        one = draw(st.sampled_from(labels))
        times = Times(draw, labels if fragment.relating else [one], fragment.numeric)
        if fragment.aggregates and kind < 2:
            return times.set_atom(one)
        return Bracket(one, Times(draw, [None], fragment.numeric).atom()) if kind == 2 else times.atom()
    if fragment.some and kind != 9:
        return _some(draw, labels, fragment)
    if fragment.neighbours and kind in (0, 3, 4, 5, 6):
        return Bracket(draw(st.sampled_from(labels)), _between_neighbours(draw))
    if fragment.predicates and kind in (1, 2, 5, 6):
        one = draw(st.sampled_from(labels))
        if kind == 1:
            return Bracket(one, draw(st.sampled_from((And, Or)))(call(draw, [None]), _atom_on_one(draw, None)))
        return call(draw, labels if fragment.relating else [one], fragment.aggregates)
    if fragment.aggregates and kind in (0, 1, 2):
        return _atom_on_set(draw, labels, fragment)
    if kind in (3, 4):
        others = labels if fragment.relating else []
        label = draw(st.sampled_from(labels))
        return Bracket(label, _in_bracket(draw, label, others, 2))
    if fragment.relating and len(labels) > 1 and kind in (5, 6, 7, 8):
        return atom_on_several(draw, labels)
    return _atom_on_one(draw, draw(st.sampled_from(labels)))
