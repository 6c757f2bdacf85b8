"""Automata without memory as values: what fits together, their runs, the ways between the models, and pictures."""

import dataclasses
import pickle

import pytest
from hypothesis import given

from cerflow.automata import (
    AutomatonError,
    ComplexEventAutomaton,
    ComplexEventTransition,
    EpsilonTransitionError,
    LabelSetError,
    MissingRegisterError,
    MissingStateError,
    NotMemorylessError,
    SymbolicRegisterTransducer,
    TransitionKindError,
    UnaryComplexEventAutomaton,
    UnaryComplexEventTransition,
    as_complex_event_automaton,
    as_transducer,
    as_unary_automaton,
    compile_cel,
    compile_sremo,
    from_engine,
    matches,
    reported_matches,
    show_edge,
    streaming,
    to_engine,
    to_mermaid,
    with_marked_ends,
)
from cerflow.automata.model.runs import matches as engine_matches
from cerflow.base.errors import CerflowError, UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.language.parser import parse_formula
from cerflow.theory.papers.model.conditions import holds
from cerflow.theory.semantics.formulas import Denotation
from support.generators.cea import E4, FIGURE_2, FIGURE_2_OF_P2, by_definition, ceas, label, read, uceas
from support.generators.conditions import Fragment
from support.generators.queries import formulas, stream_of, streams
from support.generators.sremo import strings
from support.golden import FIGURE2, RISING, SENSORS, STRATEGY_TABLE, sets
from support.register_automata import FIGURE_4, condition, edge, supports, word
from support.runners import examples

FIGURE_1 = Stream.from_dicts(SENSORS)


def positions(found):
    return {support for _, support in supports(found)}


@pytest.mark.parametrize(
    ("change", "fault", "message"),
    [
        ({"starts": frozenset((9,))}, MissingStateError, "the start state q9 is not among"),
        ({"finals": frozenset((9,))}, MissingStateError, "the final state q9 is not among"),
        ({"transitions": (read(1, "•", 9),)}, MissingStateError, "has an end q9"),
        ({"transitions": (read(1, "•", 2, "v = r.v"),)}, MissingRegisterError, "no register r"),
        (
            {"transitions": (label(1, "x", 2),)},
            TransitionKindError,
            "a CEA are of class ComplexEventTr",
        ),
        ({"transitions": (edge(1, 2, "TRUE"),)}, TransitionKindError, "not SymbolicTransition"),
    ],
)
def test_faults(change, fault, message):
    with pytest.raises(fault, match=message) as caught:
        dataclasses.replace(FIGURE_2, **change)
    assert isinstance(caught.value, AutomatonError)
    assert isinstance(caught.value, CerflowError)


def test_faults_of_transitions():
    with pytest.raises(EpsilonTransitionError, match="needs a condition"):
        ComplexEventTransition(source=1, target=2, condition=None)
    with pytest.raises(EpsilonTransitionError, match="needs a condition"):
        UnaryComplexEventTransition(source=1, target=2, condition=None)
    for labels in ("H", {"H"}, frozenset((1,))):
        with pytest.raises(LabelSetError, match="frozenset of names, not"):
            UnaryComplexEventTransition(source=1, target=2, labels=labels)
    with pytest.raises(TransitionKindError, match="a UCEA are of class Unary"):
        UnaryComplexEventAutomaton.of([read(1, "•", 2)], starts=[1], finals=[2])


