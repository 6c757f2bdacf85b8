"""Patterns without gaps: leaving out events that are part of no match changes no match, wherever batches begin."""

import random
from itertools import accumulate, pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.scan.program.contiguous import Contiguity
from cerflow.engine.scan.room import ScanRoom
from support.runners import RUNNERS, bag, examples, in_random_pieces, restored_at_every_event

#: Events may have types that are labels, too.
LABELS = ["a", "b", "c", "d", "e"], ["A", "B", "C", "d", "e"]

LIMITS = [0, -1, 2**53, 2**62, 2**63 - 1, -(2**63) + 1, None]
#: Kinds of times, with where they begin.
TIMES = [
    (pa.int64(), -(2**63) + 2),
    (pa.int64(), 2**63 - 200),
    (pa.uint8(), 0),
    (pa.float64(), -3.5),
    (pa.timestamp("s"), -3),
    (pa.timestamp("ms"), 0),
]


@pytest.fixture(autouse=True)
def narrowed(monkeypatch):
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)


def contiguity_of(query, schema, **roles) -> Contiguity | None:
    plan = Plan(cerflow.parse(query).tree, Schema(schema, **roles))
    found = plan.scan.contiguity
    return None if isinstance(found, str) else found


@st.composite
def queries(draw, kinds=("A", "B", "(A OR B)", "EVENT")):
    size = draw(st.integers(2, 5))
    labels = draw(st.sampled_from(LABELS))[:size]
    steps = [f"{draw(st.sampled_from(kinds))} AS {label}" for label in labels]
    if len(kinds) > 1 and draw(st.booleans()):
        steps[0] = f"({steps[0]} OR C AS {labels[0]})"
    pairs = [*pairwise(labels), (labels[0], labels[-1])]
    conditions = [
        f"{later}.{column} {draw(st.sampled_from(['<', '>', '=', '!=', '<=']))} {earlier}.{other}"
        for earlier, later in draw(st.lists(st.sampled_from(pairs), max_size=3))
        for column, other in [draw(st.sampled_from(["vv", "ww", "vw", "ss", "rs", "kr"]))]
    ]
    values = [f"{label}.{column}" for label in labels for column in ("v", "w")]
    for _ in range(draw(st.integers(0, 2))):
        left, right, other = (draw(st.sampled_from(values)) for _ in range(3))
        compared = f"{draw(st.sampled_from(['<', '>=', '=', '!=']))} {draw(st.sampled_from([other, '2']))}"
        conditions.append(f"{left} {draw(st.sampled_from('+-*'))} {right} {compared}")
    conditions += [f"{label}.v > 1" for label in draw(st.lists(st.sampled_from(labels), max_size=2))]
    # Some matches have more events than others.
    varied = draw(st.booleans())
    if varied and draw(st.booleans()):
        label = draw(st.sampled_from(labels))
        conditions.append(f"{label}[v {draw(st.sampled_from(['<', '>=']))} prev(v)]")
        conditions.append(f"{draw(st.sampled_from(labels))}.v > last({label}.v)")
    for k in range(size if varied else 0):
        steps[k] += draw(st.sampled_from(["", "", " :+", "?", " :{1,2}"])) if k else draw(st.sampled_from(["", " :+"]))
    steps = [f"({step})" for step in steps]
    if varied:
        first, second = sorted(draw(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))))
        group = steps[first : second + 1]
        again = "" if all("?" in step for step in group) else draw(st.sampled_from(["", " :+"]))
        steps[first : second + 1] = [f"({' : '.join(group)}){again}"]
    formula = " : ".join(steps)
    if varied and draw(st.integers(0, 3)) == 0:
        formula = f"({formula}) OR (A AS {labels[0]} : C AS {labels[-1]})"
    formula = f"({formula})" + (f" FILTER {' AND '.join(conditions)}" if conditions else "")
    if draw(st.integers(0, 3)) == 0:
        formula = f"({formula}) WITHIN {draw(st.integers(2, 6))} EVENTS"
    elif draw(st.integers(0, 3)) == 0:
        formula = f"START({formula})"
    keys = draw(st.sampled_from(["", " PARTITION BY k", " PARTITION BY n", " PARTITION BY k, s", " PARTITION BY w, k"]))
    consume = draw(st.sampled_from(["", "", " CONSUME BY ANY", " CONSUME BY PARTITION"]))
    what = draw(st.sampled_from(["*", "*", "MAX *", "NEXT *", "NONE"]))
    window = draw(
        st.sampled_from(["", "", " WITHIN 3 SECONDS", " WITHIN 5 [t]", " WITHIN 3 EVENTS", " WITHIN 6 EVENTS"])
    )
    return f"SELECT {what} WHERE ({formula}){keys}{window}{consume}"


