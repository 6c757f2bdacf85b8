"""Expressions of SREMO on Spark."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.errors import UnsupportedQueryError
from cerflow.language.formula import EventType, Sequence
from cerflow.language.select import Select
from cerflow.language.sremo import Regular
from cerflow.query import as_query_text
from support.golden import E1, LAST_B, SREMO_CASES, TRADES
from support.spark.results import assert_same

TABLE = pa.Table.from_pylist([dict(row) for row in TRADES])


@pytest.mark.slow
@pytest.mark.parametrize("text", [E1, f"({E1}) WITHIN 4 EVENTS", f"next({LAST_B.replace(' . ', ', ')})"])
@pytest.mark.parametrize("written", [True, False])
def test_spark_gives_the_same(spark, text, written):
    query = cerflow.parse(text, language="sremo") if written else cerflow.Query(cerflow.parse_sremo(text))
    assert assert_same(spark, query, TABLE, positions=True)


@pytest.mark.parametrize("case", SREMO_CASES, ids=lambda case: case.name)
def test_what_tasks_get_means_the_same(case):
    query = cerflow.Query(cerflow.parse_sremo(case.query))
    assert cerflow.parse(as_query_text(query), language=query.language).tree == query.tree


def test_what_cannot_be_written_is_refused():
    inside = Sequence(EventType("B"), Regular(cerflow.parse_sremo(E1)))
    with pytest.raises(UnsupportedQueryError, match="cannot be written as text"):
        as_query_text(cerflow.Query(Select(inside)))
