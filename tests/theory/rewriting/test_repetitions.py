"""Repetitions and optional parts: what they mean, what they are rewritten to, and how large they become."""

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.language.formula import Repetition
from cerflow.language.node import walk
from cerflow.rewritings import push_down_filters, to_transducer
from cerflow.theory.rewriting.regular import without_repetitions
from cerflow.theory.semantics.formulas import Denotation
from support.generators.queries import around, stream_of, streams
from support.runners import examples


@examples(100)
@given(st.data(), st.sampled_from(("TIMES", "OPTIONAL")))
def test_written_out_they_mean_the_same(data, operator):
    formula = data.draw(around(operator))
    written = without_repetitions(formula)
    assert not any(isinstance(current, Repetition) for current in walk(written))
    events = stream_of(data.draw(streams(max_size=7, like=formula)))
    meaning, other = Denotation(formula, events), Denotation(written, events)
    for j in range(len(events)):
        assert meaning(0, j) == other(0, j)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("A{3}", "A ; (A ; A)"),
        ("A{1}", "A"),
        ("A{1,}", "A+"),
        ("A{2,}", "A ; A+"),
        ("A{1,2}", "A OR (A ; A)"),
        ("A:{2,}", "A : A:+"),
        ("A ; B? ; C", "((A ; B) OR A) ; C"),
        ("A : B{0,2}", "(A : (B OR (B ; B))) OR A"),
        ("A? ALL B", "(A ALL B) OR B"),
    ],
)
def test_written_out(text, written):
    assert without_repetitions(cerflow.parse_formula(text)) == cerflow.parse_formula(written)


@pytest.mark.parametrize("text", ["A?", "A{0,2}", "A? ; B?", "(A?)+", "A OR B?", "A UNLESS C?", "A? FILTER A.v > 1"])
def test_what_may_be_absent_needs_something_beside_it(text):
    with pytest.raises(cerflow.QueryError, match="may be absent") as caught:
        cerflow.parse(f"SELECT * WHERE {text}")
    assert caught.value.line == 1


@pytest.mark.parametrize("text", ["A{0}", "A{3,2}", "A{0,0}", "A{1.5}", "A{-1}", "A{}", "A{2", "A{1000001}", "A{x}"])
def test_bounds_that_make_no_sense(text):
    with pytest.raises((cerflow.QueryError, cerflow.QuerySyntaxError)):
        cerflow.parse(f"SELECT * WHERE {text}")


@pytest.mark.parametrize(
    ("text", "states"), [("A{1000}", 3), ("(A ; B){2,500}", 5), ("A:{10000}", 3), ("(A{100} ; B){100,} ; C", 12)]
)
def test_states_do_not_grow_with_the_bound(text, states):
    assert to_transducer(cerflow.parse_formula(text)).states <= states


def test_what_cannot_follow_counters_is_written_out():
    text = "SELECT * WHERE (A ; B) UNLESS (C{3} FILTER C.v > A.v)"
    events = [{"type": t, "v": k} for k, t in enumerate("ACCABCCCB")]
    expected = [m["events"] for m in cerflow.parse(text).match(events).to_pylist()]
    with mock.patch.object(limits, "REPEATED_STATES", 0):
        assert [m["events"] for m in cerflow.parse(text).match(events).to_pylist()] == expected


def test_a_filter_moves_into_every_repetition():
    assert push_down_filters(cerflow.parse_formula("A{2} FILTER A.v > 1")) == cerflow.parse_formula(
        "(A FILTER A.v > 1) ; (A FILTER A.v > 1)"
    )
