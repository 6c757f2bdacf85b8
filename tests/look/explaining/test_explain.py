"""Explanations: true to what is compiled, the same keys for programs, readable text, and never a failure."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow import Query, QueryError, Schema
from cerflow.engine.recognize.planning import compile_select
from support.generators.conditions import Fragment
from support.generators.selects import selects
from support.golden import PHI1, PHI4, STRATEGY_TABLE
from support.runners import examples

QUERY = """SELECT high, low[price] FROM stocks
WHERE (SELL AS high ; (BUY AS low FILTER low.price < high.price AND (low.volume > 10 OR low.name = 'A'))+ ; SELL AS z)
    FILTER z.price + low.price > 3
PARTITION BY name WITHIN 30 SECONDS LIMIT 5"""
COLUMNS = pa.schema(
    [
        ("type", pa.string()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("volume", pa.int64()),
        ("junk", pa.string()),
        ("t", pa.timestamp("ms")),
    ]
)
SCHEMA = Schema(COLUMNS, "type", "t")
KEYS = {
    "query",
    "reading",
    "evaluable",
    "unsupported",
    "formula",
    "event_types",
    "other_events",
    "attributes",
    "labels",
    "filters",
    "keys_kept",
    "values_kept",
    "select",
    "window",
    "automaton",
    "recognition",
    "evaluation",
    "relevant_events",
    "spark",
    "threads",
}


def facts(text, schema=None, **options):
    return json.loads(cerflow.parse(text, **options).explain("json", schema))


def test_what_the_query_says():
    found = facts(QUERY)
    assert set(found) == KEYS
    assert found["evaluable"] is True
    assert found["unsupported"] is None
    assert found["event_types"] == ["BUY", "SELL"]
    assert found["attributes"] == ["name", "price", "volume"]
    assert {e["label"]: (e["least"], e["most"]) for e in found["labels"]} == {
        "BUY": (1, None),
        "SELL": (2, 2),
        "high": (1, 1),
        "low": (1, None),
        "z": (1, 1),
    }
    inner, outer = found["filters"]
    assert inner["clauses"] == [["low.price < high.price"], ["low.volume > 10", "low.name = 'A'"]]
    assert list(inner["bound_outside"]) == ["high"]
    assert inner["bound_outside"]["high"].startswith("SELL AS high ; ")
    assert outer["bound_outside"] == {}
    assert found["select"]["partition"] == [["name"]]
    assert found["select"]["limit"] == 5
    assert found["select"]["labels_kept"] == ["high", "low"]
    assert "of the events reported, those with high, low, not of the whole match" in cerflow.parse(QUERY).explain()


def test_the_automaton_is_the_one_that_is_evaluated():
    query = cerflow.parse(QUERY)
    transducer = compile_select(query.tree)
    automaton = facts(QUERY)["automaton"]
    assert automaton["states"] == transducer.states
    assert len(automaton["transitions"]) == len(transducer.transitions)
    assert [r["keeps"] for r in automaton["registers"]] == [str(r.keeps) for r in transducer.registers]
    assert automaton["unambiguous"] is True
    assert automaton["determinized_from"] is None
    assert query.explain("dot").startswith("digraph transducer {")
    assert query.explain("dot").count(" -> q") == len(transducer.transitions) + 1


def test_how_each_match_comes_once():
    text = "SELECT * WHERE (A ; A) OR (A ; A FILTER A.v > 0)"
    automaton = facts(text)["automaton"]
    assert automaton["unambiguous"] is True
    assert automaton["determinized_from"] == {"states": 4}
    assert "determinised on its outputs (before: 4 states, ambiguous)" in cerflow.parse(text).explain()
    text = "SELECT y WHERE A AS x ; B AS y"
    automaton = facts(text)["automaton"]
    assert automaton["unambiguous"] is False
    assert automaton["determinized_from"] is None
    assert "joined at run time" in cerflow.parse(text).explain()


def test_how_windows_are_enforced():
    assert facts("SELECT * WHERE A ; B WITHIN 5 EVENTS")["window"] == {
        "window": "5 EVENTS",
        "enforced_by": "match graph",
        "inner": [],
    }
    # The first and the last event of the formula are not reported.
    assert facts("SELECT x WHERE A ; B AS x ; C WITHIN 5 EVENTS")["window"]["enforced_by"] == "register"
    hoisted = facts("SELECT * WHERE (A ; (B ; C WITHIN 2 EVENTS) WITHIN 5 EVENTS)")
    assert hoisted["window"] == {"window": "5 EVENTS", "enforced_by": "match graph", "inner": ["2 EVENTS"]}
    assert hoisted["formula"]["compiled"] == "A ; (B ; C WITHIN 2 EVENTS)"
    assert facts("SELECT * WHERE A")["window"] is None


def test_what_is_pushed_where():
    found = facts(QUERY, SCHEMA)["evaluation"]
    tests = {e["test"]: e["per"] for e in found["tests"]}
    assert tests["type = SELL"] == tests["type = BUY"] == "distinct value of type"
    assert tests["volume > 10 OR name = 'A'"] == "event"
    assert {"expression": "price", "type": "float64"} in found["expressions"]
    kinds = {e["atom"]: e["as"] for e in found["atoms"]}
    assert {kinds[a] for a in kinds if a.startswith("price < r")} == {"comparison"}
    assert {kinds[a] for a in kinds if "each r" in a} == {"program"}
    # A label that is listed without attributes shows all of them.
    assert found["columns"] == {
        "recognition": ["type", "name", "price", "volume", "t"],
        "results": ["type", "name", "price", "volume", "junk", "t"],
        "unused": [],
    }
    narrow = facts("SELECT x[price] WHERE A AS x FILTER x.volume > 1", SCHEMA)
    assert narrow["evaluation"]["columns"]["unused"] == ["name", "junk"]
    assert narrow["spark"]["columns"] == ["type", "price", "volume", "t"]
    without = facts(QUERY)["evaluation"]
    assert [e["test"] for e in without["tests"]]
    assert {e["per"] for e in without["tests"]} == {None}
    assert without["columns"] is None


@pytest.mark.parametrize(
    ("clause", "parallel"),
    [
        ("", "one ordered task"),
        ("PARTITION BY name", "by key"),
        ("PARTITION BY name CONSUME BY PARTITION", "by key"),
        ("PARTITION BY name CONSUME BY ANY", "one ordered task"),
    ],
)
def test_what_spark_does(clause, parallel):
    for schema in (None, SCHEMA):
        found = facts(f"SELECT * WHERE A ; B {clause}", schema)["spark"]
        assert found["parallel"] == parallel
    assert facts("SELECT * WHERE A AS x FILTER position(x) > 2", SCHEMA)["spark"]["positions_read"] is True


def test_spark_plans_as_explained():
    pytest.importorskip("pyspark")
    from cerflow.spark.frames.plan import make_plan

    texts = (QUERY, "SELECT * WHERE A ; B", "SELECT * WHERE A ; B PARTITION BY name CONSUME BY ANY")
    for text in (
        *texts,
        "SELECT * WHERE A ; B WITHIN 5 SECONDS",
        "SELECT * WHERE A ; B PARTITION BY name WITHIN 9 EVENTS",
    ):
        query = cerflow.parse(text)
        plan = make_plan(query, COLUMNS, type="type", time="t", sequence=None, stream=None, positions=False)
        found = json.loads(query.explain("json", SCHEMA))["spark"]
        assert (found["parallel"] == "by key") is plan.by_key
        assert found["slices"] == (None if plan.division.window is None else plan.division.reason)
        assert ("in slices of the stream where its order" in query.explain(schema=SCHEMA)) is (
            found["slices"] is not None
        )
        assert tuple(found["columns"]) == plan.needed


def test_text_is_laid_out_for_people():
    for schema in (None, SCHEMA):
        text = cerflow.parse(QUERY).explain(schema=schema)
        headings = [line for line in text.splitlines() if line and not line.startswith(" ")]
        assert headings[:6] == ["Query", "Formula", "Labels", "Filters", "Selection", "Automaton"]
        assert headings[6:] == ["Recognition", "Evaluation", "Events that matter", "With threads", "On Spark"]
        assert max(map(len, text.splitlines())) <= 104
        assert text == text.strip()
        assert "one must hold: low.volume > 10 | low.name = 'A'" in text
        assert "q0 → q0  TRUE | ∅" in text


def test_long_lists_are_cut_in_text_only():
    query = cerflow.parse(f"SELECT * WHERE {' ; '.join(f'A AS x{k}' for k in range(200))}")
    assert "and 360 more transitions" in query.explain()
    assert len(query.explain().splitlines()) < 400
    assert len(json.loads(query.explain("json"))["automaton"]["transitions"]) == 400


def test_the_first_order_reading_shows_what_is_compiled():
    found = facts("SELECT * WHERE (A AS x ; B AS y) OR (A AS x ; A AS x)", reading="first-order")
    assert found["reading"] == "first-order"
    assert found["formula"]["rewritten"] is True
    assert found["formula"]["compiled"] == "A AS x ; B AS y"
    assert facts(f"SELECT * WHERE {PHI4}")["formula"]["rewritten"] is False


@pytest.mark.parametrize(
    ("text", "reason", "column"),
    [
        ("SELECT MAX * WHERE A+ AS x ; B AS b FILTER x.v != b.v", "remember a whole set", 20),
        ("SELECT * WHERE C ; NEXT(A+ AS x ; B AS b FILTER x.v != b.v)", "remember a whole set", 20),
    ],
)
def test_what_cannot_be_evaluated_yet_is_said_plainly(text, reason, column):
    for schema in (None, Schema(pa.schema([("type", pa.string()), ("v", pa.int64())]))):
        found = facts(text, schema)
        assert found["evaluable"] is False
        assert reason in found["unsupported"]["reason"]
        assert (found["unsupported"]["line"], found["unsupported"]["column"]) == (1, column)
        assert found["automaton"] is None
        assert "x" in {e["label"] for e in found["labels"]}
        query = cerflow.parse(text)
        assert "Not evaluable" in query.explain(schema=schema)
        assert query.explain("dot", schema).startswith("digraph")
        assert reason in query.explain("dot", schema)


def test_a_schema_that_does_not_fit_is_an_error():
    with pytest.raises(QueryError, match="line 1"):
        cerflow.parse("SELECT * WHERE A AS x FILTER x.nowhere > 1").explain(schema=SCHEMA)
    with pytest.raises(ValueError, match="'text', 'json', 'dot'"):
        cerflow.parse("SELECT * WHERE A").explain("xml")


@pytest.mark.parametrize("formula", [PHI1, *STRATEGY_TABLE])
def test_worked_examples_are_explained(formula):
    schema = Schema(pa.schema([("type", pa.string()), ("id", pa.int64()), ("value", pa.int64())]))
    for form in ("text", "json", "dot", "mermaid", "svg", "boxes"):
        assert cerflow.parse(f"SELECT * WHERE {formula}").explain(form, schema)


EVERYTHING = Fragment(more=True, aggregates=True)
RANDOM = Schema(
    pa.schema(
        [
            ("type", pa.string()),
            ("t", pa.int64()),
            ("v", pa.int64()),
            ("w", pa.float64()),
            ("s", pa.string()),
            ("k", pa.int64()),
            ("n", pa.int64()),
        ]
    ),
    "type",
    "t",
)


@examples(60)
@given(selects(EVERYTHING, strategies=True), st.sampled_from((None, RANDOM)))
def test_explaining_never_fails(select, schema):
    try:
        query = Query(select)
        found = json.loads(query.explain("json", schema))
    except QueryError:
        return  # a query that is wrong, or does not fit
    assert set(found) == KEYS
    assert query.explain("text", schema)
    if found["evaluable"]:
        query.check(schema)
    assert query.explain("dot", schema).startswith("digraph transducer {")


def test_sremo():
    columns = pa.schema([("type", pa.string()), ("value", pa.float64())])
    text = "next([type = 'T'] MARK INTO r, [value > r.value] AS high) WITHIN 3 EVENTS"
    query = cerflow.parse(text, language="sremo")
    for schema in (None, Schema(columns, "type")):
        found = json.loads(query.explain("json", schema))
        assert set(found) == KEYS
        assert found["query"] == f"SELECT * WHERE SREMO({text})"
        assert found["evaluable"]
        assert found["formula"] == {
            "language": "sremo",
            "written": f"SREMO({text})",
            "compiled": "SREMO([type = 'T'] MARK INTO r . ([TRUE] & ![value > r.value])* . [value > r.value] AS high)",
            "rewritten": True,
        }
        assert found["window"] == {"window": "3 EVENTS", "enforced_by": "match graph", "inner": []}
        assert [r["holds"] for r in found["automaton"]["registers"]] == ["r.value"]
        assert [label["label"] for label in found["labels"]] == ["event", "high"]
        assert query.explain("text", schema).startswith("Query\n  SELECT * WHERE SREMO(next(")
        assert "\nFormula\n  written    SREMO(next(" in query.explain("text", schema)
        assert query.explain("dot", schema).startswith("digraph transducer {")


def test_sremo_that_cannot_be_evaluated():
    query = cerflow.parse("[a = 1] MARK . !([b = 2] INTO r . [TRUE]* . [b = r.b]) . [c = 3] MARK", language="sremo")
    found = json.loads(query.explain("json"))
    assert not found["evaluable"]
    assert found["unsupported"]["reason"].startswith("'!' needs a window here")
    assert "WITHIN" in found["unsupported"]["hint"]
    assert (found["unsupported"]["line"], found["unsupported"]["column"]) == (1, 16)
    assert "Not evaluable" in query.explain()


def test_calls_of_predicates(predicate):
    predicate("close")(lambda a, b: abs(a - b) < 1)
    predicate("odd", vectorized=True)(lambda v: v % 2 == 1)
    predicate("near", compile=False)(lambda x, y: True)
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER odd(x.v) AND close(x.v, y.v) AND near(x, y)")
    shown = query.explain()
    assert "type = A ∧ odd(v) | {A, x}" in shown
    assert "close(r0, v)" in shown
    assert "near(r1, EVENT)" in shown
    columns = pa.schema([("type", pa.string()), ("v", pa.int64()), ("w", pa.list_(pa.int64()))])
    shown = query.explain(schema=Schema(columns))
    assert "odd(v)  (once per event)" in shown
    assert "close(r0, v)  (a small program)" in shown
    assert "near(event from r1.0, EVENT)  (a small program)" in shown


def test_which_events_matter():
    relevant = facts("SELECT * WHERE A AS a ; B FILTER a.price > 3 PARTITION BY name", SCHEMA)["relevant_events"]
    assert relevant == {"condition": "name IS NOT NULL AND (type = B OR type = A AND price > 3)", "reasons": []}
    relevant = facts("SELECT * WHERE A AS a : B")["relevant_events"]
    assert relevant == {"condition": None, "reasons": ["no event may come between some of those of a match"]}
    relevant = facts("SELECT * WHERE A AS a ; B FILTER position(a) > 3", SCHEMA)["relevant_events"]
    assert relevant["condition"] is None
    text = cerflow.parse("SELECT * WHERE A ; B PARTITION BY name WITHIN 4 EVENTS").explain(schema=SCHEMA)
    assert "only those with  name IS NOT NULL" in text
    assert "of these all" in text


CONSECUTIVE = "as consecutive events, on whole columns"


@pytest.mark.parametrize(
    ("formula", "way", "refused", "said"),
    [
        ("A : B", "consecutive", {}, CONSECUTIVE),
        (
            "A ; B",
            "joined",
            {"consecutive": "matches have gaps"},
            "by joining events where few combinations are possible",
        ),
        ("A NOT FOLLOWED BY B FOR 5 MINUTES", "single", {}, "as single events before a deadline, on whole columns"),
        (
            "A ; B+",
            "automaton",
            {
                "consecutive": "matches have gaps",
                "joined": "not all matches have the same number of events, two or more",
            },
            "by the automaton, event by event",
        ),
    ],
)
def test_how_matches_of_a_batch_are_found(formula, way, refused, said):
    query = f"SELECT * WHERE {formula} WITHIN 9 MINUTES" if way != "single" else f"SELECT * WHERE {formula}"
    assert facts(query, SCHEMA)["evaluation"]["scan"]["found"] == {"way": way, "not": refused}
    text = " ".join(cerflow.parse(query).explain(schema=SCHEMA).split())
    assert f"matches are found {said}" in text
    for reason in refused.values():
        assert reason in text


@pytest.mark.parametrize("times", [pa.timestamp("us"), pa.int64()])
def test_durations_are_shown_as_durations(times):
    schema = cerflow.Schema(pa.schema([("type", pa.string()), ("t", times)]), time="t")
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER time(y) - time(x) > 90 SECONDS")
    automaton = query.explain(schema=schema).partition("Automaton")[2]
    assert "> 1 MINUTE 30 SECONDS" in automaton
    assert "90000" not in automaton


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        (
            "A : B",
            ["satisfy none of the 2 conditions under which an event matters", CONSECUTIVE],
        ),
        ("(A AS x : B AS y) FILTER x.price < y.price", [CONSECUTIVE]),
        ("A : B PARTITION BY name", [CONSECUTIVE]),
        (
            "(A AS x : B AS y) FILTER x.name < y.name PARTITION BY name",
            [
                "every event counts",
                "the next event of the same key does not continue",
                f"not {CONSECUTIVE}: a condition that columns cannot decide",
            ],
        ),
        ("(A AS x) :{3} FILTER max(x.price) < 3", [CONSECUTIVE]),
        ("(A AS x) :{4} FILTER stddev(x.price) < 3", [CONSECUTIVE]),
        (
            f"(A AS x) :{{6}} FILTER {' + '.join(f'stddev(x.price + {n})' for n in range(9))} < 3",
            [f"not {CONSECUTIVE}: an aggregate of more than 330 instructions"],
        ),
        ("A ; A", ["those that fail the condition under which an event matters"]),
        ("A ; B", ["satisfy none of the 2 conditions", f"not {CONSECUTIVE}: matches have gaps"]),
    ],
)
def test_which_events_are_left_out_first(formula, said):
    told = " ".join(cerflow.parse(f"SELECT * WHERE {formula}").explain(schema=SCHEMA).split())
    for words in said:
        assert words in told
