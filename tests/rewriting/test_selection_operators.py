from hypothesis import given, settings

from cerflow.language.node import walk
from cerflow.language.sremo import AnyMatch, NextMatch, Optional, Plus, Sremo, Unordered
from cerflow.language.sremo_parser import parse_sremo
from cerflow.rewriting.selection_operators import expand, matches_empty, not_empty, skipping
from cerflow.semantics.events import Stream
from cerflow.semantics.sremo import SremoDenotation, sremo_match_string
from random_sremo import expressions, strings


def outcomes(expression: Sremo, rows):
    events = Stream.from_dicts(rows)
    return SremoDenotation(expression, events)(0, len(events))


@given(expressions(), strings())
@settings(max_examples=300)
def test_expansion_means_the_same(expression, rows):
    expanded = expand(expression)
    assert not [n for n in walk(expanded) if isinstance(n, AnyMatch | NextMatch | Unordered | Plus | Optional)]
    assert outcomes(expanded, rows) == outcomes(expression, rows)


@given(expressions(), strings())
def test_matches_that_read_an_event(expression, rows):
    expanded = expand(expression)
    assert matches_empty(expanded) is bool(outcomes(expanded, []))
    assert outcomes(not_empty(expanded), rows) == (outcomes(expanded, rows) if rows else frozenset())


@given(expressions(2), strings())
def test_what_may_be_skipped(expression, rows):
    events = Stream.from_dicts(rows)
    denotation = SremoDenotation(expression, events)
    places = range(len(rows) + 1)
    free = not any(denotation(m, n) for m in places for n in places if m < n)
    assert bool(outcomes(skipping(expand(expression)), rows)) is free


def test_single_operands():
    a = parse_sremo("[type = 'A'] MARK")
    assert expand(AnyMatch((a,))) == a
    rows = [{"type": t} for t in "AxA"]
    for operator in ("any", "next"):
        found = sremo_match_string(parse_sremo(f"{operator}(([type = 'A'] MARK)+)"), Stream.from_dicts(rows))
        assert found == {frozenset({("event", 0), ("event", 2)})}
