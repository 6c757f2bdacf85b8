"""Why some events are not a match: every answer is checked by asking the changed query."""

from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cerflow
from cerflow import automata
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.look.studying.fitting import detection
from cerflow.look.studying.relaxing import constraints, relaxed
from cerflow.look.studying.samples import read_sample
from cerflow.look.studying.tracing import Trace
from cerflow.look.studying.why_not import why_not
from support.conformance import drawn, limit
from support.generators.conditions import Fragment
from support.runners import examples, semantics, supports


def rows(text, **columns):
    return [{"type": c, **{name: values[k] for name, values in columns.items()}} for k, c in enumerate(text)]


@examples(60)
@given(st.data())
def test_events_are_a_match_exactly_if_the_definitions_say_so(data):
    fragment = data.draw(st.sampled_from((Fragment(), Fragment(more=True), Fragment(projection=False, relating=False))))
    query, table = drawn(data, fragment=fragment, strategies=())
    # Which matches a limit leaves is open.
    assume(limit(query.tree) is None and query.tree.projection.has_events)
    sample = read_sample(query, table, time="t")
    try:
        expected = {places for _, places in supports(semantics(query, table, time="t"))}
        for size in (1, 2, 3):
            for places in combinations(range(len(table)), size):
                found = detection(query.tree, sample, dict.fromkeys(places, frozenset()))
                assert (found is not None) == (frozenset(places) in expected), places
    except UnsupportedQueryError:
        assume(False)


@examples(30)
@given(st.data())
def test_without_a_reason_the_events_would_be_a_match(data):
    query, table = drawn(data, fragment=Fragment(projection=False))
    assume(limit(query.tree) is None and query.tree.projection.has_events)
    places = data.draw(st.sets(st.integers(0, len(table) - 1), min_size=1, max_size=3))
    try:
        answer = query.why_not(table, places, time="t")
    except UnsupportedQueryError:
        assume(False)
    named = {c.text: c for c in constraints(query.tree)}
    assume(len(named) == len(constraints(query.tree)))
    for way in answer.reasons:
        changed = relaxed(query.tree, [named[part.text] for part in way])
        try:
            found = semantics(cerflow.Query(changed), table, time="t")
        except (QueryError, UnsupportedQueryError):
            continue
        assert frozenset(places) in {support for _, support in supports(found)}


@pytest.mark.parametrize(
    ("query", "events", "chosen", "part", "words"),
    [
        ("(A AS x ; B) FILTER x.v > 5", rows("AB", v=[3, 0]), [0, 1], "x.v > 5", "x.v = 3 at event 0"),
        ("(A AS x ; B AS y) FILTER y.v > x.v", rows("AB", v=[3, 2]), [0, 1], "y.v > x.v", "y.v = 2 at event 1"),
        ("(A AS x ; B) FILTER x[v > 5]", rows("AB", v=[3, 0]), [0, 1], "x[v > 5]", "x.v = 3 at event 0"),
        ("A ; B WITHIN 2 EVENTS", rows("ACB"), [0, 2], "WITHIN 2 EVENTS", "too far apart: 0 to 2"),
        ("A : B", rows("ACB"), [0, 2], ":", "event 1 lies in between"),
        ("A ; B", rows("AC"), [0, 1], "B", "event 1 is of type C"),
        ("(A ; B) WITHOUT C", rows("ACB"), [0, 2], "WITHOUT C", "event 1 of type C"),
        ("A ; B UNLESS C", rows("CAB"), [1, 2], "UNLESS C", "event 0 of type C"),
        ("A ; B PARTITION BY v", rows("AB", v=[1, 2]), [0, 1], "PARTITION BY v", "event 1 has 2"),
        ("A{2,3} ; B", rows("AB"), [0, 1], "{2,3}", "not repeated that many times"),
        ("A ; B CONSUME BY ANY", rows("ABB"), [0, 2], "CONSUME BY ANY", "an earlier match"),
    ],
)
def test_the_part_that_refuses_is_named(query, events, chosen, part, words):
    answer = cerflow.parse(f"SELECT * WHERE {query}").why_not(events, chosen)
    (way,) = answer.reasons
    (reason,) = way
    assert reason.text == part
    assert words in reason.words
    assert answer


