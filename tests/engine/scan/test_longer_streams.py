"""Random queries of the whole language on streams that are long enough for every pass over a batch.

Rows that are left out change no match, nor its place: batches that are narrowed give what those give that are not.
"""

import random
from copy import copy
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.errors import CerflowError, QueryError
from cerflow.engine import layout
from cerflow.language.printer import show
from support.conformance import table_of
from support.generators.conditions import STRINGS, TYPES, Fragment
from support.generators.limits import FLOATS, INTEGERS, TEXTS
from support.generators.selects import selects
from support.runners import bag, examples, frozen, in_random_pieces, semantics

FRAGMENTS = [
    *(Fragment(), Fragment(more=True), Fragment(deadlines=True), Fragment(more=True, deadlines=True)),
    *(Fragment(aggregates=True), Fragment(some=True), Fragment(depth=2, more=True), Fragment(depth=2, deadlines=True)),
]
#: Types of which some are rarer than others, and labels, which become types late in the stream.
FREQUENCIES = [(*TYPES, "D"), (*TYPES, *"D" * 8), tuple("ABCDEFG"), ("A",) * 6 + ("B",) * 3 + ("C", "D")]
LATE = ("x", "y", "z")
#: With more matches a comparison takes too long.
MOST = 3_000


def _stream(generator, size):
    """A stream of so many events; in one of five there are values at the limits of their kinds."""
    far, keys = generator.random() < 0.2, generator.choice([2, 5])
    types, late = generator.choice(FREQUENCIES), generator.choice([size, size, size // 2, size // 4])
    steps = generator.choice([(0, 1, 1, 2, 3), (0, 0, 1), (1,), (0, 1, 1000, 3000)])

    def value(near, limits_of_kind):
        if generator.random() < 0.05:
            return None
        return generator.choice(limits_of_kind if far and generator.random() < 0.3 else near)

    time, ordered, rows = 0, 0, []
    for k in range(size):
        time, ordered = time + generator.choice(steps), ordered + generator.choice((0, 1, 2))
        row = {"type": generator.choice(types if k < late else (*types, *LATE)), "t": time, "n": ordered}
        row |= {name: value(STRINGS, TEXTS[:4]) for name in "se"} | {"k": value(range(keys), INTEGERS)}
        rows.append(row | {"v": value(range(-1, 4), INTEGERS), "w": value((-0.0, 0.0, 0.5, 1.0, 2.5), FLOATS)})
    table = table_of(rows)
    for name in generator.choice([(), (), ("type",), ("type", "s")]):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].dictionary_encode())
    return table


def _fresh(query):
    """The query without what it knows of other batches."""
    other = copy(query)
    vars(other).pop("_plans", None)
    return other


def _few_matches(query, table, roles):
    """The matches that a recogniser finds, or None where these are many or the engine cannot evaluate the query."""
    try:
        recognizer, found = query.recognizer(table.schema, **roles), []
        for begin in range(0, table.num_rows, 10):
            matches = recognizer.push(table.slice(begin, 10))
            if len(found) + matches.count() > MOST:
                return None
            found += map(frozen, matches.to_pylist())
    except CerflowError:
        return None
    return found


@given(st.data(), st.sampled_from(FRAGMENTS))
@examples(500)
def test_rows_that_are_left_out_change_no_match(data, fragment):
    try:
        query = cerflow.Query(data.draw(selects(fragment, strategies=data.draw(st.booleans()))))
    except QueryError:
        assume(False)
    generator = random.Random(data.draw(st.integers(0, 10**6)))
    table = _stream(generator, generator.choice([20, 40, 40, 80, 150]))
    forget = generator.choice([{}, {}, {"forget": "2 seconds"}])
    roles = {"time": "t", **forget}
    with (
        mock.patch.object(cerflow.Query, "warn_of_no_match"),
        mock.patch.multiple(limits, NARROWED_ROWS=1 << 30),
    ):
        # A table shows which types no event has, so it may be read by another automaton, which has another order.
        recognized = _few_matches(_fresh(query), table, roles)
        assume(recognized is not None)
        plain = [frozen(row) for row in _fresh(query).match(table, time="t").to_pylist()]
    narrow = {"FLOW_ROWS": generator.choice([1 << 20, 16, 33]), "COLUMN_ROWS": generator.choice([64, 1 << 22])}
    narrow |= {"FLOW_KEYS": generator.choice([1 << 17, 1 << 17, 2]), "NARROWED_ROWS": generator.choice([1, 6, 12])}
    narrow |= {"FLOW_KEY_ROWS": generator.choice([1 << 19, 16]), "NARROWING_PAUSE": generator.choice([0, 8])}
    # Pairs that are joined come in another order.
    narrow |= {"JOINED_ROWS": 1 << 30}
    with (
        mock.patch.object(cerflow.Query, "warn_of_no_match"),
        mock.patch.multiple(limits, **narrow),
        # As if there were too many states for the bits of a word.
        mock.patch.object(layout, "STATE_BITS", generator.choice([62, 62, 2])),
    ):
        assert [frozen(row) for row in _fresh(query).match(table, time="t").to_pylist()] == plain
        pieces = in_random_pieces(_fresh(query), table, data, **roles)
    assert [frozen(row) for row in pieces] == recognized
    if not forget and not {"ANY", "LIMIT"} & set(show(query.tree).split()):
        assert bag(recognized) == bag(plain)


