"""Absence until a deadline (spec §10), worked by hand."""

import math
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import QueryError
from cerflow.base.events import Stream
from cerflow.language.formula import (
    AttributeWindow,
    CountWindow,
    DurationWindow,
    NotFollowedBy,
    Repetition,
    Selection,
    Start,
    Strategy,
    StrictSequence,
)
from cerflow.language.node import transform, walk
from cerflow.language.parser import parse_formula, parse_query
from cerflow.language.select import Select
from cerflow.theory.semantics.formulas import Denotation
from cerflow.theory.semantics.queries import evaluate
from support.generators.conditions import Fragment
from support.generators.queries import DEADLINE, around, stream_of, streams
from support.golden import rows
from support.runners import examples


def found(formula, types, times, *, until=None, unit="s", **columns):
    """What is detected: (event or deadline in brackets, positions), in the order of detection."""
    text = formula if formula.startswith("SELECT") else f"SELECT * WHERE {formula}"
    stream = Stream.from_dicts(rows(types, t=times, **columns), time="t", time_unit=unit)
    return [
        (m.detected_at if m.deadline is None else [m.deadline], "".join(map(str, sorted(m.positions))))
        for m in evaluate(parse_query(text), stream, until=until)
    ]


CART = "A NOT FOLLOWED BY B FOR 5 SECONDS"


def test_the_first_event_at_or_after_the_deadline_shows_it():
    assert found(CART, "ACC", [0, 4, 5]) == [(2, "0")]
    assert found(CART, "ACC", [0, 4, 9]) == [(2, "0")]
    assert found(CART, "ACC", [0, 1, 4]) == []


def test_an_event_at_the_deadline_comes_too_late_and_one_of_the_same_time_does_not():
    assert found(CART, "AB", [0, 4]) == []
    assert found(CART, "AB", [0, 5]) == [(1, "0")]
    assert found(CART, "ABC", [0, 0, 5]) == []
    assert found(CART, "BAC", [0, 0, 5]) == [(2, "1")]


def test_every_event_has_a_deadline_of_its_own():
    assert found(CART, "AABC", [0, 2, 6, 9]) == [(2, "0")]
    assert found(CART, "AAC", [0, 2, 9]) == [(2, "0"), (2, "1")]


def test_what_follows_may_be_the_event_that_shows_the_deadline():
    assert found(f"({CART}) ; D", "ADD", [0, 4, 5]) == [(2, "02")]
    assert found(f"({CART}) ; D", "ACD", [0, 7, 9]) == [(2, "02")]
    assert found("(A NOT FOLLOWED BY B FOR 2 [v]) ; D", "ADD", [0, 1, 2], v=[1, 2, 3]) == [(2, "02")]
    # Within two events the last one is not after them.
    assert found("(A NOT FOLLOWED BY B FOR 2 EVENTS) ; D", "ADDD", [0, 1, 2, 3]) == [(3, "03")]


def test_events_are_counted_from_the_one_that_completes_the_formula():
    assert found("A NOT FOLLOWED BY B FOR 2 EVENTS", "ACCB", [0, 0, 0, 0]) == [(2, "0")]
    assert found("A NOT FOLLOWED BY B FOR 2 EVENTS", "ACB", [0, 0, 0]) == []
    assert found("A NOT FOLLOWED BY B FOR 2 EVENTS", "AC", [0, 0]) == []
    assert found("(A ; C) NOT FOLLOWED BY B FOR 1 EVENT", "ACDB", [0] * 4) == [(2, "01")]


def test_events_without_the_attribute_reach_no_deadline():
    waits = "A NOT FOLLOWED BY B FOR 2 [v]"
    assert found(waits, "ACBD", [0] * 4, v=[1, 2, None, 3]) == []
    assert found(waits, "ACCBD", [0] * 5, v=[1, 2, None, 3, 4]) == [(3, "0")]
    assert found(waits, "ACC", [0] * 3, v=[None, 2, 9]) == []


