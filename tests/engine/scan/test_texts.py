"""Conditions on several columns of text, joined in any way, in all patterns in which rows are ruled out."""

import random
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.arrow_columns import array_of_texts
from cerflow.engine.scan import columns, texts
from support.runners import bag, examples

TEXTS = {"s": ["x", "y", "a long text that is no key", "xy", None], "u": ["p", "q", "x", "pq"]}
PLAIN = [
    *("{0}.s = 'x'", "{0}.u = 'p'", "{0}.s != {0}.u", "{0}.s LIKE '%y'", "{0}.u IN ('p', 'x')", "{0}.v > 2"),
    *("{0}.s IS NULL", "lower({0}.s) = 'x'"),
]
SEVERAL = ["NOT ({0})", "({0} AND {1})", "({0} OR {1})"]


def _condition(generator, label, depth=0):
    if depth > 2 or generator.random() < 0.3:
        return generator.choice(PLAIN).format(label)
    parts = (_condition(generator, label, depth + 1) for _ in range(2))
    return generator.choice(SEVERAL).format(*parts)


def _query(generator):
    labels = "abc"[: generator.choice([2, 3])]
    steps = [f"{generator.choice(['A', 'B', 'EVENT'])} AS {label}" for label in labels]
    pattern = steps[0] + "".join(generator.choice([" : ", " ; "]) + step for step in steps[1:])
    some = generator.sample(labels, generator.choice([1, 2]))
    formula = f"({pattern}) FILTER {' AND '.join(_condition(generator, label) for label in some)}"
    other = f"(EVENT AS z FILTER {_condition(generator, 'z')})"
    formula = generator.choice(
        [*[formula] * 3, f"({formula}) NOT FOLLOWED BY {other} FOR 5 MILLISECONDS", f"({formula}) UNLESS {other}"]
    )
    window = "" if "FOLLOWED" in formula else generator.choice(["", " WITHIN 4 [t]", " WITHIN 12 [t]"])
    keys = generator.choice(["", " PARTITION BY k"])
    return f"SELECT {generator.choice(['*', '*', 'NEXT *', 'NONE'])} WHERE {formula}{keys}{window}"


def as_views(table):
    """The table with views of texts, as Polars has them, in two chunks."""
    plain = [f.with_type(pa.string_view()) if pa.types.is_string(f.type) else f for f in table.schema]
    views, cut = table.cast(pa.schema(plain)), len(table) // 3
    return pa.concat_tables([views.slice(0, cut), views.slice(cut)])


@given(st.data())
@examples(200)
def test_rows_that_are_left_out_change_no_match(data):
    generator = random.Random(data.draw(st.integers(0, 10**6)))
    size = data.draw(st.sampled_from([40, 120]))
    columns = {"type": list("ABCD"), **TEXTS, "k": [1, 2, 3], "v": [1, 2, 3, 4]}
    drawn = {name: [generator.choice(some) for _ in range(size)] for name, some in columns.items()}
    table = pa.table({**drawn, "t": range(size)})
    lying = data.draw(st.sampled_from(["plain", "coded", "views"]))
    if lying == "coded":
        table = table.set_column(1, "s", table["s"].dictionary_encode())
    elif lying == "views":
        table = as_views(table)
    text, found = _query(generator), []
    with pytest.MonkeyPatch.context() as patch:
        # The middle of a batch tells whether narrowing pays.
        patch.setattr("cerflow.engine.scan.narrowing._LARGE", generator.choice([32, 1 << 16]))
        patch.setattr("cerflow.engine.scan.narrowing._TRIED", 16)
        # All in one batch, in which no text is known before.
        for least in (1 << 30, 1):
            patch.setattr(limits, "NARROWED_ROWS", least)
            matches = cerflow.parse(text).match(table, time="t")
            if matches.count() > 2_000:
                return
            found.append(matches.to_pylist())
    assert found[0] == found[1]


