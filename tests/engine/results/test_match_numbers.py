"""``MATCH_NUMBER()``: matches numbered in the order of reporting, over pushes and snapshots."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.schema import Schema
from cerflow.builder import event, match_number, select
from cerflow.engine.slices.division import divided
from cerflow.language.parser import parse_query
from cerflow.language.printer import show
from support.runners import ENGINE_RUNNERS

EVENTS = pa.table({"type": list("ABABBAB"), "t": range(7), "k": [1, 1, 2, 2, 1, 1, 2], "v": [1, 2, 3, 4, 5, 6, None]})
QUERIES = (
    "SELECT *, MATCH_NUMBER() AS n WHERE A ; B",
    "SELECT a, match_number() * 2 - 1 AS n WHERE A AS a ; B+",
    "SELECT MATCH_NUMBER() AS n, a.k AS of WHERE A AS a ; B PARTITION BY k",
    "SELECT CASE WHEN b.v > 2 THEN MATCH_NUMBER() END AS n WHERE A ; B AS b LIMIT 1",
    "SELECT MAX MATCH_NUMBER() AS n WHERE A ; B+ WITHIN 4 EVENTS",
    "SELECT MATCH_NUMBER() AS n WHERE A ; B CONSUME BY ANY",
    "SELECT a, MATCH_NUMBER() AS n WHERE (A AS a ; B) NOT FOLLOWED BY A FOR 2 MILLISECONDS PARTITION BY k",
)


def by_event(rows):
    """The numbers of each detecting event, in order: the order of its matches is open."""
    found = {}
    for row in rows:
        found.setdefault(row["detected_at"], []).append(row["n"])
    return {at: sorted(numbers, key=repr) for at, numbers in found.items()}


@pytest.mark.parametrize("runner", ENGINE_RUNNERS)
@pytest.mark.parametrize("text", QUERIES)
def test_conforms(text, runner):
    query = cerflow.parse(text)
    assert parse_query(show(query.tree)) == query.tree
    wanted = query.match(EVENTS, time="t", runner="semantics").to_pylist()
    found = ENGINE_RUNNERS[runner](query, EVENTS, time="t")
    assert wanted
    assert by_event(found) == by_event(wanted)


def test_numbers_begin_with_one_and_have_no_gaps():
    matches = cerflow.parse("SELECT MATCH_NUMBER() AS n WHERE (A OR B)+").match(EVENTS)
    assert [row["n"] for row in matches] == list(range(1, matches.count() + 1))
    assert [batch["n"].to_pylist() for batch in matches[:5].to_batches(2)] == [[1, 2], [3, 4], [5]]
    assert (matches[100]["n"], matches[-1]["n"]) == (101, matches.count())
    assert [row["n"] for row in matches[10:20][1::4]] == [12, 16, 20]
    assert matches.schema.field("n").type == pa.int64()


def test_pushes_snapshots_and_sets_go_on():
    texts = {"one": "SELECT MATCH_NUMBER() AS n WHERE A ; B", "two": "SELECT MATCH_NUMBER() AS n WHERE B"}
    queries = cerflow.QuerySet(texts)
    recognizer = queries.recognizer(EVENTS.schema)
    numbers = {"one": [], "two": []}
    for k in range(EVENTS.num_rows):
        for name, matches in recognizer.push(EVENTS.slice(k, 1)).items():
            numbers[name] += [row["n"] for row in matches]
        recognizer = queries.restore(recognizer.snapshot(), EVENTS.schema)
    assert numbers == {"one": list(range(1, 9)), "two": [1, 2, 3, 4]}


def test_a_push_that_fails_counts_nothing():
    recognizer = cerflow.parse("SELECT MATCH_NUMBER() AS n WHERE A").recognizer(EVENTS.schema, time="t")
    assert [row["n"] for row in recognizer.push(EVENTS)] == [1, 2, 3]
    with pytest.raises(cerflow.BadRecordError):
        recognizer.push([{"type": "A", "t": 9}, {"type": "A", "t": 1}])
    assert [row["n"] for row in recognizer.push([{"type": "A", "t": 9}])] == [4]


def test_definitions_number_their_matches():
    program = cerflow.parse_program(
        "DEFINE pair AS SELECT MATCH_NUMBER() AS n WHERE A ; B;\n"
        "SELECT p.n AS n FROM pair WHERE pair AS p FILTER p.n > 6"
    )
    assert sorted(row["n"] for row in program.match(EVENTS)) == [7, 8]


def test_matches_beyond_64_bits_are_counted_but_not_numbered():
    query = cerflow.parse("SELECT MATCH_NUMBER() AS n WHERE A+")
    recognizer = query.recognizer(EVENTS.schema)
    assert recognizer.push([{"type": "A"}] * 100)[3]["n"] == 4
    restored = cerflow.Recognizer.restore(query, recognizer.snapshot())
    with pytest.raises(cerflow.TooManyMatchesError, match="does not fit 64 bits"):
        restored.push([{"type": "A"}])[0]


def test_threads_give_the_same_numbers():
    table = pa.table({"type": ["A", "B"] * 200_000, "t": range(400_000)})
    query = cerflow.parse("SELECT MATCH_NUMBER() AS n WHERE A ; B WITHIN 3 EVENTS")
    several = query.match(table, time="t", threads=2).to_arrow(columns=["n"])["n"]
    assert several.to_pylist() == list(range(1, len(several) + 1))


def test_chosen_matches_have_no_numbers():
    matches = cerflow.parse("SELECT a, MATCH_NUMBER() AS n WHERE A AS a ; B").match(EVENTS)
    for choose in (lambda: matches.sample(1), lambda: matches.first(1, by="start")):
        with pytest.raises(cerflow.UnsupportedQueryError, match="MATCH_NUMBER"):
            choose()
    assert matches.aggregate({"count": "count"})["count"].to_pylist() == [1, 2, 2, 3]


def test_one_task_numbers_them():
    query = cerflow.parse("SELECT MATCH_NUMBER() AS n WHERE A ; B PARTITION BY k WITHIN 3 SECONDS")
    schema = Schema(EVENTS.schema, time="t")
    assert divided(query.tree, query.plan(schema).transducer, schema).window is None
    assert "MATCH_NUMBER() counts the matches of all keys" in query.explain()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * WHERE A AS a FILTER MATCH_NUMBER() = 1", "known only when it is reported"),
        ("SELECT sum(a.v * MATCH_NUMBER()) AS n WHERE A AS a", "known only when it is reported"),
        ("SELECT MATCH_NUMBER(a) AS n WHERE A AS a", "match_number takes no argument"),
        ("SELECT MATCH_NUMBER() || 'x' AS n WHERE A AS a", "|| needs a string, but this is an integer"),
        ("SELECT MATCHNUMBER() AS n WHERE A AS a", "Did you mean 'match_number'?"),
    ],
)
def test_errors(text, reason):
    with pytest.raises((cerflow.QueryError, cerflow.QuerySyntaxError)) as caught:
        cerflow.parse(text).match(EVENTS)
    assert reason in str(caught.value)


def test_the_builder():
    made = select(event("A").as_("a"), match_number().as_("n"))
    assert made == parse_query("SELECT MATCH_NUMBER() AS n WHERE A AS a")
