"""Normal forms and simplification: they must not change what is detected, and sizes are as the theory says."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.fragment import Fragment
from cerflow.automata.model.runs import matches
from cerflow.automata.model.transducer import Accumulation, Transducer, Transition
from cerflow.automata.optimise.simplify import simplify
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.base.operators import Operator
from cerflow.language.condition import (
    And,
    Attribute,
    Comparison,
    Condition,
    Constant,
    In,
    IsNull,
    Literal,
    Not,
    Or,
)
from cerflow.language.parser import parse_formula
from cerflow.logic.conditions.cases import contradicts
from cerflow.logic.conditions.connectives import clauses, conjunction
from cerflow.logic.conditions.guards import TypeTest
from cerflow.theory.semantics.conditions import satisfies
from cerflow.theory.semantics.formulas import Denotation
from support.generators.conditions import conditions
from support.generators.queries import formulas, stream_of, streams
from support.runners import examples

LABELS = ("x", "y", "z")

# --- clauses ---------------------------------------------------------------------------------------------------------


@examples(200)
@given(conditions(list(LABELS), depth=4), streams(max_size=6), st.data())
def test_clauses_mean_the_same(condition, rows, data):
    stream = stream_of(rows)
    of = {label: data.draw(st.lists(st.sampled_from(list(stream)), max_size=2, unique_by=id)) for label in LABELS}

    def holds(part):
        return satisfies(part, lambda label: of[label])

    normal = clauses(condition)
    assert all(any(holds(atom) for atom in clause) for clause in normal) == holds(condition)
    for clause in normal:
        assert not any(isinstance(atom, And | Or) for atom in clause)


def test_clauses_that_explode_are_refused():
    condition: Condition = Comparison(Operator.EQ, Attribute("x", "v"), Literal(0))
    for k in range(30):
        pair = And(
            Comparison(Operator.GT, Attribute("x", "v"), Literal(k)),
            Comparison(Operator.LT, Attribute("y", "v"), Literal(k)),
        )
        condition = Or(condition, pair)
    with pytest.raises(UnsupportedQueryError, match="too many combinations of AND and OR"):
        clauses(condition)


# --- simplification --------------------------------------------------------------------------------------------------


def taken_apart(transducer: Transducer) -> Fragment:
    return Fragment(transducer.states, set(transducer.initial), set(transducer.final), list(transducer.transitions))


def simplified(fragment: Fragment, like: Transducer) -> Transducer:
    return simplify(fragment, like.registers, like.window, like.mentioned)


@examples(150)
@given(formulas(), st.data())
def test_copies_of_states_are_merged_again(formula, data):
    transducer = compile_formula(formula)
    twice, copy, half = taken_apart(transducer), taken_apart(transducer), transducer.states
    copy.move(half)
    twice = Fragment(
        2 * half, twice.initial | copy.initial, twice.final | copy.final, twice.transitions + copy.transitions
    )
    # A few transitions lead over to the copy.
    crossing = [
        Transition(t.source, t.target + half, t.test, t.atoms, t.labels, t.writes)
        for t in transducer.transitions
        if data.draw(st.integers(0, 3)) == 0
    ]
    twice.transitions += crossing
    again = simplified(twice, transducer)
    assert again.states == transducer.states
    assert len(again.transitions) == len(transducer.transitions)
    stream = stream_of(data.draw(streams(max_size=6, like=formula)))
    assert matches(again, stream) == matches(transducer, stream)


@examples(100)
@given(formulas())
def test_simplifying_twice_changes_nothing(formula):
    transducer = compile_formula(formula)
    again = simplified(taken_apart(transducer), transducer)
    assert (again.states, len(again.transitions), again.registers) == (
        transducer.states,
        len(transducer.transitions),
        transducer.registers,
    )


def test_useless_states_and_impossible_transitions_go():
    assert compile_formula(parse_formula("(A FILTER A.v > 1 AND A.v < 0) ; B")).transitions == ()
    only = compile_formula(parse_formula("((A FILTER A.v > 1 AND A.v < 0) ; B) OR C"))
    assert (only.states, len(only.transitions)) == (2, 2)


def test_equal_branches_become_one():
    assert compile_formula(parse_formula("(A ; B) OR (A ; B)")) == compile_formula(parse_formula("A ; B"))
    shared = compile_formula(parse_formula("(A ; C) OR (B ; C)"))
    # They begin in one state; the ends are the same, and so is what they wait for.
    assert (shared.states, len(shared.transitions)) == (3, 5)


def test_a_disjunction_of_many_operands_begins_in_one_state():
    many = compile_formula(parse_formula(" OR ".join(f"(T{k} AS t{k} ; B)" for k in range(200))))
    assert len(many.initial) == 1
    # Runs that may begin at different events keep states of their own: here one waits, the other does not.
    assert len(compile_formula(parse_formula("A OR START (B ; C)")).initial) == 2


def test_registers_that_hold_the_same_are_one():
    steps = " ; ".join(f"(B AS y{k} FILTER y{k}.v > x.v)" for k in range(5))
    transducer = compile_formula(parse_formula(f"A AS x ; {steps}"))
    assert [r.meaning for r in transducer.registers] == ["x.v"]
    order = compile_formula(parse_formula("(A AS x ; B AS y ; C AS z) FILTER y.v > x.v AND z.v > x.v"))
    assert len(order.registers) == 1


@pytest.mark.parametrize(
    ("operator", "keeps"),
    [
        ("<", Accumulation.MAX),
        ("<=", Accumulation.MAX),
        (">", Accumulation.MIN),
        ("=", Accumulation.SAME),
        ("!=", Accumulation.SET),
    ],
)
def test_registers_keep_as_little_as_they_can(operator, keeps):
    transducer = compile_formula(parse_formula(f"(A+ ; B) FILTER A.v {operator} B.v"))
    assert [r.keeps for r in transducer.registers] == [keeps]
    single = compile_formula(parse_formula(f"(A ; B) FILTER A.v {operator} B.v"))
    assert [r.keeps for r in single.registers] == [Accumulation.VALUE]


# --- contradictions --------------------------------------------------------------------------------------------------


def only_event(tests):
    """Reads one event that satisfies all tests."""
    return Transducer(2, frozenset({0}), frozenset({1}), (Transition(0, 1, conjunction(tests)),))


V, S = Attribute(None, "v"), Attribute(None, "s")
NUMBERS = st.builds(Literal, st.sampled_from((0, 1, 2, 0.5, 1.0)))
TEXTS = st.builds(Literal, st.sampled_from(("p", "q")))
ON_ONE_EVENT = st.one_of(
    st.builds(TypeTest, st.sampled_from("AB")),
    st.builds(Comparison, st.sampled_from(Operator), st.just(V), NUMBERS),
    st.builds(Comparison, st.sampled_from(Operator), st.just(S), TEXTS),
    st.builds(In, st.just(S), st.lists(TEXTS, min_size=1, max_size=2).map(tuple), st.booleans()),
    st.builds(IsNull, st.sampled_from((V, S)), st.booleans()),
    st.builds(Constant, st.booleans()),
)
EVENTS = [
    {"type": kind, "v": v, "s": s}
    for kind in "ABC"
    for v in (None, -1, 0, 0.5, 1, 1.5, 2, 3)
    for s in (None, "p", "q", "r")
]


@examples(300)
@given(st.lists(ON_ONE_EVENT | st.builds(Not, ON_ONE_EVENT), min_size=1, max_size=3))
def test_contradictions_are_certain(tests):
    if contradicts(tests):
        transducer = only_event(tests)
        assert not any(matches(transducer, Stream.from_dicts([event])) for event in EVENTS)


@pytest.mark.parametrize(
    "text",
    [
        "v > 1 AND v < 1",
        "v >= 2 AND v <= 1",
        "s = 'p' AND s = 'q'",
        "s IN ('p') AND s = 'q'",
        "v > 1 AND v IS NULL",
        "v < w AND v >= w",
    ],
)
def test_contradictions_are_found(text):
    formula = parse_formula(f"A FILTER A[{text}]")
    assert compile_formula(formula).transitions == ()


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("t = '2024-01-01' AND t = '2024-01-01T00:00:00Z'", {"t": datetime(2024, 1, 1, tzinfo=UTC)}),
        ("t IN ('2024-01-01') AND t = '20240101'", {"t": datetime(2024, 1, 1, tzinfo=UTC)}),
        ("v >= 9007199254740993 AND v <= 9007199254740992.0", {"v": 2**53 + 1}),
        ("v >= 9007199254740993 AND v <= 9007199254740992", {"v": 2.0**53}),
        ("v > 9007199254740992 AND v <= 9007199254740992.0", {"v": 2**53 + 1}),
    ],
)
def test_what_only_looks_like_a_contradiction(text, row):
    formula = parse_formula(f"A FILTER A[{text}]")
    stream = Stream.from_dicts([{"type": "A", **row}])
    expected = {(0, c) for c in Denotation(formula, stream)(0, 0)}
    assert expected
    assert matches(compile_formula(formula), stream) == expected


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "states", "transitions"),
    [
        ("R", 2, 2),
        ("T AS x ; H AS y", 3, 4),
        ("A ; B ; C ; D", 5, 8),
        ("A : B", 3, 3),
        ("A+", 2, 3),
        ("A :+", 3, 5),
        ("A OR B", 2, 3),
        ("PROJECT H (H ; T)", 3, 4),
    ],
)
def test_sizes(formula, states, transitions):
    transducer = compile_formula(parse_formula(formula))
    assert (transducer.states, len(transducer.transitions)) == (states, transitions)


LONG = 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        " ; ".join(f"(T{k % 5} AS x{k} FILTER x{k}.v > {k % 7})" for k in range(LONG)),
        f"({' ; '.join(f'T{k % 5} AS x{k}' for k in range(LONG))}) FILTER "
        + " AND ".join(f"x{k}.v > x{k - 1}.v" for k in range(1, LONG)),
        " ; (".join(f"T{k % 5}" for k in range(LONG)) + ")" * (LONG - 1),
        " ; ".join(["EVENT"] * LONG),
    ],
    ids=["own", "relating", "from the right", "equal"],
)
def test_long_sequences_grow_by_a_state_and_two_transitions_a_step(text):
    transducer = compile_formula(parse_formula(text))
    assert (transducer.states, len(transducer.transitions)) == (LONG + 1, 2 * LONG)
