"""Functions of many texts, which Arrow reads in place, give what Python's give of each."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from cerflow.base.text_patterns import Texts, cased, like, texts_in_place
from cerflow.theory.semantics import operators as definition

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


PARTS = ["%", "%", "_", "a", "Ä", "fa", "\\%", "\\_", "\n", "日", "%%", "AL"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_like_of_many_texts_is_that_of_each(kind: pa.DataType) -> None:
    generator = random.Random(4)
    words = [
        "".join(generator.choices(["a", "Ä", "fa", "%", "_", "\n", "日", "AL", "\\"], k=n % 6)) for n in range(300)
    ]
    texts = texts_in_place(pa.array(words, kind)[3:])
    assert isinstance(texts, Texts)
    patterns = {"".join(generator.choices(PARTS, k=n % 6)) for n in range(600)}
    for pattern in sorted(patterns):
        assert like(texts, pattern).tolist() == [definition.like(word, pattern) for word in words[3:]], pattern
