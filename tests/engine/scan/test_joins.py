"""Matches of as many events each are found by joining these; the automaton reads only what crosses batches."""

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.schema import Schema
from support.runners import RUNNERS, bag, examples, in_random_pieces

PATTERNS = [
    *("A AS a ; B AS b", "A AS a ; A AS b", "EVENT AS a ; EVENT AS b", "(A OR C) AS a ; B AS b"),
    *("A AS a ; A AS b ; B AS c", "EVENT AS a ; B AS b ; A AS c", "A AS a ; (A OR C) AS b ; A AS c ; B AS d"),
    *(
        "(A AS a ; B AS b) WITHOUT C",
        "(A AS a ; B AS b) WITHOUT (B ; B)",
        "(A AS a ; A AS b) WITHOUT (C OR (A ; A ; A))",
    ),
    *(
        "(A AS a ; A AS b ; B AS c) WITHOUT C",
        "((A AS a ; A AS b) WITHOUT B) ; B AS c",
        "(A AS a ; B AS b) WITHOUT (A ; A)",
    ),
]
FILTERS = [
    "a.x > 2",
    "b.x > 3",
    "a.v < b.v",
    "a.v != b.v",
    "b.w - a.w > 0.5",
    "a.g = b.g",
    "a.g != b.g",
    "a.v + 1 < b.v * 2",
    "a.v = b.u",
    "a.g = b.h",
    "a.g != b.h",
]
#: Where there are three events.
MORE_FILTERS = [
    "b.v = c.u",
    "b.g = c.h",
    "c.x > 2",
    "b.v < c.v",
    "a.v < c.v",
    "a.g = c.g",
    "b.g != c.g",
    "c.w - a.w > b.w",
    "a.k = c.k",
]
WINDOWS = ["", " WITHIN 3 [t]", " WITHIN 30 [t]", " WITHIN 2 SECONDS", " WITHIN 2 EVENTS", " WITHIN 7 EVENTS"]
KEYS = {
    "text": lambda n: pa.array([f"k{n}" if n else None], pa.string()),
    "long text": lambda n: pa.array([f"the key of number {n}" if n else ""], pa.large_string()),
    "integer": lambda n: pa.array([n or None], pa.int64()),
    "float": lambda n: pa.array([[0.0, -0.0, float("nan"), None, 2.5][n % 5]], pa.float64()),
}


@st.composite
def queries(draw):
    clauses = draw(st.sampled_from([" PARTITION BY k", " PARTITION BY k, g", ""]))
    pattern = draw(st.sampled_from(PATTERNS))
    possible = [*FILTERS, "a.k = b.k", *(MORE_FILTERS if " AS c" in pattern else [])]
    filters = draw(st.lists(st.sampled_from(possible), unique=True, max_size=3))
    what = ["*", "*", "a, b", "a", "NONE", "NONE", "COUNT(*) AS many", "NEXT *", "LAST *", "MAX *", "NEXT b", "ANY *"]
    text = f"SELECT {draw(st.sampled_from(what))}"
    text += f" WHERE ({pattern})" + (f" FILTER {' AND '.join(filters)}" if filters else "")
    text += clauses + draw(st.sampled_from(WINDOWS))
    return cerflow.parse(text + draw(st.sampled_from(["", "", "", " LIMIT 2"])))


@st.composite
def streams(draw):
    size, generator = draw(st.integers(1, 60)), random.Random(draw(st.integers(0, 10**6)))
    numbers = draw(st.sampled_from([2, 5, 30]))
    key = draw(st.sampled_from(list(KEYS.values())))
    steps = draw(st.sampled_from([[0, 1], [1], [0, 0, 9], [1000]]))
    times = [0]
    for _ in range(size - 1):
        times.append(times[-1] + generator.choice(steps))
    other = pa.array([generator.choice(["p", "q", None]) for _ in range(size)])
    columns = {
        "type": pa.array([generator.choice("ABC") for _ in range(size)]),
        "k": pa.concat_arrays([key(generator.randrange(numbers)) for _ in range(size)]),
        "g": other.dictionary_encode() if draw(st.booleans()) else other,
        "h": pa.array([generator.choice(["p", "q", None]) for _ in range(size)]),
        "u": pa.array([generator.choice([1, 2, 2**63 - 2, None]) for _ in range(size)], pa.int64()),
        "x": pa.array([generator.choice([1, 2, 3, 4, None]) for _ in range(size)]),
        "v": pa.array([generator.choice([1, 2, 2**63 - 2, -(2**63) + 2, None]) for _ in range(size)], pa.int64()),
        "w": pa.array([generator.choice([0.0, -0.0, 1.5, float("inf"), None]) for _ in range(size)], pa.float64()),
        "t": pa.array(times, draw(st.sampled_from([pa.int64(), pa.timestamp("ms")]))),
    }
    if draw(st.booleans()) and pa.types.is_string(columns["k"].type):
        columns["k"] = columns["k"].dictionary_encode()
    return pa.table(columns)


