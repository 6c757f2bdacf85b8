"""Events as people have them: tables of many libraries, dicts, batches, in any order."""

import datetime
import math
import pathlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import cerflow
from cerflow.base.errors import InputError
from cerflow.base.event_tables import to_table
from cerflow.engine.events.time_order import sort_by_time

QUERY = cerflow.parse("SELECT x, x.v + y.v AS total WHERE (A AS x ; B AS y) FILTER x.s = y.s")
ROWS = [{"type": "A", "v": 1, "s": "p"}, {"type": "C", "v": 2, "s": "q"}, {"type": "B", "v": 3, "s": "p"}]
TABLE = pa.Table.from_pylist(ROWS)
# Made as views from the start: Arrow before version 25 crashes when it exports views that a cast made.
VIEWS = pa.Table.from_pylist(ROWS, pa.schema([("type", pa.string_view()), ("v", pa.int64()), ("s", pa.string_view())]))


class Capsule:
    """Something of another library that exports Arrow data."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


FORMS = {
    "table": TABLE,
    "record batch": TABLE.to_batches()[0],
    "list of batches": [TABLE.slice(0, 2).to_batches()[0], TABLE.slice(2).to_batches()[0]],
    "iterator of batches": lambda: iter(TABLE.to_batches(max_chunksize=1)),
    "list of dicts": ROWS,
    "generator of dicts": lambda: (row for row in ROWS),
    "dict of lists": {name: TABLE[name].to_pylist() for name in TABLE.column_names},
    "pandas": pd.DataFrame(ROWS),
    "pandas with an index": pd.DataFrame(ROWS, index=[5, 3, 5]),
    "polars": pl.DataFrame(ROWS),
    "capsule": Capsule(TABLE),
    "reader": lambda: TABLE.to_reader(),
    "string views": VIEWS,
    "batches of string views": VIEWS.to_batches(),
    "capsule of string views": Capsule(VIEWS),
    "large strings": TABLE.cast(pa.schema([("type", pa.large_string()), ("v", pa.int64()), ("s", pa.large_string())])),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms(form):
    events = form() if callable(form) else form
    (row,) = QUERY.match(events).to_pylist()
    assert (row["start"], row["end"], row["total"]) == (0, 0, 4)
    assert [(event["type"], event["v"], event["s"]) for event in row["events"]] == [("A", 1, "p")]


def test_string_views_in_a_recogniser():
    recognizer = QUERY.recognizer(VIEWS.schema)
    assert recognizer.push(VIEWS.slice(0, 2)).count() == 0
    recognizer = cerflow.Recognizer.restore(QUERY, recognizer.snapshot())
    assert recognizer.push(VIEWS.slice(2)).to_pylist()[0]["total"] == 4


def test_dicts_with_differing_keys():
    rows = [{"type": "A", "v": 1}, {"w": 2.5, "type": "B"}, {"type": "B", "v": None}]
    assert to_table(rows).to_pydict() == {
        "type": ["A", "B", "B"],
        "v": [1, None, None],
        "w": [None, 2.5, None],
    }
    assert cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v < y.w").match(rows).count() == 1


def test_nothing_at_all():
    assert to_table([]).num_rows == 0
    assert QUERY.match(TABLE.slice(0, 0)).to_pylist() == []
    assert QUERY.match(TABLE.schema.empty_table()).count() == 0


DEFINING = "DEFINE d AS SELECT a.v AS u FROM s WHERE A AS a; SELECT *, x.u AS w FROM d, s WHERE d AS x ; B"


@pytest.mark.parametrize("table", [[], pa.table({"type": pa.nulls(0), "other": pa.nulls(0)})])
@pytest.mark.parametrize(
    ("read", "attribute"),
    [
        (cerflow.parse("SELECT *, a.v AS w WHERE A AS a ; B"), "v"),
        (cerflow.parse_program("SELECT *, a.v AS w WHERE A AS a ; B"), "v"),
        (cerflow.parse_program(DEFINING), "u"),
        (cerflow.QuerySet({"q": "SELECT *, a.v AS w WHERE A AS a ; B"}), "v"),
    ],
)
def test_events_of_unknown_types_have_no_matches_but_columns(table, read, attribute):
    found = read.match(table)
    found = found["q"] if isinstance(found, dict) else found
    assert found.to_pylist() == []
    shown = {field.name for field in found.schema.field("events").type.value_type}
    assert shown == {"position", "labels", "type", attribute, *(["other"] if isinstance(table, pa.Table) else [])}
    assert "w" in found.schema.names


# What is given, what is said by match, and what by push (None: the same; "": it is taken).
NO_EVENTS = {
    "number": (5, "int is not a table", None),
    "text": (
        "AB.csv",
        r"'AB.csv' is not a table of events; if it is the path of a file, read that first: cerflow.read_events",
        None,
    ),
    "path": (pathlib.Path("a.parquet"), "if it is the path of a file, read that first", None),
    "nothing": (None, r"there are no events: None was given; give a table .* \(\[\] if there are no events\)", None),
    "numbers": ([1, 2], "must be dicts, or record batches all of them, but number 0 is 1, of type int", None),
    "None among dicts": ([{"type": "A"}, None], "number 1 is None, of type NoneType", None),
    "batches and dicts": ([TABLE.to_batches()[0], {"type": "A"}], "number 0 is .*, of type RecordBatch", None),
    "mixed": (
        [{"type": "A", "v": 1}, {"type": "A", "v": "x"}],
        "row 1: the value 'x' of 'v' is of type str, but the values before it are int64; a column holds one type",
        "row 1: the value 'x' of 'v' does not fit the column, which has type int64",
    ),
    "object": (
        [{"type": "A", "v": object()}],
        "row 0: the value <object .*> of 'v' is of type object, which no column of Arrow can hold",
        "row 0: the value <object .*> of 'v' does not fit",
    ),
    "large": (
        [{"type": "A", "v": 1}, {"type": "A", "v": 2**70}],
        "row 1: the value 1180591620717411303424 of 'v' does not fit 64 bits; give it as text or as a decimal",
        "row 1: the value 1180591620717411303424 of 'v' does not fit the column",
    ),
    "fraction": (
        [{"type": "A", "v": 1}, {"type": "A", "v": 1.5}],
        "unknown attribute 's'",
        "row 1: the value 1.5 of 'v' does not fit",
    ),
    "type that is a number": (
        [{"type": 3.5, "v": 1, "s": "x"}],
        "the type column 'type' must hold text, integers or booleans, not double",
        "value 3.5 of 'type'",
    ),
    "names that are numbers": ([{1: 2}], "the keys of events must be names, not 1 of type int", "no event type"),
    "uneven columns": ({"type": ["A"], "v": [1, 2]}, "cannot be made an Arrow table", "of 'type' does not fit"),
    "one event": (
        {"type": "A", "v": 1},
        r"the column 'type' of the events is 'A'; a dict must hold a list for every column \(a single event",
        "",
    ),
    "pandas series": (TABLE.to_pandas()["v"], r"one column \(Series of pandas\) is not a table of events", None),
    "polars series": (pl.from_arrow(TABLE)["v"], r"one column \(Series of polars\) is not a table", None),
    "array": (pa.array([1]), r"one column \(Int64Array of pyarrow\)", None),
    "chunks": (TABLE["v"], r"one column \(ChunkedArray of pyarrow\)", None),
    "numpy": (np.array([1]), r"give pandas.DataFrame\(array\)", None),
    "objects in pandas": (pd.DataFrame({"type": ["A", "A"], "v": [1, "x"]}), "'x'.* column v", None),
}


@pytest.mark.parametrize("case", NO_EVENTS)
def test_what_is_no_table(case):
    events, said, said_by_push = NO_EVENTS[case]
    said_by_push = said if said_by_push is None else said_by_push
    for take, message in (
        (QUERY.match, said),
        (cerflow.QuerySet({"q": QUERY}).match, said),
        (QUERY.recognizer(TABLE.schema).push, said_by_push),
        (cerflow.QuerySet({"q": QUERY}).recognizer(TABLE.schema).push, said_by_push),
    ):
        if message:
            with pytest.raises((InputError, cerflow.QueryError), match=message):
                take(events)


def forms(table):
    """The same events in the forms that people have them in, each made when it is asked for."""
    return {
        "table": lambda: table,
        "batches": lambda: table.to_batches(),
        "tables": lambda: [table.slice(0, 1), table.slice(1)],
        "dicts": lambda: table.to_pylist(),
        "generator": lambda: (row for row in table.to_pylist()),
        "pandas": lambda: table.to_pandas(),
        "polars": lambda: pl.from_arrow(table),
        "lazy": lambda: pl.from_arrow(table).lazy(),
        "dataset": lambda: pa.dataset.dataset(table),
        "scanner": lambda: pa.dataset.dataset(table).scanner(),
        "reader": lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        "capsule": lambda: Capsule(table),
        "structs": lambda: pa.array(table.to_pylist()),
    }


@pytest.mark.parametrize("form", forms(TABLE))
def test_push_takes_what_match_takes(form):
    events = forms(TABLE)[form]
    expected = QUERY.match(TABLE).to_pylist()
    assert expected
    assert QUERY.match(events()).to_pylist() == expected
    assert QUERY.recognizer(TABLE.schema).push(events()).to_pylist() == expected
    queries = cerflow.QuerySet({"q": QUERY})
    assert queries.match(events())["q"].to_pylist() == expected
    assert queries.recognizer(TABLE.schema).push(events())["q"].to_pylist() == expected


def test_integers_of_128_bits_are_to_be_cast():
    frame = pl.DataFrame({"type": ["A"], "n": pl.Series([1], dtype=pl.Int128)})
    for needed in (None, {"n"}):
        with pytest.raises(InputError, match="the column 'n' has the type Int128, which Arrow lacks; cast it"):
            to_table(frame, needed=needed)
    with pytest.warns(UserWarning, match="the column 'n' is left out"):
        assert to_table(frame, needed={"type"}).column_names == ["type"]


def test_missing_values_of_pandas_in_dicts_are_null():
    rows = [{"type": "A", "v": 1, "t": pd.Timestamp(5)}, {"type": "A", "v": pd.NA, "t": pd.NaT}]
    table = to_table(rows)
    assert table.column("v").to_pylist() == [1, None]
    assert table.column("t").null_count == 1
    recognizer = cerflow.parse("SELECT * WHERE A AS a FILTER a.v IS NULL").recognizer(table.schema)
    assert len(recognizer.push(rows)) == 1
    assert len(recognizer.push(rows[1])) == 1


def test_times_of_numpy_may_have_several_units():
    times = [np.datetime64("2024-03-15"), np.datetime64(1, "h"), None, np.datetime64("NaT"), np.datetime64(5, "us")]
    table = to_table([{"type": "A", "t": time} for time in times])
    assert table.schema.field("t").type == pa.timestamp("us")
    assert table.column("t").cast(pa.int64()).to_pylist() == [1_710_460_800_000_000, 3_600_000_000, None, None, 5]
    schema = pa.schema([("type", pa.string()), ("t", pa.timestamp("us"))])
    recognizer = cerflow.parse("SELECT * WHERE A").recognizer(schema, time="t")
    for time in (np.datetime64(1, "s"), np.datetime64(2_000_000_000, "ns"), np.datetime64("2024-03-15")):
        assert len(recognizer.push({"type": "A", "t": time})) == 1
    with pytest.raises(InputError, match="does not fit the column, which has type timestamp"):
        recognizer.push([{"type": "A", "t": np.datetime64(1_710_460_800_000_000_001, "ns")}])


def test_dicts_that_are_pushed_have_the_types_of_the_columns():
    recognizer = QUERY.recognizer(TABLE.schema)
    assert not recognizer.push([{"type": "A", "v": None, "s": "p", "more": 1}, {"type": "A", "v": 4, "s": "p"}])
    assert recognizer.push(({"type": "B", "v": 1.0, "s": "p"},)).to_pylist()[1]["total"] in (None, 5)
    # What does not fit changes nothing.
    with pytest.raises(InputError):
        recognizer.push([{"type": "B", "v": 1, "s": "p"}, {"type": "B", "v": "x", "s": "p"}])
    assert recognizer.events == 3


NOTHING = {
    "list": [],
    "dict": {},
    "pandas": pd.DataFrame(),
    "pandas with columns": pd.DataFrame(columns=["type", "v", "s", "t", "k"]),
    "polars": pl.DataFrame(),
    "polars with columns": pl.DataFrame(schema=["type", "v", "s", "t", "k"]),
    "table": pa.table({}),
    "typed": pa.table({"type": ["A"], "v": [1], "s": ["x"], "t": [1], "k": [1]}).slice(1),
    "generator": (row for row in ()),
}


@pytest.mark.parametrize("events", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("roles", [{}, {"time": "t"}])
def test_no_events_give_no_matches(events, roles):
    queries = cerflow.QuerySet(
        {
            "all": "SELECT * WHERE (A AS x ; B+ AS y) FILTER x.v < 3 AND y.s = x.s PARTITION BY k WITHIN 5 EVENTS",
            "computed": "SELECT x.v + 1 AS w, count(y) AS n WHERE A AS x ; B+ AS y PARTITION BY [k, v]",
            "count": "SELECT COUNT(*) AS n WHERE A AS x WITHIN 4 [v]",
            "none": "SELECT NONE WHERE A AS x",
        }
    )
    found = queries.match(events, **roles)
    for name, query in queries.items():
        for matches in (found[name], query.match(events, **roles), query.match(events, runner="semantics", **roles)):
            assert not matches
            assert len(matches) == matches.count() == matches.to_arrow().num_rows == len(matches.to_pylist()) == 0
            assert matches.schema.names == query.match([], **roles).schema.names
    recognizer = queries.recognizer(NOTHING["typed"].schema, **roles)
    if type(events) is not dict:  # which is an event without a type
        assert recognizer.push(events) == {}
        assert not queries["all"].recognizer(NOTHING["typed"].schema, **roles).push(events)


def test_names_are_looked_up_where_there_are_columns():
    with pytest.raises(InputError, match="the time column 'tt' is not in the input; did you mean 't'"):
        QUERY.match(NOTHING["pandas with columns"], time="tt")
    with pytest.raises(cerflow.QueryError, match="unknown attribute"):
        QUERY.match(pa.table({"type": ["A"], "v": [1]}).slice(1))


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"type": "typ"}, "type column 'typ' is not in the input; did you mean 'type'"),
        ({"time": "when"}, "time column 'when' is not in the input; the columns are"),
        ({"stream": "vv"}, "stream column 'vv' is not in the input"),
        ({"sequence": "vv"}, "sequence column 'vv' is not in the input; did you mean 'v'"),
    ],
)
def test_columns_that_are_not_there(roles, message):
    with pytest.raises(InputError, match=message):
        QUERY.match(TABLE, **roles)


def test_columns_of_the_same_name():
    with pytest.raises(InputError, match="more than one column called 'v'"):
        QUERY.match(pa.table([["A"], [1], [2]], names=["type", "v", "v"]))


# --- order -----------------------------------------------------------------------------------------------------------

LATE = pa.table({"type": list("BABA"), "t": [3, 1, 3, 3], "q": [2, 9, 1, 0], "id": [0, 1, 2, 3]})


def test_order_of_time_is_stable():
    assert sort_by_time(LATE, "t", None)["id"].to_pylist() == [1, 0, 2, 3]
    assert sort_by_time(LATE, "t", "q")["id"].to_pylist() == [1, 3, 2, 0]
    assert sort_by_time(LATE, None, "q")["id"].to_pylist() == [3, 2, 0, 1]
    assert sort_by_time(LATE, None, None) is LATE


def test_what_is_ordered_is_left_alone():
    ordered = LATE.take([1, 0, 2, 3])
    assert sort_by_time(ordered, "t", None) is ordered
    assert sort_by_time(ordered.slice(0, 1), "t", None).num_rows == 1
    ties = pa.table({"t": [0, 0, 1, 1, 2], "q": [5, 5, 1, 3, 0], "id": range(5)})
    assert sort_by_time(ties, "t", "q") is ties
    assert sort_by_time(ties.set_column(1, "q", pa.array([5, 6, 3, 1, 0])), "t", "q")["id"].to_pylist() == [
        0,
        1,
        3,
        2,
        4,
    ]


def test_matches_follow_time():
    query = cerflow.parse("SELECT * WHERE A ; B")
    ids = lambda **roles: [  # noqa: E731
        tuple(event["id"] for event in row["events"]) for row in query.match(LATE, **roles).to_pylist()
    ]
    assert ids() == [(1, 2)]
    assert set(ids(time="t")) == {(1, 0), (1, 2)}
    assert set(ids(time="t", sequence="q")) == {(1, 0), (3, 0), (1, 2), (3, 2)}
    for runner in ("engine", "semantics"):
        assert {m["detected_at"] for m in query.match(LATE, time="t", runner=runner)} == {1, 2}


@pytest.mark.parametrize("size", [2, 50, 500])
def test_large_ties_keep_their_order(size):
    table = pa.table({"type": ["A"] * size, "t": [k % 2 for k in range(size)], "id": range(size)})
    expected = [*range(0, size, 2), *range(1, size, 2)]
    assert sort_by_time(table, "t", None)["id"].to_pylist() == expected


MIXED = {"type": ["A", "B"], "v": [1, 2], "note": ["x", 3]}


@pytest.mark.parametrize(
    "events", [pd.DataFrame(MIXED), [dict(zip(MIXED, row)) for row in zip(*MIXED.values())]], ids=["pandas", "dicts"]
)
def test_columns_of_mixed_values_that_nobody_reads_are_left_out(events):
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v")
    with pytest.warns(UserWarning, match="the column 'note' is left out: .*(type|int)"):
        (match,) = query.match(events).to_pylist()
    assert [sorted(event) for event in match["events"]] == [["labels", "position", "type", "v"]] * 2
    program = cerflow.parse_program("DEFINE s AS SELECT * WHERE A; SELECT * FROM s WHERE s")
    with pytest.warns(UserWarning, match="the column 'note' is left out"):
        assert program.match(events).count() == 1
    for text in ("A AS x FILTER x.note = 'x'", "A AS x PARTITION BY note"):
        with pytest.raises(InputError, match="note"):
            cerflow.parse(f"SELECT * WHERE {text}").match(events)
    for text, roles in (("SELECT x[note] WHERE A AS x", {}), ("SELECT * WHERE A", {"time": "note"})):
        with pytest.raises(InputError, match="note"):
            cerflow.parse(text).match(events, **roles)


def test_times_as_text_get_a_hint():
    with pytest.raises(
        InputError, match=r"the time column 'ts' has type string; .*pandas\.to_datetime\(frame\['ts'\]\)"
    ):
        cerflow.parse("SELECT * WHERE A").match([{"type": "A", "ts": "2024-03-01 10:00"}], time="ts")


def test_columns_that_nobody_reads_may_hold_anything():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"type": ["A", "B"], "v": [1, 2], "odd": [1, "x"]})
    text = "SELECT x.v WHERE A AS x ; B"
    with pytest.warns(UserWarning, match="the column 'odd' is left out"):
        assert cerflow.QuerySet({"q": text}).match(frame)["q"].count() == 1
    with pytest.warns(UserWarning, match="the column 'odd' is left out"):
        assert cerflow.parse(text).why_not(frame, [0, 1]).detected_at == 1
    with pytest.warns(UserWarning, match="the column 'odd' is left out"):
        assert len([*cerflow.parse(text).trace(frame).steps()]) == 2
    recognizer = cerflow.parse(text).recognizer(pa.schema([("type", pa.string()), ("v", pa.int64())]))
    with pytest.warns(UserWarning, match="the column 'odd' is left out"):
        assert recognizer.push(frame).count() == 1


def test_views_within_nested_values_and_in_pages():
    frame = pl.DataFrame(
        {
            "type": ["A", "B", "a type of more than twelve bytes"] * 4,
            "n": [{"s": "a text of more than twelve bytes", "some": ["x", None]}] * 12,
            "t": list(range(12)),
        }
    )
    for text in (
        "SELECT * WHERE A ; B WITHIN 3 [t]",
        "SELECT * WHERE (A AS a ; B AS b) FILTER a.n.s = b.n.s WITHIN 3 [t]",
    ):
        found = cerflow.parse(text).match(frame, time="t")
        assert found.to_pylist() == cerflow.parse(text).match(frame.to_dicts(), time="t").to_pylist()
        assert found.count() == 4
        assert "a type of more than twelve bytes" in found.to_html()


# What is not pushed into a column of a type, as dicts and as tables alike, because something of it would be lost.
MOMENT, LENGTH = datetime.datetime(2024, 1, 1, 10, 0, 0, 1500), datetime.timedelta(microseconds=1500)
LOSSES = [
    *((pa.timestamp("ms"), MOMENT), (pa.timestamp("s"), MOMENT), (pa.duration("ms"), LENGTH), (pa.date32(), MOMENT)),
    *((pa.date64(), MOMENT), (pa.float32(), 1e300), (pa.int64(), np.float64(3.7)), (pa.int64(), np.bool_(True))),
    *((pa.int64(), True), (pa.float64(), True), (pa.float32(), np.bool_(False))),
]


@pytest.mark.parametrize(("column", "value"), LOSSES, ids=str)
def test_values_lose_nothing_in_the_columns_of_a_recogniser(column, value):
    recognizer = cerflow.parse("SELECT * WHERE A").recognizer(pa.schema([("type", pa.string()), ("v", column)]))
    for events in ({"type": "A", "v": value}, [{"type": "A", "v": value}] * 2):
        with pytest.raises(InputError, match=r"row 0: the value .* of 'v' does not fit the column, .*; (round|write)"):
            recognizer.push(events)
    for rows in (pa.table, pa.RecordBatch.from_pydict):
        with pytest.raises(InputError, match="does not fit the schema of the recogniser: column 'v': "):
            recognizer.push(rows({"type": ["A"], "v": pa.array([value])}))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *((pa.timestamp("ms"), MOMENT.replace(microsecond=2000)), (pa.date32(), datetime.date(2024, 1, 1))),
        *((pa.date32(), datetime.datetime(2024, 1, 1)), (pa.float32(), 0.1), (pa.float32(), math.inf)),
        *((pa.float32(), 1), (pa.float64(), 3), (pa.int64(), 2.0), (pa.bool_(), np.bool_(True)), (pa.date32(), None)),
    ],
    ids=str,
)
def test_values_that_lose_nothing_are_taken(column, value):
    recognizer = cerflow.parse("SELECT * WHERE A").recognizer(pa.schema([("type", pa.string()), ("v", column)]))
    taken = [recognizer.push({"type": "A", "v": value}), recognizer.push([{"type": "A", "v": value}] * 2)]
    taken.append(recognizer.push(pa.table({"type": ["A"], "v": pa.array([value])})))
    assert list(map(len, taken)) == [1, 2, 1]
