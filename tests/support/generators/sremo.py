"""Random expressions with memory (Hypothesis strategies)."""

from __future__ import annotations

from hypothesis import strategies as st

from cerflow.base.operators import Operator
from cerflow.language.condition import (
    And,
    Attribute,
    Comparison,
    Condition,
    Constant,
    Literal,
    Not,
    Or,
)
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Window
from cerflow.language.sremo import (
    Alternation,
    AnyMatch,
    Complement,
    Concatenation,
    Empty,
    Epsilon,
    Intersection,
    NextMatch,
    Optional,
    Plus,
    Sremo,
    Star,
    Terminal,
    Unordered,
    Windowed,
)
from support.generators.limits import INTEGERS, SIZES, first, later, mostly

TYPES = ("A", "B")


def _condition(draw: st.DrawFn, depth: int = 1) -> Condition:
    match draw(st.integers(0, 9)):
        case 0:
            return Constant(True)
        case 1 if depth:
            return Not(_condition(draw, depth - 1))
        case 2 if depth:
            return And(_condition(draw, depth - 1), _condition(draw, depth - 1))
        case 3 if depth:
            return Or(_condition(draw, depth - 1), _condition(draw, depth - 1))
        case 4 | 5:
            operator = draw(st.sampled_from((Operator.EQ, Operator.LE, Operator.GT)))
            return Comparison(operator, Attribute(None, "v"), Attribute(draw(st.sampled_from(("r", "s"))), "v"))
    return Comparison(Operator.EQ, Attribute(None, "type"), Literal(draw(st.sampled_from(TYPES))))


def window(draw: st.DrawFn, timed: bool) -> Window:
    """Few events; with ``timed`` also a few milliseconds, or a few of the attribute ``n``."""
    match draw(st.integers(0, 2)) if timed else 0:
        case 1:
            return DurationWindow(draw(mostly(st.integers(1, 4).map(lambda n: n * 1000), SIZES, 12)))
        case 2:
            return AttributeWindow(draw(mostly(st.integers(1, 3), SIZES, 12)), "n")
    return CountWindow(draw(st.integers(1, 4)))


#: The operators, some of them more often than others; Terminal stands for all that has no operands.
OPERATORS: tuple[type[Sremo], ...] = (
    Terminal,
    Concatenation,
    Alternation,
    Intersection,
    Star,
    Plus,
    Optional,
    Complement,
    AnyMatch,
    NextMatch,
    Unordered,
    Windowed,
)
_CHOICES = (*OPERATORS, Concatenation, Concatenation, Alternation, Windowed, AnyMatch, NextMatch)


def _expression(
    draw: st.DrawFn, depth: int, registers: tuple[str, ...], timed: bool, operator: type[Sremo] | None = None
) -> Sremo:
    def below(written: tuple[str, ...] = registers) -> Sremo:
        return _expression(draw, depth - 1, written, timed)

    operator = operator or (draw(st.sampled_from(_CHOICES)) if depth else Terminal)
    if operator is Intersection:
        # What is read after registers that both sides write is refused, so most sides write different ones.
        apart = draw(st.integers(0, 2)) > 0
        return Intersection(below(registers[:1] if apart else registers), below(registers[1:] if apart else registers))
    if operator is Windowed:
        return Windowed(below(), window(draw, timed))
    if operator in (AnyMatch, NextMatch) and draw(st.booleans()):
        return operator((draw(st.sampled_from((Star, Plus)))(below()),))
    if operator in (AnyMatch, NextMatch, Unordered):
        return operator(tuple(below() for _ in range(draw(st.integers(1, 3)))))
    if operator in (Concatenation, Alternation):
        return operator(below(), below())
    if operator is not Terminal:
        return operator(below())
    if draw(st.integers(0, 15)) == 0:
        return draw(st.sampled_from((Epsilon(), Empty())))
    label = draw(st.sampled_from((None, "event", "event", "x")))
    written = draw(st.sampled_from(((), (), *((r,) for r in registers), registers)))
    return Terminal(_condition(draw), label, written)


@st.composite
def _expressions(draw: st.DrawFn, depth: int, timed: bool, operator: type[Sremo] | None) -> Sremo:
    depth = draw(st.integers(0 if operator is None else 1, depth))
    return _expression(draw, depth, ("r", "s"), timed, operator)


def expressions(
    depth: int = 3, *, timed: bool = False, operator: type[Sremo] | None = None
) -> st.SearchStrategy[Sremo]:
    """Expressions over attributes ``type`` and ``v``, registers ``r`` and ``s``; ``timed`` ones also over ``n``.

    With an ``operator`` this is the outermost.
    """
    return _expressions(depth, timed, operator)


@st.composite
def _windowed(draw: st.DrawFn, depth: int, operator: type[Sremo] | None) -> Sremo:
    expression = draw(expressions(depth, timed=True, operator=operator))
    return Windowed(expression, window(draw, True)) if draw(st.integers(0, 3)) else expression


def windowed_expressions(depth: int = 3, operator: type[Sremo] | None = None) -> st.SearchStrategy[Sremo]:
    """The same, and most of them in a window of events, of time or of ``n``, so that ``!`` can be evaluated."""
    return _windowed(depth, operator)


@st.composite
def _streams(draw: st.DrawFn, max_size: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    far = draw(st.integers(0, 2)) == 2
    t, n = first(draw, far), first(draw, far)
    for _ in range(draw(st.integers(0, max_size))):
        t, n = later(draw, t, st.integers(0, 2), far), later(draw, n, st.integers(0, 1), far)
        rows.append(
            {
                "type": draw(st.sampled_from((*TYPES, "C"))),
                "t": t,
                "v": draw(mostly(st.sampled_from((0, 1, 1, 2, None)), INTEGERS, 3 if far else 12)),
                "n": draw(st.sampled_from((n, n, n, None))),
            }
        )
    return rows


def streams(max_size: int = 7) -> st.SearchStrategy[list[dict[str, object]]]:
    """Streams of events of types A, B and C with a time ``t``; ``v`` may be null, and so may ``n``, which grows.

    One of three has many values at the limits.
    """
    return _streams(max_size)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    """Conditions of terminals, over the event read and the registers ``r`` and ``s``."""
    return _condition(draw, True)


def strings(max_size: int = 4) -> st.SearchStrategy[list[dict[str, object]]]:
    """Strings of events of types A and B; ``v`` is 0, 1, null or an integer at a limit."""
    value = mostly(st.sampled_from((0, 1, 1, None)), INTEGERS, 6)
    event = st.fixed_dictionaries({"type": st.sampled_from(TYPES), "v": value})
    return st.lists(event, max_size=max_size)