@st.composite
def streams(draw):
    size = draw(st.integers(0, 40))
    generator = random.Random(draw(st.integers(0, 10**6)))
    kinds = draw(st.sampled_from([pa.string(), pa.dictionary(pa.int32(), pa.string())]))
    times, begin = draw(st.sampled_from(TIMES))
    steps = draw(st.sampled_from([[0, 1, 2, 3], [0, 1, 1000]])) if times == pa.timestamp("ms") else [0, 1, 2, 3]

    def column(values, data_type):
        return pa.array([generator.choice(values) for _ in range(size)]).cast(data_type)

    return pa.table(
        {
            "type": column(["A", "A", "B", "B", "C"], kinds),
            "k": column(["x", "y", None], kinds),
            "n": column([1, 2, None], pa.int64()),
            "s": column(["p", "q"], kinds),
            "r": column(["x", "p", "p", "", "exactly eight bytes", None], pa.large_string()),
            "v": column(draw(st.sampled_from([[1, 2, 3, 4], [1, 2, 3, 4, None], LIMITS])), pa.int64()),
            "w": column([1.0, 2.0, 2.5, -0.0, float("nan")], pa.float64()),
            "t": pa.array([begin + step for step in accumulate(generator.choice(steps) for _ in range(size))], times),
        }
    )


@given(st.data())
@examples(400)
def test_matches_are_those_of_the_semantics(data):
    typed = data.draw(st.booleans())
    text, table = data.draw(queries() if typed else queries(["EVENT"])), data.draw(streams())
    # A number measures a window as an attribute, too.
    query = cerflow.parse(text.replace("5 [t]", "2 SECONDS") if pa.types.is_timestamp(table["t"].type) else text)
    if not typed and " OR (A" not in query.text:
        # Then few conditions are left, which rows before often decide.
        table = table.drop_columns(["type"])
    if query.text and "+" in query.text:
        table = table.slice(0, 16)  # there may be very many matches
    expected = bag(RUNNERS["semantics"](query, table, time="t"))
    assert bag(RUNNERS["one batch"](query, table, time="t")) == expected
    found = in_random_pieces(query, table, data, time="t")
    assert bag(found) == expected
    assert [m["detected_at"] for m in found] == sorted(m["detected_at"] for m in found)


@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
def test_texts_of_two_columns_are_compared(keys):
    generator = random.Random(11)
    texts = ["", "seven b", "eight by", "nine byte", "nine bytf", "twenty-four bytes of one", None]
    columns = {name: [generator.choice(texts) for _ in range(3000)] for name in ("s", "r")}
    table = pa.table({**columns, "k": [generator.randrange(40) for _ in range(3000)]})
    text = "SELECT * WHERE (EVENT AS a : EVENT AS b : EVENT AS c) FILTER a.s = b.r AND b.s != c.r" + keys
    query, last, expected = cerflow.parse(text), {}, []
    assert contiguity_of(text, table.schema) is not None
    for at, row in enumerate(table.to_pylist()):
        own = last.setdefault(row["k"] if keys else 0, [])
        own.append((at, row))
        if len(own) > 2:
            one, two, three = (event for _, event in own[-3:])
            equal = one["s"] is not None and one["s"] == two["r"]
            if equal and None not in (two["s"], three["r"]) and two["s"] != three["r"]:
                expected.append([position for position, _ in own[-3:]])
    assert len(expected) > 100
    # Many queries of a set let columns become dictionaries, as those that come are.
    many = cerflow.QuerySet({f"q{k}": query for k in range(9)}).match(table)["q8"]
    encoded = table.set_column(1, "r", table["r"].combine_chunks().dictionary_encode())
    for found in (query.match(table), query.match(encoded), many):
        assert sorted([event["position"] for event in m["events"]] for m in found.to_pylist()) == sorted(expected)


