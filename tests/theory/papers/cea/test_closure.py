"""Union, intersection, I/O-determinisation and complement of automata without memory (P1 Proposition 1)."""

from itertools import combinations

import pytest
from hypothesis import given

from cerflow.automata import (
    ComplexEventAutomaton,
    Stream,
    TransitionKindError,
    UnaryComplexEventAutomaton,
    accepting_runs,
    as_unary_automaton,
    compile_cel,
    intersect,
    io_complement,
    io_determinize,
    is_io_deterministic,
    reported_matches,
    union,
)
from cerflow.base.errors import UnsupportedQueryError
from support.generators.cea import FIGURE_2, FIGURE_2_OF_P2, ceas, label, read, uceas
from support.generators.sremo import strings
from support.register_automata import condition, supports, word
from support.runners import examples


@examples(120)
@given(ceas(), ceas(), uceas(), uceas(), strings(4))
def test_union_and_intersection(a, b, c, d, rows):
    events = Stream.from_dicts(rows)
    for left, right in ((a, b), (c, d)):
        one, other = reported_matches(left, events), reported_matches(right, events)
        assert reported_matches(union(left, right), events) == one | other
        assert reported_matches(intersect(left, right), events) == one & other


@examples(120)
@given(ceas(), uceas(), strings(4))
def test_determinization(cea, ucea, rows):
    events = Stream.from_dicts(rows)
    for automaton in (cea, ucea):
        single = io_determinize(automaton)
        assert is_io_deterministic(single)
        assert reported_matches(single, events) == reported_matches(automaton, events)
        runs = [run.complex_event for run in accepting_runs(single, events)]
        assert len(runs) == len(set(runs))


def choices(automaton, n):
    """All complex events over n+1 events; of a CEA those that contain the last."""
    if isinstance(automaton, ComplexEventAutomaton):
        others = [set(c) for k in range(n + 1) for c in combinations(range(n), k)]
        return {frozenset(("event", p) for p in c | {n}) for c in others}
    found = {frozenset()}
    for p in range(n + 1):
        found = {c | {(a, p) for a in labels} for c in found for labels in automaton.label_sets}
    return found


@examples(120)
@given(ceas(), uceas(), strings(4))
def test_complement(cea, ucea, rows):
    events = Stream.from_dicts(rows)
    for automaton in (cea, ucea):
        other = io_complement(automaton)
        assert is_io_deterministic(other)
        every = {(n, c) for n in range(len(events)) for c in choices(automaton, n)}
        assert reported_matches(other, events) == every - reported_matches(automaton, events)


def test_another_alphabet():
    only = as_unary_automaton(compile_cel("A"))
    other = io_complement(only, [frozenset("A")])
    assert reported_matches(other, word("BA")) == {(0, frozenset({("A", 0)})), (1, frozenset({("A", 0), ("A", 1)}))}


def test_is_io_deterministic():
    assert not is_io_deterministic(FIGURE_2)  # two ways with •, of which the conditions are not distinguished by type
    assert not is_io_deterministic(FIGURE_2_OF_P2)
    one = ComplexEventAutomaton.of([read(0, "•", 1, "A"), read(0, "◦", 0, "A")], starts=[0], finals=[1])
    assert is_io_deterministic(one)
    again = ComplexEventAutomaton.of([*one.transitions, read(0, "•", 0, "v > 1")], starts=[0], finals=[1])
    assert not is_io_deterministic(again)
    apart = ComplexEventAutomaton.of([read(0, "•", 1, "v > 1"), read(0, "•", 0, "v <= 1")], starts=[0], finals=[1])
    assert is_io_deterministic(apart)
    two = UnaryComplexEventAutomaton.of([label(0, "x", 1), label(0, "y", 0)], starts=[0, 1], finals=[1])
    assert not is_io_deterministic(two)


def test_complement_is_complete():
    """The empty subset belongs to it: what no run reads is a complex event of the complement."""
    never = ComplexEventAutomaton.of([read(0, "•", 1, "A")], starts=[0], finals=[1])
    assert supports(reported_matches(io_complement(never), word("BA"))) == {
        (0, frozenset({0})),
        (1, frozenset({1})),
        (1, frozenset({0, 1})),
    }


@pytest.mark.parametrize("construction", [union, intersect])
def test_two_models_do_not_go_together(construction):
    with pytest.raises(TransitionKindError, match="takes automata of one model, not a CEA and a UCEA"):
        construction(FIGURE_2, FIGURE_2_OF_P2)


def test_too_large():
    many = ComplexEventAutomaton.of(
        [read(0, "◦", k, condition(f"v{k} > 1")) for k in range(1, 20)], starts=[0], finals=[1]
    )
    with pytest.raises(UnsupportedQueryError, match="too large"):
        io_determinize(many, most=1000)
