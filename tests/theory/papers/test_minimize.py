"""Minimisation of deterministic automata over minterms: the same matches, and no two states that are alike."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import assume, given

from cerflow.automata import (
    ComplexEventAutomaton,
    EpsilonFreeError,
    NotDeterministicError,
    Stream,
    SymbolicRegisterTransducer,
    accepts,
    as_complex_event_automaton,
    compile_cel,
    compile_sremo,
    complement_windowed,
    determinize_windowed,
    difference,
    eliminate_epsilon,
    io_determinize,
    is_deterministic,
    is_io_deterministic,
    matches,
    minimize,
    reported_matches,
    show_edge,
    subset_construction,
)
from cerflow.base.errors import UnsupportedQueryError
from support.generators.cea import FIGURE_2, ceas, read, uceas
from support.generators.sremo import strings
from support.register_automata import E1, FIGURE_4, TABLE_1, compiled, edge
from support.runners import examples

SELLER = eliminate_epsilon(compile_sremo(E1))


@examples(80)
@given(compiled(), strings(3))
def test_the_same_language(case, rows):
    _, t = case
    try:
        single = determinize_windowed(t, 2, most=2_000)
        small = minimize(single, most=20_000)
    except UnsupportedQueryError:
        assume(False)
    events = Stream.from_dicts(rows)
    assert accepts(small, events) == accepts(single, events)
    assert len(small.states) <= len(single.states)
    assert is_deterministic(small)
    assert len(minimize(small).states) == len(small.states)


@examples(120)
@given(ceas(), uceas(), strings(4))
def test_the_same_complex_events(cea, ucea, rows):
    events = Stream.from_dicts(rows)
    for automaton in (cea, ucea):
        single = io_determinize(automaton)
        small = minimize(single)
        assert reported_matches(small, events) == reported_matches(automaton, events)
        if small.states:
            assert is_io_deterministic(small)
            assert len(minimize(small).states) == len(small.states)


@examples(40)
@given(uceas())
def test_every_two_states_differ(ucea):
    """By Myhill and Nerode nothing smaller has the same complex events."""
    small = minimize(io_determinize(ucea))
    for p, q in combinations(small.states, 2):
        one, other = (replace(small, starts=frozenset((state,))) for state in (p, q))
        assert (p in small.finals) != (q in small.finals) or difference(one, other).exists


@pytest.mark.parametrize(
    ("text", "other"), [("A ; B", "(A ; B) OR (A ; B)"), ("A+", "A+ OR (A ; A+)"), ("A:+", "A:+ OR (A : A:+)")]
)
def test_equivalent_automata_become_the_same(text, other):
    one, two = (minimize(io_determinize(as_complex_event_automaton(compile_cel(t)))) for t in (text, other))
    assert not difference(one, two).exists
    assert (len(one.states), len(one.transitions)) == (len(two.states), len(two.transitions))


def test_a_cea_whose_final_states_are_entered_unmarked():
    """No complex event ends there, so these ends do not count."""
    loops = [read(0, "◦", 0, "A"), read(0, "•", 1, "A"), read(1, "◦", 1, "A"), read(1, "•", 1, "A")]
    quiet = ComplexEventAutomaton.of([*loops, read(0, "◦", 2, "B")], starts=[0], finals=[1, 2])
    assert len(minimize(quiet).states) == 2


def test_windowed_automata():
    """One final state, no sink, and no register that nobody reads."""
    for window, before, after in ((2, 4, 3), (3, 11, 8), (4, 28, 19)):
        single = determinize_windowed(FIGURE_4, window)
        small = minimize(single)
        assert (len(single.states), len(small.states)) == (before, after)
        for n in range(len(TABLE_1)):
            for m in range(n, len(TABLE_1)):
                assert accepts(small, TABLE_1[n:m]) == accepts(single, TABLE_1[n:m])


def test_the_sink_of_a_complement_is_final():
    other = complement_windowed(SELLER, 2)
    small = minimize(other)
    for n in range(4):
        assert accepts(small, TABLE_1[:n]) == accepts(other, TABLE_1[:n])


def test_outputs_and_writes_tell_states_apart():
    def automaton(*more):
        return SymbolicRegisterTransducer.of(
            [
                edge("s", "p", "v = 0", "⊗", "r"),
                edge("s", "q", "v = 1", "⊗", "r"),
                *more,
                edge("p", "f", "v = r.v"),
            ],
            start="s",
            finals="f",
        )

    assert len(minimize(automaton(edge("q", "f", "v = r.v"))).states) == 3
    assert len(minimize(automaton(edge("q", "f", "v = r.v", "•"))).states) == 4
    assert len(minimize(automaton(edge("q", "f", "v > r.v"))).states) == 4
    # A register that is not read again does not matter.
    assert len(minimize(automaton(edge("q", "f", "v = r.v", "⊗", "r"))).states) == 3


def test_conditions_are_joined():
    t = SymbolicRegisterTransducer.of(
        [edge(0, 1, "v > 1 AND w = 2", "•"), edge(0, 2, "NOT v > 1", "⊗"), edge(1, 1, "w = 2"), edge(2, 2, "w = 2")],
        start=0,
        finals=[1, 2],
    )
    assert len(minimize(t).states) == 2
    split = subset_construction(SymbolicRegisterTransducer.of(
        [edge(0, 1, "v > 1"), edge(0, 1, "w = 2"), edge(1, 1, "TRUE")], start=0, finals=[1]
    ))  # fmt: skip
    small = minimize(split)
    assert sorted(show_edge(t) for t in small.transitions if t.source == t.target) == ["⊤ ↑ ⊗"]
    assert len(small.states) == 2


def test_refusals():
    with pytest.raises(NotDeterministicError, match="for a window first"):
        minimize(FIGURE_4)
    with pytest.raises(NotDeterministicError, match="see io_determinize"):
        minimize(FIGURE_2)
    with pytest.raises(EpsilonFreeError):
        minimize(compile_sremo(E1))
    with pytest.raises(UnsupportedQueryError, match="too large"):
        minimize(determinize_windowed(SELLER, 3), most=3)


def test_nothing_is_left_of_an_automaton_without_matches():
    never = ComplexEventAutomaton.of([read(0, "◦", 0)], starts=[0], finals=[])
    assert minimize(never).states == frozenset()
    empty = minimize(SymbolicRegisterTransducer.of([edge(0, 1, "TRUE")], start=0, finals=[]))
    assert (empty.states, empty.transitions) == ({0}, ())
    assert matches(empty, ()) == frozenset()
