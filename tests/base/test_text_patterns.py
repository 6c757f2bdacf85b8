"""Functions of many texts, which Arrow reads in place, give what Python's give of each."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cerflow.base.text_patterns import Texts, cased, texts_in_place

#: Letters of one, two and three bytes, some of which change their length or depend on their neighbours.
WORDS = ["", "FATAL disk", "fatal", "Ärger", "straße", "İstanbul", "ŉ", "ΣΑΣ", "ﬁn", "Ⅷ", "日本", "aZ09_~"]


@pytest.mark.parametrize("function", ["lower", "upper"])
@pytest.mark.parametrize("words", [WORDS, [w for w in WORDS if w.isascii()]], ids=["unicode", "ascii"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_case_of_many_texts_is_that_of_each(function: str, words: list[str], kind: pa.DataType) -> None:
    texts = texts_in_place(pa.array(["before", *words * 20], kind)[1:])
    assert isinstance(texts, Texts)
    change = str.lower if function == "lower" else str.upper
    changed = cased(texts, function)
    assert isinstance(changed, Texts)
    assert list(changed) == [change(word) for word in words * 20]
