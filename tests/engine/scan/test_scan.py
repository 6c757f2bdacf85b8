"""The scan gives the events that the evaluation of columns gives, whatever the columns look like."""

import datetime
import json
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.arrow_columns import plain_array, plain_type
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.precomputed_conditions import Precomputed
from cerflow.engine.events.reader import EventReader
from cerflow.engine.layout import NO_BOUND, NULL, EventArrays
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.scan.program.emitting import ScannedColumns
from cerflow.language.condition import And, Attribute, Comparison, Literal
from cerflow.language.formula import CountWindow
from support.runners import ENGINE_RUNNERS, RUNNERS, bag, examples

TEXTS = [
    "",
    "A",
    "B",
    "name",
    "eight by",
    "nine byte",
    "nine bytf",
    "a text of more than sixteen bytes",
    "ü",
    "水水水水",
    "\0",
]
WHOLE = [0, 1, -1, 2, 100, -100, 2**31, -(2**31), 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63) + 1]
FLOATS = [0.0, -0.0, 1.0, -1.5, 1e-40, -1e-40, 1e30, math.inf, -math.inf, math.nan, 2.0**53]
NUMBERS = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
]
TIMES = [pa.timestamp(unit, tz) for unit in ("s", "ms", "us", "ns") for tz in (None, "Europe/Brussels")]
TIMES += [pa.date32(), pa.date64()]
DURATIONS = [pa.duration(unit) for unit in ("s", "ms", "us", "ns")]
STRINGS = [pa.string(), pa.large_string(), *(pa.dictionary(i, pa.string()) for i in NUMBERS[:8])]


def values_of(data_type):
    if pa.types.is_boolean(data_type):
        return st.booleans()
    if pa.types.is_floating(data_type):
        return st.sampled_from([float(np.float32(x)) for x in FLOATS] if data_type == pa.float32() else FLOATS)
    if pa.types.is_integer(data_type):
        bits, signed = data_type.bit_width, pa.types.is_signed_integer(data_type)
        least, most = (-(2 ** (bits - 1)) + 1, 2 ** (bits - 1) - 1) if signed else (0, min(2**bits, 2**63) - 1)
        return st.sampled_from([n for n in WHOLE if least <= n <= most])
    if pa.types.is_date(data_type):
        return st.sampled_from([datetime.date(1969, 12, 30) + datetime.timedelta(days=k) for k in range(4)])
    if pa.types.is_duration(data_type):
        return st.integers(-2000, 2000)
    if pa.types.is_timestamp(data_type):
        return st.integers(-3000, 3000)
    return st.sampled_from(TEXTS)


@st.composite
def array(draw, data_type, size, *, nulls=True):
    own = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
    one = values_of(own)
    found = draw(st.lists(st.none() | one if nulls else one, min_size=size, max_size=size))
    made = pa.array(found, own)
    if pa.types.is_dictionary(data_type):
        made = made.dictionary_encode().cast(data_type)
    # Some arrays are slices of others.
    before, after = draw(st.integers(0, 9)), draw(st.integers(0, 3))
    around = (
        pa.concat_arrays([made[:1]] * before + [made] + [made[:1]] * after)
        if size and not pa.types.is_dictionary(data_type)
        else made
    )
    return around.slice(before if around is not made else 0, size)


def plan_of(query, schema, **roles):
    return Plan(cerflow.parse(query).tree, Schema(schema, **roles))


def program_of(query, schema, **roles):
    plan = plan_of(query, schema, **roles)
    assert not plan.scan.computed, plan.scan.computed
    assert not any(plan.scan.filled)
    return plan


