"""Functions of strings, nulls and dates, in computed columns and conditions."""

from datetime import datetime

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import QueryError, QuerySyntaxError, UnsupportedQueryError
from cerflow.builder import case, count_distinct, event, label, predicate, select
from cerflow.language.parser import parse_query
from cerflow.language.printer import show
from support.runners import bag, semantics

LATE = datetime(2024, 3, 15, 23, 30)
EVENTS = pa.table(
    {
        "type": ["A", "B", "B"],
        "s": ["abc", None, "xyz"],
        "n": pa.array([1, None, 3]),
        "f": [None, 2.5, None],
        "vienna": pa.array([LATE] * 3, pa.timestamp("us", "Europe/Vienna")),
        "offset": pa.array([LATE] * 3, pa.timestamp("us", "+05:30")),
        "plain": pa.array([LATE, None, LATE], pa.timestamp("ms")),
    }
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("coalesce(y.s, x.s)", ["abc", "xyz"]),
        ("coalesce(x.f, y.n)", [None, 3.0]),
        ("coalesce(y.n, NULL, 7)", [7, 3]),
        ("x.s || '-' || y.s", [None, "abc-xyz"]),
        ("substr(x.s, 2, y.n)", [None, "bc"]),
        ("substr(x.s, 0, 2)", ["a", "a"]),
        ("substr(x.s, -1)", ["abc", "abc"]),
        ("substr(x.s, 2, -1)", [None, None]),
        ("hour(y.vienna)", [0, 0]),
        ("day(y.vienna)", [16, 16]),
        ("hour(y.offset)", [5, 5]),
        ("weekday(y.plain)", [None, 5]),
        ("year(coalesce(y.plain, x.plain))", [2024, 2024]),
        ("hour(min(y.plain) + 1 HOUR)", [None, 0]),
        ("CASE WHEN y.n > 2 THEN 'many' WHEN y.n IS NULL THEN 'none' END", ["none", "many"]),
        ("CASE WHEN NOT y.n > 2 THEN 1 ELSE 2.5 END", [2.5, 2.5]),
        ("CASE y.s WHEN 'xyz' THEN x.s || y.s WHEN NULL THEN 'never' ELSE lower(x.s) END", ["abc", "abcxyz"]),
        ("CASE WHEN y.n > 2 THEN CASE WHEN x.n = 1 THEN x.n ELSE NULL END ELSE y.f * 2 END", [5.0, 1.0]),
        ("CASE WHEN y.s = 'xyz' THEN y.plain - 1 DAY ELSE x.plain END", [LATE, datetime(2024, 3, 14, 23, 30)]),
        ("sum(CASE WHEN y.s = 'xyz' THEN 1 ELSE 0 END)", [0, 1]),
        ("(y.n > 2 OR x.s = 'q')", [None, True]),
        ("(NOT y.n > 3)", [None, True]),
    ],
)
def test_computed_columns(value, expected):
    query = cerflow.parse(f"SELECT {value} AS c WHERE A AS x ; B AS y")
    for runner in ("engine", "semantics"):
        assert [match["c"] for match in query.match(EVENTS, runner=runner)] == expected


@pytest.mark.parametrize(
    ("condition", "ends"),
    [
        ("coalesce(y.s, x.s) = 'abc'", [1]),
        ("coalesce(x.f, y.n) = 3", [2]),
        ("coalesce(y.s, x.s) || 'd' = 'abcd'", None),
        ("substr(x.s, 1, 2) != substr(y.s, 1)", [2]),
        ("y.s || 'x' = 'xyzx'", [2]),
        ("hour(y.vienna) = hour(x.vienna) AND hour(x.plain) = 23", [1, 2]),
        ("substr(first(y.s), 1, 2) = 'xy'", [2]),
        ("weekday(max(y.offset)) = 6", [1, 2]),
        ("coalesce(y.plain, x.plain) - x.plain = 0 SECONDS", [1, 2]),
        ("coalesce(coalesce(coalesce(y.s, x.s), 'c'), y.s) = 'abc'", [1]),
        ("coalesce(coalesce(y.f, y.n) + x.n, -1) = 4", [2]),
        ("CASE WHEN y.n > x.n THEN y.n ELSE x.n END = 1", [1]),
        ("CASE x.s WHEN y.s THEN 1 WHEN 'abc' THEN y.n ELSE 7 END = 3", [2]),
        ("CASE WHEN y.s IS NULL AND x.n = 1 THEN x.s ELSE y.s END = x.s", [1]),
        ("y[CASE WHEN n > 2 THEN s END = 'xyz']", [2]),
        ("count(distinct y.n) = 0", [1]),
        ("CASE WHEN x.n = 1 THEN y.s ELSE x.s END LIKE 'x%'", None),
        ("x.s || y.s = 'abcxyz'", None),
        ("hour(coalesce(x.plain, y.plain)) = 23", None),
        ("lower(coalesce(x.s, y.s)) = 'abc'", None),
    ],
)
def test_conditions(condition, ends):
    query = cerflow.parse(f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition}")
    if ends is None:
        with pytest.raises(UnsupportedQueryError, match="computed from one event in a condition"):
            query.match(EVENTS)
    else:
        assert [match["end"] for match in query.match(EVENTS)] == ends