@pytest.mark.parametrize("keys", ["", " PARTITION BY s", " PARTITION BY k, s"])
@pytest.mark.parametrize(
    "pattern",
    [
        "(A AS a : EVENT AS b) FILTER a.u = b.u",
        "(A AS a : EVENT AS b : EVENT AS c) FILTER a.v < c.v",
        "(A AS a ; (EVENT AS b) :+)",
        "(A AS a ; B AS b) FILTER a.u != b.u AND a.v < b.v",
        "(A AS a ; B AS b) FILTER a.s = b.s",
        "A AS a NOT FOLLOWED BY B FOR 4 MILLISECONDS",
    ],
)
def test_dictionaries_may_have_a_text_twice(pattern, keys, monkeypatch):
    generator = random.Random(f"{pattern}{keys}")
    size = 200
    columns = {"type": "ABCD", "k": [1, 2], "v": range(9), "s": ["x", "y", None], "u": ["p", "q"]}
    drawn = {name: [generator.choice(some) for _ in range(size)] for name, some in columns.items()}
    table = pa.table({**drawn, "t": range(size)})
    window = "" if "FOLLOWED" in pattern else " WITHIN 12 [t]"
    query = cerflow.parse(f"SELECT * WHERE {pattern}{keys}{window}")
    expected = query.match(table, time="t").to_pylist()
    assert expected
    for name in ("type", "s", "u"):
        some = [*dict.fromkeys(filter(None, drawn[name]))]
        texts = some + some[::-1]
        indices = [
            None if text is None else generator.choice([texts.index(text), 2 * len(some) - 1 - some.index(text)])
            for text in drawn[name]
        ]
        coded = pa.DictionaryArray.from_arrays(pa.array(indices, pa.uint32() if name == "s" else pa.int8()), texts)
        table = table.set_column(table.column_names.index(name), name, coded)
    for least in (1 << 30, 1):
        monkeypatch.setattr(limits, "NARROWED_ROWS", least)
        assert query.match(table, time="t").to_pylist() == expected


@pytest.mark.parametrize("index", [pa.int32(), pa.uint32(), pa.int16()])
@pytest.mark.parametrize("size", [2, 253, 254, 255, 256, 257, 300])
def test_each_index_of_a_dictionary_is_told_from_all_others(size, index):
    texts = [f"t{k}" for k in range(size)]
    indices = pa.array(list(range(size)) * 3, pa.int32()).cast(index)
    types = pa.DictionaryArray.from_arrays(indices, pa.array(texts))
    table = pa.table({"type": types, "t": range(3 * size)})
    for first, second in [(0, size - 1), (size - 2, size - 1), (size - 1, 0)]:
        query = cerflow.parse(f"SELECT * WHERE t{first} ; t{second} WITHIN {size} [t]")
        positions = [(m["start"], m["end"]) for m in query.match(table, time="t")]
        expected = [
            (k, k + (second - first) % size)
            for k in range(first, 3 * size, size)
            if k + (second - first) % size < 3 * size
        ]
        assert positions == expected


VIEWED = [
    "SELECT * WHERE (seven77 AS a ; thirteen_byte AS b) FILTER a.s = b.s AND a.u != b.u",
    "SELECT * WHERE (seven77 AS a ; EVENT AS b) FILTER b.s IN ('a text of more than twelve bytes', 'x') PARTITION BY u",
    "SELECT NEXT * WHERE seven77 ; thirteen_byte PARTITION BY s WITHIN 40 [t]",
    "SELECT max(b.s) AS most, count(b) AS many WHERE (seven77 AS a ; eight888+ AS b) WITHIN 8 [t]",
    "SELECT * WHERE EVENT AS a : EVENT AS b FILTER lower(a.s) = lower(b.s) AND a.u LIKE 'k%' PARTITION BY u",
    "SELECT * WHERE (seven77 AS a FILTER a.s >= 'b') NOT FOLLOWED BY eight888 FOR 3 MILLISECONDS PARTITION BY u",
    "SELECT * WHERE eight888 AS a FILTER a.s = 'a text of more than twelve bytes'",
]


