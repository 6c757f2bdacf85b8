"""Nested attributes: ``x.device.os`` reads a field of a struct (spec §11)."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import InputError, QueryError
from cerflow.builder import event, item, label, select, this, window
from support.conformance import assert_conforms, drawn
from support.generators.nested import below_structs
from support.runners import ENGINE_RUNNERS, Rows, examples, semantics

EVENTS: list[dict[str, Any]] = [
    {"type": "A", "device": {"os": "ios", "id": 7, "at": {"lat": 1.5}}},
    {"type": "B", "device": {"os": "ios", "id": 7, "at": None}},
    {"type": "A", "device": None},
    {"type": "B", "device": {"os": None, "id": 8, "at": {"lat": 2.5}}},
]


def both(text: str, events: Any = EVENTS, **roles: Any) -> Rows:
    """The matches by the engine, which must be those by definition."""
    query = cerflow.parse(text)
    found = query.match(events, **roles).to_pylist()
    assert found == query.match(events, runner="semantics", **roles).to_pylist()
    return found


def places(text: str, events: Any = EVENTS, **roles: Any) -> list[tuple[int, int]]:
    return [(row["start"], row["end"]) for row in both(text, events, **roles)]


@examples(150)
@given(st.data())
def test_random_queries(data):
    assert_conforms(*data.draw(below_structs(*drawn(data))), ENGINE_RUNNERS)


@examples(60)
@given(st.data())
def test_the_same_as_without_structs(data):
    query, table = drawn(data)
    moved = data.draw(below_structs(query, table))
    flat, nested = ([row.get("start") for row in semantics(q, t, time="t")] for q, t in ((query, table), moved))
    assert flat == nested


def test_conditions_and_columns():
    (row,) = both(
        "SELECT x.device.os, x.device.at.lat, min(y.device.id), y.device.at.lat AS place "
        "WHERE (A AS x ; B AS y) FILTER x.device.os = y.device.os"
    )
    assert [*row][6:] == ["x_device_os", "x_device_at_lat", "min_y_device_id", "place"]
    assert (row["x_device_os"], row["x_device_at_lat"], row["min_y_device_id"], row["place"]) == ("ios", 1.5, 7, None)


def test_null_structs():
    assert places("SELECT * WHERE A AS x FILTER x.device.id IS NULL") == [(2, 2)]
    assert places("SELECT * WHERE EVENT AS x FILTER x.device.at.lat IS NULL") == [(1, 1), (2, 2)]
    assert places("SELECT * WHERE EVENT AS x FILTER x.device.at IS NULL") == [(1, 1), (2, 2)]
    assert places("SELECT * WHERE EVENT AS x FILTER NOT x.device.os = 'a'") == [(0, 0), (1, 1)]


def test_keys_and_windows():
    (row, *_) = both("SELECT NONE WHERE A ; B PARTITION BY device.id")
    assert row["device_id"] == 7
    assert places("SELECT * WHERE EVENT AS x ; EVENT AS y PARTITION BY device.at.lat WITHIN 2 [device.id]") == []
    assert places("SELECT * WHERE B AS x ; B AS y WITHIN 2 [device.id]") == [(1, 3)]
    assert places("SELECT * WHERE B AS x ; B AS y WITHIN 1 [device.id]") == []


def test_whole_structs_and_single_fields_are_reported():
    (event,) = both("SELECT * WHERE A AS x FILTER x.device.os = 'ios'")[0]["events"]
    assert event == {"position": 0, "labels": ["A", "x"], **EVENTS[0]}
    (event,) = both("SELECT x[device.os, device.at.lat] WHERE A AS x FILTER x.device.os = 'ios'")[0]["events"]
    assert event == {"position": 0, "labels": ["x"], "type": "A", "device_os": "ios", "device_at_lat": 1.5}
    flat = cerflow.parse("SELECT x[device.os] WHERE A AS x").match(EVENTS).to_arrow(flat=True)
    assert "x_device_os" in flat.column_names


def test_in_brackets_a_label_comes_before_an_attribute():
    found = places("SELECT * WHERE (A AS x ; B AS y) FILTER x[device.os = y.device.os]")
    assert found == [(0, 1)]
    # Here ``device`` is a label.
    found = places(
        "SELECT * WHERE (A AS device ; B AS y) FILTER y[id > device.id]",
        [{"type": "A", "id": 1, "device": {"id": 9}}, {"type": "B", "id": 2, "device": {"id": 0}}],
    )
    assert found == [(0, 1)]


def test_kinds_read_fields():
    assert places("DEFINE a AS device.id = 8, b AS a OR device.at.lat > 1 SELECT * WHERE b AS x") == [(0, 0), (3, 3)]


def test_sremo():
    assert places("SELECT * WHERE SREMO([device.os = 'ios'] MARK . [device.id = 7] MARK)") == [(0, 1)]
    assert places("SELECT * WHERE SREMO([TRUE] MARK INTO r . [device.os = r.device.os] MARK)") == [(0, 1)]
    # A register of that name comes first; one that is never written is empty where there is no such attribute.
    events = [{"type": "A", "id": 1, "device": {"id": 9}}, {"type": "B", "id": 1, "device": {"id": 0}}]
    assert places("SELECT * WHERE SREMO([TRUE] MARK INTO device . [id = device.id] MARK)", events) == [(0, 1)]
    with pytest.warns(cerflow.QueryWarning, match="register 'other' is read but never written"):
        assert places("SELECT * WHERE SREMO([id = other.id] MARK)", events) == []
    query = cerflow.parse("SELECT * WHERE SREMO([device.id > 1] MARK)")
    schema = cerflow.Schema(pa.Table.from_pylist(events).schema)
    assert query.warnings(schema) == ()


def test_a_column_with_dots_in_its_name():
    events = [{"type": "A", "device.os": "own", "device": {"os": "field"}}]
    (row,) = both('SELECT x."device.os" AS a, x.device.os AS b WHERE A AS x', events)
    assert (row["a"], row["b"]) == ("own", "field")
    with pytest.raises(QueryError, match=r'The column is written in quotes: "device\.os"'):
        both("SELECT x.device.os WHERE A AS x", [{"type": "A", "device.os": "own"}])


def test_type_and_time_in_structs():
    events = [
        {"meta": {"kind": kind, "at": datetime.datetime(2024, 1, 1, minute=minute)}, "v": minute}
        for kind, minute in [("B", 9), ("A", 4), ("B", 20), ("A", 0)]
    ]
    roles = {"type": "meta.kind", "time": "meta.at"}
    found = both("SELECT x.v, y.v WHERE A AS x ; B AS y WITHIN 6 MINUTES", events, **roles)
    assert [(row["x_v"], row["y_v"]) for row in found] == [(4, 9)]
    recognizer = cerflow.parse("SELECT x.v, y.v WHERE A AS x ; B AS y WITHIN 6 MINUTES").recognizer(
        pa.Table.from_pylist(events).schema, **roles
    )
    late = [row for e in sorted(events, key=lambda e: e["meta"]["at"]) for row in recognizer.push(e)]
    assert [(row["x_v"], row["y_v"]) for row in late] == [(4, 9)]
    # A column of exactly that name wins.
    named = [{"type": "B", "meta.kind": "A", "meta": {"kind": "B"}}]
    assert places("SELECT * WHERE A AS x", named, type="meta.kind") == [(0, 0)]
    numbers = [{"meta": {"kind": 4625}}, {"meta": {"kind": None}}]
    query = cerflow.parse('SELECT * WHERE "4625" AS x')
    assert query.match(numbers, type="meta.kind", on_bad_record="skip").count() == 1
    with pytest.raises(InputError, match=r"row 1: no event type in 'meta\.kind'"):
        query.match(numbers, type="meta.kind")


REFUSED = {
    "x.device.oss = 'a'": ("'device' has no field 'oss'", "oss", "Did you mean 'os'?"),
    "x.device.at.lon = 1": ("'device.at' has no field 'lon'", "lon", "Its fields are lat."),
    "x.devise.os = 'a'": ("unknown attribute 'devise'", "x.devise", "Did you mean 'device'?"),
    "x.os = 'a'": ("unknown attribute 'os'", "x.os", "Did you mean 'device.os'?"),
    "x.device = 'a'": ("attribute 'device' has type struct<", "x.device", "such as device.os"),
    "x.device.os.name = 'a'": ("'device.os' has type string, so it has no field", "name", "If it holds JSON"),
    "x[device.oss = 'a']": ("'device' has no field 'oss'", "oss", "Did you mean 'os'?"),
    "x.list.os = 'a'": ("'list' has type list<", "os", "make one event of each element"),
    "x.device.os = 1": ("a string cannot be compared with", None, None),
}


@pytest.mark.parametrize("condition", REFUSED)
def test_refused(condition):
    reason, place, hint = REFUSED[condition]
    text = f"SELECT * WHERE A AS x FILTER {condition}"
    events = [{**row, "list": [{"os": "a"}]} for row in EVENTS]
    with pytest.raises(QueryError) as caught:
        cerflow.parse(text).match(events)
    assert reason in caught.value.reason
    if place is not None:
        assert caught.value.span is not None
        assert text[caught.value.span.start : caught.value.span.end] == place
        assert hint in str(caught.value)


def test_refused_keys_and_windows():
    for clause, place in (("PARTITION BY device.oss", "oss"), ("WITHIN 5 [device.idd]", "idd")):
        text = f"SELECT * WHERE A AS x {clause}"
        with pytest.raises(QueryError, match="'device' has no field") as caught:
            cerflow.parse(text).match(EVENTS)
        assert caught.value.span is not None
        assert text[caught.value.span.start : caught.value.span.end] == place


def test_an_event_with_another_value_in_place_of_a_struct_is_refused_and_changes_nothing():
    recognizer = cerflow.parse("SELECT * WHERE (A ; B) PARTITION BY device.os").recognizer(
        pa.Table.from_pylist(EVENTS).schema
    )
    assert recognizer.push({"type": "A", "device": {"os": "ios"}}).count() == 0
    with pytest.raises(InputError, match="the value 'phone' of 'device' is not a dict, so it has no field 'os'"):
        recognizer.push({"type": "B", "device": "phone"})
    assert recognizer.push({"type": "B", "device": {"os": "ios"}}).count() == 1


def test_queries_in_sets_and_programs():
    found = cerflow.QuerySet({"one": "SELECT x.device.os WHERE A AS x", "two": "SELECT * WHERE B"}).match(EVENTS)
    assert {name: matches.count() for name, matches in found.items()} == {"one": 2, "two": 2}
    text = """
        DEFINE pair AS SELECT x.device.os FROM s WHERE (A AS x ; B AS y) PARTITION BY device.id ;
        SELECT p.device_id, p.x_device_os, y.device.id AS other FROM pair, s WHERE pair AS p ; B AS y
    """
    program = cerflow.parse_program(text)
    events = [*EVENTS, {"type": "B", "device": {"os": "x", "id": 1}}]
    expected = [("ios", 8), ("ios", 1)]
    for runner in ("engine", "semantics"):
        rows = program.match(events, runner=runner).to_pylist()
        assert [(row["p_x_device_os"], row["other"]) for row in rows] == expected
        assert {row["p_device_id"] for row in rows} == {7}
    recognizer = program.recognizer(pa.Table.from_pylist(events).schema)
    assert sum(recognizer.push(event).count() for event in events) == 2


def test_the_builder():
    x, y = label("x"), label("y")
    pattern = (event("A").as_("x") >> event("B").as_("y")).filter(x.device.os == y["device"]["os"])
    columns = [x.device.at.lat, item("y", this.device.os)]
    size = window(5, this.device.id)
    query = cerflow.Query(select(pattern, *columns, partition_by=[this.device.id], within=size))
    assert str(query) == (
        "SELECT x.device.at.lat AS x_device_at_lat, y[device.os] WHERE A AS x ; B AS y "
        "FILTER x.device.os = y.device.os PARTITION BY device.id WITHIN 5 [device.id]"
    )
    (row,) = query.match(EVENTS).to_pylist()
    assert (row["x_device_at_lat"], row["events"][0]["device_os"]) == (1.5, "ios")
    with pytest.raises(AttributeError, match="no method 'lik'"):
        x.device.os.lower().lik("a%")


def test_explain_and_text():
    query = cerflow.parse('SELECT x.device.os WHERE A AS x FILTER x."a b".c."d.e" > 1 PARTITION BY device.id')
    assert cerflow.parse(str(query)).tree == query.tree
    table = pa.Table.from_pylist([{**EVENTS[0], "a b": {"c": {"d.e": 1}}}])
    for form in ("text", "json"):
        said = query.explain(form, cerflow.Schema(table.schema))
        assert "device.os" in said
        assert "\u2024" not in said


def test_why_not_and_trace():
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.device.id > 7")
    assert "x.device.id = 7" in str(query.why_not(EVENTS, [0, 1]))
    assert len([*query.trace(EVENTS).steps()]) == 4
    keyed = cerflow.parse("SELECT * WHERE A ; B PARTITION BY device.id")
    assert "PARTITION BY device.id: the events have different keys" in str(keyed.why_not(EVENTS, [0, 3]))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MAX(l.device.id) AS m, MIN(l.device.at.lat), SUM(l.device.id), AVG(l.device.at.lat) AS av, "
        "COUNT(l.device.os), COUNT(DISTINCT l.device.os) AS d WHERE A AS a ; B+ AS l",
        "SELECT FIRST(l.device.os) AS f, LAST(l.device.os) AS g, STDDEV(l.device.id) AS s WHERE (A OR B)+ AS l",
        "SELECT l WHERE (A AS a ; B+ AS l) FILTER MAX(l.device.id) > a.device.id AND COUNT(l.device.os) > 0",
        "SELECT l WHERE (A OR B)+ AS l FILTER LAST(l.device.os) = 'ios' AND SUM(l.device.id) > 7",
        "SELECT COUNT(*) WHERE A AS a ; B AS b PARTITION BY device.id",
        "SELECT MATCH_NUMBER() AS n, a.device.at.lat WHERE A AS a : B AS b",
        "SELECT MAX BY b MAX(a.device.os) AS m, b.device.id WHERE (A OR B)+ AS a ; B AS b",
    ],
)
def test_aggregates_and_choices(text):
    query = cerflow.parse(text)
    found, wanted = (query.match(EVENTS).to_pylist(), query.match(EVENTS, runner="semantics").to_pylist())
    assert found
    # Matches that one event detects have no order.
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_a_field_orders_events_of_one_time():
    flat = [{"type": "AB"[n % 2], "t": n // 4, "n": -n, "v": n} for n in range(9)]
    nested = [{"type": row["type"], "m": {"t": row["t"], "n": row["n"]}, "v": row["v"]} for row in flat]
    query = cerflow.parse("SELECT a.v, b.v WHERE A AS a : B AS b")
    roles: dict[str, Any] = {"time": "m.t", "sequence": "m.n"}
    wanted = query.match(flat, time="t", sequence="n").to_pylist()
    assert wanted
    assert wanted != query.match(flat, time="t").to_pylist()
    assert query.match(nested, **roles).to_pylist() == wanted
    assert cerflow.QuerySet({"q": query}).match(nested, **roles)["q"].to_pylist() == wanted
    assert str(query.why_not(nested, [2, 3], **roles)) == str(query.why_not(flat, [2, 3], time="t", sequence="n"))
    with pytest.raises(InputError, match=r"the sequence column 'm\.o' is not in the input"):
        query.match(nested, time="m.t", sequence="m.o")


def test_keys_whose_names_are_taken_get_an_underscore():
    events = [{"type": "A", "start": 1, "Events": 2, "device": {"id": 3}, "device_id": 4}]
    (row,) = both("SELECT NONE WHERE A PARTITION BY start, Events, device.id, device_id", events)
    assert [row[name] for name in ("start_", "Events_", "device_id", "device_id_")] == [1, 2, 3, 4]
    (row,) = both("SELECT COUNT(*) WHERE A PARTITION BY end_time", [{"type": "A", "end_time": 5}])
    assert row["end_time_"] == 5
    with pytest.raises(QueryError, match="column 'start_' would be a second result column"):
        cerflow.parse("SELECT x.v AS start_ WHERE A AS x PARTITION BY start")
