"""Patterns of consecutive events, each of which its own conditions decide: matches are found on whole columns."""

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.engine.recognize.plan import Plan
from support.runners import RUNNERS, bag, examples, in_random_pieces

LABELS = "abcdefghi"
TEXTS = [pa.string(), pa.large_string()]
TEXTS += [pa.dictionary(i, pa.string()) for i in (pa.int8(), pa.int16(), pa.int32(), pa.uint32(), pa.uint64())]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)


def is_decided_on_columns(query, schema, **roles):
    contiguity = Plan(cerflow.parse(query).tree, Schema(schema, **roles)).scan.contiguity
    return not isinstance(contiguity, str)


CONDITIONS = [
    "{}.n = 'q'",
    "{}.n != 'q'",
    "{}.n IS NULL",
    "{}.n LIKE '%y eigh%'",
    "{}.v > 1",
    "NOT {}.v > 1",
    "{}.w <= 2.0",
    "{}.v IS NOT NULL",
    "({}.n = 'p' OR {}.v = 2)",
    "{}.v + {}.w > 3",
]


@st.composite
def queries(draw):
    labels = LABELS[: draw(st.integers(1, 5))]
    steps = [f"{draw(st.sampled_from(['A', 'B', '(A OR B)', 'EVENT']))} AS {label}" for label in labels]
    chosen = draw(st.lists(st.sampled_from(labels), max_size=3))
    conditions = [draw(st.sampled_from(CONDITIONS)).replace("{}", label) for label in chosen]
    formula = " : ".join(steps)
    formula += f" FILTER {' AND '.join(conditions)}" if conditions else ""
    what = draw(st.sampled_from(["*", "*", "*", "NONE", f"{labels[-1]}", "COUNT(*)"]))
    return f"SELECT {what} WHERE ({formula}){draw(st.sampled_from(['', '', ' LIMIT 1']))}"


@st.composite
def streams(draw):
    """Columns in all layouts, with nulls, some of them parts of longer ones."""
    size, before, after = draw(st.integers(0, 60)), draw(st.integers(0, 9)), draw(st.integers(0, 3))
    generator = random.Random(draw(st.integers(0, 10**6)))

    def column(values, data_type):
        own = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
        array = pa.array([generator.choice(values) for _ in range(before + size + after)], own)
        return array.dictionary_encode().cast(data_type) if own is not data_type else array

    texts = ["p", "q", "", "exactly eight bytes", "xxxxxxxx"] + [None] * draw(st.booleans())
    columns = {
        "type": column(["A", "A", "A", "B", "B", "C"], draw(st.sampled_from(TEXTS))),
        "n": column(texts, draw(st.sampled_from(TEXTS))),
        "v": column([1, 2, 3, None], pa.int16()),
        "w": column([1.0, 2.0, float("nan")], pa.float64()),
    }
    return pa.table(columns).slice(before, size)


@given(st.data())
@examples(600)
def test_matches_are_those_of_the_semantics(data):
    query, table = cerflow.parse(data.draw(queries())), data.draw(streams())
    expected = bag(RUNNERS["semantics"](query, table))
    assert bag(RUNNERS["one batch"](query, table)) == expected
    found = in_random_pieces(query, table, data)
    assert bag(found) == expected
    assert [m["detected_at"] for m in found] == sorted(m["detected_at"] for m in found)


SCHEMA = pa.schema({"type": pa.string(), "n": pa.string(), "v": pa.int64(), "t": pa.int64()})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * WHERE A : B : A", True),
        ("SELECT NONE WHERE A : B", True),
        ("SELECT * WHERE A", True),
        ("SELECT * WHERE (A AS x : B AS y) FILTER x.n = 'q' AND y.v > 2", True),
        ("SELECT * WHERE A : (A OR B) AS y", True),
        ("SELECT y WHERE A AS x : (A OR B AS y)", False),
        ("SELECT * WHERE (A : B) OR (B : A)", False),
        ("SELECT * WHERE A AS x : (A AS y OR A AS z)", False),
        ("SELECT * WHERE (A AS x : B AS y) FILTER x.v < y.v", True),
        ("SELECT * WHERE (A AS x : B AS y) FILTER x.n = y.n AND y.v - 2 * x.v > 1", True),
        ("SELECT * WHERE (A AS x : B AS y) FILTER x.n < y.n", False),
        ("SELECT * WHERE (EVENT AS x : EVENT AS y) FILTER x.v < y.v", True),
        ("SELECT * WHERE A : B WITHIN 5 [t]", True),
        ("SELECT * WHERE A : B WITHIN 5 [v]", False),
        ("SELECT * WHERE A : B PARTITION BY n", True),
        ("SELECT * WHERE A : B CONSUME BY ANY", False),
        ("SELECT * WHERE A ; B", False),
        (
            f"SELECT * WHERE ({' : '.join(f'EVENT AS {c}' for c in LABELS)}) FILTER "
            + " AND ".join(f"{c}.v > {k}" for k, c in enumerate(LABELS)),
            False,
        ),
    ],
)
def test_which_patterns_columns_decide(query, expected):
    assert is_decided_on_columns(query, SCHEMA, time="t") == expected


