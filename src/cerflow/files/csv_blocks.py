"""CSV as blocks of rows whose columns are all text: a header, then a row a line or, within quotes, several.

An empty field is null, ``""`` is an empty string. Blank lines are not rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from cerflow.base.arrow_columns import one_array
from cerflow.files import encodings as e
from cerflow.files.conversion import byte_range
from cerflow.files.raw_rows import Block, Malformed, RowPieces, end_of_rows, header_of


def csv_blocks(content: e.FilePart, encoding: str) -> Iterator[Block]:
    """The blocks of a file; none if it is empty, and one without rows if there is only a header."""
    advice = e.wrong_encoding(content, encoding)
    problem = f"of {content.name} is not {encoding}"
    names: list[str] = []
    pieces = RowPieces(content, encoding, "csv")
    for piece in pieces:
        begin = 0
        if not names and piece.strip(b"\r\n"):
            begin = len(header_of(piece))
            try:
                names = _read(piece[:begin]).column_names
            except pa.ArrowInvalid as error:
                # It has a quotation mark that is not closed.
                raise pieces.too_long() from error
            if any(re.search(e.MARKS, one) for one in names):
                raise pieces.error(f"the header is not {encoding}; {advice}")
            double = next((n for n in names if names.count(n) > 1), None)
            if double is not None:
                raise pieces.error(f"the header has the column '{double}' more than once")
        rows = piece[begin:]
        if names and rows.strip(b"\r\n"):
            block = _block(rows, names, pieces.done, problem, advice)
            pieces.done += len(block.rows) + len(block.malformed)
            yield block
    if names and not pieces.done:
        yield Block(pa.table({name: pa.array([], pa.string()) for name in names}), np.array([], np.int64))


def _read(data: bytes, names: list[str] | None = None, refuse: Any = None) -> pa.Table:
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        # Rows are only numbered when they are read by one thread.
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
        # Only an empty field is null: the word NA may be a name.
        pyarrow.csv.ConvertOptions(
            check_utf8=False,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            column_types=dict.fromkeys(names or (), pa.string()),
        ),
    )


def _block(data: bytes, names: list[str], number: int, problem: str, advice: str) -> Block:
    malformed: list[Malformed] = []

    def refuse(row: Any) -> str:
        reason = f"{row.actual_columns} fields where {row.expected_columns} are expected"
        malformed.append((number + row.number - 1, e.readable_text(row.text), reason))
        return "skip"

    table = _read(data, names, refuse)
    rows = np.arange(number, number + len(table) + len(malformed))
    rows = np.setdiff1d(rows, [row for row, _, _ in malformed]) if malformed else rows
    columns: dict[str, pa.Array] = {}
    spoilt: dict[int, list[str]] = {}
    for name, column in zip(names, table.columns):
        columns[name], wrong = _checked(one_array(column))
        for place in wrong:
            spoilt.setdefault(place, []).append(f"{name} {problem}: '{columns[name][place].as_py()}'; {advice}")
    last = columns[names[-1]][-1].as_py() if len(table) else None
    open_ended = last is not None and ("\n" in last or "\r" in last) and end_of_rows(data) < len(data)
    if open_ended and not data.rstrip(b"\r\n").endswith(b'"'):
        spoilt.setdefault(len(table) - 1, []).append("a quotation mark is opened and never closed")
    return Block(pa.table(columns), rows, spoilt, malformed)


def _checked(column: pa.Array) -> tuple[pa.Array, list[int]]:
    """Text, and the places of what could not be decoded (which is shown as it can be)."""
    # Nearly always a look at the bytes is enough.
    if byte_range(column)[1] < e.MARK_BYTES[0]:
        return column, []
    wrong = np.flatnonzero(pc.match_substring_regex(column, e.MARKS).fill_null(False).to_numpy(zero_copy_only=False))
    if not len(wrong):
        return column, []
    return pa.array([v if v is None else e.readable_text(v) for v in column.to_pylist()], pa.string()), wrong.tolist()
