"""Automata as queries of streaming DataFrames, beside the same events as a table."""

import pytest

import cerflow
from cerflow import automata
from cerflow.spark import match
from support.runners import ONLY_DEEP
from support.spark.file_streams import LAST, disordered, events
from support.spark.results import assert_same, bag

FREE = automata.eliminate_epsilon(
    automata.compile_sremo("any([type = 'A'] AS a INTO r, [type = 'B' AND v > r.v] AS b)")
)
KEYED = {"within": "1 SECOND", "partition_by": "k"}
QUERIES = {
    "SRT": cerflow.Query.from_automaton(FREE, **KEYED),
    "RMA": cerflow.Query.from_automaton(automata.as_register_match_automaton(FREE), **KEYED),
    # Its states are sets of states.
    "determinised": cerflow.Query.from_automaton(automata.determinize_windowed(FREE, 3), detect=True, **KEYED),
}


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param("SRT", marks=ONLY_DEEP), "determinised"])
def test_a_stream_has_the_matches_of_its_table(stream, name):
    """Events come out of order, and a second job goes on where the first one stopped."""
    query, table = QUERIES[name], events(120)
    coming = disordered(table, 400)
    roles = {"time": "t", "sequence": "seq"}
    stream.add(coming.slice(0, 70))
    stream.run(match(query, stream.frame(), delay="400 milliseconds", buckets=2, **roles))
    stream.add(coming.slice(70)).add(LAST)
    found, _ = stream.run(match(query, stream.frame(), delay="400 milliseconds", buckets=2, **roles))
    expected = query.match(table, positions=False, **roles).to_arrow()
    assert found.column_names == expected.column_names
    assert bag(found) == bag(expected)
    assert expected.num_rows > 3


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_a_table_in_spark_has_the_same(spark, name):
    assert len(assert_same(spark, QUERIES[name], events(120), time="t", sequence="seq")) > 3
