"""Events that a query cannot notice can be left out: the matches are the same."""

from collections import Counter

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import cerflow
from cerflow.base.schema import Schema
from cerflow.engine.pushdown.relevance import or_invalid, relevant_events, types_named
from cerflow.engine.pushdown.translation import arrow_filter
from cerflow.language.printer import show
from cerflow.logic.conditions.connectives import TRUE
from support.conformance import COLUMNS, table_of
from support.conformance import drawn as drawn_for_predicates
from support.generators import predicates as random_predicates
from support.generators.conditions import Fragment
from support.relevance_cases import ALL, FRAGMENTS, condition_of, drawn, satisfying
from support.runners import examples, frozen

SCHEMA = Schema(ALL, time="t", stream="from")


def recognised(query, table):
    recognizer = query.recognizer(ALL, time="t", stream="from", position="at")
    return [frozen(row) for row in recognizer.push(table).to_pylist()]


@examples(600)
@given(st.data(), st.sampled_from(sorted(FRAGMENTS)))
def test_matches_do_not_depend_on_events_that_cannot_be_noticed(data, kind):
    query, table = drawn(data, kind)
    expected = recognised(query, table)
    condition = condition_of(query, SCHEMA)
    kept = satisfying(table, condition, SCHEMA)
    event("all" if len(kept) == len(table) else "some left out" + (", matching" if expected else ""))
    # The same order, too.
    assert recognised(query, kept) == expected
    filtered = arrow_filter(condition, SCHEMA)
    if filtered is not None:
        few = table.filter(filtered)
        assert set(kept["at"].to_pylist()) <= set(few["at"].to_pylist())
        assert recognised(query, few) == expected


@examples(100)
@given(st.data())
def test_existential_conditions(data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FRAGMENTS, "some", Fragment(some=True, depth=2))
        query, table = drawn(data, "some")
    kept = satisfying(table, condition_of(query, SCHEMA), SCHEMA)
    event("all" if len(kept) == len(table) else "some left out")
    assert recognised(query, kept) == recognised(query, table)


@examples(60)
@given(st.data())
def test_predicates_may_always_hold(data):
    with random_predicates.registered():
        query, table = drawn_for_predicates(data, fragment=Fragment(predicates=True))
        # Next to each other, so that what a window measures never decreases among events of one time.
        table = table_of([event for row in table.to_pylist() for event in (row, {**row, "type": "E"})])
        table = table.append_column("from", pa.nulls(len(table), pa.string()))
        table = table.append_column("at", pa.array(range(len(table))))
        kept = satisfying(table, condition_of(query, SCHEMA), SCHEMA)
        assert recognised(query, kept) == recognised(query, table)


BARE = Schema(pa.schema(COLUMNS), time="t")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("A AS a ; B AS b FILTER a.v > 3 AND b.v < a.v WITHIN 3 SECONDS", "type = B OR type = A AND v > 3"),
        ("A ; B+ ; C UNLESS D FILTER A.v IS NULL", "type IN ('B', 'C', 'D') OR type = A AND v IS NULL"),
        ("A ; (EVENT AS x FILTER x.s LIKE 'p%')", "type = A OR s LIKE 'p%'"),
        ("A ; B FILTER A[v > 3 OR NOT w < 2.5]", "type = B OR type = A AND (v > 3 OR w >= 2.5)"),
        ("A ; B FILTER A.v < 2.5 AND B.v BETWEEN 1 AND 4", "type = A AND v <= 2 OR type = B AND v >= 1 AND v <= 4"),
        ("A ; B PARTITION BY k", "k IS NOT NULL AND type IN ('A', 'B')"),
        ("A ; B FILTER A.v = 2.5", "type = B"),
        ("A ; B FILTER A.v NOT IN (1, 2.5, NULL)", "type = B"),
    ],
)
def test_what_is_asked_of_events(text, condition):
    query = cerflow.parse(f"SELECT * WHERE {text}")
    found = relevant_events(query.tree, query.plan(BARE).transducer, BARE, counted=False)
    assert show(found.condition) == condition
    assert found.reasons == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A AS a ; B AS b FILTER a.v > 3 AND b.v < a.v WITHIN 3 SECONDS", ["B", "A"]),
        ("A ; B+ ; C UNLESS D FILTER A.v IS NULL PARTITION BY k", ["B", "C", "D", "A"]),
        ("A ; (EVENT AS x FILTER x.s LIKE 'p%')", None),
        ("A ; NOT(A FILTER A.v > 3)", None),
        ("A : B", None),
    ],
)
def test_types_of_which_a_relevant_event_has_one(text, names):
    query = cerflow.parse(f"SELECT * WHERE {text}")
    found = relevant_events(query.tree, query.plan(BARE).transducer, BARE, counted=False)
    named = types_named(found.condition, BARE)
    assert (named and sorted(named)) == (names and sorted(names))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("WHERE A : B", "no event may come between some of those of a match"),
        ("WHERE (A ; B) :+", "no event may come between some of those of a match"),
        ("STRICT * WHERE A ; B", "no event may come between some of those of a match"),
        ("WHERE START(A ; B)", "it counts which event is the first of the stream"),
        ("WHERE A ; B WITHIN 5 EVENTS", "a window of events counts every event"),
        ("WHERE A ; (B ; C WITHIN 5 EVENTS)", "a window of events counts every event"),
        ("WHERE A ; EVENT", "events of every type may matter"),
        ("WHERE A ; NOT(A FILTER A.v > 3)", "events of every type may matter"),
    ],
)
def test_why_all_events_are_kept(text, reason):
    query = cerflow.parse(f"SELECT {text}" if text.startswith("STRICT") else f"SELECT * {text}")
    found = relevant_events(query.tree, query.plan(BARE).transducer, BARE, counted=False)
    assert found.condition == TRUE
    assert found.reasons == (reason,)


