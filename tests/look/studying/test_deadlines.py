"""Deadlines in time: steps of their own in a trace, and reasons why events are not a match."""

import datetime
from itertools import combinations, islice

import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.engine.stopping import checked
from cerflow.language.formula import Strategy
from cerflow.language.select import Projection, ProjectionKind
from cerflow.look.studying import samples
from cerflow.look.studying.fitting import detection
from cerflow.look.studying.samples import read_sample
from cerflow.look.studying.steps import PassedDeadline
from cerflow.look.studying.why_not import why_not
from support.generators.deadlines import DeadlineQueries
from support.runners import EXAMPLES, complex_events, engine_refuses, semantics

CART = "SELECT * WHERE (cart AS c NOT FOLLOWED BY checkout FOR 30 MINUTES) PARTITION BY [user]"
NOON = datetime.datetime(2024, 3, 15, 10)


def shop(*events):
    """Events (minute, type, user)."""
    return [{"type": k, "at": NOON + datetime.timedelta(minutes=m), "user": u} for m, k, u in events]


EVENTS = shop(
    (0, "cart", "ann"), (5, "cart", "bob"), (10, "checkout", "bob"), (32, "view", "cleo"), (40, "cart", "ann")
)


def drawn_until(own, table):
    """A time that the clock shows, or none."""
    return table["t"][-1].as_py() + own.random.randint(0, 8) if own.random.random() < 0.5 else None


@pytest.mark.parametrize("seed", range(round(160 * EXAMPLES)))
def test_traces_detect_what_the_engine_finds(seed):
    own = DeadlineQueries(seed)
    query = cerflow.parse(own.query())
    tree = query.tree
    if tree.strategy is not Strategy.ALL or tree.projection != Projection(ProjectionKind.ALL):
        return  # these choose among the matches that the automaton detects
    if engine_refuses(query, own.events(), time="t"):
        return
    for _ in range(3):
        table = own.events()
        until = drawn_until(own, table)
        steps = list(query.trace(table, time="t", until=until).steps())
        if any(step.detected >= limits.TRACED_MATCHES for step in steps):
            continue
        shown = [step.shown_by if isinstance(step, PassedDeadline) else step.event for step in steps]
        found = {(e and e.position, pairs) for e, step in zip(shown, steps) for pairs in step.matches}
        assert found == complex_events(query.match(table, time="t", until=until).to_pylist())


@pytest.mark.parametrize("seed", range(round(80 * EXAMPLES)))
def test_events_are_a_match_exactly_if_the_definitions_say_so(seed):
    own = DeadlineQueries(seed)
    query = cerflow.parse(own.query())
    if not query.tree.projection.has_events or engine_refuses(query, own.events(), time="t"):
        return
    for _ in range(2):
        table = own.events(1, 7)
        until = drawn_until(own, table)
        found = semantics(query, table, time="t", until=until)
        expected = {frozenset(e["position"] for e in row["events"]) for row in found}
        sample = read_sample(query, table, time="t", until=until)
        for size in (1, 2, 3):
            for places in combinations(range(len(table)), size):
                found = detection(query.tree, sample, dict.fromkeys(places, frozenset()))
                assert (found is not None) == (frozenset(places) in expected), places


@pytest.mark.parametrize("seed", range(round(120 * EXAMPLES)))
def test_what_the_engine_reports_is_a_match(seed, monkeypatch):
    # So short stretches that most matches are detected after the first.
    monkeypatch.setattr(samples, "_ROWS", 2)
    own = DeadlineQueries(seed)
    query = cerflow.parse(own.query())
    if not query.tree.projection.has_events or engine_refuses(query, own.events(), time="t"):
        return
    table = own.events(30, 60)
    until = drawn_until(own, table)
    known = {}
    for row in islice(query.match(table, time="t", until=until), 500):
        chosen = frozenset((label, event["position"]) for event in row["events"] for label in event["labels"])
        known.setdefault(chosen, set()).add((row["detected_at"], row["detected_time"]))
    for chosen in own.random.sample(sorted(known, key=sorted), min(4, len(known))):
        if chosen:
            answer = query.why_not(table, chosen, time="t", until=until)
            assert not answer, answer
            if answer.detected_at is not None:
                assert answer.detected_at in {n for n, _ in known[chosen]}