@given(st.data())
@examples(500)
def test_sets_of_queries_in_pushes_of_any_length(data):
    chosen = st.tuples(st.sampled_from(FRAGMENTS), st.booleans()).flatmap(lambda f: selects(f[0], strategies=f[1]))
    try:
        queries = {f"q{k}": cerflow.Query(data.draw(chosen)) for k in range(data.draw(st.integers(1, 3)))}
    except QueryError:
        assume(False)
    generator = random.Random(data.draw(st.integers(0, 10**6)))
    table = _stream(generator, generator.choice([40, 80, 150]))
    roles = {"time": "t", **generator.choice([{}, {}, {"forget": "2 seconds"}])}
    with mock.patch.multiple(limits, NARROWED_ROWS=1 << 30):
        plain = {name: _few_matches(_fresh(query), table, roles) for name, query in queries.items()}
    assume(None not in plain.values())
    found, begin = {name: [] for name in queries}, 0
    narrow = {"NARROWED_ROWS": generator.choice([3, 6, 12]), "NARROWING_PAUSE": generator.choice([0, 8])}
    with mock.patch.multiple(limits, **narrow):
        together = cerflow.QuerySet({name: _fresh(query) for name, query in queries.items()})
        recognizer = together.recognizer(table.schema, **roles)
        while begin < table.num_rows:
            rows = table.slice(begin, generator.choice([1, 1, 2, 5, 13, 20, 40]))
            single = rows.num_rows == 1 and generator.random() < 0.5
            for name, matches in recognizer.push(rows.to_pylist()[0] if single else rows).items():
                found[name] += map(frozen, matches.to_pylist())
            begin += rows.num_rows
            if generator.random() < 0.1:
                recognizer = together.restore(recognizer.snapshot(), table.schema, **roles)
    assert {name: bag(rows) for name, rows in found.items()} == {name: bag(rows) for name, rows in plain.items()}


@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
@pytest.mark.parametrize(
    "formula",
    ["A UNLESS C", "(A ; B) UNLESS C", "(A UNLESS (C FILTER C.v > 2)) ; B", "START(A) ; B", "B ; (A UNLESS C)"],
)
def test_what_ends_all_runs_before_their_first_event_is_not_left_out(formula, keys, monkeypatch):
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)
    generator, size = random.Random(5), 80
    # No C is among the first events.
    types = ["A", "B", *generator.choices("AB", k=18), *generator.choices("AAABBBC", k=size - 20)]
    columns = {"type": types, "v": [k % 4 for k in range(size)], "k": generator.choices([1, 2, 3], k=size)}
    table = pa.table({**columns, "t": range(size)})
    query = cerflow.parse(f"SELECT * WHERE ({formula}){keys} WITHIN 30 [t]")
    found = query.match(table, time="t").to_pylist()
    assert found
    assert bag(found) == bag(semantics(query, table, time="t"))


@pytest.mark.parametrize(
    "clauses", ["", " PARTITION BY k", " WITHIN 30 [t]", " PARTITION BY k WITHIN 20 EVENTS", " CONSUME BY ANY"]
)
@pytest.mark.parametrize(
    "formula",
    [
        "START(A)",
        "START(A ; B)",
        "START((A AS a ; B AS b) FILTER b.v > a.v)",
        "START((A AS a : B AS b ; C AS c) FILTER c.v > a.v)",
        "START((A AS a OR B AS a) ; B AS b : C AS c)",
        "START(A ; B) OR (B : C : A)",
        "START(A) ; B : C",
    ],
)
def test_the_first_event_ends_what_must_begin_with_it(formula, clauses, monkeypatch):
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)
    query, matched = cerflow.parse(f"SELECT * WHERE ({formula}){clauses}"), 0
    for seed in range(12):
        generator = random.Random(seed)
        size = generator.choice([10, 40, 80])
        # The first event mostly begins no match, and is of a type that is seldom left.
        types = [*generator.choice(["AB", "AB", "CA", "DB"]), *generator.choices("ABCD", [1, 1, 1, seed], k=size - 2)]
        columns = {"type": types, "v": generator.choices(range(4), k=size), "k": generator.choices([1, 1, 2], k=size)}
        table = pa.table({**columns, "t": range(size)})
        with mock.patch.object(cerflow.Query, "warn_of_no_match"):
            found = query.match(table, time="t").to_pylist()
        assert bag(found) == bag(semantics(query, table, time="t"))
        matched += len(found)
    assert matched


