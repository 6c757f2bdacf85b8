"""Types that no event has had so far are taken for absent, until one has; that changes no match."""

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.engine.recognize.plan import Plan
from support.runners import bag, examples, in_random_pieces

FORMULAS = [
    "(EVENT AS x : EVENT AS y) FILTER y.v - x.v > 1",
    "(EVENT AS x : EVENT AS y : EVENT AS z) FILTER y.v > x.v AND z.v > y.v",
    "(EVENT AS x : EVENT AS y : EVENT AS z) FILTER x.v + y.v + z.v > 9",
    "(EVENT AS x : EVENT AS y ; EVENT AS z) FILTER y.v - x.v > 1 AND z.v > 3",
    "(EVENT AS x ; EVENT AS y) FILTER x.v > 3 AND y.v > 3 AND x.n != y.n",
    "(A AS x ; EVENT AS y) FILTER y.v > x.v + 1",
    "(EVENT AS x ; B AS y) FILTER x.s = y.s AND x.v > 3",
    "A ; NOT(B) AS y ; C",
    "EVENT AS x FILTER x.v > 3",
    "(EVENT AS x ; EVENT AS x) FILTER x.v > 3",
    "((EVENT AS x FILTER x.s = 'p') AS y ; NOT(y) AS x) FILTER x.v > 2",
    "((EVENT AS x)[x -> y] ; EVENT AS x) FILTER x.v > 2 AND y.v > 2",
    "(EVENT AS x FILTER x.v > 3) NOT FOLLOWED BY (EVENT AS y FILTER y.v < 2) FOR 3 MILLISECONDS",
    "((EVENT AS x ; EVENT AS y) FILTER y.v > x.v + 2) UNLESS C",
    "(EVENT AS x : (EVENT AS y)+ : C) FILTER y.v >= x.v",
]


def _stream(generator, size):
    """Events of which the last ones may have types with the names of labels."""
    known, time, rows = generator.choice([size, size // 2, size // 3, 0]), 0, []
    kind = generator.choice([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
    for k in range(size):
        time += generator.choice([0, 1, 1, 2])
        types = "AABBC" if k < known else "AABBCxyyz"
        values = {"v": generator.choice([1, 2, 3, 4, 5, None]), "s": generator.choice(["p", "q", None])}
        rows.append({"type": generator.choice(types), **values, "n": generator.choice([1, 2]), "t": time})
    schema = pa.schema(
        [("type", pa.string()), ("v", pa.float64()), ("s", pa.string()), ("n", pa.int64()), ("t", pa.int64())]
    )
    table = pa.Table.from_pylist(rows, schema)
    return table.set_column(0, "type", table["type"].cast(kind))


@given(st.data())
@examples(400)
def test_matches_are_the_same(data):
    generator = random.Random(data.draw(st.integers(0, 10**6)))
    formula = data.draw(st.sampled_from(FORMULAS))
    window = (
        ""
        if "FOLLOWED" in formula
        else data.draw(st.sampled_from([" WITHIN 3 [t]", " WITHIN 9 [t]", " WITHIN 5 EVENTS"]))
    )
    what = data.draw(st.sampled_from(["*", "*", "NONE", "COUNT(*) AS many", "LAST *"]))
    keys = data.draw(st.sampled_from(["", " PARTITION BY n"]))
    text, table = f"SELECT {what} WHERE {formula}{keys}{window}", _stream(generator, data.draw(st.integers(0, 60)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "NARROWED_ROWS", 1 << 30)
        plain = cerflow.parse(text).match(table, time="t").to_pylist()
        patch.setattr(limits, "NARROWED_ROWS", data.draw(st.sampled_from([1, 8])))
        query = cerflow.parse(text)
        assert query.match(table, time="t").to_pylist() == plain
        assert in_random_pieces(query, table, data, time="t") == plain
    if table.num_rows < 16:
        assert bag(query.match(table, time="t", runner="semantics").to_pylist()) == bag(plain)


def _pushed(text, tables):
    recognizer = cerflow.parse(text).recognizer(tables[0].schema)
    return sum(recognizer.push(table).count() for table in tables)


@pytest.mark.parametrize("dictionary", [False, True])
def test_while_no_event_is_called_like_a_label_columns_decide(rows_read, dictionary):
    size = 10_000
    types = pa.array(["reading"] * size)
    columns = {"k": [n % 7 for n in range(size)], "v": [float(n * n % 11) for n in range(size)]}
    plain = pa.table({"type": types.dictionary_encode() if dictionary else types, **columns})
    text = "SELECT * WHERE (EVENT AS a : EVENT AS b) FILTER b.v - a.v > 3 PARTITION BY k"
    found = cerflow.parse(text).match(plain).count()
    assert found > 1_000
    del rows_read[:]
    assert _pushed(text, [plain]) == found
    # The last event of each key
    assert rows_read == [7]
    named = pa.array(["reading", "a"] * (size // 2))
    other = plain.set_column(0, "type", named.dictionary_encode() if dictionary else named)
    del rows_read[:]
    assert _pushed(text, [plain, other, plain]) > 2 * found
    # From there on events have one label or two.
    assert rows_read[0] == 7
    assert min(rows_read[1:]) > 1_000


def test_runs_that_such_events_began_before_a_snapshot_go_on():
    schema = pa.schema([("type", pa.string()), ("v", pa.int64())])
    query = cerflow.parse("SELECT * WHERE (EVENT AS a : EVENT AS b : EVENT AS c) FILTER b.v > a.v AND c.v > b.v")
    recognizer = query.recognizer(schema)
    # This one is a and b, so that nothing is greater than all of a.
    recognizer.push({"type": "b", "v": 3})
    again = cerflow.Recognizer.restore(query, recognizer.snapshot())
    rest = pa.table({"type": ["e"] * 600, "v": [4, 5, *[0] * 598]}, schema=schema)
    whole = pa.concat_tables([pa.table({"type": ["b"], "v": [3]}, schema=schema), rest])
    assert again.push(rest).to_pylist() == recognizer.push(rest).to_pylist()
    assert query.match(whole, runner="semantics").count() == query.match(whole).count()


def test_a_column_that_is_not_typed_or_a_pattern_without_event_assumes_nothing():
    typed = Schema(pa.schema([("type", pa.string()), ("v", pa.int64())]))
    assert Plan(cerflow.parse("SELECT * WHERE EVENT AS a ; EVENT AS b").tree, typed).scan.absent == {"a", "b"}
    assert Plan(cerflow.parse("SELECT * WHERE A AS a ; B AS b").tree, typed).scan.absent == frozenset()
    untyped = Schema(pa.schema([("v", pa.int64())]))
    assert Plan(cerflow.parse("SELECT * WHERE EVENT AS a ; EVENT AS b").tree, untyped).scan.absent == frozenset()
