"""Where deadlines end matches, and where values of earlier events matter, few events come to the automaton."""

import math
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.engine.recognize.plan import Plan
from support.runners import RUNNERS, bag, examples, in_random_pieces

DEADLINES = [
    "(A ; B) NOT FOLLOWED BY C FOR {long}",
    "((A ; B) WITHIN {short}) NOT FOLLOWED BY C FOR {long}",
    "((A ; B) WITHIN {short}) NOT FOLLOWED BY C FOR {short}",
    "(A AS x ; B AS y FILTER y.v > 2) NOT FOLLOWED BY (C OR A) FOR {long}",
    "((A AS x ; B AS y) FILTER y.v > x.v) NOT FOLLOWED BY (C AS z FILTER z.v > 2) FOR {long}",
    "(A ; B ; A) NOT FOLLOWED BY EVENT FOR {long}",
    "((A ; B) NOT FOLLOWED BY C FOR {long}) OR (C NOT FOLLOWED BY A FOR {short})",
    "(A ; B+) NOT FOLLOWED BY C FOR {long}",
    "((A ; B) UNLESS D) NOT FOLLOWED BY C FOR {long}",
    "((A AS x ; B AS y) FILTER x.v < y.v AND y.n = x.n) NOT FOLLOWED BY (B AS z FILTER z.v = 3) FOR {long}",
    "(A OR (B ; C)) NOT FOLLOWED BY D FOR {long}",
    "A ; (B NOT FOLLOWED BY C FOR {long})",
    "(A NOT FOLLOWED BY B FOR {short}) ; C",
]


def _stream(generator, size):
    time, times = 0, []
    for _ in range(size):
        time += generator.choice([0, 0, 1, 1, 2, 5, generator.choice([1, 1, 50])])
        times.append(time)
    values = generator.choice([[1, 2, 3, 4, None, 2**63 - 1, -(2**63) + 1], [0.0, -0.0, 2.5, float("inf"), None]])
    keys = generator.choice([["p"], ["p", "q", None], [f"a key that is long, {k}" for k in range(30)]])
    base = generator.choice([0, -(2**50)])
    return pa.table(
        {
            "type": [generator.choice("AABBCD") for _ in range(size)],
            "k": pa.array([generator.choice(keys) for _ in range(size)], pa.string()),
            "n": [generator.choice([1, 2]) for _ in range(size)],
            "v": pa.array([generator.choice(values) for _ in range(size)], pa.infer_type(values)),
            "t": [base + time for time in times],
        }
    )


WHOLE = [0, 1, 5, -4, 2**63 - 1, -(2**63) + 1, 2**63 - 3, None]
FLOATS = [0.0, -0.0, 1.5, 1 + 2**-52, 1 - 2**-53, 1e308, -1e308, math.inf, -math.inf, math.nan, None]
SUMS = [
    "{one} - {other} {how} {constant}",
    "{one} + {other} {how} {constant}",
    "{constant} {how} {one} - {other}",
    "abs({one} - {other}) {how} {constant}",
    "{one} - {other} BETWEEN {constant} AND 3",
    "2 * {one} - {other} {how} {constant}",
    "NOT {one} - {other} {how} {constant}",
]