@pytest.mark.parametrize(
    ("condition", "error", "reason"),
    [
        ("coalesce(x.n, x.s) = 1", QueryError, "coalesce takes values of one kind, but these are a string and an int"),
        ("hour(x.n) = 1", QueryError, "hour needs a timestamp, but this is an integer"),
        ("substr(x.n, 1) = 'a'", QueryError, "substr needs a string, but this is an integer"),
        ("substr(x.s, 1.5) = 'a'", QueryError, "substr counts characters by integers, but this is a float"),
        ("x.n || 'a' = 'a'", QueryError, "|| needs a string, but this is an integer"),
        ("substr(x.s) = 'a'", QuerySyntaxError, "substr takes 2 or 3 arguments, but 1 are given"),
        ("x.n = 1 || x.n = 2", QuerySyntaxError, "joins strings"),
        (
            "CASE WHEN x.n = 1 THEN 1 ELSE 'a' END = 1",
            QueryError,
            "CASE takes values of one kind, but these are a string",
        ),
        ("CASE WHEN x.n THEN 1 END = 1", QueryError, "x.n is an integer, but a condition is expected here"),
        ("CASE x.n WHEN x.n = 1 THEN 1 END = 1", QuerySyntaxError, "this is a condition, but a value is expected here"),
        ("CASE WHEN x.n = 'a' THEN 1 END = 1", QueryError, "an integer cannot be compared with a string"),
        ("CASE WHEN x[n = 1] THEN 1 END = 1", QuerySyntaxError, "a bracket is not allowed inside CASE"),
        ("CASE WHEN SOME x: x.n = 1 THEN 1 END = 1", QuerySyntaxError, "SOME is not allowed inside CASE"),
        ("CASE WHEN x.n = 1 THEN 1 = 1", QuerySyntaxError, "a unit of time, ELSE, END or WHEN"),
        ("sum(distinct x.n) = 1", QuerySyntaxError, "only count takes DISTINCT, not sum"),
        ("count(distinct x) = 1", QuerySyntaxError, "'x' needs a label here"),
    ],
)
def test_errors(condition, error, reason):
    with pytest.raises(error) as caught:
        cerflow.parse(f"SELECT * WHERE A AS x FILTER {condition}").match(EVENTS)
    assert reason in str(caught.value)


def test_the_builder_gives_the_same_trees():
    x = label("x")
    for made, written in (
        (x.s.substr(1, 2).concat("a") == "b", "substr(x.s, 1, 2) || 'a' = 'b'"),
        (x.s.coalesce(x.u, "a") == "b", "coalesce(x.s, x.u, 'a') = 'b'"),
        (x.t.date_part("hour") == 3, "hour(x.t) = 3"),
        (case((x.n > 1, "a"), (x.n == 1, "b")) == "a", "CASE WHEN x.n > 1 THEN 'a' WHEN x.n = 1 THEN 'b' END = 'a'"),
        (case((x.n > 1, x.n), otherwise=0) == 0, "CASE WHEN x.n > 1 THEN x.n ELSE 0 END = 0"),
        (count_distinct(x.n) == 1, "count(distinct x.n) = 1"),
    ):
        assert made.tree == cerflow.parse(f"SELECT * WHERE A AS x FILTER {written}").tree.formula.condition
    with pytest.raises(QueryError, match="no part 'hours'"):
        x.t.date_part("hours")
    with pytest.raises(TypeError, match="case takes pairs"):
        case()


def test_conditions_as_columns_of_the_builder():
    x = label("x")
    made = select(event("A").as_("x"), (x.n > 1).as_("many"), predicate("big", x.n).as_("big"))
    assert made == parse_query("SELECT (x.n > 1) AS many, big(x.n) AS big WHERE A AS x")


def test_what_case_repeats_is_bounded():
    operand = "x.n"
    for _ in range(12):
        operand = f"(CASE {operand} WHEN 1 THEN 1 WHEN 2 THEN 2 END)"
    with pytest.raises(QuerySyntaxError, match="too large for this number of WHEN"):
        cerflow.parse(f"SELECT {operand} AS c WHERE A AS x")
    deep = "x.n"
    for _ in range(200):
        deep = f"CASE WHEN {deep} = 1 THEN 1 END"
    with pytest.raises(QueryError, match="more than 100 levels deep"):
        cerflow.parse(f"SELECT {deep} AS c WHERE A AS x")