def long_stream(rows):
    """Attempts of many users, each of which tries twice and never gets in, over many thousand seconds."""
    users = [(k * 7) % 1000 for k in range(rows)]
    return pa.table({"type": ["failed"] * rows, "t": [1000 * k for k in range(rows)], "user": users})


def test_events_of_other_partitions_are_not_blamed():
    query = cerflow.parse("SELECT * WHERE failed AS a : failed AS b PARTITION BY [user]")
    table = long_stream(5000)
    assert query.why_not(table, [("a", 3), ("b", 1003)], time="t").detected_at == 1003
    ((part,),) = query.why_not(table, [3, 3003], time="t").reasons
    assert part.words == "event 1003, event 2003 lie in between"


def test_a_deadline_may_pass_far_behind_the_events():
    query = cerflow.parse("SELECT * WHERE (failed AS a NOT FOLLOWED BY ok FOR 1 HOURS) PARTITION BY [user]")
    table = long_stream(8000)
    row = query.match(table, time="t").to_pylist()[2]
    assert row["detected_at"] == row["start"] + 3600
    assert query.why_not(table, [("a", row["start"])], time="t").detected_at == row["detected_at"]
    ((part,),) = query.why_not(table.slice(0, 3000), [("a", 2)], time="t").reasons
    assert "has not passed yet" in part.words


def test_keys_and_deadlines_refuse_together():
    query = cerflow.parse(
        "SELECT * WHERE ((failed AS a ; failed AS b) NOT FOLLOWED BY ok FOR 5 SECONDS) PARTITION BY [user]"
    )
    table = pa.concat_tables([long_stream(2000), pa.table({"type": ["ok"], "t": [2_000_000], "user": [5]})])
    (way,) = query.why_not(table, [1000, 1999], time="t").reasons
    assert "PARTITION BY user" in {part.text for part in way}


def test_work_can_be_stopped():
    query = cerflow.parse("SELECT * WHERE (failed AS a NOT FOLLOWED BY ok FOR 1 HOURS) PARTITION BY [user]")
    sample = read_sample(query, long_stream(5000), time="t")

    def stop():
        raise InterruptedError

    with checked(stop), pytest.raises(InterruptedError):
        why_not(query.tree, sample, [2])


def test_a_deadline_that_passes_is_a_step_of_its_own():
    trace = cerflow.parse(CART).trace(EVENTS, time="at", until=NOON + datetime.timedelta(hours=2))
    steps = list(trace.steps())
    assert len(trace) == 5
    assert [isinstance(step, PassedDeadline) for step in steps] == [False, False, False, True, False, False, True]
    passed = steps[3]
    assert passed == trace[3].before[0]
    assert passed.words == "2024-03-15 10:30:00: the deadline of c@0 passes"
    assert (passed.key, passed.shown_by.position, passed.begun) == (("ann",), 3, (("c", 0),))
    assert passed.matches == (frozenset({("c", 0), ("cart", 0)}),)
    (by_clock,) = trace.behind
    assert (by_clock.words[:19], by_clock.shown_by) == ("2024-03-15 11:10:00", None)
    assert by_clock.detected == 1


def test_what_came_in_time_ends_what_waits():
    (death,) = cerflow.parse(CART).trace(EVENTS, time="at")[2].died
    assert "type = checkout" in death.words
    trace = cerflow.parse(CART).trace(EVENTS, time="at", until="2024-03-15T11:10:00")
    assert "(r0 = 2024-03-15 10:40:00)" in str(trace.behind[0].refused)
    assert ("r0: where the deadline of 30 MINUTES begins", "2024-03-15 10:05:00") in death.configuration.registers


def test_a_deadline_may_lie_at_a_value_of_an_attribute():
    rows = [{"type": c, "km": km} for c, km in (("A", 1), ("C", 3), ("C", 7))]
    trace = cerflow.parse("SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 5 [km]").trace(rows)
    assert [step.words for step in trace[2].before] == ["km = 7: the deadline of x@0 passes"]
    assert [step.detected for step in trace] == [0, 0, 1]