class ByColumns:
    """Reads batches by the definition: all tests and all values, on all rows."""

    def __init__(self, reader):
        self.reader, self.tables = reader, reader.tables

    def read(self, batch, first):
        reader, tables = self.reader, self.tables
        rows = reader.rows(batch, first)
        signatures, (words, known) = np.array(reader.signatures(rows), np.int32), reader.key_words(rows)
        wanted = np.array([tables.counted or tables.relevant[s] for s in signatures], bool)
        some = np.flatnonzero(wanted if known is None else wanted & known)
        here, signatures = rows.at(some), signatures[some]
        columns = np.zeros((len(some), max(1, len(tables.columns))), np.int64)
        for k in range(len(tables.columns)):
            columns[:, k] = reader._column(k, here, signatures)
        none, window = np.zeros(len(some), np.int64), tables.transducer.window
        local = window is None or (tables.partitioned and isinstance(window, CountWindow))
        measure, bound = (none, np.full(len(some), NO_BOUND)) if local else reader._window(here)
        ranks = tables.strings.ranks() if tables.atoms.ordered else np.zeros(1, np.int64)
        found = (signatures, here.positions, measure, bound, words[some], columns, none, none, none, ranks)
        return EventArrays(*found), len(some)


def readers(plan):
    made = [EventReader(plan.begin_scan(), plan.keys, plan.evaluation, plan.streams.position) for _ in range(2)]
    return made[0], ByColumns(made[1])


def shown(reader, batch, first):
    """The events, with texts in place of their codes. Readers get batches of plain types, as a push gives them."""
    plain = [plain_array(column, plain_type(column.type)) for column in batch.columns]
    events, n = reader.read(pa.RecordBatch.from_arrays(plain, batch.schema.names), first)
    tables = reader.tables
    allowed = [sorted(tables.effects[s][0]) for s in events.signature[:n].tolist()]
    columns, keys = events.columns[:n].astype(object), events.keys[:n].astype(object)
    texts = [*tables.strings.texts]
    for k, column in enumerate(tables.columns):
        if column.expression is not None and tables.atoms.kind(column.expression).coded:
            columns[:, k] = [texts[c] if c >= 0 else c for c in columns[:, k]]
            if tables.atoms.ordered:
                ranks = events.ranks
                assert sorted(texts) == [texts[c] for c in np.argsort(ranks).tolist()]
    for k, kind in enumerate(tables.key_kinds):
        if kind.coded:
            keys[:, k] = [texts[c] for c in keys[:, k]]
    more = (events.position, events.measure, events.bound, events.moment, events.idle)
    return events.position[:n].tolist(), allowed, columns.tolist(), keys.tolist(), *(each[:n].tolist() for each in more)


def check(query, batches, make=program_of, **roles):
    scanning, evaluating = readers(make(query, batches[0].schema, **roles))
    first, found = 7, 0
    for batch in batches:
        expected = shown(evaluating, batch, first)
        assert shown(scanning, batch, first) == expected
        first += batch.num_rows
        found += len(expected[0])
    return found


@st.composite
def streams(draw, **types):
    schema = pa.schema(list(types.items()))
    batches = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.integers(0, 12))
        arrays = [draw(array(t, size, nulls=name != "type")) for name, t in types.items()]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return batches


COMPARISONS = "x.v > 1 AND x.v <= 100 OR x.v IS NULL OR x.v + x.w < 3 AND NOT x.w = 2"
RELATED = "SELECT * WHERE (A AS x ; B AS y ; EVENT AS z) FILTER {} AND x.v < y.v AND z.w != y.w + 1 AND y.v IS NOT NULL"


@given(st.data(), st.sampled_from(NUMBERS[:-1]), st.sampled_from(NUMBERS[:-1]), st.sampled_from(STRINGS))
@examples(150)
def test_numbers(data, v, w, kind):
    batches = data.draw(streams(type=kind, v=v, w=w))
    check(RELATED.format(f"({COMPARISONS})"), batches)


