"""Decimals that floats cannot tell apart are compared exactly, by every runner, or refused with the place."""

from decimal import Decimal
from functools import cache
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cerflow
from cerflow.base.errors import InputError, QueryError
from cerflow.base.schema import ValueKind, kind_of
from support.runners import bag

#: Pairs of values that differ in the last digit, and are the same float.
TYPES = {
    "decimal128(38, 0)": (pa.decimal128(38, 0), "18446744073709551615", "18446744073709551614"),
    "decimal128(38, 2)": (pa.decimal128(38, 2), "900719925474099200.01", "900719925474099200.02"),
    "decimal128(18, 2)": (pa.decimal128(18, 2), "9007199254740993.01", "9007199254740993.02"),
    "decimal128(18, 0)": (pa.decimal128(18, 0), "900719925474099200", "900719925474099201"),
    "decimal128(20, 20)": (pa.decimal128(20, 20), "0.12345678901234567890", "0.12345678901234567891"),
    "decimal128(38, 30)": (
        pa.decimal128(38, 30),
        "1.000000000000000000000000000001",
        "1.000000000000000000000000000002",
    ),
    "decimal256(76, 10)": (pa.decimal256(76, 10), "-1234567890123456789.5", "-1234567890123456789.25"),
    "decimal64(17, 1)": (pa.decimal64(17, 1), "9007199254740993.1", "9007199254740993.2"),
    "dictionary": (pa.dictionary(pa.int8(), pa.decimal128(38, 0)), "18446744073709551615", "18446744073709551614"),
}


def table(data_type, one, other):
    """A and B by turns: one value, another one, one again, null, one once more, nothing and zero."""
    values = [Decimal(one), Decimal(other), Decimal(one), None, Decimal(one), Decimal(0), Decimal(other)]
    plain = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
    column = pa.array(values, plain)
    return pa.table(
        {"type": list("ABABBAB"), "d": column.dictionary_encode().cast(data_type) if plain != data_type else column}
    )


QUERIES = [
    "SELECT * WHERE A AS a ; B AS b FILTER a.d = b.d",
    "SELECT * WHERE A AS a ; B AS b FILTER a.d != b.d",
    "SELECT * WHERE A AS a ; B AS b FILTER a.d < b.d",
    "SELECT * WHERE A AS a ; B AS b FILTER NOT a.d >= b.d",
    "SELECT * WHERE A AS a ; B AS b PARTITION BY d",
    "SELECT * WHERE A AS a ; B AS b PARTITION BY [d, d] WITHIN 3 EVENTS",
    "SELECT COUNT(*) AS n WHERE EVENT AS a ; EVENT AS b FILTER a.d = b.d",
    "SELECT min(x.d) AS low, max(x.d) AS high, first(x.d) AS f, count(x) AS n WHERE (EVENT AS x)+ ; EVENT AS y "
    "FILTER x.d IS NOT NULL AND min(x.d) < y.d",
    "SELECT * WHERE (EVENT AS x)+ FILTER increasing(x.d) AND last(x.d) >= 0",
    "SELECT * WHERE A AS a ; (B AS b)+ FILTER max(b.d) = a.d",
    "SELECT * WHERE EVENT AS a FILTER a.d IS NULL",
    "SELECT a.d AS d WHERE EVENT AS a FILTER a.d >= 0 AND a.d < 12345678901",
    "SELECT * WHERE EVENT AS a FILTER a.d BETWEEN -1 AND 0.5 OR a.d NOT IN (0, 1)",
    "SELECT NEXT * WHERE A AS a ; (B AS b FILTER b.d = a.d OR b.d = 0) ; B AS c FILTER c.d = a.d",
    "SELECT * WHERE A AS a ; B AS b FILTER a[d = 0] AND b.d > a.d",
    "SELECT * WHERE (A AS a ; B AS b FILTER b.d = a.d) UNLESS (A AS c FILTER c.d = 0)",
]


