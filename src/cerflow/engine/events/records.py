"""The check of events: types known, times known and not decreasing (spec §7)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from cerflow.base import arrow_columns, limits
from cerflow.base.array_types import Ints, Mask
from cerflow.base.errors import ArgumentError, BadRecordError, InputError, dotted
from cerflow.base.nested import untaken
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED
from cerflow.engine.evaluate.ranges import limits as value_limits
from cerflow.engine.evaluate.ranges import out_of_range, why, written
from cerflow.engine.evaluate.vectors import plain_numbers
from cerflow.engine.events.store import one_batch
from cerflow.engine.scan.checks import batch_check
from cerflow.engine.scan.columns import ExportedBatch

BadRecordPolicy = Literal["fail", "skip"] | Callable[[pa.Table], None]


#: The beginning of the reason for an event whose time is before that of another one.
BACKWARDS = "time goes backwards"
#: What to do about it.
IN_ORDER = "; sort the events by time before, or leave such events out with on_bad_record='skip'"


class RecordChecker:
    """Lets the valid events of batches through, and counts: the number of all events is always ``accepted + refused``.

    An event that is refused at once does not have a place in the stream, and its time does not count. An event that is
    refused later, because of its window, keeps its position and its time, since other queries may use it.
    """

    #: See `cerflow.engine.recognize.transaction`.
    changes = ("numbered", "_at_once", "_late", "latest", "last_position")

    def __init__(
        self, schema: Schema, policy: BadRecordPolicy, *, in_order: bool = True, numbers: Ints | None = None
    ) -> None:
        """``numbers`` are the numbers of the events of a finite stream in its input, for errors."""
        if not callable(policy) and policy not in ("fail", "skip"):
            raise ArgumentError(f"on_bad_record must be 'fail', 'skip' or a callable, not {policy!r}")
        # If types are not read, the known facts about them are used.
        if schema.type != PRECOMPUTED and schema.kind(schema.type) is not ValueKind.STRING:
            found = schema.columns.field(schema.type).type
            hint = "; pandas holds integers with nulls as 'Int64'" if pa.types.is_floating(found) else ""
            raise InputError(f"the type column '{schema.type}' must hold text, integers or booleans, not {found}{hint}")
        self.schema = schema
        self._limits = value_limits(schema)
        self._check = batch_check(schema, self._limits) if in_order else None
        self._dictionaries = [k for k, field in enumerate(schema.columns) if pa.types.is_dictionary(field.type)]
        self.policy = policy
        #: Whether times must not decrease; otherwise the times of accepted events are not read.
        self.in_order = in_order
        #: The numbers of events that have a position in the stream, were refused at once, and were refused later.
        self.numbered = 0
        self._at_once = 0
        self._late = 0
        #: The number of the first row of the last batch, and its accepted rows (None: all).
        self._begin = 0
        self.rows = numbers
        #: The rows of the last batch that were refused later; several queries may refuse the same row.
        self._late_rows: set[int] = set()
        #: The latest time so far, as the time column has it (None before the first event).
        self.latest: int | float | None = None
        #: The column with the positions that events are given, if any, and the last of these.
        self.position: str | None = None
        self.last_position = -1

    @property
    def accepted(self) -> int:
        """The number of events that can be used."""
        return self.numbered - self._late

    @property
    def refused(self) -> int:
        """The number of events that cannot be used."""
        return self._at_once + self._late

    def valid(self, table: pa.Table) -> pa.Table:
        """The valid rows of a table with the columns of the schema; the table itself if all are. Raises as `accept`."""
        if all(self._reasons(batch) is None for batch in table.select(self.schema.columns.names).to_batches()):
            return table
        rows = self.accept(table)
        return pa.Table.from_batches([] if rows is None else [rows], self.schema.columns)

    def all_in_order(self, table: pa.Table) -> bool:
        """Whether all rows of a table are valid and in the order of time, as far as one pass shows it."""
        table, check = table.select(self.schema.columns.names), batch_check(self.schema, self._limits)
        many = table.column(self.schema.type).num_chunks > max(1, table.num_rows // limits.CHUNK_ROWS)
        if check is None or many or not all(map(_lies_as, table.schema.types, self.schema.columns.types)):
            return False
        latest = None
        for batch in table.to_batches():
            if not check.passes(batch, latest):
                return False
            latest = check.known(batch)[1]
        return True

    def accept(self, batch: pa.RecordBatch | pa.Table) -> pa.RecordBatch | None:
        """The valid rows of a batch, if any; raises `BadRecordError` or `InputError`, and then counts nothing."""
        if isinstance(batch, pa.Table) and all(column.num_chunks == 1 for column in batch.columns):
            (batch,) = batch.to_batches()
        passed = self._fits(batch) and self._passes(batch)
        rows = batch if passed else self._aligned(batch)
        self._begin, self.rows = self.numbered + self._at_once, None
        self._late_rows.clear()
        reasons = None if passed else self._reasons(rows)
        if reasons is not None:
            rows = self._refuse(rows, reasons)
        return rows if rows.num_rows else None

    def _fits(self, batch: pa.RecordBatch | pa.Table) -> bool:
        return isinstance(batch, pa.RecordBatch) and batch.schema.equals(self.schema.columns)

    def _passes(self, batch: pa.RecordBatch) -> bool:
        """Whether one pass shows that all rows are valid."""
        return self._check is not None and self._check.passes(batch, self.latest) and self._ascends(batch)

    def _ascends(self, batch: pa.RecordBatch) -> bool:
        """Whether the positions that events are given, if any, are known and ascend."""
        if self.position is None or not batch.num_rows:
            return True
        column = batch.column(self.position)
        numbers = plain_numbers(column)
        return not column.null_count and numbers[0] > self.last_position and bool((numbers[1:] > numbers[:-1]).all())

    def _aligned(self, batch: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
        columns = self.schema.columns
        batch = self.schema.completed(batch)
        if self._fits(batch) and not any(batch.column(k).dictionary.null_count for k in self._dictionaries):
            return batch
        missing = [name for name in columns.names if name not in batch.schema.names]
        if missing:
            raise InputError(f"the batch has no column '{missing[0]}', which the schema of the recogniser has")
        batch = batch.select(columns.names)
        try:
            if isinstance(batch, pa.Table):
                batch = one_batch(arrow_columns.with_plain_columns(batch, columns))
            arrays = [arrow_columns.plain_array(column, field.type) for column, field in zip(batch.columns, columns)]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            said = _misfit(batch, columns) or error
            raise InputError(f"the batch does not fit the schema of the recogniser: {said}") from error
        # Batches whose schemas differ in nullability cannot be joined.
        return pa.RecordBatch.from_arrays(arrays, schema=columns)

    def _reasons(self, rows: pa.RecordBatch) -> list[str | None] | None:
        """For each row the reason for refusing it; None if all are valid."""
        if not rows.num_rows or self._passes(rows):
            return None
        types = rows.column(self.schema.type)
        found: list[tuple[Mask, str | Callable[[int], str]]] = []
        useless = arrow_columns.truths_of(types.is_null()) if types.null_count else np.zeros(len(types), bool)
        found.append((useless, f"no event type in '{self.schema.typed_by or self.schema.type}'"))
        for name, most in self._limits.items():
            beyond = out_of_range(rows.column(name), most)
            if beyond is not None:
                found.append((beyond, partial(self._beyond, rows.column(name), name, most)))
                useless = useless | beyond
        if not self._ascends(rows):
            bad = self._bad_positions(rows.column(self.position))
            found += bad
            useless = useless | bad[0][0] | bad[1][0]
        if self.schema.time is not None:
            found.extend(self._bad_times(rows.column(self.schema.time), useless))
        if not any(mask.any() for mask, _ in found):
            return None
        reasons: list[str | None] = [None] * rows.num_rows
        for mask, reason in reversed(found):
            for k in np.flatnonzero(mask).tolist():
                reasons[k] = reason if isinstance(reason, str) else reason(k)
        return reasons

    def _beyond(self, column: pa.Array, name: str, most: int, row: int) -> str:
        """Why an event with a value out of range is refused."""
        return f"the value {written(column[row])} of '{name}' {why(name, self.schema, most)}"

    def _bad_positions(self, column: pa.Array) -> list[tuple[Mask, str | Callable[[int], str]]]:
        """The positions that are unknown, and those that are not behind all before them."""
        name, unknown = self.position, arrow_columns.truths_of(column.is_null())
        values = np.where(unknown, np.iinfo(np.int64).min, plain_numbers(column))
        before = np.maximum.accumulate(np.concatenate([[self.last_position], values[:-1]]))

        def reason(row: int) -> str:
            after = f" from {before[row]}" if before[row] >= 0 else "; positions count from 0"
            return f"the position {values[row]} in '{name}' does not ascend{after}"

        return [(unknown, f"no position in '{name}'"), (~unknown & (values <= before), reason)]

    def _bad_times(self, column: pa.Array, useless: Mask) -> list[tuple[Mask, str | Callable[[int], str]]]:
        """The times that are unknown or decrease; times of otherwise invalid events do not count."""
        name = self.schema.time
        values = plain_numbers(column)
        unknown = arrow_columns.truths_of(column.is_null()) if column.null_count else np.zeros(len(column), bool)
        if values.dtype.kind == "f":
            unknown = unknown | np.isnan(values)
        if not self.in_order:
            return [(unknown, f"no time in '{name}'")]
        least = values.dtype.type(-np.inf) if values.dtype.kind == "f" else np.iinfo(np.int64).min
        filled = np.where(unknown | useless, least, values)
        start = least if self.latest is None else self.latest
        # The latest time before each row; a row that goes back does not affect later rows.
        before = np.maximum.accumulate(np.concatenate([[start], filled[:-1]]).astype(values.dtype))
        backwards = ~unknown & (filled < before)

        def reason(row: int) -> str:
            last = before[row].item()
            shown = written(self._as_time(last)) if pa.types.is_temporal(column.type) else last
            return f"{BACKWARDS} in '{name}', from {shown} to {written(column[row])}"

        return [(unknown, f"no time in '{name}'"), (backwards, reason)]

    def refuse_late(self, rows: pa.RecordBatch, row: int, number: int, measures: Collection[str]) -> None:
        """Refuse row ``row`` of rows accepted before, by policy; it keeps its place in the stream.

        One of the attributes ``measures``, which measure windows, decreases there. ``number`` counts the row among
        those accepted from the last batch.
        """
        place = self._begin + (number if self.rows is None else int(self.rows[number]))
        if place in self._late_rows:
            return
        reason = dotted(f"an attribute that measures a window decreases: {' or '.join(map(repr, sorted(measures)))}")
        if self.policy == "fail":
            raise BadRecordError(place, reason)
        if callable(self.policy):
            self.policy(_with_reasons(rows.slice(row, 1), [place], [reason]))
        self._late_rows.add(place)
        self._late += 1

    def refuse_broken_texts(self, rows: pa.RecordBatch, begin: int, error: Exception) -> None:
        """Raise `InputError` because of an ``error`` if a text in rows that were accepted is not one of Unicode."""
        for name, column in zip(rows.schema.names, rows.columns):
            remedy = "cast the column to binary and decode it, or leave such events out"
            if pa.types.is_dictionary(column.type):
                if not _is_sound(column.dictionary):
                    raise InputError(f"a text in the dictionary of '{name}' is not UTF-8; {remedy}") from error
            elif not _is_sound(column):
                row = next(k for k in range(len(column)) if not _is_sound(column.slice(k, 1)))
                number = begin + row if self.rows is None else int(self.rows[begin + row])
                text = f"row {self._begin + number}: the text in '{name}' is not UTF-8; {remedy}"
                raise InputError(text) from error

    def _refuse(self, rows: pa.RecordBatch, reasons: list[str | None]) -> pa.RecordBatch:
        bad = np.array([reason is not None for reason in reasons], bool)
        numbers = np.flatnonzero(bad)
        if self.policy == "fail":
            reason = reasons[int(numbers[0])] or ""
            remedy = IN_ORDER if reason.startswith(BACKWARDS) else ""
            raise BadRecordError(self._begin + int(numbers[0]), reason + remedy)
        if callable(self.policy):
            refused, said = rows.take(arrow_columns.array_of_numbers(numbers)), [reasons[int(k)] or "" for k in numbers]
            self.policy(_with_reasons(refused, (self._begin + numbers).tolist(), said))
        self._at_once += len(numbers)
        self.rows = np.flatnonzero(~bad)
        return rows.filter(pa.array(~bad))

    def accept_rows(self, rows: pa.RecordBatch) -> ExportedBatch | None:
        """Number rows that were let through, and remember the last time; returns their addresses, if known."""
        exported, time = (None, None) if self._check is None else self._check.known(rows)
        self.numbered += rows.num_rows
        if self.in_order and self.schema.time is not None and rows.num_rows:
            self.latest = _last(rows.column(self.schema.time)) if time is None else time
        if self.position is not None and rows.num_rows:
            self.last_position = int(_last(rows.column(self.position)))
        return exported

    @property
    def latest_time(self) -> pa.Scalar | None:
        """The latest time so far, None if there is none."""
        if self.latest is None or self.schema.time is None:
            return None
        return self._as_time(self.latest)

    def _as_time(self, plain: int | float) -> pa.Scalar:
        target = self.schema.columns.field(self.schema.time or "").type
        number = pa.array([plain])
        return (number.cast(pa.timestamp("ms")) if pa.types.is_date(target) else number).cast(target)[0]

    def accept_time(self, clock: pa.Array) -> None:
        """Refuse events before the time in an array from now on."""
        time = plain_numbers(clock)[0].item()
        self.latest = time if self.latest is None else max(self.latest, time)

    @property
    def counts(self) -> dict[str, object]:
        """The counts, for a snapshot."""
        found: dict[str, object] = {
            "accepted": self.numbered,
            "refused": self._at_once,
            "late": self._late,
            "latest": self.latest,
        }
        return found if self.position is None else found | {"last_position": self.last_position}

    def take_over(self, counts: Mapping[str, Any]) -> None:
        """Continue from the counts of a snapshot."""
        self.numbered, self._at_once = counts["accepted"], counts["refused"]
        self._late, self.latest = counts["late"], counts["latest"]
        # Those of earlier versions do not say it.
        self.last_position = counts.get("last_position", -1)


def _is_sound(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _misfit(batch: pa.RecordBatch | pa.Table, columns: pa.Schema) -> str | None:
    """What keeps a column of a batch from being one of the schema."""
    for field, column in zip(columns, batch.columns):
        try:
            for chunk in getattr(column, "chunks", [column]):
                arrow_columns.plain_array(chunk, field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            return f"column '{field.name}': {error}"
    return None


def _lies_as(given: pa.DataType, data_type: pa.DataType) -> bool:
    """Whether the checks of a column can read one that is given; they ask of texts whether they are null."""
    texts = pa.types.is_string_view(given) or (pa.types.is_dictionary(given) and pa.types.is_dictionary(data_type))
    return bool(given == data_type or texts)


def _with_reasons(rows: pa.RecordBatch, numbers: list[int], reasons: list[str]) -> pa.Table:
    refused, taken = pa.Table.from_batches([rows]), set(rows.schema.names)
    refused = refused.append_column(untaken("row", taken), pa.array(numbers, pa.int64()))
    return refused.append_column(untaken("reason", taken), pa.array(reasons, pa.string()))


def _last(column: pa.Array) -> int | float:
    last = column[len(column) - 1]
    # This is faster than a kernel of Arrow.
    if pa.types.is_int64(column.type) or pa.types.is_timestamp(column.type):
        return int(last.value if pa.types.is_timestamp(column.type) else last.as_py())
    return plain_numbers(column.slice(len(column) - 1))[0].item()  # type: ignore[no-any-return]
