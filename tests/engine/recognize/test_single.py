"""Events pushed one by one as mappings: the same matches as in batches, the same errors, nothing lost."""

import datetime
import decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.arrow_columns import rows_as_columns
from cerflow.base.errors import BadRecordError, InputError
from cerflow.engine.recognize.machine import Machine
from support.runners import bag, examples, one_batch

COLUMNS = pa.schema(
    [("type", pa.string()), ("at", pa.int64()), ("v", pa.float64()), ("n", pa.int32()), ("s", pa.string())]
)
QUERY = cerflow.parse("SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v AND y.n > 1 AND x.s = y.s WITHIN 10 [at]")


def event(type="A", at=0, v=1.0, n=2, s="p"):
    return {"type": type, "at": at, "v": v, "n": n, "s": s}


def ready(query, schema=COLUMNS, **roles):
    recognizer = query.recognizer(schema, **roles)
    recognizer.push({"type": "A", "at": 0})
    return takes_singly(recognizer)


def takes_singly(recognizer):
    """Whether each query takes single events by themselves."""
    return all(singles.ready for singles in recognizer._driver._takers._singles.values())


def test_matches_and_nothing():
    recognizer = QUERY.recognizer(COLUMNS)
    assert recognizer.push(event()).to_pylist() == []
    assert recognizer.push(event("C", 1)).to_pylist() == []
    (match,) = recognizer.push(event("B", 2, 3.5)).to_pylist()
    assert [e["v"] for e in match["events"]] == [1.0, 3.5]
    assert [e["position"] for e in match["events"]] == [0, 2]
    assert recognizer.push(event("B", 10, 3.5)).to_pylist() == []
    assert recognizer.events == 4


def test_what_is_not_named_is_null():
    query = cerflow.parse("SELECT * WHERE A AS x FILTER x.v IS NULL")
    recognizer = query.recognizer(COLUMNS)
    assert "_takers" not in vars(recognizer._driver)
    (match,) = recognizer.push({"type": "A", "more": 1}).to_pylist()
    assert match["events"][0]["v"] is None
    assert takes_singly(recognizer)


@pytest.mark.parametrize("form", [dict, lambda event: pa.Table.from_pylist([event])])
@pytest.mark.parametrize("type", ["A", "B"])
def test_a_value_that_one_query_of_a_set_cannot_use(type, form):
    schema = pa.schema([("type", pa.string()), ("x", pa.int64())])
    queries = cerflow.QuerySet({"other": "SELECT * WHERE A", "measures": "SELECT * WHERE (B ; B) WITHIN 10 [x]"})
    recognizer = queries.recognizer(schema, on_bad_record="skip")
    recognizer.push(form({"type": type, "x": 2**63 - 1}))
    assert (recognizer.events, recognizer.bad_records) == (0, 1)


@pytest.mark.parametrize(
    "wrong",
    [{"type": 3}, {"v": "much"}, {"n": 2**40}, {"at": 2**80}, {"n": 1.5}, {"s": b"\xff"}],
)
def test_values_that_do_not_fit(wrong):
    recognizer = QUERY.recognizer(COLUMNS)
    recognizer.push(event())
    with pytest.raises(InputError, match="does not fit"):
        recognizer.push(event("B", 1, 2.0) | wrong)
    assert len(recognizer.push(event("B", 1, 2.0)).to_pylist()) == 1
    assert recognizer.events == 2


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_half_a_surrogate_pair_in_a_column_that_is_only_reported(kind):
    columns = pa.schema([("type", pa.string()), ("s", kind)])
    recognizer = cerflow.parse("SELECT * WHERE A AS x ; B AS y").recognizer(columns)
    with pytest.raises(InputError, match="of 's' does not fit"):
        recognizer.push({"type": "A", "s": "half \ud83d"})
    recognizer.push({"type": "A", "s": "whole \U0001f600"})
    assert recognizer.snapshot()
    (match,) = recognizer.push({"type": "B"}).to_pylist()
    assert [e["s"] for e in match["events"]] == ["whole \U0001f600", None]


