"""The result of Spark beside that of the same query in-process, as bags of rows."""

import pickle
import subprocess
import sys
from collections import Counter

import cerflow
from cerflow.spark import match


def frozen(value):
    if isinstance(value, dict):
        return tuple((name, frozen(v)) for name, v in value.items())
    if value != value:
        return "NaN"
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def bag(table):
    return Counter(map(frozen, table.to_pylist()))


def assert_same(spark, query, table, *, positions=False, local_positions=None, frame=None, **roles):
    """Spark gives what `Query.match` gives; returns the rows."""
    query = cerflow.parse(query) if isinstance(query, str) else query
    if frame is None:
        frame = spark.createDataFrame(table)
    on_spark = match(query, frame, positions=positions, **roles)
    local = query.match(table, positions=positions if local_positions is None else local_positions, **roles)
    found, expected = on_spark.toArrow(), local.to_arrow()
    assert found.column_names == expected.column_names
    assert bag(found) == bag(expected)
    return found.to_pylist()


def rows_in_a_process(task, *arguments):
    """The number of rows that a task gives in a process of its own, where it must not import pandas.

    Spark collects garbage after each task, so that must not visit all that was imported.
    """
    code = """
import gc, pickle, sys
task, arguments = pickle.load(sys.stdin.buffer)
print(sum(batch.num_rows for batch in task(*arguments)))
assert 'pandas' not in sys.modules
assert gc.get_freeze_count() > 10_000
"""
    given = pickle.dumps((task, arguments))
    done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()
    return int(done.stdout)
