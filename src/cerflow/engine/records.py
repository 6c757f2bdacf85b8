"""Which events can be used: types known, times known and not going backwards (spec §7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cerflow.engine.given import GIVEN
from cerflow.engine.store import one_batch
from cerflow.errors import BadRecordError, InputError
from cerflow.schema import Kind, Schema

__all__ = ["DECREASES", "BadRecordPolicy", "RecordChecker"]

BadRecordPolicy = Literal["fail", "skip"] | Callable[[pa.Table], None]


#: Why an event is refused that only its window can tell to be bad.
DECREASES = "an attribute that measures a window decreases"


class RecordChecker:
    """Lets the usable events of batches through; ``accepted`` and ``refused`` count events."""

    def __init__(self, schema: Schema, policy: BadRecordPolicy, *, in_order: bool = True) -> None:
        if not callable(policy) and policy not in ("fail", "skip"):
            raise ValueError(f"on_bad_record must be 'fail', 'skip' or a callable, not {policy!r}")
        # Where nobody reads the types of events, what was found out about them stands in their place.
        if schema.type != GIVEN and schema.kind(schema.type) is not Kind.STRING:
            found = schema.columns.field(schema.type).type
            raise InputError(f"the type column '{schema.type}' must hold text, not {found}")
        self.schema = schema
        self.policy = policy
        #: Whether times must not go backwards.
        self.in_order = in_order
        self.accepted = 0
        self.refused = 0
        #: The number of the first event of the last batch, and of its rows those that were accepted (None: all).
        self._begin = 0
        self._rows: NDArray[np.int64] | None = None
        #: The latest time seen, as the time column has it (None before the first event).
        self.latest: int | float | None = None

    def usable(self, table: pa.Table) -> pa.Table:
        """The usable rows of a table that has the columns of the schema; itself if all are. Raises as `accept`."""
        if self._all_usable(table):
            return table
        return pa.Table.from_batches(list(self.accept(table)), table.schema)

    def _all_usable(self, table: pa.Table) -> bool:
        """Whether all types and times are known, and no null hides in a dictionary; the order does not count."""
        time = self.schema.time
        if table.column(self.schema.type).null_count or (time is not None and table.column(time).null_count):
            return False
        if any(
            pa.types.is_dictionary(c.type) and any(k.dictionary.null_count for k in c.chunks) for c in table.columns
        ):
            return False
        if time is None or not pa.types.is_floating(table.column(time).type):
            return time is None or not _unusual(table.column(time).type)
        return not any(np.isnan(_numbers(chunk)).any() for chunk in table.column(time).chunks)

    def accept(self, batch: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
        """The usable rows of a batch; raises `BadRecordError` or `InputError`, before anything is counted."""
        rows = self._aligned(batch)
        if rows.num_rows == 0:
            return
        self._begin, self._rows = self.accepted + self.refused, None
        reasons = self._reasons(rows)
        bad = np.array([r is not None for r in reasons], bool) if reasons is not None else None
        if bad is not None and bad.any():
            rows = self._refuse(rows, reasons or [], bad)
        if rows.num_rows:
            yield rows

    def _aligned(self, batch: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
        columns = self.schema.columns
        missing = [name for name in columns.names if name not in batch.schema.names]
        if missing:
            raise InputError(f"the batch has no column '{missing[0]}', which the schema of the recogniser has")
        batch = batch.select(columns.names)
        if batch.schema.types != columns.types:
            try:
                batch = batch.cast(pa.schema([(f.name, f.type) for f in columns]))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise InputError(f"the batch does not fit the schema of the recogniser: {error}") from error
        if isinstance(batch, pa.Table):
            batch = one_batch(batch)
        # Whether a field may be null makes no difference, but batches with other schemas cannot be joined.
        return pa.RecordBatch.from_arrays([_known_nulls(column) for column in batch.columns], schema=columns)

    def _reasons(self, rows: pa.RecordBatch) -> list[str | None] | None:
        """For each row why it is refused; None if all are fine."""
        types = rows.column(self.schema.type)
        found: list[tuple[NDArray[np.bool_], str]] = []
        if types.null_count:
            found.append((np.asarray(types.is_null()), f"no event type in '{self.schema.type}'"))
        if self.schema.time is not None:
            found.extend(self._bad_times(rows.column(self.schema.time)))
        found = [(mask, reason) for mask, reason in found if mask.any()]
        if not found:
            return None
        reasons: list[str | None] = [None] * rows.num_rows
        for mask, reason in reversed(found):
            for k in np.flatnonzero(mask):
                reasons[k] = reason
        return reasons

    def _bad_times(self, column: pa.Array) -> list[tuple[NDArray[np.bool_], str]]:
        name = self.schema.time
        try:
            values = _numbers(column)
        except pa.ArrowInvalid as error:
            raise InputError(f"a time in '{name}' does not fit 64 bits: {error}") from error
        if self._in_order(column, values):
            return []
        unknown = np.asarray(column.is_null()) if column.null_count else np.zeros(len(column), bool)
        if values.dtype.kind == "f":
            unknown = unknown | np.isnan(values)
        if not self.in_order:
            return [(unknown, f"no time in '{name}'")]
        least = values.dtype.type(-np.inf) if values.dtype.kind == "f" else np.iinfo(np.int64).min
        filled = np.where(unknown, least, values)
        start = least if self.latest is None else self.latest
        # The latest time before each row; a row that goes back does not hold the following ones up.
        before = np.maximum.accumulate(np.concatenate([[start], filled[:-1]]).astype(values.dtype))
        backwards = ~unknown & (filled < before)
        return [(unknown, f"no time in '{name}'"), (backwards, f"time goes backwards in '{name}'")]

    def _in_order(self, column: pa.Array, values: NDArray[np.int64] | NDArray[np.float64]) -> bool:
        """Whether all times are known and none goes back, as it should be."""
        if column.null_count:
            return False
        if not self.in_order:
            return values.dtype.kind != "f" or not np.isnan(values).any()
        # Where a time is NaN, comparisons with it are false.
        begins = values[0] == values[0] if self.latest is None else values[0] >= self.latest
        return bool(begins and (values[1:] >= values[:-1]).all())

    def refuse_late(self, rows: pa.RecordBatch, row: int, number: int) -> None:
        """Refuse row ``row`` of some rows that were accepted before, by policy; it keeps its place in the stream.

        An attribute that measures a window decreases there. ``number`` counts the row among those accepted from the
        last batch.
        """
        place = self._begin + (number if self._rows is None else int(self._rows[number]))
        if self.policy == "fail":
            raise BadRecordError(place, DECREASES)
        if callable(self.policy):
            self.policy(_with_reasons(rows.slice(row, 1), [place], [DECREASES]))
        self.refused += 1

    def _refuse(self, rows: pa.RecordBatch, reasons: list[str | None], bad: NDArray[np.bool_]) -> pa.RecordBatch:
        numbers = np.flatnonzero(bad)
        first = self.accepted + self.refused
        if self.policy == "fail":
            raise BadRecordError(first + int(numbers[0]), reasons[int(numbers[0])] or "")
        if callable(self.policy):
            why = [reasons[int(k)] or "" for k in numbers]
            self.policy(_with_reasons(rows.take(pa.array(numbers)), (first + numbers).tolist(), why))
        self.refused += len(numbers)
        self._rows = np.flatnonzero(~bad)
        return rows.filter(pa.array(~bad))

    def accept_rows(self, rows: pa.RecordBatch) -> None:
        """Count some rows as accepted, and remember the time of the last of them."""
        self.accepted += rows.num_rows
        if self.schema.time is not None and rows.num_rows:
            self.latest = _numbers(rows.column(self.schema.time).slice(rows.num_rows - 1, 1))[0].item()

    @property
    def counts(self) -> dict[str, object]:
        """What was counted, for a snapshot."""
        return {"accepted": self.accepted, "refused": self.refused, "latest": self.latest}

    def take_over(self, counts: Mapping[str, Any]) -> None:
        """Go on from what a snapshot counted."""
        self.accepted, self.refused, self.latest = counts["accepted"], counts["refused"], counts["latest"]

    def checkpoint(self) -> Callable[[], None]:
        """How to go back to what was counted up to now."""
        counts = (self.accepted, self.refused, self.latest)

        def undo() -> None:
            self.accepted, self.refused, self.latest = counts

        return undo


def _known_nulls(column: pa.Array) -> pa.Array:
    """The same with nulls that hide in a dictionary where everybody looks for them."""
    if not pa.types.is_dictionary(column.type) or not column.dictionary.null_count:
        return column
    return column.dictionary_decode().dictionary_encode().cast(column.type)


def _with_reasons(rows: pa.RecordBatch, numbers: list[int], reasons: list[str]) -> pa.Table:
    refused = pa.Table.from_batches([rows])
    for name, values in (("row", pa.array(numbers, pa.int64())), ("reason", pa.array(reasons, pa.string()))):
        while name in refused.column_names:
            name += "_"
        refused = refused.append_column(name, values)
    return refused


def _unusual(data_type: pa.DataType) -> bool:
    """Whether times of a type may not fit 64 bits."""
    return bool(pa.types.is_decimal(data_type) or pa.types.is_uint64(data_type))


def _numbers(column: pa.Array) -> NDArray[np.int64] | NDArray[np.float64]:
    """Times as numbers, whatever stands for null."""
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        floats: NDArray[np.float64] = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
        return floats
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    whole = column.cast(pa.int64())
    known: NDArray[np.int64] = (pc.fill_null(whole, 0) if whole.null_count else whole).to_numpy(zero_copy_only=False)
    return known
