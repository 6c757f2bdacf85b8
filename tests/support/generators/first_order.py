"""Random formulas for the first-order reading, unsafe ones and re-used variables included."""

from __future__ import annotations

from hypothesis import strategies as st

from cerflow.base.operators import Operator
from cerflow.language.condition import (
    And,
    Attribute,
    Comparison,
    Condition,
    Literal,
    Not,
    Or,
    operands,
)
from cerflow.language.formula import (
    AnyEvent,
    As,
    CountWindow,
    Disjunction,
    EventType,
    Filter,
    Formula,
    Iteration,
    NotEvent,
    Selection,
    Sequence,
    Strategy,
    Within,
)
from cerflow.language.node import walk
from cerflow.logic.analysis.first_order import bound_variables, is_well_formed
from cerflow.logic.analysis.scopes import condition_labels
from support.generators.limits import INTEGERS, mostly

VARIABLES = ("x", "y", "z")
TYPES = ("A", "B")


def _condition(draw: st.DrawFn, names: list[str], depth: int = 1) -> Condition:
    if depth and draw(st.integers(0, 3)) == 0:
        left = _condition(draw, names, depth - 1)
        match draw(st.integers(0, 2)):
            case 0:
                return And(left, _condition(draw, names, depth - 1))
            case 1:
                return Or(left, _condition(draw, names, depth - 1))
        return Not(left)
    operator = draw(st.sampled_from((Operator.EQ, Operator.LE, Operator.GE, Operator.NE)))
    left = Attribute(draw(st.sampled_from(names)), "v")
    if draw(st.booleans()):
        return Comparison(operator, left, Attribute(draw(st.sampled_from(names)), "v"))
    return Comparison(operator, left, Literal(draw(mostly(st.integers(0, 1), INTEGERS, 12))))


def _formula(draw: st.DrawFn, depth: int, outer: list[str], variables: tuple[str, ...], strategies: bool) -> Formula:
    def below(also: list[str] = outer) -> Formula:
        return _formula(draw, depth - 1, also, variables, strategies)

    match draw(st.integers(0, 11)) if depth else 11:
        case 0 | 1 | 2 | 3:
            first = below()
            second = below([*outer, *sorted(bound_variables(first))])
            return Sequence(second, first) if draw(st.integers(0, 3)) == 0 else Sequence(first, second)
        case 4 | 5:
            return Disjunction(below(), below())
        case 6 | 7:
            return Iteration(below())
        case 8 | 9:
            inner = below()
            names = [*sorted(bound_variables(inner)), *outer]
            return Filter(inner, _condition(draw, names)) if names else inner
        case 10 if strategies:
            if draw(st.booleans()):
                return Within(below(), CountWindow(draw(st.integers(1, 4))))
            strategy = draw(st.sampled_from((Strategy.STRICT, Strategy.NEXT, Strategy.LAST, Strategy.MAX)))
            return Selection(strategy, below())
    event: Formula = EventType(draw(st.sampled_from(TYPES)))
    match draw(st.integers(0, 9)):
        case 0:
            event = AnyEvent()
        case 1:
            event = NotEvent(EventType(draw(st.sampled_from(TYPES))))
    return event if draw(st.integers(0, 5)) == 0 else As(event, draw(st.sampled_from(variables)))


@st.composite
def _formulas(draw: st.DrawFn, depth: int, variables: tuple[str, ...], strategies: bool) -> Formula:
    return _formula(draw, depth, [], variables, strategies)


def first_order_formulas(
    depth: int = 3, variables: tuple[str, ...] = (*VARIABLES, "A"), *, strategies: bool = False
) -> st.SearchStrategy[Formula]:
    """Strictly well-formed formulas; ``A`` is the name of an event type and of a variable."""
    return _formulas(depth, variables, strategies).filter(is_well_formed)


@st.composite
def related_formulas(draw: st.DrawFn, *, chosen: bool = False) -> Formula:
    """Formulas in which many conditions relate a variable to one outside of a repetition.

    With ``chosen`` a strategy stands in place of the repetition.
    """

    def part(outer: list[str], own: tuple[str, ...]) -> Formula:
        inner = _formula(draw, draw(st.integers(0, 2)), outer, own, False)
        names = [*sorted(bound_variables(inner)), *outer]
        return Filter(inner, _condition(draw, names)) if names and draw(st.booleans()) else inner

    first = As(EventType(draw(st.sampled_from(TYPES))), "x")
    again: Formula
    if chosen:
        strategies = (Strategy.NEXT, Strategy.LAST, Strategy.MAX)
        own = Disjunction(part(["x"], ("y", "z")), part(["x"], ("y", "w")))
        again = Selection(draw(st.sampled_from(strategies)), own if draw(st.booleans()) else own.left)
    else:
        again = Iteration(part(["x"], ("y", "z", "y")))
    found: Formula = Sequence(again, first) if draw(st.booleans()) else Sequence(first, again)
    match draw(st.integers(0, 3)):
        case 0:
            found = Sequence(found, part(["x"], ("y", "w")))
        case 1:
            found = Iteration(found)
        case 2:
            found = Disjunction(found, part([], ("x", "y")))
    return found


def small_streams() -> st.SearchStrategy[list[dict[str, object]]]:
    """Streams of one to four events of types A and B, or a C; ``v`` is 0, 1, 2, null or an integer at a limit."""
    value = mostly(st.sampled_from((0, 1, 2, None)), INTEGERS, 6)
    event = st.fixed_dictionaries({"type": st.sampled_from(("A", "A", "B", "B", "C")), "v": value})
    return st.lists(event, min_size=1, max_size=4)


def is_unary(formula: Formula) -> bool:
    """Whether every atom of every filter reads one variable at most (P1 §5.1)."""
    return all(
        len(condition_labels(atom)) <= 1
        for current in walk(formula)
        if isinstance(current, Filter | NotEvent) and current.condition is not None
        for atom in operands(current.condition, And | Or | Not)
    )