@given(st.data(), st.sampled_from(STRINGS), st.sampled_from(STRINGS), st.sampled_from(["PARTITION BY n", ""]))
@examples(150)
def test_texts(data, kind, n, end):
    batches = data.draw(streams(type=kind, n=n, v=pa.int64()))
    check(
        "SELECT * WHERE (A AS x ; B AS y) FILTER x.n LIKE '%by%' AND y.n > 'B' AND x.n = y.n AND x.v > 0 "
        f"{end} WITHIN 5 EVENTS",
        batches,
    )


def _zoned(kind):
    return pa.types.is_timestamp(kind) and kind.tz is not None


@given(st.data(), st.sampled_from(TIMES), st.sampled_from(DURATIONS))
@examples(100)
def test_times(data, t, d):
    # Times with and without a zone do not go together.
    u = data.draw(st.sampled_from([kind for kind in TIMES if _zoned(kind) == _zoned(t)]))
    batches = data.draw(streams(type=pa.string(), t=t, d=d, u=u))
    check(
        "SELECT * WHERE (A AS x ; B AS y) FILTER x.t < '1970-01-01T00:00:01' AND y.u != y.t AND x.d = y.d "
        "AND y.d > 10 MILLISECONDS AND x.u < y.u AND y.t - x.u < 1 DAY WITHIN 90 SECONDS",
        batches,
        time="u",
    )


MIXED = "(x.n = 'A' OR x.v > 1) AND (y.n LIKE 'n%' AND y.v < 2 OR y.n IS NULL OR NOT (y.m = 'B' OR y.v = 1))"


@given(st.data(), st.sampled_from(STRINGS), st.sampled_from(STRINGS), st.sampled_from(["x.m = y.m", "x.v <= y.v"]))
@examples(100)
def test_conditions_on_texts_beside_others(data, n, m, atom):
    batches = data.draw(streams(type=pa.string(), n=n, m=m, v=pa.int16()))
    check(f"SELECT * WHERE (A AS x ; B AS y) FILTER {MIXED} AND {atom} PARTITION BY [m, n], v", batches)


def test_two_tests_that_read_one_text():
    table = pa.table({"type": ["A", "B"] * 8, "s": ["p", "q", "p", None] * 4, "v": range(16), "w": range(16, 0, -1)})
    query = "SELECT * WHERE (A AS x ; B AS y) FILTER (x.s = 'p' OR x.v > 3) AND (x.s = 'q' OR x.w > 3) AND x.v < y.w"
    assert check(query, table.to_batches()) > 8


@given(st.data(), st.sampled_from([pa.float32(), pa.float64()]), st.sampled_from(["0.1", "3", "1000000"]))
@examples(100)
def test_windows_and_keys_of_floats(data, f, size):
    batches = data.draw(streams(type=pa.string(), f=f, v=pa.int32()))
    check(f"SELECT * WHERE A ; B PARTITION BY [f, v] WITHIN {size} [f]", batches)


VALUES = ["x.v % 3 + 1", "-x.v", "abs(x.f)", "round(x.f)", "coalesce(x.v, 7)", "x.v / 2", "x.f * x.v", "position(x)"]


@given(st.data(), st.sampled_from(VALUES), st.sampled_from(["avg", "sum", "min", "count"]))
@examples(150)
def test_computed_values(data, value, aggregate):
    batches = data.draw(streams(type=pa.string(), v=pa.int64(), f=pa.float64()))
    check(f"SELECT * WHERE (A AS x ; B AS y) FILTER {value} < y.v AND {value} > 0 WITHIN 9 EVENTS", batches)
    check(f"SELECT * WHERE (A+ AS x ; B AS y) FILTER {aggregate}({value}) < y.f AND y.v IN (1, 2, NULL)", batches)


