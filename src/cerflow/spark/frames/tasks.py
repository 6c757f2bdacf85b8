"""The tasks: they turn Arrow batches of events into batches of matches, and never hold all of either.

A task that gets slices of the stream checks all that its result relies on, and fails if the events are not those that
were counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from cerflow.api.programs.program import Program, read_query
from cerflow.api.programs.recognizer import ProgramRecognizer
from cerflow.api.query import Language, Query
from cerflow.base import limits
from cerflow.base.arrow_columns import array_of_numbers, numbers_of, one_array, pushed_together
from cerflow.base.errors import BadRecordError, InputError, UnsupportedQueryError, cut_short
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED
from cerflow.engine.matches.counting import Bound
from cerflow.engine.matches.matches import Matches
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.recognizer import Recognizer
from cerflow.engine.results.report import CountForm
from cerflow.engine.slices.cutting import Slice, keys_of
from cerflow.language.condition import Condition
from cerflow.language.predicates.registry import Predicate, predicates_in, using
from cerflow.spark.worker import prepare_worker

CHANGED = (
    "the events are not those that were counted when the query was prepared; "
    "store or cache the DataFrame before it is matched"
)
#: The name of the last column, which is not in the input.
_LAST = "\0last"


@dataclass(frozen=True)
class Recognition:
    """A query for the tasks of `mapInArrow`. Each process parses and compiles it, so that no tree has to travel.

    ``schema`` has the columns that are sent, in their order; ``type`` is the name of that with the types, which need
    not be sent, and ``position`` of the one with positions, if it is there. ``predicates`` are those that the query
    calls, as `pack` made them; ``precomputed`` are the conditions that Spark evaluates so that less has to be sent.
    ``counts`` and ``flat`` are forms of the result. No task lists more than ``max_matches``. ``until`` is an array with
    a time before which no more events come, if known. With ``by_clock`` the clock shows each deadline, not an event.
    """

    query: str
    schema: Schema
    type: str
    position: str | None
    positions: bool
    predicates: bytes | None = None
    language: Language = "ceql"
    precomputed: tuple[Condition, ...] = ()
    counts: CountForm = "decimal"
    flat: bool = False
    max_matches: int | None = None
    until: pa.Array | None = field(default=None, compare=False)
    by_clock: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Recognise in the events of one task, which come in the order of time."""
        parts = ((True, rows) for rows in as_larger_tables(batches, self.schema.columns.names))
        return matches_of_slice(self, Slice(), parts, Bound(self.max_matches))

    def refuse(self, rows: pa.Table) -> None:
        """Raise the error for bad records: rows of a distributed input have no number, so values name the first one."""
        *columns, _, reason = rows.column_names
        shown = shown_row(rows, [name for name in columns if name not in (self.position, PRECOMPUTED)])
        raise BadRecordError(shown, rows.column(reason)[0].as_py().replace(PRECOMPUTED, self.type))


def matches_of_slice(
    recognition: Recognition,
    some: Slice,
    parts: Iterable[tuple[bool, pa.Table]],
    bound: Bound,
    changed: str = CHANGED,
) -> Iterator[pa.RecordBatch]:
    """The matches of one slice of a stream, a bounded number at a time; ``bound`` is on all slices of a task.

    The events come in order, in parts of which the first ones are only read, as another slice reports their matches,
    and the others are the slice's own. If it says which position is the ``first``, the events are numbered in a last
    column; else the rows have all columns. The last slice of the stream also reports what is detected after all events,
    if it is known that none is to come before a time. Nothing is reported without any event.

    Raises `TooManyMatchesError` before matches beyond the bound are listed, and `InputError` with the text ``changed``
    for another number of events than was counted, or if the event on which the slice relies is not there.
    """
    recognizer: Recognizer | ProgramRecognizer | None = None
    position, reported = some.first, 0
    before: pa.Table | None = None

    def listed(matches: Matches) -> Iterator[pa.RecordBatch]:
        announced = matches.announced(bound.add)
        return announced.to_batches(limits.RESULT_ROWS, flat=recognition.flat, counts=recognition.counts)

    for is_own, rows in parts:
        recognizer = recognizer or recognizers_of(recognition)(None)
        if is_own and not reported and some.found is not None:
            time = str(recognition.schema.time)
            if before is None or keys_of(before.column(time))[-1] < some.found:
                raise InputError(changed)
        if position is not None:
            numbers = array_of_numbers(np.arange(position, position + rows.num_rows))
            position += rows.num_rows
            rows = rows.append_column(recognition.position, numbers)
        matches = recognizer.push(rows)
        if is_own:
            reported += rows.num_rows
            yield from listed(matches)
        else:
            before = rows
    if recognizer is None:
        return
    if some.own not in (None, reported):
        raise InputError(changed)
    if some.is_last and recognition.until is not None:
        yield from listed(recognizer.advance(recognition.until[0]))


