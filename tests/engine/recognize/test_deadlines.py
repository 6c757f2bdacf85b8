"""NOT FOLLOWED BY: the engine detects what the definitions say, when they say it, however the events come."""

import datetime
import random
import re
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, InputError, QueryError, SnapshotError, UnsupportedQueryError
from cerflow.engine.state.snapshot import Contents
from support.conformance import assert_conforms, drawn
from support.generators.conditions import Fragment
from support.generators.deadlines import DeadlineQueries
from support.runners import (
    ENGINE_RUNNERS,
    EXAMPLES,
    bag,
    engine_refuses,
    examples,
    one_by_one,
    restored_at_every_event,
    semantics,
)


def in_random_batches(query, table, until, draw, **roles):
    """Pushes of random sizes, single events as mappings, snapshots, and clocks.

    These show no more than the events before them and ``until``.
    """
    recognizer = query.recognizer(table.schema, time="t", **roles)
    found = []
    at = 0
    while at < table.num_rows:
        size = draw.choice([1, 1, 1, 2, 3, 4])
        rows = table.slice(at, size)
        found += recognizer.push(rows.to_pylist()[0] if size == 1 and draw.random() < 0.7 else rows).to_pylist()
        at = min(at + size, table.num_rows)
        if draw.random() < 0.3:
            found += recognizer.advance(table["t"][at - 1].as_py()).to_pylist()
        if draw.random() < 0.3:
            recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    last = table["t"][-1].as_py()
    for time in sorted({draw.randint(last, max(last, until)), until}):
        found += recognizer.advance(time).to_pylist()
    return found


@pytest.mark.parametrize("seed", range(round(120 * EXAMPLES)))
def test_as_defined(seed):
    own = DeadlineQueries(seed)
    query = cerflow.parse(own.query())
    if engine_refuses(query, own.events(), time="t"):
        return
    for _ in range(4):
        table = own.events()
        expected = bag(semantics(query, table, time="t"))
        assert bag(query.match(table, time="t").to_pylist()) == expected
        assert bag(one_by_one(query, table, time="t")) == expected
        assert bag(restored_at_every_event(query, table, time="t")) == expected
        until = table["t"][-1].as_py() + own.random.randint(0, 8)
        expected = bag(query.match(table, time="t", runner="semantics", until=until).to_pylist())
        assert bag(query.match(table, time="t", until=until).to_pylist()) == expected
        assert bag(in_random_batches(query, table, until, own.random)) == expected


CART = cerflow.parse("SELECT * WHERE (cart AS c NOT FOLLOWED BY checkout FOR 30 MINUTES) PARTITION BY [user]")


def shop(*events):
    """Events (minute, type, user)."""
    start = datetime.datetime(2024, 3, 15, 10)
    rows = [{"type": k, "at": start + datetime.timedelta(minutes=m), "user": u} for m, k, u in events]
    return pa.Table.from_pylist(
        rows, pa.schema([("type", pa.string()), ("at", pa.timestamp("us")), ("user", pa.string())])
    )


def test_no_key_waits_for_an_event_of_its_own():
    events = shop((0, "cart", "ann"), (5, "cart", "bob"), (10, "checkout", "bob"), (30, "view", "cleo"))
    (match,) = CART.match(events, time="at")
    assert (match["detected_at"], match["user"], match["start"], match["end"]) == (3, "ann", 0, 0)
    assert match["detected_time"] == datetime.datetime(2024, 3, 15, 10, 30)
    assert match["end_time"] == datetime.datetime(2024, 3, 15, 10)


@pytest.mark.parametrize("unit", ["us", "ms", "s", "ns"])
@pytest.mark.parametrize(
    "formula",
    [
        "(cart AS c NOT FOLLOWED BY checkout FOR 30 MINUTES)",
        "(cart AS c NOT FOLLOWED BY checkout FOR 30 MINUTES) PARTITION BY [user]",
        "((cart AS c NOT FOLLOWED BY checkout FOR 1500 MILLISECONDS) OR (cart AS c NOT FOLLOWED BY cart FOR 2 SECONDS))"
        " PARTITION BY [user]",
        "((cart AS c NOT FOLLOWED BY checkout FOR 2 SECONDS) ; checkout AS d FILTER d.at - c.at < 1 HOUR)"
        " PARTITION BY [user] WITHIN 2 HOURS",
    ],
)
@pytest.mark.parametrize("names", [["ann", "bob", "cid"], [f"u{k}" for k in range(400)]])
def test_single_events_wait_without_batches(formula, unit, names, monkeypatch):
    monkeypatch.setattr(limits, "STRING_SLACK", 8)
    draw = random.Random(repr((formula, unit)))
    at, rows = datetime.datetime(2024, 3, 15, 10), []
    for _ in range(400):
        at += datetime.timedelta(seconds=draw.choice([0, 0, 1, 1, 2, 3, 900]))
        rows.append({"type": draw.choice(["cart", "checkout", "view"]), "at": at, "user": draw.choice(names)})
    table = pa.Table.from_pylist(rows, shop().schema.set(1, pa.field("at", pa.timestamp(unit))))
    query = cerflow.parse(f"SELECT * WHERE {formula}")
    recognizer = query.recognizer(table.schema, time="at")
    recognizer._driver._push_rows = None
    found = [match for row in rows for match in recognizer.push(row).to_pylist()]
    assert found
    assert bag(found) == bag(query.match(table, time="at").to_pylist())


