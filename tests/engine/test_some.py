"""Existential conditions: examples worked out by hand, laws, what they cost, and what is refused."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.automata.optimise.ambiguity import ambiguous
from cerflow.base.errors import QueryError, QuerySyntaxError
from cerflow.base.schema import Schema
from cerflow.builder import label, read, some, this
from support.runners import bag

TABLE = pa.table({"type": list("AABAB"), "v": [1, 5, 3, None, 1], "k": [0, 1, 1, 0, 0]})
PAIR = "(A+ AS x ; B AS y) FILTER "


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (PAIR + "SOME x: x.v > 4", "12 012 14 014 134 0134"),
        (PAIR + "SOME x: x.v < y.v", "02 012"),
        (PAIR + "SOME x, y: y.v < x.v", "12 012 14 014 134 0134"),
        (PAIR + "SOME x: x.k = y.k", "12 012 04 34 014 034 134 0134"),
        # One event that does both, and one event for each.
        (PAIR + "SOME x: (x.v > y.v AND x.k = y.k)", "12 012"),
        (PAIR + "SOME x: x[v > y.v AND k = y.k]", "12 012"),
        (PAIR + "SOME x: x.v > y.v AND SOME x: x.k = y.k", "12 012 014 134 0134"),
        (PAIR + "SOME x: x.v IS NULL OR y.k = 1", "02 12 012 34 034 134 0134"),
        # For all: 5 is too much, and null is unknown.
        (PAIR + "NOT SOME x: x.v > 4", "02 04"),
        (PAIR + "NOT SOME x: (x.v > 4 OR x.k = 1)", "02 04"),
        (PAIR + "SOME x: NOT x.v > 4", "02 04 012 014 034 0134"),
        ("(A+ AS x ; B+ AS y) FILTER SOME x, y: x.v = y.v", "04 014 034 0134 024 0124"),
        # A label without events: all of them are so, but not some.
        ("(A AS x OR B AS y) FILTER x.v > 0", "0 1 2 4"),
        ("(A AS x OR B AS y) FILTER SOME x: x.v > 0", "0 1"),
        ("(A AS x OR B AS y) FILTER NOT SOME x: x.v > 1", "0 2 4"),
        ("(A+ AS x FILTER SOME x: x.v > z.v) ; B AS z", "12 012 14 014 134 0134"),
        ("(A+ AS x FILTER SOME x: x.k = z.k) ; B AS z", "12 012 04 34 014 034 134 0134"),
        ("B AS z ; (B+ AS x FILTER SOME x: x.v < z.v)", "24"),
        ("NOT(A FILTER SOME A: A.v > 0)", "2 3 4"),
        ("(A AS x ; B) UNLESS (B ; (A+ AS w FILTER SOME w: w.v IS NULL))", "02 12"),
        ("(A AS x ; B) WITHOUT (A+ AS w FILTER SOME w: w.v > x.v)", "12 14 34"),
        ("NEXT(A+ AS x ; B AS y FILTER SOME x: x.k = y.k)", "012 0134"),
    ],
)
def test_examples(formula, expected, runner):
    found = runner(cerflow.parse(f"SELECT * WHERE {formula}"), TABLE)
    assert sorted("".join(str(e["position"]) for e in row["events"]) for row in found) == sorted(expected.split())


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("(A AS x OR B AS x) FILTER SOME x: x.v > 1", "(A AS x FILTER x.v > 1) OR (B AS x FILTER x.v > 1)", True),
        (PAIR + "SOME x: (x.v > 1 OR x.k = 1)", PAIR + "SOME x: x.v > 1 OR SOME x: x.k = 1", True),
        (PAIR + "SOME x: (x.v > 1 AND x.k = 1)", PAIR + "SOME x: x.v > 1 AND SOME x: x.k = 1", False),
        (PAIR + "NOT SOME x: x.v > 1", PAIR + "x.v <= 1", True),
        (PAIR + "SOME x, y: x.v > 1 OR x.v <= 1", PAIR + "SOME x: x.v IS NOT NULL", None),
        (
            "(A ; B) AS x FILTER SOME x: x.v > 1",
            "((A AS x FILTER SOME x: x.v > 1) ; (B AS x FILTER SOME x: x.v > 1))",
            False,
        ),
        (
            "(A ; B) AS x FILTER SOME x: x.v > 1",
            "((A AS x FILTER x.v > 1) ; B AS x) OR (A AS x ; (B AS x FILTER x.v > 1))",
            True,
        ),
    ],
)
def test_laws(first, second, equal):
    if equal is None:
        with pytest.raises(QueryError, match="SOME lists 'y', but its condition does not read it"):
            cerflow.equivalent(first, second)
        return
    assert cerflow.equivalent(first, second).verdict is equal


@pytest.mark.parametrize(
    ("formula", "registers"),
    [
        ("A+ AS x FILTER SOME x: x.v > 4", 0),
        ("A+ AS x FILTER SOME x: (x.v > 4 AND NOT x.k = 1)", 0),
        ("(A+ AS x ; B+ AS y) FILTER SOME x, y: x.v > y.v", 2),
    ],
)
def test_no_match_has_two_runs_where_nothing_must_be_guessed(formula, registers):
    transducer = cerflow.parse(f"SELECT * WHERE {formula}").plan(Schema(TABLE.schema)).transducer
    assert not ambiguous(transducer)
    assert len(transducer.registers) == registers


def test_many_choices_make_one_match():
    table = pa.table({"type": ["A"] * 8 + ["B"] * 2, "k": [0] * 10})
    query = cerflow.parse("SELECT * WHERE (A+ AS x ; B+ AS y) FILTER SOME x, y: x.k = y.k")
    assert query.match(table).count() == 255 * 3
    assert cerflow.parse(query.text.replace("*", "COUNT(*) AS n")).match(table).to_pylist()[-1]["n"] == 255 * 2


KINDS = pa.table(
    {
        "type": list("AABAB"),
        "s": pa.array(["b", "a", "a", None, "c"]).dictionary_encode(),
        "m": pa.array([3, 1, 2, None, 3], pa.timestamp("us", "UTC")),
        "d": pa.array(["1.5", "20000000000000000.25", "1.5", None, "3"]).cast(pa.decimal128(30, 2)),
        "f": [0.5, float("nan"), -0.0, float("inf"), 0.0],
        "b": [True, False, False, None, True],
    }
)


@pytest.mark.parametrize("operator", ["<", ">=", "=", "!="])
@pytest.mark.parametrize("column", ["s", "m", "d", "f", "b"])
def test_values_of_other_kinds(operator, column, engine_runner):
    if column == "b" and operator in ("<", ">="):
        return
    query = cerflow.parse(f"SELECT * WHERE (A+ AS x ; B+ AS y) FILTER SOME x, y: x.{column} {operator} y.{column}")
    assert bag(engine_runner(query, KINDS)) == bag(query.match(KINDS, runner="semantics").to_pylist())


@pytest.mark.parametrize(
    ("formula", "place", "message"),
    [
        (PAIR + "SOME x, z: x.v > z.v", "z.v", "unknown label 'z'"),
        ("(A+ AS x ; B+ AS y) FILTER SOME x: x.v > y.v", "y.v", "'y' may have several events or none here"),
        ("(A AS x OR B AS y) FILTER SOME x: x.v > y.v", "y.v", "'y' may have several events or none here"),
        (PAIR + "SOME x, y: x.v > 1", "SOME x, y: x.v > 1", "SOME lists 'y', but its condition does not read it"),
        (PAIR + "SOME x, x: x.v > 1", "SOME x, x: x.v > 1", "SOME lists 'x' twice"),
        (PAIR + "SOME x: SOME y: x.v > y.v", "SOME y: x.v > y.v", "SOME is not allowed inside SOME"),
        (PAIR + "SOME x: x.v > avg(x.v)", "avg(x.v)", "SOME chooses single events"),
        (PAIR + "SOME x: increasing(x.v)", "increasing(x.v)", "SOME chooses single events"),
        (PAIR + "x[SOME y: y.v > 1]", "SOME y: y.v > 1", "SOME is not allowed inside a bracket"),
        (PAIR + "SOME x: v > 1", "v", "'v' needs a label here"),
        (PAIR + "SOME x: x.v + 1", "x.v + 1", "this is a value, but a condition is expected here"),
    ],
)
def test_refusals(formula, place, message):
    text = f"SELECT * WHERE {formula}"
    with pytest.raises((QueryError, QuerySyntaxError), match=message.replace("(", r"\(")) as caught:
        cerflow.parse(text)
    span = caught.value.span
    assert text[span.start : span.end] == place


def test_refusals_of_other_notations():
    with pytest.raises(QueryError, match="SOME has nothing to choose"):
        cerflow.parse("SELECT * WHERE A AS x FILTER SOME x: x.v > 1", reading="first-order")
    with pytest.raises(QuerySyntaxError, match="SOME is not allowed inside a bracket"):
        cerflow.parse("[v > 1] AS a INTO r . [SOME r: r.v > 1] AS b", language="sremo")
    with pytest.raises(QueryError, match="SOME has nothing to choose"):
        cerflow.Query((read(this.v > 1).label("a").into("r") >> read(some("r")(label("r").v > 1)).label("b")).tree)
    with pytest.raises(QueryError, match="cannot be compared"):
        cerflow.parse(f"SELECT * WHERE {PAIR} SOME x: x.v > 'a'").match(TABLE)


def test_some_may_be_a_name():
    text = "SELECT * WHERE (A+ AS some ; B AS y) FILTER some.v > 1 AND SOME some : some[some > 1 OR v > 4]"
    table = TABLE.append_column("some", pa.array([2, 0, 0, 2, 0]))
    found = cerflow.parse(text).match(table).to_pylist()
    assert [[e["position"] for e in row["events"]] for row in found] == [[1, 2], [1, 4]]
