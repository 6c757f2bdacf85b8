"""Codes of strings stay the same, and their ranks are the order of code points."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base import limits
from cerflow.engine.evaluate.string_codes import Strings
from cerflow.engine.recognize.transaction import Transaction
from cerflow.engine.scan.texts import _has_twice
from support.runners import examples


def test_codes_are_given_in_order_of_appearance():
    strings = Strings(["b"])
    assert strings.codes(["a", "b", "c", "a"]).tolist() == [1, 0, 2, 1]
    assert strings.texts == ["b", "a", "c"]
    assert len(strings) == 3
    assert strings.code("a") == 1


@examples(50)
@given(st.lists(st.text(), max_size=8), st.lists(st.text(), max_size=8))
def test_ranks_are_the_order(first, then):
    strings = Strings(first)
    for _ in range(2):
        ranks = strings.ranks()
        codes = range(len(strings))
        assert sorted(codes, key=lambda c: ranks[c]) == sorted(codes, key=lambda c: strings.texts[c])
        strings.codes(then)


def test_order_is_that_of_code_points():
    # In UTF-16 the second would come first.
    strings = Strings(["\uffff", "\U0001f600", "", "B", "a"])
    assert strings.ranks().tolist() == [3, 4, 0, 1, 2]


def test_replacing_starts_anew(monkeypatch):
    monkeypatch.setattr(limits, "STRING_SLACK", 2)
    strings = Strings()
    strings.codes(["a", "b"])
    assert not strings.wants_cleaning
    strings.code("c")
    assert strings.wants_cleaning
    strings.ranks()
    strings.replace(["c", "d", "a"])
    assert strings.codes(["a", "c", "x"]).tolist() == [2, 0, 3]
    assert strings.ranks().tolist() == [1, 2, 0, 3]
    # The next time is when twice as many have come.
    assert not strings.wants_cleaning


def test_going_back():
    strings = Strings(["a", "b"])
    before = Transaction([strings])
    strings.replace(["b", "c"])
    assert strings.code("b") == 0
    before.set_back()
    assert strings.codes(["a", "b", "x"]).tolist() == [0, 1, 2]
    assert strings.ranks().tolist() == [0, 1, 2]


TEXTS = st.text("ab\0é", max_size=9) | st.text("a", min_size=7, max_size=17)


@examples(60)
@given(st.lists(st.tuples(st.sampled_from(["one", "many", "array"]), st.lists(TEXTS, max_size=12)), max_size=8))
def test_every_string_has_one_code_in_the_order_of_appearance(asked):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "ENCODED_TEXTS", 3)
        strings, expected = Strings(["b", "a"]), {"b": 0, "a": 1}
        for how, texts in asked:
            if how == "array":
                texts = [*dict.fromkeys(texts)]
                found = strings.codes_of(pa.array(texts, pa.string())).tolist()
            else:
                found = strings.codes(texts).tolist() if how == "many" else [strings.code(text) for text in texts]
            assert found == [expected.setdefault(text, len(expected)) for text in texts]
            assert len(strings) == len(expected)
        assert strings.texts == [*expected]
        order = sorted(expected)
        assert [order[rank] for rank in strings.ranks()] == [*expected]


@examples(60)
@given(st.lists(TEXTS, max_size=60), st.integers(0, 3), st.sampled_from([pa.string(), pa.large_string()]))
def test_texts_that_come_twice_are_found(texts, begin, kind):
    texts = pa.array(texts, kind)[begin:]
    assert _has_twice(texts) == (len(set(texts.to_pylist())) < len(texts))
