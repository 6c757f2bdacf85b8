"""From transducers back to formulas."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches
from cerflow.automata.model.transducer import TYPE_LABEL, Transducer, Transition
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.base.operators import Operator
from cerflow.language.condition import (
    Attribute,
    Comparison,
    Literal,
)
from cerflow.language.formula import Project, Start
from cerflow.language.node import walk
from cerflow.language.parser import parse_formula
from cerflow.logic.conditions.guards import TypeTest
from cerflow.logic.rewriting.rebuild import size
from cerflow.theory.from_automata import formula_of, star_formula_of
from cerflow.theory.semantics.formulas import Denotation
from support.generators.conditions import TYPES, Fragment
from support.generators.queries import formulas, stream_of, streams
from support.generators.transducers import transducers
from support.meanings import readable
from support.runners import examples

SMALL = 800
UNARY = Fragment(relating=False, outer=False, windows=False)


def found_by(formula, events):
    denotation = Denotation(formula, events)
    return {(n, c) for n in range(len(events)) for c in denotation(0, n)}


def has(formula, kind):
    return any(isinstance(n, kind) for n in walk(formula))


# --- from compiled formulas ------------------------------------------------------------------------------------------


@examples(120)
@given(st.one_of(formulas(UNARY), formulas(replace(UNARY, more=True, depth=2))), streams(max_size=6), st.booleans())
def test_theorem_6_2_on_compiled_formulas(formula, rows, closed):
    events = stream_of(rows)
    transducer = compile_formula(formula)
    if transducer.registers:
        return
    try:
        back = formula_of(transducer, types=TYPES if closed else None)
    except UnsupportedQueryError:
        assert not closed
        return
    if size(back) <= SMALL:
        assert readable(back)
        assert found_by(back, events) == found_by(formula, events)


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("A ; B", "A ; B"),
        ("A : B", "A : B"),
        ("A+ ; B", "A+ ; B"),
        ("A ; B+", "A ; B+"),
        ("A ; B :+ ; C", "A ; B ; C OR ((A ; B) : (B :+ ; C))"),
        ("(A ; B) :+", "A ; (B OR ((B : A)+ ; B))"),
        ("(A ; B) [A -> x]", "A [A -> x] ; B"),
        ("(A ; B) FILTER A.v > 1 AND B.v < 2", "(A FILTER A.v > 1) ; (B FILTER B.v < 2)"),
        ("A FILTER A.v > 1 OR position(A) < 3", "A FILTER A.v > 1 OR position(A) < 3"),
        ("s>A ; B", "s>A ; B"),
        ("EVENT", "EVENT"),
        ("PROJECT A (A ; B)", "PROJECT A (A ; B)"),
        ("PROJECT A (A ; A [A -> x])", """PROJECT A (A ; A [A -> "hidden'1"])"""),
        ("A WITHIN 3 EVENTS", "A WITHIN 3 EVENTS"),
        ("A FILTER FALSE", "EVENT FILTER FALSE"),
    ],
)
def test_back_from_the_automaton(text, back):
    assert formula_of(compile_formula(parse_formula(text))) == parse_formula(back)


def test_long_sequences():
    text = " ; ".join(f"A AS x{k}" for k in range(200))
    back = formula_of(compile_formula(parse_formula(text)))
    assert size(back) == size(parse_formula(text))


# --- from any transducer ---------------------------------------------------------------------------------------------


@examples(200)
@given(transducers(), streams(max_size=4), st.booleans())
def test_theorem_6_2(transducer, rows, closed):
    events = stream_of(rows)
    try:
        formula = formula_of(transducer, types=TYPES if closed else None)
    except UnsupportedQueryError:
        assert not closed
        return
    if size(formula) <= SMALL:
        assert readable(formula)
        assert found_by(formula, events) == matches(transducer, events)


def test_p2_figure_2():
    # A T after an H detects the H: not expressible without projection.
    transducer = Transducer(
        3,
        frozenset({0}),
        frozenset({2}),
        (
            Transition(0, 0),
            Transition(0, 1, TypeTest("H"), labels=frozenset({"H"})),
            Transition(1, 1),
            Transition(1, 2, TypeTest("T")),
        ),
    )
    assert formula_of(transducer) == parse_formula("PROJECT H (H ; T)")


def test_start_and_contiguity():
    transducer = Transducer(
        2,
        frozenset({0}),
        frozenset({1}),
        (
            Transition(0, 1, TypeTest("A"), labels=frozenset({"A"})),
            Transition(1, 1, TypeTest("B")),
        ),
    )
    formula = formula_of(transducer)
    assert formula == parse_formula("PROJECT A (START(A OR (A : B :+)))")
    assert has(formula, Start)
    assert has(formula, Project)


def test_registers_have_no_formula():
    with pytest.raises(UnsupportedQueryError, match="registers"):
        formula_of(compile_formula(parse_formula("(A ; B) FILTER A.v < B.v")))


def test_types_must_be_known():
    transducer = compile_formula(parse_formula("PROJECT A, B (A ; B ; C) OR EVENT"))
    with pytest.raises(UnsupportedQueryError, match=r"no PROJECT can list them\n.*types=") as caught:
        formula_of(transducer)
    assert caught.value.hint
    assert readable(formula_of(transducer, types=("A", "B", "C")))


def test_streams_cannot_be_told_apart():
    transducer = compile_formula(parse_formula("A ; NOT(s>A)"))
    with pytest.raises(UnsupportedQueryError, match="distinguishes events of one type by their stream"):
        formula_of(transducer)


def test_conditions_on_events_without_labels():
    transducer = Transducer(
        2,
        frozenset({0}),
        frozenset({1}),
        (Transition(0, 1, Comparison(Operator.GT, Attribute(None, "v"), Literal(1)), labels=frozenset({TYPE_LABEL})),),
    )
    with pytest.raises(UnsupportedQueryError, match="needs a label of the event, and none is known"):
        formula_of(transducer)
    assert formula_of(transducer, types="AB") == parse_formula("START((A FILTER A.v > 1) OR (B FILTER B.v > 1))")


def test_too_large():
    # A complete graph of states has no short expression.
    names = [f"T{k}" for k in range(12)]
    transitions = tuple(
        Transition(p, q, TypeTest(names[q]), labels=frozenset({names[q]})) for p in range(12) for q in range(12)
    )
    with pytest.raises(UnsupportedQueryError, match="more than 50000 parts"):
        formula_of(Transducer(12, frozenset({0}), frozenset({11}), transitions))


# --- *-semantics -----------------------------------------------------------------------------------------------------


def test_star_formula():
    transducer = compile_formula(parse_formula("(A : B) :+"))
    assert star_formula_of(transducer) == parse_formula("A ; (B OR ((B ; A)+ ; B))")


def test_predicates_that_must_not_be_true(predicate):
    predicate("big")(lambda value: None if value > 8 else value > 2)
    formula = parse_formula("NOT(A FILTER big(A.v))")
    back = formula_of(compile_formula(formula), types=("A", "B"))
    assert str(back) == "(A FILTER CASE WHEN big(A.v) THEN 0 ELSE 1 END = 1) OR B"
    events = Stream.from_dicts([{"type": "A", "v": v} for v in (1, 5, 9, None)])
    assert found_by(back, events) == found_by(formula, events)
    assert {n for n, _ in found_by(back, events)} == {0, 2, 3}