def test_a_set_takes_single_events_of_queries_that_wait_and_others():
    texts = {
        "a": CART.text,
        "b": "SELECT * WHERE cart : checkout",
        "c": "SELECT NONE WHERE view NOT FOLLOWED BY cart FOR 1 HOUR",
    }
    queries = cerflow.QuerySet({name: cerflow.parse(text) for name, text in texts.items()})
    draw = random.Random(1)
    kinds = ["cart", "checkout", "view"]
    minutes = sorted(draw.randint(0, 500) for _ in range(60))
    table = shop(*((minute, draw.choice(kinds), draw.choice("pq")) for minute in minutes))
    recognizer = queries.recognizer(table.schema, time="at")
    recognizer._driver._push_rows = None
    found = {name: [] for name in texts}
    for row in table.to_pylist():
        for name, matches in recognizer.push(row).items():
            found[name] += matches.to_pylist()
    for name, text in texts.items():
        assert found[name]
        assert bag(found[name]) == bag(cerflow.parse(text).match(table, time="at").to_pylist())


def test_the_clock_detects():
    events = shop((0, "cart", "ann"), (5, "cart", "bob"))
    recognizer = CART.recognizer(events.schema, time="at")
    assert not recognizer.push(events).to_pylist()
    assert not recognizer.advance("2024-03-15T10:29:59").to_pylist()
    (match,) = recognizer.advance(datetime.datetime(2024, 3, 15, 10, 34))
    assert (match["detected_at"], match["user"]) == (None, "ann")
    # The deadline counts, not what the clock shows.
    assert match["detected_time"] == datetime.datetime(2024, 3, 15, 10, 30)
    with pytest.raises(BadRecordError, match="time goes backwards"):
        recognizer.push(shop((33, "view", "ann")))
    # An event shows the rest.
    (match,) = recognizer.push(shop((40, "view", "cleo")))
    assert (match["detected_at"], match["user"]) == (2, "bob")
    live = cerflow.Recognizer.restore(CART, recognizer.snapshot()).live
    assert live["configurations"] == live["events"] == 0


def test_until_is_a_value_of_the_time_column():
    events = shop((0, "cart", "ann"))
    assert CART.match(events, time="at", until="2024-03-15T10:30").count() == 1
    assert CART.match(events, time="at", until="2024-03-15T10:29").count() == 0
    with pytest.raises(InputError, match=r"'soon' is not a time of the column 'at'"):
        CART.match(events, time="at", until="soon")
    for wrong in (True, 7, None, 1.5):
        with pytest.raises(InputError, match=f"{wrong} is not a time"):
            CART.recognizer(events.schema, time="at").advance(wrong)
    with pytest.raises(InputError, match="name the column with time="):
        cerflow.parse("SELECT * WHERE A").recognizer(events.schema).advance(7)


def test_what_stays_of_silent_keys():
    """Only what waits is remembered: after the deadline nothing is left of a key."""
    table = shop(*((k, "cart", f"user {k}") for k in range(20_000)))
    recognizer = CART.recognizer(table.schema, time="at")
    for start in range(0, 20_000, 1000):
        recognizer.push(table.slice(start, 1000))
        assert recognizer.live["configurations"] < 1000
        assert recognizer.live["partitions"] < 1000
    live = cerflow.Recognizer.restore(CART, recognizer.snapshot()).live
    assert live["configurations"] == live["events"] == 30


