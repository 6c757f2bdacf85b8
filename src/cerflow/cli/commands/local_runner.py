"""``cerflow run --runner local``: events are read, ordered and recognised in this process, or as they arrive."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from cerflow.api.programs.program import Program
from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.errors import BadRecordError
from cerflow.base.nested import root_of
from cerflow.base.schema import Schema
from cerflow.cli.commands.checking import warn_of_types
from cerflow.cli.commands.request import Request
from cerflow.cli.output.reporting import PhaseTimer, Progress, RunSummary, bytes_read, compile_kernels, warn, width_of
from cerflow.cli.output.targets import STANDARD_OUTPUT, free_space
from cerflow.cli.output.writing import Sink
from cerflow.engine.evaluate.measures import clock_time, typed_time
from cerflow.engine.events.records import IN_ORDER
from cerflow.engine.events.time_order import extent
from cerflow.engine.matches.counting import LESS, Bound, readable_number
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.columns_needed import columns_needed
from cerflow.engine.recognize.planning import limit_of
from cerflow.engine.results.report import Report
from cerflow.files.input_plans import SplitRows
from cerflow.files.reading import arrives, arriving_events
from cerflow.language.select import CountItem
from cerflow.logic.analysis.columns import attributes_in
from cerflow.look.viewing.plots import MatchesOverTime

_AS_THEY_ARRIVE = (
    "; events from a pipe are read in the order in which they arrive: write them to a file, which is sorted, "
    "or leave such events out with --on-bad-record skip"
)


@dataclass(frozen=True)
class _Prepared:
    """The matches of a request, and what is known of its events before they are recognised.

    ``sample`` are all events or a few that have all types and the extreme times, ``count`` is the number of all rows of
    the input. ``rows`` numbers the events in the input if that has others. ``shown`` is the schema of the output.
    """

    matches: Matches
    shown: pa.Schema
    schema: Schema
    sample: pa.Table
    count: int
    rows: Ints | None = None


def run_local(request: Request, show: Progress, watch: PhaseTimer) -> RunSummary:
    """Run a request in this process; ``show`` displays the progress. Raises InputError and the errors of the query.

    Events that come by a pipe are recognised as they arrive, unless others are needed to order or to draw them.
    """
    inputs, bad_records = request.inputs, request.bad_records
    if not compile_kernels(watch):
        watch.done("starting")
    alone = len(inputs.inputs) == 1 and not request.options.summary
    if alone and inputs.columns.sequence is None and arrives(inputs.inputs[0].events):
        return _run_as_events_come(request, show, watch)
    found = _by_row_groups(request) or _as_a_whole(request, show, watch)
    matches, schema = found.matches, found.schema
    warn_of_types(request.query, schema.types_in(found.sample))
    watch.done("reading")
    drawing = _over_time(schema.completed(found.sample), schema) if request.options.summary else None
    _leave_terminal(request, show)
    show.bar("recognising", found.count - bad_records.count, matches.reached, " events")
    volume = _Volume(matches, request)
    last = request.query.query if isinstance(request.query, Program) else request.query
    counted = next((item.name for item in last.tree.projection.items if isinstance(item, CountItem)), None)

    def look(sink: Sink, batch: pa.RecordBatch, written: int) -> None:
        if drawing is not None:
            numbers = None if counted is None else batch.column(counted).cast(pa.float64()).to_numpy()
            drawing.add(batch.column("detected_time"), numbers)
        volume.look_at_room(sink, batch.num_rows, written)
        show(f"recognising, {written:,} matches")

    try:
        # Dead letters are written before the matches get their name: matches that exist always have complete ones.
        written = request.write(volume.batches(), found.shown, watch, look, bad_records.write)
    except BadRecordError as error:
        if found.rows is None or not isinstance(error.row, int):
            raise
        # The numbers of the input count also rows that could not be read.
        raise BadRecordError(int(found.rows[error.row]), error.reason) from error
    valid = found.count - bad_records.count
    return RunSummary(valid, written, bad_records.count, watch.phases, drawn=str(drawing or ""))


def _leave_terminal(request: Request, show: Progress) -> None:
    """Show no more progress if matches go to the same terminal."""
    if request.output.output == STANDARD_OUTPUT and sys.stdout.isatty():
        show.stop()
        show.disable = True


def _as_a_whole(request: Request, show: Progress, watch: PhaseTimer) -> _Prepared:
    """The matches in a table of all events, which are put in order."""
    bad_records, columns = request.bad_records, request.inputs.columns
    show.bar("reading", *bytes_read([file for one in request.inputs.inputs for file in one.events.files]), "B")
    events = request.inputs.read()
    for remark in events.remarks:
        warn(remark)
    if events.refused is not None:
        bad_records.refuse(events.refused)
    count = len(events.table) + bad_records.count
    watch.done("reading")
    show("putting the events in order")
    matches = request.query.match(
        events.table,
        **columns.of_events(events.schema.stream),
        sequence=columns.sequence,
        positions=request.options.positions,
        # The engine numbers the rows that it gets, which leave out rows that were refused before.
        on_bad_record="fail" if bad_records.fails else partial(bad_records.refuse, numbers=events.rows),
        memory=request.options.memory,
        until=typed_time(request.until, events.table.schema, columns.time),
    )
    return _Prepared(matches, matches.shown_schema(**request.form), events.schema, events.table, count, events.rows)


def _by_row_groups(request: Request) -> _Prepared | None:
    """The matches in Parquet of which one row group after the other is read; None for input that is read at once."""
    query, columns, groups = request.query, request.inputs.columns, request.groups
    if groups is None or isinstance(query, Program):
        return None
    schema, sample = columns.schema(groups.schema, None), groups.sample(query.types_named())
    query.check(schema)
    query.warn_of_doubts(schema, extent(sample, schema))
    known, encoded = (
        columns.schema(some, None).reading(attributes_in(query.tree)) for some in (groups.schema, groups.encoded)
    )
    plain, report = (
        Report(query.tree, some, positions=request.options.positions, position=None) for some in (known, encoded)
    )
    shown = plain.shown("structs", None, request.output.flat, request.options.counts)
    names = {*columns.required, *map(root_of, columns_needed(query.tree, known))}
    read = pa.schema([field for field in groups.encoded if field.name in names])
    streamed = _InTurn(request, read, lambda: groups.parts(names))
    none = partial(query.warn_of_no_match, schema, sample)
    matches = Matches(streamed, report, limit_of(query.tree), tell_none=none)
    return _Prepared(matches, shown, schema, sample, groups.rows)


class _InTurn:
    """The parts of the matches in tables of events that come in order; every iteration recognises them again.

    ``tables`` gives the tables, which have this ``schema``. ``reached`` is the number of events that the latest
    iteration has processed.
    """

    def __init__(self, request: Request, schema: pa.Schema, tables: Callable[[], Iterator[SplitRows]]) -> None:
        columns, options = request.inputs.columns, request.options
        self._bad_records = request.bad_records
        self._tables = tables
        self._numbers: Ints = np.array([], np.int64)
        self._until = typed_time(request.until, schema, columns.time)
        if self._until is not None:
            # A mistake is told now, not when all events have come.
            clock_time(self._until, columns.schema(schema, None))
        self.recognizer = partial(
            request.query.recognizer,
            schema,
            positions=options.positions,
            memory=options.memory,
            on_bad_record="fail" if self._bad_records.fails else self._refuse,
            **columns.of_events(),
        )
        self.reached = 0

    def __iter__(self) -> Iterator[Part]:
        for matches in self.matches():
            yield from matches.parts

    def matches(self) -> Iterator[Matches]:
        """The matches of one table after the other; those before a bad record come before it is raised."""
        recognizer, self.reached = self.recognizer(), 0
        for part in self._tables():
            table, self._numbers, fault = part.table, part.rows, None
            if part.refused is not None and self._bad_records.fails:
                first = part.refused.sort_by("row").slice(0, 1).to_pylist()[0]
                fault = BadRecordError(first["row"], first["reason"])
                table = table.slice(0, int(self._numbers.searchsorted(first["row"])))
            elif part.refused is not None:
                self._bad_records.refuse(part.refused)
            try:
                found = recognizer.push(table)
            except BadRecordError as error:
                number = int(error.row) - self.reached
                reason = error.reason.replace(IN_ORDER, _AS_THEY_ARRIVE)
                fault = BadRecordError(int(self._numbers[number]), reason)
                found = recognizer.push(table.slice(0, number))
            yield found
            self.reached += len(table)
            if fault is not None:
                raise fault
        if self._until is not None:
            yield recognizer.advance(self._until)

    def _refuse(self, rows: pa.Table) -> None:
        self._bad_records.refuse(rows, self._numbers, self.reached)


def _over_time(events: pa.Table, schema: Schema) -> MatchesOverTime:
    """A counter of matches over the time of the events, or over their positions."""
    stretches = max(10, min(60, width_of(sys.stderr, 100) - len("matches over time: ||")))
    if schema.time is None:
        return MatchesOverTime(pa.chunked_array([pa.array([0, max(0, len(events) - 1)])]), None, stretches)
    return MatchesOverTime(events.column(schema.time), schema.time_unit or "ms", stretches)


class _Volume:
    """The batches of matches; ``total`` is the number of their rows or a lower bound, once it is known."""

    def __init__(self, matches: Matches, request: Request) -> None:
        self._matches = matches
        self._request = request
        self._bound = Bound(request.options.max_matches)
        self.total: int | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The matches in batches; raises TooManyMatchesError before it unfolds matches beyond the bound."""
        return self._matches.announced(self._tell).to_batches(limits.OUTPUT_BATCH_ROWS, **self._request.form)

    def _tell(self, rows: int, exact: bool) -> None:
        self._bound.add(rows, exact)
        if self._bound.known <= limits.MATCHES_COUNTED or self.total is not None:
            return
        # Recognising once more costs little compared with writing so many matches.
        ahead = Bound(self._bound.most)
        for _ in self._matches.announced(ahead.add).parts:
            pass
        self.total = ahead.known
        warn(f"{'' if ahead.exact else 'more than '}{readable_number(self.total)} matches will be written; {LESS}")

    def look_at_room(self, sink: Sink, rows: int, written: int) -> None:
        """Warn, once, if the matches after these ``written``, ``rows`` of them just now, will not fit on the disk."""
        if self.total is None or not written - rows < limits.ROWS_WEIGHED <= written:
            return
        target = self._request.output.output
        free = free_space(target)
        needed = sink.stream.tell() * max(0, self.total - written) // written
        if free is not None and needed > free:
            more = readable_number(needed >> 20)
            warn(f"the disk of '{target}' has {free >> 20:,} MiB left, and the matches need {more} MiB more")


