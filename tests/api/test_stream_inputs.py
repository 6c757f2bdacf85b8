"""Several inputs become several streams of one table."""

from datetime import UTC, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

import cerflow
from cerflow import Input, InputError, streams

TRADES = [{"kind": "BUY", "at": 2, "px": 10, "id": 1}, {"kind": "SELL", "at": 4, "px": 11, "id": 2}]
QUOTES = pa.table({"ts": [1, 3], "price": [9.5, 12.0]})
MAPPED = {
    "trades": Input(TRADES, type="kind", time="at", rename={"px": "price"}),
    "quotes": Input(QUOTES, constant_type="QUOTE", time="ts"),
}


def test_a_query_over_two_streams():
    both = streams(MAPPED)
    assert both.roles == {"type": "kind", "time": "time", "stream": "stream"}
    assert both.events.to_pylist() == [
        {"kind": "BUY", "time": 2, "price": 10.0, "id": 1, "stream": "trades"},
        {"kind": "SELL", "time": 4, "price": 11.0, "id": 2, "stream": "trades"},
        {"kind": "QUOTE", "time": 1, "price": 9.5, "id": None, "stream": "quotes"},
        {"kind": "QUOTE", "time": 3, "price": 12.0, "id": None, "stream": "quotes"},
    ]
    query = "SELECT q.price AS seen, s.price AS paid FROM quotes, trades WHERE quotes>QUOTE AS q ; trades>SELL AS s"
    found = cerflow.parse(query).match(both.events, **both.roles).to_pylist()
    assert sorted((row["seen"], row["paid"]) for row in found) == [(9.5, 11.0), (12.0, 11.0)]


def test_names_may_be_given():
    both = streams(MAPPED, type="what", time="when", stream="id")
    assert both.roles == {"type": "what", "time": "when", "stream": "_id"}
    assert both.events.column_names == ["what", "when", "price", "id", "_id"]


def test_what_all_inputs_call_a_role_stays():
    one = streams({"a": Input([{"k": "A", "t": 1, "n": 1}], type="k", time="t", sequence="n")})
    assert one.roles == {"type": "k", "time": "t", "sequence": "n", "stream": "stream"}
    other = streams({"a": Input([{"type": "A", "t": 1}]), "b": Input([{"t": 2}], constant_type="B")}, time="t")
    assert other.roles == {"type": "type", "time": "t", "stream": "stream"}


@pytest.mark.parametrize(
    ("one", "other", "wider"),
    [
        (pa.int8(), pa.int32(), pa.int32()),
        (pa.int64(), pa.float32(), pa.float64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int32(), pa.decimal128(9, 2), pa.float64()),
        (pa.decimal128(9, 2), pa.decimal128(12, 3), pa.decimal128(12, 3)),
        (pa.null(), pa.bool_(), pa.bool_()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.null(), pa.string()),
        (pa.string(), pa.large_string(), pa.large_string()),
        (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("ms", tz="UTC"), pa.timestamp("s", tz="Europe/Berlin"), pa.timestamp("ms", tz="UTC")),
        (pa.list_(pa.int64()), pa.list_(pa.int64()), pa.list_(pa.int64())),
    ],
)
def test_types_widen(one, other, wider):
    def found(a, b):
        parts = {n: Input(pa.table({"type": ["A"], "x": pa.nulls(1, t)})) for n, t in (("a", a), ("b", b))}
        return streams(parts).events.schema.field("x").type

    assert found(one, other) == wider
    if not pa.types.is_timestamp(one):
        assert found(other, one) == wider


def test_widening_keeps_values():
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    left = pa.table({"type": ["A"], "n": pa.array([3], pa.int8()), "t": pa.array([moment], pa.timestamp("s", "UTC"))})
    right = pa.table({"type": ["B"], "n": [Decimal("2.50")], "t": pa.array([moment], pa.timestamp("us", "Asia/Tokyo"))})
    rows = streams({"a": Input(left), "b": Input(right)}).events.to_pylist()
    assert [(row["n"], row["t"]) for row in rows] == [(3.0, moment), (2.5, moment)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.string()),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC")),
        (pa.timestamp("us"), pa.int64()),
        (pa.date32(), pa.timestamp("us")),
        (pa.bool_(), pa.int64()),
        (pa.list_(pa.int64()), pa.list_(pa.string())),
    ],
)
def test_types_that_do_not_fit_are_named_with_both_inputs(one, other):
    tables = (pa.table({"type": ["A"], "x": pa.nulls(1, t)}) for t in (one, pa.null(), other))
    with pytest.raises(InputError, match=r"column 'x' is .* in 'a' and .* in 'c'; convert or rename"):
        streams(dict(zip("abc", map(Input, tables))))