def test_a_set_of_queries_and_a_program():
    events = shop((0, "cart", "ann"), (30, "view", "bob"))
    some = cerflow.QuerySet({"left": CART, "views": "SELECT * WHERE view"})
    found = some.match(events, time="at")
    assert [m["detected_at"] for m in found["left"]] == [1]
    recognizer = some.recognizer(events.schema, time="at")
    assert set(recognizer.push(events.slice(0, 1))) == set()
    again = some.restore(recognizer.snapshot(), events.schema, time="at")
    assert set(again.advance("2024-03-15T10:31")) == {"left"}
    text = "DEFINE lost AS SELECT c.user AS who WHERE cart AS c NOT FOLLOWED BY checkout FOR 30 MINUTES;\n"
    program = cerflow.parse_program(text + "SELECT * FROM lost WHERE lost>EVENT AS d")
    (match,) = program.match(events, time="at")
    assert match["events"][0]["who"] == "ann"
    assert match["detected_time"] == datetime.datetime(2024, 3, 15, 10, 30)
    (match,) = program.match(events.slice(0, 1), time="at", until="2024-03-15T11:00")
    assert match["events"][0]["who"] == "ann"
    assert (match["detected_at"], match["detected_time"]) == (0, datetime.datetime(2024, 3, 15, 10, 30))


def test_damaged_snapshots_are_refused():
    events = shop((0, "cart", "ann"))
    recognizer = CART.recognizer(events.schema, time="at")
    recognizer.push(events)
    machine = recognizer._machine
    contents = machine.contents(recognizer._driver.checker.counts, machine.store.kept())
    for positions in ([1], [0, 0], []):
        arrays = {**contents.arrays, "deadline 0": pa.array(positions, pa.int64()).to_numpy()}
        if not positions:
            del arrays["deadline 0"]
        damaged = Contents(contents.description, arrays, contents.events, contents.positions)
        with pytest.raises(SnapshotError, match="deadline"):
            machine.take_over(damaged, contents.positions)


@examples(150)
@given(st.data())
def test_random_formulas(data):
    assert_conforms(*drawn(data, fragment=Fragment(deadlines=True)), ENGINE_RUNNERS)


@pytest.mark.slow
def test_many_that_wait_for_one_key():
    """A tick comes to those that are due, however many others wait."""
    table = pa.table({"type": ["cart"] * 20_000, "t": pa.array(range(20_000))})
    query = cerflow.parse("SELECT * WHERE cart NOT FOLLOWED BY checkout FOR 15 SECONDS")
    recognizer = query.recognizer(table.schema, time="t")
    assert recognizer.push(table).count() == 5000
    # The states of a run that waits, of one whose deadline has passed, and before these.
    assert recognizer.live["visited"] < 4 * 20_000
    assert recognizer.advance(34_998).count() == 14_999


def test_what_explain_says():
    schema = cerflow.Schema(shop().schema, time="at")
    said = " ".join(CART.explain(schema=schema).split())
    assert "all: any event may show that a deadline has passed" in said
    assert "events of one key show that deadlines of others have passed" in said
    assert "remembered for good" not in said
    then = cerflow.parse("SELECT * WHERE (cart NOT FOLLOWED BY checkout FOR 30 MINUTES) ; view PARTITION BY [user]")
    assert "WITHIN and a duration set a time" in then.keys_kept(schema)


@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX", "NEXT BY A", "LAST BY A"])
@pytest.mark.parametrize(
    "formula", ["{}(A NOT FOLLOWED BY B FOR 5 SECONDS)", "{}((A+ NOT FOLLOWED BY B FOR 5 SECONDS)) ; C"]
)
def test_strategies_in_a_formula_choose_at_each_deadline(strategy, formula):
    events = [{"type": a, "t": t} for a, t in (("A", 0), ("A", 1), ("C", 9))]
    query = cerflow.parse(f"SELECT * WHERE {formula.format(strategy)}")
    matches = query.match(events, time="t", time_unit="s")
    assert bag(matches.to_pylist()) == bag(query.match(events, time="t", time_unit="s", runner="semantics").to_pylist())
    assert {row["start"] for row in matches.to_pylist()} >= {0}


def assert_as_defined(own, query, count=3, **roles):
    """Batch and random pushes find what the definitions say, in streams of the generator."""
    for _ in range(count):
        table = own.events()
        until = table["t"][-1].as_py() + own.random.randint(0, 8)
        expected = bag(query.match(table, time="t", runner="semantics", until=until, **roles).to_pylist())
        assert bag(query.match(table, time="t", until=until, **roles).to_pylist()) == expected
        assert bag(in_random_batches(query, table, until, own.random, **roles)) == expected


@pytest.mark.parametrize("seed", range(round(120 * EXAMPLES)))
def test_keys_that_begin_anew_after_a_pause(seed):
    """The deadlines of a session go on to pass, whatever comes in the next one."""
    own = DeadlineQueries(seed)
    consume = own.random.choice(["CONSUME BY PARTITION", "CONSUME BY ANY"])
    query = cerflow.parse(own.query().replace("CONSUME BY PARTITION", consume))
    roles = {"forget": f"{own.random.choice([1, 1, 2, 4])} MILLISECONDS"}
    if not engine_refuses(query, own.events(), time="t"):
        assert_as_defined(own, query, 4, **roles)


