"""Traces: every step is one of the query's automaton, and what they detect is what the engine finds."""

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.formula import Strategy
from cerflow.language.select import Projection, ProjectionKind
from support.conformance import drawn
from support.generators.conditions import Fragment
from support.runners import complex_events, examples


def letters(text, **columns):
    return [{"type": c, **{name: values[k] for name, values in columns.items()}} for k, c in enumerate(text)]


def detected(trace):
    return {(step.event.position, pairs) for step in trace for pairs in step.matches}


@examples(100)
@given(st.data())
def test_traces_detect_what_the_engine_finds(data):
    query, table = drawn(data, fragment=data.draw(st.sampled_from((Fragment(), Fragment(more=True)))))
    tree = query.tree
    # These choose among the matches that the automaton detects.
    chooses = tree.strategy is not Strategy.ALL or tree.limit is not None
    assume(not chooses and tree.projection == Projection(ProjectionKind.ALL))
    try:
        found = query.match(table, time="t").to_pylist()
        trace = query.trace(table, time="t")
        steps = list(trace)
    except UnsupportedQueryError:
        assume(False)
    assume(all(step.detected < limits.TRACED_MATCHES for step in steps))
    assert detected(trace) == complex_events(found)
    for step in steps:
        assert bool(step.detected) == bool(step.matches)


def test_configurations_share_partial_matches():
    trace = cerflow.parse("SELECT * WHERE A+ ; B").trace(letters("AAAB"))
    assert [step.living[-1].count for step in trace][:3] == [1, 3, 7]
    assert trace[3].detected == 7
    assert len(set(trace[3].matches)) == 7
    # The configuration that waits is the same from the first event on.
    assert len({step.living[0].number for step in trace}) == 1
    simple = cerflow.parse("SELECT * WHERE A ; B").trace(letters("AAAB"))
    assert all(step.living[0].waiting and step.living[0].number == 1 for step in simple)


def test_registers_show_what_they_hold():
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER y.v > x.v")
    trace = query.trace(letters("AB", v=[3, 2]))
    (kept,) = [c for c in trace[0].living if not c.waiting]
    assert [content for _, content in kept.registers] == ["3"]
    assert trace[1].detected == 0
    (refusal,) = [r for r in trace[1].refused if r.source == kept.number]
    assert refusal.because == ("v > r0 (v = 2, r0 = 3)",)


def test_what_is_refused_dies():
    trace = cerflow.parse("SELECT * WHERE A : B").trace(letters("ACB"))
    (death,) = trace[1].died
    assert death.reason == "guard"
    assert death.configuration.some == (frozenset({("A", 0)}),)
    assert "type = B (type = C)" in death.words


@pytest.mark.parametrize("formula", ["A ; B WITHIN 2 EVENTS", "((A ; B) WITHIN 2 EVENTS) OR D"])
def test_a_window_that_is_over_ends_what_began_before_it(formula):
    trace = cerflow.parse(f"SELECT * WHERE {formula}").trace(letters("ACB"))
    assert [death.reason for step in trace for death in step.died] == ["window"]
    assert not any(step.detected for step in trace)


def test_consumption_ends_what_has_begun():
    trace = cerflow.parse("SELECT * WHERE A ; B CONSUME BY ANY").trace(letters("AABB"))
    assert [step.detected for step in trace] == [0, 0, 2, 0]
    assert {death.reason for death in trace[2].died} == {"consumption"}


def test_substreams_are_told_apart():
    trace = cerflow.parse("SELECT * WHERE A ; B PARTITION BY k").trace(letters("AABB", k=[1, None, 2, 1]))
    assert [step.key for step in trace] == [(1,), (None,), (2,), (1,)]
    assert "no k" in trace[1].unread
    assert [step.detected for step in trace] == [0, 0, 0, 1]


def test_times_come_in_order():
    trace = cerflow.parse("SELECT * WHERE A ; B").trace(pa.table({"type": ["B", "A"], "t": [2, 1]}), time="t")
    assert [step.event.type for step in trace] == ["A", "B"]
    assert trace[1].detected == 1


def test_too_many_configurations_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "TRACED_CONFIGURATIONS", 3)
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER y.v != x.v")
    with pytest.raises(UnsupportedQueryError, match="more than 3 configurations"):
        list(query.trace(letters("AAAA", v=[1, 2, 3, 4])))
