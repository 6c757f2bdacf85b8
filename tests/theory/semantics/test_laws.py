"""Algebraic laws of the papers, as identities between formulas that the semantics evaluates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.events import last_at_most, next_at_most, support
from cerflow.language.formula import (
    All,
    As,
    Conjunction,
    CountWindow,
    Disjunction,
    Iteration,
    Project,
    Rename,
    Selection,
    Sequence,
    Start,
    Strategy,
    StrictIteration,
    StrictSequence,
    Unless,
    Within,
    Without,
)
from cerflow.logic.analysis.scopes import labels_of
from cerflow.theory.semantics.formulas import Denotation
from support.generators.queries import Fragment, formulas, stream_of
from support.laws import core, filtered, labels, law, predicates, rows, same, wide
from support.runners import examples

# --- sequence, choice, iteration (§8) --------------------------------------------------------------------------------


@law(wide, wide, wide)
def test_sequence_is_associative(a, b, c):
    return Sequence(Sequence(a, b), c), Sequence(a, Sequence(b, c))


@law(wide, wide, wide)
def test_or_is_associative(a, b, c):
    return Disjunction(Disjunction(a, b), c), Disjunction(a, Disjunction(b, c))


@law(wide, wide)
def test_or_commutes(a, b):
    return Disjunction(a, b), Disjunction(b, a)


@law(wide, wide, wide)
def test_sequence_distributes_over_or(a, b, c):
    return Sequence(a, Disjunction(b, c)), Disjunction(Sequence(a, b), Sequence(a, c))


@law(wide)
def test_iteration_of_iteration(a):
    return Iteration(Iteration(a)), Iteration(a)


@law(wide)
def test_iteration_unfolds(a):
    return Iteration(a), Disjunction(a, Sequence(a, Iteration(a)))


@law(wide)
def test_iteration_unfolds_at_the_end(a):
    return Iteration(a), Disjunction(a, Sequence(Iteration(a), a))


@law(wide)
def test_strict_iteration_unfolds(a):
    return StrictIteration(a), Disjunction(a, StrictSequence(a, StrictIteration(a)))


@law(wide, wide, wide)
def test_strict_sequence_is_associative(a, b, c):
    return StrictSequence(StrictSequence(a, b), c), StrictSequence(a, StrictSequence(b, c))


@law(wide, wide, wide)
def test_sequence_before_strict_sequence(a, b, c):
    return StrictSequence(Sequence(a, b), c), Sequence(a, StrictSequence(b, c))


# --- filters move inwards (§3.4) -------------------------------------------------------------------------------------


@law(core, core, labels, predicates)
def test_filter_moves_into_sequence(a, b, label, p):
    return filtered(Sequence(a, b), label, p), Sequence(filtered(a, label, p), filtered(b, label, p))


@law(core, core, labels, predicates)
def test_filter_moves_into_or(a, b, label, p):
    return filtered(Disjunction(a, b), label, p), Disjunction(filtered(a, label, p), filtered(b, label, p))


@law(core, labels, predicates)
def test_filter_moves_into_iteration(a, label, p):
    return filtered(Iteration(a), label, p), Iteration(filtered(a, label, p))


@law(core, labels, predicates)
def test_filter_moves_through_as_of_another_label(a, label, p):
    return filtered(As(a, "o"), label, p), As(filtered(a, label, p), "o")


@law(core, predicates)
def test_filter_moves_through_as_of_its_label(a, p):
    inner = a
    for label in sorted(labels_of(a).assigned):
        inner = filtered(inner, label, p)
    return filtered(As(a, "o"), "o", p), As(inner, "o")


@law(core, labels, labels, labels, predicates)
def test_filter_moves_through_rename(a, old, new, label, p):
    left = filtered(Rename(a, old, new), label, p)
    if label == old != new:
        # Nothing has this name now.
        return left, Rename(a, old, new)
    if label == new:
        return left, Rename(filtered(filtered(a, old, p), new, p), old, new)
    return left, Rename(filtered(a, label, p), old, new)


# --- AS moves inwards (§3.6) -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", [Sequence, StrictSequence, Disjunction])
@examples(30)
@given(wide, wide, labels, rows)
def test_as_moves_into_binary_operators(operator, a, b, label, stream_rows):
    same(As(operator(a, b), label), operator(As(a, label), As(b, label)), stream_rows)


@pytest.mark.parametrize("operator", [Iteration, StrictIteration, lambda a: Selection(Strategy.STRICT, a)])
@examples(30)
@given(wide, labels, rows)
def test_as_moves_into_unary_operators(operator, a, label, stream_rows):
    same(As(operator(a), label), operator(As(a, label)), stream_rows)


@law(wide, labels, labels, labels)
def test_as_moves_through_rename(a, old, new, label):
    return As(Rename(a, old, new), label), Rename(As(Rename(a, old, "fresh"), label), "fresh", new)


@law(core, labels, labels, predicates)
def test_as_moves_through_filter(a, label, filter_label, p):
    inner = filtered(As(Rename(a, filter_label, "fresh"), label), "fresh", p)
    return As(filtered(a, filter_label, p), label), Rename(inner, "fresh", filter_label)


# --- AND, ALL, UNLESS, WITHOUT, windows, projection ------------------------------------------------------------------


@law(wide, wide)
def test_and_and_all_commute(a, b):
    return Conjunction(All(a, b), a), Conjunction(a, All(b, a))


@law(wide, wide, labels)
def test_unless_and_without_commute_with_as(a, b, label):
    return As(Without(Unless(a, b), b), label), Unless(Without(As(a, label), b), b)


@law(core, core)
def test_unless_implies_without(a, b):
    return Without(Unless(a, b), b), Unless(a, b)


@law(core, core, core)
def test_unless_of_or(a, b, c):
    return Unless(a, Disjunction(b, c)), Unless(Unless(a, b), c)


@law(core, core, core)
def test_without_of_or(a, b, c):
    return Without(a, Disjunction(b, c)), Without(Without(a, b), c)


@law(wide, st.integers(1, 4), st.integers(1, 4))
def test_windows_inside_windows(a, n, m):
    return Within(Within(a, CountWindow(n)), CountWindow(m)), Within(a, CountWindow(min(n, m)))


@law(wide)
def test_projections_on_projections(a):
    return Project(("x", "A"), Project(("x", "y"), a)), Project(("x",), a)


@law(wide)
def test_start_twice(a):
    return Start(Start(a)), Start(a)


# --- selection (§2, §8) ----------------------------------------------------------------------------------------------


@given(formulas(Fragment(depth=3)), rows)
def test_strategies_are_nested(formula, stream_rows):
    stream = stream_of(stream_rows)
    found = {s: Denotation(Selection(s, formula), stream) for s in Strategy if s not in (Strategy.ALL, Strategy.ANY)}
    everything = Denotation(formula, stream)
    for n in range(len(stream)):
        matches = everything(0, n)
        kept = {s: denotation(0, n) for s, denotation in found.items()}
        assert kept[Strategy.NEXT] | kept[Strategy.LAST] <= kept[Strategy.MAX] <= matches
        for s in (Strategy.NEXT, Strategy.LAST):
            assert len({support(c) for c in kept[s]}) == bool(matches)
        intervals = {
            c for c in matches if support(c) == set(range(min(support(c), default=0), max(support(c), default=-1) + 1))
        }
        assert kept[Strategy.STRICT] == intervals


sets = st.frozensets(st.integers(0, 5), max_size=5)


@given(sets, sets, sets)
def test_orders_are_total(a, b, c):
    for at_most in (next_at_most, last_at_most):
        assert at_most(a, b) or at_most(b, a)
        assert not (at_most(a, b) and at_most(b, a)) or a == b
        assert not (at_most(a, b) and at_most(b, c)) or at_most(a, c)


def test_orders_of_the_example():
    assert next_at_most(frozenset({5, 8}), frozenset({1, 8}))
    assert last_at_most(frozenset({1, 8}), frozenset({5, 8}))


# --- properties of the core language (§1.4, §8) ----------------------------------------------------------------------


@given(core, rows)
def test_core_matches_end_at_the_detecting_event(formula, stream_rows):
    stream = stream_of(stream_rows)
    denotation = Denotation(formula, stream)
    for i in range(len(stream)):
        for j in range(i, len(stream)):
            for c in denotation(i, j):
                assert j in support(c)
                assert support(c) <= set(range(i, j + 1))


@given(formulas(Fragment(depth=3, outer=True)), rows)
def test_earlier_starts_have_more_matches(formula, stream_rows):
    stream = stream_of(stream_rows)
    denotation = Denotation(formula, stream)
    for j in range(len(stream)):
        for i in range(j):
            assert denotation(i + 1, j) <= denotation(i, j)


@given(core, rows, st.lists(st.integers(0, 6), max_size=3))
def test_core_matches_survive_events_in_between(formula, stream_rows, places):
    # The *-property: whatever stands between the events of a match does not matter.
    longer = list(stream_rows)
    new_place = list(range(len(stream_rows)))
    for place in sorted((p % (len(stream_rows) + 1) for p in places), reverse=True):
        longer.insert(place, {"type": "Z", "t": 0})
        new_place = [p + (p >= place) for p in new_place]
    for index, row in enumerate(longer):
        row = {**row, "t": index}
        longer[index] = row
    before = Denotation(formula, stream_of([{**row, "t": i} for i, row in enumerate(stream_rows)]))
    after = Denotation(formula, stream_of(longer))
    for j in range(len(stream_rows)):
        moved = {frozenset((label, new_place[p]) for label, p in c) for c in before(0, j)}
        assert moved <= after(0, new_place[j])
