"""Event kinds, ``DEFINE name AS condition`` (spec §11)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import CerflowError, QueryError, UnsupportedQueryError
from cerflow.builder import any_event, attribute, event, not_event, select
from cerflow.language.formula import EventKind
from cerflow.language.parser import parse_formula, parse_query, parse_statements
from cerflow.language.printer import show
from support.conformance import assert_conforms, drawn
from support.runners import ENGINE_RUNNERS, bag, examples, semantics

LOGINS = [
    {"type": "login", "result": "failed", "user": "eve", "admin": False},
    {"type": "login", "result": "ok", "user": "root", "admin": True},
    {"type": "failed", "result": "ok", "user": "bob", "admin": None},
    {"type": "login", "result": None, "user": "eve", "admin": True},
]


def labelled(query: cerflow.Query | str) -> list[list[tuple[int, list[str]]]]:
    """The positions and labels of every match on `LOGINS`, the same by the semantics."""
    query = cerflow.parse(query) if isinstance(query, str) else query
    found = query.match(LOGINS).to_pylist()
    assert bag(found) == bag(semantics(query, LOGINS))
    return [[(e["position"], e["labels"]) for e in row["events"]] for row in found]


def test_kinds_stand_where_types_stand():
    assert labelled(
        "DEFINE failed AS result = 'failed', ok AS result = 'ok' AND user != 'root' "
        "SELECT * WHERE failed AS f ; ok AS o"
    ) == [[(0, ["f", "failed"]), (2, ["o", "ok"])]]


def test_an_unknown_condition_is_not_true():
    assert labelled("DEFINE failed AS result = 'failed'; SELECT * WHERE NOT(failed)") == [
        [(1, ["login"])],
        [(2, [])],
        [(3, ["login"])],
    ]
    assert labelled("DEFINE a AS result = 'failed', b AS NOT a SELECT * WHERE b") == [[(k, ["b"])] for k in (1, 2, 3)]
    assert labelled("DEFINE a AS NOT result = 'failed' SELECT * WHERE a") == [[(1, ["a"])], [(2, ["a"])]]


def test_a_kind_hides_a_type_of_its_name_in_the_whole_statement():
    assert labelled("DEFINE failed AS FALSE SELECT * WHERE EVENT AS x FILTER x.user = 'bob'") == [[(2, ["x"])]]
    assert labelled("SELECT * WHERE EVENT AS x FILTER x.user = 'bob'") == [[(2, ["failed", "x"])]]
    # A label of that name is given only where the formula says so.
    assert labelled("DEFINE failed AS result = 'failed' SELECT failed WHERE failed ; EVENT") == [[(0, ["failed"])]] * 3


def test_kinds_read_those_above_and_quotes_read_attributes():
    kinds = "DEFINE admin AS user = 'root', "
    assert labelled(f"{kinds}k AS admin SELECT * WHERE k") == [[(1, ["k"])]]
    assert labelled(f'{kinds}k AS "admin" = TRUE SELECT * WHERE k') == [[(1, ["k"])], [(3, ["k"])]]
    assert labelled(f"{kinds}k AS admin = FALSE SELECT * WHERE k") == [[(0, ["k"])], [(2, ["k"])], [(3, ["k"])]]
    # A kind never means itself, and a boolean attribute may stand alone.
    assert labelled("DEFINE admin AS admin = TRUE SELECT * WHERE admin") == [[(1, ["admin"])], [(3, ["admin"])]]
    assert labelled("DEFINE admin AS admin SELECT * WHERE admin") == [[(1, ["admin"])], [(3, ["admin"])]]


def test_kinds_are_not_disjoint():
    kinds = "DEFINE a AS user = 'eve', b AS result = 'failed' SELECT * WHERE"
    assert labelled(f"{kinds} a OR b") == [[(0, ["a"])], [(0, ["b"])], [(3, ["a"])]]
    assert labelled(f"{kinds} a AND b") == []
    assert labelled(f"{kinds} a ALL b") == [[(0, ["a", "b"])], [(0, ["b"]), (3, ["a"])]]


def test_conditions_about_types_and_times():
    assert labelled("DEFINE late AS position() >= 2 AND type = 'login' SELECT * WHERE late") == [[(3, ["late"])]]
    table = [{"type": "a", "t": 1}, {"type": "b", "t": 9}]
    query = cerflow.parse("DEFINE late AS time() > 5 SELECT * WHERE late")
    assert [row["detected_at"] for row in query.match(table, time="t").to_pylist()] == [1]


def test_filters_read_events_of_kinds():
    assert labelled(
        "DEFINE failed AS result = 'failed', ok AS result = 'ok' SELECT * WHERE (failed ; ok) FILTER ok.user = 'bob'"
    ) == [[(0, ["failed"]), (2, ["ok"])]]
    assert labelled("DEFINE eve AS user = 'eve' SELECT * WHERE NOT(eve FILTER eve.result = 'failed')") == [
        [(1, ["login"])],
        [(2, ["failed"])],
        [(3, ["login"])],
    ]


def test_streams_of_kinds():
    events = [{"type": "t", "s": "one", "v": 1}, {"type": "t", "s": "two", "v": 1}]
    query = cerflow.parse("DEFINE k AS v = 1 SELECT * FROM one, two WHERE two>k")
    assert [row["detected_at"] for row in query.match(events, stream="s").to_pylist()] == [1]


def test_the_builder_gives_the_same_trees():
    failed = event("failed", kind=attribute("result") == "failed")
    built = cerflow.Query(select(failed.as_("f") >> any_event()))
    assert built.tree == parse_query("DEFINE failed AS result = 'failed' SELECT * WHERE failed AS f ; EVENT")
    # The name alone means the kind, wherever the statement defines it.
    again = cerflow.Query(select(failed >> event("failed") >> not_event("failed")))
    assert again.tree == parse_query("DEFINE failed AS result = 'failed' SELECT * WHERE failed ; failed ; NOT(failed)")
    other = not_event("failed", kind=attribute("result") == "failed")
    assert cerflow.Query(select(failed >> event("failed") >> other)).tree == again.tree
    with pytest.raises(QueryError, match="two event kinds have the name 'failed'"):
        cerflow.Query(select(failed >> event("failed", kind=attribute("result") == "x")))


@pytest.mark.parametrize(
    "text",
    [
        "DEFINE a AS v > 1; SELECT * WHERE a AS x ; NOT(a)",
        "DEFINE a AS v > 1 DEFINE b AS NOT a, c AS a OR b; SELECT * WHERE c",
        'DEFINE a AS "a" = TRUE SELECT * WHERE a',
        'DEFINE a AS v > 1, b AS "a" = TRUE AND a SELECT * WHERE a ; b',
        'DEFINE "no name" AS "%" = 1 SELECT * WHERE "no name" ; EVENT',
    ],
)
def test_text_reads_back(text):
    tree = parse_query(text)
    assert parse_query(show(tree)) == tree


def test_a_formula_reads_back():
    tree = parse_formula("DEFINE a AS v > 1, b AS a; (a ; b)+")
    assert isinstance(next(iter(tree.children[0].children)), EventKind)
    assert parse_formula(show(tree)) == tree


def test_kinds_are_visible_in_the_statements_below():
    text = """
    DEFINE s AS SELECT * WHERE EVENT AS x;
    DEFINE a AS v > 1;
    DEFINE t AS SELECT * WHERE a AS x;
    SELECT * FROM s, t WHERE s ; t ; EVENT
    """
    tree = parse_statements(text)
    assert tree.definitions[0].select == parse_query("SELECT * WHERE EVENT AS x")
    assert tree.definitions[1].select == parse_query("DEFINE a AS v > 1 SELECT * WHERE a AS x")
    assert parse_statements(show(tree)) == tree
    program = cerflow.parse_program(text)
    assert program.match([{"type": "A", "v": k} for k in range(4)]).to_pylist()


REFUSED = {
    "DEFINE a AS time(x) > 1 SELECT * WHERE a": "so it cannot read the label 'x'",
    "DEFINE a AS p(x) SELECT * WHERE a": "so it cannot read the label 'x'",
    "DEFINE a AS v > 1, a AS v > 2 SELECT * WHERE a": "'a' is defined twice",
    "DEFINE a AS sum(v) > 1 SELECT * WHERE a": "sum cannot be used here",
    "DEFINE a AS prev(v) > 1 SELECT * WHERE a": "prev cannot be used here",
    "DEFINE a AS match_number() > 1 SELECT * WHERE a": "one event, which has no match",
    "DEFINE a AS x[v > 1] SELECT * WHERE a": "a bracket is not allowed inside the condition of an event kind",
    "DEFINE a AS SOME x: x.v > 1 SELECT * WHERE a": "SOME is not allowed inside the condition of an event kind",
    "DEFINE a AS v > 1 SELECT * WHERE A FILTER a AND A.v > 1": "'a' needs a label here",
    "DEFINE a AS v > 1 SELECT * WHERE A AS x FILTER x[a]": "unknown attribute 'a'",
    "DEFINE a AS nothing > 1 SELECT * WHERE a": "unknown attribute 'nothing'",
    "DEFINE a AS v SELECT * WHERE a": "v is an integer, but a condition is expected here",
    "DEFINE a AS v > 1": "expected",
    "DEFINE a AS v > 1 a AS x": "expected",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    with pytest.raises(CerflowError, match=REFUSED[text]) as refused:
        cerflow.parse(text).match([{"type": "a", "v": 1}]).to_pylist()
    assert "line 1, column" in str(refused.value)


def test_an_attribute_that_is_not_there_matters_only_if_the_kind_is_used():
    assert len(labelled("DEFINE a AS nothing > 1, b AS result = 'ok' SELECT * WHERE b")) == 2


def test_names_of_a_program_are_unique():
    for text in (
        "DEFINE a AS SELECT * WHERE B; DEFINE a AS v > 1; SELECT * FROM a WHERE a",
        "DEFINE a AS v > 1; DEFINE a AS SELECT * WHERE B; SELECT * FROM a WHERE a",
    ):
        with pytest.raises(QueryError, match="'a' is defined twice"):
            cerflow.parse_program(text)


def test_conditions_that_grow_are_refused():
    kinds = ["k0 AS v > 1", *(f"k{n + 1} AS k{n} AND NOT k{n}" for n in range(40))]
    with pytest.raises(UnsupportedQueryError, match="parts; at most 50,000 are allowed"):
        cerflow.parse(f"DEFINE {', '.join(kinds)} SELECT * WHERE k40")


@examples(200)
@given(st.data())
def test_random_kinds(data):
    query, table = drawn(data, kinds=True)
    assert_conforms(query, table, ENGINE_RUNNERS)
    again = cerflow.parse(show(query.tree)).tree
    assert again == query.tree


@pytest.mark.parametrize("formula", ["hot", "NOT(hot)", "hot AS x ; hot AS y FILTER x.v < y.v"])
def test_kinds_in_the_first_order_reading(formula: str) -> None:
    query = cerflow.parse(f"DEFINE hot AS v > 1 SELECT * WHERE {formula}", reading="first-order")
    events = [{"type": "A", "v": v} for v in (1, 3, 0, 5)]
    found = [dict(match) for match in query.match(events)]
    assert found
    # The semantics compared the names of kinds with types.
    assert found == [dict(match) for match in query.match(events, runner="semantics")]