def test_long_streams_in_pushes_of_any_length():
    generator = random.Random(3)
    kinds = [generator.choice("AB") for _ in range(30_000)]
    expected = [k for k in range(2, len(kinds)) if kinds[k - 2 : k + 1] == ["A", "B", "A"]]
    query = cerflow.parse("SELECT * WHERE A AS x : B : A AS z")
    for column in (pa.array(kinds), pa.array(kinds).dictionary_encode()):
        table = pa.table({"type": column, "k": range(len(kinds))})
        recognizer, found, counted, at = query.recognizer(table.schema), [], 0, 0
        while at < table.num_rows:
            size = generator.choice([1, 2, 3, 4, 5, 100, 4096, 4097, 9000])
            matches = recognizer.push(table.slice(at, size))
            counted += matches.count()
            found += matches.to_arrow(flat=True)["z_k"].to_pylist()
            at += size
        assert found == expected
        assert counted == len(expected)
        # Only the events at either end of a batch came to the automaton.
        assert recognizer.live["visited"] < 100


@pytest.mark.parametrize("length", [1, 2, 9, 60])
def test_long_matches_across_blocks_and_batches(length, monkeypatch):
    generator = random.Random(length)
    kinds = ["B" if generator.random() < 0.5 / length else "A" for _ in range(20_000)]
    expected = [k for k in range(length - 1, len(kinds)) if "B" not in kinds[k - length + 1 : k + 1]]
    text = "SELECT * WHERE " + " : ".join(["A AS x"] * (length - 1) + ["A AS z"])
    query = cerflow.parse(text)
    table = pa.table({"type": kinds, "k": range(len(kinds))})
    assert is_decided_on_columns(text, table.schema)
    for size in (20_000, 10_001, 4_096):
        monkeypatch.setattr(limits, "COLUMN_ROWS", size)
        for matches in (query.match(table), query.recognizer(table.schema).push(table)):
            assert matches.count() == len(expected)
            assert matches.to_arrow(flat=True)["z_k"].to_pylist() == expected


def test_texts_of_every_row():
    """More distinct texts than there is room for at first; each of them is judged."""
    size = 60_000
    names = [f"name {k * 7919 % size}" for k in range(size)]
    table = pa.table({"type": ["A", "B"] * (size // 2), "n": names})
    query = cerflow.parse("SELECT * WHERE (A AS x : B AS y) FILTER x.n LIKE '%6' AND y.n LIKE '%5'")
    expected = [k for k in range(1, size, 2) if names[k - 1].endswith("6") and names[k].endswith("5")]
    assert [m["detected_at"] for m in query.recognizer(table.schema).push(table)] == expected
    assert len(expected) > 100


def test_matches_are_aggregated_and_sampled():
    table = pa.table({"type": list("ABAABB") * 100, "v": range(600)})
    found = cerflow.parse("SELECT * WHERE A AS x : B AS y").recognizer(table.schema).push(table)
    sums = found.aggregate({"all": "count", "sum": ("y", "v", "sum")})
    assert sums["sum"].to_pylist() == [k for k in range(1, 600) if k % 6 in (1, 4)]
    assert found.sample(1, seed=1).count() == found.count() == len(found) == 200
    assert found[3]["detected_at"] == 10
    assert found.first(1, by="start").count() == 200


NAMES = ["q", "qq", "seven b", "eight by", "nine byte", "", "q\0", "\x01", "\0\0", "\0" * 7, "é", "seven", "seven c"]


@pytest.mark.parametrize(
    "condition",
    [
        "{}.n = 'q'",
        "{}.n != 'seven b'",
        "{}.n IN ('q', 'qq', 'seven b', 'é')",
        "{}.n NOT IN ('q', 'seven')",
        "NOT ({}.n = 'q' OR {}.n = 'qq')",
        "{}.n = 'eight by'",
        "{}.n != ''",
        "{}.n LIKE 'seven%'",
    ],
)
def test_texts_beside_those_that_a_query_names(condition):
    generator = random.Random(5)
    names = [generator.choice(NAMES) for _ in range(5_000)]
    condition = condition.replace("{}", "y")
    query = cerflow.parse(f"SELECT * WHERE (EVENT AS x : EVENT AS y) FILTER {condition}")
    texts = condition.replace("NOT IN", "IN").split("'")[1::2]
    if "LIKE" in condition:
        holds = [name.startswith("seven") for name in names]
    else:
        holds = [(name in texts) != ("NOT" in condition or "!=" in condition) for name in names]
    expected = [k for k in range(1, len(names)) if holds[k]]
    for data_type in TEXTS:
        column = pa.array(names)
        column = (
            column.dictionary_encode().cast(data_type) if pa.types.is_dictionary(data_type) else column.cast(data_type)
        )
        table = pa.table({"type": pa.array(["A"] * len(names)), "n": column, "k": range(len(names))})
        recognizer, found, at = query.recognizer(table.schema), [], 0
        while at < table.num_rows:
            size = generator.choice([1, 7, 1023, 1024, 1500])
            found += recognizer.push(table.slice(at, size)).to_arrow(flat=True)["y_k"].to_pylist()
            at += size
        assert found == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x.n = 'q' OR x.n IN ('p', 'r')", {"p", "q", "r"}),
        ("NOT x.n != 'q'", {"q"}),
        ("x.n LIKE 'q%' OR x.n = 'p'", None),
        ("x.n > 'q'", None),
        ("x.n IS NULL", None),
    ],
)
def test_texts_to_which_conditions_compare(condition, expected):
    plan = Plan(cerflow.parse(f"SELECT * WHERE (EVENT AS x : A) FILTER {condition}").tree, Schema(SCHEMA))
    columns = {column.name: column.compared for column in plan.scan.judge.columns}
    assert columns["n"] == expected
    assert columns["type"] == {"A"}