def test_bad_records_by_policy():
    schema = COLUMNS
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y WITHIN 5 milliseconds")
    recognizer = query.recognizer(schema, time="at")
    recognizer.push(event(at=5))
    with pytest.raises(BadRecordError, match="row 1"):
        recognizer.push(event("B", 4))
    refused = []
    recognizer = query.recognizer(schema, time="at", on_bad_record=refused.append)
    for one in (event(at=5), event("B", 4), event(None, 6), event("B", None), event("B", 7)):
        recognizer.push(one)
    assert [r.column("row").to_pylist() for r in refused] == [[1], [2], [3]]
    assert (recognizer.events, recognizer.bad_records) == (2, 3)


def test_an_attribute_that_measures_a_window_decreases():
    refused = []
    recognizer = QUERY.recognizer(COLUMNS, on_bad_record=refused.append)
    assert len(recognizer.push(event(at=5)).to_pylist()) == 0
    recognizer.push(event("B", 4, 3.0))
    assert refused[0].column("reason").to_pylist() == ["an attribute that measures a window decreases: 'at'"]
    assert refused[0].column("row").to_pylist() == [1]
    assert len(recognizer.push(event("B", 6, 3.0)).to_pylist()) == 1
    recognizer = QUERY.recognizer(COLUMNS)
    recognizer.push(event(at=5))
    with pytest.raises(BadRecordError, match="row 1"):
        recognizer.push(event("B", 4, 3.0))


def test_timestamps():
    columns = pa.schema([("type", pa.string()), ("t", pa.timestamp("ms", tz="UTC"))])
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y WITHIN 5 seconds")
    noon = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
    recognizer = query.recognizer(columns, time="t")
    for seconds, type in ((0, "A"), (3, "A"), (5, "B")):
        found = recognizer.push({"type": type, "t": noon + datetime.timedelta(seconds=seconds)}).to_pylist()
    assert [m["start_time"] for m in found] == [noon + datetime.timedelta(seconds=3)]
    assert takes_singly(recognizer)
    with pytest.raises(BadRecordError, match="backwards"):
        recognizer.push({"type": "B", "t": noon})


def test_what_goes_the_quick_way():
    assert ready(QUERY)
    assert ready(cerflow.parse("SELECT * WHERE A AS x FILTER x.v * 2 > x.n AND (x.s IN ('a', 'b') OR NOT x.n < 3)"))
    assert ready(cerflow.parse("SELECT * WHERE A AS x ; B AS y FILTER x.v + 1 < y.v PARTITION BY s WITHIN 3 EVENTS"))
    assert not ready(cerflow.parse("SELECT * WHERE A AS x ; B AS y FILTER x.s < y.s"))


def test_integers_and_floats_of_one_key():
    columns = pa.schema([("type", pa.string()), ("i", pa.int64()), ("f", pa.float64())])
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y PARTITION BY [i, f]")
    rows = [{"type": "A", "i": 1, "f": None}, {"type": "B", "i": None, "f": 1.0}]
    recognizer = query.recognizer(columns)
    found = [match for row in rows for match in recognizer.push(row)]
    assert bag(found) == bag(one_batch(query, pa.Table.from_pylist(rows, columns)))
    assert len(found) == 1
    with pytest.raises(BadRecordError):
        recognizer.push({"type": "A", "i": 2**53 + 1, "f": None})


def test_a_long_stream_of_single_events():
    rows = [event("AB"[k % 2], k, float(k % 5), k % 4, "pqr"[k % 3]) for k in range(3000)]
    recognizer = QUERY.recognizer(COLUMNS)
    found = [match for row in rows for match in recognizer.push(row)]
    table = pa.Table.from_pylist(rows, COLUMNS)
    assert bag(found) == bag(one_batch(QUERY, table))
    assert len(recognizer._machine.store._pieces) < 12