@lru_cache(maxsize=16)
def recognizers_of(recognition: Recognition) -> Callable[[bytes | None], Recognizer | ProgramRecognizer]:
    """A function that makes recognisers, new ones or from snapshots (of queries without precomputed conditions).

    The query is parsed and compiled once in each process, which may serve many tasks.
    """
    prepare_worker()
    schema = recognition.schema
    packed = recognition.predicates
    predicates: tuple[Predicate, ...] = () if packed is None else cloudpickle.loads(packed)
    with using(predicates):
        query = read_query(recognition.query, recognition.language)
    position, positions = recognition.position, recognition.positions
    conditions, precomputed = recognition.precomputed, None
    # Queries with predicates, and programs, have none.
    if conditions and isinstance(query, Query):
        precomputed = Plan(query.tree, schema, position=position, positions=positions, precomputed=conditions)

    def recognizer(snapshot: bytes | None) -> Recognizer | ProgramRecognizer:
        # A worker process may serve queries with other predicates of the same names.
        with using(predicates):
            if isinstance(query, Program):
                made = query.recognizer_for(schema, recognition.refuse, positions=positions)
                if snapshot is not None:
                    made.take_over(snapshot)
                return made
            if snapshot is not None:
                return Recognizer.restore(query, snapshot, on_bad_record=recognition.refuse)
            plan = precomputed or query.plan(schema, position, positions)
            new = Recognizer(query.tree, schema, on_bad_record=recognition.refuse, plan=plan)
            if recognition.by_clock:
                new.run_clock()
            return new

    return recognizer


def pack(query: Query | Program) -> bytes | None:
    """The predicates that a query or program calls, so that they can travel; None if there are none.

    Functions travel as PySpark's own do: those of modules that can be imported by their names, others with all they
    need. Raises `UnsupportedQueryError` if that is not possible.
    """
    predicates = predicates_in(query.tree)
    if not predicates:
        return None
    try:
        packed: bytes = cloudpickle.dumps(predicates)  # type: ignore[no-untyped-call]
    except Exception as error:
        # Objects that a function refers to may raise anything when they are pickled.
        names = ", ".join(f"'{predicate.name}'" for predicate in predicates)
        raise UnsupportedQueryError(
            f"the predicates {names} cannot be sent to the tasks of Spark: {error}",
            hint="A predicate must not hold on to open files, locks or connections.",
        ) from error
    return packed


def as_larger_tables(batches: Iterator[pa.RecordBatch], names: list[str]) -> Iterator[pa.Table]:
    """The rows of a task under the names of the input, as larger tables."""
    for some in pushed_together(batches, lambda batch: (batch.num_rows, batch.nbytes)):
        if any(batch.num_rows for batch in some):
            # What Spark knows of nulls in a column is not part of the schema.
            schema = pa.schema(zip(names, some[0].schema.types))
            yield pa.Table.from_batches([pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in some])


def shown_row(rows: pa.Table, names: Iterable[str]) -> str:
    """The values of the first row, as they stand in a message."""
    return shown_values({name: rows.column(name)[0] for name in names})


def shown_values(values: Mapping[str, object]) -> str:
    """The values of an event, as they stand in a message."""
    return f"{{{', '.join(f'{name}: {readable_value(value)}' for name, value in values.items())}}}"


def readable_value(value: object) -> str:
    """A value of an event, also as a scalar of Arrow, as it stands in a message."""
    if isinstance(value, pa.Scalar):
        scalar: pa.Scalar = value
        try:
            value = scalar.as_py()
        except (OverflowError, ValueError):
            # Python's times end with the year 9999.
            return str(scalar.cast(pa.string()))
    if value is None:
        return "null"
    return cut_short(repr(value) if isinstance(value, str) else str(value))


@dataclass(frozen=True)
class OwnSlices:
    """A query for tasks that get slices: rows in order, and in the last column `SLICE` of `ordering`."""

    recognition: Recognition
    slices: Sequence[Slice]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Recognise in the slices of one task, one after the other."""
        bound = Bound(self.recognition.max_matches)
        for number, parts in groupby(self._parts(batches), key=lambda part: part[0] // 2):
            own = ((code % 2 == 1, rows) for code, rows in parts)
            yield from matches_of_slice(self.recognition, self.slices[number], own, bound)

    def _parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
        """Rows that stand together and have the same value in the last column, with that."""
        # Positions are added later.
        names = [name for name in self.recognition.schema.columns.names if name != self.recognition.position]
        for rows in as_larger_tables(batches, [*names, _LAST]):
            codes = numbers_of(one_array(rows.column(_LAST)))
            rows = rows.drop_columns([_LAST])
            for begin, end in pairwise([0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]):
                yield int(codes[begin]), rows.slice(begin, end - begin)
