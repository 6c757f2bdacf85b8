"""What users ask about formulas, and get."""

import doctest
import sys
from itertools import combinations, product

import pyarrow as pa
import pytest

import cerflow
import cerflow.api.equivalence
from cerflow.builder import event


def supports_of(query, verdict, **roles):
    rows = query.match(verdict.table, **roles).to_pylist()
    return {
        (row["detected_at"], frozenset((x, e["position"]) for e in row["events"] for x in e["labels"])) for row in rows
    }


def query_of(text):
    return cerflow.parse(f"SELECT * WHERE {text}")


def test_examples_in_docstrings():
    outcome = doctest.testmod(cerflow.api.equivalence)
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.parametrize(
    ("f", "g"),
    [
        ("A ; B", "A : B"),
        ("A FILTER A.v > 1", "A FILTER A.v >= 1"),
        ("A FILTER A.v > 1 OR A.v <= 1", "A"),
        ("A FILTER A.s LIKE 'a%'", "A FILTER A.s LIKE '%a'"),
        ("A FILTER A.b = TRUE", "A FILTER A.b != FALSE OR A.b IS NULL"),
        ("A FILTER A.v > 1 AND A.v < 2", "B"),
        ("A FILTER A.v * 2 = 3", "A FILTER A.v = 1"),
        ("(A ; EVENT) WITHIN 3 EVENTS", "A ; EVENT"),
        ("A FILTER A.d < '2024-01-01'", "A FILTER A.d <= '2024-01-01T00:00:00'"),
    ],
)
def test_the_engine_sees_the_difference(f, g):
    verdict = cerflow.equivalent(f, g)
    match = verdict.detected_at, verdict.complex_event
    assert not verdict
    assert (match in supports_of(query_of(f), verdict)) is (verdict.detected_by == "first")
    assert (match in supports_of(query_of(g), verdict)) is (verdict.detected_by == "second")


def test_formulas_come_in_many_forms():
    forms = ["A ; B", cerflow.parse_formula("A ; B"), event("A") >> event("B"), query_of("A ; B")]
    for f in forms:
        assert cerflow.equivalent(f, "A ; B").verdict
        # EVENT gives its event the name of its type.
        assert cerflow.contained(f, "A ; EVENT").verdict
        assert cerflow.satisfiable(f).stream == [{"type": "A"}, {"type": "B"}]
    with pytest.raises(TypeError, match="not of type int"):
        cerflow.equivalent("A", 3)


def test_containment():
    narrow, wide = "A FILTER A.v > 2", "A FILTER A.v > 1"
    assert cerflow.contained(narrow, wide)
    verdict = cerflow.contained(wide, narrow)
    assert verdict.detected_by == "first"
    assert verdict.stream == [{"type": "A", "v": 2}]


def test_an_unknown_verdict_is_neither_true_nor_false():
    verdict = cerflow.equivalent("A FILTER A.s REGEXP 'a'", "A FILTER A.s LIKE '%a%'")
    assert verdict.verdict is None
    assert verdict.table is None
    assert repr(verdict) == "<Verdict unknown: it is not known which events satisfy s REGEXP 'a'>"
    with pytest.raises(ValueError, match="not known: it is not known which events satisfy"):
        bool(verdict)


def test_verdicts_show_themselves():
    assert repr(cerflow.equivalent("A", "A")) == "<Verdict True>"
    shown = "<Verdict False: {A@0} detected at 0 only by the first in [{'type': 'A'}]>"
    assert repr(cerflow.equivalent("A", "A AS x")) == shown
    with pytest.raises(AttributeError):
        cerflow.equivalent("A", "A").verdict = False


def test_a_schema_fixes_kinds():
    schema = cerflow.Schema(pa.schema({"type": pa.string(), "v": pa.int64()}))
    assert cerflow.satisfiable("A FILTER A.v > 1 AND A.v < 2")
    assert not cerflow.satisfiable("A FILTER A.v > 1 AND A.v < 2", schema=schema)
    with pytest.raises(cerflow.QueryError, match="unknown attribute 'w'"):
        cerflow.satisfiable("A FILTER A.w > 1", schema=schema)


def test_names_of_streams():
    verdict = cerflow.equivalent("s>A ; t>A", "A ; A")
    assert [e["stream"] for e in verdict.stream] == ["other", "other"]
    # Only a query that names its streams looks at their names.
    one, other = (cerflow.parse(f"SELECT * FROM s, t, other WHERE {f}") for f in ("s>A ; t>A", "A ; A"))
    assert not supports_of(one, verdict, stream="stream")
    assert (1, verdict.complex_event) in supports_of(other, verdict, stream="stream")


