"""Bounds that follow from other bounds."""

import random

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.base.schema import Schema
from cerflow.language.printer import show
from cerflow.logic.rewriting.bounds import with_implied_bounds
from support.runners import EXAMPLES, bag, one_batch, semantics

COLUMNS = pa.schema(
    [("type", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("w", pa.float64()), ("s", pa.string())]
)
SCHEMA = Schema(COLUMNS, time="t")


def added(formula):
    """The conditions after the written ones of the only filter that gets some."""
    plain = cerflow.parse(f"SELECT * WHERE {formula}").tree
    before, after = show(plain.formula), show(with_implied_bounds(plain, SCHEMA).formula)
    return "" if before == after else after.removeprefix(before)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("A AS a ; B AS b FILTER a.w > 99.5 AND b.w > a.w", " AND b.w > 99.5"),
        ("A AS a ; B AS b FILTER a.w > 99.5 AND a.w <= b.w", " AND b.w > 99.5"),
        ("A AS a ; B AS b ; C AS c FILTER a.v <= 3 AND b.v <= a.v AND c.v < b.v", " AND b.v <= 3 AND c.v < 3"),
        ("A AS a ; B AS b FILTER a.s = b.s AND b.s != 'x'", " AND a.s != 'x'"),
        ("A AS a ; B AS b FILTER a.v = b.v AND 3 > b.v", " AND a.v < 3"),
        ("(A AS a FILTER a.v > 3) ; B+ AS b FILTER b.v > a.v", " AND b.v > 3"),
        ("(A FILTER A.v = 3) AS a ; B AS b FILTER a[w > 2] AND b.v > a.v AND b.w > a.w", " AND b.v > 3 AND b.w > 2.0"),
        # A label of the bracket, and labels without one.
        ("A AS a ; B AS b FILTER a.v > 3 AND b[v > a.v]", " AND b.v > 3"),
        # With prev a bracket asks nothing of the only event.
        ("A AS a ; B AS b FILTER b[v > prev(v) AND v > 5] AND a.v > b.v", ""),
        ("A AS a ; B+ AS b FILTER b[prev(v) > 1 AND v < a.v] AND a.v < 5", ""),
        # What is known already is not said again.
        ("A AS a ; B AS b FILTER a.v > 3 AND b.v > a.v AND b.v > 5", ""),
        ("A AS a ; B AS b FILTER a.v > 3 AND b.v < a.v", ""),
        ("A AS a ; B AS b FILTER a.s > 'k' AND b.v > a.v", ""),
        # A label that may have no event, or several.
        ("A AS a ; ((B AS b) OR C) FILTER b.v > 3 AND a.v > b.v", ""),
        ("A+ AS a ; B AS b FILTER a.v > 3 AND b.v > a.v", ""),
        ("A AS a OR B AS b FILTER a.v > 3 AND b.v > a.v", ""),
        # Both sides give the label.
        ("((A AS a FILTER a.v > 3) ; A AS a) ; B AS b FILTER b.v > a.v", ""),
        ("(((A FILTER A.v > 3) ; EVENT) AS x) ; B AS b FILTER b.v > A.v", None),
        # 2⁵³ + 1 is greater than 2⁵³, but the same float.
        ("A AS a ; B AS b FILTER a.v = 9007199254740992.0 AND b.v > a.v", " AND b.v >= 9007199254740992.0"),
        ("A AS a ; B AS b FILTER a.v > 9007199254740992 AND b.w >= a.v", " AND b.w >= 9007199254740992.0"),
        ("A AS a ; B AS b FILTER a.v != 9007199254740992 AND b.w = a.v", ""),
        ("A AS a ; B AS b FILTER a.v > 9007199254740992 AND b.w > a.v", " AND b.w > 9007199254740992.0"),
        # A part that is taken away: its bounds hold only there.
        ("(PROJECT B ((A AS b FILTER b.v > 3) ; B)) ; (C AS b ; D AS d) FILTER d.v > b.v", None),
    ],
)
def test_what_follows(formula, expected):
    assert added(formula) == (expected or "")


