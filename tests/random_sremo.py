"""Random expressions with memory (Hypothesis strategies)."""

from __future__ import annotations

from hypothesis import strategies as st

from cerflow.language.condition import And, Attribute, Comparison, Condition, Constant, Literal, Not, Operator, Or
from cerflow.language.formula import CountWindow
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

TYPES = ("A", "B")


def _condition(draw: st.DrawFn, registers: bool, depth: int = 1) -> Condition:
    match draw(st.integers(0, 9)):
        case 0:
            return Constant(True)
        case 1 if depth:
            return Not(_condition(draw, registers, depth - 1))
        case 2 if depth:
            return And(_condition(draw, registers, depth - 1), _condition(draw, registers, depth - 1))
        case 3 if depth:
            return Or(_condition(draw, registers, depth - 1), _condition(draw, registers, depth - 1))
        case 4 | 5 if registers:
            operator = draw(st.sampled_from((Operator.EQ, Operator.LE, Operator.GT)))
            return Comparison(operator, Attribute(None, "v"), Attribute(draw(st.sampled_from(("r", "s"))), "v"))
    return Comparison(Operator.EQ, Attribute(None, "type"), Literal(draw(st.sampled_from(TYPES))))


def _expression(draw: st.DrawFn, depth: int, registers: bool) -> Sremo:
    def below(with_registers: bool = registers) -> Sremo:
        return _expression(draw, depth - 1, with_registers)

    match draw(st.integers(0, 17)) if depth else 17:
        case 0 | 1 | 2:
            return Concatenation(below(), below())
        case 3 | 4:
            return Alternation(below(), below())
        case 5:
            # Registers that both sides write are refused, so here there are none.
            return Intersection(below(False), below(False))
        case 6:
            return draw(st.sampled_from((Star, Plus, Optional)))(below())
        case 7:
            return Complement(below())
        case 8 | 9:
            parts = tuple(below() for _ in range(draw(st.integers(1, 3))))
            return draw(st.sampled_from((AnyMatch, NextMatch)))(parts)
        case 10:
            repeated = draw(st.sampled_from((Star, Plus)))(below())
            return draw(st.sampled_from((AnyMatch, NextMatch)))((repeated,))
        case 11:
            return Unordered(tuple(below() for _ in range(draw(st.integers(1, 3)))))
        case 12:
            return Windowed(below(), CountWindow(draw(st.integers(1, 3))))
        case 13:
            return draw(st.sampled_from((Epsilon(), Empty())))
    label = draw(st.sampled_from((None, "event", "event", "x")))
    written: tuple[str, ...] = draw(st.sampled_from(((), (), ("r",), ("s",), ("r", "s")))) if registers else ()
    return Terminal(_condition(draw, registers), label, written)


@st.composite
def _expressions(draw: st.DrawFn, depth: int) -> Sremo:
    return _expression(draw, draw(st.integers(0, depth)), True)


def expressions(depth: int = 3) -> st.SearchStrategy[Sremo]:
    """Expressions over attributes ``type`` and ``v``, registers ``r`` and ``s``."""
    return _expressions(depth)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    """Conditions of terminals, over the event read and the registers ``r`` and ``s``."""
    return _condition(draw, True)


def strings(max_size: int = 4) -> st.SearchStrategy[list[dict[str, object]]]:
    """Strings of events of types A and B; ``v`` is 0, 1 or null."""
    event = st.fixed_dictionaries({"type": st.sampled_from(TYPES), "v": st.sampled_from((0, 1, 1, None))})
    return st.lists(event, max_size=max_size)
