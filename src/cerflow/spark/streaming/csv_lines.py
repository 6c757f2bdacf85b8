"""Lines of CSV by the names in the headers of their files: Spark assigns values by position, and stops at others.

Only lines of files with another header are reordered here; Spark parses all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.arrow_columns import array_of_texts, numbers_of

#: A line that is not empty, and its end.
_LINE = re.compile(rb"\S[^\r\n]*[\r\n]")


def lines_by_name(
    columns: Sequence[str], delimiter: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow` over lines, their files, and where in these Spark begins to read: the lines of one task.

    It gives each line but the header with values for ``columns``, in this order, next to the original line. Columns
    that a file lacks have no values. A line that has not as many values as its header gets more than there are columns,
    so that Spark takes it for malformed; and so does each line of a file whose header names none of the columns.
    """
    wanted = [name.casefold() for name in columns]
    last: tuple[str, int] | None = None
    header_to_come = False
    for batch in batches:
        for lines, place in _by_place(batch):
            path = url2pathname(urlsplit(place[0]).path)
            names = _names(path, delimiter, os.stat(path).st_mtime_ns)
            fits = not set(wanted).isdisjoint(names)
            if place != last:
                last, header_to_come = place, place[1] == 0 and fits
            lines = lines.filter(pc.not_equal(pc.utf8_trim_whitespace(lines), ""))
            if header_to_come and len(lines):
                lines, header_to_come = lines.slice(1), False
            yield pa.RecordBatch.from_arrays(
                [_in_order(lines, delimiter, wanted, names, fits), lines], names=["line", "text"]
            )


def _in_order(lines: pa.Array, delimiter: str, wanted: list[str], names: Sequence[str], fits: bool) -> pa.Array:
    if list(names) == wanted:
        return lines
    places = [names.index(name) if name in names else None for name in wanted]
    malformed = delimiter * (len(wanted) + 1)
    found = []
    for line in lines.to_pylist():
        values = _values(line, delimiter) if fits else None
        if values is None or len(values) != len(names):
            found.append(line + malformed)
        else:
            found.append(delimiter.join("" if place is None else values[place] for place in places))
    return array_of_texts(found)


def _by_place(batch: pa.RecordBatch) -> Iterator[tuple[pa.Array, tuple[str, int]]]:
    """The lines that stand together in one part of a file, with its name and where it begins."""
    lines, files, starts = batch.columns
    if not len(lines):
        return
    places = np.stack([numbers_of(files.dictionary_encode().indices), numbers_of(starts)])
    cuts = (np.flatnonzero((np.diff(places) != 0).any(axis=0)) + 1).tolist()
    for begin, end in zip([0, *cuts], [*cuts, len(lines)], strict=True):
        yield lines.slice(begin, end - begin), (files[begin].as_py(), starts[begin].as_py())


@lru_cache(maxsize=64)
def _names(path: str, delimiter: str, changed: int) -> tuple[str, ...]:
    with pa.input_stream(path, compression="detect") as stream:
        read = b""
        while not _LINE.search(read) and (more := stream.read(1 << 16)):
            read += more
    first = re.split(r"[\r\n]", read.decode("utf-8-sig", "replace").lstrip(), maxsplit=1)[0]
    return tuple(value.strip('"').casefold() for value in _values(first, delimiter) or ())


@lru_cache
def _value(delimiter: str) -> re.Pattern[str]:
    """A value as it stands in a line, at its beginning or behind a delimiter; Spark's quotes are escaped by \\."""
    sign = re.escape(delimiter)
    return re.compile(rf'(?:\A|{sign})("(?:\\.|[^"\\])*"[^{sign}]*|[^"{sign}][^{sign}]*|)(?={sign}|\Z)')


def _values(line: str, delimiter: str) -> list[str] | None:
    """The values of a line as they stand there; None if a quote does not end."""
    if '"' not in line:
        return line.split(delimiter)
    found: list[str] = _value(delimiter).findall(line)
    return found if delimiter.join(found) == line else None
