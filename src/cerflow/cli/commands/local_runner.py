"""``cerflow run --runner local``: the events are read, ordered and recognised in this process."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from cerflow import limits
from cerflow.analysis.columns import attributes_in
from cerflow.cli.commands.checking import warn_of_types
from cerflow.cli.commands.request import Request
from cerflow.cli.output.progress import PhaseTimer, Progress, bytes_read, compile_kernels
from cerflow.cli.output.reporting import RunSummary, warn
from cerflow.cli.output.targets import STANDARD_OUTPUT, free_space
from cerflow.cli.output.writing import Policy, Sink, open_sink
from cerflow.engine.evaluate.measures import typed_time
from cerflow.engine.events.time_order import extent
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.row_limit import LESS, Bound, readable_number
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.columns_needed import columns_needed
from cerflow.engine.recognize.planning import limit_of
from cerflow.engine.results.report import CountForm, Report
from cerflow.errors import BadRecordError
from cerflow.files.reading import read_inputs
from cerflow.files.row_groups import OrderedGroups
from cerflow.language.select import CountItem
from cerflow.programs.program import Program
from cerflow.query import Query
from cerflow.schema import Schema
from cerflow.values.array_types import Ints
from cerflow.values.nested import root_of
from cerflow.viewing.sparkline import MatchesOverTime


@dataclass(frozen=True)
class _Prepared:
    """The matches of a request, and what is known of its events before they are recognised.

    ``sample`` are all events or a few that have all types and the extreme times, ``count`` is the number of all that
    can be used as far as is known. ``rows`` numbers them in the input if that leaves out some. ``shown`` is the schema
    of the output.
    """

    matches: Matches
    shown: pa.Schema
    schema: Schema
    sample: pa.Table
    count: int
    rows: Ints | None = None


def run_local(request: Request, show: Progress, watch: PhaseTimer) -> RunSummary:
    """Run a request in this process; ``show`` displays the progress. Raises InputError and the errors of the query."""
    bad_records = request.bad_records
    if not compile_kernels(watch):
        watch.done("starting")
    found = _by_row_groups(request) or _as_a_whole(request, show, watch)
    matches, schema = found.matches, found.schema
    warn_of_types(request.query, schema.types_in(found.sample))
    watch.done("reading")
    before, written = bad_records.count, 0
    drawing = _over_time(schema.completed(found.sample), schema) if request.options.summary else None
    if request.output.output == STANDARD_OUTPUT and sys.stdout.isatty():
        # The matches go to the same terminal.
        show.stop()
    else:
        show.bar("recognising", found.count, matches.reached, " events")
    volume = Volume(matches, request.max_matches)
    last = request.query.query if isinstance(request.query, Program) else request.query
    counted = next((item.name for item in last.tree.projection.items if isinstance(item, CountItem)), None)
    with _rows_of_the_input(found.rows), open_sink(request.output.output, request.output_format, found.shown) as sink:
        for batch in volume.batches(limits.OUTPUT_BATCH_ROWS, **request.form):
            watch.done("recognising")
            sink.write(batch)
            if drawing is not None:
                numbers = None if counted is None else batch.column(counted).cast(pa.float64()).to_numpy()
                drawing.add(batch.column("detected_time"), numbers)
            written += batch.num_rows
            volume.look_at_room(request.output.output, sink, written)
            watch.done("writing")
            show(f"recognising, {written:,} matches")
        watch.done("recognising")
        # Write them before the matches get their name: then matches that exist always have complete dead letters.
        bad_records.write()
    watch.done("writing")
    valid = found.count - (bad_records.count - before)
    return RunSummary(valid, written, bad_records.count, watch.phases, drawn=str(drawing or ""))


def _as_a_whole(request: Request, show: Progress, watch: PhaseTimer) -> _Prepared:
    """The matches in a table of all events, which are put in order."""
    bad_records, columns = request.bad_records, request.inputs.columns
    show.bar("reading", *bytes_read([file for one in request.inputs.inputs for file in one.events.files]), "B")
    events = read_inputs(request.inputs.inputs, columns, named=request.inputs.named)
    for remark in events.remarks:
        warn(remark)
    if events.refused is not None:
        bad_records.refuse(events.refused)
    before = bad_records.count
    watch.done("reading")

    # The engine numbers the rows that it gets, which leave out rows that were refused before.
    def refuse(rows: pa.Table) -> None:
        if events.rows is not None:
            index = rows.schema.get_field_index("row")
            rows = rows.set_column(index, "row", pa.array(events.rows[rows.column("row").to_numpy()]))
        bad_records.refuse(rows)

    show("putting the events in order")
    matches = request.query.match(
        events.table,
        **columns.of_events(events.stream),
        sequence=columns.sequence,
        positions=request.options.positions,
        on_bad_record="fail" if bad_records.policy is Policy.FAIL else refuse,
        memory=request.memory,
        until=typed_time(request.until, events.table.schema, columns.time),
    )
    shown = matches.shown_schema(**request.form)
    schema = columns.schema(events.table.schema, events.stream)
    count = len(events.table) - (bad_records.count - before)
    return _Prepared(matches, shown, schema, events.table, count, events.rows)


def _by_row_groups(request: Request) -> _Prepared | None:
    """The matches in Parquet of which one row group after the other is read; None for input that is read at once."""
    query, columns = request.query, request.inputs.columns
    whole = request.inputs.named or len(request.inputs.inputs) > 1 or request.options.summary
    if whole or isinstance(query, Program) or request.bad_records.policy is not Policy.FAIL:
        return None
    groups = OrderedGroups.of(request.inputs.inputs[0], columns)
    if groups is None:
        return None
    schema, sample = columns.schema(groups.schema, None), groups.sample(query.types_named())
    query.check(schema)
    query.warn_of_times(schema, extent(sample, schema))
    known, encoded = (
        columns.schema(some, None).reading(attributes_in(query.tree)) for some in (groups.schema, groups.encoded)
    )
    plain, report = (
        Report(query.tree, some, positions=request.options.positions, position=None) for some in (known, encoded)
    )
    shown = plain.shown("structs", None, request.output.flat, request.options.counts)
    streamed = _GroupByGroup(
        request, query, groups, {*columns.required, *map(root_of, columns_needed(query.tree, known))}
    )
    none = partial(query.warn_of_no_match, schema, sample)
    matches = Matches(streamed, report, limit_of(query.tree), tell_none=none)
    return _Prepared(matches, shown, schema, sample, groups.rows)


class _GroupByGroup:
    """The parts of the matches in row groups; every iteration reads and recognises them again."""

    def __init__(self, request: Request, query: Query, groups: OrderedGroups, names: Collection[str]) -> None:
        columns = request.inputs.columns
        self._groups = groups
        self._names = names
        self._until = typed_time(request.until, groups.schema, columns.time)
        encoded = pa.schema([field for field in groups.encoded if field.name in names])
        self._recognizer = partial(
            query.recognizer, encoded, positions=request.options.positions, memory=request.memory, **columns.of_events()
        )
        #: The number of events that the latest iteration has processed.
        self.reached = 0

    def __iter__(self) -> Iterator[Part]:
        recognizer, self.reached = self._recognizer(), 0
        for some in self._groups.parts(self._names):
            try:
                found = recognizer.push(some.table)
            except BadRecordError as error:
                raise BadRecordError(int(some.rows[int(error.row) - self.reached]), error.reason) from error
            yield from found.parts
            self.reached += len(some.table)
        if self._until is not None:
            yield from recognizer.advance(self._until).parts


def _over_time(events: pa.Table, schema: Schema) -> MatchesOverTime:
    """A counter of matches over the time of the events, or over their positions."""
    if schema.time is None:
        return MatchesOverTime(pa.chunked_array([pa.array([0, max(0, len(events) - 1)])]), None)
    return MatchesOverTime(events.column(schema.time), schema.time_unit or "ms")


@contextmanager
def _rows_of_the_input(rows: Ints | None) -> Iterator[None]:
    """Make errors name rows of the input; their numbers count also rows that could not be read."""
    try:
        yield
    except BadRecordError as error:
        if rows is None or not isinstance(error.row, int):
            raise
        raise BadRecordError(int(rows[error.row]), error.reason) from error


class Volume:
    """The batches of matches; ``total`` is the number of their rows or a lower bound, once it is known."""

    def __init__(self, matches: Matches, most: int | None) -> None:
        self._matches = matches
        self._most = most
        self._bound = Bound(most)
        self._written = 0
        self.total: int | None = None

    def batches(self, max_rows: int, *, flat: bool, counts: CountForm) -> Iterator[pa.RecordBatch]:
        """The matches in batches; raises TooManyMatchesError before it unfolds matches beyond the bound."""
        return self._matches.announced(self._tell).to_batches(max_rows, flat=flat, counts=counts)

    def _tell(self, rows: int, exact: bool) -> None:
        self._bound.add(rows, exact)
        if self._bound.known <= limits.MATCHES_COUNTED or self.total is not None:
            return
        # Recognising once more costs little compared with writing so many matches.
        ahead = Bound(self._most)
        for _ in self._matches.announced(ahead.add).parts:
            pass
        self.total = ahead.known
        warn(f"{'' if ahead.exact else 'more than '}{readable_number(self.total)} matches will be written; {LESS}")

    def look_at_room(self, target: str, sink: Sink, written: int) -> None:
        """Warn, once, if the remaining matches will probably not fit on the disk of the target."""
        before, self._written = self._written, written
        if self.total is None or not before < limits.ROWS_WEIGHED <= written:
            return
        free = free_space(target)
        needed = sink.size * max(0, self.total - written) // written
        if free is not None and needed > free:
            more = readable_number(needed >> 20)
            warn(f"the disk of '{target}' has {free >> 20:,} MiB left, and the matches need {more} MiB more")
