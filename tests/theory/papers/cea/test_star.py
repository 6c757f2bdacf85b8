"""*-semantics of automata without memory, ALL and UNLESS, and the way back to formulas (P2 §5.2, §6.1)."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.automata import (
    Stream,
    UnaryComplexEventAutomaton,
    all_of,
    compile_cel,
    compile_cel_star,
    delete_unlabelled,
    difference,
    matches,
    reported_matches,
    star_difference,
    star_matches,
    star_to_formula,
    to_engine,
    to_formula,
    unless_found,
    with_star_runs,
)
from cerflow.base.errors import ArgumentError, UnsupportedQueryError
from cerflow.base.events import support
from cerflow.theory.from_automata import matches_of_star_runs as engine_star_matches
from cerflow.theory.papers.model.conditions import holds
from cerflow.theory.semantics.formulas import Denotation
from support.generators.cea import FIGURE_2, FIGURE_2_OF_P2, ceas, label, uceas
from support.generators.sremo import strings
from support.register_automata import condition, supports, word
from support.runners import examples


def denoted(formula, events):
    denotation = Denotation(formula, events)
    return {(n, c) for n in range(len(events)) for c in denotation(0, n)}


def star_by_definition(automaton, events):
    """For every choice of positions, every path of labelling transitions over these events."""
    found = set()
    for k in range(1, len(events) + 1):
        for chosen in combinations(range(len(events)), k):
            paths = {(q, frozenset()) for q in automaton.starts}
            for p in chosen:
                paths = {
                    (t.target, c | {(a, p) for a in t.output})
                    for q, c in paths
                    for t in automaton.leaving(q)
                    if t.output and holds(t.condition, events[p], {})
                }
            found |= {(chosen[-1], c) for q, c in paths if q in automaton.finals}
    return found


@examples(120)
@given(ceas(), uceas(), strings(4))
def test_star_runs(cea, ucea, rows):
    events = Stream.from_dicts(rows)
    for automaton in (cea, ucea):
        expected = star_by_definition(automaton, events)
        assert star_matches(automaton, events) == expected
        assert star_matches(delete_unlabelled(automaton), events) == expected
        assert engine_star_matches(to_engine(automaton), events) == expected


@pytest.mark.parametrize("text", ["A ; B", "(A AS x ; B)+", "A OR (B AS y ; A+)", "(A+ ; B) FILTER A.v > 1"])
def test_theorem_5_3(text):
    star = compile_cel_star(text)
    assert all(t.labels for t in star.transitions)
    assert not difference(compile_cel(text), with_star_runs(star)).exists
    assert not star_difference(compile_cel(text)).exists


@pytest.mark.parametrize("text", ["A : B", "(A ; B) UNLESS C", "PROJECT A (A ; B)", "START(A ; B)", "STRICT(A ; B)"])
def test_formulas_without_the_star_property(text):
    automaton = compile_cel(text)
    answer = star_difference(automaton)
    assert answer.exists
    witness = answer.witness
    events = Stream.from_dicts(witness.events)
    one = reported_matches(automaton, events)
    assert (one ^ star_matches(automaton, events)) >= {(len(witness.events) - 1, witness.complex_event)}


def test_figure_2_of_p2_is_no_formula_without_projection():
    assert star_difference(FIGURE_2_OF_P2).exists
    assert not star_difference(FIGURE_2).exists
    assert star_matches(FIGURE_2_OF_P2, word("HT")) == frozenset()


@examples(40)
@given(uceas(), uceas(), st.sampled_from(("labels", "positions")), strings(4))
def test_difference(first, second, output, rows):
    def found(automaton, events):
        reported = reported_matches(automaton, Stream.from_dicts(events))
        if output == "labels":
            return reported
        return {(n, frozenset(p for _, p in complex_event)) for n, complex_event in reported}

    answer = difference(first, second, output=output)
    if answer.exists is False:
        assert found(first, rows) == found(second, rows)
    elif answer.exists:
        assert found(first, answer.witness.events) != found(second, answer.witness.events)


def test_difference_of_positions():
    x, y = compile_cel("A AS x"), compile_cel("A AS y")
    assert difference(x, y).exists
    assert not difference(x, y, output="positions").exists
    with pytest.raises(ArgumentError, match="output must be 'labels' or 'positions', not 'supports'"):
        difference(x, y, output="supports")
    with pytest.raises(ArgumentError, match="difference compares automata, not str"):
        difference("A AS x", y)


def between(automaton, events, i, j):
    return {frozenset((a, p + i) for a, p in c) for c in matches(automaton, events[i : j + 1])}


@examples(60)
@given(uceas(most=4), uceas(most=4), strings(4))
def test_all_and_unless(first, second, rows):
    events = Stream.from_dicts(rows)
    spans = [(i, j) for i in range(len(events)) for j in range(i, len(events))]
    one, other = ({(s, c) for s in spans for c in between(a, events, *s)} for a in (first, second))
    both = {(max(j, k), c | d) for (i, j), c in one for (h, k), d in other if min(i, h) == 0}
    assert reported_matches(all_of(first, second), events) == both
    free = {(n, c) for n, c in reported_matches(first, events) if not any(j <= n for (_, j), _ in other)}
    assert reported_matches(unless_found(first, second), events) == free


def test_the_operators():
    a, b, c = (compile_cel(t) for t in ("A", "B", "C"))
    assert not difference(all_of(a, b), compile_cel("A ALL B")).exists
    assert not difference(unless_found(compile_cel("A ; B"), c), compile_cel("(A ; B) UNLESS C")).exists


@examples(60)
@given(ceas(), uceas(), strings(4))
def test_back_to_formulas(cea, ucea, rows):
    events = Stream.from_dicts(rows)
    for automaton in (cea, ucea):
        for made, found in ((to_formula, reported_matches), (star_to_formula, star_matches)):
            try:
                formula = made(automaton, types=["A", "B"])
            except UnsupportedQueryError:
                continue
            expected = {(n, c) for n, c in found(automaton, events)}
            assert denoted(formula, events) == expected


def test_a_formula_of_figure_2():
    formula = star_to_formula(UnaryComplexEventAutomaton.of(
        [label(0, "H", 1, "H"), label(1, "T", 1, condition("value > 40")), label(1, "H", 2, "H")],
        starts=[0],
        finals=[2],
    ), types=["H", "T"])  # fmt: skip
    assert {support(c) for _, c in denoted(formula, word("HTH"))} == {frozenset({0, 2})}
    assert supports(star_matches(FIGURE_2, word("HTH"))) == {(2, frozenset({0, 2}))}
