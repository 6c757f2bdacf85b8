"""Text is cut where rows end, wherever the pieces of it end that are read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base import limits
from cerflow.files import raw_rows
from cerflow.files.blocks import csv_blocks
from cerflow.files.raw_rows import FilePart, utf8_of
from support.runners import examples

FIELDS = st.sampled_from(
    ["", "a", "bc", '"a"', '""', '"a,b"', '"a\nb"', '"a""b"', '5" pipe', '"a"b"c', '"\r\n"', '"""']
)
BREAKS = st.sampled_from(["\n", "\n", "\r\n", "\n\n", "\r"])


@st.composite
def texts(draw):
    rows = draw(st.lists(st.tuples(st.lists(FIELDS, min_size=2, max_size=3), BREAKS), max_size=6))
    return "".join(",".join(fields) + end for fields, end in rows).encode()


@examples(400)
@given(texts(), st.integers(0, 60))
def test_rows_end_where_fields_say_so(data, cut):
    data = data[: len(data) - cut] if cut < len(data) else data
    row, ends = re.compile(raw_rows.pattern_of_row(b",")), [0]
    while (found := row.match(data, ends[-1])) is not None:
        ends.append(found.end())
    end = raw_rows.end_of_rows(data)
    assert end in ends
    assert end == raw_rows.end_of_rows(data.replace(b";", b"x").replace(b",", b";"), b";")
    assert end >= max(place for place in ends if not place or data[place - 1 : place] == b"\n")


@examples(150)
@given(texts(), st.integers(1, 30))
def test_pieces_of_any_size_give_the_same(data, size):
    def read():
        blocks = list(csv_blocks(FilePart(data=[b"x,y\n" + data]), "utf-8"))
        rows = [row for block in blocks for row in zip(block.rows.tolist(), block.table.to_pylist())]
        spoilt = [(int(block.rows[k]), said) for block in blocks for k, said in block.spoilt.items()]
        return rows, spoilt, [one for block in blocks for one in block.malformed]

    whole = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "READ_BYTES", size)
        assert read() == whole


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_bytes_one_by_one(tmp_path, encoding, end):
    data = ("" if encoding == "utf-16" else "\ufeff").encode(encoding) + ("é,😀" + end).encode(encoding)
    single = iter([data[k : k + 1] for k in range(len(data))])
    (tmp_path / "x").write_bytes(data)
    for content in (FilePart(data=single), FilePart(data=[data]), FilePart(tmp_path / "x")):
        assert b"".join(utf8_of(content, encoding)) == "é,😀\n".encode()
    assert list(utf8_of(FilePart(), encoding)) == []
