"""Expressions of SREMO on Spark."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.api.programs.program import query_as_text
from cerflow.language.formula import EventType, Sequence
from cerflow.language.select import Select
from cerflow.language.sremo import Regular
from support.golden import E1, LAST_B, SREMO_CASES, TRADES
from support.spark.results import assert_same

TABLE = pa.Table.from_pylist([dict(row) for row in TRADES])


@pytest.mark.slow
@pytest.mark.parametrize("text", [E1, f"({E1}) WITHIN 4 EVENTS", f"next({LAST_B.replace(' . ', ', ')})"])
@pytest.mark.parametrize("written", ["sremo", "ceql", "tree"])
def test_spark_gives_the_same(spark, text, written):
    query = {
        "sremo": lambda: cerflow.parse(text, language="sremo"),
        "ceql": lambda: cerflow.parse(f"SELECT NEXT * WHERE SREMO({text}) PARTITION BY type LIMIT 2"),
        "tree": lambda: cerflow.Query(Select(Sequence(EventType("B"), Regular(cerflow.parse_sremo(text))))),
    }[written]()
    assert_same(spark, query, TABLE, positions=True)
    assert written != "sremo" or query.match(TABLE).count()


@pytest.mark.parametrize("case", SREMO_CASES, ids=lambda case: case.name)
def test_what_tasks_get_means_the_same(case):
    expression = Regular(cerflow.parse_sremo(case.query))
    for query in (cerflow.Query(expression.expression), cerflow.Query(Select(Sequence(EventType("B"), expression)))):
        assert cerflow.parse(query_as_text(query)).tree == query.tree
