"""Ambiguous queries: determinised before anything is read, or with the runs joined at run time."""

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.engine.recognize.planning import transducer_of, with_one_run_each
from cerflow.language.formula import CountWindow, DurationWindow, Strategy
from cerflow.language.select import Consumption, LabelItem, Projection, ProjectionKind, Select
from support.conformance import assert_conforms, table_of
from support.generators.conditions import Fragment
from support.generators.queries import formulas, overlapping, streams
from support.runners import ENGINE_RUNNERS, examples, one_batch

NESTED = [
    "SELECT * WHERE ((A AS x)+ ; (A OR B AS y)+)+",
    "SELECT x WHERE ((A AS x)+ ; (A OR B AS y)+)+",
    "SELECT x WHERE ((A AS x)+ ; (A OR B AS y)+)+ FILTER x.v <= y.v",
    "SELECT A, B WHERE ((A AS x)+ ; (A OR B AS y)+)+ FILTER x.v <= y.v WITHIN 5 EVENTS",
    "SELECT * WHERE (A AS x ; ((A OR B)+ ; (B OR C)+)+ ; C AS z) FILTER x.v < z.v",
    "SELECT x WHERE (A AS x ; ((A OR B AS y)+ ; (B OR C)+)+ ; C AS z) FILTER x.v < z.v AND y.v > 0 WITHIN 6 SECONDS",
    "SELECT x WHERE (A AS x ; ((A OR B AS y) ; (B OR C AS u)+)+ ; C AS z) FILTER x.v < z.v AND y.v < u.v WITHIN 5 [n]",
    "SELECT NEXT x, z WHERE (A AS x ; ((A OR B AS y)+ ; (B OR C AS u)+)+ ; C AS z) FILTER x.v < z.v WITHIN 6 EVENTS",
    "SELECT LAST * WHERE (A AS x ; ((A OR B)+ ; (B OR C)+)+ ; C AS z) FILTER x.v < z.v WITHIN 6 EVENTS",
    "SELECT COUNT(*) AS n WHERE (A AS x ; (B :(A OR B AS y)+)+ ; C AS z) PARTITION BY [k] CONSUME BY PARTITION",
    "SELECT x, u WHERE (A AS x ; (B OR C AS u) ; (C WITHOUT A) OR (B ; C)) OR (A AS x ; B AS u ; C) WITHIN 4 EVENTS",
]


def assert_conforms_both_ways(query, table, runners):
    assert_conforms(query, table, runners)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "OUTPUT_STATES", 0)
        # A query remembers how it was compiled.
        assert_conforms(cerflow.Query(query.tree, text=query.text), table, runners)


@pytest.mark.parametrize("text", NESTED)
@examples(12)
@given(data=st.data())
def test_nested_iterations_over_overlapping_types(text, data):
    query = cerflow.parse(text)
    table = table_of(data.draw(streams(min_size=5, max_size=8, like=query.tree.formula)))
    assert_conforms_both_ways(query, table, ENGINE_RUNNERS)


@st.composite
def selects(draw):
    """Queries that many runs lead to."""
    formula = draw(overlapping(formulas(Fragment(depth=2))))
    kept = draw(st.none() | st.sampled_from(("A", "AB", "BC")))
    projection = Projection(ProjectionKind.ALL)
    if kept is not None:
        projection = Projection(ProjectionKind.ITEMS, tuple(map(LabelItem, kept)))
    return Select(
        formula,
        projection,
        draw(st.sampled_from((Strategy.ALL, Strategy.ALL, Strategy.NEXT, Strategy.LAST, Strategy.STRICT))),
        partition=draw(st.sampled_from(((), (("k",),)))),
        window=draw(st.sampled_from((None, CountWindow(5), DurationWindow(6000)))),
        consume=draw(st.sampled_from((Consumption.NONE, Consumption.PARTITION))),
    )


@examples(60)
@given(selects(), st.data())
def test_random_queries(select, data):
    try:
        query = cerflow.Query(select)
        compiled = transducer_of(query.tree)
    except (QueryError, UnsupportedQueryError):
        assume(False)
    if with_one_run_each(compiled) is compiled:
        event("left as it is")
        return
    event("determinised")
    table = table_of(data.draw(streams(max_size=7, like=select.formula)))
    assert_conforms_both_ways(query, table, {"one batch": one_batch})


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("SELECT * WHERE (A AS x ; (B ; (B OR C)+)+ ; C AS y) FILTER x.v < y.v", False),
        ("SELECT x WHERE (A AS x ; B+ ; C AS y) FILTER x.v < y.v", False),
        ("SELECT y WHERE A AS x ; B AS y", True),
        ("SELECT A, B WHERE ((A AS x)+ ; (A OR B AS y)+)+ FILTER x.v != y.v", True),
    ],
)
def test_which_of_the_two(text, grouped, monkeypatch):
    schema = table_of([]).schema
    assert cerflow.parse(text).recognizer(schema)._machine.tables.grouped == grouped
    monkeypatch.setattr(limits, "OUTPUT_STATES", 0)
    assert cerflow.parse(text).recognizer(schema)._machine.tables.grouped