def by_event(matches):
    """Matches in the order of their events; those of one event in any order."""
    ends = [match["detected_at"] for match in matches]
    assert ends == sorted(ends)
    return sorted(map(repr, matches))


@given(st.data())
@examples(300)
def test_joined_events_have_the_matches_of_the_semantics(data):
    query, table = data.draw(queries()), data.draw(streams())
    if "[t]" in str(query) and not pa.types.is_integer(table.schema.field("t").type):
        query = cerflow.parse(str(query).replace(" [t]", " MILLISECONDS"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "NARROWED_ROWS", 1)
        patch.setattr(limits, "JOINED_ROWS", 1 << 30)
        by_automaton = query.match(table, time="t")
        plain, many = by_automaton.to_pylist(), by_automaton.count()
        patch.setattr(limits, "JOINED_ROWS", 1)
        patch.setattr(limits, "FLOW_KEYS", data.draw(st.sampled_from([1, 2, 1 << 17])))
        joined = query.match(table, time="t")
        count, found = joined.count(), joined.to_pylist()
        pieces = in_random_pieces(query, table, data, time="t")
    assert count == many
    assert by_event(found) == by_event(plain) == by_event(pieces)
    if "LIMIT" not in str(query) and "ANY" not in str(query):
        assert bag(plain) == bag(RUNNERS["semantics"](query, table, time="t"))


def long_stream(rows, keys, seed=7):
    """Rows whose types, keys and values are random; `rare` is true of one in fifty."""
    generator = random.Random(seed)
    columns = {
        "type": [generator.choice("AB") for _ in range(rows)],
        "k": [f"k{generator.randrange(keys)}" for _ in range(rows)],
        "v": [generator.randrange(1000) for _ in range(rows)],
        "rare": [generator.random() < 0.02 for _ in range(rows)],
        "t": range(rows),
    }
    return pa.table(columns)


@pytest.mark.parametrize(
    "clauses", [" PARTITION BY k", " PARTITION BY k WITHIN 1500 [t]", " PARTITION BY k WITHIN 60 EVENTS"]
)
def test_no_event_comes_to_the_automaton_where_a_table_ends(rows_read, clauses, monkeypatch):
    table = long_stream(20_000, 50)
    query = cerflow.parse(
        f"SELECT * WHERE (A AS a ; B AS b) FILTER a.rare = TRUE AND b.rare = TRUE AND b.v > a.v{clauses}"
    )
    matches = query.match(table, time="t")
    found = matches.count()
    assert rows_read == [0]
    monkeypatch.setattr(limits, "JOINED_ROWS", 1 << 30)
    assert by_event(matches.to_pylist()) == by_event(query.match(table, time="t").to_pylist())
    assert found > 20


@pytest.mark.parametrize("what", ["*", "NEXT *", "LAST *", "NONE"])
@pytest.mark.parametrize("formula", ["A ; Z", "Z ; A", "Z ; Y", "(Z ; A) WITHOUT A"])
@pytest.mark.parametrize("clauses", ["", " PARTITION BY k", " WITHIN 9 [t]"])
def test_nothing_is_found_where_no_event_opens_or_ends_a_match(what, formula, clauses):
    query, table = cerflow.parse(f"SELECT {what} WHERE ({formula}){clauses}"), long_stream(3_000, 5)
    assert query.match(table, time="t").count() == 0
    recognizer = query.recognizer(table.schema, time="t")
    assert not any(recognizer.push(table.slice(begin, 1_000)) for begin in (0, 1_000, 2_000))


@pytest.mark.parametrize(("many", "limit", "most"), [(0.05, 400, 0), (0.6, 20, 5_000)])
def test_three_events_are_joined_unless_many_open_matches(rows_read, many, limit, most, monkeypatch):
    generator, size = random.Random(3), 30_000
    rows = [("A" if generator.random() < many else "C", generator.randrange(1000)) for _ in range(size)]
    columns = {"type": [kind for kind, _ in rows], "k": [n % 20 for n in range(size)], "v": [v for _, v in rows]}
    table = pa.table({**columns, "t": range(size)})
    query = cerflow.parse(
        f"SELECT * WHERE (A AS a ; A AS b ; A AS c) FILTER a.v < {limit} AND b.v > a.v AND c.v > {1000 - limit} "
        f"AND b.v < {5 * limit} PARTITION BY k WITHIN 1000 [t]"
    )
    found = query.match(table, time="t").to_pylist()
    assert sum(rows_read) <= most
    monkeypatch.setattr(limits, "JOINED_ROWS", 1 << 30)
    assert by_event(found) == by_event(query.match(table, time="t").to_pylist())
    assert len(found) > 20


def test_where_a_stream_goes_on_only_the_borders_of_a_batch_come_to_the_automaton(rows_read):
    query = cerflow.parse("SELECT * WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY k WITHIN 100 [t]")
    table = long_stream(30_000, 200)
    recognizer = query.recognizer(table.schema, time="t")
    found = [match for begin in (0, 10_000, 20_000) for match in recognizer.push(table.slice(begin, 10_000))]
    # Those whose windows go on behind a batch, and those that lie in the windows of events before it.
    assert rows_read == [100, 200, 200]
    assert by_event(found) == by_event(query.match(table, time="t").to_pylist())


def test_windows_that_count_the_events_of_a_key_are_joined_only_in_a_whole_table(rows_read):
    formula = "(A AS a ; B AS b ; A AS c) FILTER a.v < b.v AND c.v > 700"
    query = cerflow.parse(f"SELECT * WHERE {formula} PARTITION BY k WITHIN 6 EVENTS")
    table = long_stream(9_000, 40)
    whole = query.match(table, time="t").to_pylist()
    assert sum(rows_read) == 0
    recognizer = query.recognizer(table.schema, time="t")
    found = [match for begin in (0, 4_000, 8_000) for match in recognizer.push(table.slice(begin, 4_000))]
    assert sum(rows_read) > 4_000
    assert by_event(found) == by_event(whole)
    assert len(whole) > 100


def test_where_too_many_pairs_have_to_be_compared_the_automaton_reads_all_events(rows_read):
    table = long_stream(20_000, 2)
    query = cerflow.parse("SELECT * WHERE A ; B PARTITION BY k WITHIN 10000 [t]")
    assert query.match(table, time="t").count() > 10_000_000
    assert rows_read[0] > 10_000


def test_many_combinations_of_few_events_are_left_to_the_automaton(rows_read):
    table = long_stream(20_000, 500)
    query = cerflow.parse("SELECT * WHERE (A ; A ; A ; B) PARTITION BY k")
    assert query.match(table, time="t").count() > 1_000_000
    assert rows_read[0] > 10_000


@pytest.mark.parametrize("what", ["*", "NEXT *", "LAST *"])
def test_where_all_first_events_come_before_all_last_ones(what, monkeypatch):
    size = 3_000
    table = pa.table({"type": ["A"] * size + ["B"] * size, "k": [k % 7 for k in range(2 * size)], "t": range(2 * size)})
    query = cerflow.parse(f"SELECT {what} WHERE (A ; B) PARTITION BY k WITHIN 3000 [t]")
    found = query.match(table, time="t").count()
    monkeypatch.setattr(limits, "JOINED_ROWS", 1 << 30)
    assert found == query.match(table, time="t").count() > 2_500


@pytest.mark.parametrize(
    ("query", "joined"),
    [
        ("SELECT * WHERE A ; B PARTITION BY k", True),
        ("SELECT * WHERE (A AS a ; B AS b) FILTER a.k = b.k WITHIN 5 SECONDS", True),
        ("SELECT * WHERE A ; B WITHIN 5 SECONDS", True),
        ("SELECT LAST * WHERE (A ; B) PARTITION BY k WITHIN 5 SECONDS", True),
        ("SELECT NEXT * WHERE (A ; B) PARTITION BY k WITHIN 5 SECONDS", True),
        ("DEFINE a AS k < 'y' AND k != 'x', b AS k > 'a' AND k < 'x' SELECT NEXT * WHERE a ; b WITHIN 5 SECONDS", True),
        ("SELECT LAST BY B * WHERE (A ; B) PARTITION BY k", False),
        ("SELECT * WHERE A ; B ; A PARTITION BY k", True),
        ("SELECT * WHERE A ; B{2} ; A WITHIN 5 SECONDS", True),
        ("SELECT * WHERE A ; B{3} ; A WITHIN 5 SECONDS", False),
        ("SELECT * WHERE A ; B ; A? PARTITION BY k", False),
        ("SELECT * WHERE (A : B) ; A PARTITION BY k", False),
        ("SELECT NEXT * WHERE A ; B ; A PARTITION BY k", False),
        ("SELECT * WHERE A ; B+ PARTITION BY k", False),
        ("SELECT * WHERE A ; B PARTITION BY k LIMIT 1", True),
        ("SELECT * WHERE A ; B PARTITION BY k LIMIT 2", False),
        ("SELECT A WHERE A ; B PARTITION BY k", False),
        ("SELECT NONE WHERE A ; B PARTITION BY k", True),
        ("SELECT * WHERE (A ; B) WITHOUT C PARTITION BY k", True),
        ("SELECT * WHERE (A ; B) WITHOUT (B ; B) PARTITION BY k", True),
        ("SELECT * WHERE (A ; B) WITHOUT (A ; B ; A ; B) PARTITION BY k", False),
        ("SELECT * WHERE A ; B PARTITION BY k WITHIN 5 EVENTS", True),
        ("SELECT * WHERE A ; B PARTITION BY k CONSUME BY ANY", False),
    ],
)
def test_explain_says_whether_events_are_joined(query, joined):
    schema = Schema(pa.schema({"type": pa.string(), "k": pa.string(), "t": pa.timestamp("us")}), time="t")
    told = cerflow.parse(query).explain("text", schema)
    assert ("matches are found by joining" in " ".join(told.split())) == joined
