"""The tasks: they turn Arrow batches of events into batches of matches, and never hold all of either.

A task that gets slices of the stream checks all that its result relies on, and fails if the events are not those that
were counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

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
from cerflow.engine.slices.by_keys import Pieces, Slice
from cerflow.language.condition import Condition
from cerflow.language.predicates.registry import Predicate, predicates_in, using
from cerflow.spark.frames.axis import Axis
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
        runner = None
        for rows in as_larger_tables(batches, self.schema.columns.names):
            runner = runner or SliceRunner(self, Bound(self.max_matches), OwnSlice(last=True))
            yield from runner.report(rows)
        if runner is not None:
            yield from runner.finish()

    def refuse(self, rows: pa.Table) -> None:
        """Raise the error for bad records: rows of a distributed input have no number, so values name the first one."""
        *columns, _, reason = rows.column_names
        shown = shown_row(rows, [name for name in columns if name not in (self.position, PRECOMPUTED)])
        raise BadRecordError(shown, rows.column(reason)[0].as_py().replace(PRECOMPUTED, self.type))


class OwnSlice(NamedTuple):
    """What a task knows of a slice.

    ``first`` is the position of its first event, if positions are needed; ``own`` the number of its own events, and
    ``found`` the key of an event before it, if the result relies on these. ``last`` says that it ends the stream.
    """

    first: int | None = None
    own: int | None = None
    found: int | None = None
    last: bool = False


class SliceRunner:
    """One slice of a stream: the events before it are read first, then its own matches are reported.

    The events come in order, as rows of tables. ``bound`` is on the matches of all slices of a task. If the slice says
    which position is the ``first``, the events are numbered in a last column; else the rows have all columns.
    """

    def __init__(self, recognition: Recognition, bound: Bound, own: OwnSlice) -> None:
        self.own = own
        self._recognition = recognition
        self._recognizer = recognizers_of(recognition)(None)
        self._bound = bound
        self._next = own.first
        self._reported = 0
        self._latest: pa.Table | None = None

    def prepare(self, rows: pa.Table) -> None:
        """Read events whose matches another slice reports, without reporting any."""
        self._latest = rows
        self._recognizer.push(self._numbered(rows))

    def report(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """The matches detected at some events, a bounded number at a time.

        Raises `TooManyMatchesError` before matches beyond the bound are listed, and `InputError` if the event on which
        the slice relies is not among those before.
        """
        if self.own.found is not None and not self._reported:
            schema, latest = self._recognition.schema, self._latest
            if latest is None or Axis(schema).keys(latest.column(str(schema.time)))[-1] < self.own.found:
                raise InputError(CHANGED)
        self._reported += rows.num_rows
        yield from self._listed(self._recognizer.push(self._numbered(rows)))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The matches detected after all events, if it is known that none is to come before a time; see `report`.

        Raises `InputError` for another number of events than was counted.
        """
        if self.own.own is not None and self._reported != self.own.own:
            raise InputError(CHANGED)
        if self.own.last and self._recognition.until is not None:
            yield from self._listed(self._recognizer.advance(self._recognition.until[0]))

    def _listed(self, matches: Matches) -> Iterator[pa.RecordBatch]:
        given = self._recognition
        counted = matches.announced(self._bound.add)
        yield from counted.to_batches(limits.RESULT_ROWS, flat=given.flat, counts=given.counts)

    def _numbered(self, rows: pa.Table) -> pa.Table:
        if self._next is None:
            return rows
        numbers = array_of_numbers(np.arange(self._next, self._next + rows.num_rows))
        self._next += rows.num_rows
        return rows.append_column(self._recognition.position, numbers)


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
    precomputed = None
    if recognition.precomputed:
        assert isinstance(query, Query)
        # Queries with predicates have no precomputed conditions.
        precomputed = Plan(
            query.tree,
            schema,
            position=recognition.position,
            positions=recognition.positions,
            precomputed=recognition.precomputed,
        )

    def recognizer(snapshot: bytes | None) -> Recognizer | ProgramRecognizer:
        # A worker process may serve queries with other predicates of the same names.
        with using(predicates):
            if isinstance(query, Program):
                made = query.recognizer_for(schema, recognition.refuse, positions=recognition.positions)
                if snapshot is not None:
                    made.take_over(snapshot)
                return made
            if snapshot is not None:
                return Recognizer.restore(query, snapshot, on_bad_record=recognition.refuse)
            plan = precomputed or query.plan(schema, recognition.position, recognition.positions)
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
    slices: tuple[OwnSlice, ...]

    @classmethod
    def of(cls, recognition: Recognition, slices: Sequence[Slice[int]], counted: Pieces | None) -> OwnSlices:
        """The work on some slices of a stream.

        The pieces that were ``counted`` lie between the keys where slices begin, start and stop.
        """
        known = []
        for some in slices:
            first = own = None
            if counted is not None:
                before = counted.before(some.start)
                own = counted.before(some.stop) - before
                if recognition.position is not None:
                    # Of the events before its start a slice at home reads its own only.
                    first = before - counted.before(some.start, some.home) + counted.before(some.begin, some.home)
            known.append(OwnSlice(first, own, some.found, some.is_last))
        return cls(recognition, tuple(known))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Recognise in the slices of one task, one after the other."""
        bound = Bound(self.recognition.max_matches)
        runner: SliceRunner | None = None
        # Positions are added here.
        names = [name for name in self.recognition.schema.columns.names if name != self.recognition.position]
        for rows in as_larger_tables(batches, [*names, _LAST]):
            codes = numbers_of(one_array(rows.column(_LAST)))
            rows = rows.drop_columns([_LAST])
            ends = [*(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
            for begin, end in zip([0, *ends[:-1]], ends, strict=True):
                number, is_own = divmod(int(codes[begin]), 2)
                if runner is None or self.slices[number] is not runner.own:
                    if runner is not None:
                        yield from runner.finish()
                    runner = SliceRunner(self.recognition, bound, self.slices[number])
                some = rows.slice(begin, end - begin)
                if is_own:
                    yield from runner.report(some)
                else:
                    runner.prepare(some)
        if runner is not None:
            yield from runner.finish()
