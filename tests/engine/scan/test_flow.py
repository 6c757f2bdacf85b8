"""Events that no run can pass through on its way to a match are left out; that changes no match."""

import random
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.scan import scan
from support.runners import RUNNERS, bag, examples, in_random_pieces

FORMULAS = [
    "A ; Z",
    "(A AS x ; B AS y ; Z AS z) FILTER x.v < z.v",
    "(A AS x ; Z AS z) FILTER x.k = z.k AND z.v > 1",
    "A+ ; Z",
    "A : B ; Z",
    "(A ; B)+ ; Z",
    "A ; (Z OR EVENT AS z FILTER z.v > 3)",
    "(A UNLESS B) ; Z",
    "A ; NEXT(B ; Z)",
    "A ; MAX(B+ ; Z)",
    "STRICT(A ; B) ; Z",
    "START(A) ; Z",
    "(A ; Z) OR NEXT(A)",
    "(A ; Z AS z) OR START(B)",
    "(A AS x ; B AS y ; Z AS z) FILTER x.k = y.k AND y.k = z.k",
    "(A AS x ; B AS y ; Z AS z) FILTER x.k = z.k AND x.n = y.n AND y.n = z.n AND x.v < z.v",
    "(B AS x ; B AS y) FILTER x.n = y.n AND x.v < y.v",
    "(A AS x ; B AS y ; Z AS z) FILTER y.v >= x.v AND z.v <= x.v",
    "(A AS x ; B+ AS y ; Z AS z) FILTER x.v = z.v",
    "((A AS x ; B AS y) FILTER x.v < y.v) OR ((B AS x ; A AS y) FILTER x.v > y.v)",
    "(A AS x ; B AS y ; B AS w ; Z AS z) FILTER x.v != y.v AND w.v > y.v AND z.v > 2 * x.v",
    "(A AS x ; B+ AS y ; Z AS z) FILTER x.k = y.k AND y.k = z.k",
    "((A AS x ; Z AS z) FILTER x.k = z.k) OR (A ; C)",
    "((A AS x ; Z AS z) UNLESS (B AS y FILTER y.v > x.v)) FILTER x.k = z.k",
    "EVENT AS x ; (EVENT AS y FILTER y.v > 3) ; Z",
    "(A AS x ; B AS y ; A AS w ; B AS q ; C AS r ; B AS s ; Z AS z) "
    "FILTER x.v > 0 AND y.v > 1 AND w.v < 4 AND q.v < 3 AND r.v > 1 AND s.v > 2 AND r.k = 'p' AND q.k = 'q'",
]


#: Values that are compared, at the limits of their kinds.
VALUES = [
    [1, 2, 3, 4, None],
    [1, 3, 2**63 - 1, -(2**63) + 1, None],
    [0.0, -0.0, 2.5, 3.5, float("inf"), -float("inf"), None],
]


@st.composite
def queries(draw):
    what = draw(st.sampled_from(["*", "*", "NONE", "MAX *", "NEXT *", "LAST *", "ANY *", "z", "COUNT(*) AS many"]))
    # Without a window only those that have few matches.
    some = [formula for formula in FORMULAS if "+" not in formula and formula.count(";") < 3]
    endless = draw(st.sampled_from([True, False, False]))
    formula = draw(st.sampled_from(some if endless else FORMULAS))
    if what == "z" and "AS z" not in formula:
        what = "*"
    windows = [""] if endless else ["2 [t]", "5 [t]", "3 MILLISECONDS", "4 EVENTS", "9 EVENTS", "3 [v]"]
    window = draw(st.sampled_from(windows))
    inner = window != "" and draw(st.booleans())
    formula = f"({formula}) WITHIN {window}" if inner else formula
    keys = draw(st.sampled_from(["", "", " PARTITION BY k", " PARTITION BY k, n"]))
    consume = draw(st.sampled_from(["", "", " CONSUME BY ANY", " CONSUME BY PARTITION"]))
    limit = draw(st.sampled_from(["", "", " LIMIT 2"])) if what in ("*", "MAX *") else ""
    return f"SELECT {what} WHERE ({formula}){keys}{'' if inner or not window else f' WITHIN {window}'}{consume}{limit}"


