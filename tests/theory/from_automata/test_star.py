"""*-semantics: Theorem 5.3, Proposition 5.4 and Corollaries 5.5 and 5.6 of P2."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches
from cerflow.automata.model.transducer import TYPE_LABEL, Transducer, Transition
from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.formula import All, Conjunction, Iteration, Project, Sequence
from cerflow.language.node import walk
from cerflow.language.parser import parse_formula
from cerflow.logic.conditions.guards import TypeTest
from cerflow.logic.rewriting.rebuild import size
from cerflow.theory.from_automata import (
    compile_star,
    eliminate_conjunctions,
    matches_of_star_runs,
    star_automaton,
    star_counterexample,
    star_formula_of,
)
from cerflow.theory.semantics.formulas import Denotation
from support.generators.conditions import TYPES, Fragment
from support.generators.queries import formulas, stream_of, streams
from support.generators.transducers import transducers
from support.golden import rows
from support.meanings import readable, stream
from support.runners import examples

SECOND_ORDER = Fragment(relating=False, outer=False, strict=False, windows=False, projection=False, depth=2)


def found_by(formula, events):
    denotation = Denotation(formula, events)
    return {(n, c) for n in range(len(events)) for c in denotation(0, n)}


def by_definition(transducer, events):
    """Every choice of positions, and for each every run over these events alone."""
    found = set()
    steps = star_automaton(transducer)
    for count in range(1, len(events) + 1):
        for positions in combinations(range(len(events)), count):
            runs = {(q, frozenset()) for q in steps.initial}
            for p in positions:
                one = Transducer(
                    steps.states, frozenset(q for q, _ in runs), frozenset(range(steps.states)), steps.transitions
                )
                runs = {
                    (t.target, c | {(events[p].type if a == TYPE_LABEL else a, p) for a in t.labels})
                    for q, c in runs
                    for t in one.leaving()[q]
                    if matches(Transducer(2, frozenset({0}), frozenset({1}), (Transition(0, 0), t.moved(0, 1))), events)
                    >= {(p, frozenset((events[p].type if a == TYPE_LABEL else a, p) for a in t.labels))}
                }
            found |= {(positions[-1], c) for q, c in runs if q in steps.final}
    return found


@examples(60)
@given(transducers(), streams(max_size=4))
def test_star_runs_are_what_they_are_defined_to_be(transducer, rows):
    events = stream_of(rows)
    if transducer.window is None:
        assert matches_of_star_runs(transducer, events) == by_definition(transducer, events)


@examples(150)
@given(formulas(SECOND_ORDER), streams(max_size=6))
def test_theorem_5_3(formula, rows):
    events = stream_of(rows)
    assert matches_of_star_runs(compile_star(formula), events) == found_by(formula, events)


@examples(150)
@given(transducers(), streams(max_size=5), st.booleans())
def test_theorem_5_3_backwards(transducer, rows, closed):
    events = stream_of(rows)
    try:
        formula = star_formula_of(transducer, types=TYPES if closed else None)
    except UnsupportedQueryError:
        assert not closed
        return
    if size(formula) <= 600:
        assert readable(formula)
        assert found_by(formula, events) == matches_of_star_runs(transducer, events)


@examples(60)
@given(formulas(SECOND_ORDER), streams(min_size=2, max_size=5))
def test_corollary_5_5_second_order_formulas_have_the_property(formula, rows):
    if "position" not in repr(formula) and "time" not in repr(formula):
        assert star_counterexample(lambda events: found_by(formula, events), [stream_of(rows)]) is None


@pytest.mark.parametrize(
    ("text", "word", "other"),
    [
        ("A : B", "AB", "AAB"),
        ("(A ; B) UNLESS C", "ABC", "CAB"),
        ("START(A)", "A", "AA"),
        ("PROJECT A (A ; B)", "AB", "A"),
        ("STRICT(A ; A)", "AAB", "AAA"),
    ],
)
def test_what_has_not_the_property(text, word, other):
    formula = parse_formula(text)
    found = star_counterexample(lambda events: found_by(formula, events), [stream(rows(word))])
    assert found is not None
    assert [e.type for e in found.stream] == list(word)
    assert sorted(e.type for e in found.other_stream) == sorted(other)
    assert (len(found.other_stream) - 1, found.other_complex_event) not in found_by(formula, found.other_stream)
    assert any(c == found.complex_event for _, c in found_by(formula, found.stream))


def test_proposition_5_4():
    # Reading and leaving out any event is not a loop of one state here, and yet nothing depends on it.
    transducer = Transducer(
        3,
        frozenset({0}),
        frozenset({2}),
        (
            Transition(0, 1),
            Transition(1, 0),
            *(Transition(q, 2, TypeTest("A"), labels=frozenset({"A"})) for q in (0, 1)),
        ),
    )
    for word in ("A", "BA", "BBABA"):
        events = stream(rows(word))
        assert star_counterexample(lambda s: matches(transducer, s), [events]) is None
        assert matches_of_star_runs(star_automaton(transducer), events) == matches(transducer, events)
    assert star_formula_of(transducer) == parse_formula("A")


@st.composite
def with_conjunctions(draw):
    part = formulas(
        Fragment(relating=False, outer=False, strict=False, windows=False, projection=False, wild=False, depth=1)
    )
    operator = draw(st.sampled_from((Conjunction, All)))
    found = operator(draw(part), draw(part))
    match draw(st.integers(0, 4)):
        case 0:
            return Iteration(found)
        case 1:
            return Sequence(draw(part), found)
        case 2:
            return draw(st.sampled_from((Conjunction, All)))(found, draw(part))
    return found


@examples(120)
@given(with_conjunctions(), streams(max_size=5))
def test_corollary_5_6(formula, rows):
    found = eliminate_conjunctions(formula)
    assert not any(isinstance(n, Conjunction | All) for n in walk(found))
    events = stream_of(rows)
    if size(found) <= 600:
        assert found_by(found, events) == found_by(formula, events)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A AND A", "A"),
        ("A AND B", "EVENT FILTER FALSE"),
        ("(A ; B) AND (A ; B FILTER B.v > 1)", "A ; (B FILTER B.v > 1)"),
        ("A ALL B", "B ; A OR A ; B"),
        (
            "(A ; B) AND ((A ; B) FILTER A.v > 1 OR B.v > 1)",
            "(A FILTER A.v > 1) ; B OR A ; (B FILTER B.v > 1)",
        ),
    ],
)
def test_conjunctions_are_eliminated(text, found):
    assert eliminate_conjunctions(parse_formula(text)) == parse_formula(found)


@pytest.mark.parametrize(
    ("rewriting", "text", "message"),
    [
        (compile_star, "A : B", "does not cover StrictSequence"),
        (compile_star, "(A ; B) FILTER A.v < B.v", "relates several labels"),
        (eliminate_conjunctions, "(A AND A) UNLESS B", "not next to Unless"),
        (eliminate_conjunctions, "(A ALL B) FILTER A.v < B.v", "relates several labels"),
    ],
)
def test_what_is_refused(rewriting, text, message):
    with pytest.raises(UnsupportedQueryError, match=message):
        rewriting(parse_formula(text))


def test_projection_is_not_known_to_stars():
    assert star_formula_of(compile_formula(parse_formula("PROJECT A (A ; B)"))) == parse_formula("EVENT FILTER FALSE")
    assert not any(isinstance(n, Project) for n in walk(star_formula_of(compile_formula(parse_formula("A ; B")))))