def test_numbers_of_tests_asked_together(monkeypatch):
    rows = [{"type": "A", **{f"c{k}": (row * 7919 + k * 104729) % 5 for k in range(70)}} for row in range(60)]
    steps = " OR ".join(f"(A AS x{k} FILTER x{k}.c{k} < 2)" for k in range(70))
    batches = pa.Table.from_pylist(rows).to_batches(max_chunksize=23)
    assert check(f"SELECT * WHERE {steps}", batches) == 60
    monkeypatch.setattr(limits, "SCAN_ASKED_ALONE", 100)
    assert check(f"SELECT * WHERE {steps}", batches[:1]) == 23


def test_nodes_are_forgotten_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(limits, "SCAN_NODES", 1)
    monkeypatch.setattr(limits, "SCAN_ASKED_ALONE", 100)
    # More guards to answer than there is room for in any case.
    rows = [{"type": "A", **{f"c{k}": row >> k & 1 for k in range(11)}} for row in range(1 << 11)]
    steps = " ; ".join(f"(A AS x{k} FILTER x{k}.c{k} = 1)" for k in range(11))
    (batch,) = pa.Table.from_pylist(rows).to_batches()
    scanning, evaluating = readers(program_of(f"SELECT * WHERE {steps}", batch.schema))
    before = scanning.scan._decisions
    for first in (0, 1 << 11):
        assert shown(scanning, batch, first) == shown(evaluating, batch, first)
    assert scanning.scan._decisions is not before


@pytest.mark.parametrize("room", [1, 1 << 17])
def test_many_texts(monkeypatch, room):
    monkeypatch.setattr(limits, "SCAN_TEXTS", room)
    names = [f"{'long ' * (k % 9)}name {k % 3000}" for k in range(9000)]
    table = pa.table({"type": ["A", "B", "C"] * 3000, "n": names, "v": range(9000)})
    batches = table.to_batches(max_chunksize=2500)
    query = "SELECT * WHERE (A AS x ; B AS y) FILTER x.n = y.n AND y.n LIKE '%7' AND x.v > 30"
    assert check(query, batches) > 3000
    assert check(f"{query} PARTITION BY n", batches) > 3000


def test_strings_are_forgotten(monkeypatch):
    monkeypatch.setattr(limits, "STRING_SLACK", 3)
    table = pa.table({"type": ["A", "B"] * 500, "n": [f"name {k // 2 % 40}" for k in range(1000)]})
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.n = y.n WITHIN 4 EVENTS")
    recognizer = query.recognizer(table.schema)
    found = [m for k in range(0, 1000, 10) for m in recognizer.push(table.slice(k, 10)).to_pylist()]
    assert found == query.match(table).to_pylist()
    assert len(found) > 400
    assert recognizer.live["strings"] < 20


def test_dictionaries_that_share_what_they_have_in_memory():
    """Each push has another dictionary, of which most buffers are those of the one before."""
    offsets, letters = pa.array([0, 1, 2, 3], pa.int32()).buffers()[1], pa.py_buffer(b"ABA")
    known = pa.py_buffer(b"\x03")
    texts = pa.Array.from_buffers(pa.string(), 3, [None, offsets, letters])
    others = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"BAB")])
    nulls = pa.Array.from_buffers(pa.string(), 3, [known, offsets, letters])
    query = cerflow.parse("SELECT * WHERE A ; B")
    schema = pa.schema([("type", pa.dictionary(pa.int8(), pa.string()))])
    recognizer = query.recognizer(schema, on_bad_record="skip")
    pushed, found = [], 0
    for dictionary in (texts, others, texts, texts[1:], texts[:2], nulls, texts, others[1:], nulls[1:], texts):
        codes = pa.array([0, 1, 0, min(2, len(dictionary) - 1)], pa.int8())
        types = pa.DictionaryArray.from_arrays(codes, dictionary)
        found += recognizer.push(pa.record_batch([types], schema=schema)).count()
        pushed += [text for text in types.to_pylist() if text is not None]
    assert found == query.match(pa.table({"type": pushed})).count()
    assert recognizer.events == len(pushed)
    assert recognizer.bad_records == 3


