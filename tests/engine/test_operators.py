"""Every operator of the second-order language in the engine, alone, nested and combined, against the definitions."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cerflow.language.formula import Strategy
from conformance import assert_conforms, drawn
from random_conditions import Fragment
from random_queries import OPERATORS
from runners import ENGINE_RUNNERS, engine_refuses, examples, may_refuse, one_batch

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


@examples(60)
@given(st.data())
def test_everything_together(data):
    whole = Fragment(more=True, aggregates=True, depth=4)
    assert_conforms_or_refuses(*drawn(data, fragment=whole, strategies=STRATEGIES), {"one batch": one_batch})
