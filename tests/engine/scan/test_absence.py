"""Single events that nothing follows until a deadline are found in rows; the automaton finds the same."""

import random
from itertools import groupby
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.scan import scan
from cerflow.engine.scan.program.absence import Absence
from support.runners import bag, examples, in_random_pieces, one_batch, semantics

FORMULAS = [
    "A AS a NOT FOLLOWED BY B FOR {}",
    "A NOT FOLLOWED BY EVENT FOR {}",
    "A NOT FOLLOWED BY A FOR {}",
    "(A OR B) AS x NOT FOLLOWED BY (A OR C) FOR {}",
    "EVENT AS e NOT FOLLOWED BY (B AS b FILTER b.v > 3) FOR {}",
    "(A AS a FILTER a.v > 2) NOT FOLLOWED BY (B OR (A AS z FILTER z.v < 4)) FOR {}",
    "(EVENT AS e FILTER e.v > 3) NOT FOLLOWED BY (EVENT AS g FILTER g.v < 2) FOR {}",
    "(EVENT AS B FILTER B.v > 3) NOT FOLLOWED BY (EVENT AS C FILTER C.v < 2) FOR {}",
]
#: What only the automaton can tell, and a part of the reason.
REFUSED = {
    "(A ; B) NOT FOLLOWED BY C FOR 3 SECONDS": "more than one event",
    "A AS a NOT FOLLOWED BY (B AS b FILTER b.v > a.v) FOR 3 SECONDS": "relates two events",
    "A NOT FOLLOWED BY (B ; C) FOR 3 SECONDS": "more than one event",
    "A NOT FOLLOWED BY B FOR 3 SECONDS CONSUME BY ANY": "CONSUME",
    "A NOT FOLLOWED BY B FOR 3 [t]": "duration",
    "(A NOT FOLLOWED BY B FOR 3 SECONDS) OR (A NOT FOLLOWED BY C FOR 2 SECONDS)": "duration",
}


def by_moment(found):
    """Matches in the order of the moments when they were detected; those of one moment have no order."""
    return [bag(some) for _, some in groupby(found, lambda match: (match["detected_at"], match["detected_time"]))]


@st.composite
def queries(draw):
    formula = draw(st.sampled_from(FORMULAS)).format(draw(st.sampled_from(["1 MILLISECONDS", "3 MILLISECONDS"])))
    keys = draw(st.sampled_from(["", " PARTITION BY k", " PARTITION BY s", " PARTITION BY k, s"]))
    what = draw(st.sampled_from(["*", "*", "*", "COUNT(*) AS many", "a"])) if "AS a" in formula else "*"
    keys += draw(st.sampled_from(["", " WITHIN 2 MILLISECONDS"]))
    return f"SELECT {what} WHERE {formula}{keys}{draw(st.sampled_from(['', '', ' LIMIT 1', ' LIMIT 2']))}"


def stream(seed, size, keys, bursts=False):
    generator = random.Random(seed)
    time, rows, texts = generator.choice([0, -(10**12)]), [], [f"u{k}" for k in range(keys)]
    for _ in range(size):
        # In a burst, one event shows the deadlines of many.
        time += generator.choices([0, 1, 9], [20, 1, 1])[0] if bursts else generator.choice([0, 0, 1, 1, 2, 5])
        key = generator.choice([*range(keys), *range(keys), 2**63 - 1, 1 - 2**63, None])
        rows.append((generator.choice("AABCD"), time, key, generator.choice([*texts, None]), generator.randrange(6)))
    columns = zip(*rows)
    times = generator.choice([pa.int64(), pa.timestamp("ms"), pa.float64()])
    kinds = {"type": pa.string(), "t": pa.int64(), "k": pa.int64(), "s": pa.string(), "v": pa.int64()}
    table = pa.table({name: pa.array(column, kind) for (name, kind), column in zip(kinds.items(), columns)})
    return table.set_column(1, "t", table["t"].cast(times))