HARD = [
    ("lower(x.n) = 'a'", None),
    ("x.n = x.m", "the string 'm' beside other values"),
    ("x.d > 1 AND x.v > 0", "the column 'd' of type decimal128(5, 20)"),
    ("x.n || x.m = 'AB' OR x.v = 1", "n || m"),
    ("NOT substr(x.n, x.v, 1) = 'A'", "substr(n, v, 1)"),
]


@pytest.mark.parametrize(("condition", "because"), HARD)
def test_what_no_program_can_compute_is_explained(condition, because):
    schema = pa.schema(
        {"type": pa.string(), "n": pa.string(), "m": pa.string(), "d": pa.decimal128(5, 20), "v": pa.int64()}
    )
    query = cerflow.parse(f"SELECT * WHERE A AS x FILTER {condition}")
    facts = json.loads(query.explain("json", Schema(schema)))["evaluation"]["scan"]["by_columns"]
    assert [fact["because"] for fact in facts] == ([] if because is None else [because])
    assert ("evaluated by columns" in query.explain(schema=Schema(schema))) == (because is not None)


DECIMAL = pa.decimal128(5, 2)
ENDS = [
    ("lower(x.n) = lower(y.m)", "PARTITION BY v"),
    ("x.d < y.d", "PARTITION BY d"),
    ("x.n || 'q' <= y.n", "WITHIN 3 EVENTS"),
    ("x.v < y.v", "PARTITION BY n WITHIN 3 EVENTS"),
]


@given(st.data(), st.sampled_from([c for c, _ in HARD]), st.sampled_from(ENDS))
@examples(150)
def test_what_no_program_can_compute(data, condition, end):
    """Its tests are columns beside the batch, its values are filled in."""
    sizes = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=3))
    types = {"type": pa.string(), "n": pa.string(), "m": pa.large_string(), "v": pa.int64()}
    decimals = st.none() | st.sampled_from([Decimal("1.00"), Decimal("0.99"), Decimal("-3.25"), Decimal("999.99")])
    batches = []
    for size in sizes:
        arrays = [data.draw(array(t, size, nulls=name != "type")) for name, t in types.items()]
        arrays.append(pa.array(data.draw(st.lists(decimals, min_size=size, max_size=size)), DECIMAL))
        batches.append(pa.RecordBatch.from_arrays(arrays, names=[*types, "d"]))
    query = f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition} AND {end[0]} {end[1]}"
    check(query, batches, plan_of)


def test_conditions_that_others_have_evaluated_are_none_on_a_text():
    columns = ScannedColumns(Schema(pa.schema([("type", pa.string()), ("s", pa.string())])), None)
    on_text = Comparison(Operator.EQ, Attribute(None, "s"), Literal("a"))
    assert columns.text_of(on_text) == "s"
    assert columns.text_of(And(Precomputed(0), on_text)) is None


def test_each_node_of_a_condition_is_looked_at_once(monkeypatch):
    looked = []
    original = ScannedColumns._note_read
    monkeypatch.setattr(ScannedColumns, "_note_read", lambda *given: looked.append(given) or original(*given))
    condition = " OR ".join(f"(x.v = {k} AND x.w > {k})" for k in range(200))
    program_of(
        f"SELECT * WHERE A AS x FILTER {condition}", pa.schema({"type": pa.string(), "v": pa.int64(), "w": pa.int64()})
    )
    assert 200 < len(looked) < 3000


@given(st.data())
@examples(40)
def test_next_asks_for_one_text_after_the_other(data):
    """It skips an event by its type alone, and null is neither the name nor another one."""
    size = data.draw(st.integers(0, 20))
    types, names = (data.draw(st.lists(some, min_size=size, max_size=size)) for some in (_KINDS, _NAMES))
    table = pa.table({"type": pa.array(types, pa.string()), "n": pa.array(names, pa.string())})
    expression = "next([type = 'A' AND n = 'x'] AS a, [type = 'B' AND n = 'y'] AS b, [type = 'B' AND n != 'x'] AS c)"
    query = cerflow.parse(expression, language="sremo")
    plan = Plan(query.tree, Schema(table.schema))
    assert not plan.scan.computed
    assert not plan.scan.tests, "tests of two texts are computed for each event"
    expected = RUNNERS["semantics"](query, table)
    for runner in ENGINE_RUNNERS.values():
        assert bag(runner(query, table)) == bag(expected)


