"""Every operator of the second-order language in the engine, alone, nested and combined, against the definitions."""

from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.language.formula import Strategy
from support.conformance import assert_conforms, drawn
from support.generators.conditions import Fragment
from support.generators.queries import OPERATORS
from support.runners import ENGINE_RUNNERS, engine_refuses, examples, may_refuse, one_batch, semantics, supports

STRATEGIES = (Strategy.ALL, Strategy.STRICT, Strategy.NEXT, Strategy.LAST, Strategy.MAX)


def assert_conforms_or_refuses(query, table, runners):
    if engine_refuses(query, table, time="t"):
        assert may_refuse(query)
        event("refused")
        return
    assert_conforms(query, table, runners)


@pytest.mark.parametrize("operator", OPERATORS)
@examples(30)
@given(data=st.data())
def test_operator(operator, data):
    assert_conforms_or_refuses(*drawn(data, operator=operator), {"one batch": one_batch})


@pytest.mark.parametrize("operator", OPERATORS)
@examples(8)
@given(data=st.data())
def test_operator_event_by_event_and_from_snapshots(operator, data):
    assert_conforms_or_refuses(*drawn(data, operator=operator), ENGINE_RUNNERS)


@pytest.mark.parametrize("operator", OPERATORS)
@examples(12)
@given(data=st.data())
def test_operator_with_existential_conditions(operator, data):
    existential = Fragment(some=True, more=data.draw(st.booleans()))
    assert_conforms_or_refuses(*drawn(data, operator=operator, fragment=existential), ENGINE_RUNNERS)


@examples(60)
@given(data=st.data())
def test_repetitions_that_are_counted(data):
    nested = Fragment(more=data.draw(st.booleans()), aggregates=True)
    query, table = drawn(data, operator="TIMES", fragment=nested, strategies=STRATEGIES)
    with mock.patch.object(limits, "REPEATED_STATES", 0):
        assert_conforms_or_refuses(query, table, {"one batch": one_batch})


@examples(15)
@given(data=st.data())
def test_counts_of_repetitions_event_by_event_and_from_snapshots(data):
    with mock.patch.object(limits, "REPEATED_STATES", 0):
        assert_conforms_or_refuses(*drawn(data, operator="TIMES"), ENGINE_RUNNERS)


@examples(60)
@given(data=st.data())
def test_brackets_with_prev(data):
    around = data.draw(st.sampled_from((None, "TIMES", "UNLESS", "NEXT", "MAX")))
    fragment = Fragment(neighbours=True, more=around is not None)
    query, table = drawn(data, operator=around, fragment=fragment, strategies=STRATEGIES)
    assert_conforms_or_refuses(query, table, {"one batch": one_batch})


@examples(20)
@given(data=st.data())
def test_brackets_with_prev_event_by_event_and_from_snapshots(data):
    assert_conforms_or_refuses(*drawn(data, fragment=Fragment(neighbours=True)), ENGINE_RUNNERS)


@examples(60)
@given(st.data())
def test_everything_together(data):
    whole = Fragment(more=True, aggregates=True, depth=4)
    assert_conforms_or_refuses(*drawn(data, fragment=whole, strategies=STRATEGIES), {"one batch": one_batch})


@pytest.mark.parametrize(("types", "keys"), [("DABDCAAD", "11101101"), ("ABACBCCD", "00110100")])
def test_windows_of_events_below_unless_count_in_the_substream(types, keys):
    table = pa.table({"type": list(types), "k": list(keys)})
    query = cerflow.parse("SELECT * WHERE (A ; D) UNLESS ((B ; C) WITHIN 2 EVENTS) PARTITION BY k")
    assert supports(one_batch(query, table)) == supports(semantics(query, table))
