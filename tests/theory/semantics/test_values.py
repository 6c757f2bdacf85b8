import datetime
import math

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.errors import InputError, QueryError
from cerflow.base.events import Stream, as_value
from cerflow.base.operators import Operator
from cerflow.definitions import first_order_matches, formula_matches, sremo_match_string, sremo_matches
from cerflow.language.parser import parse_condition, parse_expression
from cerflow.theory.semantics.conditions import satisfies, value_of
from cerflow.theory.semantics.operators import aggregate, arithmetic, compare, like

LARGEST = 2**63 - 1
UTC = datetime.UTC


def value(text: str, **attributes):
    (event,) = Stream.from_dicts([{"type": "A", **attributes}])
    return value_of(parse_expression(text), {"x": event}, lambda _: [event])


def truth(text: str, **attributes):
    (event,) = Stream.from_dicts([{"type": "A", **attributes}])
    return value_of(parse_condition(text), {"x": event}, lambda _: [event])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.a + x.b", 9),
        ("x.a / x.b", 3.5),
        ("-x.a % x.b", -1),
        ("x.a % -x.b", 1),
        ("-7.5 % 2", -1.5),
        ("x.a / 0", None),
        ("x.a % 0", None),
        ("x.a % 0.0", None),
        ("x.missing + 1", None),
        ("abs(-x.a)", 7),
        ("floor(-2.5)", -3.0),
        ("ceil(-2.5)", -2.0),
        ("round(2.5)", 3.0),
        ("round(-2.5)", -3.0),
        ("round(0.49999999999999994)", 0.0),
        ("round(x.a)", 7),
        ("length(x.s)", 3),
        ("upper(x.s)", "ÄBC"),
        ("lower(upper(x.s))", "äbc"),
        ("x.type", "A"),
        ("position(x)", 0),
        ("time(x)", 0),
        ("floor(x.inf)", math.inf),
        ("x.inf - x.inf", None),
        ("x.inf % 2", None),
        ("2 % x.inf", 2.0),
        ("x.big + 1", None),
        ("-(-x.big - 1)", None),
        ("abs(-x.big - 1)", None),
        ("x.big * x.big", None),
        ("x.nan", None),
    ],
)
def test_expressions(text, expected):
    found = value(text, a=7, b=2, s="äbc", inf=math.inf, nan=math.nan, big=LARGEST)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.a = 7.0", True),
        ("x.n = 1", None),
        ("NOT x.n = 1", None),
        ("x.n = x.n", None),
        ("x.n IS NULL", True),
        ("x.nan IS NULL", True),
        ("x.a IS NOT NULL", True),
        ("x.a IN (1, NULL)", None),
        ("x.a IN (7, NULL)", True),
        ("x.a NOT IN (1, NULL)", None),
        ("x.a NOT IN (1, 2)", True),
        ("x.a BETWEEN 7 AND 9", True),
        ("x.a NOT BETWEEN 8 AND 9", True),
        ("x.a IN {1..}", True),
        ("x.a IN {..6}", False),
        ("x.a BETWEEN x.n AND 6", False),
        ("x.a BETWEEN x.n AND 8", None),
        ("x.s LIKE 'a%'", True),
        ("x.s LIKE 'A%'", False),
        ("x.s LIKE '_b_'", True),
        ("x.s NOT LIKE 'b'", True),
        ("x.n LIKE '%'", None),
        ("x.s REGEXP 'b'", True),
        ("x.s NOT REGEXP '^b'", True),
        ("x.zero = x.minus", True),
        ("x.big = 9223372036854775808.0", True),
        ("x.flag = TRUE", True),
        ("x.flag != TRUE", False),
        ("x.at = '2024-02-29'", True),
        ("x.at < '2024-02-29T01:00:00+01:00'", False),
        ("'2024-03-01' > x.at", True),
        ("x.s < 'b'", True),
    ],
)
def test_conditions(text, expected):
    at = datetime.datetime(2024, 2, 29)
    found = truth(text, a=7, s="abc", n=None, nan=math.nan, zero=0.0, minus=-0.0, big=LARGEST, flag=True, at=at)
    assert found is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x[n = 1 OR a = 7]", True),
        ("x[n = 1 AND a = 7]", None),
        ("x[n = 1 AND a = 8]", False),
        ("x[NOT (n = 1 AND a = 8)]", True),
        ("x[a > x.b]", True),
    ],
)
def test_three_truth_values_in_brackets(text, expected):
    assert truth(text, a=7, b=2, n=None) is expected


def test_like_escapes():
    assert like("a%b", "a\\%b")
    assert not like("axb", "a\\%b")
    assert like("a\\b", "a\\\\b")
    assert like("two\nlines", "two%")
    assert like("a.b", "a.b")
    assert not like("axb", "a.b")