_KINDS, _NAMES = st.sampled_from("AB"), st.sampled_from(["x", "y", "z", None])


@given(st.data())
@examples(40)
def test_an_atom_may_ask_what_a_condition_says_of_a_text(data):
    """Its text may be new where the event is written."""
    size = data.draw(st.integers(0, 40))
    kinds = st.one_of(st.sampled_from("AB"), st.text(max_size=3), st.none())
    names = data.draw(st.lists(kinds, min_size=size, max_size=size))
    values = data.draw(st.lists(st.sampled_from([0, 1, 2, None]), min_size=size, max_size=size))
    table = pa.table({"type": ["A"] * size, "n": pa.array(names, pa.string()), "v": pa.array(values, pa.int64())})
    formula = "(A AS x ; A AS y) FILTER x.v > 0 AND ((y.n = 'A' AND y.v > x.v) OR (y.n LIKE 'B%' AND y.v = x.v))"
    query = cerflow.parse(f"SELECT * WHERE ({formula}) WITHIN 8 EVENTS")
    assert not Plan(query.tree, Schema(table.schema)).scan.computed
    expected = RUNNERS["semantics"](query, table)
    for runner in ENGINE_RUNNERS.values():
        assert bag(runner(query, table)) == bag(expected)


def test_next_is_not_asked_about_events_of_other_types():
    query = cerflow.parse("next([type = 'A'] AS a INTO r, [type = 'B' AND v > r.v] AS b)", language="sremo")
    schema = pa.schema({"type": pa.string(), "v": pa.int64()})
    explained = query.explain(schema=Schema(schema))
    assert "only those with  type = 'A' OR type = 'B'" in explained
    assert Plan(query.tree, Schema(schema)).scan.guards.narrows


@pytest.mark.parametrize(("digits", "scale"), [(12, 2), (15, 15), (15, 0), (18, 0), (10, 3), (15, -2)])
def test_decimals_are_the_numbers_that_they_write(digits, scale):
    random = np.random.default_rng(digits + scale)
    numbers = [
        57,
        -57,
        0,
        10**digits - 1,
        1 - 10**digits,
        *random.integers(-(10**digits) + 1, 10**digits, 200).tolist(),
    ]
    values = [None if k % 9 == 8 else Decimal(number).scaleb(-scale) for k, number in enumerate(numbers)]
    table = pa.table({"type": ["A", "B"] * 102 + ["A"], "v": pa.array(values, pa.decimal128(digits, scale))}).slice(1)
    literals = [repr(float(value)) if scale > 0 else str(int(value)) for value in values[1:8] if value is not None]
    for condition in ["y.v > x.v", "x.v * 2 < y.v", *(f"x.v <= {n} AND y.v = {n}" for n in literals)]:
        query = cerflow.parse(f"SELECT * WHERE (EVENT AS x ; EVENT AS y) FILTER {condition} WITHIN 4 EVENTS")
        assert query.match(table).count() == query.match(table, runner="semantics").count()
    (first,) = cerflow.parse(f"SELECT * WHERE B AS x FILTER x.v = {literals[0]}").match(table.slice(0, 1))
    assert first["events"][0]["v"] == values[1]


