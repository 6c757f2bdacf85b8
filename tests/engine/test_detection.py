"""SELECT NONE: at which events there is any match, without the matches."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow.errors import QueryError, UnsupportedQueryError
from cerflow.language.formula import AttributeWindow, Within
from cerflow.language.node import walk
from cerflow.language.select import Projection, ProjectionKind, Select
from cerflow.language.sremo import Regular
from cerflow.semantics.events import Stream
from cerflow.semantics.sremo import sremo_matches
from conformance import table_of
from random_conditions import Fragment
from random_queries import OPERATORS, cases
from random_sremo import OPERATORS as SREMO_OPERATORS
from random_sremo import streams, windowed_expressions
from runners import ENGINE_RUNNERS, engine_refuses, examples, may_refuse, one_batch, semantics

NONE = Projection(ProjectionKind.NONE)


def drawn(data, **options):
    """A query that asks for detections only, and events; some formulas have a window of their own at the end."""
    select, rows = data.draw(cases(**options))
    select = replace(select, projection=NONE)
    if select.window is not None and data.draw(st.integers(0, 2)) == 0:
        # A window that is no window of the whole query, as something may come before.
        select = replace(select, formula=Within(select.formula, select.window), window=None)
    try:
        query = cerflow.Query(select)
    except QueryError:
        assume(False)
    if any(isinstance(n, AttributeWindow) for n in walk(select)):
        for row in rows:
            if data.draw(st.integers(0, 4)) == 0:
                row["n"] = None
    return query, table_of(rows)


def assert_detects(query, table, runners):
    if engine_refuses(query, table, time="t"):
        assert may_refuse(query)
        assume(False)
    expected = semantics(query, table, time="t")
    for name, run in runners.items():
        assert run(query, table, time="t") == expected, name
    event("detecting" if expected else "not detecting")


@examples(250)
@given(st.data())
def test_random_queries(data):
    query, table = drawn(data, strategies=True)
    assert_detects(query, table, {"one batch": one_batch})


@examples(80)
@given(st.data())
def test_random_queries_in_batches_and_from_snapshots(data):
    query, table = drawn(data, strategies=True, fragment=Fragment(aggregates=data.draw(st.booleans())))
    assert_detects(query, table, ENGINE_RUNNERS)


@pytest.mark.parametrize("operator", OPERATORS)
@examples(25)
@given(data=st.data())
def test_every_operator(operator, data):
    query, table = drawn(data, operator=operator, fragment=Fragment(more=True))
    assert_detects(query, table, ENGINE_RUNNERS)


@pytest.mark.parametrize("operator", SREMO_OPERATORS, ids=lambda operator: operator.__name__)
@examples(25)
@given(data=st.data())
def test_expressions_of_sremo(operator, data):
    expression = data.draw(windowed_expressions(3, operator))
    rows = data.draw(streams())
    try:
        query = cerflow.Query(Select(Regular(expression), NONE))
        query.check()
    except (QueryError, UnsupportedQueryError):
        assume(False)
    expected = sorted({n for n, _ in sremo_matches(expression, Stream.from_dicts(rows, time="t"))})
    columns = {"type": pa.string(), "t": pa.int64(), "v": pa.int64(), "n": pa.int64()}
    for name, run in ENGINE_RUNNERS.items():
        found = run(query, table_of(rows, columns), time="t")
        assert [row["detected_at"] for row in found] == expected, name
    event("detecting" if expected else "not detecting")