class Queries:
    """Random formulas with comparisons of attributes, and events at the ends of their kinds."""

    NUMBERS = ("0", "1", "-1", "9007199254740992", "9007199254740993", "0.0", "1.5", "9007199254740992.0", "1e300")
    INTEGERS = (None, 0, 1, -1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, -(2**63) + 1)
    FLOATS = (None, 0.0, -0.0, 1.5, 2.0**53, 2.0**53 + 2, float("inf"), float("-inf"), float("nan"), 5e-324)

    def __init__(self, seed):
        self.random = random.Random(seed)

    def comparison(self, labels):
        choice = self.random.choice
        x, y = choice(labels), choice(labels)
        operator = choice(["<", "<=", "=", ">=", ">", ">", "!="])
        if self.random.random() < 0.2:
            right = choice([f"{y}.s", "'a'", "''"])
            return f"{x}.s {operator} {right}"
        left = f"{x}.{choice('vw')}"
        right = choice([choice(self.NUMBERS), f"{y}.{choice('vw')}"])
        if self.random.random() < 0.2:
            return f"{x}[{left[2:]} {operator} {right}]"
        return choice([f"{left} {operator} {right}", f"{right} {operator} {left}"])

    def formula(self, labels):
        choice = self.random.choice
        if len(labels) == 1:
            event = f"{choice([*'ABC', 'EVENT'])} AS {labels[0]}"
            part = choice([event, event, event, f"({event})+", f"({event} FILTER {self.comparison(labels)})"])
        else:
            cut = self.random.randint(1, len(labels) - 1)
            sides = [self.formula(some) for some in (labels[:cut], labels[cut:])]
            operator = self.random.choices([";", ":", "ALL", "OR", "UNLESS", "AND"], [8, 1, 4, 2, 1, 1])[0]
            labels = labels[:cut] if operator == "UNLESS" else labels
            part = f"(({sides[0]}) {operator} ({sides[1]}))"
        if self.random.random() < 0.7:
            asked = [self.comparison(labels) for _ in range(self.random.randint(1, 4))]
            part = f"({part} FILTER {' AND '.join(asked)})"
        part = f"({part})"
        return choice([*[part] * 6, f"NEXT({part})", f"PROJECT {labels[0]} ({part})", f"{part}+"])

    def query(self):
        return f"SELECT * WHERE {self.formula(list('abcd')[: self.random.randint(2, 4)])}"

    def table(self):
        count, some = self.random.randint(2, 7), self.random.choices
        rows = [some(values, k=count) for values in ("ABC", self.INTEGERS, self.FLOATS, ("a", "", "b", None))]
        return pa.table([rows[0], list(range(count)), *rows[1:]], schema=COLUMNS)


@pytest.mark.parametrize("seed", range(4))
def test_the_matches_stay_the_same(seed):
    own = Queries(seed)
    changed = found = 0
    for _ in range(max(20, int(80 * EXAMPLES))):
        try:
            query = cerflow.parse(own.query())
        except QueryError:  # a label that is taken away or excluded
            continue
        other = with_implied_bounds(query.tree, SCHEMA)
        if other == query.tree:
            continue
        changed += 1
        for _ in range(3):
            table = own.table()
            expected = bag(semantics(query, table, time="t"))
            assert bag(semantics(cerflow.Query(other), table, time="t")) == expected, query
            found += bool(expected)
            try:
                assert bag(one_batch(query, table, time="t")) == expected, query
            except UnsupportedQueryError:
                continue
    assert changed > 1
    assert found or EXAMPLES < 1


@pytest.mark.parametrize(
    "condition",
    [
        "b[v > prev(v) AND v > 5] AND a.v > b.v",
        "b[prev(v) > 5 AND v > 5] AND a.w > b.w",
        "NOT (b[v > prev(v) AND v > 5] AND b.v = 2)",
        "(b[v > prev(v)] OR b.v = 1) AND b.v < a.v",
        "b[v > 5 AND prev(v) = 9] AND b.v < a.v",
    ],
)
@pytest.mark.parametrize("formula", ["A AS a ; B AS b", "A AS a ; B+ AS b", "A AS a ; (B AS b OR A)"])
def test_brackets_with_prev_ask_nothing_of_the_first_event(formula, condition):
    query = cerflow.parse(f"SELECT * WHERE ({formula}) FILTER {condition}")
    rows = [("A", 3, 3.0), ("B", 2, 2.0), ("B", 1, 1.0), ("B", 7, 1.5), ("A", 8, 9.0), ("B", 7, 8.0)]
    table = pa.table([*zip(*[(of, t, v, w, "") for t, (of, v, w) in enumerate(rows)])], schema=COLUMNS)
    expected = bag(semantics(query, table, time="t"))
    assert expected
    assert bag(one_batch(query, table, time="t")) == expected
