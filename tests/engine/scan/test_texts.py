"""Conditions on several columns of text, joined in any way, in all patterns in which rows are ruled out."""

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from support.runners import examples

TEXTS = {"s": ["x", "y", "a long text that is no key", "xy", None], "u": ["p", "q", "x", "pq"]}
PLAIN = [
    *("{0}.s = 'x'", "{0}.u = 'p'", "{0}.s != {0}.u", "{0}.s LIKE '%y'", "{0}.u IN ('p', 'x')", "{0}.v > 2"),
    *("{0}.s IS NULL", "lower({0}.s) = 'x'"),
]
SEVERAL = ["NOT ({0})", "({0} AND {1})", "({0} OR {1})"]


def _condition(generator, label, depth=0):
    if depth > 2 or generator.random() < 0.3:
        return generator.choice(PLAIN).format(label)
    parts = (_condition(generator, label, depth + 1) for _ in range(2))
    return generator.choice(SEVERAL).format(*parts)


def _query(generator):
    labels = "abc"[: generator.choice([2, 3])]
    steps = [f"{generator.choice(['A', 'B', 'EVENT'])} AS {label}" for label in labels]
    pattern = steps[0] + "".join(generator.choice([" : ", " ; "]) + step for step in steps[1:])
    some = generator.sample(labels, generator.choice([1, 2]))
    formula = f"({pattern}) FILTER {' AND '.join(_condition(generator, label) for label in some)}"
    other = f"(EVENT AS z FILTER {_condition(generator, 'z')})"
    formula = generator.choice(
        [*[formula] * 3, f"({formula}) NOT FOLLOWED BY {other} FOR 5 MILLISECONDS", f"({formula}) UNLESS {other}"]
    )
    window = "" if "FOLLOWED" in formula else generator.choice(["", " WITHIN 4 [t]", " WITHIN 12 [t]"])
    keys = generator.choice(["", " PARTITION BY k"])
    return f"SELECT {generator.choice(['*', '*', 'NEXT *', 'NONE'])} WHERE {formula}{keys}{window}"


@given(st.data())
@examples(200)
def test_rows_that_are_left_out_change_no_match(data):
    generator = random.Random(data.draw(st.integers(0, 10**6)))
    size = data.draw(st.sampled_from([40, 120]))
    columns = {"type": list("ABCD"), **TEXTS, "k": [1, 2, 3], "v": [1, 2, 3, 4]}
    drawn = {name: [generator.choice(some) for _ in range(size)] for name, some in columns.items()}
    table = pa.table({**drawn, "t": range(size)})
    if data.draw(st.booleans()):
        table = table.set_column(1, "s", table["s"].dictionary_encode())
    text, found = _query(generator), []
    with pytest.MonkeyPatch.context() as patch:
        # All in one batch, in which no text is known before.
        for least in (1 << 30, 1):
            patch.setattr(limits, "NARROWED_ROWS", least)
            matches = cerflow.parse(text).match(table, time="t")
            if matches.count() > 2_000:
                return
            found.append(matches.to_pylist())
    assert found[0] == found[1]
