import pytest

import cerflow
from cerflow.base.errors import QueryError
from cerflow.base.operators import Operator
from cerflow.language.condition import (
    Aggregate,
    Attribute,
    Comparison,
    Function,
    LabelReference,
    Literal,
)
from cerflow.language.parser import parse_query, parse_sremo
from cerflow.logic.analysis.checks import check_query, check_sremo
from cerflow.logic.analysis.condition_checks import check_expression


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE A ; B",
        "SELECT x, A WHERE A AS x",
        "SELECT Whatever WHERE EVENT ; A",
        "SELECT x.v AS v, x WHERE (A AS x OR B AS y)",
        "SELECT max(x.v) AS top, count(x) AS n WHERE A+ AS x",
        "SELECT e.v AS v, A.v AS w WHERE (EVENT AS e OR A)",
        "SELECT y.v AS v WHERE A [A -> y]",
        "SELECT x.v AS v WHERE (A AS x ; B) AND (A+ AS x ; B)",
        'SELECT COUNT(*) AS "start" WHERE A',
        "SELECT x.v AS detection WHERE A AS x PARTITION BY k",
    ],
)
def test_queries_that_are_fine(query):
    check_query(parse_query(query))


@pytest.mark.parametrize(
    ("query", "place", "message", "suggestion"),
    [
        ("SELECT * WHERE A AS buy FILTER bye.v = 1", "bye.v", "unknown label 'bye'", "buy"),
        ("SELECT * WHERE A ; (B AS x)+ ; C FILTER x.v = 1 AND A.v = D.v", "D.v", "unknown label 'D'", None),
        ("SELECT * WHERE (A FILTER x.v = 1) ; (B AS x)+", "x.v", "label 'x' is not bound here", None),
        ("SELECT bye WHERE A AS buy", "bye", "unknown label 'bye'", "buy"),
        ("SELECT * WHERE (A NOT FOLLOWED BY B AS y FOR 1 DAY) FILTER y.v = 1", "y.v", "label 'y' is not bound", None),
        ("SELECT y.v AS v WHERE A NOT FOLLOWED BY B AS y FOR 1 DAY", "y.v", "unknown label 'y'", None),
        ("SELECT * WHERE A+ NOT FOLLOWED BY (B FILTER B.v = A.v) FOR 1 DAY", "A.v", "label 'A' is not bound", None),
        ("SELECT A, bye.v AS v WHERE A AS buy", "bye.v", "unknown label 'bye'", "buy"),
        ("SELECT A WHERE A [A -> b]", "A", "unknown label 'A'", None),
        ("SELECT x.v AS v WHERE A+ AS x", "x.v", "'x' may have several events in one match", None),
        ("SELECT x.v AS v WHERE A AS x ; B AS x", "x.v", "'x' may have several events", None),
        ("SELECT position(x) AS p WHERE (A ; B) AS x", "x", "'x' may have several events", None),
        ("SELECT A.v AS v WHERE A ; EVENT", "A.v", "'A' may have several events", None),
        ("SELECT z.v AS v WHERE (A AS x ; B AS y) [x -> z] [y -> z]", "z.v", "'z' may have several events", None),
        ("SELECT D.v AS v WHERE EVENT ; EVENT", "D.v", "'D' may have several events", None),
        (
            'SELECT x.v AS "start" WHERE A AS x',
            'x.v AS "start"',
            "column 'start' would be a second result column",
            None,
        ),
        ("SELECT x.v AS a, x.w AS a WHERE A AS x", "x.w AS a", "column 'a' would be a second", None),
        ("SELECT x.v AS k WHERE A AS x PARTITION BY k", "x.v AS k", "column 'k' would be a second", None),
        ("SELECT COUNT(*) AS end_time WHERE A AS x", "COUNT(*) AS end_time", "column 'end_time' would be", None),
        ("SELECT * WHERE (A AS x ; B AS y) FILTER nearr(x, y)", "nearr(x, y)", "unknown function or predicate", "near"),
        ("SELECT * WHERE (A AS x) FILTER near(x)", "near(x)", "predicate 'near' takes 2 arguments, but 1 is", None),
        ("SELECT * WHERE (A AS x) FILTER incresing(x.v)", "incresing(x.v)", "unknown function or", "increasing"),
        ("SELECT * WHERE (A AS x) FILTER odd(x.v, 1, 2)", "odd(x.v, 1, 2)", "takes 1 to 2 arguments, but 3 are", None),
        (
            "SELECT * WHERE (A AS x ; B AS y) FILTER x[odd((v), y.v)]",
            "odd((v), y.v)",
            "predicate 'odd' is vectorized over the events of one label, but its arguments read several",
            None,
        ),
        (
            "SELECT * WHERE (A AS x ; B AS y) FILTER spread(x.v - y.v, y.v)",
            "x.v - y.v",
            "predicate 'spread' takes sets of events, one label in each argument, but this reads several",
            None,
        ),
        ("SELECT * WHERE (A AS x) FILTER spread(1, 2)", "spread(1, 2)", "its arguments read none", None),
        ("SELECT * WHERE (A AS x) FILTER spread(x.v, max(x.v))", "max(x.v)", "an aggregate cannot be", None),
        ("SELECT * WHERE (A AS x) FILTER near(v, x.v)", "v", "unknown label 'v'", None),
        (
            "SELECT * WHERE (A AS x ; B AS y) FILTER sum(x.v + y.v) > 1",
            "sum(x.v + y.v)",
            "sum aggregates the events of one label, but its argument reads several",
            None,
        ),
    ],
)
def test_queries_that_are_not(predicate, query, place, message, suggestion):
    predicate("near")(lambda x, y: True)
    predicate("odd", vectorized=True)(lambda v, by=1: v)
    predicate("spread", of_set=True)(lambda v, w: True)
    with pytest.raises(QueryError) as caught:
        check_query(parse_query(query))
    error = caught.value
    assert message in error.reason
    assert error.suggestion == suggestion
    assert error.span is not None
    assert query[error.span.start : error.span.end] == place


