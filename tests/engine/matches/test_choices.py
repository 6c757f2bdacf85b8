"""What ANY and LIMIT choose: it depends on the matches of an event alone, not on how the events come."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.engine.matches import picking
from cerflow.engine.slices.threads import InSlices
from support.runners import examples, in_random_pieces

FORMULAS = [
    "(A AS x ; B AS y ; C AS z) FILTER x.v < y.v AND y.w < z.w",
    "((A OR B) AS x ; (B AS y)+ ; C AS z) FILTER x.v < z.v AND y.w < z.w",
    "((A AS x)+ ; B AS y ; A AS z) FILTER z.v < y.v AND x.v < z.v",
    "(A AS x ; B AS y) FILTER x.v < y.v OR x.w = y.w",
    "((A AS x ; (B AS y)+) OR (B AS y ; A AS x)) ; C AS z FILTER y.v > z.v",
    "(A AS x ; (A OR B) AS y ; (A OR B) AS y ; C AS z) FILTER x.v <= z.v",
]


def stream(seed, size):
    generator = np.random.default_rng(seed)
    kinds = generator.choice(list("ABCD"), size, p=generator.dirichlet(np.ones(4)))
    columns = {"type": kinds.tolist(), "k": generator.integers(0, generator.choice([1, 5]), size)}
    columns |= {"v": generator.integers(0, generator.choice([3, 1000]), size), "w": generator.integers(0, 9, size)}
    return pa.table(columns | {"t": np.cumsum(generator.integers(0, 3, size))})


@given(st.data())
@examples(60)
def test_a_choice_depends_on_the_matches_of_an_event_alone(data):
    table = stream(data.draw(st.integers(0, 10**6)), data.draw(st.sampled_from([50, 400, 1500])))
    choice = data.draw(st.sampled_from(["ANY *", "*", "*"]))
    limit = f" LIMIT {data.draw(st.sampled_from([1, 2, 5, 40]))}" if choice == "*" else ""
    window = data.draw(st.sampled_from(["4 [t]", "12 [t]", "9 EVENTS", "20 MILLISECONDS"]))
    keys = data.draw(st.sampled_from(["", " PARTITION BY k"]))
    query = cerflow.parse(f"SELECT {choice} WHERE {data.draw(st.sampled_from(FORMULAS))}{keys} WITHIN {window}{limit}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "NARROWED_ROWS", 1 << 30)
        plain = query.match(table, time="t").to_pylist()
        patch.setattr(limits, "NARROWED_ROWS", 1)
        patch.setattr(limits, "INDEXED_CONFIGURATIONS", data.draw(st.sampled_from([0, 5, 64])))
        patch.setattr(limits, "THREAD_SLICE_LEAST", 64)
        patch.setattr(limits, "THREAD_SECONDS", 0.0)
        query = cerflow.parse(str(query))
        assert query.match(table, time="t").to_pylist() == plain
        assert in_random_pieces(query, table, data, time="t") == plain
        recognizer, half = query.recognizer(table.schema, time="t"), table.num_rows // 2
        found = recognizer.push(table.slice(0, half)).to_pylist()
        recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
        assert [*found, *recognizer.push(table.slice(half)).to_pylist()] == plain
        threads = query.match(table, time="t", threads=2)
        assert threads.to_pylist() == plain
    if plain:
        begin = data.draw(st.integers(0, len(plain) - 1))
        assert query.match(table, time="t")[begin : begin + 3].to_pylist() == plain[begin : begin + 3]
    if table.num_rows == 1500 and window == "4 [t]":
        assert isinstance(threads.parts, InSlices)


@given(st.data())
@examples(20)
def test_choices_are_the_same_whether_matches_are_unfolded_or_searched(data):
    table = stream(data.draw(st.integers(0, 10**6)), data.draw(st.sampled_from([30, 200])))
    window = data.draw(st.sampled_from(["4 [t]", "9 EVENTS"]))
    query = cerflow.parse(f"SELECT * WHERE {data.draw(st.sampled_from(FORMULAS[1:5]))} WITHIN {window}")
    size, seed = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 9))
    by = data.draw(st.sampled_from(["start", "events", ("x", "v", "max"), ("y", "w", "sum"), ("y", None, "count")]))
    at = slice(data.draw(st.integers(0, 9)), data.draw(st.sampled_from([None, 30])), size)
    down, again = data.draw(st.booleans()), data.draw(st.booleans())
    found = []
    for few, events in ((0, 1 << 12), (1 << 20, 1 << 12), (1 << 20, 3)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(picking, "_FEW", few)
            patch.setattr(picking, "_EVENTS", events)
            matches = query.match(table, time="t").held()
            first, sample = (
                matches.first(size, by=by, descending=down),
                matches.sample(size, seed=seed, replacement=again),
            )
            found.append([some.to_pylist() for some in (first, first[at], sample, sample[at], matches[at])])
            assert all(len(batch) <= 5 for some in (first, first[at], sample) for batch in some.to_batches(5))
            assert first.count() == len(found[-1][0])
    assert found[0] == found[1] == found[2]
