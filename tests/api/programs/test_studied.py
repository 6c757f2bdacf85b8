"""Statements of programs looked at closely: traces detect what the engine finds, why_not says what it reports."""

from itertools import combinations

import pytest

import cerflow
from cerflow.base.errors import InputError
from support.programs import DIP
from support.runners import complex_events

EVENTS = [{"type": c, "v": v} for c, v in zip("ABABCAB", (3, 4, 1, 9, 0, 5, 6))]
QUERIES = [
    "SELECT * FROM dip WHERE dip AS x ; dip AS y FILTER y.low > x.low",
    "SELECT * FROM dip, log WHERE dip AS x ; log>C AS c",
    "SELECT * FROM dip, log WHERE log>A AS a : dip AS x PARTITION BY [v, low]",
    "DEFINE twice AS SELECT x.high AS top FROM dip WHERE dip AS x : dip AS y;\nSELECT * FROM twice WHERE twice{2}",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_last_query_reads_what_definitions_give(query):
    program = cerflow.parse_program(DIP + query)
    found = program.match(EVENTS).to_pylist()
    trace = program.trace(EVENTS)
    assert {(step.event.position, pairs) for step in trace for pairs in step.matches} == complex_events(found)
    expected = {frozenset(e["position"] for e in row["events"]) for row in found}
    for places in combinations(range(len(trace)), 2):
        assert bool(program.why_not(EVENTS, places)) == (frozenset(places) not in expected)


def test_a_definition_may_be_looked_at():
    program = cerflow.parse_program(DIP + QUERIES[0])
    query = cerflow.Query(program.definitions["dip"].tree)
    assert [step.matches for step in program.trace(EVENTS, "dip")] == [step.matches for step in query.trace(EVENTS)]
    assert program.why_not(EVENTS, [0, 1], "dip").detected_at == 1
    with pytest.raises(InputError, match="did you mean dip"):
        program.trace(EVENTS, "dop")


def test_reasons_have_their_place_in_the_text_of_the_program():
    program = cerflow.parse_program(DIP + QUERIES[0])
    ((part,),) = program.why_not(EVENTS, [0, 1]).reasons
    assert program.text[part.span.start : part.span.end] == "y.low > x.low"
