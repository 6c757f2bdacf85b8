"""CSV as blocks of rows whose columns are all text: a header, then a row a line or, within quotes, several.

An empty field is null, ``""`` is an empty string. Blank lines are not rows.
"""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from cerflow import limits
from cerflow.errors import InputError
from cerflow.files.conversion import byte_range
from cerflow.files.encodings import MARK_BYTES, MARKS, Content, open_text, readable_text, wrong_encoding
from cerflow.files.raw_rows import Block, Malformed, too_long


def csv_blocks(content: Content, name: str, encoding: str) -> Iterator[Block]:
    """The blocks of a file; none if it is empty, and one without rows if there is only a header."""
    if _is_blank(content, encoding):
        return
    done = -1
    size = limits.TEXT_BLOCK_BYTES
    while True:
        try:
            for block in _Attempt(content, name, encoding, size).blocks(done):
                yield block
                last = [int(block.rows[-1])] if len(block.rows) else []
                done = max([done, *last, *(row for row, _, _ in block.malformed)])
            return
        except pa.ArrowInvalid as error:
            # Both say that a block holds no whole row; the file is not empty.
            if "straddling" not in str(error) and "Empty CSV" not in str(error):
                raise
            if size >= limits.TEXT_ROW_BYTES:
                raise too_long(name, "csv", done, "is a quotation mark not closed?") from error
            size = min(size << 3, limits.TEXT_ROW_BYTES)


def _is_blank(content: Content, encoding: str) -> bool:
    with open_text(content, encoding) as stream:
        while piece := stream.read(limits.READ_BYTES):
            if piece.strip(b"\r\n"):
                return False
    return True


class _Attempt:
    """One attempt to read a file, with blocks of a certain size."""

    def __init__(self, content: Content, name: str, encoding: str, size: int) -> None:
        self._content = content
        self._name = name
        self._encoding = encoding
        self._size = size
        self._malformed: list[Malformed] = []
        self._columns = self._header()

    def _open(self, types: dict[str, pa.DataType] | None, size: int) -> _Reader:
        return _Reader(
            self._content,
            self._encoding,
            # Rows are only numbered when they are read by one thread.
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=size),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=self._refuse),
            # Only an empty field is null: the word NA may be a name.
            convert_options=pyarrow.csv.ConvertOptions(
                check_utf8=False,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                column_types=types,
            ),
        )

    def _refuse(self, row: Any) -> str:
        # The header is row 1, and blank lines have no number.
        reason = f"{row.actual_columns} fields where {row.expected_columns} are expected"
        self._malformed.append((row.number - 2, readable_text(row.text), reason))
        return "skip"

    def _header(self) -> list[str]:
        try:
            names = self._names(limits.FILE_HEAD_BYTES)
        except pa.ArrowInvalid:
            names = self._names(self._size)
        if any(re.search(MARKS, name) for name in names):
            raise InputError(
                f"cannot read {self._name} as csv: the header is not {self._encoding}; "
                + wrong_encoding(self._content, self._encoding)
            )
        double = next((n for n in names if names.count(n) > 1), None)
        if double is not None:
            raise InputError(f"cannot read {self._name} as csv: the header has the column '{double}' more than once")
        return names

    def _names(self, size: int) -> list[str]:
        with self._open(None, size) as reader:
            names = reader.names
        self._malformed.clear()
        return names

    def blocks(self, done: int) -> Iterator[Block]:
        """The rows after the row ``done``."""
        text = dict.fromkeys(self._columns, pa.string())
        number, blocks = 0, 0
        with self._open(text, self._size) as reader:
            waiting = next(reader, None)
            while waiting is not None:
                batch, waiting = waiting, next(reader, None)
                rows = np.arange(number, number + len(batch) + len(self._malformed))
                if self._malformed:
                    rows = np.setdiff1d(rows, [row for row, _, _ in self._malformed])[: len(batch)]
                number = int(rows[-1]) + 1 if len(rows) else number
                # Arrow is ahead: some of the rows that it refused come after those of the batch.
                own = [m for m in self._malformed if m[0] < number or waiting is None]
                self._malformed = [m for m in self._malformed if m[0] >= number and waiting is not None]
                block = self._block(batch, rows, own, last=waiting is None)
                if number - 1 > done or own:
                    yield _behind(block, done)
                    blocks += 1
        if self._malformed or not blocks:
            empty = pa.table({name: pa.array([], pa.string()) for name in self._columns})
            yield _behind(Block(empty, np.array([], np.int64), malformed=self._malformed), done)

    def _block(self, batch: pa.RecordBatch, rows: Any, malformed: list[Malformed], *, last: bool) -> Block:
        columns: dict[str, pa.Array] = {}
        spoilt: dict[int, list[str]] = {}
        for index, name in enumerate(self._columns):
            columns[name], wrong = _checked(batch.column(index))
            for place in wrong:
                value = columns[name][place].as_py()
                reason = f"{name} of {self._name} is not {self._encoding}: '{value}'; " + wrong_encoding(
                    self._content, self._encoding
                )
                spoilt.setdefault(place, []).append(reason)
        if last and len(batch) and self._left_open(columns[self._columns[-1]][-1].as_py()):
            spoilt.setdefault(len(batch) - 1, []).append("a quotation mark is opened and never closed")
        return Block(pa.table(columns), rows, spoilt, malformed)

    def _left_open(self, value: str | None) -> bool:
        """Whether the last field of the file has line breaks and no quotation mark after it."""
        if value is None or not ("\n" in value or "\r" in value):
            return False
        tail = b""
        with open_text(self._content, self._encoding) as stream:
            while piece := stream.read(limits.READ_BYTES):
                tail = (tail + piece)[-(1 << 16) :]
        return not tail.rstrip(b"\r\n").endswith(b'"')