def events_of(**labels):
    stream = {
        name: Stream.from_dicts([{"type": "A", "v": v, "w": 1} for v in values]) for name, values in labels.items()
    }
    return lambda label: list(stream[label])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.v > 0", True),
        ("x.v > 1", False),
        ("NOT x.v > 2", False),
        ("NOT x.v > 3", True),
        # OR holds of the complex event, in a bracket of each event.
        ("x.v <= 2 OR x.v >= 2", False),
        ("x[v <= 2 OR v >= 2]", True),
        ("NOT (x.v > 3 OR x.v < 0)", True),
        ("NOT (x.v > 3 AND x.v < 0)", True),
        ("x.v != y.v", True),
        ("x.v < y.v", False),
        ("x.v < z.v", True),
        ("n.v = 1", False),
        ("NOT n.v = 1", False),
        ("NOT NOT x.v > 0", True),
        # Nothing under `o`: it holds of all of them.
        ("o.v > 100", True),
        ("x.v = o.v", True),
        ("count(o) = 0", True),
        ("sum(o.v) = 0", False),
        ("increasing(o.v)", True),
        ("increasing(x.v)", False),
        ("increasing(z.v)", True),
        ("NOT increasing(z.v)", False),
        ("nonincreasing(y.v)", True),
        ("increasing(n.v)", False),
        ("NOT increasing(n.v)", False),
        ("sum(x.v) = 6 AND avg(x.v) = 2 AND min(x.v) = 1 AND max(x.v) = 3", True),
        ("first(x.v) = 1 AND last(x.v) = 2", True),
        ("count(x) = 3 AND count(n.v) = 1", True),
        ("x.v <= max(x.v)", True),
        ("z.v > sum(x.v)", False),
        ("stddev(x.v) = 1", True),
        ("stddev(y.v) = 0", False),
        ("TRUE", True),
        ("FALSE", False),
        ("NOT FALSE", True),
    ],
)
def test_satisfaction(text, expected):
    given_events = events_of(x=[1, 3, 2], y=[0], z=[4, 5], n=[1, None], o=[])
    assert satisfies(parse_condition(text), given_events) is expected


@given(st.lists(st.none() | st.integers(-3, 3)))
def test_aggregates_leave_out_nulls(values):
    known = [v for v in values if v is not None]
    assert aggregate("count", values) == len(known)
    assert aggregate("sum", values) == (sum(known) if known else None)
    assert aggregate("max", values) == max(known, default=None)
    assert aggregate("last", values) == (values[-1] if values else None)


def test_deviations_of_numbers_far_apart():
    assert aggregate("stddev", [-1e200, 1e200]) == math.inf
    assert aggregate("stddev", [1e150, -1e150]) == pytest.approx(1e150 * math.sqrt(2))


def test_sum_leaves_64_bits_only_with_its_result():
    assert aggregate("sum", [LARGEST, 1, -1]) == LARGEST
    assert aggregate("sum", [LARGEST, 1]) is None


@given(st.integers(-(2**63), LARGEST), st.integers(-(2**63), LARGEST))
def test_remainder_has_the_sign_of_the_dividend(a, b):
    rest = arithmetic("%", a, b)
    if b == 0:
        assert rest is None
    else:
        assert (a - rest) % b == 0
        assert abs(rest) < abs(b)
        assert rest == 0 or (rest < 0) == (a < 0)


@given(st.none() | st.floats(), st.none() | st.integers(-5, 5))
def test_comparisons_agree(a, b):
    a = as_value(a)
    less, equal, more = (compare(o, a, b) for o in (Operator.LT, Operator.EQ, Operator.GT))
    if a is None or b is None:
        assert (less, equal, more) == (None, None, None)
    else:
        assert [less, equal, more].count(True) == 1


def test_predicates_of_ones_own(predicate):
    predicate("near")(lambda x, y: None if None in (x["v"], y["v"]) else abs(x["v"] - y["v"]) <= 1)
    given_events = events_of(x=[1, 2], y=[2], z=[9], n=[None])
    assert satisfies(parse_condition("near(x, y)"), given_events)
    assert not satisfies(parse_condition("near(x, z)"), given_events)
    assert satisfies(parse_condition("NOT near(x, z)"), given_events)
    assert not satisfies(parse_condition("near(x, n)"), given_events)
    assert not satisfies(parse_condition("NOT near(x, n)"), given_events)


@pytest.mark.parametrize("arrays", [False, "numpy", "arrow"])
def test_predicates_over_values(predicate, arrays):
    predicate("below", vectorized=arrays)(pc.less if arrays == "arrow" else lambda a, b: a < b)
    given_events = events_of(x=[1, 2], z=[9], n=[None], e=[])
    for text, expected in {
        "below(x.v, 3)": True,
        "below(x.v + 1, 3)": False,
        "NOT below(x.v, 1)": True,
        "x[below((v), 3) AND below(x.v, 9)]": True,
        "below(n.v, 3)": False,
        "NOT below(n.v, 3)": False,
        "below(e.v, 3)": True,
        "below(x.v, NULL)": False,
    }.items():
        assert satisfies(parse_condition(text), given_events) is expected, text


