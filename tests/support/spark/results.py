"""The result of Spark beside that of the same query in-process, as bags of rows."""

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
