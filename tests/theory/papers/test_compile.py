"""SREMO through the six schemas: what each gives, every way of writing it, negation in place, and what is refused."""

from itertools import product

import pytest

from cerflow.automata import accepts, compile_sremo, eliminate_epsilon, intersect, matches, registers_of, unroll
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.builder import attribute, read
from cerflow.language.parser import parse_sremo
from cerflow.theory.semantics.sremo import sremo_match_string
from support.register_automata import FIGURE_4, supports, word


def positions(found):
    return {tuple(sorted(m)) for m in supports(found)}


@pytest.mark.parametrize(
    ("text", "states", "epsilons", "others"),
    [
        ("EMPTY", 2, 0, 0),
        ("EPSILON", 2, 1, 0),
        ("[v > 1] MARK", 2, 0, 1),
        ("[v > 1] MARK INTO r", 2, 0, 1),
        ("[v > 1] . [v > 2]", 4, 1, 2),
        ("[v > 1] | [v > 2]", 6, 4, 2),
        ("[v > 1]*", 4, 4, 1),
    ],
)
def test_figure_11(text, states, epsilons, others):
    t = compile_sremo(text)
    assert len(t.states) == states
    assert sum(edge.condition is None for edge in t.transitions) == epsilons
    assert len(t.transitions) == epsilons + others
    assert len(t.finals) == 1


def test_every_way_of_writing_an_expression():
    text = "[id > 1] MARK INTO s . [v = s.v AND w = r.w]"
    assert compile_sremo(text) == compile_sremo(parse_sremo(text))
    assert compile_sremo("[id > 1] MARK INTO s") == compile_sremo(read(attribute("id") > 1).mark().into("s"))
    assert registers_of(text) == ("r", "s") == compile_sremo(text).registers


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("[sum(r.v) > 1]", QueryError, "holds one event"),
        (
            "([v > 1] INTO r & [v > 2] INTO r) . [v = r.v]",
            QueryError,
            "both sides of which write it: .v > 1. INTO r and",
        ),
        (
            "([v > 1] INTO r & [v > r.v]) . [v < r.v]",
            UnsupportedQueryError,
            "'r' is read by one side of &, written by",
        ),
        ("([v > r.v] & [v > 1] INTO r)*", UnsupportedQueryError, "'r' is read by one side of &, written by"),
        ("!([TRUE] INTO r . [TRUE]* . [v = r.v])", UnsupportedQueryError, "unbounded memory"),
    ],
)
def test_what_is_refused(text, error, reason):
    with pytest.raises(error, match=reason) as caught:
        compile_sremo(text)
    assert caught.value.span is not None


def test_what_next_would_have_to_skip():
    with pytest.raises(UnsupportedQueryError, match="unbounded memory") as caught:
        compile_sremo("next([TRUE], [TRUE] INTO r . [TRUE]* . [v = r.v])")
    assert "next(…)" in caught.value.hint


@pytest.mark.parametrize(
    "following",
    [
        "[TRUE] MARK INTO r . [TRUE] . [id = r.id] MARK",
        "([TRUE] MARK INTO r . [TRUE]* . [id = r.id] MARK) WITHIN 3 EVENTS",
        "[TRUE] MARK INTO r . [id != r.id] MARK INTO r . [id = r.id] MARK",
    ],
)
def test_next_before_events_that_relate_to_one_another(following):
    """What is skipped holds no match of bounded length; found out with copies that take turns."""
    expression = parse_sremo(f"next([type = 'a'] MARK, {following})")
    t = compile_sremo(expression)
    accepted = 0
    for ids in product((1, 2, 3), repeat=5):
        events = word("axxxxx", (0, *ids))
        found = matches(t, events)
        assert found == sremo_match_string(expression, events)
        accepted += bool(found)
    assert 0 < accepted < 243


@pytest.mark.parametrize(("ids", "accepted"), [((1, 1), True), ((1, 2), False), ((2, 1), False)])
def test_registers_of_both_sides(ids, accepted):
    """Each side of a product writes and reads its own, and what comes after reads those of both."""
    left, right = "[TRUE] MARK INTO r . [id >= r.id] MARK", "[TRUE] MARK INTO {} . [id <= {}.id] MARK"
    both = intersect(*(eliminate_epsilon(compile_sremo(t)) for t in (left, right.format("r", "r"))))
    assert accepts(both, word("ab", ids)) is accepted
    assert len(both.registers) == 2
    whole = compile_sremo(f"({left} & {right.format('s', 's')}) . [id = r.id AND id = s.id] MARK")
    assert accepts(whole, word("aba", (*ids, 1))) is accepted


def test_two_complements_at_once():
    """Each writes registers of its own."""
    first, second = "[TRUE] INTO r . [id = r.id]", "[TRUE] INTO s . [id < s.id]"
    expression = parse_sremo(f"[TRUE] MARK . (!({first}) & !({second})) . [TRUE] MARK")
    t = compile_sremo(expression)
    assert len(t.written) == 2
    for ids in product((1, 2), repeat=4):
        events = word("xxxx", ids)
        assert matches(t, events) == sremo_match_string(expression, events)
    assert positions(matches(t, word("xxxx", (1, 1, 2, 1)))) == {(0, 3)}
    assert positions(matches(t, word("xxxx", (1, 2, 1, 1)))) == set()


def test_constructions_that_grow_too_large():
    with pytest.raises(UnsupportedQueryError, match="too large"):
        unroll(FIGURE_4, 50, most=100)
    many = " | ".join(f"[v{k} > 1]" for k in range(20))
    with pytest.raises(UnsupportedQueryError, match="too large"):
        compile_sremo(f"!({many})", most=1_000)


def test_long_expressions():
    text = " . ".join(f"[type = 't{k}'] MARK" for k in range(500))
    assert len(compile_sremo(text).states) == 1000


def test_negation_of_a_bounded_expression_with_registers_of_its_own():
    """Between the two marks no event is followed, within three events, by one with the same number."""
    text = "[type = 'a'] MARK . !(([TRUE] INTO s . [TRUE]* . [id = s.id]) WITHIN 3 EVENTS) . [type = 'c'] MARK"
    # Nothing is marked below the complement, so that window does not bound it, and nothing else does.
    with pytest.raises(UnsupportedQueryError, match="unbounded memory"):
        compile_sremo(text)
    bounded = compile_sremo(
        "[type = 'a'] MARK . !(([TRUE] MARK INTO s . [TRUE]* . [id = s.id] MARK) WITHIN 3 EVENTS) . [type = 'c'] MARK"
    )
    assert positions(matches(bounded, word("axyc", (0, 1, 2, 0)))) == {(0, 3)}
    assert positions(matches(bounded, word("axyc", (0, 1, 1, 0)))) == set()
    assert positions(matches(bounded, word("axyzc", (0, 1, 2, 1, 0)))) == set()
    assert positions(matches(bounded, word("axyzwc", (0, 1, 2, 3, 1, 0)))) == {(0, 5)}


def test_both_sides_of_an_intersection_may_read_what_was_written_before():
    t = compile_sremo("[TRUE] MARK INTO r . ([id = r.id] MARK & [type = 'b'] MARK)")
    assert positions(matches(t, word("ab"))) == {(0, 1)}
    assert positions(matches(t, word("ab", (1, 2)))) == set()
