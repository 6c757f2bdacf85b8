"""Several queries over one pass give what each gives alone."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cerflow
from cerflow import QuerySet
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, InputError, QueryError, QuerySyntaxError, SnapshotError
from support.pictures import read_svg
from support.runners import bag, examples, one_batch

ROWS = [
    {"type": "ABCD"[k * 7 % 4], "at": k, "v": float(k * 11 % 9), "n": k % 5, "s": "pqr"[k * 5 % 3]} for k in range(120)
]
TABLE = pa.Table.from_pylist(ROWS)
TEXTS = {
    "pair": "SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v WITHIN 10 EVENTS",
    "same": "SELECT * WHERE A AS x ; C AS y FILTER x.s = y.s AND y.n > 1 WITHIN 8 [at]",
    "keyed": "SELECT * WHERE A AS x : B AS y PARTITION BY s",
    "counted": "SELECT COUNT(*) AS total WHERE A AS x ; (B OR C)+ AS y PARTITION BY n WITHIN 4 EVENTS",
    "one": "SELECT x WHERE D AS x FILTER x.s LIKE 'p%'",
    "any": "SELECT * WHERE EVENT AS x FILTER x.v > 7",
    "none": "SELECT * WHERE Z AS x",
    "next": "SELECT NEXT * WHERE A AS x ; D AS y WITHIN 6 EVENTS",
    "strict": "SELECT * WHERE A AS x : D AS y",
    "consume": "SELECT * WHERE A AS x ; B AS y CONSUME BY ANY",
    "order": "SELECT * WHERE A AS x ; B AS y FILTER x.s < y.s WITHIN 5 EVENTS",
}


def expected(texts, table=TABLE, **roles):
    return {name: bag(one_batch(cerflow.parse(text), table, **roles)) for name, text in texts.items()}


def test_matches_of_a_table():
    queries = QuerySet(TEXTS)
    found = queries.match(TABLE)
    assert list(found) == list(TEXTS)
    assert {name: bag(matches) for name, matches in found.items()} == expected(TEXTS)
    assert {name: matches.count() for name, matches in found.items() if name != "counted"} == {
        name: sum(rows.values()) for name, rows in expected(TEXTS).items() if name != "counted"
    }
    assert found["none"].to_pylist() == []


def test_queries_that_were_parsed_already():
    queries = QuerySet({"a": cerflow.parse(TEXTS["pair"]), "b": TEXTS["one"]})
    assert len(queries) == 2
    assert queries["b"].text == TEXTS["one"]
    assert repr(queries) == "<QuerySet a, b>"


@pytest.mark.parametrize("size", [1, 7, 120])
def test_batches_of_any_size(size):
    recognizer = QuerySet(TEXTS).recognizer(TABLE.schema)
    found = {name: [] for name in TEXTS}
    for start in range(0, len(ROWS), size):
        for name, matches in recognizer.push(TABLE.slice(start, size)).items():
            found[name] += matches.to_pylist()
    assert {name: bag(rows) for name, rows in found.items()} == expected(TEXTS)
    assert recognizer.events == len(ROWS)


def test_single_events():
    for texts in (TEXTS, {name: text for name, text in TEXTS.items() if name in ("pair", "keyed", "one")}):
        recognizer = QuerySet(texts).recognizer(TABLE.schema)
        found = {name: [] for name in texts}
        for row in ROWS:
            for name, matches in recognizer.push(row).items():
                found[name] += matches.to_pylist()
        assert {name: bag(rows) for name, rows in found.items()} == expected(texts)


@pytest.mark.slow
def test_restored_at_every_event():
    queries = QuerySet(TEXTS)
    recognizer = queries.recognizer(TABLE.schema)
    found = {name: [] for name in TEXTS}
    for start in range(0, len(ROWS), 5):
        for name, matches in recognizer.push(TABLE.slice(start, 5)).items():
            found[name] += matches.to_pylist()
        recognizer = queries.restore(recognizer.snapshot(), TABLE.schema)
    assert {name: bag(rows) for name, rows in found.items()} == expected(TEXTS)
    assert recognizer.events == len(ROWS)


def test_restored_after_every_single_event():
    texts = {name: TEXTS[name] for name in ("pair", "keyed", "counted")}
    queries = QuerySet(texts)
    recognizer = queries.recognizer(TABLE.schema)
    found = {name: [] for name in texts}
    for row in ROWS[:40]:
        for name, matches in recognizer.push(row).items():
            found[name] += matches.to_pylist()
        recognizer = queries.restore(recognizer.snapshot(), TABLE.schema)
    assert {name: bag(rows) for name, rows in found.items()} == expected(texts, TABLE.slice(0, 40))


def test_snapshots_of_others():
    queries = QuerySet({"a": TEXTS["pair"], "b": TEXTS["one"]})
    data = queries.recognizer(TABLE.schema).snapshot()
    with pytest.raises(SnapshotError, match="queries a, b, not a"):
        QuerySet({"a": TEXTS["pair"]}).restore(data, TABLE.schema)
    with pytest.raises(SnapshotError, match="the snapshot is of another query: SELECT"):
        QuerySet({"a": TEXTS["pair"], "b": TEXTS["none"]}).restore(data, TABLE.schema)
    with pytest.raises(SnapshotError, match="set of queries"):
        queries.restore(b"no", TABLE.schema)
    with pytest.raises(SnapshotError, match="set of queries"):
        queries.restore(cerflow.parse(TEXTS["pair"]).recognizer(TABLE.schema).snapshot(), TABLE.schema)


def test_streams_and_times():
    table = TABLE.append_column("from", pa.array(["left", "right", "left"] * 40))
    texts = {
        "left": "SELECT * FROM left WHERE A AS x ; B AS y WITHIN 9 milliseconds",
        "both": "SELECT * FROM left, right WHERE A AS x : C AS y",
        "all": "SELECT * WHERE A AS x ; B AS y WITHIN 6 milliseconds",
    }
    roles = {"time": "at", "stream": "from"}
    queries = QuerySet(texts)
    assert {name: bag(m) for name, m in queries.match(table, **roles).items()} == expected(texts, table, **roles)
    recognizer = queries.recognizer(table.schema, **roles)
    found = {name: [] for name in texts}
    for row in table.to_pylist():
        for name, matches in recognizer.push(row).items():
            found[name] += matches.to_pylist()
        recognizer = queries.restore(recognizer.snapshot(), table.schema, **roles)
    assert {name: bag(rows) for name, rows in found.items()} == expected(texts, table, **roles)


def test_a_time_that_no_query_reads():
    queries = QuerySet({"all": "SELECT * WHERE A AS x", "none": "SELECT NONE WHERE A AS x"})
    found = queries.match([{"type": "A", "t": 2}, {"type": "A", "t": 1}], time="t")
    assert [match["start_time"] for match in found["all"].to_pylist()] == [1, 2]
    assert found["none"].count() == 2


def test_a_query_may_refuse_an_event_for_itself():
    texts = {"window": "SELECT * WHERE A AS x ; B AS y WITHIN 10 [v]", "plain": "SELECT * WHERE A AS x ; B AS y"}
    rows = [{"type": "A", "v": 5}, {"type": "B", "v": 3}, {"type": "B", "v": 6}]
    table = pa.Table.from_pylist(rows)
    recognizer = QuerySet(texts).recognizer(table.schema, on_bad_record="skip")
    assert {name: m.count() for name, m in recognizer.push(table).items()} == {"window": 1, "plain": 2}
    assert (recognizer.events, recognizer.bad_records) == (2, 1)
    strict = QuerySet({"plain": texts["plain"], "window": texts["window"]}).recognizer(table.schema)
    strict.push(table.slice(0, 1))
    with pytest.raises(BadRecordError, match="row 1"):
        strict.push(table.slice(1, 1))
    # Nothing of it has been processed, by no query.
    assert {name: m.count() for name, m in strict.push(table.slice(2)).items()} == {"plain": 1, "window": 1}
    with pytest.raises(BadRecordError):
        strict.push({"type": "B", "v": 1})


def test_predicates():
    @cerflow.predicate("set_is_big", compile=False)
    def is_big(v):
        return v > 6

    try:
        texts = {"big": "SELECT * WHERE A AS x ; B AS y FILTER set_is_big(y.v)", "pair": TEXTS["pair"]}
        assert {n: bag(m) for n, m in QuerySet(texts).match(TABLE).items()} == expected(texts)
    finally:
        cerflow.unregister_predicate("set_is_big")


def test_errors():
    with pytest.raises(ValueError, match="at least one"):
        QuerySet({})
    with pytest.raises(QuerySyntaxError):
        QuerySet({"a": "SELECT"})
    with pytest.raises(QueryError, match="w") as raised:
        QuerySet({"b": TEXTS["one"], "a": "SELECT * WHERE A AS x FILTER x.w > 1"}).match(TABLE)
    assert raised.value.__notes__ == ["in the query 'a'"]
    with pytest.raises(BadRecordError, match="row 1"):
        QuerySet(TEXTS).match([ROWS[0], {"type": None, "at": 1, "v": 1.0, "n": 1, "s": ""}])
    with pytest.raises(InputError):
        QuerySet(TEXTS).recognizer(TABLE.schema).push({"type": "A", "v": "much"})


@examples(60)
@given(st.data())
def test_random_choices_of_queries(data):
    names = data.draw(st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=4, unique=True))
    rows = data.draw(st.lists(st.sampled_from(ROWS), max_size=30))
    assume(rows)
    table = pa.Table.from_pylist([row | {"at": k} for k, row in enumerate(rows)], TABLE.schema)
    texts = {name: TEXTS[name] for name in names}
    assert {name: bag(m) for name, m in QuerySet(texts).match(table).items()} == expected(texts, table)


def test_sets_draw_themselves(monkeypatch):
    queries = QuerySet({"one <b>": "SELECT * FROM a WHERE A", "two": "SELECT * FROM a, b WHERE A ; B"})
    drawn = read_svg(queries.to_svg())
    assert {"a", "b", "one <b>", "two"} <= {text.strip() for text in drawn.itertext()}
    html = queries._repr_html_()
    assert "<h4>one &lt;b&gt;</h4>" in html
    assert html.count("<h4>") == 2
    monkeypatch.setattr(limits, "DRAWN_QUERIES", 1)
    assert queries._repr_html_().endswith("<p>and 1 more queries</p>")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("names", [3, 400])
def test_many_queries_read_texts_as_codes_and_give_them_back_as_texts(kind, names):
    random = np.random.default_rng(names)
    texts = pa.array([None if k % 7 == 0 else f"name {k % names}" for k in random.integers(0, 10**6, 600)], kind)
    types = pa.array([str(x) for x in random.choice(["A", "B", "C"], 600)], kind)
    table = pa.table({"type": types, "name": texts, "v": random.integers(0, 9, 600), "t": range(600)})
    conditions = [
        "x.name = y.name",
        "x.name < y.name",
        "x.name LIKE '%1' AND y.v > 7",
        "NOT (x.name IN ('name 2', 'name 9'))",
    ]
    queries = {
        f"{condition} {a}": f"SELECT * WHERE ({a} AS x ; B AS y) FILTER {condition} {keys}WITHIN 9 [t]"
        for condition, keys in zip(conditions, ["", "PARTITION BY v ", "PARTITION BY name ", ""])
        for a in "ABC"
    }
    found = QuerySet(queries).match(table, time="t")
    for name, text in queries.items():
        alone = cerflow.parse(text).match(table, time="t")
        assert found[name].to_arrow().equals(alone.to_arrow())
    assert sum(matches.count() for matches in found.values()) > 0