@given(st.data())
@examples(300)
def test_sums_and_differences_rule_out_no_event_of_a_match(data):
    """Whatever is rounded, and wherever integers leave their range."""
    values = data.draw(st.sampled_from([WHOLE, FLOATS]))
    ends = [-3, -1, 0, 1, 2] if values is WHOLE else [-1.0, 0.0, 1.0, 2**-52, 1e308]
    one, other = data.draw(st.permutations(["x.v", "y.v"]))
    how = data.draw(st.sampled_from(["<", "<=", ">", ">=", "="]))
    sums = data.draw(st.sampled_from(SUMS))
    condition = sums.format(one=one, other=other, how=how, constant=data.draw(st.sampled_from(ends)))
    size = data.draw(st.integers(2, 30))
    drawn = st.lists(st.sampled_from(values), min_size=size, max_size=size)
    kind = pa.int64() if values is WHOLE else pa.float64()
    table = pa.table({"v": pa.array(data.draw(drawn), kind), "type": list("AB" * size)[:size], "t": range(size)})
    bound = data.draw(st.sampled_from(["", " WITHIN 4 [t]"]))
    what = data.draw(st.sampled_from(["*", "NEXT *", "LAST *"]))
    query = cerflow.parse(f"SELECT {what} WHERE (A AS x ; (A OR B) AS y) FILTER {condition}{bound}")
    expected = bag(RUNNERS["semantics"](query, table, time="t"))
    assert bag(RUNNERS["narrowed"](query, table, time="t")) == expected


@given(st.data())
@examples(300)
def test_matches_that_deadlines_end_are_those_of_the_semantics(data):
    generator = random.Random(data.draw(st.integers(0, 10**6)))
    table = _stream(generator, data.draw(st.sampled_from([12, 40, 300])))
    long, short = (f"{data.draw(st.sampled_from(some))} MILLISECONDS" for some in ([0.001, 1, 10, 200], [1, 3, 40]))
    formula = data.draw(st.sampled_from(DEADLINES)).format(long=long, short=short)
    what = data.draw(st.sampled_from(["*", "*", "NEXT *", "LAST *", "MAX *", "NONE", "COUNT(*) AS many"]))
    keys = data.draw(st.sampled_from(["", " PARTITION BY k", " PARTITION BY n", " PARTITION BY k, n"]))
    limit = data.draw(st.sampled_from(["", "", " LIMIT 1", " CONSUME BY ANY"])) if "*" in what[-1] else ""
    query = cerflow.parse(f"SELECT {what} WHERE {formula}{keys}{limit}")
    until = data.draw(st.sampled_from([None, 0, 1, 100]))
    until = None if until is None else table["t"][-1].as_py() + until
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "NARROWED_ROWS", 1 << 30)
        if query.match(table, time="t").count() > 3000:
            return
        plain, whole = query.match(table, time="t").to_pylist(), query.match(table, time="t", until=until).to_pylist()
        patch.setattr(limits, "NARROWED_ROWS", 1)
        patch.setattr(limits, "FLOW_ROWS", data.draw(st.sampled_from([5, 16, 1 << 20])))
        query = cerflow.parse(str(query))
        # Also in their order.
        assert query.match(table, time="t").to_pylist() == plain
        assert query.match(table, time="t", until=until).to_pylist() == whole
        assert in_random_pieces(query, table, data, time="t") == plain
    if "LIMIT" not in str(query) and table.num_rows < 16:
        assert bag(plain) == bag(RUNNERS["semantics"](query, table, time="t"))


def test_events_of_runs_that_no_deadline_completes_do_not_come_to_the_automaton(rows_read):
    # Every user has an A, a B soon after, and nearly always a C before the deadline.
    users = range(2_000)
    rows = [(10 * u + k, kind, u) for u in users for k, kind in enumerate("ABC") if kind != "C" or u % 100]
    time, types, keys = zip(*sorted((second, kind, user) for second, kind, user in rows))
    table = pa.table({"t": time, "type": types, "k": keys})
    query = cerflow.parse("SELECT * WHERE (A ; B) NOT FOLLOWED BY C FOR 1 SECOND PARTITION BY k")
    found = query.match(table, time="t").count()
    assert found == 19
    # Those that wait at the end of the table may still find no C.
    assert rows_read[0] < 2 * found + 20


