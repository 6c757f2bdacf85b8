"""Integers at their limits: what leaves 64 bits is null, on every runner and wherever a condition is evaluated."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from support.generators.limits import INTEGERS
from support.runners import ENGINE_RUNNERS, RUNNERS, bag, examples, semantics

LAST = 2**63 - 1


@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ("x.k * 2 < 0", [LAST], 0),
        ("x.k * 2 < y.j", [LAST, 0], 0),
        ("x.k * y.j < 0", [LAST, LAST], 0),
        ("x.k * y.j < 0", [LAST, -1], 1),
        ("x.k * y.j IS NULL", [2**62, -2], 1),
        ("x.k * y.j IS NOT NULL", [2**62, -1], 1),
        ("x.k * y.j > 0", [3_037_000_500, 3_037_000_500], 0),
        ("x.k * y.j > 0", [3_037_000_499, 3_037_000_499], 1),
        ("x.k + y.j < 0", [LAST, 1], 0),
        ("x.k - y.j > 0", [-LAST, 2], 0),
        ("x.k - y.j IS NULL", [-LAST, 1], 1),
    ],
)
def test_an_overflow_is_null(run, condition, values, expected):
    names = ["x", "y"][: len(values)]
    formula = " ; ".join(f"{kind} AS {name}" for kind, name in zip("AB", names))
    query = cerflow.parse(f"SELECT * WHERE ({formula}) FILTER {condition}")
    table = pa.table({"type": list("AB")[: len(values)], "k": values, "j": values})
    assert len(run(query, table)) == expected


def _value(draw, labels, depth):
    if depth and draw(st.integers(0, 3)):
        sign = draw(st.sampled_from("+-***%"))
        return f"({_value(draw, labels, depth - 1)} {sign} {_value(draw, labels, depth - 1)})"
    match draw(st.integers(0, 5)):
        case 0:
            return f"({draw(st.sampled_from(INTEGERS))})"
        case 1:
            return f"-{_value(draw, labels, 0)}" if depth else draw(st.sampled_from(labels)) + ".j"
        case 2 if depth:
            return f"abs({_value(draw, labels, 0)})"
    return f"{draw(st.sampled_from(labels))}.{draw(st.sampled_from('kj'))}"


def _condition(draw, labels):
    left = _value(draw, labels, 2)
    if draw(st.integers(0, 4)) == 0:
        return f"{left} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    return f"{left} {draw(st.sampled_from(['<', '<=', '>', '>=', '=', '!=']))} {_value(draw, labels, 1)}"


@examples(600)
@given(st.data())
def test_random_conditions_over_integers_at_their_limits(data):
    labels = data.draw(st.sampled_from([["x"], ["x", "y"]]))
    condition = _condition(data.draw, labels)
    query = cerflow.parse(f"SELECT * WHERE ({' ; '.join(f'A AS {label}' for label in labels)}) FILTER {condition}")
    values = st.lists(st.one_of(st.sampled_from(INTEGERS), st.none()), min_size=6, max_size=6)
    table = pa.table(
        {"type": ["A"] * 6, "k": pa.array(data.draw(values), pa.int64()), "j": pa.array(data.draw(values), pa.int64())}
    )
    expected = bag(semantics(query, table))
    # Snapshots take most of the time, and conditions do not know of them.
    for name in ("one batch", "one by one", *(["restored"] if data.draw(st.integers(0, 4)) == 4 else [])):
        assert bag(ENGINE_RUNNERS[name](query, table)) == expected, (name, condition)


@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
@pytest.mark.parametrize(
    ("formula", "values", "expected"),
    [
        ("A ; B WITHIN 5 [n]", [LAST - 5, LAST - 1], 1),
        ("A ; B WITHIN 5 [n]", [LAST - 6, LAST - 1], 0),
        ("A ; B WITHIN 5 [n]", [-LAST + 1, -LAST + 5], 1),
        ("A ; B WITHIN 5 [n]", [-LAST + 1, -LAST + 6], 0),
        (f"A ; B WITHIN {2**62 + 5} [n]", [0, 2**62 + 4], 1),
        (f"A ; B WITHIN {2**62 + 5} [n]", [0, 2**62 + 5], 0),
        (f"A ; B WITHIN {LAST} [n]", [-1, LAST - 2], 1),
        (f"A ; B WITHIN {LAST} [n]", [-1, LAST - 1], 0),
        ("A ; B WITHIN 5 MILLISECONDS", [-LAST + 1, LAST - 1], 0),
        ("A NOT FOLLOWED BY B FOR 5 MILLISECONDS", [LAST - 2, LAST - 1], 0),
        ("A NOT FOLLOWED BY B FOR 5 MILLISECONDS", [-LAST + 1, -LAST + 6], 1),
        ("A NOT FOLLOWED BY B FOR 100000 DAYS", [-LAST + 1, LAST - 1], 1),
        (f"A NOT FOLLOWED BY B FOR {LAST} [n]", [-LAST + 1, LAST - 1], 1),
    ],
)
def test_windows_and_deadlines_at_the_limits(run, formula, values, expected):
    table = pa.table({"type": ["A", "B"], "n": values, "t": values})
    assert len(run(cerflow.parse(f"SELECT * WHERE {formula}"), table, time="t")) == expected


@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
@pytest.mark.parametrize("value", [LAST, -LAST])
@pytest.mark.parametrize(("window", "name"), [("5 [n]", "n"), ("5 MILLISECONDS", "t")])
def test_what_lies_beyond_all_bounds_of_windows_is_a_bad_record(run, value, window, name):
    values = sorted([value, 0])
    table = pa.table({"type": ["A", "B"], "n": values, "t": values})
    with pytest.raises(cerflow.BadRecordError, match=f"row .: the value {value} of '{name}' is not between .* windows"):
        run(cerflow.parse(f"SELECT * WHERE A ; B WITHIN {window}"), table, time="t")


def test_the_next_deadline_may_lie_behind_all_times():
    recognizer = cerflow.parse("SELECT * WHERE A NOT FOLLOWED BY B FOR 1 HOUR").recognizer(
        pa.schema([("type", pa.string()), ("t", pa.int32())]), time="t"
    )
    recognizer.push({"type": "A", "t": 2**31 - 2})
    assert recognizer.next_deadline.as_py() == 2**31 - 1
    assert recognizer.push({"type": "C", "t": 2**31 - 1}).to_pylist() == []


LATEST = pa.array([LAST, 1_500], pa.timestamp("ns"))


@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x.u = '3000-01-01'", 0),
        ("x.u != '3000-01-01'", 2),
        ("x.u < '3000-01-01'", 2),
        ("x.u >= '3000-01-01'", 0),
        ("x.u <= '0001-01-01'", 0),
        ("x.u IN ('3000-01-01', '1970-01-01')", 0),
        ("x.u BETWEEN '2200-01-01' AND '3000-01-01'", 1),
        ("x.u NOT IN ('3000-01-01')", 2),
    ],
)
def test_texts_beyond_all_nanoseconds_equal_no_time(run, condition, expected):
    table = pa.table({"type": ["A", "A"], "u": LATEST, "s": ["3000-01-01", None]})
    assert len(run(cerflow.parse(f"SELECT * WHERE (A AS x) FILTER {condition}"), table)) == expected
    assert len(run(cerflow.parse("SELECT * WHERE (A AS x) FILTER x.s = '3000-01-01'"), table)) == 1


@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
@pytest.mark.parametrize(
    ("condition", "expected"),
    [("x.u - x.w = x.d", 1), ("x.u + x.d > '1970-01-01T00:00:00.000002'", 1), ("x.u - x.w < x.d", 1)],
)
def test_arithmetic_on_nanoseconds_counts_microseconds(run, condition, expected):
    u, w = (pa.array(values, pa.timestamp("ns")) for values in ([1_500, 2_999], [1_000, 0]))
    table = pa.table({"type": ["A", "A"], "u": u, "w": w, "d": pa.array([1, 2], pa.duration("us"))})
    assert len(run(cerflow.parse(f"SELECT * WHERE (A AS x) FILTER {condition}"), table)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1970-01-01T00:00:00.123456789", "it has digits beyond the microsecond"),
        ("0001-01-01T00:00:00+05:00", "in UTC it is not in the years 1 to 9999"),
        ("9999-12-31T23:59:59-05:00", "in UTC it is not in the years 1 to 9999"),
    ],
)
@pytest.mark.parametrize("condition", ["x.u < '{}'", "x.u IN ('{}')", "x.u - '{}' > x.d", "coalesce(x.u, x.u) >= '{}'"])
def test_texts_that_no_timestamp_holds_are_refused(condition, text, reason):
    table = pa.table({"type": ["A", "A"], "u": LATEST, "d": pa.array([1, 2], pa.duration("us"))})
    query = cerflow.parse(f"SELECT * WHERE (A AS x) FILTER {condition.format(text)}")
    for runner in ("engine", "semantics"):
        with pytest.raises(cerflow.QueryError, match=f"'{re.escape(text)}' is not a timestamp: {reason}") as raised:
            query.match(table, **({"runner": runner} if runner == "semantics" else {}))
        assert raised.value.span is not None
    assert len(cerflow.parse("SELECT * WHERE (A AS x) FILTER x.u < '1970-01-01T00:00:00.123456000'").match(table)) == 1


@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_the_value_of_an_expression_is_null_in_place_of_nan(kind, run):
    query = cerflow.parse("SELECT x.w AS a, min(y.w) AS b, first(y.w) AS c, sum(y.w) AS d WHERE A AS x ; (B AS y)+")
    unknown = float("nan")
    table = pa.table({"type": list("ABB"), "w": pa.array([unknown, unknown, 1.5], pa.float64()).cast(kind)})
    found = {row["start"] + row["end"] * 10: [row[name] for name in "abcd"] for row in run(query, table)}
    assert found[10] == [None] * 4
    assert [1.5] in [values[1:2] for values in found.values()]
