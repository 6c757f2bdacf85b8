"""What Arrow splits and what is split line by line are the same."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.files import json_blocks as blocks
from cerflow.files.raw_rows import FilePart
from support.runners import examples

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**19), 10**19),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "é\u2028", "}", "{", "2024-01-01", "2024-01-01T00:00:00Z", "12345678901234567890"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("pq"), inner)),
    max_leaves=3,
)
#: Columns of one kind, which Arrow reads, and of any.
COLUMNS = st.sampled_from([st.booleans(), st.integers(-9, 9), st.floats(-1, 1), st.sampled_from(["a", "b"]), VALUES])


@st.composite
def files(draw):
    kinds = draw(st.lists(COLUMNS, min_size=1, max_size=3))
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        rows.append({f"c{k}": draw(kind) for k, kind in enumerate(kinds) if draw(st.integers(0, 5))})
    ascii_only = draw(st.booleans())
    return [json.dumps(row, ensure_ascii=ascii_only).encode() for row in rows]


@pytest.mark.parametrize(
    "value", ["[null, false]", "[null, null]", '{"a": [null, 1]}', "[[], [null, null]]", "[[null]]"]
)
def test_nulls_in_arrays(value):
    (found,) = blocks.json_blocks(FilePart(data=[f'{{"c0": {value}}}\n'.encode()]), "utf-8", ())
    assert found.table.column("c0").to_pylist() == [json.loads(value)]


@examples(150)
@given(files(), st.sampled_from([(), ("c0",)]))
def test_both_ways_give_the_same(lines, as_text):
    quick = blocks._by_arrow(b"\n".join(lines), as_text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_by_arrow", lambda *_: None)
        slow = blocks._block(lines, 0, as_text, "it is not utf-8")
    assert all(reason == "the object is empty" for _, _, reason in slow.malformed)
    assert len(slow.table) + len(slow.malformed) == len(lines)
    if quick is not None:
        assert quick.schema == slow.table.schema
        assert quick.to_pylist() == slow.table.to_pylist()


@examples(150)
@given(st.lists(st.sampled_from(["x", "7", "1234567", "12345678901234567", "\n"]), max_size=8))
def test_long_numbers_are_seen(parts):
    text = "".join(parts)
    found = blocks._has_long_numbers(text.encode())
    assert found == (re.search("[0-9]{19}", text) is not None)