def test_matches_read_late():
    recognizer = QUERY.recognizer(COLUMNS)
    pushed = []
    for k in range(2500):
        pushed.append(recognizer.push(event("AB"[k % 2], k, float(k))))
    assert all(m.to_pylist()[0]["events"][-1]["v"] == k for k, m in enumerate(pushed) if k % 2)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("SELECT * WHERE (A AS a : B AS b)", "ceql"),
        ("SELECT * WHERE A", "ceql"),
        ("next([type = 'A'] AS a, [type = 'B'] AS b)", "sremo"),
    ],
)
def test_matches_of_a_large_batch_are_read_after_single_events(text, language):
    types = ["AB"[k % 2] for k in range(5_000)]
    query, table = cerflow.parse(text, language=language), pa.table({"type": types})
    recognizer = query.recognizer(table.schema)
    found = recognizer.push(table.slice(0, 4_000))
    for type in types[4_000:4_020]:
        recognizer.push({"type": type})
    expected = query.recognizer(table.schema).push(table.slice(0, 4_000))
    assert found.to_arrow().equals(expected.to_arrow())


def test_signatures_are_forgotten_between_single_events(monkeypatch):
    monkeypatch.setattr(limits, "SIGNATURES", 4)
    parts = " OR ".join(f"((A AS x FILTER x.n > {k}) ; (B AS y FILTER y.n < {9 - k}))" for k in range(8))
    query = cerflow.parse(f"SELECT * WHERE ({parts}) WITHIN 6 [at]")
    rows = [event("ABC"[k % 3], k, n=k * 7 % 11) for k in range(300)]
    recognizer = query.recognizer(COLUMNS)
    found, most = [], 0
    for row in rows:
        found += recognizer.push(row)
        most = max(most, len(recognizer._machine.tables._signatures))
    assert takes_singly(recognizer)
    assert most <= 4 + 2
    assert bag(found) == bag(one_batch(query, pa.Table.from_pylist(rows, COLUMNS)))


NUMBERS = st.none() | st.integers(-3, 3)
VALUES = st.fixed_dictionaries(
    {"a": NUMBERS, "b": NUMBERS, "v": st.none() | st.sampled_from([-1.5, 0.0, 1.0, 2.5]), "s": st.sampled_from("pq")}
)
CONDITIONS = [
    "x.a < 2",
    "x.a != 2.5",
    "NOT x.v >= 1",
    "x.v = 1",
    "x.a + x.b > x.v",
    "x.a BETWEEN 0 AND x.b",
    "x.a / x.b < 1 OR x.v IS NULL",
    "x.a NOT IN (1, 2) AND x.b % 2 = 1",
    "abs(x.a) >= 2 OR length(x.s) = 1 AND x.b <= 0",
    "upper(x.s) = 'P' OR x.a = NULL",
    "position(x) % 2 = 0 AND upper(x.s) || 'q' != 'Pq'",
]


@examples(300)
@given(st.lists(VALUES, min_size=1, max_size=8), st.sampled_from(CONDITIONS))
def test_conditions_on_one_event(rows, condition):
    query = cerflow.parse(f"SELECT * WHERE A AS x FILTER {condition}")
    table = pa.Table.from_pylist(
        [{"type": "A", **row} for row in rows],
        pa.schema(
            [("type", pa.string()), ("a", pa.int64()), ("b", pa.int64()), ("v", pa.float64()), ("s", pa.string())]
        ),
    )
    recognizer = query.recognizer(table.schema)
    found = [match for row in table.to_pylist() for match in recognizer.push(row)]
    assert takes_singly(recognizer)
    assert bag(found) == bag(one_batch(query, table))


def test_what_a_row_cannot_hold_comes_as_a_batch():
    columns = pa.schema([("type", pa.string()), ("d", pa.decimal128(30, 2)), ("n", pa.int64())])
    assert not ready(cerflow.parse("SELECT * WHERE A AS x FILTER x.d > 1"), columns)


