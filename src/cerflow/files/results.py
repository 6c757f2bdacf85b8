"""Reads the matches that ``cerflow run`` wrote."""

from __future__ import annotations

import pyarrow as pa

from cerflow.errors import InputError
from cerflow.files.input_plans import ColumnRoles
from cerflow.files.reading import read_inputs
from cerflow.files.sources import Source
from cerflow.schema import UNTYPED
from cerflow.stream_inputs import Input


def read_result(source: Source) -> pa.Table:
    """The matches in a file of CSV, JSON lines, Parquet or ORC; raises `InputError` if it cannot be read."""
    read = read_inputs([Input(source)], ColumnRoles(UNTYPED))
    if read.refused is not None:
        row, reason = (read.refused.column(name)[0].as_py() for name in ("row", "reason"))
        raise InputError(f"{source.path}, row {row}: {reason}")
    return read.table
