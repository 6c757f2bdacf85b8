"""The form of results: schema, names, positions, projections."""

import pyarrow as pa
import pytest

import cerflow
from support.runners import RUNNERS

SCHEMA = pa.schema([("kind", pa.string()), ("ts", pa.timestamp("ms", "UTC")), ("v", pa.int32()), ("s", pa.string())])
EVENTS = pa.table({"kind": ["A", "B", "C"], "ts": [1, 2, 3], "v": [7, 8, 9], "s": ["p", "q", "p"]}, schema=SCHEMA)
ROLES = {"type": "kind", "time": "ts"}


def schema_of(text, schema=SCHEMA, **roles):
    return cerflow.parse(text).result_schema(schema, **(roles or ROLES))


def test_schema():
    moment = pa.timestamp("ms", "UTC")
    schema = schema_of("SELECT * WHERE A ; B PARTITION BY s, [v, v]")
    assert schema.names == [
        "detected_at",
        "detected_time",
        "start",
        "end",
        "start_time",
        "end_time",
        "s",
        "v",
        "events",
    ]
    assert schema.types[:8] == [pa.int64(), moment] + [pa.int64()] * 2 + [moment] * 2 + [pa.string(), pa.int32()]
    event = schema.field("events").type.value_type
    assert [event.field(k).name for k in range(event.num_fields)] == ["position", "labels", "type", "ts", "v", "s"]
    assert event.field("labels").type == pa.list_(pa.string())
    assert event.field("ts").type == moment


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT NONE WHERE A", ["detected_at", "detected_time", "start", "end", "start_time", "end_time"]),
        ("SELECT COUNT(*) AS n WHERE A PARTITION BY s", ["detected_at", "detected_time", "end_time", "s", "n"]),
        (
            "SELECT x, x.v + 1 AS more WHERE A AS x",
            ["detected_at", "detected_time", "start", "end", "start_time", "end_time", "more", "events"],
        ),
        (
            "SELECT x.v AS v, x.v + 1 AS w WHERE A AS x",
            ["detected_at", "detected_time", "start", "end", "start_time", "end_time", "v", "w"],
        ),
        (
            "SELECT *, x.v AS v WHERE A AS x ; B",
            ["detected_at", "detected_time", "start", "end", "start_time", "end_time", "v", "events"],
        ),
    ],
)
def test_columns_of_projections(text, names):
    assert schema_of(text).names == names


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A ; B",
        "SELECT NONE WHERE A ; B",
        "SELECT COUNT(*) AS n WHERE A+ ; B PARTITION BY s",
        "SELECT x[v], x.v * 0.5 AS half, y.s AS t, y.ts AS moment, x.type AS kind_ WHERE A AS x ; B AS y",
        "SELECT * WHERE A ; D",
    ],
)
@pytest.mark.parametrize("positions", [True, False])
def test_every_batch_has_the_promised_schema(text, positions):
    query = cerflow.parse(text)
    matches = query.match(EVENTS, positions=positions, **ROLES)
    assert matches.schema == query.result_schema(SCHEMA, positions=positions, **ROLES)
    assert matches.to_arrow().schema == matches.schema
    assert all(batch.schema == matches.schema for batch in matches.to_batches(1))
    assert query.recognizer(SCHEMA, positions=positions, **ROLES).schema == matches.schema


def test_names_that_clash_get_an_underscore():
    schema = pa.schema([("kind", pa.string()), ("type", pa.string()), ("position", pa.int64()), ("end", pa.int64())])
    table = pa.table([["A"], ["mine"], [5], [6]], schema=schema)
    (row,) = cerflow.parse("SELECT * WHERE A").match(table, type="kind").to_pylist()
    assert row["events"] == [
        {"position": 0, "labels": ["A"], "type": "A", "type_": "mine", "position_": 5, "end": 6},
    ]


def test_without_positions():
    (row,) = cerflow.parse("SELECT * WHERE A ; B").match(EVENTS, positions=False, **ROLES).to_pylist()
    assert [*row] == ["detected_time", "start_time", "end_time", "events"]
    assert [[*event] for event in row["events"]] == [["labels", "type", "ts", "v", "s"]] * 2
    assert row["start_time"] < row["end_time"]
    flat = cerflow.parse("SELECT x WHERE A AS x ; B").match(EVENTS, positions=False, **ROLES).to_arrow(flat=True)
    assert flat.column_names == ["x_type", "x_ts", "x_v", "x_s", "detected_time", "start_time", "end_time"]


