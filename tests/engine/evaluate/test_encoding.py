"""Texts as codes: equal texts share one, whatever their length and wherever the column begins."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.engine.evaluate.vectors import encoded
from support.runners import examples

TEXTS = st.none() | st.text(max_size=20) | st.sampled_from(["", "a", "a\0", "a\0\0", "x" * 8, "x" * 9, "x" * 8 + "z"])


@pytest.mark.parametrize("kind", ["string", "large", "dictionary"])
@examples(200)
@given(st.data())
def test_texts_come_back(kind, data):
    texts = data.draw(st.lists(TEXTS, max_size=60))
    begin = data.draw(st.integers(0, len(texts)))
    column = pa.array(texts, pa.large_string() if kind == "large" else pa.string())
    if kind == "dictionary":
        column = column.dictionary_encode()
    some = column.slice(begin)
    codes, distinct = encoded(some)
    names = distinct.to_pylist()
    assert [None if text is None else names[code] for text, code in zip(texts[begin:], codes)] == texts[begin:]
    assert len(set(names)) == len(names)


def test_many_distinct_texts():
    texts = [f"{k * 7919 % 30_000} has a long name" for k in range(60_000)]
    codes, distinct = encoded(pa.array(texts))
    assert len(distinct) == 30_000
    assert distinct.take(pa.array(codes)).to_pylist() == texts
