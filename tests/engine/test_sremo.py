"""SREMO in the engine: the matches of the definition, for random expressions, examples and errata of the papers."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow.automata import compile_sremo
from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches as matches_of_runs
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.builder import label, read, select, this, window
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.language.sremo import Complement, NextMatch, Windowed
from cerflow.theory.semantics.sremo import sremo_matches
from support.conformance import assert_conforms, table_of
from support.generators.sremo import OPERATORS, expressions, streams, windowed_expressions
from support.golden import SREMO_CASES, at_end, rows
from support.runners import ENGINE_RUNNERS, RUNNERS, complex_events, examples, supports

COLUMNS = {"type": pa.string(), "t": pa.int64(), "v": pa.int64(), "n": pa.int64()}


def query_of(expression):
    try:
        return cerflow.Query(expression)
    except QueryError:
        assume(False)


def drawn(data, depth, operator=None):
    """An expression that has a meaning and can be evaluated, its query, events, and its matches in them."""
    expression = data.draw(windowed_expressions(depth, operator))
    query = query_of(expression)
    rows = data.draw(streams())
    try:
        query.plan(cerflow.Schema(table_of(rows, COLUMNS).schema, "type", "t"))
    except UnsupportedQueryError:
        # Nothing else is refused.
        assert any(isinstance(n, Complement | NextMatch) for n in walk(expression))
        assume(False)
    expected = sremo_matches(expression, Stream.from_dicts(rows, time="t"))
    event("matching" if expected else "not matching")
    return query, rows, expected


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
@given(data=st.data())
@examples(15)
def test_engine_conforms_to_the_definition(operator, data):
    query, rows, expected = drawn(data, 3, operator)
    for name, run in ENGINE_RUNNERS.items():
        found = run(query, table_of(rows, COLUMNS), time="t")
        assert complex_events(found) == expected, name
        assert len(found) == len(expected), name


@given(data=st.data())
@examples(60)
def test_automata_conform_to_the_definition(data):
    query, rows, expected = drawn(data, 3)
    transducer = compile_formula(query.tree.formula)
    assert matches_of_runs(transducer, Stream.from_dicts(rows, time="t"), reporting=True) == expected


QUERIES = [
    "SELECT * WHERE SREMO({}) PARTITION BY v WITHIN 4 EVENTS",
    "SELECT NEXT * WHERE SREMO({}) AS y PARTITION BY type WITHIN 3 MILLISECONDS",
    "SELECT LAST BY y * WHERE SREMO({}) AS y",
    "SELECT MAX NONE WHERE SREMO({})",
    "SELECT ANY * WHERE SREMO({}) CONSUME BY ANY",
    "SELECT COUNT(*) WHERE SREMO({}) PARTITION BY type LIMIT 2",
    "SELECT * WHERE A ; SREMO({}) WITHIN 5 EVENTS",
    "SELECT * WHERE (SREMO({}) AS y : B) FILTER y.v > B.v",
    "SELECT * WHERE SREMO({})+ : EVENT",
    "SELECT * WHERE (NEXT(SREMO({})) OR A) AND SREMO({})",
    "SELECT * WHERE START(SREMO({})) ALL STRICT(SREMO({}))",
    "SELECT * WHERE (EVENT AS a ; EVENT AS b) UNLESS SREMO({})",
    "SELECT * WHERE (EVENT AS a ; EVENT AS b) WITHOUT SREMO({}) FILTER a.v > 0",
    "SELECT * WHERE A NOT FOLLOWED BY SREMO({}) FOR 2 MILLISECONDS",
    "SELECT * WHERE SREMO({}) NOT FOLLOWED BY B FOR 2 EVENTS",
]


@pytest.mark.parametrize("text", QUERIES)
@given(data=st.data())
@examples(8)
def test_expressions_in_queries_conform_to_the_definition(text, data):
    shown = [show(data.draw(windowed_expressions(2))) for _ in range(text.count("{}"))]
    try:
        query = cerflow.parse(text.format(*shown))
        rows = data.draw(streams())
        query.plan(cerflow.Schema(table_of(rows, COLUMNS).schema, "type", "t"))
    except (QueryError, UnsupportedQueryError):
        assume(False)
    assert cerflow.parse(show(query.tree)).tree == query.tree
    assert_conforms(query, table_of(rows, COLUMNS), ENGINE_RUNNERS)


@pytest.mark.parametrize("case", SREMO_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("runner", RUNNERS)
def test_worked_examples(case, runner):
    query = cerflow.parse(case.query, language="sremo")
    assert supports(RUNNERS[runner](query, pa.Table.from_pylist(list(case.stream)))) == case.expected


def streamed(text, events):
    """The matches that all runners find."""
    query = cerflow.parse(text, language="sremo")
    found = [supports(run(query, pa.Table.from_pylist(list(events)))) for run in RUNNERS.values()]
    assert found == [found[0]] * len(found)
    return found[0]


def test_11_1_streaming_begins_anywhere():
    assert streamed("[type = 'a'] MARK", rows("xa")) == at_end("1")


def test_11_1_atoms_on_empty_registers():
    optional = "[type = 'A'] AS x . ([type = 'B'] INTO r)? . [type = 'C' AND {}] AS y"
    stream = rows("ACABC", v=[1, 1, 1, 1, 1])
    assert streamed(optional.format("v = r.v"), stream) == at_end("24")
    assert streamed(optional.format("NOT v = r.v"), stream) == at_end("01")
    assert streamed(optional.format("(v = r.v OR v = 1)"), stream) == at_end("01", "24")
    assert streamed(optional.format("NOT (v = r.v OR v = 2)"), stream) == at_end("01")
    # What is null is unknown: neither the atom holds nor its negation.
    stream = rows("ACABC", v=[1, 1, 1, None, 1])
    assert streamed(optional.format("v = r.v"), stream) == set()
    assert streamed(optional.format("NOT v = r.v"), stream) == at_end("01")


def test_11_2_a_match_ends_with_a_marked_event():
    assert streamed("[type = 'a'] MARK . [type = 'b']", rows("ab")) == set()
    assert streamed("[type = 'a'] MARK . [type = 'b'] MARK?", rows("ab")) == at_end("0", "01")


def test_11_3_writes_of_different_branches_are_kept_apart():
    expression = (
        "[type = 'a'] MARK INTO r2 . ([type = 'b'] MARK INTO r1 . [id = r2.id] MARK "
        "| [type = 'b'] MARK INTO r2 . [type = 'c' AND id = r1.id] MARK)"
    )
    assert streamed(expression, rows("abx", id=[1, 2, 1])) == at_end("012")
    assert streamed(expression, rows("abx", id=[1, 2, 2])) == set()


def test_11_5_registers_are_not_reset():
    expression = "([NOT type = r.type] MARK INTO r)+"
    assert streamed(expression, rows("aab")) == at_end("0", "1", "12", "2")
    assert streamed(expression, rows("aba")) == at_end("0", "1", "01", "2", "12", "012")


def test_11_7_next_of_several_events_is_not_found_across_pieces():
    expression = "next([type = 'a'] MARK, [type = 'b'] MARK . [type = 'c'] MARK) WITHIN 9 EVENTS"
    assert streamed(expression, rows("abcbc")) == at_end("012")
    assert streamed(expression, rows("abxbc")) == at_end("034")
    repeated = "([type = 'a'] MARK . (!([type = 'b']))* . [type = 'b'] MARK) WITHIN 9 EVENTS"
    assert streamed(repeated, rows("abbb")) >= at_end("03")


def test_11_7_what_is_skipped_sees_the_registers():
    expression = "next([type = 'a'] MARK INTO r, [type = 'b' AND v = r.v] MARK)"
    assert streamed(expression, rows("abbb", v=[1, 2, 1, 1])) == at_end("02")


def test_11_15_a_register_that_a_branch_does_not_write_keeps_its_event():
    expression = "[type = 'a'] MARK INTO r . ([type = 'b'] MARK INTO r)? . [v = r.v] MARK"
    assert streamed(expression, rows("abc", v=[1, 2, 2])) == at_end("012")
    assert streamed(expression, rows("ac", v=[1, 1])) == at_end("01")


def test_each_side_of_an_intersection_has_its_own_registers():
    left = "[TRUE] MARK INTO r . [TRUE] MARK . [v = r.v] MARK"
    right = "[TRUE] MARK . [v = q.v] MARK . [TRUE] MARK"
    expression = f"[type = 'a'] INTO q, r . ([TRUE] MARK . [v = r.v] MARK INTO q . [TRUE] MARK & ({left}))"
    # Both sides read what was there before the intersection, until they write themselves.
    assert streamed(expression, rows("abbb", v=[1, 2, 1, 2])) == at_end("123")
    assert streamed(expression, rows("abbb", v=[1, 2, 2, 2])) == set()
    both = f"[type = 'a'] INTO q . (({left}) & ({right})) . [v = r.v AND v = q.v] MARK"
    assert streamed(both, rows("abbbb", v=[1, 1, 1, 1, 1])) == at_end("1234")
    assert streamed(both, rows("abbbb", v=[1, 2, 1, 2, 1])) == set()


def test_complement_keeps_the_registers_and_reads_those_outside():
    expression = (
        "([type = 'a'] MARK INTO r . !([TRUE]* . [v > r.v] INTO r . [TRUE]*) . [type = 'c' AND v = r.v] MARK) "
        "WITHIN 5 EVENTS"
    )
    assert streamed(expression, rows("abbc", v=[2, 1, 2, 2])) == at_end("03")
    assert streamed(expression, rows("abbc", v=[2, 3, 2, 2])) == set()


def test_complement_with_registers_of_its_own():
    expression = "([type = 'a'] MARK . !([TRUE]* . [TRUE] INTO s . [TRUE]* . [v = s.v] . [TRUE]*) . [type = 'c'] MARK)"
    expression += " WITHIN 10 EVENTS"
    assert streamed(expression, rows("abbbc", v=[0, 1, 2, 3, 1])) == at_end("04")
    assert streamed(expression, rows("abbbc", v=[0, 1, 2, 1, 1])) == set()


def test_predicates_over_registers(predicate):
    predicate("near", compile=False)(lambda x, y: abs(x["v"] - y["v"]) < 2)
    expression = "[type = 'a'] MARK INTO r . [TRUE]* . [near(EVENT, r)] MARK"
    assert streamed(expression, rows("abb", v=[1, 5, 2])) == at_end("02")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a = 1] MARK . !([b = 2] INTO r . [TRUE]* . [b = r.b]) . [c = 3] MARK", "'!' needs a window here"),
        ("next([a = 1] MARK, [b = 2] MARK INTO r . [TRUE]* . [c > r.c] MARK)", "'!' needs a window here"),
        (f"unordered({', '.join(['[a = 1] MARK'] * 7)})", "unordered() of 7 operands has too many orders"),
    ],
)
def test_what_cannot_be_evaluated(text, said):
    query = cerflow.parse(text, language="sremo")
    with pytest.raises(UnsupportedQueryError) as raised:
        query.match([{"type": "A", "a": 1, "b": 1, "c": 1}])
    assert said in str(raised.value)
    assert raised.value.line == 1
    assert raised.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "([v > 1] MARK INTO r & [v < 2] MARK INTO r) . [v = r.v] MARK",
            "both sides of which write it: .v > 1. MARK INTO r",
        ),
        ("[v > 1] MARK INTO r . [sum(r.v) > 1] MARK", "a register holds one event"),
        ("[increasing(v)] MARK", "increasing aggregates several events.*\n.*\n.*\nIn CEQL"),
    ],
)
def test_what_has_no_meaning(text, said):
    with pytest.raises(QueryError, match=said):
        cerflow.parse(text, language="sremo")


def test_queries_of_sremo():
    text = "[type = 'T'] AS hot . [type = 'H'] AS dry WITHIN 3 EVENTS"
    query = cerflow.parse(text, language="sremo")
    assert repr(query) == f"<Query SELECT * WHERE SREMO({text})>"
    assert cerflow.parse(f"SELECT * WHERE SREMO({text})").tree == query.tree
    assert query.language == "sremo"
    built = cerflow.Query(cerflow.parse_sremo(text))
    assert built.tree == query.tree
    assert cerflow.parse("SELECT * WHERE T").language == "ceql"
    with pytest.raises(ValueError, match="first-order"):
        cerflow.parse(text, language="sremo", reading="first-order")
    with pytest.raises(ValueError, match="language must be"):
        cerflow.parse(text, language="cepl")
    recognizer = query.recognizer(pa.schema([("type", pa.string())]))
    recognizer.push({"type": "T"})
    with pytest.raises(cerflow.SnapshotError, match="another query"):
        cerflow.Recognizer.restore(cerflow.parse("SELECT * WHERE T ; H"), recognizer.snapshot())
    restored = cerflow.Recognizer.restore(built, recognizer.snapshot())
    assert restored.push({"type": "H"}).to_pylist()[0]["events"][1]["labels"] == ["dry"]


def test_long_sequences():
    text = " . ".join(f"[v = {k % 7}] MARK" for k in range(400))
    events = [{"type": "a", "v": k % 7} for k in range(410)]
    assert cerflow.parse(text, language="sremo").match(events).count() == 2


def test_sremo_and_formulas_can_be_compared():
    first = cerflow.parse("any([type = 'A'] AS x, [type = 'B'] AS y)", language="sremo")
    second = cerflow.parse_formula("PROJECT x, y (A AS x ; B AS y)")
    assert cerflow.equivalent(first, second)
    assert not cerflow.equivalent(cerflow.parse("[type = 'A'] AS x . [type = 'B'] AS y", language="sremo"), second)


def test_complements_that_remember_many_events():
    """Collections are cleaned up on the way; what they hold must survive that."""
    random = np.random.default_rng(3)
    types, values = random.choice(list("ABBCD"), 8_000), random.integers(0, 400, 8_000)
    text = (
        "([type = 'A'] AS x INTO r . "
        "!([TRUE]* . [type = 'B' AND v > r.v] INTO s . [TRUE]* . [type = 'B' AND v = s.v] . [TRUE]*) . "
        "[type = 'C'] AS z) WITHIN 60 EVENTS"
    )
    expected = set()
    for start in np.flatnonzero(types == "A"):
        seen: set[int] = set()
        for end in range(start + 1, min(start + 60, len(types))):
            if types[end] == "C":
                expected.add((end, frozenset((start, end))))
            if types[end] == "B" and values[end] > values[start]:
                if values[end] in seen:
                    break
                seen.add(values[end])
    table = pa.table({"type": types.tolist(), "v": values})
    found = cerflow.parse(text, language="sremo").match(table)
    assert {(row["detected_at"], frozenset(e["position"] for e in row["events"])) for row in found} == expected


def test_a_query_around_an_expression():
    """In Python an expression can stand in a query: here each key for itself, and detections without events."""
    pattern = read(this.type == "A").label("x").into("r") >> read(this.v > label("r").v).label("y")
    table = pa.table({"type": list("AABBBA"), "v": [1, 5, 4, 6, 7, 9], "k": [0, 1, 0, 1, 0, 0]})
    query = cerflow.Query(select(pattern, partition_by=["k"]))
    assert query.language == "ceql"
    for run in RUNNERS.values():
        assert supports(run(query, table)) == {(2, frozenset({0, 2})), (3, frozenset({1, 3}))}
    detections = cerflow.Query(select(pattern, partition_by=["k"], events=False))
    assert [row["detected_at"] for row in detections.match(table).to_pylist()] == [2, 3]
    bounded = cerflow.Query(select(pattern, within=window(events=1)))
    assert bounded.match(table).count() == 0
    # A window around the query is one around the expression, too.
    repeated = read(this.v >= 4).into("r") >> read().star() >> read(this.v == label("r").v)
    denied = read(this.type == "A").mark() >> ~repeated >> read(this.v == 7).mark()
    with pytest.raises(UnsupportedQueryError, match="needs a window here"):
        cerflow.Query(select(denied)).match(table)
    assert cerflow.Query(select(denied, within=window(events=9))).match(table).count() == 2


def test_what_never_matches_is_said_where_nothing_is_found(recwarn):
    table = [{"type": "A", "v": 1}, {"type": "B", "v": 2}]
    for text, said in [
        ("SREMO([v > r.v] MARK INTO s)", ["register 'r' is read but never written", "can never match"]),
        ("SREMO([v > 1] MARK . [TRUE])", ["marks nothing; put MARK"]),
        ("A{3} WITHIN 2 EVENTS", ["can never match"]),
        ("NEXT(A AS x FILTER x.v > 5 AND x.v < 3)", ["can never match"]),
        ("(A ; B) UNLESS NEXT(B ; A) WITHIN 1 EVENTS", ["can never match"]),
        ("A ; B ; A", []),
        ("SREMO([NOT v > r.v] MARK)", []),
    ]:
        query = cerflow.parse(f"SELECT * WHERE {text}")
        for _ in range(2):
            query.match(table).count()
        found = [str(warning.message) for warning in recwarn]
        assert len(found) == len(said)
        assert all(part in one for part, one in zip(said, found)), found
        recwarn.clear()
    assert "never written" in str(cerflow.parse("SELECT * WHERE SREMO([NOT v > r.v] MARK)").warnings()[0])
    near = cerflow.parse("[TRUE] MARK INTO first . [v > frist.v] MARK", language="sremo").warnings()
    assert "did you mean 'first'?" in str(near[0])


def test_a_complement_without_registers_needs_no_window():
    text = "[type = 'b'] MARK . ![type = 'b'] . [type = 's'] MARK"
    assert streamed(text, rows("bsbbsxbbxs")) == at_end("01", "04", "34", "09", "29", "39", "69", "79")
    assert streamed("next([type = 'a'] MARK, [type = 'b'] MARK . [type = 'c'] MARK)", rows("abxbcbc")) == at_end("034")
    outside = "[type = 'a'] MARK INTO r . !([TRUE]* . [v > r.v] . [TRUE]*) . [type = 'c'] MARK"
    assert streamed(outside, rows("aabc", v=[1, 2, 2, 1])) == at_end("13")
    related = "next([type = 'a'] MARK, [TRUE] MARK INTO r . [TRUE] . [v = r.v] MARK)"
    assert streamed(related, rows("abbbb", v=[0, 1, 2, 3, 2])) == at_end("024")


def test_both_sides_of_an_intersection_may_write_one_register():
    left, right = (
        "[TRUE] MARK INTO r . [TRUE] MARK . [v = r.v] MARK",
        "[TRUE] MARK . [TRUE] MARK INTO r . [v > r.v] MARK",
    )
    both = f"({left}) & ({right})"
    assert streamed(both, rows("abc", v=[2, 1, 2])) == at_end("012")
    assert streamed(both, rows("abcd", v=[2, 3, 2, 3])) == at_end("123")
    # Before it writes, each side reads what was there.
    held = "[type = 'a'] INTO r . ([v = r.v] MARK INTO r . [v > r.v] MARK & [v = r.v] MARK . [v > r.v] MARK INTO r)"
    assert streamed(held, rows("abc", v=[1, 1, 2])) == at_end("12")
    assert streamed(held, rows("abc", v=[1, 2, 2])) == set()


@given(data=st.data())
@examples(40)
def test_engine_and_transducers_of_the_papers_accept_the_same(data):
    expression = data.draw(expressions(3))
    try:
        compile_sremo(expression)
        refused = None
    except (QueryError, UnsupportedQueryError) as error:
        refused = error
    assume(refused is None or "too large" not in str(refused))
    event("accepted" if refused is None else "refused")
    try:
        cerflow.Query(expression).check()
    except (QueryError, UnsupportedQueryError) as error:
        assume("marks no event" not in str(error))
        assert refused is not None
    else:
        assert refused is None or "written by the other one" in str(refused) or windows_in(expression)


def windows_in(expression):
    return any(isinstance(n, Windowed) for n in walk(expression))