@pytest.mark.parametrize("least", [0, 4])
@pytest.mark.parametrize("keys", ["k", "n", "f", "k, n"])
def test_neighbours_of_a_key_in_pushes_of_any_length(keys, least):
    """Some matches begin in one push and end in another, among others that lie in one."""
    generator = random.Random(5)
    size = 12_000
    number = [generator.randrange(60) if generator.random() < 0.9 else 60 + k // 7 for k in range(size)]
    value = [generator.randrange(10) for _ in range(size)]
    table = pa.table(
        {
            "k": [None if n == 3 else f"key {n}" for n in number],
            "n": [None if n == 4 else n // 2 for n in number],
            "f": [n / 2 for n in number],
            "v": value,
        }
    )
    rows, expected = {}, []
    for at, row in enumerate(table.to_pylist()):
        key = tuple(row[name] for name in keys.split(", "))
        if None not in key:
            own = rows.setdefault(key, [])
            own.append(at)
            one, two, three = ([None] * 3 + own)[-3:]
            if one is None or value[one] < least:
                continue
            if value[three] - value[two] > 2 and value[one] + value[two] < value[three]:
                expected.append([one, two, three])
    query = cerflow.parse(
        "SELECT * WHERE (EVENT AS x : EVENT AS y : EVENT AS z) FILTER z.v - y.v > 2 AND x.v + y.v < z.v "
        f"AND x.v >= {least} PARTITION BY {keys}"
    )
    assert contiguity_of(str(query), table.schema).related
    assert len(expected) > 200
    whole = query.match(table)
    assert whole.count() == len(expected)
    assert [[event["position"] for event in match["events"]] for match in whole] == expected
    recognizer, found, counted, at = query.recognizer(table.schema), [], 0, 0
    while at < size:
        pushed = generator.choice([1, 5, 6, 7, 100, 1023, 1024, 1025, 3000])
        matches = recognizer.push(table.slice(at, pushed))
        counted += matches.count()
        found += [[event["position"] for event in match["events"]] for match in matches]
        at += pushed
    assert found == expected
    assert counted == len(expected)


SCHEMA = pa.schema({"type": pa.string(), "k": pa.string(), "v": pa.int64(), "w": pa.float64(), "t": pa.int64()})


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("A : B : C", (3, 0)),
        ("(A OR B) AS x : C : (A OR C) AS y", (3, 0)),
        ("(A AS x OR EVENT AS y) : C", "next"),
        ("(A AS x : B AS y : C AS z) FILTER x.v < y.v AND y.w > z.w AND x.v > z.v", (3, 3)),
        ("(A AS x : B AS y) FILTER x.v < y.v PARTITION BY k", (2, 1)),
        ("(A AS x : B AS y) FILTER x.k = y.k", (2, 1)),
        ("A : B : C WITHIN 5 [t] CONSUME BY ANY", "next"),
        ("A : B : C PARTITION BY k WITHIN 5 [t]", (3, 1)),
        ("A : B : C PARTITION BY k WITHIN 5 SECONDS", (3, 1)),
        ("A : B : C WITHIN 5 EVENTS", (3, 0)),
        ("A : B : C WITHIN 2 EVENTS", "next"),
        ("A : B : C PARTITION BY k WITHIN 3 EVENTS", (3, 0)),
        ("((A : B) WITHIN 5 [t]) : C", "next"),
        ("A : B ; C", "next"),
        ("A : B? : C", "next"),
        ("A : B :+", "next"),
        ("(A : B) OR (A : B : C)", "next"),
        (
            "(((EVENT AS a : (EVENT AS d) :+) AS fall : EVENT AS u) FILTER fall[v < prev(v)] AND u.v > last(d.v))",
            "next",
        ),
        (" : ".join(["A"] * 32), (32, 0)),
        (" : ".join(["A"] * 63) + " PARTITION BY k", (63, 0)),
        ("A : (B AND B) ; C", "next"),
        ("(EVENT AS x : EVENT AS y : EVENT AS z) FILTER x.v < y.v AND y.v > z.v", (3, 2)),
        ("A : B PARTITION BY v", (2, 0)),
        ("(A AS x : B AS y) FILTER x.v < y.v PARTITION BY k, v, w", (2, 1)),
        ("A : B PARTITION BY [k, type]", None),
        ("START(A : B)", None),
        ("START(A ; B)", "states"),
        ("(A AS x : B AS y) WITHIN 5 [v]", "states"),
        ("A ; B", "states"),
    ],
)
def test_columns_decide_or_the_next_event_of_a_key_or_the_states_of_runs(formula, expected):
    scan = Plan(cerflow.parse(f"SELECT * WHERE {formula}").tree, Schema(SCHEMA, time="t")).scan
    if isinstance(scan.contiguity, Contiguity):
        found = scan.contiguity.length, len(scan.contiguity.links)
    else:
        found = None if isinstance(scan.flow, str) else "states" if scan.flow.by_key is None else "next"
    assert found == expected