def test_an_attribute_in_place_of_a_label_is_explained():
    with pytest.raises(QueryError, match=r"are A, x\. An attribute follows a label, as in A\.v"):
        check_query(parse_query("SELECT v WHERE A AS x"))


@pytest.mark.parametrize("key", ["k", "[j, k]", "j, k"])
def test_a_key_in_place_of_a_label_is_reported_anyway(key):
    with pytest.raises(QueryError, match=r"'k'\nThe key 'k' of PARTITION BY is reported anyway: leave it out here"):
        check_query(parse_query(f"SELECT avg(x.v), k WHERE A+ AS x PARTITION BY {key}"))
    check_query(parse_query(f"SELECT avg(x.v) WHERE A+ AS x PARTITION BY {key}"))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (Attribute(None, "v"), "attribute 'v' has no label"),
        (Function("sqrt", (Attribute("x", "v"),)), "unknown function 'sqrt'"),
        (Function("abs", (Attribute("x", "v"), Literal(1))), "abs takes one argument, but 2 are given"),
        (Function("position", (Attribute("x", "v"),)), "position takes a label"),
        (Aggregate("median", Attribute("x", "v")), "unknown function 'median'"),
        (Aggregate("sum", LabelReference("x")), "label 'x' is used where a value is expected"),
        (Aggregate("sum", Aggregate("max", Attribute("x", "v"))), "is not allowed inside an aggregate"),
        (Aggregate("sum", Literal(1)), "its argument reads none"),
        (Comparison(Operator.EQ, LabelReference("x"), Literal(1)), "label 'x' is used where a value is expected"),
        (Literal(2**63), "does not fit into 64 bits"),
    ],
)
def test_trees_that_no_text_gives(expression, message):
    with pytest.raises(QueryError, match=message.replace("(", r"\(")):
        check_expression(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("([v > 1] MARK INTO r & [v < 2] MARK INTO r) . [TRUE]* . [v > r.v] MARK", "register 'r' is read after '&'"),
        ("([v > r.v] MARK INTO r & [v < 2] MARK INTO r)+", "register 'r' is read after '&'"),
        ("unordered([v > r.v] MARK, [v > 1] MARK INTO r & [v < 2] MARK INTO r)", "register 'r' is read after '&'"),
        ("[v > 1]", "marks no event"),
    ],
)
def test_expressions_with_memory(expression, message):
    with pytest.raises(QueryError, match=message):
        check_sremo(parse_sremo(expression))


def test_expression_with_memory_that_is_fine():
    check_sremo(parse_sremo("[v > 1] MARK INTO r . ([v > r.v] AS up INTO s)* . [v < s.v] MARK"))


def test_calls_that_are_fine(predicate):
    predicate("odd", vectorized=True)(lambda v, by=1: v)
    predicate("spread", of_set=True)(lambda v, w: True)
    check_query(
        parse_query("SELECT * WHERE (A AS x ; B AS y) FILTER x[odd((v), x.v)] AND y[spread((v), y) OR odd(EVENT)]")
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT y WHERE A NOT FOLLOWED BY B AS y FOR 1 DAY",
        "SELECT * WHERE (A UNLESS B AS y) FILTER y.v = 1",
        "SELECT * WHERE (A AS x FILTER x.v > y.v) WITHOUT B AS y",
    ],
)
def test_labels_of_excluded_parts_belong_to_no_match(query):
    with pytest.raises(QueryError) as caught:
        check_query(parse_query(query))
    assert str(caught.value.hint).startswith("'y' is in an excluded part, so no match has it")


def test_patterns_with_wildcards_of_file_names_are_warned_of():
    for pattern, doubtful in (("*FATAL*", True), ("a?", True), ("%a*", False), ("a_?", False), ("a", False)):
        query = cerflow.parse(f"SELECT * WHERE A AS a FILTER a.v = 1 OR a.s LIKE '{pattern}'")
        assert [w.column for w in query.warnings() if "no % or _" in w.reason] == [41] * doubtful, pattern


def test_functions_of_other_languages():
    for name in ("isNaN", "is_null"):
        with pytest.raises(QueryError, match="write … IS NULL"):
            cerflow.parse(f"SELECT * WHERE A AS a FILTER {name}(a.v)")