LONG = "long text " * 200


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.large_string())])
def test_rows_with_any_layout_of_text(kind):
    columns = pa.schema([("type", kind), ("s", kind), ("n", pa.int16()), ("b", pa.bool_())])
    query = cerflow.parse(
        "SELECT * WHERE A AS x ; B AS y FILTER x.s = y.s AND x.n < y.n AND y.b = FALSE WITHIN 5 EVENTS"
    )
    values = [
        ("A", "p", 1),
        ("A", LONG, -(2**15) + 1),
        ("A", "ä€😀", 2),
        ("C", "q", 3),
        ("B", LONG, 4),
        ("B", "ä€😀", 9),
    ]
    rows = [{"type": type, "s": s, "n": n, "b": type != "B"} for type, s, n in values]
    recognizer = query.recognizer(columns)
    found = [match for row in rows[:4] for match in recognizer.push(row)]
    recognizer.push(pa.Table.from_pylist([{"type": "C"}], columns))
    found += [match for row in rows[4:] for match in recognizer.push(row)]
    assert [[e["s"] for e in match["events"]] for match in found] == [[LONG] * 2, ["ä€😀"] * 2]
    assert takes_singly(recognizer)


# -- times -------------------------------------------------------------------------------------------------------

VIENNA = datetime.timezone(datetime.timedelta(hours=1))
NOON = datetime.datetime(2024, 3, 15, 12, tzinfo=datetime.UTC)


def timed(unit="us", zone=None):
    # Times with and without a zone do not go together.
    other = pa.timestamp("us", zone and "UTC")
    return pa.schema([("type", pa.string()), ("t", pa.timestamp(unit, zone)), ("u", other), ("d", pa.duration(unit))])


@pytest.mark.parametrize("columns", [timed(), timed("ms", "UTC"), timed("s"), timed("ns", "Europe/Vienna")])
@pytest.mark.parametrize(
    "formula",
    [
        "A AS x ; B AS y FILTER y.t - x.t < 5 MINUTES",
        "A AS x ; B AS y FILTER y.t + 5 MINUTES > x.u AND y.u > '2024-03-15T12:01'",
        "A AS x ; B AS y FILTER y.d > x.d AND (y.d IN (1 MINUTE, 2 MINUTES) OR abs(y.u - y.t) > 1 HOUR)",
        "A AS x ; B+ AS y FILTER y[time() - prev(time()) < 5 MINUTES] AND sum(y.d) < 10 MINUTES",
        "A AS x ; B AS y FILTER minute(y.t) > 3 AND time(x) < time(y) AND x.u IS NULL PARTITION BY [d] WITHIN 1 HOUR",
    ],
)
def test_times_go_the_quick_way(formula, columns):
    query = cerflow.parse(f"SELECT * WHERE {formula}")
    minutes = [None, 0, 1, 2, 5]
    zone = columns.field("u").type.tz and datetime.UTC
    rows = [
        {
            "type": "AB"[k % 2],
            "t": (NOON + datetime.timedelta(minutes=k)).astimezone(VIENNA if k % 3 else datetime.UTC),
            "u": None if k % 4 == 0 else (NOON + datetime.timedelta(minutes=2 * k)).replace(tzinfo=zone),
            "d": None if minutes[k % 5] is None else datetime.timedelta(minutes=minutes[k % 5]),
        }
        for k in range(12)
    ]
    recognizer = query.recognizer(columns, time="t")
    recognizer._driver._push_rows = None
    found = [match for row in rows for match in recognizer.push(row).to_pylist()]
    wanted = query.match(rows_as_columns(rows, columns), time="t", runner="semantics").to_pylist()
    assert wanted
    assert bag(found) == bag(wanted)


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        ("ms", NOON.replace(microsecond=1)),
        ("s", datetime.timedelta(milliseconds=-1500)),
        ("ns", datetime.datetime(3000, 1, 1)),
        ("us", datetime.timedelta.max),
        ("us", NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=3)))),
        ("us", datetime.datetime.min),
    ],
)
def test_times_are_those_of_arrow(unit, value):
    columns = timed(unit)
    query = cerflow.parse("SELECT * WHERE A AS x FILTER x.u IS NULL OR x.u > x.t")
    row = {"type": "A", "d" if isinstance(value, datetime.timedelta) else "t": value}
    results = []
    for event in (row, [row]):
        try:
            results.append(query.recognizer(columns).push(event).to_arrow())
        except InputError as error:
            results.append(str(error).replace("row 0: ", ""))
    assert results[0] == results[1]