def test_events_beyond_what_earlier_and_later_ones_have_do_not_come_to_the_automaton(by_automaton, rows_read):
    generator = random.Random(7)
    size = 20_000
    columns = {"type": ["AB"[k % 2] for k in range(size)], "v": [generator.gauss(0, 1) for _ in range(size)]}
    table = pa.table({"t": range(size), "k": [generator.randrange(200) for _ in range(size)], **columns})
    pattern = "(A AS x ; B AS y) FILTER y.v > x.v + 4 PARTITION BY k"
    found = cerflow.parse(f"SELECT * WHERE {pattern} WITHIN 3 SECONDS").match(table, time="t").count()
    assert found > 20
    assert rows_read[0] < 10 * found
    alike = [
        "SELECT NEXT * WHERE (A AS x ; B AS y) FILTER y.v > x.v + 4",
        "SELECT * WHERE (A AS x ; B AS y) FILTER y.v - x.v > 4",
        "SELECT LAST * WHERE (A AS x ; B AS y) FILTER 4 < y.v - x.v",
    ]
    for text in alike:
        assert cerflow.parse(f"{text} PARTITION BY k WITHIN 3 SECONDS").match(table, time="t").count() > 20
    assert max(rows_read) < 10 * found
    everything = cerflow.parse("SELECT * WHERE A ; B PARTITION BY k WITHIN 3 SECONDS").match(table, time="t")
    assert everything.count() > 1000
    assert rows_read[-1] > size / 2


def test_a_condition_on_an_event_of_the_batch_before_rules_out_nothing(monkeypatch):
    """The third of a row of events is the second one of its key in the batch: nothing is known of the first one."""
    table = pa.table(
        {
            "type": ["X"] * 3 + ["A", "X", "A", "A", "Z"],
            "k": [1, 1, 1, 2, 1, 2, 2, 2],
            "s": ["other"] * 3 + ["same", "other", "mine", "same", "last"],
            "v": [0, 0, 0, 1, 0, 2, 1, 9],
            "t": range(8),
        }
    )
    row = "(EVENT AS x : EVENT AS y : EVENT AS w ; EVENT AS z) FILTER x.s = w.s AND y.v > x.v AND z.v > 3"
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)
    monkeypatch.setattr(limits, "FLOW_ROWS", 4)
    assert cerflow.parse(f"SELECT * WHERE {row} PARTITION BY k").match(table, time="t").count() == 1


def test_what_a_text_says_is_not_asked_before_texts_are_known(monkeypatch):
    columns = {"type": list("BCBAD"), "s": ["y", None, None, "xy", "x"], "k": [1, 1, 2, 1, 2], "t": range(5)}
    query = cerflow.parse("SELECT * WHERE (B AS x ; (C FILTER x[lower(s) >= 'pqq'])):+ ; A PARTITION BY k")
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)
    assert query.match(pa.table(columns), time="t").count() == 1


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT * WHERE (A ; B) NOT FOLLOWED BY C FOR 1 SECOND PARTITION BY k", True),
        ("SELECT * WHERE ((A ; B) WITHIN 1 SECOND) NOT FOLLOWED BY C FOR 1 SECOND", True),
        ("SELECT * WHERE A NOT FOLLOWED BY C FOR 1 SECOND PARTITION BY k", "single events wait"),
        ("SELECT * WHERE (A NOT FOLLOWED BY B FOR 1 SECOND) ; C", "deadlines that do not end a match"),
        ("SELECT NEXT * WHERE (A ; B) NOT FOLLOWED BY C FOR 1 SECOND", True),
        ("SELECT * WHERE (A ; B) NOT FOLLOWED BY C FOR 1 SECOND CONSUME BY ANY", "CONSUME"),
        ("SELECT * WHERE (A ; B) NOT FOLLOWED BY C FOR 3 [v]", "every event counts"),
    ],
)
def test_queries_with_deadlines_in_which_runs_say_which_events_matter(query, found):
    schema = pa.schema({"type": pa.string(), "k": pa.string(), "v": pa.int64(), "t": pa.int64()})
    flow = Plan(cerflow.parse(query).tree, Schema(schema, time="t")).scan.flow
    assert found in flow if isinstance(flow, str) else flow.waits == found
