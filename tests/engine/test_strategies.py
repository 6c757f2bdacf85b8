"""SELECT NEXT and SELECT LAST in the engine, against the definitions and the algorithms of the paper."""

from hypothesis import given
from hypothesis import strategies as st

from cerflow.language.formula import Strategy
from conformance import assert_conforms, drawn
from runners import ENGINE_RUNNERS, examples, one_batch

BOTH = (Strategy.NEXT, Strategy.LAST)


@examples(250)
@given(st.data())
def test_random_queries(data):
    query, table = drawn(data, strategies=BOTH)
    assert_conforms(query, table, {"one batch": one_batch})


@examples(100)
@given(st.data())
def test_random_queries_event_by_event_and_from_snapshots(data):
    query, table = drawn(data, strategies=BOTH)
    assert_conforms(query, table, ENGINE_RUNNERS)
