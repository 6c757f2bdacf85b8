"""Predicates travel to the tasks of Spark with the query that calls them."""

import threading

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import cerflow
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.schema import Schema
from cerflow.cli.commands.request import load_predicates
from cerflow.spark import match
from cerflow.spark.frames.tasks import Recognition, pack
from support.spark.results import assert_same

EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "B", "A", "B"],
        "k": [1, 2, 1, 2, 1, 1],
        "v": [1, 5, 2, None, 3, 4],
        "s": ["p", "q", "q", "p", None, "z"],
        "unused": [0] * 6,
    }
)
QUERY = (
    "SELECT x[v], y[v] WHERE (A AS x ; B AS y) FILTER close(x.v, y.v) AND odd(x.v) AND wide(x, y) AND early(x.s) "
    "PARTITION BY k"
)


@pytest.mark.versions
@pytest.mark.slow
def test_predicates_of_every_kind(spark, predicate, tmp_path):
    width = 2

    @predicate
    def close(a, b):
        return abs(a - b) < width

    predicate("odd", vectorized=True)(lambda values: values % 2 == 1)
    predicate("early", compile=False)(lambda text: text < "y")
    (tmp_path / "wide.py").write_text(
        "import cerflow\nnames = {'type', 'k', 'v', 's', 'unused'}\n"
        "cerflow.predicate('wide', compile=False)(lambda x, y: set(x) == names and x['k'] == y['k'])"
    )
    load_predicates([str(tmp_path / "wide.py")])
    assert len(assert_same(spark, QUERY, EVENTS)) == 1
    # The same name, another predicate.
    predicate("close")(lambda a, b: a < b)
    assert len(assert_same(spark, QUERY, EVENTS)) == 2


@pytest.mark.slow
def test_predicates_of_sets_of_several_labels(spark, predicate):
    predicate("fewer", of_set=True)(lambda a, b: a.size < b.size)
    query = "SELECT * WHERE (A+ ; B+) FILTER fewer(A.v, B.v) WITHIN 5 EVENTS"
    found = assert_same(spark, query, EVENTS, positions=True)
    assert 0 < len(found) < cerflow.parse("SELECT * WHERE A+ ; B+ WITHIN 5 EVENTS").match(EVENTS).count()


@pytest.mark.slow
def test_failures_name_the_predicate(spark, predicate):
    predicate("close")(lambda a, b: a // (b - 4) > 0)
    query = "SELECT * WHERE (A AS x ; B AS y) FILTER close(x.v, y.v)"
    with pytest.raises(PySparkException, match=r"predicate 'close' failed on \(\d, 4\): ZeroDivisionError"):
        match(query, spark.createDataFrame(EVENTS)).collect()


def test_what_cannot_travel_is_refused(predicate):
    lock = threading.Lock()
    predicate("close")(lambda a, b: lock is not None)
    with pytest.raises(UnsupportedQueryError, match="the predicates 'close' cannot be sent to the tasks of Spark"):
        pack(cerflow.parse("SELECT * WHERE A AS x FILTER close(x.v, x.v)"))
    assert pack(cerflow.parse("SELECT * WHERE A AS x")) is None


def test_a_task_uses_what_came_with_it(predicate):
    predicate("close")(lambda a, b: a < b)
    text = "SELECT * WHERE (A AS x ; B AS y) FILTER close(x.v, y.v)"
    task = Recognition(
        text,
        Schema(EVENTS.schema),
        "type",
        None,
        True,
        pack(cerflow.parse(text)),
    )
    predicate("close")(lambda a, b: a > b)
    assert sum(batch.num_rows for batch in task(iter(EVENTS.to_batches()))) == 3
    assert cerflow.parse(text).match(EVENTS).count() == 2