@pytest.mark.parametrize(
    ("f", "message"),
    [
        ("A FILTER y.v > 1", "line 1, column 10: unknown label 'y'"),
        ("A ;", "line 1"),
        ("A FILTER nope(A)", "unknown function"),
    ],
)
def test_errors_say_where(f, message):
    for ask in (cerflow.satisfiable, lambda f: cerflow.equivalent("A", f), lambda f: cerflow.contained(f, "A")):
        with pytest.raises((cerflow.QueryError, cerflow.QuerySyntaxError), match=message):
            ask(f)


def test_what_cannot_be_asked(monkeypatch):
    # As if Z3 were not installed.
    monkeypatch.setitem(sys.modules, "z3", None)
    for name in [name for name in sys.modules if name.startswith("cerflow.theory.deciding.solver.")]:
        monkeypatch.delitem(sys.modules, name)
    related = "(A AS x ; B AS y) FILTER x.v > y.v"
    for ask in (cerflow.satisfiable, lambda f: cerflow.equivalent("A", f)):
        with pytest.raises(cerflow.UnsupportedQueryError, match="remember values of earlier events") as caught:
            ask(related)
        assert "pip install 'cerflow[decide]'" in str(caught.value)
    with pytest.raises(cerflow.UnsupportedQueryError, match="more than 10 steps"):
        cerflow.equivalent("A ; B ; C", "A : B ; C", steps=10)
    with pytest.raises(cerflow.UnsupportedQueryError, match="window 5 MINUTES"):
        cerflow.equivalent("A ; B WITHIN 5 MINUTES", "A ; B")


# --- warnings --------------------------------------------------------------------------------------------------------


def warned(text, schema=None, **options):
    found = cerflow.parse(text, **options).warnings(schema)
    # What is remembered for good has tests of its own.
    return [(w.reason.split(":")[0], w.column) for w in found if "for good" not in w.reason]