def test_a_part_is_left_out_where_every_event_of_a_substream_counts():
    query = cerflow.parse("SELECT * FROM s1 WHERE s1>A : B PARTITION BY k WITHIN 3 EVENTS")
    found = relevant_events(query.tree, query.plan(SCHEMA).transducer, SCHEMA, counted=False)
    assert show(found.condition) == "\"from\" IN ('s1') AND k IS NOT NULL"
    assert found.reasons == ("a window of events counts every event",)


def test_where_events_are_counted_all_of_them_stay():
    query = cerflow.parse("SELECT * WHERE A ; B PARTITION BY k")
    found = relevant_events(query.tree, query.plan(BARE).transducer, BARE, counted=True)
    assert found.condition == TRUE
    assert found.reasons == ("positions are those in the whole stream, so every event is counted",)


def test_bad_records_stay_if_they_have_to_be_told():
    query = cerflow.parse("SELECT * WHERE A")
    rows = [{"type": "A", "t": 1}, {"type": "B", "t": 2}, {"type": None, "t": 3}, {"type": "B", "t": None}]
    table = pa.Table.from_pylist(rows, BARE.columns)
    for bad_records, kept in ((True, ["A", None, "B"]), (False, ["A"])):
        relevant = relevant_events(query.tree, query.plan(BARE).transducer, BARE, counted=False).condition
        found = arrow_filter(or_invalid(relevant, BARE) if bad_records else relevant, BARE)
        assert table.filter(found)["type"].to_pylist() == kept


@pytest.mark.slow
def test_many_steps_and_long_conditions_are_looked_at_quickly():
    steps = " ; ".join(f"T{k} AS t{k}" for k in range(300))
    long = " OR ".join(f"v = {k} AND w = {k}" for k in range(600))
    nested = "v = 1"
    for k in range(150):
        nested = f"({nested}) {('AND', 'OR')[k % 2]} w = {k}"
    for text in (
        f"{steps} FILTER {' AND '.join(f't{k}.v > {k}' for k in range(300))}",
        f"A FILTER A[{long} OR {nested}]",
    ):
        query = cerflow.parse(f"SELECT * WHERE {text}")
        found = relevant_events(query.tree, query.plan(BARE).transducer, BARE, counted=False)
        assert found.condition != TRUE
        assert arrow_filter(found.condition, BARE) is not None


def test_a_dataset_is_read_with_the_filter(tmp_path):
    query = cerflow.parse("SELECT * WHERE A AS a ; B FILTER a.s LIKE 'p%' AND a.w != 0 PARTITION BY k")
    rows = [
        {"type": kind, "s": s, "w": w, "k": k}
        for kind in "ABC"
        for s in ("pq", "q")
        for w in (0.0, 1.0)
        for k in (1, None)
    ]
    for plain in (True, False):
        columns = {**COLUMNS, "type": pa.string() if plain else pa.dictionary(pa.int32(), pa.string())}
        schema = Schema(pa.schema(columns), time="t")
        ds.write_dataset(pa.Table.from_pylist(rows, schema.columns), tmp_path / str(plain), format="parquet")
        relevant = relevant_events(query.tree, query.plan(schema).transducer, schema, counted=False)
        found = arrow_filter(relevant.condition, schema)
        table = ds.dataset(tmp_path / str(plain)).to_table(filter=found)
        assert Counter(table["type"].to_pylist()) == {"A": 1, "B": 4}
