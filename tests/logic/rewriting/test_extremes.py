"""What bounds on least and greatest values say of each event."""

import random

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.schema import Schema
from cerflow.language.printer import show
from cerflow.logic.rewriting.extremes import with_implied_values
from support.runners import EXAMPLES, bag, one_batch, semantics

COLUMNS = pa.schema(
    [("type", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("w", pa.float64()), ("s", pa.string())]
)
SCHEMA = Schema(COLUMNS, time="t")
VALUES = {
    "type": "AAB",
    "v": (0, 1, -3, 2**63 - 1, -(2**63) + 1, None),
    "w": (0.5, -0.0, 1e308, float("inf"), float("nan"), None),
    "s": ("a", "", "b", None),
}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("A+ AS r FILTER min(r.v) > 3", " AND r[v > 3 OR v IS NULL]"),
        ("(A AS r):{3,} FILTER 3.5 >= max(r.v)", " AND r[3.5 >= v OR v IS NULL]"),
        ("A+ AS r FILTER max(r.s) = 'x'", " AND r[s <= 'x' OR s IS NULL]"),
        ("A+ AS r FILTER 2 * min(r.v) - max(r.w) >= 1", None),
        ("A+ AS r FILTER min(r.v) + min(r.w) >= 1", " AND r[v + w >= 1 OR v + w IS NULL]"),
        ("A+ AS r FILTER min(r.v) / 2 > max(r.v)", ""),
        ("A+ AS r FILTER -max(r.v) > 3", " AND r[-v > 3 OR -v IS NULL]"),
        # Another label, if it comes before.
        ("B AS b ; A+ AS r FILTER min(r.v) - b.v > 3", " AND r[v - b.v > 3 OR v - b.v IS NULL]"),
        ("A+ AS r ; B AS b FILTER min(r.v) - b.v > 3", ""),
        ("A+ AS r AND B AS b FILTER max(r.v) < b.v", ""),
        # Neighbours of matches without gaps.
        (
            "(A AS r):+ FILTER max(r.v) - min(r.v) < 4",
            " AND r[prev(v) - v < 4 OR prev(v) - v IS NULL] AND r[v - prev(v) < 4 OR v - prev(v) IS NULL]",
        ),
        ("A+ AS r FILTER max(r.v) - min(r.v) < 4", ""),
        # What grows with one event and falls with another, or says nothing of each.
        ("A+ AS r FILTER min(r.v) < 3", ""),
        ("A+ AS r FILTER min(r.v) != 3", ""),
        ("A+ AS r FILTER min(r.v) > avg(r.v)", ""),
        ("A+ AS r FILTER abs(min(r.v)) > 3", ""),
        ("A+ AS r FILTER min(r.v) % 2 > 1", ""),
        ("A+ AS r FILTER min(r.v) * r.v > 1", ""),
        ("A+ AS r FILTER min(r.v) > r.v - 1", ""),
        ("A+ AS r FILTER min(r.v) > 3 OR r.v = 2", ""),
        ("A+ AS r ; B+ AS q FILTER min(r.v) > max(q.v)", ""),
        ("A+ AS r FILTER min(r.v + 1) > 3", ""),
    ],
)
def test_implied_conditions(formula, expected):
    plain = cerflow.parse(f"SELECT * WHERE {formula}").tree
    before, after = show(plain.formula), show(with_implied_values(plain, SCHEMA).formula)
    assert (None if expected is None else before + expected) == (None if expected is None else after)


def comparison(generator):
    value = {"v": ("0", "1", "-3", str(2**63 - 1)), "w": ("0.5", "1e308", "-1"), "s": ("'a'", "'b'")}
    name, choice = generator.choice("vvvwws"), generator.choice
    extreme = f"{choice(['min', 'max'])}(r.{name})"
    operator = choice(["<", "<=", ">", ">=", "=", "!="])
    if name == "s":
        return f"{extreme} {operator} {choice(value[name])}"
    left = choice([extreme, f"-{extreme}", f"{extreme} + {choice(['b.v', '1', '-2'])}", f"{extreme} * {choice('23')}",
        f"max(r.{name}) - min(r.{name})", f"{extreme} - b.{name}", f"{extreme} / 2 + min(r.v)", extreme])  # fmt: skip
    return f"{left} {operator} {choice([*value[name], f'b.{name}', f'min(r.{name})'])}"


@pytest.mark.parametrize("seed", range(4))
def test_the_matches_stay_the_same(seed):
    generator = random.Random(seed)
    changed = found = 0
    for _ in range(max(20, int(200 * EXAMPLES))):
        run = generator.choice(
            ["A+ AS r", "(A AS r):+", "(A AS r):{2,}", "(A AS r){2}", "(A AS r):{2}", "(A OR B)+ AS r"]
        )
        parts = ["B AS b", run] if generator.random() < 0.7 else [run, "B AS b"]
        between = ":" if ":" in run else ";"
        conditions = " AND ".join(comparison(generator) for _ in range(generator.randint(1, 2)))
        query = cerflow.parse(f"SELECT * WHERE ({f' {between} '.join(parts)}) FILTER {conditions}")
        other = with_implied_values(query.tree, SCHEMA)
        if other == query.tree:
            continue
        changed += 1
        for _ in range(3):
            count = generator.randint(2, 8)
            columns = {name: generator.choices(some, k=count) for name, some in VALUES.items()}
            table = pa.table(columns | {"t": list(range(count))}).select(COLUMNS.names).cast(COLUMNS)
            expected = bag(semantics(query, table, time="t"))
            assert bag(semantics(cerflow.Query(other), table, time="t")) == expected, query
            assert bag(one_batch(query, table, time="t")) == expected, query
            found += bool(expected)
    assert changed > 1
    assert found or EXAMPLES < 1