NEVER, PART = "this query can never match", "this part can never match"
REDUNDANT = "this branch of OR is redundant"
NOTHING, ANY = "this excludes nothing", "this excludes almost nothing"
BEFORE = "this excludes only by events before the first event of a match"
AGAIN = "'a' means an event of the excluded part here, not the one before it"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * WHERE A ; B", []),
        ("SELECT * WHERE A FILTER A.v > 5 AND A.v < 3", [(NEVER, 25)]),
        ("SELECT * WHERE A ; (B FILTER B.v = 1 AND B.v = 2)", [(NEVER, 30)]),
        ("SELECT * WHERE A OR (B FILTER B.v = 1 AND B.v = 2)", [(PART, 31)]),
        ("SELECT * WHERE A ; B ; C WITHIN 2 EVENTS", [(NEVER, 16)]),
        ("SELECT * WHERE (A ; B ; C) WITHIN 3 EVENTS", []),
        ("SELECT * WHERE A AND B", [(NEVER, 16)]),
        ("SELECT * WHERE (A AND B) OR C", [(PART, 17)]),
        # What other conditions say does not matter.
        ("SELECT * WHERE (A AS x ; B AS y) FILTER x.v > y.v AND x.v > 5 AND x.v < 3 WITHIN 1 HOUR", [(NEVER, 41)]),
        ("SELECT * WHERE A AS x ; (B FILTER B.v > x.v) WITHIN 1 HOUR", []),
        ("SELECT * WHERE A OR B OR (A FILTER A.v > 1)", [(REDUNDANT, 27)]),
        ("SELECT * WHERE A OR A", [(REDUNDANT, 21)]),
        ("SELECT * WHERE A OR A OR A", [(REDUNDANT, 26), (REDUNDANT, 21)]),
        ("SELECT * WHERE (A FILTER A.v > 1) OR (A FILTER A.v <= 1)", []),
        ("SELECT * WHERE (A FILTER A.v > 1) OR (A FILTER A.v <= 1) OR (A FILTER A.v > 0)", [(REDUNDANT, 62)]),
        ("SELECT * WHERE A OR (A AS x)", []),
        # Only the whole shows that a branch adds nothing.
        ("SELECT * WHERE (A+ OR B) ; C", []),
        ("SELECT * WHERE (A+ OR (A ; A))+ ; C", [(REDUNDANT, 24)]),
        ("SELECT * WHERE C UNLESS (A OR (A ; B))", [(BEFORE, 26), (REDUNDANT, 32)]),
        # What is excluded has to fit where it is looked for.
        ("SELECT * WHERE A WITHOUT B", [(NOTHING, 26)]),
        ("SELECT * WHERE A AS a WITHOUT (B AS b FILTER b.k = a.k)", [(NOTHING, 32)]),
        ("SELECT * WHERE (A : B) WITHOUT C", [(NOTHING, 32)]),
        ("SELECT * WHERE (A ; B) WITHOUT C", []),
        ("SELECT * WHERE (A ; B) WITHOUT (C ; C) WITHIN 3 EVENTS", [(NOTHING, 33)]),
        ("SELECT * WHERE (A ; B) WITHOUT (C ; C) WITHIN 4 EVENTS", []),
        ("SELECT * WHERE START(A) UNLESS B", [(NOTHING, 32)]),
        ("SELECT * WHERE C ; (A WITHOUT B)", [(NOTHING, 31)]),
        ("SELECT * WHERE A UNLESS B WITHIN 5 EVENTS", [(BEFORE, 25)]),
        ("SELECT * WHERE A AS a UNLESS (B AS b FILTER b.k = a.k)", [(BEFORE, 31)]),
        ("SELECT * WHERE C ; (A UNLESS B)", []),
        ("SELECT * WHERE (A AS a ; EVENT AS e) UNLESS (B AS b FILTER b.k = a.k)", [(ANY, 46)]),
        ("SELECT * WHERE (A AS a ; EVENT AS e FILTER e.k = 1) UNLESS (B AS b FILTER b.k = a.k)", []),
        ("SELECT * WHERE (A AS a ; C) WITHOUT (B AS b ; B AS a FILTER b.k = a.k)", [(AGAIN, 67)]),
        # Unknown, too large, no kinds that fit: nothing is said.
        ("SELECT * WHERE A FILTER A.s REGEXP 'a' AND A.s NOT LIKE '%a%'", []),
        ("SELECT * WHERE A FILTER A.v > 1 AND A.v = 'x'", []),
    ],
)
def test_warnings(text, expected):
    assert warned(text) == expected


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("[a = 1] AS x . [b = 2]", [16]),
        ("[a = 1] AS x . [b = 2] MARK", []),
        ("[a = 1] AS x . [b = 2]*", []),
        ("[a = 1]* . ([b = 2] AS x . [c = 3]+ | [TRUE])", [28, 39]),
        ("[a = 1] AS x . ([b = 2] | [c = 3] AS y)", []),
        ("any([a = 1] AS x INTO r, [b = r.b])", [26]),
        ("next([a = 1] AS x INTO r, [b = r.b]) WITHIN 5 EVENTS", [27]),
        ("unordered([a = 1] AS x, [b = 2])", []),
        ("([a = 1] AS x . [TRUE]) & ([a = 1] AS x . [TRUE] AS y)", [17]),
        ("([a = 1] AS x . !([b = 2] . [c = 3]) . [TRUE]) WITHIN 5 EVENTS", [40]),
        ("([a = 1] AS x . !([b = 2] . [c = 3])) WITHIN 5 EVENTS", []),
    ],
)
def test_expressions_that_never_end_with_a_mark(text, columns):
    found = [place for reason, place in warned(text, language="sremo") if reason == NEVER]
    assert found == columns


def test_warnings_regard_the_schema():
    text = "SELECT * WHERE A FILTER A.v > 1 AND A.v < 2"
    assert warned(text) == []
    assert warned(text, cerflow.Schema(pa.schema({"type": pa.string(), "v": pa.int64()}))) == [(NEVER, 25)]


def test_variables_that_are_bound_twice_never_match():
    assert warned("SELECT * WHERE A AS x ; B AS x", reading="first-order") == [(NEVER, 16)]
    assert warned("SELECT * WHERE A AS x ; B AS x") == []


def test_warnings_show_the_place():
    (warning,) = cerflow.parse("SELECT *\nWHERE A FILTER A.v > 5 AND A.v < 3").warnings()
    assert isinstance(warning, UserWarning)
    assert str(warning) == (
        "line 2, column 16: this query can never match\nWHERE A FILTER A.v > 5 AND A.v < 3\n               " + "^" * 19
    )


def test_large_queries_are_not_looked_into():
    choice = " OR ".join(f"(A FILTER A.v > {k})" for k in range(400))
    assert warned(f"SELECT * WHERE {choice}") == []


