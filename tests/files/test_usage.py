import pytest

from cerflow.language.parser import parse_query
from cerflow.logic.analysis.columns import ColumnUsage, usage_of


def usage(condition, rest=""):
    return usage_of(parse_query(f"SELECT * FROM s WHERE (A AS x ; B AS y) FILTER {condition} {rest}"))


@pytest.mark.parametrize(
    "condition",
    [
        "x.v > 3",
        "3 = x.v",
        "x.v + 1 > y.w",
        "x.v IN (1, 2)",
        "x.v BETWEEN 1 AND 2",
        "-x.v = 2",
        "x[v < 3]",
        "abs(x.v) > 1",
        "sum(x.v) > 1",
        "CASE WHEN x.s = 'a' THEN 1 WHEN x.s = 'b' THEN x.v END = y.u",
        "coalesce(x.v, 0) = y.u",
    ],
)
def test_compared_or_computed_with_numbers(condition):
    assert "v" in usage(condition).numbers


@pytest.mark.parametrize(
    "condition",
    ["x.v = 'a'", "x.v LIKE 'a%'", "x.v REGEXP 'a'", "lower(x.v) = 'a'", "x.v IN ('a', 'b')", "length(x.v) > 2"],
)
def test_compared_with_strings(condition):
    assert usage(condition).text == {"v"}


def test_columns_compared_by_size_only_with_each_other():
    assert usage("x.v > y.w") == ColumnUsage(ordered=frozenset({"v", "w"}))


def test_equality_says_nothing():
    assert usage("x.v = y.v") == ColumnUsage()


def test_use_spreads_through_comparisons():
    assert usage("x.v > y.w AND y.w = y.u AND y.u > 3").numbers == {"u", "v", "w"}
    assert usage("x.v = y.w AND y.w = 'a'").text == {"v", "w"}


def test_contradictions_say_nothing():
    assert usage("x.v > 3 AND x.v = 'a'") == ColumnUsage()


def test_a_date_may_be_meant_for_a_timestamp():
    assert usage("x.v = '2024-01-01'") == ColumnUsage()
    assert usage("x.v = '2024-01-01 or so'").text == {"v"}


def test_the_attribute_of_a_window_is_a_number():
    assert usage("x.v = y.v", "WITHIN 5 [v]").numbers == {"v"}


def test_order_of_an_iteration():
    assert usage("increasing(x.v)").ordered == {"v"}


def test_values_to_choose_from_are_used_alike():
    assert usage("coalesce(x.v, x.w, 0) > y.u").numbers == {"u", "v", "w"}
    assert usage("CASE WHEN x.k IS NULL THEN x.v ELSE y.w END = 'a'").text == {"v", "w"}


def test_a_difference_may_be_a_duration():
    assert usage("abs(x.v - y.v) < 1 MINUTE").ordered == {"v"}
    assert usage("abs(x.v - y.v) < 1").numbers == {"v"}


def test_a_value_of_the_event_before_is_of_the_kind_of_its_attribute():
    assert usage("x[prev(v) = 'a']").text == {"v"}