def test_an_event_of_any_partition_shows_a_deadline_in_time():
    query = f"SELECT * WHERE {CART} PARTITION BY k"
    assert found(query, "AACB", [0, 1, 5, 8], k=[1, 2, 3, 1]) == [(2, "0"), (3, "1")]
    # Neither does a checkout of another key count, nor is an event without a key in vain.
    assert found(query, "ABC", [0, 1, 5], k=[1, 2, None]) == [(2, "0")]
    # Events are counted in the substream.
    query = "SELECT * WHERE A NOT FOLLOWED BY B FOR 1 EVENT PARTITION BY k"
    assert found(query, "ACC", [0, 1, 2], k=[1, 2, 1]) == [(2, "0")]


def test_a_clock_shows_what_no_event_does():
    assert found(CART, "AC", [0, 2], until=4) == []
    assert found(CART, "AC", [0, 2], until=5) == [([5], "0")]
    assert found(CART, "AAC", [0, 2, 6], until=100) == [(2, "0"), ([7], "1")]
    assert found("A NOT FOLLOWED BY B FOR 2 EVENTS", "AC", [0, 2], until=100) == []
    assert found(f"({CART}) ; D", "A", [0], until=100) == []
    assert found(CART.replace("SECONDS", "MILLISECONDS"), "A", [0], until=1) == [([Fraction(1, 200)], "0")]


def test_labels_can_be_read_behind_the_deadline():
    same = "A AS x NOT FOLLOWED BY (B AS y FILTER y.k = x.k) FOR 5 SECONDS"
    assert found(same, "AABC", [0, 0, 1, 5], k=[1, 2, 2, 0]) == [(3, "0")]
    assert found(f"SELECT x.k AS k WHERE {same}", "AC", [0, 5], k=[7, 0]) == [(1, "0")]


def test_absence_of_a_sequence_that_begins_within():
    assert found("A NOT FOLLOWED BY (B ; C) FOR 5 SECONDS", "ABCD", [0, 1, 4, 9]) == []
    assert found("A NOT FOLLOWED BY (B ; C) FOR 5 SECONDS", "ABC", [0, 1, 5]) == [(2, "0")]
    # What began before the event that completes the formula does not count.
    assert found("A NOT FOLLOWED BY (B ; C) FOR 5 SECONDS", "BACD", [0, 1, 2, 9]) == [(3, "1")]


def test_several_deadlines():
    either = f"({CART}) OR (A NOT FOLLOWED BY C FOR 8 SECONDS)"
    assert found(either, "AD", [0, 9]) == [(1, "0")]
    assert found(either, "ADE", [0, 6, 9]) == [(1, "0"), (2, "0")]
    assert found(either, "ABD", [0, 1, 9]) == [(2, "0")]
    assert found(either, "A", [0], until=9) == [([5], "0"), ([8], "0")]
    twice = f"({CART}) ; (A NOT FOLLOWED BY C FOR 5 SECONDS)"
    assert found(twice, "AAD", [0, 5, 10]) == [(2, "01")]
    both = f"({CART}) AND (A NOT FOLLOWED BY C FOR 5 SECONDS)"
    assert found(both, "AD", [0, 9]) == [(1, "0")]
    assert found(both, "ACD", [0, 1, 9]) == []


def test_what_is_excluded_counts_once_its_deadline_has_passed():
    # An alarm X that is not answered by Y within 2 seconds, before C comes.
    unanswered = "(A ; C) {} (X NOT FOLLOWED BY Y FOR 2 SECONDS)"
    for excluding in ("UNLESS", "WITHOUT"):
        formula = unanswered.format(excluding)
        assert found(formula, "AXYC", [0, 1, 2, 9]) == [(3, "03")]
        assert found(formula, "AXC", [0, 1, 9]) == []
        assert found(formula, "AXC", [0, 1, 2]) == [(2, "02")]
    within = "A NOT FOLLOWED BY (X NOT FOLLOWED BY Y FOR 2 SECONDS) FOR 5 SECONDS"
    assert found(within, "AXD", [0, 1, 9]) == []
    assert found(within, "AXD", [0, 4, 9]) == [(2, "0")]
    assert found(within, "AXYD", [0, 1, 2, 9]) == [(3, "0")]