# -- sets of which some queries need a batch -----------------------------------------------------------------------

MIXED = {
    "plain": "SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v",
    "exact": "SELECT * WHERE A AS x ; B AS y FILTER x.d < y.d",
    "asks": "SELECT * WHERE C AS x FILTER is_odd(x.n)",
    "waits": "SELECT * WHERE A AS x NOT FOLLOWED BY C FOR 3 MILLISECONDS",
    "measures": "SELECT * WHERE (A AS x ; C AS y) WITHIN 4 [n]",
    "long": "SELECT * WHERE B AS x ; C AS y FILTER x.s = y.s",
}
OF_MIXED = pa.schema(
    [*((name, COLUMNS.field(name).type) for name in COLUMNS.names), ("d", pa.decimal128(9, 2)), ("day", pa.date32())]
)


@pytest.fixture
def is_odd(predicate):
    def asked(n):
        if n == 7:
            raise RuntimeError("seven")
        return n % 2 == 1

    predicate("is_odd", compile=False)(asked)


def mixed(k):
    more = {"d": decimal.Decimal(k % 5)} if k % 3 == 0 else {"day": datetime.date(2026, 1, 1)} if k % 7 == 0 else {}
    return event("ABCD"[k * 5 % 7 % 4], k, float(k % 4), k // 2, LONG if k % 5 == 0 else "p") | more


def test_only_those_that_need_a_batch_get_one(is_odd):
    rows = [mixed(k) for k in range(60) if k // 2 != 7]
    recognizer = cerflow.QuerySet(MIXED).recognizer(OF_MIXED, time="at")
    found = {name: [] for name in MIXED}
    for row in rows:
        for name, matches in recognizer.push(row).items():
            found[name] += matches
    table = pa.Table.from_pylist(rows, OF_MIXED)
    batch = cerflow.QuerySet(MIXED).recognizer(OF_MIXED, time="at").push(table)
    for name in MIXED:
        assert found[name]
        assert bag(found[name]) == bag(batch[name])


def test_a_query_that_needs_a_batch_is_left_alone_by_other_events(is_odd, monkeypatch):
    recognizer = cerflow.QuerySet(MIXED).recognizer(OF_MIXED, time="at")
    recognizer.push(event())
    read = []
    monkeypatch.setattr(Machine, "read", lambda self, *_: read.append(self))
    recognizer.push(event("D", 1, n=1))
    assert read == []
    recognizer.push(event("B", 2, n=2))
    assert read == [recognizer._driver.machines["exact"]]


@pytest.mark.parametrize("of", [{}, {"d": decimal.Decimal(1)}])
def test_a_failure_undoes_a_single_event_in_all_queries(is_odd, of):
    queries = {**MIXED, "all": "SELECT COUNT(*) WHERE EVENT AS x ; C AS y"}
    recognizer = cerflow.QuerySet(queries).recognizer(OF_MIXED, time="at")
    for k, type in enumerate("ABA"):
        recognizer.push(event(type, k, float(k), k))
    before = recognizer.snapshot()
    with pytest.raises(cerflow.CerflowError, match="seven"):
        recognizer.push(event("C", 9, n=7) | of)
    assert recognizer.snapshot() == before
    with pytest.raises(BadRecordError, match="decreases"):
        recognizer.push(event("C", 9, n=-7) | of)
    assert recognizer.snapshot() == before
    assert set(recognizer.push(event("C", 9, n=3, s="p") | of)) >= {"asks", "measures", "long", "all"}