@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE {ordered}{keys} WITHIN {steps} EVENTS",
        "SELECT * WHERE {ordered} FILTER e.n > b.n{keys} WITHIN {steps} MILLISECONDS",
        "SELECT * WHERE {adjacent}{keys}",
        "SELECT NEXT * WHERE {adjacent} FILTER e.n > b.n{keys} WITHIN {steps} MILLISECONDS",
        "SELECT MAX * WHERE {ordered}{keys} WITHIN {steps} MILLISECONDS",
        "SELECT * WHERE ({adjacent}) NOT FOLLOWED BY Z FOR 2 EVENTS{keys}",
    ],
)
@pytest.mark.parametrize("steps", [61, 62, 63, 64, 130])
def test_patterns_of_more_steps_than_a_word_has_bits(steps, query, keys, monkeypatch):
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)
    generator, size = random.Random(steps), 3_010
    types = ["Z" if generator.random() < 0.002 else f"T{k % steps}" for k in range(size)]
    table = pa.table({"type": types, "n": range(size), "t": range(size), "k": [0] * size})
    names = [f"T{k}" for k in range(steps)]
    names[0], names[-1] = names[0] + " AS b", names[-1] + " AS e"
    asked = cerflow.parse(query.format(ordered=" ; ".join(names), adjacent=" : ".join(names), keys=keys, steps=steps))
    behind = 2 if "NOT FOLLOWED" in query else 0
    expected = sum("Z" not in types[k : k + steps + behind] for k in range(0, size - steps + 1, steps))
    assert asked.match(table, time="t").count() == expected > 10
    for rows in (size, 7):
        recognizer = asked.recognizer(table.schema, time="t")
        assert sum(recognizer.push(batch).count() for batch in table.to_batches(max_chunksize=rows)) == expected


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
@pytest.mark.parametrize(
    "formula", ["A : B", "(A ; B) : A", "(A ; B):+", "A ; B", "A : B : A", "A NOT FOLLOWED BY B FOR 3 EVENTS"]
)
def test_small_pushes_before_large_ones(formula, keys, encoded):
    generator, size = random.Random(3), 3_000
    table = pa.table({"type": generator.choices("ABC", k=size), "k": generator.choices([1, 2, 3], k=size)})
    if encoded:
        table = table.set_column(0, "type", table["type"].dictionary_encode())
    query = cerflow.parse(f"SELECT * WHERE ({formula}){keys} WITHIN 6 EVENTS")
    expected = query.match(table).count()
    assert expected > 0
    small = limits.NARROWED_ROWS - 1
    for sizes in ([5, size], [small, small, size], [1000, 5, size], [5] * 20 + [500, 5, size]):
        recognizer, found, begin = query.recognizer(table.schema), 0, 0
        for rows in sizes:
            found += recognizer.push(table.slice(begin, rows)).count()
            begin += rows
        assert found == expected


@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
@pytest.mark.parametrize("formula", ["A : B", "EVENT : EVENT", "A ; B", "A : B : A"])
def test_a_pause_parts_neighbours_in_large_pushes(formula, keys, monkeypatch):
    generator, size = random.Random(3), 1_000
    times, now = [], 0
    for _ in range(size):
        now += generator.choice([1, 1, 3_000])
        times.append(now)
    columns = {"type": generator.choices("ABC", k=size), "k": generator.choices([1, 2], k=size)}
    table = pa.table({**columns, "t": times})
    query = cerflow.parse(f"SELECT * WHERE ({formula}){keys}")
    found = {}
    for least in (1, 1 << 30):
        monkeypatch.setattr(limits, "NARROWED_ROWS", least)
        recognizer = _fresh(query).recognizer(table.schema, time="t", forget="2 seconds")
        found[least] = bag(recognizer.push(table).to_pylist())
    assert found[1] == found[1 << 30] != bag(query.match(table, time="t").to_pylist())