@pytest.mark.parametrize("select", ["SELECT *", "SELECT COUNT(*) AS n", "SELECT NONE", "SELECT position(x) AS p"])
@pytest.mark.parametrize("run", RUNNERS.values(), ids=list(RUNNERS))
def test_without_positions_of_named_streams(run, select):
    events = EVENTS.append_column("from", pa.array(["s2", "s1", "s1"]))
    query = cerflow.parse(f"{select} FROM s1 WHERE B AS x")
    (row,) = run(query, events, stream="from", positions=False, **ROLES)
    assert not {"detected_at", "start", "end"} & row.keys()
    assert not any("position" in event for event in row.get("events", []))
    assert row.get("p", 1) == 1


def test_positions_of_a_column_are_always_reported():
    events = EVENTS.append_column("from", pa.array(["s2", "s1", "s1"])).append_column("at", pa.array([5, 6, 7]))
    for query in ("SELECT * WHERE B", "SELECT * FROM s1 WHERE B"):
        recognizer = cerflow.parse(query).recognizer(
            events.schema, stream="from", position="at", positions=False, **ROLES
        )
        (row,) = cerflow.Recognizer.restore(cerflow.parse(query), recognizer.snapshot()).push(events).to_pylist()
        assert (row["detected_at"], row["end"]) == (6, 6)


def test_a_match_without_events():
    (row,) = cerflow.parse("SELECT * WHERE PROJECT Z (A)").match(EVENTS, **ROLES).to_pylist()
    assert row == {
        **dict.fromkeys(["start", "end", "start_time", "end_time"]),
        "detected_at": 0,
        "detected_time": EVENTS["ts"][0].as_py(),
        "events": [],
    }


def test_attributes_are_shown_for_the_labels_that_ask_for_them():
    query = cerflow.parse("SELECT x[v], y[v, s], z WHERE A AS x ; B AS y ; C AS z")
    (row,) = query.match(EVENTS, **ROLES).to_pylist()
    assert [(e["labels"], e["v"], e["s"]) for e in row["events"]] == [
        (["x"], 7, None),
        (["y"], 8, "q"),
        (["z"], 9, "p"),
    ]
    (row,) = cerflow.parse("SELECT x[v], y[s] WHERE A AS x ; B AS y").match(EVENTS, **ROLES).to_pylist()
    assert [set(event) for event in row["events"]] == [{"position", "labels", "type", "v", "s"}] * 2
    assert [(e["v"], e["s"]) for e in row["events"]] == [(7, None), (None, "q")]


def test_computed_columns():
    query = cerflow.parse(
        "SELECT x.v + y.v AS total, x.v / 0 AS nothing, upper(y.s) AS loud, z.v AS absent, "
        "time(x) AS at, position(y) AS p, length(y.s) + z.v AS neither "
        "WHERE (A AS x ; B AS y) OR (A AS x ; C AS y ; D AS z)"
    )
    (row,) = query.match(EVENTS, **ROLES).to_pylist()
    moment = EVENTS.column("ts")[0].as_py()
    names = ("total", "nothing", "loud", "absent", "at", "p", "neither")
    assert tuple(row[n] for n in names) == (15, None, "Q", None, moment, 1, None)


def test_computed_columns_alone_are_those_of_each_match():
    text = "x.v AS v WHERE (A AS x) OR (B AS x) ; C AS y"
    alone, beside = (cerflow.parse(f"SELECT {start}{text}").match(EVENTS, **ROLES).to_pylist() for start in ("", "*, "))
    assert [row["v"] for row in alone] == [7, 8]
    assert alone == [{name: value for name, value in row.items() if name != "events"} for row in beside]
    assert [[e["position"] for e in row["events"]] for row in beside] == [[0], [1, 2]]
    with pytest.raises(cerflow.QuerySyntaxError):
        cerflow.parse("SELECT *, x WHERE A AS x")


def test_labels_are_sorted_and_types_of_any_event_are_named():
    (row,) = cerflow.parse("SELECT * WHERE (EVENT AS z) AS a ; C AS b").match(EVENTS.slice(1), **ROLES).to_pylist()
    assert [event["labels"] for event in row["events"]] == [["B", "a", "z"], ["C", "b"]]