def test_a_stored_truth_value_may_hold_a_choice():
    found = cerflow.satisfiable("(B AS x FILTER x.s IS NULL) ; (A AS y FILTER CASE WHEN x.s IS NULL THEN x.v END < 2)")
    assert found.verdict is None
    assert "CASE WHEN" in found.reason


#: Formulas, and whether they have all complex events, with their labels and by positions alone.
UNIVERSAL = [
    ("EVENT+", True, True),
    ("A+", False, False),
    ("EVENT AS x", False, False),
    ("EVENT+ AS x", False, True),
    ("(EVENT OR EVENT AS x)+", True, True),
    ("(A OR NOT(A))+", True, True),
    ("A OR EVENT ; EVENT+", False, False),
    ("EVENT OR EVENT ; EVENT+", True, True),
    ("EVENT OR (EVENT ; EVENT)+", False, False),
    ("(EVENT OR (EVENT ; EVENT)) WITHIN 2 EVENTS", True, True),
    ("(EVENT OR (EVENT : EVENT)) WITHIN 3 EVENTS", False, False),
    ("MAX(EVENT+)", False, False),
    ("(A FILTER A.v > 1) OR (A FILTER A.v <= 1) OR NOT(A) OR EVENT ; EVENT+", False, False),
]


@pytest.mark.parametrize(("text", "with_labels", "alone"), UNIVERSAL)
def test_universality_is_that_of_the_definitions(text, with_labels, alone):
    """All complex events of all streams of up to three events, by the semantics."""
    verdicts = cerflow.universal(text), cerflow.universal(text, output="positions")
    assert [verdict.verdict for verdict in verdicts] == [with_labels, alone]
    query = cerflow.parse(f"SELECT * WHERE {text}")
    bound = int(text.split()[-2]) if "WITHIN" in text else 3
    names = [frozenset(), frozenset("x")] if "AS x" in text else [frozenset()]
    lacking = {"labels": False, "positions": False}
    for types, values in product(product("AZ", repeat=3), product((None, 1, 2), repeat=3)):
        events = pa.Table.from_pylist([{"type": t, "v": v} for t, v in zip(types, values)])
        found = {
            tuple((e["position"], frozenset(e["labels"])) for e in m["events"])
            for m in query.match(events, runner="semantics").to_pylist()
            if m["detected_at"] == 2
        }
        supports = {tuple(place for place, _ in match) for match in found}
        for earlier in subsets((0, 1)):
            places = (*earlier, 2)
            if places[-1] - places[0] >= bound:
                continue
            lacking["positions"] |= places not in supports
            for extra in product(names, repeat=len(places)):
                match = tuple((place, frozenset(types[place]) | more) for place, more in zip(places, extra))
                lacking["labels"] |= match not in found
    assert lacking == {"labels": not with_labels, "positions": not alone}


def subsets(places):
    return [some for n in range(len(places) + 1) for some in combinations(places, n)]


def test_universality_with_conditions_between_events_is_decided_within_a_window():
    pytest.importorskip("z3", reason="the extra 'decide' is not installed")
    same, other = (f"((EVENT AS x ; EVENT AS y) FILTER {c})" for c in ("x.v = y.v", "x.v > y.v"))
    verdict = cerflow.universal(f"(EVENT OR {same} OR {other}) WITHIN 2 EVENTS", output="positions")
    assert verdict.verdict is False
    assert verdict.complex_event == {("•", 0), ("•", 1)}
    assert verdict.detected_by is None
    assert cerflow.universal(f"(EVENT OR {same} OR (EVENT ; EVENT)) WITHIN 2 EVENTS", output="positions")


def test_universality_in_the_first_order_reading_is_of_positions():
    assert cerflow.universal("A AS x", reading="first-order").complex_event == {("•", 0)}
    assert cerflow.universal(cerflow.parse("SELECT * WHERE A AS x", reading="first-order")).verdict is False


def test_universality_of_many_labels_is_refused():
    text = " OR ".join(f"EVENT AS x{k}" for k in range(7))
    with pytest.raises(cerflow.UnsupportedQueryError, match="7 labels") as caught:
        cerflow.universal(text)
    assert "positions" in caught.value.hint
    assert cerflow.universal(text, output="positions").verdict is False
    with pytest.raises(cerflow.CerflowError, match="output"):
        cerflow.universal("A", output="names")