def _run_as_events_come(request: Request, show: Progress, watch: PhaseTimer) -> RunSummary:
    """Run a request on standard input, in the order of its lines: a match is written when its last line arrives."""
    _leave_terminal(request, show)
    show("waiting for events")
    query, columns, bad_records = request.query, request.inputs.columns, request.bad_records
    parts = arriving_events(request.inputs.inputs[0], columns, patient=not bad_records.fails, say=warn)
    nothing = next(parts).table
    schema = columns.schema(nothing.schema, None)
    rows = 0
    occurring = set[str]()

    def tables() -> Iterator[SplitRows]:
        nonlocal rows
        told = False
        for part in parts:
            if not told and len(part.table):
                query.warn_of_doubts(schema, extent(part.table, schema))
                told = True
            rows += len(part.table) + (0 if part.refused is None else len(part.refused))
            occurring.update(schema.types_in(part.table) or ())
            yield part

    run, bound = _InTurn(request, nothing.schema, tables), Bound(request.options.max_matches)

    def batches() -> Iterator[pa.RecordBatch]:
        for matches in run.matches():
            watch.done("reading")
            yield from matches.announced(bound.add).to_batches(limits.OUTPUT_BATCH_ROWS, **request.form)
            watch.done("recognising")

    shown = run.recognizer().push(nothing).shown_schema(**request.form)
    try:
        written = request.write(batches(), shown, watch)
    finally:
        # Also where a signal ends the run: the matches before it are written.
        bad_records.write()
    watch.done("writing")
    if not rows:
        warn("the input has no rows")
    warn_of_types(query, None if schema.untyped else occurring)
    return RunSummary(rows - bad_records.count, written, bad_records.count, watch.phases)