@pytest.mark.parametrize("query", VIEWED)
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_views_of_texts_have_the_matches_of_texts(query, missing):
    generator = random.Random(len(query))
    texts = ["", "x", "twelve bytes", "a text of more than twelve bytes", "a text of more than twelve bites", "b\0"]

    def drawn(some):
        return [None if generator.random() < missing else generator.choice(some) for _ in range(900)]

    columns = {"type": ["seven77", "eight888", "thirteen_byte"], "s": texts, "u": [f"key {n:09}" for n in range(40)]}
    table = pa.table({name: drawn(some) for name, some in columns.items()} | {"t": range(900)})
    table = table.set_column(0, "type", table["type"].fill_null("eight888"))[7:]
    parsed = cerflow.parse(query)
    found, expected = (parsed.match(some, time="t") for some in (as_views(table), table))
    assert found.schema == expected.schema
    assert bag(found.to_pylist()) == bag(expected.to_pylist())
    assert expected.count() > 3


def test_views_of_texts_are_not_copied_where_nothing_needs_them(monkeypatch):
    columns = {"type": ["A", "a_longer_type"] * 400, "s": ["x"] * 800, "t": range(800)}
    table = as_views(pa.table(columns)).combine_chunks()
    monkeypatch.setattr("cerflow.base.arrow_columns.plain_array", None)
    assert cerflow.parse("SELECT * WHERE A ; a_longer_type PARTITION BY s WITHIN 3 [t]").match(table, time="t").count()


#: Conditions on texts of which nearly all differ, and the same of Python.
OF_MANY = {
    "n.s = 'order 77'": lambda text: text == "order 77",
    "n.s IN ('order 3', 'order 18', 'order 7777', 'none')": lambda text: text in ("order 3", "order 18", "order 7777"),
    "n.s != 'order 5'": lambda text: text is not None and text != "order 5",
    "n.s IS NULL OR n.s = 'order 9'": lambda text: text in (None, "order 9"),
    "n.s LIKE '%77'": lambda text: text is not None and text.endswith("77"),
    "n.s LIKE 'order 1%' AND n.s != 'order 12'": lambda text: str(text).startswith("order 1") and text != "order 12",
    "upper(n.s) = 'ORDER 42' OR n.s REGEXP '9{3}'": lambda text: text == "order 42" or "999" in str(text),
}


