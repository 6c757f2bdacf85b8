"""Selection strategies as automata (P1 Theorem 4), against their definition, and the errata about them."""

import pytest
from hypothesis import given

from cerflow.automata import (
    Stream,
    as_complex_event_automaton,
    compile_cel,
    reported_matches,
    select_last,
    select_max,
    select_next,
    select_strict,
)
from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.formula import Strategy
from cerflow.theory.semantics.complex_events import kept_by
from support.generators.cea import E4, E5, FIGURE_2, ceas, read
from support.generators.sremo import strings
from support.golden import FIGURE2, LETTER_QUERIES, LETTERS, PHI1, PHI2, PHI3, SENSORS, STRATEGY_TABLE, sets
from support.register_automata import supports, word
from support.runners import examples

CONSTRUCTIONS = {
    Strategy.STRICT: select_strict,
    Strategy.NEXT: select_next,
    Strategy.LAST: select_last,
    Strategy.MAX: select_max,
}


def by_definition(strategy, found):
    ends = {n for n, _ in found}
    return {(n, c) for n in ends for c in kept_by(strategy, {c for k, c in found if k == n})}


@pytest.mark.parametrize("strategy", CONSTRUCTIONS)
@examples(150)
@given(automaton=ceas(), rows=strings(5))
def test_theorem_4(strategy, automaton, rows):
    events = Stream.from_dicts(rows)
    found = reported_matches(CONSTRUCTIONS[strategy](automaton), events)
    assert found == by_definition(strategy, reported_matches(automaton, events))


@pytest.mark.parametrize("strategy", CONSTRUCTIONS)
@pytest.mark.parametrize(
    ("text", "rows"), [*((t, SENSORS) for t in (PHI1, PHI2, PHI3)), *((t, LETTERS) for t in LETTER_QUERIES)]
)
def test_the_tables_of_the_papers(strategy, text, rows):
    expected = {**STRATEGY_TABLE, **LETTER_QUERIES}[text][strategy.name]
    chosen = CONSTRUCTIONS[strategy](as_complex_event_automaton(compile_cel(text)))
    assert {m for _, m in supports(reported_matches(chosen, Stream.from_dicts(rows)))} == set(sets(*expected))


@pytest.mark.parametrize("strategy", CONSTRUCTIONS)
def test_figure_2(strategy):
    found = reported_matches(CONSTRUCTIONS[strategy](FIGURE_2), Stream.from_dicts(SENSORS))
    assert {m for _, m in supports(found)} == set(sets(*STRATEGY_TABLE[FIGURE2][strategy.name]))


def test_e4_final_states_that_are_entered_unmarked():
    found = supports(reported_matches(select_next(E4), word("BB")))
    assert {m for n, m in found if n == 1} == {frozenset({1})}


def test_e5_the_conditions_of_a_last():
    found = supports(reported_matches(select_last(E5), word("AAAA")))
    assert {m for _, m in found} == {frozenset(s) for s in ({0}, {1}, {0, 1, 2}, {1, 2, 3})}


def test_sizes():
    """A_STRICT has two states for each, and each that is no longer reached is left out."""
    strict = select_strict(FIGURE_2)
    assert strict.states == {(1, "◦"), (2, "◦"), (2, "•"), (3, "•")} - {(2, "◦")}
    assert len(strict.transitions) == 4
    assert read(1, "◦", 1).condition == strict.transitions[0].condition


def test_too_large():
    wide = as_complex_event_automaton(compile_cel(" ; ".join(f"(A FILTER A.v{k} > 1)" for k in range(12))))
    for construction in (select_next, select_last, select_max):
        with pytest.raises(UnsupportedQueryError, match="too large"):
            construction(wide, most=500)
