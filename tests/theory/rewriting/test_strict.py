"""STRICT, ``:`` and ``:+`` by one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.formula import Filter, Formula, Selection, Start, Strategy, StrictIteration, StrictSequence
from cerflow.language.node import walk
from cerflow.language.parser import parse_formula
from cerflow.logic.rewriting.rebuild import size
from cerflow.theory.rewriting.sequences import eliminate_strict_iteration, sequences_to_strict, strict_to_sequences
from support.generators.conditions import Fragment
from support.generators.queries import formulas, stream_of, streams
from support.golden import COLD_SNAP, RISING, rows
from support.meanings import complex_events, readable, stream
from support.runners import examples

#: What STRICT, `:` and `:+` can stand around.
PLAIN = Fragment(projection=False, windows=False)


def has(formula: Formula, *kinds: type) -> bool:
    return any(isinstance(n, kinds) for n in walk(formula))


def compare(formula, changed, events):
    # The semantics takes long over what is much larger.
    if size(changed) > 600:
        return
    assert size(changed) > 200 or readable(changed)
    assert complex_events(changed, events) == complex_events(formula, events)


@examples(120)
@given(
    st.one_of(formulas(PLAIN).map(lambda f: Selection(Strategy.STRICT, f)), formulas(Fragment(more=True))),
    streams(max_size=6),
)
def test_proposition_6_4(formula, rows):
    try:
        changed = strict_to_sequences(formula)
    except UnsupportedQueryError:
        return
    assert not any(isinstance(n, Selection) and n.strategy is Strategy.STRICT for n in walk(changed))
    compare(formula, changed, stream_of(rows))


@st.composite
def side_by_side(draw, fragment):
    left, right = draw(formulas(fragment)), draw(formulas(fragment))
    found = StrictSequence(left, right)
    match draw(st.integers(0, 3)):
        case 0:
            found = StrictSequence(found, draw(formulas(fragment)))
        case 1:
            found = StrictSequence(Selection(Strategy.STRICT, left), right)
        case 2:
            found = StrictSequence(Start(left), Start(right))
    return found


@examples(150)
@given(side_by_side(Fragment(strict=False, projection=False, windows=False, outer=False, depth=2)), streams(max_size=6))
def test_theorem_6_5(formula, rows):
    changed = sequences_to_strict(formula)
    assert not has(changed, StrictSequence)
    compare(formula, changed, stream_of(rows))


@examples(120)
@given(formulas(Fragment(more=True)), streams(max_size=6))
def test_theorem_6_5_on_everything_it_accepts(formula, rows):
    try:
        changed = sequences_to_strict(formula)
    except UnsupportedQueryError:
        return
    compare(formula, changed, stream_of(rows))


@examples(150)
@given(
    formulas(Fragment(relating=False, outer=False, projection=False, windows=False, depth=2)).map(StrictIteration),
    streams(max_size=6),
)
def test_proposition_6_3(formula, rows):
    try:
        changed = eliminate_strict_iteration(formula)
    except UnsupportedQueryError as error:
        if "more than 50000 parts" not in error.reason:
            raise
        return
    assert not has(changed, StrictSequence, StrictIteration)
    compare(formula, changed, stream_of(rows))


@examples(150)
@given(formulas(Fragment(more=True)), streams(max_size=6))
def test_proposition_6_3_on_everything_it_accepts(formula, rows):
    try:
        changed = eliminate_strict_iteration(formula)
    except UnsupportedQueryError:
        return
    assert not has(changed, StrictSequence, StrictIteration)
    compare(formula, changed, stream_of(rows))


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("STRICT(A ; B)", "A : B"),
        ("STRICT(A+ ; (B ; C) AS x)", "A :+ : (B : C) AS x"),
        ("STRICT((A ; B) FILTER A.v < B.v) ; C", "((A : B) FILTER A.v < B.v) ; C"),
        ("STRICT(A OR STRICT(B ; C))", "A OR (B : C)"),
        ("STRICT(A ; B UNLESS C ; D)", "A : B UNLESS C ; D"),
        ("STRICT(A ; B WITHIN 3 EVENTS)", "A : B WITHIN 3 EVENTS"),
        ("PROJECT A (STRICT(A ; B))", "PROJECT A (A : B)"),
        ("A ; B", "A ; B"),
    ],
)
def test_rules_without_strict(text, changed):
    assert strict_to_sequences(parse_formula(text)) == parse_formula(changed)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("A : B", "STRICT(A ; B)"),
        ("A : B : C", "STRICT(A ; B ; C)"),
        ("(A ; B) : C", "A ; STRICT(B ; C)"),
        ("A : (B ; C)", "STRICT(A ; B) ; C"),
        ("(A OR B) : C", "STRICT((A OR B) ; C)"),
        ("A+ : B", "STRICT(A ; B) OR (A+ ; STRICT(A ; B))"),
        ("STRICT(A ; B) : STRICT(C ; D)", "STRICT(A ; B ; (C ; D))"),
        ("((A ; B) FILTER A.v < B.v) : C", "(A ; STRICT(B ; C)) FILTER A.v < B.v"),
        # The other side gives the label too.
        (
            "((A ; B) FILTER A.v < B.v) : A",
            """((A ; STRICT(B ; A [A -> "A'1"])) FILTER A.v < B.v) ["A'1" -> A]""",
        ),
        ("((A ; B) [A -> x]) : C", "(A ; STRICT(B ; C)) [A -> x]"),
        # No event of a branch has the label, so the condition holds there.
        (
            "((A OR B ; C) FILTER B.v > 1) : D",
            "STRICT(A ; D) OR ((B ; STRICT(C ; D)) FILTER B.v > 1)",
        ),
        ("START(A ; B) : START(C)", "START(A ; STRICT(B ; C))"),
        ("A AS x : (B FILTER B.v > x.v)", "STRICT(A AS x ; (B FILTER B.v > x.v))"),
        ("(A : B) AND C", "STRICT(A ; B) AND C"),
        ("A AND B", "A AND B"),
    ],
)
def test_rules_by_strict(text, changed):
    assert sequences_to_strict(parse_formula(text)) == parse_formula(changed)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("A :+", "STRICT(A+)"),
        ("(A AS x) :+ AS y", "STRICT((A AS x)+) AS y"),
        ("(A OR B) :+", "STRICT((A OR B)+)"),
        ("STRICT(A ; B) :+", "STRICT((A ; B)+)"),
        ("(A FILTER A.v > 1) :+", "STRICT((A FILTER A.v > 1)+)"),
        ("A :+ : B", "STRICT(A+ ; B)"),
        ("(A ; B) :+", "A ; (B OR STRICT(B ; A)+ ; B)"),
        ("(A OR B ; C) :+", None),
    ],
)
def test_rules_without_strict_iteration(text, changed):
    formula = parse_formula(text)
    found = eliminate_strict_iteration(formula)
    if changed is not None:
        assert found == parse_formula(changed)
    for word in ("AABBC", "BCABC", "AXBCBCA"):
        events = stream([{"type": t, "v": 2} for t in word])
        assert complex_events(found, events) == complex_events(formula, events)


@pytest.mark.parametrize("table", [RISING, COLD_SNAP])
def test_example_6_1(table):
    text = "PROJECT H (((((H AS X) OR T) :+) : (H AS Y)) FILTER (X.value < 40 AND T.value < 0 AND Y.value > 45))"
    formula, events = parse_formula(text), stream(table)
    expected = complex_events(formula, events)
    assert any(expected)
    assert complex_events(eliminate_strict_iteration(formula), events) == expected


def test_erratum_e6():
    events = stream(rows("AAA"))
    formula = parse_formula("A :+")
    assert complex_events(eliminate_strict_iteration(formula), events) == complex_events(formula, events)


def test_erratum_e17():
    # A test on the set of all events is not a test on the events of each repetition.
    with pytest.raises(UnsupportedQueryError, match="reads a set of events"):
        eliminate_strict_iteration(parse_formula("(A+ FILTER increasing(A.v)) :+"))


def test_theorem_6_5_second_part():
    # No formula with STRICT says this.
    with pytest.raises(UnsupportedQueryError, match="relates several labels"):
        eliminate_strict_iteration(parse_formula("((A ; E) FILTER A.a = E.a) :+"))


@pytest.mark.parametrize(
    ("rewriting", "text", "place", "message"),
    [
        (strict_to_sequences, "STRICT(A ; PROJECT B (B ; C))", "PROJECT B (B ; C)", "STRICT is around PROJECT"),
        (strict_to_sequences, "STRICT(A ALL B)", "A ALL B", "STRICT is around ALL"),
        (strict_to_sequences, "STRICT(NEXT(A ; B))", "NEXT(A ; B)", "STRICT is around NEXT"),
        (sequences_to_strict, "A :+ ; B", "A :+", "cannot be written with STRICT in general"),
        (sequences_to_strict, "A : (PROJECT B (B ; C))", "PROJECT B (B ; C)", "PROJECT is next to"),
        (sequences_to_strict, "A : MAX(B ; C)", "MAX(B ; C)", "MAX is next to ':'"),
        (sequences_to_strict, "(A ; B WITHIN 3 EVENTS) : C", "A ; B WITHIN 3 EVENTS", "Within is next to ':'"),
        (
            sequences_to_strict,
            "((A OR B ; C) FILTER count(B) < 2) : D",
            "count(B) < 2",
            "a set of events that a branch of OR",
        ),
        (eliminate_strict_iteration, "(PROJECT A (A ; B)) :+", "PROJECT A (A ; B)", "PROJECT is next to"),
        (eliminate_strict_iteration, "START(A) :+", "START(A)", "START is in"),
        (eliminate_strict_iteration, "A AS x ; (B FILTER x.v > 1) :+", "B FILTER x.v > 1", "in ':\\+' reads 'x'"),
        (eliminate_strict_iteration, "(A AND B) :+", "A AND B", "Conjunction is next to"),
    ],
)
def test_what_cannot_be_rewritten(rewriting, text, place, message):
    with pytest.raises(UnsupportedQueryError, match=message) as caught:
        rewriting(parse_formula(text))
    span = caught.value.span
    assert text[span.start : span.end] == place


def test_too_large():
    choice = " OR ".join(f"(A AS x{k} ; B FILTER x{k}.v > B.v)" for k in range(60))
    with pytest.raises(UnsupportedQueryError, match="more than 50000 parts"):
        sequences_to_strict(parse_formula(f"({choice}) : ({choice})"))


def test_long_sequences():
    formula = parse_formula(" : ".join(f"A AS x{i}" for i in range(300)))
    assert sequences_to_strict(formula) == parse_formula(f"STRICT({' ; '.join(f'A AS x{i}' for i in range(300))})")
    assert strict_to_sequences(sequences_to_strict(formula)) == formula


def test_filters_reach_the_events_of_repetitions():
    found = eliminate_strict_iteration(parse_formula("((A ; B) :+) FILTER A.v > 1"))
    assert isinstance(found, Filter)