@pytest.mark.parametrize("keys", ["", " PARTITION BY k", " PARTITION BY n", " PARTITION BY n, k", " PARTITION BY f"])
def test_few_events_are_looked_at(keys):
    """Of 3,000 events those of the matches, and two at either end, of each key."""
    query = cerflow.parse(f"SELECT * WHERE (EVENT AS x : EVENT AS y : EVENT AS z) FILTER x.v < y.v AND y.v > z.v{keys}")
    peaks = {300, 1200, 1206, 2400}
    rows = [
        {"type": "A", "k": "xyz"[i % 3], "n": i % 3, "f": i % 3 / 2, "v": 0 if i not in peaks else 1}
        for i in range(3000)
    ]
    table = pa.Table.from_pylist(rows)
    recognizer = query.recognizer(table.schema)
    found = recognizer.push(table)
    apart = 3 if keys else 1
    assert [m["detected_at"] for m in found] == [peak + apart for peak in sorted(peaks)]
    # Those that wait at an event: one for each event that was looked at before.
    assert recognizer.live["visited"] < 60
    assert recognizer.push(table.slice(0, 5)).count() == 0


@pytest.mark.parametrize("room", [1, 1 << 17])
def test_many_keys(monkeypatch, room):
    monkeypatch.setattr(limits, "SCAN_TEXTS", room)
    generator = random.Random(1)
    names = [f"{'long ' * (k % 9)}name {generator.randrange(6000)}" for k in range(20_000)]
    table = pa.table({"type": ["A", "B"] * 10_000, "k": names, "v": [generator.randrange(4) for _ in names]})
    query = cerflow.parse("SELECT * WHERE (EVENT AS x : EVENT AS y) FILTER x.v < y.v PARTITION BY k")
    recognizer = query.recognizer(table.schema)
    found = [m["detected_at"] for at in range(0, 20_000, 5000) for m in recognizer.push(table.slice(at, 5000))]
    last, expected = {}, []
    for at, (name, value) in enumerate(zip(names, table["v"].to_pylist())):
        if last.get(name, 9) < value:
            expected.append(at)
        last[name] = value
    assert found == expected
    assert len(found) > 1000


@pytest.mark.parametrize("length", [3, 12, 200])
def test_more_long_keys_than_room_doubles_for(monkeypatch, length):
    """Bytes may be lacking where entries are not, and the other way round."""
    given_up = list[bool]()
    with_keys = ScanRoom.with_keys
    monkeypatch.setattr(ScanRoom, "with_keys", lambda *a: given_up.append(not with_keys(*a)) or not given_up[-1])
    monkeypatch.setattr(limits, "SCAN_TEXTS", 1 << 14)
    keys = [f"{k % 15_000:0{length}}" for k in range(40_000)]
    query = cerflow.parse("SELECT * WHERE (EVENT AS x : EVENT AS y) FILTER y.v > x.v PARTITION BY k")
    assert query.match(pa.table({"k": keys, "v": range(40_000)})).count() == 25_000
    assert given_up == [False]


def test_the_first_rows_of_a_push_are_no_neighbours_of_those_before_others():
    query = cerflow.parse("SELECT * WHERE (EVENT AS x : EVENT AS y) FILTER x.v = 1 AND y.v = 2 PARTITION BY k")
    pushes = [[5, 5, 5, 1], [1, 5, 5, 5], [2, 5, 5, 5], [1, 5, 5, 5, 5], [2, 2, 2, 2, 1], [2, 1, 2, 5, 5], [2]]
    recognizer, found = query.recognizer(pa.schema({"k": pa.string(), "v": pa.int64()})), []
    for values in pushes:
        matches = recognizer.push(pa.table({"k": ["x"] * len(values), "v": values}))
        found += [[event["position"] for event in match["events"]] for match in matches]
    assert found == [[21, 22], [23, 24]]


