"""Properties of expressions with memory (register transducers §8) that the semantics must have."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.errors import QueryError
from cerflow.base.events import Stream, support
from cerflow.language.formula import CountWindow
from cerflow.language.parser import parse_sremo
from cerflow.language.sremo import (
    ANY_EVENT,
    Alternation,
    AnyMatch,
    Complement,
    Concatenation,
    Epsilon,
    Intersection,
    Star,
    Unordered,
    Windowed,
)
from cerflow.theory.semantics.sremo import SremoDenotation, sremo_match_string, sremo_matches
from support.generators.sremo import expressions, strings

ANYTHING = Star(ANY_EVENT)


def outcomes(expression, rows):
    events = Stream.from_dicts(rows)
    return SremoDenotation(expression, events)(0, len(events))


def accepts(expression, rows):
    return bool(outcomes(expression, rows))


@given(expressions(2), expressions(2), strings())
def test_alternation_is_union(e, f, rows):
    assert outcomes(Alternation(e, f), rows) == outcomes(e, rows) | outcomes(f, rows)


@given(expressions(2), expressions(2), expressions(2), strings())
def test_concatenation_is_associative(e, f, g, rows):
    left, right = Concatenation(Concatenation(e, f), g), Concatenation(e, Concatenation(f, g))
    assert outcomes(left, rows) == outcomes(right, rows)


@given(expressions(2), strings())
def test_star_unfolds(e, rows):
    unfolded = Alternation(Epsilon(), Concatenation(e, Star(e)))
    assert outcomes(Star(e), rows) == outcomes(unfolded, rows)


@given(expressions(2), strings())
def test_intersection_with_itself(e, rows):
    try:
        both = outcomes(Intersection(e, e), rows)
    except QueryError:
        return
    assert {m for m, _ in both} == {m for m, _ in outcomes(e, rows)}


@given(expressions(2), expressions(2), strings())
def test_de_morgan(e, f, rows):
    neither = Complement(Alternation(e, f))
    assert accepts(neither, rows) is (accepts(Complement(e), rows) and accepts(Complement(f), rows))
    assert accepts(Complement(Complement(e)), rows) is accepts(e, rows)


@given(expressions(2), expressions(2), strings())
def test_unordered_is_either_order(e, f, rows):
    either = Alternation(Concatenation(e, f), Concatenation(f, e))
    assert outcomes(Unordered((e, f)), rows) == outcomes(either, rows)


@given(expressions(2), st.integers(1, 5), strings())
def test_windows(e, n, rows):
    found = {m for m, _ in outcomes(Windowed(e, CountWindow(n)), rows)}
    everything = {m for m, _ in outcomes(e, rows)}
    assert found == {m for m in everything if not m or max(support(m)) - min(support(m)) + 1 <= n}
    if n >= len(rows):
        assert found == everything


@given(expressions(2), strings())
def test_streaming_is_a_match_after_anything(e, rows):
    events = Stream.from_dicts(rows)
    expected = {
        (n, m)
        for n in range(len(rows))
        for m in sremo_match_string(Concatenation(ANYTHING, e), events[: n + 1])
        if m and max(support(m)) == n
    }
    assert sremo_matches(e, events) == expected


@given(strings(6))
def test_any_of_terminals_is_every_increasing_choice(rows):
    parts = tuple(parse_sremo(f"[type = '{t}'] MARK") for t in "AAB")
    expected = {
        (places[-1], frozenset(places))
        for places in combinations(range(len(rows)), 3)
        if [rows[p]["type"] for p in places] == list("AAB")
    }
    found = {(n, support(m)) for n, m in sremo_matches(AnyMatch(parts), Stream.from_dicts(rows))}
    assert found == expected


@given(strings(6))
def test_next_of_terminals_skips_nothing_wanted(rows):
    types = [row["type"] for row in rows]
    expression = parse_sremo("next([type = 'A'] MARK, [type = 'B'] MARK, [type = 'A'] MARK)")
    for _, match in sremo_matches(expression, Stream.from_dicts(rows)):
        first, second, third = sorted(support(match))
        assert "B" not in types[first + 1 : second]
        assert "A" not in types[second + 1 : third]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("([v > 1] MARK INTO r & [v < 2] MARK INTO r)+ . [v = r.v] MARK", "both sides of which write it"),
        ("[sum(r.v) > 1] MARK", "holds one event"),
    ],
)
def test_what_has_no_meaning(expression, message):
    with pytest.raises(QueryError, match=message):
        sremo_matches(parse_sremo(expression), Stream([]))
