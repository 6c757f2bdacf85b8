"""Formulas with conditions on single events to UCEA (P1 Theorem 3; P2 Proposition 5.2, Theorems 5.3 and 6.2), and back.

The constructions are those of the engine, one for each operator. Their results differ from the papers' only in size:
equivalent states are merged.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, overload

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.transducer import Transducer
from cerflow.base.errors import one_of
from cerflow.language.builder.given import FormulaGiven, of_formula
from cerflow.language.condition import Condition
from cerflow.language.formula import Formula
from cerflow.language.select import Select
from cerflow.logic.conditions.guards import TypeTest
from cerflow.theory.deciding.finite_memory import UnboundedMemoryError, determinize
from cerflow.theory.from_automata import compile_star, formula_of, star_formula_of
from cerflow.theory.papers.model.faults import NotMemorylessError
from cerflow.theory.papers.model.models import CEA, UCEA
from cerflow.theory.papers.translations.conversions import as_complex_event_automaton, to_engine, unary_from_engine
from cerflow.theory.rewriting.first_order.reading import query_from_first_order


@overload
def compile_cel(formula: FormulaGiven, *, reading: Literal["second-order"] = "second-order") -> UCEA: ...
@overload
def compile_cel(formula: FormulaGiven, *, reading: Literal["first-order"]) -> CEA: ...
def compile_cel(
    formula: FormulaGiven, *, reading: Literal["second-order", "first-order"] = "second-order"
) -> UCEA | CEA:
    """The automaton with ``C ∈ ⟦A⟧_n`` iff C is a complex event of the formula over the events 0 … n.

    All operators of the language are allowed, including windows of events, if conditions are on single events. A
    condition on an earlier event, as in ``A AS x ; (B FILTER x.v > 1)``, becomes part of the states: the formula is
    rewritten (P1 Theorem 2), then determinised. With ``reading="first-order"`` it is the CEA of the first-order formula
    (P1 Theorem 3), whatever formula is given: C is a set of positions.

    Raises `NotMemorylessError` for conditions that relate events, `QueryError` for labels out of scope or variables
    that are not well-formed, and `UnsupportedQueryError` for a too large automaton, and in the second-order reading for
    EVENT and NOT, which label an event with a type that the formula does not name.
    """
    one_of(reading, "reading", "second-order", "first-order")
    if reading == "second-order":
        return _unary(formula)
    return as_complex_event_automaton(_unary(formula, first_order=True))


@of_formula
def _unary(formula: Formula, *, first_order: bool = False) -> UCEA:
    transducer = compile_formula(query_from_first_order(Select(formula)).formula if first_order else formula)
    if transducer.registers:
        try:
            transducer = determinize(transducer)
        except UnboundedMemoryError as error:
            raise NotMemorylessError(f"no automaton without memory has these complex events: {error.reason}") from error
    return unary_from_engine(transducer)


@of_formula
def compile_cel_star(formula: Formula) -> UCEA:
    """The automaton whose complex events under *-semantics are those of the formula (Theorem 5.3).

    Operators are event types, AS, renaming, FILTER, OR, ``;`` and ``+``. Raises the errors of `compile_cel`, and
    `UnsupportedQueryError` for other operators and for conditions that relate labels.
    """
    return unary_from_engine(compile_star(formula))


def to_formula(automaton: CEA | UCEA | Transducer, *, types: Collection[str] | None = None) -> Formula:
    """A formula with the complex events of an automaton without registers, by Kleene's construction (Theorem 6.2).

    States are eliminated one by one. If a state skips any events, its incoming and outgoing parts are joined by ``;``,
    otherwise by ``:``; repetitions become ``+`` and ``:+``. START and PROJECT are used only if needed: for runs that
    begin with the first event, and for events that are read but left out. ``types`` are all existing types of events;
    without it there may be any. Raises `UnsupportedQueryError` for registers, for tests that no formula expresses, for
    events labelled under unknown types, and for a too large result.
    """
    return formula_of(_engine(automaton), types=types)


def star_to_formula(automaton: CEA | UCEA | Transducer, *, types: Collection[str] | None = None) -> Formula:
    """A formula of ``;``, ``+`` and OR with the complex events of the automaton under *-semantics (Theorem 5.3).

    Transitions without labels are ignored. Options and errors are those of `to_formula`.
    """
    return star_formula_of(_engine(automaton), types=types)


def _engine(automaton: CEA | UCEA | Transducer) -> Transducer:
    return automaton if isinstance(automaton, Transducer) else to_engine(automaton)


def of_type(name: str) -> Condition:
    """``tuples(R)``: the condition that the event is of a type."""
    return TypeTest(name)