@given(query=queries(), seed=st.integers(0, 10**6), size=st.integers(1, 40), data=st.data())
@examples(200)
def test_matches_are_those_of_the_semantics(query, seed, size, data):
    query, table = cerflow.parse(query), stream(seed, size, data.draw(st.integers(1, 3)))
    with mock.patch.object(limits, "NARROWED_ROWS", 1):
        found = in_random_pieces(query, table, data, time="t")
    if query.tree.limit is None:
        assert bag(found) == bag(semantics(query, table, time="t"))
    with mock.patch.object(scan, "find_absences", return_value=None):
        assert by_moment(found) == by_moment(one_batch(query, table, time="t"))


@given(query=queries(), seed=st.integers(0, 10**6), data=st.data())
@examples(40)
def test_long_streams_have_the_same_matches_in_the_same_order(query, seed, data):
    bursts = data.draw(st.booleans())
    query, table = cerflow.parse(query), stream(seed, 3000, data.draw(st.sampled_from([1, 20, 400])), bursts)
    found = in_random_pieces(query, table, data, time="t")
    with mock.patch.object(scan, "find_absences", return_value=None):
        assert by_moment(found) == by_moment(one_batch(query, table, time="t"))


def test_most_events_are_not_read_by_the_automaton():
    query, table = (
        cerflow.parse("SELECT * WHERE A NOT FOLLOWED BY B FOR 3 MILLISECONDS PARTITION BY k"),
        stream(1, 3000, 40),
    )
    recognizer = query.recognizer(table.schema, time="t")
    told = []

    def noted(*arguments):
        found = find(*arguments)
        told.append(None if found is None else found.last + 1 + 1500 - found.behind)
        return found

    find = scan.find_absences
    with mock.patch.object(scan, "find_absences", noted):
        found = [recognizer.push(table.slice(at, 1500)).count() for at in (0, 1500)]
    assert len(told) == 2
    assert all(number is not None and number < 20 for number in told)
    assert min(found) > 100


@pytest.mark.parametrize(("formula", "reason"), REFUSED.items(), ids=REFUSED)
def test_what_the_automaton_has_to_follow(formula, reason):
    schema = Schema(pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.int64())]), time="t")
    plan = Plan(cerflow.parse(f"SELECT * WHERE {formula}").tree, schema)
    assert reason in plan.begin_scan().program.absence


def test_labels_that_may_be_types_make_no_difference_to_waiting():
    schema = Schema(pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.int64())]), time="t")
    text = "(EVENT AS e FILTER e.v > 3) NOT FOLLOWED BY (EVENT AS g FILTER g.v < 2) FOR 3 SECONDS"
    scanned = Plan(cerflow.parse(f"SELECT * WHERE {text}").tree, schema).begin_scan()
    assert isinstance(scanned.program.absence, Absence)
    # One loop while no event ends the wait, one for pauses.
    assert [len(loops) for loops in scanned.tables.moves.loops] == [1, 2, 1, 0]


@pytest.mark.parametrize("rows", [400, 1000])
def test_strings_may_be_forgotten_between_batches(rows, monkeypatch):
    """What the automaton reads at the end of a batch names strings that it met before its beginning."""
    generator = random.Random(rows)
    types = [generator.choice("AACCCCCCB") for _ in range(6000)]
    users = [f"u{k // 8 + generator.randrange(40)}" for k in range(6000)]
    table = pa.table({"type": types, "t": range(0, 6_000_000, 1000), "user": users})
    query = cerflow.parse("SELECT * WHERE (A AS a NOT FOLLOWED BY B FOR 20 SECONDS) PARTITION BY [user]")

    def found():
        recognizer, rows_found = query.recognizer(table.schema, time="t"), []
        for batch in table.to_batches(max_chunksize=rows):
            rows_found += recognizer.push(batch).to_pylist()
        assert recognizer._machine.reader.scan.absences is not None
        return rows_found, recognizer.live["strings"]

    expected, many = found()
    monkeypatch.setattr(limits, "STRING_SLACK", 5)
    again, few = found()
    assert again == expected
    assert few < many