@pytest.mark.parametrize(
    ("query", "carried"),
    [
        ("(A AS x ; B AS y) FILTER y.v > x.v WITHIN 9 [t]", None),
        ("(A AS x ; B AS y) FILTER y.v - x.v > 3 PARTITION BY k WITHIN 9 [t]", None),
        ("(A AS x : B AS y ; C AS z) FILTER z.v > x.v PARTITION BY k", None),
        ("(A AS x : B AS y) FILTER y.v > x.v PARTITION BY k", None),
        ("A : B : C", None),
        ("(A AS x ; B AS y) NOT FOLLOWED BY C FOR 5 MILLISECONDS PARTITION BY k", NULL),
        ("A NOT FOLLOWED BY B FOR 5 MILLISECONDS PARTITION BY k", NULL),
        ("(A ; B AS b ; C) FILTER abs(b.v) > 2", None),
    ],
)
def test_scans_of_one_query_share_no_array_that_they_change(query, carried):
    """They may run in two threads."""
    drawn, size = np.random.default_rng(1), 2_000
    columns = {"type": drawn.choice(list("ABCD"), size), "k": drawn.choice(["p", "q", "r"], size)}
    (batch,) = pa.table({**columns, "v": drawn.integers(0, 9, size), "t": np.arange(size)}).to_batches()
    plan = Plan(cerflow.parse(f"SELECT * WHERE {query}").tree, Schema(batch.schema, time="t"))
    scan, other = plan.begin_scan(), plan.begin_scan()
    before = {name: array.copy() for name, array in other.room.arrays._asdict().items()}
    for first in (0, size):
        scan.read(batch, first, carried=carried)
    changed = [name for name, array in other.room.arrays._asdict().items() if not np.array_equal(array, before[name])]
    assert not changed


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        "(A AS a : EVENT AS b : EVENT AS c) FILTER {other} AND c.u = 'r'",
        "(A AS a : EVENT AS b : EVENT AS c) FILTER {other} AND c.u = 'r' PARTITION BY k",
        "(A AS a : EVENT AS b : EVENT AS c) FILTER {other} AND c.u = 'r' WITHIN 40 [t]",
        "(A AS a : EVENT AS b ; EVENT AS c) FILTER {other} AND c.u = 'r' PARTITION BY k WITHIN 40 [t]",
        "(EVENT AS b ; EVENT AS c) FILTER {other} AND c.u = 'r' PARTITION BY k WITHIN 9 [t]",
        "A NOT FOLLOWED BY (EVENT AS b FILTER {other}) FOR 5 MILLISECONDS PARTITION BY k",
        "(A ; C) NOT FOLLOWED BY (EVENT AS b FILTER {other}) FOR 5 MILLISECONDS PARTITION BY k",
        "(A ; B) UNLESS (D AS b FILTER {other}) PARTITION BY k WITHIN 9 [t]",
    ],
)
@pytest.mark.parametrize("other", ["NOT (b.s = 'x' AND b.u = 'p')", "(b.s = 'x' OR b.u LIKE '%p')", "b.s != b.u"])
def test_conditions_on_two_texts_are_known_wherever_rows_are_ruled_out(monkeypatch, query, coded, other):
    drawn, size = np.random.default_rng(1), 2_000
    columns = {"type": list("ABCD"), "s": ["x", "y", "a long text that is no key"], "u": ["p", "q", "r", "x"]}
    texts = {name: pa.array(drawn.choice(some, size)) for name, some in columns.items()}
    texts = {name: text.dictionary_encode() if coded else text for name, text in texts.items()}
    table = pa.table({**texts, "k": drawn.integers(0, 3, size), "t": np.arange(size)})
    found = []
    for rows in (1 << 30, 1):
        monkeypatch.setattr(limits, "NARROWED_ROWS", rows)
        parsed = cerflow.parse(f"SELECT * WHERE {query.format(other=other)}")
        matches = parsed.match(table, time="t")
        found.append((matches.count(), matches.sample(5, seed=1).to_pylist() if matches.count() else []))
    assert found[0] == found[1]
    assert found[0][0] > 0 or "!=" in other or "UNLESS" in query