def test_values():
    assert pickle.loads(pickle.dumps(FIGURE_2)) == FIGURE_2
    assert len({FIGURE_2, dataclasses.replace(FIGURE_2), E4}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        FIGURE_2.starts = frozenset()
    assert (str(FIGURE_2), str(FIGURE_2_OF_P2)) == ("CEA: 3 states, 5 transitions", "UCEA: 3 states, 4 transitions")
    assert FIGURE_2.renumbered().states == {0, 1, 2}
    assert FIGURE_2.renumbered().starts == {0}
    more = dataclasses.replace(FIGURE_2, states=FIGURE_2.states | {7, 8}, starts=frozenset((1, 7)))
    assert more.trimmed() == FIGURE_2


def test_figure_2_of_p1():
    expected = set(sets(*STRATEGY_TABLE[FIGURE2]["ALL"]))
    assert positions(reported_matches(FIGURE_2, FIGURE_1)) == expected
    assert positions(reported_matches(as_complex_event_automaton(compile_cel(FIGURE2)), FIGURE_1)) == expected


def test_figure_2_of_p2():
    events = Stream.from_dicts(RISING)
    expected = {(3, "12"), (5, "124"), (8, "12467")}
    found = reported_matches(FIGURE_2_OF_P2, events)
    assert found == {(n, frozenset({("H", int(p))})) for n, ps in expected for p in ps}
    assert found == reported_matches(compile_cel("PROJECT H (H ; T)"), events)
    # Nothing that ends with a label.
    assert reported_matches(as_complex_event_automaton(FIGURE_2_OF_P2), events) == frozenset()


def test_a_run_that_labels_nothing_is_a_trivial_complex_event():
    only = UnaryComplexEventAutomaton.of([label(0, "", 0)], starts=[0], finals=[0])
    assert reported_matches(only, word("AB")) == {(0, frozenset()), (1, frozenset())}
    assert reported_matches(only, word("")) == frozenset()


@examples(150)
@given(ceas(), uceas(), strings(5))
def test_runs(cea, ucea, rows):
    events = Stream.from_dicts(rows)
    for automaton in (cea, ucea):
        expected = by_definition(automaton, events, holds)
        assert reported_matches(automaton, events) == expected
        assert reported_matches(automaton.trimmed().renumbered(), events) == expected
        assert engine_matches(to_engine(automaton), events) == expected


@examples(150)
@given(ceas(), uceas(), strings(5))
def test_from_one_model_to_the_other(cea, ucea, rows):
    events = Stream.from_dicts(rows)
    expected = reported_matches(cea, events)
    assert reported_matches(with_marked_ends(cea), events) == expected
    assert reported_matches(as_unary_automaton(cea), events) == expected
    assert reported_matches(as_complex_event_automaton(as_unary_automaton(cea)), events) == expected
    assert reported_matches(as_complex_event_automaton(as_transducer(cea)), events) == expected
    found = reported_matches(ucea, events)
    assert reported_matches(as_unary_automaton(as_transducer(ucea)), events) == found
    assert reported_matches(as_unary_automaton(from_engine(to_engine(ucea))), events) == found
    marked = {(n, support) for n, support in supports(found) if n in support}
    assert supports(reported_matches(as_complex_event_automaton(ucea), events)) == marked


@examples(60)
@given(formulas(Fragment(relating=False, outer=False, windows=False, depth=2)), streams(max_size=5))
def test_theorem_6_2(formula, rows):
    events = stream_of(rows)
    try:
        automaton = compile_cel(formula)
    except (UnsupportedQueryError, NotMemorylessError):
        return
    denotation = Denotation(formula, events)
    expected = {(n, c) for n in range(len(events)) for c in denotation(0, n)}
    assert reported_matches(automaton, events) == expected


@pytest.mark.parametrize("text", [*STRATEGY_TABLE])
def test_formulas_of_the_papers(text):
    if "x.id = y.id" in text or "y.id = x.id" in text or "X.id" in text:
        with pytest.raises(NotMemorylessError, match="has to remember values of earlier events"):
            compile_cel(text)
        return
    found = reported_matches(compile_cel(text), FIGURE_1)
    assert positions(found) == set(sets(*STRATEGY_TABLE[text]["ALL"]))


def test_formulas_that_have_no_automaton_without_memory():
    with pytest.raises(NotMemorylessError, match="reads register"):
        as_unary_automaton(FIGURE_4)
    with pytest.raises(NotMemorylessError, match="reads register"):
        as_complex_event_automaton(FIGURE_4)
    with pytest.raises(UnsupportedQueryError, match="depend on the type"):
        compile_cel("A ; EVENT")


def test_from_transducers():
    t = streaming(compile_sremo("[type = 'A'] MARK INTO r . [TRUE]* . [type = 'B'] MARK"))
    assert isinstance(t, SymbolicRegisterTransducer)
    found = reported_matches(as_complex_event_automaton(t), word("AAB"))
    assert supports(found) == {(2, frozenset((0, 2))), (2, frozenset((1, 2)))}
    assert matches(as_unary_automaton(t), word("AAB")) == matches(t, word("AAB"))


def test_parse_tree_and_text_are_the_same():
    assert compile_cel(parse_formula("A ; B")) == compile_cel("A ; B")


def test_pictures():
    assert [show_edge(t) for t in FIGURE_2.transitions] == [
        "⊤ | ◦",
        "type = H | •",
        "type = 'T' AND value > 40 | •",
        "⊤ | ◦",
        "type = H | •",
    ]
    assert show_edge(label(0, "ba", 1, condition("v > 1"))) == "v > 1 | {a, b}"
    assert 's0 -- "⊤ | ∅" --> s0' in to_mermaid(FIGURE_2_OF_P2)


def test_only_marked_ends_count():
    ended = with_marked_ends(E4)
    assert ended is not E4
    assert with_marked_ends(FIGURE_2) is FIGURE_2
    assert {t.marks for t in ended.transitions if t.target in ended.finals} == {True}
    assert not any(ended.leaving(q) for q in ended.finals)
    assert isinstance(ended, ComplexEventAutomaton)