@pytest.mark.parametrize("arrays", [False, "numpy", "arrow"])
def test_predicates_of_sets(predicate, arrays):
    if arrays:
        # An empty set has no greatest value.
        predicate("narrow", of_set=arrays)(lambda values, d: len(values) == 0 or _greatest(values) - _least(values) < d)
    else:
        predicate(
            "narrow",
            init=list,
            step=lambda seen, value, d: [*seen, (value, d)],
            accept=lambda seen: not seen or max(seen)[0] - min(seen)[0] < seen[0][1],
        )
    given_events = events_of(x=[1, 2], y=[2, None, 7], n=[None], e=[])
    for text, expected in {
        "narrow(x.v, 2)": True,
        "narrow(x.v, 1)": False,
        "NOT narrow(x.v, 1)": True,
        "narrow(y.v, 6)": True,
        "narrow(y.v, 5)": False,
        "narrow(n.v, 5)": True,
        "narrow(e.v, 5)": True,
        "narrow(x.v, NULL)": False,
        "x[narrow((v), 2) AND v < 2]": False,
        "x[narrow(x.v, 2) AND v < 3]": True,
        "narrow(x.v, 2) AND x.v < 3": True,
    }.items():
        assert satisfies(parse_condition(text), given_events) is expected, text


def _greatest(values):
    return values.max() if hasattr(values, "max") else pc.max(values).as_py()


def _least(values):
    return values.min() if hasattr(values, "min") else pc.min(values).as_py()


def test_sets_come_in_the_order_of_positions(predicate):
    seen = []
    predicate("look", init=(), step=lambda state, event: (*state, event["v"]), accept=lambda s: seen.append(s))
    assert not satisfies(parse_condition("look(x)"), events_of(x=[3, None, 1]))
    assert seen == [(3, None, 1)]


def test_a_predicate_may_change_what_it_speaks_of(predicate):
    events = events_of(x=[1, 2])
    condition = parse_condition("p(x.v)")
    predicate("p")(lambda value: value > 0)
    assert satisfies(condition, events)
    predicate("p", of_set=True)(lambda values: values.size == 1)
    assert not satisfies(condition, events)


def test_streams_are_ordered_by_time_and_keep_the_order_of_ties():
    stream = Stream.from_dicts([{"type": t, "at": at} for t, at in (("A", 2), ("B", 1), ("C", 2), ("D", 1))], time="at")
    assert [e.type for e in stream] == ["B", "D", "A", "C"]
    assert [e.position for e in stream] == [0, 1, 2, 3]
    assert stream.microseconds_per_tick == 1000


def test_times_of_timestamps_are_microseconds():
    moment = datetime.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC)
    stream = Stream.from_dicts([{"type": "A", "at": moment}], time="at")
    assert stream[0].time == 1_000_005
    assert stream.microseconds_per_tick == 1


def test_columns_have_one_kind():
    stream = Stream.from_dicts([{"type": "A", "v": 1}, {"type": "A", "v": 0.5}, {"type": "A"}])
    assert [e.attribute("v") for e in stream] == [1.0, 0.5, None]
    assert isinstance(stream[0].attribute("v"), float)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"v": 1}, "row 0 has no type"),
        ({"type": None}, "row 0 has no type"),
        ({"type": "A", "v": [1]}, "is not a value"),
    ],
)
def test_bad_rows(row, reason):
    with pytest.raises(InputError, match=reason):
        Stream.from_dicts([row])


def test_row_without_time():
    with pytest.raises(InputError, match="row 1 has no time"):
        Stream.from_dicts([{"type": "A", "t": 1}, {"type": "A"}], time="t")


@pytest.mark.parametrize(
    ("matches", "given"),
    [
        (sremo_matches, "[v > MATCH_NUMBER()] MARK"),
        (sremo_match_string, "[TRUE] . [v > match_number()] MARK"),
        (formula_matches, "A AS x FILTER x.v > MATCH_NUMBER()"),
        (first_order_matches, "A AS x FILTER MATCH_NUMBER() = 1"),
    ],
)
def test_conditions_cannot_number_matches(matches, given):
    with pytest.raises(QueryError, match="the number of a match is known only when it is reported"):
        matches(given, [{"type": "A", "v": 1}])


def test_terminals_have_no_event_before():
    with pytest.raises(QueryError, match="prev is allowed only in a bracket"):
        sremo_matches("[v > prev(v)] MARK", [{"type": "A", "v": 1}])