def test_only_events_that_completed_a_match_begin_a_deadline():
    rows = [{"type": c, "w": w} for c, w in (("A", 0), ("A", 0), ("A", 1), ("C", 3))]
    trace = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) NOT FOLLOWED BY B FOR 2 [w]").trace(rows)
    assert {position for step in trace[3].before for _, position in step.begun} == {1, 2}


@pytest.mark.parametrize("left", ["A AS x", "A AS x ; A AS y", "A ; C+", "(A AS x OR C AS x) FILTER x.v > 0"])
@pytest.mark.parametrize("seed", range(round(80 * EXAMPLES)))
def test_deadlines_at_values_name_the_events_behind_which_nothing_followed(left, seed):
    own = DeadlineQueries(seed)
    query = cerflow.parse(f"SELECT * WHERE ({left}) NOT FOLLOWED BY B FOR {1 + seed % 4} [w]")
    table = own.events(3, 12)
    # A match ends with the event whose deadline passes.
    expected = {}
    for row in semantics(query, table, time="t"):
        last = max(event["position"] for event in row["events"])
        expected.setdefault(row["detected_at"], set()).add(last)
    trace = query.trace(table, time="t")
    named = {step.event.position: {p for before in step.before for _, p in before.begun} for step in trace}
    assert {n: positions for n, positions in named.items() if positions} == expected
    for step in trace:
        for before in step.before:
            for label, position in before.begun:
                assert any((label, position) in pairs for pairs in before.matches or step.matches)


def test_matches_by_deadlines_consume_what_has_begun():
    rows = [{"type": c, "t": t} for c, t in (("A", 0), ("A", 3), ("C", 6), ("C", 20))]
    query = cerflow.parse("SELECT * WHERE A NOT FOLLOWED BY B FOR 5 MILLISECONDS CONSUME BY ANY")
    trace = query.trace(rows, time="t")
    assert [step.detected for step in trace] == [0, 0, 1, 0]
    assert {death.reason for death in trace[2].died} == {"consumption"}
    assert len(query.match(rows, time="t")) == 1


@pytest.mark.parametrize(
    ("right", "chosen", "words"),
    [
        ("checkout FOR 30 MINUTES", [1], "before the deadline (2024-03-15 10:35:00) came event 2 of type checkout"),
        ("(checkout AS d FILTER d.user = c.user) FOR 30 MINUTES", [1], "came event 2 of type checkout"),
        ("checkout FOR 30 MINUTES", [4], "the deadline (2024-03-15 11:10:00) has not passed yet"),
        ("checkout FOR 1 EVENT", [1], "before the deadline (1 event after event 1) came event 2"),
        ("checkout FOR 5 EVENTS", [4], "the deadline (5 events after event 4) has not passed yet"),
    ],
)
def test_the_deadline_is_named(right, chosen, words):
    query = cerflow.parse(f"SELECT * WHERE (cart AS c NOT FOLLOWED BY {right}) PARTITION BY [user]")
    answer = query.why_not(EVENTS, chosen, time="at")
    ((reason,),) = answer.reasons
    assert reason.text.startswith("NOT FOLLOWED BY checkout")
    assert reason.text.endswith(right[-5:])
    assert words in reason.words


def test_a_match_may_be_detected_as_time_passes():
    query = cerflow.parse(CART)
    assert query.why_not(EVENTS, [0], time="at").detected_at == 3
    answer = query.why_not(EVENTS, [4], time="at", until="2024-03-15T11:10:00")
    assert not answer
    assert str(answer) == "the events are a match, detected at 2024-03-15 11:10:00 as time passes"
    assert query.why_not(EVENTS, [4], time="at", until="2024-03-15T11:09:59")


def test_a_strategy_chooses_among_what_the_clock_shows():
    rows = pa.table({"type": ["A", "A", "C"], "t": [0, 0, 1]})
    query = cerflow.parse("SELECT NEXT * WHERE (A ; C) NOT FOLLOWED BY B FOR 5 MILLISECONDS")
    assert not query.why_not(rows, [0, 2], time="t", until=6)
    assert "the clock completes other matches" in str(query.why_not(rows, [1, 2], time="t", until=6))


def test_until_is_a_time():
    with pytest.raises(InputError, match="not a time of the column"):
        list(cerflow.parse(CART).trace(EVENTS, time="at", until="soon").steps())