def test_a_second_deadline_begins_at_the_last_event_before_the_first():
    again = f"({CART}) NOT FOLLOWED BY C FOR 5 SECONDS"
    assert found(again, "ADE", [0, 4, 8]) == []
    assert found(again, "ADE", [0, 4, 9]) == [(2, "0")]
    assert found(again, "ADCE", [0, 4, 6, 9]) == []


def test_windows_bound_the_complex_event_and_not_the_deadline():
    assert found(f"SELECT * WHERE {CART} WITHIN 1 EVENT", "ACCC", [0, 1, 2, 9]) == [(3, "0")]
    assert found("((A ; B) NOT FOLLOWED BY C FOR 5 SECONDS) WITHIN 2 SECONDS", "ABAB", [0, 1, 10, 12]) == [(2, "01")]


def test_strategies_choose_among_matches_of_one_moment():
    pair = "(A ; B) NOT FOLLOWED BY C FOR 5 SECONDS"
    assert found(f"SELECT * WHERE {pair}", "AABD", [0, 1, 2, 9]) == [(3, "02"), (3, "12")]
    assert found(f"SELECT NEXT * WHERE {pair}", "AABD", [0, 1, 2, 9]) == [(3, "02")]
    assert found(f"SELECT LAST * WHERE {pair}", "AABD", [0, 1, 2, 9]) == [(3, "12")]
    # What an event shows and what it completes itself are matches of one moment.
    mixed = "({}) OR E"
    assert found(f"SELECT LAST * WHERE {mixed.format(CART)}", "AE", [0, 9]) == [(1, "1")]
    assert found(f"SELECT * WHERE {mixed.format(CART)} LIMIT 1", "AE", [0, 9]) == [(1, "0")]
    # The clock shows one deadline after the other.
    assert found(f"SELECT LAST * WHERE {CART}", "AA", [0, 1], until=9) == [([5], "0"), ([6], "1")]
    assert found(f"SELECT LAST * WHERE {CART}", "AAC", [0, 1, 9]) == [(2, "1")]
    assert found(f"NEXT({pair})", "AABD", [0, 1, 2, 9]) == [(3, "02")]


def test_limit_and_counts_are_those_of_a_partition():
    limited = f"SELECT * WHERE {CART} PARTITION BY k LIMIT 1"
    assert found(limited, "AAAC", [0, 0, 0, 5], k=[1, 1, 2, 3]) == [(3, "0"), (3, "2")]
    query = parse_query(f"SELECT COUNT(*) AS n WHERE {CART} PARTITION BY k")
    events = Stream.from_dicts(rows("AAAC", t=[0, 0, 0, 5], k=[1, 1, 2, 3]), time="t", time_unit="s")
    assert [(m.detected_at, m.key, m.columns) for m in evaluate(query, events)] == [
        (3, (1,), (("n", 2),)),
        (3, (2,), (("n", 1),)),
    ]


def test_consumption_forgets_what_began_up_to_the_moment_of_detection():
    consuming = f"SELECT * WHERE {CART} CONSUME BY ANY"
    assert found(consuming, "AACC", [0, 3, 5, 9]) == [(2, "0")]
    assert found(consuming, "AACAC", [0, 3, 5, 6, 11]) == [(2, "0"), (4, "3")]
    # An event that shows a deadline is forgotten, too.
    assert found(consuming, "AAC", [0, 5, 10]) == [(1, "0")]
    by_key = f"SELECT * WHERE {CART} PARTITION BY k CONSUME BY PARTITION"
    assert found(by_key, "AAACC", [0, 3, 3, 5, 8], k=[1, 1, 2, 3, 3]) == [(3, "0"), (4, "2")]
    everywhere = f"SELECT * WHERE {CART} PARTITION BY k CONSUME BY ANY"
    assert found(everywhere, "AAACC", [0, 3, 3, 5, 8], k=[1, 1, 2, 3, 3]) == [(3, "0")]
    assert found(consuming, "AA", [0, 3], until=20) == [([5], "0")]