@pytest.mark.parametrize("condition", OF_MANY)
@pytest.mark.parametrize("lying", ["string", "large_string", "dictionary", "views"])
@pytest.mark.parametrize("missing", [0, 7])
def test_texts_of_which_nearly_all_differ(condition, lying, missing):
    texts = [None if missing and n % missing == 0 else f"order {n}" for n in range(9_000)]
    table = pa.table({"type": ["NEW", "OLD"] * 4_500, "s": texts, "t": range(9_000)})
    if lying == "views":
        table = as_views(table)
    elif lying != "string":
        column = table["s"].dictionary_encode() if lying == "dictionary" else table["s"].cast(pa.large_string())
        table = table.set_column(1, "s", column)
    for n in (0, 5):
        some = table.slice(n)
        found = cerflow.parse(f"SELECT * WHERE NEW AS n FILTER {condition}").match(some, time="t").to_pylist()
        expected = [k for k in range(n, 9_000) if k % 2 == 0 and OF_MANY[condition](texts[k])]
        assert [match["events"][0]["t"] for match in found] == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_small_pushes_read_the_texts_of_their_own_events(kind, monkeypatch):
    random_user = random.Random(5).randrange
    users = [f"user number {random_user(3000)}" for _ in range(9000)]
    table = pa.table({"type": list("AB") * 4500, "user": pa.array(users, kind)})
    query = cerflow.parse("SELECT a WHERE A AS a ; B AS b PARTITION BY user WITHIN 3 EVENTS")
    expected = bag(query.match(table.set_column(1, "user", pa.array(users))))
    made = []
    monkeypatch.setattr(texts, "array_of_texts", lambda some: made.append(len(some)) or array_of_texts(some))
    recognizer = query.recognizer(table.schema)
    found, row = [], 0
    # Pushes with many new texts keep them as arrays, others one by one.
    for size in [40, 700, 40, 1500, 3, 300] + [60] * 110:
        found += recognizer.push(table.slice(row, size))
        row += size
    assert row > len(table)
    assert bag(found) == expected
    assert made
    assert max(made) <= 1500
    assert sum(made) < 2 * len(table)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_columns_are_compared_with_a_text(kind):
    values = [
        "",
        "buy",
        "bux",
        "sell_all",
        "sell_every",
        "sell_everything",
        "sell_everythinG",
        None,
        "büy",
        "buy\0",
        "y",
    ]
    column = pa.array(["zz", *values * 3, "b"], kind)
    for text in [*values[:7], "büy", "buy\0", "z", "sell_everything and more"]:
        for part in (column, column.slice(3), column.slice(1, 7), column.slice(0, 0), column.slice(len(column) - 1)):
            assert columns.texts_equal(part, text).tolist() == [value == text for value in part.to_pylist()]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("nulls", [0, 7])
def test_texts_that_hardly_repeat_are_judged_by_row(kind, nulls):
    generator, count = random.Random(nulls), 150_000
    levels = ["INFO", "FATAL", "Fatal: out of memory of", "warn"]
    said: list[str | None] = [f"{generator.choice(levels)} module {n * 7919 % count:06}" for n in range(count)]
    said[:4] = ["", "é" * 40, "FATAL", "x"]
    for _ in range(nulls * 1000):
        said[generator.randrange(count)] = None
    types = generator.choices(["log", "other"], weights=[8, 1], k=count)
    ready = generator.choices([True, False], k=count)
    places = generator.choices(["Roma", "roma", "paris", None], k=count)
    # Some come late.
    for n in range(count // 2, count, 1000):
        places[n] = "ROMA" if n % 2000 else "oslo"
    columns = {"type": types, "s": pa.array(said, kind), "b": ready, "p": pa.array(places, kind), "t": range(count)}
    table = pa.table(columns)
    query = cerflow.parse(
        "SELECT e.t WHERE log AS e FILTER e.s LIKE '%FATAL%1_' AND e.b OR lower(e.s) REGEXP 'memory.*9$'"
    )
    expected = [
        n
        for n, (text, kind_of, truth) in enumerate(zip(said, types, ready))
        if text is not None
        and kind_of == "log"
        and (("FATAL" in text and len(text) > 2 and text[-2] == "1" and truth) or re.search("memory.*9$", text.lower()))
    ]
    assert query.match(table, time="t").to_arrow().column("detected_at").to_pylist() == expected
    recognizer = query.recognizer(table.schema, time="t")
    found = list[int]()
    # A single event has the number of a row whose text was judged before.
    for begin, end in ((0, 60_000), (60_000, 60_001), (60_001, 60_002), (60_002, count)):
        rows = table.slice(begin, end - begin)
        matches = recognizer.push(rows.to_pylist()[0] if end - begin == 1 else rows)
        found += matches.to_arrow().column("detected_at").to_pylist()
    assert found == expected
    other = cerflow.parse("SELECT e.t WHERE EVENT AS e FILTER upper(e.p) = 'ROMA' AND NOT e.s LIKE '%7'").match(table)
    wanted = [
        n
        for n, (text, place) in enumerate(zip(said, places))
        if place is not None and place.upper() == "ROMA" and text is not None and not text.endswith("7")
    ]
    assert other.to_arrow().column("detected_at").to_pylist() == wanted
