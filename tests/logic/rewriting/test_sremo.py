import pytest
from hypothesis import given

from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.language.node import walk
from cerflow.language.parser import parse_sremo
from cerflow.language.sremo import AnyMatch, NextMatch, Sremo, Unordered
from cerflow.logic.rewriting.strategies import skipping, without_empty, without_strategies
from cerflow.theory.semantics.sremo import SremoDenotation, sremo_match_string
from support.generators.sremo import expressions, strings
from support.runners import examples


def outcomes(expression: Sremo, rows):
    events = Stream.from_dicts(rows)
    return SremoDenotation(expression, events)(0, len(events))


@given(expressions(), strings())
@examples(300)
def test_rewriting_means_the_same(expression, rows):
    rewritten = without_strategies(expression)
    assert not [n for n in walk(rewritten) if isinstance(n, AnyMatch | NextMatch | Unordered)]
    assert outcomes(rewritten, rows) == outcomes(expression, rows)


@given(expressions(), strings())
def test_matches_that_read_an_event(expression, rows):
    rewritten = without_strategies(expression)
    not_empty, empty = without_empty(rewritten)
    assert empty is bool(outcomes(rewritten, []))
    assert outcomes(not_empty, rows) == (outcomes(rewritten, rows) if rows else frozenset())


@given(expressions(2), strings())
def test_what_may_be_skipped(expression, rows):
    events = Stream.from_dicts(rows)
    denotation = SremoDenotation(expression, events)
    places = range(len(rows) + 1)
    free = not any(denotation(m, n) for m in places for n in places if m < n)
    assert bool(outcomes(skipping(without_strategies(expression)), rows)) is free


def test_single_operands():
    a = parse_sremo("[type = 'A'] MARK")
    assert without_strategies(AnyMatch((a,))) == a
    rows = [{"type": t} for t in "AxA"]
    for operator in ("any", "next"):
        found = sremo_match_string(parse_sremo(f"{operator}(([type = 'A'] MARK)+)"), Stream.from_dicts(rows))
        assert found == {frozenset({("event", 0), ("event", 2)})}


@pytest.mark.parametrize(
    ("written", "rewritten"),
    [
        ("any([a = 1] MARK, [b = 2] MARK)", "[a = 1] MARK . [TRUE]* . [b = 2] MARK"),
        # Between the operands only.
        ("any([a = 1] MARK, [b = 2]+, [c = 3] MARK)", "[a = 1] MARK . [TRUE]* . [b = 2]+ . [TRUE]* . [c = 3] MARK"),
        # Of one iteration between its repetitions.
        ("any([b = 2]+)", "[b = 2] . ([TRUE]* . [b = 2])*"),
        ("any([b = 2]*)", "([b = 2] . ([TRUE]* . [b = 2])*)?"),
        # No effect on a disjunction.
        ("any([a = 1] . [b = 2] | [c = 3])", "[a = 1] . [b = 2] | [c = 3]"),
        # What may be skipped before a terminal does not satisfy it, and needs no window.
        ("next([a = 1] MARK, [b = 2] MARK INTO r)", "[a = 1] MARK . ([TRUE] & ![b = 2])* . [b = 2] MARK INTO r"),
        ("next([a = 1], [b = 2]+)", "[a = 1] . ([TRUE] & ![b = 2])* . [b = 2]+"),
        ("next([a = 1], [b = 2] | [c = 3])", "[a = 1] . ([TRUE] & !([b = 2] | [c = 3]))* . ([b = 2] | [c = 3])"),
        # The corrected rule for others: their complement in the whole stretch, once.
        (
            "next([a = 1], [b = 2] . [c = 3])",
            "[a = 1] . !([TRUE]* . ([b = 2] . [c = 3]) . [TRUE]*) . ([b = 2] . [c = 3])",
        ),
        ("next(any([a = 1]+), [b = 2])", "[a = 1] . ([TRUE]* . [a = 1])* . ([TRUE] & ![b = 2])* . [b = 2]"),
        ("unordered([a = 1], [b = 2])", "[a = 1] . [b = 2] | [b = 2] . [a = 1]"),
    ],
)
def test_rewritings(written, rewritten):
    assert without_strategies(parse_sremo(written)) == parse_sremo(rewritten)


def test_too_many_orders():
    with pytest.raises(UnsupportedQueryError, match="7 operands has too many orders"):
        without_strategies(parse_sremo(f"unordered({', '.join(['[TRUE]'] * 7)})"))