def test_contiguity():
    assert found(f"({CART}) : D", "AD", [0, 5]) == [(1, "01")]
    assert found(f"({CART}) : D", "ACD", [0, 1, 5]) == []
    assert found(f"STRICT(A ; {CART.replace('A', 'C')})", "ACD", [0, 1, 9]) == [(2, "01")]


def test_repetition():
    assert found(f"({CART})+", "AAC", [0, 5, 10]) == [(1, "0"), (2, "01"), (2, "1")]
    assert found("A+ NOT FOLLOWED BY B FOR 5 SECONDS", "AAC", [0, 1, 6]) == [(2, "0"), (2, "01"), (2, "1")]


def test_moments_of_a_formula():
    stream = Stream.from_dicts(rows("ACC", t=[0, 4, 9]), time="t", time_unit="s")
    meaning = Denotation(parse_formula(CART), stream)
    assert meaning(0, 1) == {frozenset({("A", 0)})}
    assert meaning(0, 0) == meaning(0, 2) == frozenset()
    ((_, moment),) = meaning.known(0, 1)
    assert moment == (2, 5)
    assert moment < (2, math.inf)


def test_a_duration_needs_times():
    with pytest.raises(QueryError, match="a deadline in time needs events with times"):
        evaluate(parse_query(f"SELECT * WHERE {CART}"), Stream.from_dicts(rows("A")))


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [
        (pa.timestamp("us"), 0, 9_000_000),
        (pa.timestamp("ns", "Europe/Berlin"), 0, 9_000_000_000),
        (pa.timestamp("s"), 0, 9),
        (pa.int32(), 0, 9_000),
        (pa.float64(), 0.0, 9_000.0),
    ],
)
def test_columns_of_the_result(kind, first, last):
    table = pa.table({"type": ["A", "C"], "t": pa.array([first, last]).cast(kind)})
    result = cerflow.parse(f"SELECT * WHERE {CART}").match(table, time="t", runner="semantics").to_arrow()
    assert result.schema.field("detected_time").type == kind
    (row,) = result.to_pylist()
    assert (row["detected_at"], row["start"], row["end"]) == (1, 0, 0)
    assert row["detected_time"] == table["t"][1].as_py()
    assert row["start_time"] == row["end_time"] == table["t"][0].as_py()


_PLAIN = Fragment(depth=2, strict=False, wild=False, windows=False, deadlines=True)


def _in_time(formula):
    """The formula with durations for all windows."""
    return transform(formula, lambda n: DurationWindow(n.events * 1000) if isinstance(n, CountWindow) else n)


def _counts_events(current):
    """Whether an operator notices events that no formula reads."""
    match current:
        case Start() | StrictSequence() | AttributeWindow() | Selection(strategy=Strategy.STRICT):
            return True
        case Repetition():
            return current.strict
        case NotFollowedBy():
            return any(isinstance(n, NotFollowedBy) for n in walk(current.left))
    return False


@examples(400)
@given(around(DEADLINE, _PLAIN).map(_in_time), streams(max_size=6), st.lists(st.integers(0, 6), max_size=3))
def test_events_that_no_formula_reads_only_show_time(formula, stream_rows, places):
    assume(not any(_counts_events(n) for n in walk(formula)))
    new_place, longer = list(range(len(stream_rows))), list(stream_rows)
    for place in sorted((p % (len(stream_rows) + 1) for p in places), reverse=True):
        longer.insert(place, {"type": "Z", "t": longer[place - 1]["t"] if place else 0})
        new_place = [p + (p >= place) for p in new_place]
    query = Select(formula)
    before, after = (evaluate(query, stream_of(r), until=1000) for r in (stream_rows, longer))
    moved = {frozenset((label, new_place[p]) for label, p in m.complex_event) for m in before}
    assert moved == {m.complex_event for m in after}