def test_values_that_do_not_fit_the_wider_type():
    big = pa.table({"type": ["A"], "x": pa.array([2**64 - 1], pa.uint64())})
    with pytest.raises(InputError, match="column 'x' of the input 'a' does not fit int64"):
        streams({"a": Input(big), "b": Input([{"type": "B", "x": 1}])})


def test_pandas_columns_of_categories(tmp_path):
    frame = pd.DataFrame({"type": pd.Categorical(["A", "B"]), "v": [1, 2]})
    both = streams({"a": Input(frame), "b": Input([{"type": "A", "v": 1.5}])})
    assert both.events.column("type").to_pylist() == ["A", "B", "A"]


ROW = [{"type": "A", "x": 1, "y": 2, "t": 3}]


@pytest.mark.parametrize(
    ("inputs", "common", "says"),
    [
        ({"a": Input(ROW, type="typ")}, {}, "type column 'typ' is not in the input 'a'; did you mean 'type'"),
        ({"a": Input([{"x": 1}]), "b": Input(ROW)}, {}, "type column 'type' is not in the input 'a', but in 'b'"),
        ({"a": Input(ROW, time="u")}, {}, "time column 'u' is not in the input 'a'; the columns are type, x, y, t"),
        ({"a": Input(ROW)}, {"sequence": "n"}, "sequence column 'n' is not in the input 'a'"),
        ({"a": Input(ROW, rename={"z": "w"})}, {}, "column 'z', which is to be renamed, is not in the input 'a'"),
        ({"a": Input(ROW, rename={"x": "y"})}, {}, "more than one column 'y': its column 'x' and its column 'y'"),
        ({"a": Input(ROW, type="x")}, {"type": "type"}, "more than one column 'type'"),
        ({"a": Input(ROW, constant_type="A")}, {}, "column 'type': its column 'type' and the type that is given"),
        ({"a": Input(ROW, time="t", rename={"t": "u"})}, {}, "'t' of the input 'a' has a role and is called 't'"),
        ({"a": Input(ROW, time="t"), "b": Input(ROW)}, {}, "'b' has no time column, but the input 'a' has one"),
        ({"a": Input(ROW, sequence="x"), "b": Input(ROW)}, {}, "'b' has no sequence column"),
        ({"a": Input(3)}, {}, "int is not a table of events"),
    ],
)
def test_wrong_mappings_are_explained(inputs, common, says):
    with pytest.raises(InputError, match=says):
        streams(inputs, **common)


def test_wrong_calls():
    with pytest.raises(ValueError, match="not both"):
        Input(ROW, type="x", constant_type="A")
    with pytest.raises(ValueError, match="at least one input"):
        streams({})


def test_inputs_without_events():
    query = cerflow.parse("SELECT * FROM a, b WHERE a>A AS x ; b>B AS y FILTER x.v < y.v")
    roles = {"type": "kind", "time": "t"}
    both = streams({"a": Input([], **roles), "b": Input([{"kind": "B", "t": 1, "v": 2}], **roles)})
    assert both.events.num_rows == 1
    assert not query.match(both.events, **both.roles)
    neither = streams({"a": Input([], **roles), "b": Input([], constant_type="B", time="t")})
    assert not query.match(neither.events, **neither.roles)


def test_times_in_structs_need_one_unit():
    rows = [{"meta": {"kind": "AB"[n % 2], "at": 1000 + 50 * n}} for n in range(4)]
    both = streams({"a": Input(rows), "b": Input(rows)}, type="meta.kind", time="meta.at")
    query = cerflow.parse("SELECT * FROM a WHERE A ; B WITHIN 60 MILLISECONDS")
    assert query.match(both.events, **both.roles).count() == 2
    given = {"a": Input(rows, time_unit="s"), "b": Input(rows)}
    with pytest.raises(InputError, match=r"those in the field 'meta\.at' are not converted"):
        streams(given, type="meta.kind", time="meta.at")
