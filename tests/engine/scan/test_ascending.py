"""Windows on an attribute that is known to ascend need no check of every event; nothing else changes."""

import random
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.errors import BadRecordError
from support.runners import bag, examples, semantics

FORMULAS = [
    "(A AS a ; B AS b) FILTER b.v > a.v",
    "A ; B ; C",
    "A AS a ; B+ ; C AS c",
    "(A AS a : B AS b) FILTER a.v < b.v",
    "(A ; B WITHIN 2 [n]) ; C",
]


def stream(seed, size):
    generator = random.Random(seed)
    n, rows = generator.choice([0, -(2**62), 2**62]), []
    for t in range(size):
        n += generator.choice([0, 0, 1, 2, 7])
        rows.append((generator.choice("AABCD"), t, n, generator.randrange(5), generator.choice([1, 2, None])))
    kinds = {"type": pa.string(), "t": pa.int64(), "n": pa.int64(), "v": pa.int64(), "k": pa.int64()}
    return pa.table({name: pa.array(column, kind) for (name, kind), column in zip(kinds.items(), zip(*rows))})


@given(
    formula=st.sampled_from(FORMULAS),
    strategy=st.sampled_from(["", "NEXT ", "LAST "]),
    key=st.sampled_from(["", " PARTITION BY k"]),
    window=st.integers(1, 12),
    seed=st.integers(0, 10**6),
    size=st.integers(1, 30),
)
@examples(150)
def test_matches_are_those_of_the_semantics(formula, strategy, key, window, seed, size):
    query, table = cerflow.parse(f"SELECT {strategy}* WHERE ({formula}){key} WITHIN {window} [n]"), stream(seed, size)
    with mock.patch.object(limits, "NARROWED_ROWS", 1), mock.patch.object(limits, "JOINED_ROWS", 1):
        found = query.match(table, time="t").to_pylist()
    assert bag(found) == bag(semantics(query, table, time="t"))
    # A recogniser cannot know what comes, so it looks at every event.
    assert found == query.recognizer(table.schema, time="t").push(table).to_pylist()


@pytest.mark.parametrize("value", [-1, None])
def test_what_does_not_ascend_is_told(value):
    table = pa.table({"type": ["A", "B"] * 300, "n": [*range(599), value]})
    query = cerflow.parse("SELECT * WHERE A ; B WITHIN 4 [n]")
    if value is None:
        assert query.match(table).count() == 597
    else:
        with pytest.raises(BadRecordError, match="row 599"):
            query.match(table).count()
    assert query.match(table.slice(0, 599)).count() == 597