@cache
def expected(text, name):
    return bag(cerflow.parse(text).match(table(*TYPES[name]), runner="semantics").to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_every_runner_compares_exactly(engine_runner, name):
    events = table(*TYPES[name])
    for text in QUERIES:
        assert bag(engine_runner(cerflow.parse(text), events)) == expected(text, name), text


@pytest.mark.parametrize("name", TYPES)
def test_values_that_differ_in_the_last_digit_are_two(runner, name):
    events = table(*TYPES[name])
    joined = runner(cerflow.parse(QUERIES[0]), events)
    assert sorted((row["start"], row["end"]) for row in joined) == [(0, 4), (2, 4)]
    keyed = runner(cerflow.parse(QUERIES[4]), events)
    assert sorted((row["start"], row["end"], row["d"]) for row in keyed) == [
        (begin, 4, Decimal(TYPES[name][1])) for begin in (0, 2)
    ]
    # A literal with more digits than integers and floats hold stands in quotes.
    wide = f"SELECT * WHERE EVENT AS a FILTER a.d = '{Decimal(TYPES[name][1]):f}'"
    if kind_of(events.schema.field("d").type) is ValueKind.DECIMAL:
        assert [row["start"] for row in runner(cerflow.parse(wide), events)] == [0, 2, 4]


def test_every_pair_of_comparable_values():
    written = [
        "-10",
        "-9.99",
        "-1",
        "-0.5",
        "0",
        "0.5",
        "0.50000000000000001",
        "9.99",
        "10",
        "100",
        "12345678901234567890",
    ]
    events = pa.table({"type": ["A"] * len(written), "d": pa.array(map(Decimal, written), pa.decimal128(38, 17))})
    found = cerflow.parse("SELECT * WHERE A AS a ; A AS b FILTER a.d < b.d").match(events).to_pylist()
    assert {(m["start"], m["end"]) for m in found} == set(combinations(range(len(written)), 2))


REFUSED = {
    "a.d + 1 > 2": r"'d' has type decimal128\(38, 0\).* cannot be an operand of '\+'",
    "-a.d < 0": "cannot be an operand of '-'",
    "abs(a.d) > 1": "cannot be an operand of abs",
    "sum(a.d) > 1": "cannot be an operand of sum",
    "avg(a.d) > 1": "cannot be an operand of avg",
    "a.d = a.i": "cannot be compared with an integer",
    "a.f > a.d": "cannot be compared with a float",
    "a.d = a.s": "cannot be compared with a string",
    "a.d = 'x'": "'x' is not a number",
    "a.d = '1e5'": "'1e5' is not a number",
    "a.d = TRUE": "cannot be compared with a boolean",
    "a.d = 12345678901234567.5": "more digits than a float holds",
    "a.d = 0.1000000000000000000001": "more digits than a float holds",
    "a.d IN (1, 12345678901234567.5)": "more digits than a float holds",
}
SCHEMA = pa.schema(
    [("type", pa.string()), ("d", pa.decimal128(38, 0)), ("i", pa.int64()), ("f", pa.float64()), ("s", pa.string())]
)


@pytest.mark.parametrize(("condition", "why"), REFUSED.items())
def test_what_would_not_be_exact_is_refused_at_its_place(condition, why):
    query = cerflow.parse(f"SELECT * WHERE A AS a FILTER {condition}")
    with pytest.raises(QueryError, match=why) as error:
        query.check(cerflow.Schema(SCHEMA))
    assert error.value.line == 1
    assert error.value.excerpt is not None


def test_other_places_that_are_refused():
    for text, why in {
        "SELECT * WHERE A ; B WITHIN 5 [d]": "cannot measure a window",
        "SELECT * WHERE A ; B PARTITION BY [d, i]": "'d' is a decimal and 'i' an integer",
        "SELECT a.d * 2 AS x WHERE A AS a": "cannot be an operand of",
    }.items():
        with pytest.raises(QueryError, match=why):
            cerflow.parse(text).check(cerflow.Schema(SCHEMA))
    with pytest.raises(InputError, match="cast it to int64"):
        cerflow.parse("SELECT * WHERE A").check(cerflow.Schema(SCHEMA, time="d"))


def test_predicates_get_decimals(predicate, runner):
    seen = []

    @cerflow.predicate(compile=False)
    def greater(value, other):
        seen.extend((value, other))
        return value > other

    @cerflow.predicate(vectorized="arrow")
    def above(values, least):
        return pc.greater(values, pa.scalar(least))

    events = table(*TYPES["decimal128(38, 2)"])
    query = cerflow.parse("SELECT * WHERE B AS b ; A AS a FILTER greater(b.d, a.d) AND above(b.d, -1)")
    assert sorted((row["start"], row["end"]) for row in runner(query, events)) == [(1, 2), (1, 5), (4, 5)]
    assert {type(value) for value in seen} == {Decimal}
    assert {str(value) for value in seen} == {"900719925474099200.01", "900719925474099200.02", "0"}


def test_aggregates_over_matches_hand_decimals_on():
    matches = cerflow.parse("SELECT * WHERE EVENT AS a ; B AS b").match(table(*TYPES["decimal128(38, 2)"]))
    found = matches.aggregate({"low": ("a", "d", "min"), "high": ("a", "d", "max")}).to_pylist()
    one, other = map(Decimal, TYPES["decimal128(38, 2)"][1:])
    assert (found[0]["low"], found[0]["high"]) == (one, one)
    assert (found[-1]["low"], found[-1]["high"]) == (Decimal(0), other)
    with pytest.raises(QueryError, match="of kind decimal"):
        matches.aggregate({"total": ("a", "d", "sum")})


@pytest.mark.parametrize(
    ("digits", "scale", "last"), [(10, 2, "12.50"), (12, 0, "13"), (4, 2, "12.50"), (18, 0, "13"), (4, 3, "8.125")]
)
def test_times_that_are_decimals_have_deadlines(digits, scale, last):
    times, until = pa.array([Decimal(1), Decimal(3), Decimal(8)], pa.decimal128(21, 3)), Decimal(last)
    events = pa.table({"type": list("AAB"), "t": times.cast(pa.decimal128(digits, scale))})
    query = cerflow.parse("SELECT * WHERE EVENT AS e NOT FOLLOWED BY B FOR 5 MILLISECONDS")
    expected = bag(query.match(events, time="t", until=until, runner="semantics").to_pylist())
    assert expected == bag(query.match(events, time="t", until=until).to_pylist())
    recognizer = query.recognizer(events.schema, time="t")
    found = [row for event in events.to_pylist() for row in recognizer.push(event).to_pylist()]
    recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    found += recognizer.advance(until).to_pylist()
    assert expected == bag(found)
    ended = sorted((row["start"], row["detected_time"]) for row in found)
    assert ended == [(0, 8), (1, 8), (2, 13)][: 2 + (until >= 13)]
