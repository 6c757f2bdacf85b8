"""Several DataFrames become several streams, as several tables do."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import InputError
from cerflow.spark import Input, match, streams
from support.spark.results import bag

pytestmark = pytest.mark.slow

TRADES = pa.table(
    {
        "kind": ["BUY", "SELL", "BUY", "SELL"],
        "at": pa.array([2, 4, 6, 6], pa.int32()),
        "px": pa.array([10, 11, 12, 13], pa.int32()),
        "Price": ["u", "v", "w", "x"],
        "a.b": [1, 2, 3, 4],
    }
)
QUOTES = pa.table({"ts": [1, 3, 5, 6], "price": [9.5, 12.0, 12.5, 13.0], "seen": [True, None, False, True]})
QUERY = (
    "SELECT q, s, s.price - q.price AS change FROM quotes, trades "
    "WHERE quotes>QUOTE AS q ; trades>SELL AS s FILTER s.price >= q.price WITHIN 10 SECONDS"
)


def inputs(trades, quotes):
    return {
        "trades": Input(trades, type="kind", time="at", rename={"px": "price"}),
        "quotes": Input(quotes, constant_type="QUOTE", time="ts"),
    }


def test_the_matches_are_those_of_tables(spark):
    here = cerflow.streams(inputs(TRADES, QUOTES), type="what")
    there = streams(inputs(spark.createDataFrame(TRADES), spark.createDataFrame(QUOTES)), type="what")
    assert there.roles == here.roles == {"type": "what", "time": "time", "stream": "stream"}
    assert there.events.columns == here.events.column_names
    assert bag(there.events.toArrow()) == bag(here.events)
    expected = cerflow.parse(QUERY).match(here.events, **here.roles).to_arrow()
    assert bag(match(QUERY, there.events, positions=True, **there.roles).toArrow()) == bag(expected)
    assert expected.num_rows == 4


@pytest.mark.parametrize(
    ("one", "other", "wider"),
    [
        ("CAST(1 AS INT)", "CAST(2 AS BIGINT)", "bigint"),
        ("CAST(1 AS BIGINT)", "CAST(2 AS FLOAT)", "double"),
        ("CAST(1 AS DECIMAL(9, 2))", "CAST(2 AS INT)", "double"),
        ("NULL", "make_interval(1)", None),
        ("make_interval(1)", "make_interval(2)", "interval"),
        ("array(1)", "array(2, NULL)", "array<int>"),
        ("TIMESTAMP_NTZ'2024-01-01'", "NULL", "timestamp_ntz"),
        ("1", "'x'", None),
        ("TIMESTAMP_LTZ'2024-01-01'", "TIMESTAMP_NTZ'2024-01-01'", None),
        ("array(1)", "array('x')", None),
    ],
)
def test_types_widen_as_those_of_tables(spark, one, other, wider):
    frames = {name: Input(spark.sql(f"SELECT 'A' AS type, {v} AS x")) for name, v in (("a", one), ("b", other))}
    if wider is None:
        with pytest.raises(InputError, match=r"'x' (is .* in 'a' and .* in 'b'|has type interval)"):
            streams(frames)
    else:
        both = streams(frames).events
        assert both.schema["x"].dataType.simpleString() == wider
        assert both.count() == 2


def test_wrong_mappings_are_explained(spark):
    frame = spark.createDataFrame(TRADES)
    with pytest.raises(InputError, match="type column 'type' is not in the input 'a', but in 'b'"):
        streams({"a": Input(frame), "b": Input(frame, constant_type="B")})
    with pytest.raises(InputError, match="'b' has no time column, but the input 'a' has one"):
        streams({"a": Input(frame, type="kind", time="at"), "b": Input(frame, type="kind")})