class _Reader:
    """Arrow's reader of CSV. At its end the stream is no longer read.

    Arrow reads ahead in a thread of its own. A process that ends while that thread calls Python aborts, or hangs.
    """

    def __init__(self, content: Content, encoding: str, **options: Any) -> None:
        stream = open_text(content, encoding)
        self._stream = weakref.ref(stream)
        self._reader: Any = None
        try:
            self._reader = pyarrow.csv.open_csv(stream, **options)
        except BaseException:
            del stream  # the error holds what is here
            self.__exit__()
            raise

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._reader.schema.names)

    def __iter__(self) -> _Reader:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._reader)

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader = None
        # Nobody but Arrow has the stream, which its thread lets go when it has ended.
        ends = time.monotonic() + limits.READER_SECONDS
        while self._stream() is not None and time.monotonic() < ends:
            time.sleep(0.001)


def _behind(block: Block, done: int) -> Block:
    """The rows of a block after one row; those before it were given when the file was read first."""
    if done < 0:
        return block
    keep = int(np.searchsorted(block.rows, done, side="right"))
    return Block(
        block.table.slice(keep),
        block.rows[keep:],
        {place - keep: reasons for place, reasons in block.spoilt.items() if place >= keep},
        [m for m in block.malformed if m[0] > done],
    )


def _checked(column: pa.Array) -> tuple[pa.Array, list[int]]:
    """Text, and the places of what could not be decoded (which is shown as it can be)."""
    # Nearly always a look at the bytes is enough.
    data = column.buffers()[2]
    if data is None or byte_range(column)[1] < MARK_BYTES[0] or MARK_BYTES not in data.to_pybytes():
        return column, []
    wrong = np.flatnonzero(pc.match_substring_regex(column, MARKS).fill_null(False).to_numpy(zero_copy_only=False))
    if not len(wrong):
        return column, []
    return pa.array([v if v is None else readable_text(v) for v in column.to_pylist()], pa.string()), wrong.tolist()