@pytest.mark.parametrize("keys", ["name", "name, v"])
def test_more_texts_than_there_is_room_for(monkeypatch, keys):
    """Keys are given up then; texts that are only tested are read in turn."""
    monkeypatch.setattr(limits, "SCAN_TEXTS", 1)
    table = pa.table({"name": [f"name {k // 2}" for k in range(60_000)], "v": [k % 2 for k in range(60_000)]})
    own = "(EVENT AS x : EVENT AS y)"
    query = cerflow.parse(f"SELECT * WHERE {own} FILTER y.v > x.v PARTITION BY name")
    assert query.match(table).count() == 30_000
    query = cerflow.parse(f"SELECT * WHERE {own} FILTER y.v >= x.v PARTITION BY {keys}")
    assert query.match(table).count() == (30_000 if keys == "name" else 0)
    tested = cerflow.parse(f"SELECT * WHERE {own} FILTER x.name LIKE '%7' AND y.v > x.v AND y.name LIKE 'name%'")
    assert tested.match(table).count() == 3_000
    assert contiguity_of(str(tested), table.schema).related


@pytest.mark.slow
def test_a_snapshot_holds_what_may_go_on():
    table = pa.table({"type": list("AABCABCCABABC") * 30, "k": ["x", "y"] * 195})
    for keys in ("", " PARTITION BY k"):
        query = cerflow.parse(f"SELECT * WHERE A : B : C{keys}")
        assert restored_at_every_event(query, table) == query.match(table).to_pylist()


@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
@pytest.mark.parametrize(
    "pattern", ["(A AS a):{20} : (A AS b):{11}", "(A AS a):{20} : (A AS b):{12}", "(A AS a):{16} : (A AS b):{24}"]
)
def test_long_matches_have_no_more_steps_than_there_are_bits(pattern, keys, monkeypatch):
    generator = random.Random(5)
    columns = {"k": [generator.randrange(4) for _ in range(3_000)], "v": [generator.randrange(9) for _ in range(3_000)]}
    table = pa.table({"type": ["A"] * 3_000, **columns, "t": range(3_000)})
    query = cerflow.parse(f"SELECT * WHERE {pattern} FILTER first(a.v) < last(b.v) AND sum(a.v) > 60{keys}")
    found = query.match(table, time="t").to_pylist()
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1 << 40)
    assert found == query.match(table, time="t").to_pylist()
    assert len(found) > 300


def test_no_event_of_a_single_batch_comes_to_the_automaton(rows_read):
    size = 1_000
    table = pa.table({"type": ["A"] * size, "k": [k % 7 for k in range(size)], "v": [k * k % 11 for k in range(size)]})
    query = cerflow.parse("SELECT * WHERE (A AS a):{5} FILTER sum(a.v) > 20 PARTITION BY k")
    found = bag(query.match(table).to_pylist())
    assert found
    assert rows_read == [0]
    recognizer = query.recognizer(table.schema)
    pushed = [recognizer.push(table.slice(begin, 250)).to_pylist() for begin in range(0, size, 250)]
    assert bag([match for matches in pushed for match in matches]) == found


def test_rows_are_sorted_by_key_where_many_values_before_are_read(monkeypatch):
    generator = random.Random(6)
    columns = {
        "k": [generator.randrange(9) or None for _ in range(2_500)],
        "v": [generator.randrange(20) for _ in range(2_500)],
    }
    types = [generator.choice("AAAAAAAB") for _ in range(2_500)]
    table = pa.table({"type": types, **columns, "w": [v / 3 for v in columns["v"]], "t": range(2_500)})
    for text, sorts in (
        ("(A AS a : A AS b) FILTER b.v > a.v + 5", False),
        ("(A AS a):{6} FILTER avg(a.w) > 4", True),
        ("((A AS a):{4} : B AS b) FILTER sum(a.v) > b.v AND stddev(a.w) < 3", True),
    ):
        query = cerflow.parse(f"SELECT * WHERE {text} PARTITION BY k")
        assert bool(contiguity_of(str(query), table.schema, time="t").sorting) is sorts
        found = query.match(table, time="t").to_pylist()
        recognizer = query.recognizer(table.schema, time="t")
        pushed = [m for begin in range(0, 2_500, 700) for m in recognizer.push(table.slice(begin, 700)).to_pylist()]
        monkeypatch.setattr(limits, "NARROWED_ROWS", 1 << 40)
        expected = query.match(table, time="t").to_pylist()
        monkeypatch.setattr(limits, "NARROWED_ROWS", 1)
        assert found == expected
        assert bag(pushed) == bag(expected)
        assert expected
