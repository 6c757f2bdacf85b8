"""Lines of CSV and JSON from a pipe become events as they arrive; the first lines determine the types of columns."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from cerflow.api.stream_inputs import Input
from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.files.blocks import read_blocks
from cerflow.files.column_types import NoValueFitsError
from cerflow.files.input_plans import ColumnRoles, SplitRows, survey
from cerflow.files.raw_rows import FilePart, RowPieces
from cerflow.files.reading import InputsPlan
from cerflow.files.sources import Source

_REMEDY = "; types follow from the first lines, --column-type {column}=… gives another"


def arrives(source: Source) -> bool:
    """Whether lines of a source come by a pipe or a device, so that nobody knows when the next one does."""
    if source.files or not source.has_no_schema:
        return False
    try:
        return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):  # somebody has put another object in its place
        return False


def arriving_events(
    one: Input[Source], columns: ColumnRoles, *, patient: bool, say: Callable[[str], None]
) -> Iterator[SplitRows]:
    """The events of standard input as they arrive, at least one table; all have the same columns.

    The types of columns follow from the rows that come first. Columns of JSON that come later are left out, which
    ``say`` is told, unless the query reads them or they have a declared type. If ``patient``, rows that cannot be
    events do not decide: the types follow from later ones. Raises InputError as `read_inputs` does.
    """
    source = one.events
    pieces = RowPieces(FilePart(data=standard_input()), source.encoding, source.format.value)
    coming = iter(pieces)
    held, plan = b"", None
    while plan is None:
        piece = next(coming, None)
        held += piece or b""
        plan = _plan(one, columns, held, last=piece is None, patient=patient)
    (own,) = plan.plans
    left_out: set[str] = set()
    given = False
    for block in read_blocks(source, FilePart(data=chain((held,), coming), decoded=True), own.as_text):
        unknown = [column for column in block.table.column_names if column not in own.names]
        for column in set(unknown) - left_out:
            say(f"'{column}' is left out, because the first lines lack it; --column-type {column}=… keeps it")
        left_out.update(unknown)
        yield plan.part(own, replace(block, table=block.table.drop_columns(unknown)), 0, "standard input")
        pieces.done += len(block.table) + len(block.malformed)
        given = True
    if not given:
        yield SplitRows(plan.schema.empty_table(), np.array([], np.int64), None)


def _plan(one: Input[Source], columns: ColumnRoles, data: bytes, *, last: bool, patient: bool) -> InputsPlan | None:
    """The plan for all rows by the first ones; None as long as these do not say enough."""
    found = survey(one, columns, FilePart(data=[data], decoded=True))
    if found.rows == found.broken and not last:
        return None
    try:
        return InputsPlan.of([one], columns, [[found]], False, remedy=_REMEDY)
    except NoValueFitsError:
        if last or not patient or len(data) > limits.READ_BYTES:
            raise
        return None


def standard_input() -> Iterator[bytes]:
    """What stands in standard input, as it comes."""
    number = sys.stdin.fileno()

    def has_more() -> bool:
        return os.name == "posix" and bool(select.select([number], [], [], 0)[0])

    try:
        while found := os.read(number, limits.READ_BYTES):
            # A writer that is fast gets few large pieces instead of many small ones.
            while len(found) < limits.READ_BYTES and has_more() and (more := os.read(number, limits.READ_BYTES)):
                found += more
            yield found
    except OSError as error:
        raise InputError(f"cannot read standard input: {error.strerror}") from error