@st.composite
def streams(draw):
    size = draw(st.integers(0, 60))
    generator = random.Random(draw(st.integers(0, 10**6)))
    kinds = draw(st.sampled_from([pa.string(), pa.dictionary(pa.int32(), pa.string())]))
    values = draw(st.sampled_from(VALUES))
    times = draw(st.sampled_from([pa.int64(), pa.float64(), pa.timestamp("ms")]))
    time, rows = 0, []
    for _ in range(size):
        time += generator.choice([0, 0, 1, 1, 2, 7])
        rows.append(time)
    return pa.table(
        {
            "type": pa.array([generator.choice("AAABBBCZ" if k % 20 > 9 else "AABBC") for k in range(size)]).cast(
                kinds
            ),
            "k": pa.array([generator.choice(["p", "q", None]) for _ in range(size)], pa.string()).cast(kinds),
            "n": pa.array([generator.choice([1, 1, 2]) for _ in range(size)], pa.int64()),
            "v": pa.array([generator.choice(values) for _ in range(size)], pa.infer_type(values)),
            "t": pa.array(rows, pa.int64()).cast(times),
        }
    )


def drawn(data):
    text, table = data.draw(queries()), data.draw(streams())
    if "[t]" in text and not pa.types.is_integer(table.schema.field("t").type):
        text = text.replace(" [t]", " MILLISECONDS")
    if "[v]" in text:
        table = table.set_column(3, "v", pa.array([k // 3 for k in range(table.num_rows)], pa.int64()))
    return cerflow.parse(text), table if "WITHIN" in text else table.slice(0, 25)


@given(st.data())
@examples(600)
def test_matches_are_those_of_the_semantics(data):
    query, table = drawn(data)
    chosen = "LIMIT" in str(query) or "ANY *" in str(query)
    with pytest.MonkeyPatch.context() as patch:
        plain = query.match(table, time="t").to_pylist()
        patch.setattr(limits, "NARROWED_ROWS", 1)
        patch.setattr(limits, "FLOW_KEYS", data.draw(st.sampled_from([1, 2, 1 << 17])))
        ahead = query.match(table, time="t").to_pylist()
        pieces = in_random_pieces(query, table, data, time="t")
    # Also in their order.
    assert ahead == plain
    assert pieces == plain
    if not chosen:
        if query.tree.window is None and "WITHIN" in str(query):
            # By definition its matches of every length come first, exponentially many, and then the window.
            table = table.slice(0, 14)
            plain = query.match(table, time="t").to_pylist()
        assert bag(plain) == bag(RUNNERS["semantics"](query, table, time="t"))


@pytest.mark.parametrize("formula", ["(A ; A) OR NEXT(A)", "(A ; A) OR START(B ; A)"])
def test_a_first_event_that_matters_is_none_of_another_type(formula, monkeypatch):
    # Texts decide all conditions, but the first event counts whatever its type is.
    table = pa.table({"type": ["C", "C", "A", "B", "A", "C", "A"], "t": range(7)})
    query = cerflow.parse(f"SELECT * WHERE {formula} WITHIN 3 [t]")
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)
    monkeypatch.setattr(limits, "NARROWING_PAUSE", 0)
    recognizer = query.recognizer(table.schema, time="t")
    found = [row for k in range(7) for row in recognizer.push(table.slice(k, 1)).to_pylist()]
    assert bag(found) == bag(RUNNERS["semantics"](query, table, time="t"))


LONG_FORMULAS = [
    "A ; Z",
    "A ; longer",
    "(A AS x ; B AS y ; Z AS z) FILTER z.k = 'p'",
    "(A AS x ; Z AS z) FILTER x.k = 'q' AND z.k = 'no such text'",
    "(A AS x ; Z AS z) FILTER z.k IS NULL",
    "(A AS x ; Z AS z) FILTER z.k LIKE 'q%' AND z.v > 3",
    "(A ; B)+ ; (Z OR EVENT AS z FILTER z.v > 3 AND z.k = 'a text of more than eight bytes')",
]


@pytest.mark.parametrize("formula", LONG_FORMULAS)
@given(st.data())
@examples(12)
def test_in_long_batches_it_does_not_matter_where_the_last_events_are(formula, data):
    generator = random.Random(data.draw(st.integers(0, 10**6)))
    size = data.draw(st.integers(4_000, 13_000))
    seldom = ["A", "A", "B", "B", "C"]
    last = {generator.randrange(size) for _ in range(data.draw(st.integers(0, 6)))}
    last |= {k + 1 for k in last}
    texts = ["p", "q", "qq", *data.draw(st.sampled_from([[], [None], ["a text of more than eight bytes"]]))]
    kinds = data.draw(st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]))
    columns = {
        "type": pa.array([generator.choice(["Z", "longer"] if k in last else seldom) for k in range(size)]).cast(kinds),
        "k": pa.array([generator.choice(texts) for _ in range(size)], pa.string()).cast(kinds),
        "v": pa.array([generator.choice([1, 2, 3, 4]) for _ in range(size)]),
        "t": pa.array([k // 3 for k in range(size)]),
    }
    table = pa.table(columns).slice(data.draw(st.integers(0, 5)))
    query = cerflow.parse(f"SELECT * WHERE ({formula}) WITHIN {data.draw(st.sampled_from([3, 30]))} [t]")
    with pytest.MonkeyPatch.context() as patch:
        ahead = query.match(table, time="t")
        found = ahead.aggregate({"n": "count"}), ahead.to_pylist() if ahead.count() < 2000 else []
        patch.setattr(limits, "NARROWED_ROWS", 1 << 30)
        plain = query.match(table, time="t")
        assert found == (plain.aggregate({"n": "count"}), plain.to_pylist() if found[1] else [])


@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
@pytest.mark.parametrize("ending", [True, False])
def test_few_events_come_to_the_automaton(by_automaton, rows_read, keys, ending):
    size = 10_000
    types = ["AB"[k % 2] for k in range(size)]
    types[6_000] = "Z"
    table = pa.table({"type": types, "k": ["p"] * size, "t": range(size)})
    for formula, found in ("A ; Z", 4), ("A ; B ; Z", 10):
        query = cerflow.parse(f"SELECT * WHERE {formula}{keys} WITHIN 10 [t]")
        if ending:
            assert query.match(table, time="t").count() == found
        else:
            assert len(query.recognizer(table.schema, time="t").push(table)) == found
    # Z and those in its window but a B without an A before it; unless the stream ends also those in the window of an
    # event that may come next.
    assert rows_read == ([1 + 4, 1 + 8] if ending else [1 + 4 + 5, 1 + 9 + 9])


def test_events_without_the_next_step_behind_them_do_not_come_to_the_automaton(rows_read):
    table = pa.table({"type": ["A", "A", "A", "Z"] * 1000 + ["B"] * 1000, "t": range(5000)})
    assert cerflow.parse("SELECT * WHERE A ; B ; Z WITHIN 50 [t]").match(table, time="t").count() == 0
    # Before a last event there is no B, and too long before a B that events behind the batch may complete no A.
    assert rows_read == [0]


@pytest.mark.parametrize("rows", [5_000, 500])
def test_where_most_events_are_needed_all_are_read(by_automaton, rows_read, rows):
    table = pa.table({"type": ["A", "Z"] * rows, "t": range(2 * rows)})
    assert cerflow.parse("SELECT * WHERE A ; Z WITHIN 2 [t]").match(table, time="t").count() == rows
    assert rows_read == [2 * rows]


def test_long_patterns_have_a_way_of_their_own_for_the_last_event(rows_read):
    steps = " ; ".join(f"EVENT AS e{k}" for k in range(12))
    names = " AND ".join(f"e{k}.n = 'n{k}'" for k in range(12))
    size = 10_000
    table = pa.table({"type": ["A"] * size, "n": [f"n{k % 11}" for k in range(size)], "t": range(size)})
    query = cerflow.parse(f"SELECT * WHERE ({steps}) FILTER {names} WITHIN 100 [t]")
    assert query.match(table, time="t").count() == 0
    assert not query.recognizer(table.schema, time="t").push(table)
    assert rows_read == [0, 100]


def test_where_most_events_may_be_last_a_window_is_not_looked_at_again(by_automaton, rows_read):
    query = cerflow.parse("SELECT * WHERE A ; Z WITHIN 10 [t]")
    recognizer = query.recognizer(pa.schema({"type": pa.string(), "t": pa.int64()}), time="t")
    often, seldom = ["A", "Z"] * 500, ["A"] * 999 + ["Z"]
    for number, types in enumerate([often, *[seldom] * 9]):
        recognizer.push(pa.table({"type": types, "t": range(1000 * number, 1000 * number + 1000)}))
    assert rows_read == [1000] * 8 + [10, 10]


def test_batches_are_read_whole_for_longer_where_narrowing_never_pays(by_automaton, rows_read):
    query = cerflow.parse("SELECT * WHERE A ; Z PARTITION BY k WITHIN 100 [t]")
    recognizer = query.recognizer(pa.schema({"type": pa.string(), "t": pa.int64(), "k": pa.int64()}), time="t")
    narrowed = []
    for number in range(40):
        table = {"type": ["A", "Z"] * 500, "t": range(1000 * number, 1000 * number + 1000), "k": [0, 0, 1, 1] * 250}
        with mock.patch.object(scan, "follow_runs", wraps=scan.follow_runs) as follow_runs:
            recognizer.push(pa.table(table))
        narrowed += [number] * follow_runs.call_count
    assert narrowed == [0, 8, 24]
    # What small batches show says nothing of large ones.
    size = 10_000
    large = {"type": ["A"] * (size - 1) + ["Z"], "t": range(50_000, 50_000 + size), "k": [0] * size}
    rows_read.clear()
    recognizer.push(pa.table(large))
    assert rows_read == [100]


@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
def test_a_pass_rests_where_it_rules_out_little_and_goes_on_where_it_does_again(by_automaton, rows_read, keys):
    # Before and behind 100,000 rows nearly all of which matter there are 200,000 in which hardly any does.
    often, seldom = np.array(["A", "Z"] * 50_000), np.where(np.arange(200_000) % 2000 == 0, "Z", "A")
    types = np.concatenate([seldom, often, seldom, often])
    table = pa.table({"type": types, "t": np.arange(len(types)), "k": np.arange(len(types)) // 100})
    query = cerflow.parse(f"SELECT * WHERE A ; Z{keys} WITHIN 5 [t]")
    found = query.recognizer(table.schema, time="t").push(table)
    with mock.patch.object(limits, "NARROWED_ROWS", 1 << 30):
        expected = query.recognizer(table.schema, time="t").push(table)
    assert found.count() == expected.count() > 190_000
    assert found.to_arrow().column("start").equals(expected.to_arrow().column("start"))
    assert 200_000 <= rows_read[0] < 350_000
    assert rows_read[1] == len(types)


def test_moves_that_the_same_guards_allow_are_not_mixed_up_with_others(rows_read):
    # There are nine of them, but four guards.
    query = cerflow.parse("SELECT NONE WHERE (A AS x ; (B OR C)+ AS y ; Z AS z) FILTER y.v = 7 WITHIN 10 [t]")
    types = np.array(["A", "B", "C", "Z"] * 5000)
    table = pa.table({"type": types, "v": np.where(np.arange(20_000) % 5000 == 1, 7, 1), "t": np.arange(20_000)})
    assert query.recognizer(table.schema, time="t").push(table).count() > 0
    assert rows_read[0] < 50


def test_keys_are_told_apart_also_where_equalities_tell_them(rows_read):
    size = 20_000
    generator = random.Random(3)
    users = [generator.randrange(500) for _ in range(size)]
    table = pa.table({"type": ["AB"[k % 2] for k in range(size)], "k": users, "t": range(size)})
    keyed = cerflow.parse("SELECT * WHERE A ; B PARTITION BY k WITHIN 20 [t]").match(table, time="t").count()
    tied = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.k = y.k WITHIN 20 [t]").match(table, time="t")
    assert tied.count() == keyed > 100
    one = (
        cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER x.k = y.k WITHIN 20 [t]").match(table, time="t").count()
    )
    assert one > 50
    # The events of matches, and few others: those at the end of the batch.
    assert rows_read[0] <= 2 * keyed + 20
    assert rows_read[1] == rows_read[0]
    assert rows_read[2] <= 2 * one + 20


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT * WHERE A ; Z WITHIN 5 [t]", (True, True, 0)),
        ("SELECT NONE WHERE A ; Z WITHIN 5 EVENTS", (True, True, 0)),
        ("SELECT * WHERE (A ; Z) WITHIN 5 MILLISECONDS", (True, True, 0)),
        ("SELECT * WHERE A ; Z PARTITION BY k WITHIN 5 MINUTES", (True, True, 1)),
        ("SELECT * WHERE (A AS x ; Z AS z) FILTER x.k = z.k WITHIN 5 MINUTES", (True, True, 1)),
        ("SELECT * WHERE (A AS x ; Z AS z) FILTER x.k = z.k PARTITION BY v WITHIN 5 MINUTES", (True, True, 2)),
        ("SELECT * WHERE (A AS x ; B AS y ; Z AS z) FILTER x.k = z.k WITHIN 5 MINUTES", (True, True, 0)),
        ("SELECT * WHERE ((A AS x ; Z AS z) UNLESS B) FILTER x.k = z.k WITHIN 5 MINUTES", None),
        ("SELECT * WHERE A ; Z PARTITION BY k WITHIN 5 EVENTS", (False, True, 1)),
        ("SELECT * WHERE A ; Z WITHIN 5 [v]", (False, True, 0)),
        ("SELECT * WHERE A ; Z", (False, True, 0)),
        ("SELECT MAX * WHERE A ; (Z OR A)", (False, True, 0)),
        ("SELECT * WHERE START(A ; Z) WITHIN 5 [t]", (False, True, 0)),
        ("SELECT NEXT * WHERE A ; Z PARTITION BY k WITHIN 5 MINUTES", (True, True, 1)),
        ("SELECT LAST BY x * WHERE A AS x ; Z WITHIN 5 [t]", (True, True, 0)),
        ("SELECT * WHERE A ; EVENT AS z WITHIN 5 [t]", (True, True, 0)),
    ],
)
def test_queries_in_which_runs_say_which_events_matter(query, found):
    schema = pa.schema({"type": pa.string(), "k": pa.string(), "v": pa.int64(), "t": pa.int64()})
    flow = Plan(cerflow.parse(query).tree, Schema(schema, time="t")).scan.flow
    assert (None if isinstance(flow, str) else (flow.backwards, flow.forwards, len(flow.keyed))) == found


def test_queries_of_a_set_use_the_same_room():
    """One after the other, whatever they wrote there."""
    drawn, size = np.random.default_rng(4), 40_000
    columns = {"type": drawn.choice(list("ABCDE"), size), "v": drawn.random(size), "t": np.arange(size)}
    table = pa.table({**columns, "k": drawn.integers(0, 900, size), "n": drawn.integers(0, 40, size)})
    conditions = "FILTER x.v > 0.9 AND y.v < 0.1"
    queries = {
        "by k": f"SELECT * WHERE (A AS x ; B AS y ; C) {conditions} PARTITION BY k WITHIN 5 SECONDS",
        "by n": f"SELECT * WHERE (B AS x ; C AS y) {conditions} PARTITION BY n WITHIN 1 SECOND",
        "by equality": "SELECT * WHERE (A AS x ; D AS y) FILTER x.k = y.k AND y.v < 0.05 WITHIN 3 SECONDS",
        "without": f"SELECT * WHERE (E AS x ; A AS y) {conditions} WITHIN 20 MILLISECONDS",
        "neighbours": "SELECT * WHERE (A AS x : A AS y : B) FILTER y.v > x.v PARTITION BY n",
        "deadline": "SELECT * WHERE (D AS x FILTER x.v > 0.99) NOT FOLLOWED BY E FOR 2 SECONDS PARTITION BY k",
    }
    parsed = {name: cerflow.parse(text) for name, text in queries.items()}
    recognizer = cerflow.QuerySet(parsed).recognizer(table.schema, time="t")
    found = {name: [] for name in queries}
    for begin, end in ((0, 15_000), (15_000, 15_090), (15_090, size)):
        for name, matches in recognizer.push(table.slice(begin, end - begin)).items():
            found[name] += matches.to_pylist()
    for name, query in parsed.items():
        assert found[name] == query.match(table, time="t").to_pylist()
        assert len(found[name]) > 20


STRICT_FORMULAS = [
    "A : B ; Z",
    "(A AS x : B AS y ; Z AS z) FILTER x.v < y.v",
    "(EVENT AS x : EVENT AS y ; Z AS z) FILTER y.v - x.v > 1",
    "STRICT(A ; B) ; Z",
    "(A : B)+ ; Z",
    "A ; B : Z",
    "(A AS x : B AS y : C AS w ; Z AS z) FILTER x.s = y.s",
    "(A AS x : B AS y ; A AS p : B AS q) FILTER x.v < y.v AND p.v + q.v > x.v",
    "A ; ((B : Z) OR C)",
    "(A+ : B) ; Z",
    "(EVENT AS x : EVENT AS y ; EVENT AS z) FILTER y.v - x.v > 1 AND z.v > 3",
    "(A AS x : B AS y UNLESS C) ; Z",
    "((A ; B : B) WITHOUT Z) ; Z",
    "(A ; (B : B)) WITHOUT C",
    "((A ; (B : B)) WITHOUT (C AS c FILTER c.v > 2)) ; Z",
    "((A AS x : B AS y) FILTER x.v <= y.v) ; ((A AS p : B AS q) FILTER p.v > q.v)",
    "(EVENT AS x : EVENT AS y : EVENT AS w ; EVENT AS z) FILTER x.s = w.s AND y.v > x.v AND z.v > 3",
    "(EVENT AS x : EVENT AS y : EVENT AS z) FILTER y.v > 2 * x.v AND z.v < x.v + 3 AND x.v > 1",
    "(EVENT AS x : EVENT AS y) FILTER y.v + 1 > 2 * x.v",
]


@st.composite
def strict_queries(draw):
    formula = draw(st.sampled_from(STRICT_FORMULAS))
    what = draw(st.sampled_from(["*", "*", "NONE", "COUNT(*) AS many", "LAST *"]))
    windows = [" WITHIN 2 [t]", " WITHIN 5 [t]", *([] if formula.count(";") > 1 else [""])]
    keys, window = draw(st.sampled_from(["k", "k, n", "n"])), draw(st.sampled_from(windows))
    consume = draw(st.sampled_from(["", "", " CONSUME BY ANY", " CONSUME BY PARTITION"]))
    limit = draw(st.sampled_from(["", "", " LIMIT 2"])) if what == "*" else ""
    return f"SELECT {what} WHERE ({formula}) PARTITION BY {keys}{window}{consume}{limit}"


def strict_stream(generator, size, types):
    kinds = generator.choice([pa.string(), pa.dictionary(pa.int32(), pa.string())])
    values = generator.choice([pa.int64(), pa.float64()])
    time, times = 0, []
    for _ in range(size):
        time += generator.choice([0, 0, 1, 1, 2, 7])
        times.append(time)

    def some(choices, kind):
        return pa.array([generator.choice(choices) for _ in range(size)]).cast(kind)

    return pa.table(
        {
            "type": some(types, kinds),
            "k": some(["p", "a key that is long, q", "a key that is long, r", None], kinds),
            "n": some([1, 1, 2], pa.int64()),
            "s": some(["a", "b", None, "a text of more than eight bytes"], kinds),
            "v": some([1, 2, 3, 4, None], values),
            "t": times,
        }
    )


@given(st.data())
@examples(400)
def test_where_the_next_event_of_a_key_ends_runs_matches_are_those_of_the_semantics(data):
    query, generator = cerflow.parse(data.draw(strict_queries())), random.Random(data.draw(st.integers(0, 10**6)))
    table = strict_stream(generator, data.draw(st.integers(0, 40)), "AAABBBCZ")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "NARROWED_ROWS", 1 << 30)
        plain = query.match(table, time="t").to_pylist()
        patch.setattr(limits, "NARROWED_ROWS", 1)
        patch.setattr(limits, "FLOW_ROWS", data.draw(st.sampled_from([5, 16, 1 << 20])))
        query = cerflow.parse(str(query))
        assert query.match(table, time="t").to_pylist() == plain
        assert in_random_pieces(query, table, data, time="t") == plain
    if "LIMIT" not in str(query) and ("WITHIN" in str(query) or table.num_rows < 16):
        assert bag(plain) == bag(RUNNERS["semantics"](query, table, time="t"))


@given(st.data())
@examples(40)
def test_in_long_batches_by_key_no_match_is_lost_where_the_next_event_ends_runs(data):
    generator = random.Random(data.draw(st.integers(0, 10**6)))
    table = strict_stream(generator, data.draw(st.integers(2_000, 6_000)), ["A"] * 40 + ["B"] * 40 + ["C", "Z"])
    query = cerflow.parse(data.draw(strict_queries()))
    with pytest.MonkeyPatch.context() as patch:
        narrowed = query.match(table, time="t")
        found = narrowed.count(), narrowed.to_pylist() if narrowed.count() < 2000 else []
        patch.setattr(limits, "NARROWED_ROWS", 1 << 30)
        plain = cerflow.parse(str(query)).match(table, time="t")
        assert found == (plain.count(), plain.to_pylist() if found[1] else [])


@pytest.mark.parametrize("condition", ["WITHOUT C", "WITHOUT (C AS c FILTER c.v > 2)", "UNLESS C"])
def test_an_event_that_is_part_of_no_match_ends_the_waiting_of_its_key(condition, monkeypatch):
    generator = random.Random(3)
    size = 2_000
    drawn = {"type": [generator.choice("ABBBCZ") for _ in range(size)], "v": [4] * size}
    table = pa.table({**drawn, "k": [generator.randrange(30) for _ in range(size)], "t": range(size)})
    text = f"SELECT * WHERE ((A ; (B : B)) {condition}) ; Z PARTITION BY k WITHIN 300 [t]"
    found = cerflow.parse(text).match(table, time="t").count()
    assert found > 20
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1 << 30)
    assert cerflow.parse(text).match(table, time="t").count() == found
    everything = "SELECT * WHERE (A ; (B : B)) ; Z PARTITION BY k WITHIN 300 [t]"
    assert cerflow.parse(everything).match(table, time="t").count() > found + 100


