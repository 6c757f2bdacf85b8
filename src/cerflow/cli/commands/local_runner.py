"""``cerflow run --runner local``: the events are read, ordered and recognised in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from cerflow import limits
from cerflow.cli.commands.checking import warn_of_types
from cerflow.cli.commands.request import Request
from cerflow.cli.output.bad_records import Policy
from cerflow.cli.output.progress import PhaseTimer, Progress, bytes_read, compile_kernels
from cerflow.cli.output.reporting import RunSummary, warn
from cerflow.cli.output.targets import STANDARD_OUTPUT
from cerflow.cli.output.volume import Volume
from cerflow.cli.output.writing import open_sink
from cerflow.engine.evaluate.measures import typed_time
from cerflow.errors import BadRecordError
from cerflow.files.reading import ReadEvents, read_inputs
from cerflow.language.select import CountItem
from cerflow.programs.program import Program
from cerflow.schema import Schema
from cerflow.viewing.sparkline import MatchesOverTime


def run_local(request: Request, show: Progress, watch: PhaseTimer) -> RunSummary:
    """Run a request in this process; ``show`` displays the progress. Raises InputError and the errors of the query."""
    bad_records, columns = request.bad_records, request.inputs.columns
    if not compile_kernels(watch):
        watch.done("starting")
    show.bar("reading", *bytes_read([file for one in request.inputs.inputs for file in one.events.files]), "B")
    events = read_inputs(request.inputs.inputs, columns, named=request.inputs.named)
    for remark in events.remarks:
        warn(remark)
    if events.refused is not None:
        bad_records.refuse(events.refused)
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
        type=columns.type,
        time=columns.time,
        time_unit=columns.time_unit,
        forget=columns.forget,
        sequence=columns.sequence,
        stream=events.stream,
        positions=request.positions,
        on_bad_record="fail" if bad_records.policy is Policy.FAIL else refuse,
        memory=request.memory,
        until=typed_time(request.until, events.table.schema, columns.time),
    )
    schema = columns.schema(events.table.schema, events.stream)
    warn_of_types(request.query, schema.types_in(events.table))
    written = 0
    drawing = _over_time(schema.completed(events.table), schema) if request.summary else None
    if request.output == STANDARD_OUTPUT and sys.stdout.isatty():
        # The matches go to the same terminal.
        show.stop()
    else:
        show.bar("recognising", len(events.table), matches.reached, " events")
    volume = Volume(matches, request.max_matches)
    last = request.query.query if isinstance(request.query, Program) else request.query
    counted = next((item.name for item in last.tree.projection.items if isinstance(item, CountItem)), None)
    shown = matches.shown_schema(flat=request.flat, counts=request.counts)
    with _rows_of_the_input(events), open_sink(request.output, request.output_format, shown) as sink:
        for batch in volume.batches(limits.OUTPUT_BATCH_ROWS, flat=request.flat, counts=request.counts):
            watch.done("recognising")
            sink.write(batch)
            if drawing is not None:
                numbers = None if counted is None else batch.column(counted).cast(pa.float64()).to_numpy()
                drawing.add(batch.column("detected_time"), numbers)
            written += batch.num_rows
            volume.look_at_room(request.output, sink, written)
            watch.done("writing")
            show(f"recognising, {written:,} matches")
        watch.done("recognising")
        # Write them before the matches get their name: then matches that exist always have complete dead letters.
        bad_records.write()
    watch.done("writing")
    usable = len(events.table) - (bad_records.count - (len(events.refused) if events.refused is not None else 0))
    return RunSummary(usable, written, bad_records.count, watch.phases, drawn=str(drawing or ""))


def _over_time(events: pa.Table, schema: Schema) -> MatchesOverTime:
    """A counter of matches over the time of the events, or over their positions."""
    if schema.time is None:
        return MatchesOverTime(pa.chunked_array([pa.array([0, max(0, len(events) - 1)])]), None)
    return MatchesOverTime(events.column(schema.time), schema.time_unit or "ms")


@contextmanager
def _rows_of_the_input(events: ReadEvents) -> Iterator[None]:
    """Make errors name rows of the input; their numbers count also rows that could not be read."""
    try:
        yield
    except BadRecordError as error:
        if events.rows is None or not isinstance(error.row, int):
            raise
        raise BadRecordError(int(events.rows[error.row]), error.reason) from error