@pytest.mark.parametrize("seed", range(round(100 * EXAMPLES)))
def test_choices_by_labels(seed):
    """At an event that shows several deadlines SELECT chooses among the matches of all of them."""
    own = DeadlineQueries(seed)
    formula = own.deadline(own.random.choice([1, 2, 2, 3]))
    label = own.random.choice([word for word in (*re.findall(r"x\d+", formula), "A", "B", "C") if word in formula])
    chosen = own.random.choice(["*", "*", "x AS x", "COUNT(*) AS n"]).replace("x AS x", label)
    text = f"SELECT {own.random.choice(['NEXT', 'LAST'])} BY {label} {chosen} WHERE {formula}"
    text += own.random.choice(["", " PARTITION BY [k]"])
    text += own.random.choice(["", "", f" WITHIN {own.window()}"]) + own.random.choice(["", " CONSUME BY PARTITION"])
    try:
        query = cerflow.parse(text)
        query.check()
    except (QueryError, UnsupportedQueryError):
        return
    assert_as_defined(own, query)


@pytest.mark.parametrize("seed", range(round(100 * EXAMPLES)))
def test_consumption_by_any_key(seed):
    """All matches of a moment are reported; then everything is forgotten that has begun, whatever its key."""
    own = DeadlineQueries(seed)
    chosen = own.random.choice(["*", "*", "*", "NEXT *", "LAST *", "MAX *", "NONE", "COUNT(*) AS n"])
    text = f"SELECT {chosen} WHERE {own.deadline(own.random.choice([1, 2, 3]))} PARTITION BY [k]"
    text += own.random.choice(["", "", f" WITHIN {own.window()}"]) + " CONSUME BY ANY"
    query = cerflow.parse(text)
    if not engine_refuses(query, own.events(), time="t"):
        assert_as_defined(own, query)


@pytest.mark.parametrize("seed", range(round(100 * EXAMPLES)))
def test_strict_repetitions(seed):
    own = DeadlineQueries(seed)
    bounds = own.random.choice(["{2}", "{1,2}", "{2,3}", "{2,}", "{1,}", "{1,3}", "{3}"])
    inner = own.deadline(own.random.choice([1, 1, 2]))
    if own.random.random() < 0.5:
        inner = f"({inner} OR {own.event()})"
    formula = f"(({inner}):{bounds})"
    formula = own.random.choice(["{}", "({} ; {})", "({} : {})", "({1} : {0})", "STRICT({})"]).format(
        formula, own.event()
    )
    text = f"SELECT * WHERE {formula}" + own.random.choice(["", " PARTITION BY [k]"])
    query = cerflow.parse(text + own.random.choice(["", "", f" WITHIN {own.window()}"]))
    with mock.patch.object(limits, "REPEATED_STATES", own.random.choice([0, limits.REPEATED_STATES])):
        if not engine_refuses(query, own.events(), time="t"):
            assert_as_defined(own, query)


KINDS = [
    *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()),
    *(pa.float32(), pa.float64(), pa.timestamp("s"), pa.timestamp("ns", "Europe/Vienna"), pa.date32(), pa.date64()),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_times_of_every_kind(kind):
    query = cerflow.parse(f"SELECT * WHERE A NOT FOLLOWED BY B FOR 5 {'DAYS' if pa.types.is_date(kind) else 'SECONDS'}")
    roles = {"time": "t"} if pa.types.is_temporal(kind) else {"time": "t", "time_unit": "s"}
    values = [100, 102, 103, 105, 109, 120, 121, 127]
    if pa.types.is_integer(kind):
        # Beyond these no time can be measured, so the last deadline is never seen to pass.
        most = min(2 ** (kind.bit_width - pa.types.is_signed_integer(kind)) - 1, 2**63 - 2)
        values[-2:] = [most - 1, most]

    def times(values):
        if pa.types.is_date(kind):
            return pa.array(values, pa.int32()).cast(pa.date32()).cast(kind)
        return pa.array(values, pa.timestamp("s") if pa.types.is_timestamp(kind) else None).cast(kind)

    table = pa.table({"type": list("ABAACAAC"), "t": times(values)})
    rows = semantics(query, table, **roles)
    assert len(rows) == (3 if pa.types.is_integer(kind) else 4)
    for runner in ENGINE_RUNNERS.values():
        assert bag(runner(query, table, **roles)) == bag(rows)
    recognizer = query.recognizer(table.schema, **roles)
    recognizer.push(table.slice(0, 4))
    assert recognizer.next_deadline == times([108])[0]