def test_long_cases():
    whens = " ".join(f"WHEN x.n = {k} THEN y.n + {k}" for k in range(500))
    query = cerflow.parse(f"SELECT * WHERE (A AS x ; B AS y) FILTER CASE {whens} END = 4")
    assert [match["end"] for match in query.match(EVENTS)] == [2]


def test_words_of_case_are_names_elsewhere():
    events = [{"type": "A", "case": 1, "end": 2, "when": 3, "distinct": 4}]
    query = cerflow.parse(
        "SELECT case.end AS e, CASE WHEN case.case = 1 THEN case.distinct END AS d, count(distinct case.when) AS n "
        "WHERE A AS case FILTER case[case = 1 AND end = 2 AND distinct - 1 = 3] PARTITION BY case"
    )
    assert parse_query(show(query.tree)) == query.tree
    (match,) = query.match(events)
    assert (match["case"], match["e"], match["d"], match["n"]) == (1, 2, 4, 1)


@pytest.mark.parametrize(
    "condition",
    [
        "CASE WHEN b.v = 1 THEN 'pq' ELSE b.s END != 'pq'",
        "CASE WHEN b.v = 1 THEN b.u ELSE b.s END LIKE 'p%'",
        "CASE WHEN b.v = 2 THEN b.s ELSE b.u END IN ('p', 'q')",
        "coalesce(b.s, b.u) != a.u",
    ],
)
def test_a_column_of_nulls_alone_beside_texts(condition):
    numbers = {"v": [1, 1, 1, 2, 2, 2]}
    table = pa.table({"type": list("ABABAB"), "s": pa.nulls(6, pa.string()), "u": list("ppqqpq"), **numbers})
    query = cerflow.parse(f"SELECT * WHERE (A AS a ; B AS b) FILTER {condition}")
    assert bag(query.match(table).to_pylist()) == bag(semantics(query, table))


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("substr(x.s, 2, 2) = 'bc'", [0, 4]),
        ("substr(x.s, 2) = 'öü'", [3]),
        ("substr(x.s, 1, -1) IS NULL", [0, 1, 2, 3, 4]),
        ("substr(x.s, 1, NULL) IS NULL", [0, 1, 2, 3, 4]),
        ("substr(x.s, 9) IS NULL", [1]),
        ("substr('hello', x.n, 2) = 'he'", [0]),
        ("substr('hello', 1, 2) = 'he'", [0, 1, 2, 3, 4]),
        ("'x' || x.s LIKE 'x_ö%'", [3]),
        ("x.s || '' = ''", [2]),
        ("length(x.s || x.r) = 4", [3, 4]),
    ],
)
def test_functions_of_texts_and_constants(condition, rows, dictionary):
    texts = pa.array(["abcd", None, "", "äöü", "abc"])
    texts = texts.dictionary_encode() if dictionary else texts
    table = pa.table({"s": texts, "n": [1, None, 3, -4, 2], "r": ["u", "v", None, "w", "x"]})
    query = cerflow.parse(f"SELECT * WHERE EVENT AS x FILTER {condition}")
    for runner in ("engine", "semantics"):
        found = query.match(table, runner=runner).to_pylist()
        assert [match["end"] for match in found] == rows


@pytest.mark.parametrize(
    "form", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
@pytest.mark.parametrize(
    "condition",
    [
        "substr(x.s, 2, 2) = 'bc'",
        "substr(x.s, -1, 3) = 'a'",
        "substr(x.s, 3, 9223372036854775807) = 'c'",
        "substr(x.s, 9223372036854775807, 2) = ''",
        "substr(x.s, 1, -1) IS NULL",
        "substr(x.s, 1, 3) IN ('abc', 'äöü')",
        "lower(substr(x.s, 2)) < 'c'",
        "length(substr(x.s, 2, 2)) < 2",
        "length(x.s || x.s) > 6",
        "x.s REGEXP '[0-9]$'",
        "x.s NOT LIKE '%ö%'",
    ],
)
def test_functions_of_many_texts(condition, form):
    texts = [
        None if text is None else f"{text}{k % 13 or ''}" for k, text in enumerate(["abc", None, "", "äöü", "Bß"] * 26)
    ]
    table = pa.table({"s": pa.array(texts, form)}).slice(3)
    query = cerflow.parse(f"SELECT * WHERE EVENT AS x FILTER {condition}")
    expected = [match["end"] for match in semantics(query, table)]
    assert [match["end"] for match in query.match(table).to_pylist()] == expected
    recognizer = query.recognizer(table.schema)
    pushed = [recognizer.push(table.slice(begin, 64)) for begin in range(0, len(table), 64)]
    assert [match["end"] for found in pushed for match in found.to_pylist()] == expected