def test_few_events_of_a_pair_of_neighbours_and_a_rare_event_come_to_the_automaton(rows_read):
    generator = random.Random(5)
    size = 20_000
    columns = {"k": [generator.randrange(50) for _ in range(size)], "v": [generator.gauss(0, 1) for _ in range(size)]}
    table = pa.table({"t": range(size), **columns})
    pattern = "(EVENT AS a : EVENT AS b ; EVENT AS c) FILTER b.v - a.v > 4 AND c.v > 2.5"
    query = cerflow.parse(f"SELECT * WHERE {pattern} PARTITION BY k WITHIN 5000 [t]")
    found = query.match(table, time="t").count()
    assert found > 10
    assert sum(rows_read) < 20 * found


@pytest.mark.parametrize("clauses", [" PARTITION BY k", " PARTITION BY k WITHIN 500 [t]", " WITHIN 5000 EVENTS"])
@pytest.mark.parametrize("time", [pa.int64(), pa.float64()])
def test_events_of_keys_that_lack_a_rare_event_are_ruled_out(clauses, time):
    generator, size = random.Random(4), 12_000
    condition = "b.v > a.v AND a.k = b.k AND b.k = c.k"
    query = cerflow.parse(f"SELECT * WHERE (A AS a ; B AS b ; (A OR C) AS c) FILTER {condition}{clauses}")
    columns = {
        "type": generator.choices("ABCD", [40, 1, 4, 50], k=size),
        "v": generator.choices(range(9), k=size),
        "k": generator.choices([None, *range(600)], k=size),
        "t": pa.array([begin // 7 for begin in range(size)], time),
    }
    table = pa.table(columns)
    with mock.patch.object(limits, "NARROWED_ROWS", 1 << 30):
        expected = cerflow.parse(str(query)).match(table, time="t").to_pylist()
    assert len(expected) > 20
    for rows in (size, 5_000, 1_999):
        recognizer = query.recognizer(table.schema, time="t")
        found = [match for begin in range(0, size, rows) for match in recognizer.push(table.slice(begin, rows))]
        assert bag(found) == bag(expected)
    assert bag(query.match(table, time="t").to_pylist()) == bag(expected)


@pytest.mark.parametrize("keys", [3_000, 20])
@pytest.mark.parametrize(
    ("pattern", "clauses"),
    [
        ("(A AS a ; A AS b) FILTER b.v > a.v", " PARTITION BY k WITHIN 500 [t]"),
        ("(A AS a ; A AS b) FILTER a.k = b.k AND b.v > a.v", " WITHIN 300 EVENTS"),
        ("(A AS a ; (A OR B) AS b ; A AS c) FILTER b.v != a.v", " PARTITION BY k WITHIN 2000 [t]"),
        ("(A AS a ; (A AS b)+) FILTER b.v > a.v", " PARTITION BY k WITHIN 200 [t]"),
    ],
)
def test_events_of_keys_that_lack_a_second_event_are_ruled_out(pattern, clauses, keys, rows_read):
    generator, size = random.Random(6), 12_000
    columns = {
        "type": generator.choices("ABCD", [10, 4, 4, 80], k=size),
        "v": generator.choices(range(9), k=size),
        "k": generator.choices([None, *range(keys)], k=size),
        "t": range(size),
    }
    table, query = pa.table(columns), cerflow.parse(f"SELECT * WHERE {pattern}{clauses}")
    found = bag(query.match(table, time="t").to_pylist())
    assert found
    if keys == 3_000:
        assert sum(rows_read) < columns["type"].count("A") // 4
    for rows in (5_000, 1_999):
        recognizer = query.recognizer(table.schema, time="t")
        pushes = (recognizer.push(table.slice(begin, rows)) for begin in range(0, size, rows))
        assert bag([match for matches in pushes for match in matches]) == found
    with mock.patch.object(limits, "NARROWED_ROWS", 1 << 30):
        assert bag(cerflow.parse(str(query)).match(table, time="t").to_pylist()) == found