def test_a_strategy_names_the_matches_that_it_prefers():
    answer = cerflow.parse("SELECT NEXT * WHERE A ; B").why_not(rows("AAB"), [1, 2])
    assert "{A@0, B@2}" in str(answer)
    assert not cerflow.parse("SELECT LAST * WHERE A ; B").why_not(rows("AAB"), [1, 2])


def test_several_parts_refuse_together():
    answer = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v > 5 AND y.v > 5").why_not(
        rows("AB", v=[1, 2]), [0, 1]
    )
    (way,) = answer.reasons
    assert {part.text for part in way} == {"x.v > 5", "y.v > 5"}


def test_parts_have_their_place_in_the_text():
    text = "SELECT * WHERE (A AS x ; B) FILTER x.v > 5"
    ((part,),) = cerflow.parse(text).why_not(rows("AB", v=[3, 0]), [("x", 0), ("B", 1)]).reasons
    assert text[part.span.start : part.span.end] == "x.v > 5"


def test_events_may_have_another_shape():
    answer = cerflow.parse("SELECT * WHERE A ; B").why_not(rows("AAB"), [0, 1, 2])
    assert answer.reasons == ()
    assert "more or fewer" in str(answer)


def test_conditions_of_automata_are_named_as_those_of_expressions():
    text = "any([type = 'A'] AS a INTO r, [type = 'B' AND v > r.v] AS b)"
    expression = cerflow.parse(text, language="sremo")
    automaton = cerflow.Query.from_automaton(automata.eliminate_epsilon(automata.compile_sremo(text)))
    events = rows("ABACB", v=[3, 4, 5, 1, 9])
    assert str(automaton.why_not(events, [2, 3])) == "type = 'B': it does not hold\n  and v > r.v: it does not hold"
    assert not automaton.why_not(events, [2, 4])
    for chosen in combinations(range(5), 2):
        assert str(automaton.why_not(events, chosen)) == str(expression.why_not(events, chosen))
    types = cerflow.Query.from_automaton(automata.compile_cel("A ; B"))
    assert str(types.why_not(events, [2, 3])) == "type = B: it does not hold"
    assert "more or fewer events" in str(types.why_not(events, [0, 1, 2]))


def test_event_kinds_are_shown_by_their_names():
    query = cerflow.parse("DEFINE hot AS v > 5 SELECT * WHERE (hot AS x) NOT FOLLOWED BY hot FOR 2 MILLISECONDS")
    events = [{"t": k, "v": v} for k, v in enumerate((9, 9, 1, 2, 3))]
    answer = query.why_not(events, [0], time="t")
    assert str(answer).startswith("NOT FOLLOWED BY hot FOR 2 MILLISECONDS: before the deadline")
    assert str(query.why_not(events, [2], time="t")).startswith("hot: ")
    trace = Trace(query.tree, read_sample(query, events, time="t"))
    assert [step.words for step in trace[3].before] == ["3: the deadline of x@1 passes"]


def test_labels_count():
    query = cerflow.parse("SELECT * WHERE A AS x ; A AS y")
    assert not query.why_not(rows("AA"), [("x", 0), ("y", 1)])
    assert "labels" in str(query.why_not(rows("AA"), [("y", 0), ("x", 1)]))


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([], "choose events"),
        ([7], "no event 7"),
        ([-1], "no event -1"),
        (3, "choose events"),
        (["x"], "choose events"),
        ([("x", 0, 1)], "pairs"),
    ],
)
def test_events_that_are_not_there_are_refused(chosen, message):
    with pytest.raises(ValueError, match=message):
        cerflow.parse("SELECT * WHERE A").why_not(rows("A"), chosen)


def test_a_stretch_of_a_stream_keeps_its_positions():
    query = cerflow.parse("SELECT NEXT * WHERE (A AS x ; B) FILTER x.v > 5 WITHIN 3 EVENTS")
    sample = read_sample(query, rows("ABAACB", v=[3, 0, 9, 9, 0, 0]), first=100)
    ((part,),) = why_not(query.tree, sample, [100, 101]).reasons
    assert "x.v = 3 at event 100" in part.words
    assert why_not(query.tree, sample, [103, 105]).detected_at == 105
    assert [step.event.position for step in Trace(query.tree, sample)] == list(range(100, 106))
    assert Trace(query.tree, sample)[5].matches == (frozenset({("A", 103), ("x", 103), ("B", 105)}),)
