"""``cerflow run --input -`` on lines from a pipe: a match is written when its last line arrives."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from cerflow import limits
from cerflow.cli.commands.checking import queries_in, warn_of_types
from cerflow.cli.commands.request import Request
from cerflow.cli.output.progress import PhaseTimer, Progress, compile_kernels
from cerflow.cli.output.reporting import RunSummary, warn
from cerflow.cli.output.targets import STANDARD_OUTPUT
from cerflow.cli.output.writing import Policy, open_sink
from cerflow.engine.evaluate.measures import typed_time
from cerflow.engine.events.records import BACKWARDS
from cerflow.engine.events.time_order import extent
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.row_limit import Bound
from cerflow.errors import BadRecordError
from cerflow.files.arriving import arrives, arriving_events
from cerflow.files.input_plans import SplitRows

_IN_ORDER = (
    "; events from a pipe are read in the order in which they arrive: write them to a file, which is sorted, "
    "or leave such events out with --on-bad-record skip"
)


def come_by_a_pipe(request: Request) -> bool:
    """Whether a request can be run on events as they arrive: no others are needed to order or to draw them."""
    inputs = request.inputs.inputs
    whole = len(inputs) > 1 or request.inputs.columns.sequence is not None or request.options.summary
    return not whole and arrives(inputs[0].events)


def run_as_events_come(request: Request, show: Progress, watch: PhaseTimer) -> RunSummary:
    """Run a request on standard input; ``show`` displays what is done. Raises InputError and the errors of the query.

    Events are taken in the order in which they come.
    """
    columns, bad_records = request.inputs.columns, request.bad_records
    if not compile_kernels(watch):
        watch.done("starting")
    if request.output.output == STANDARD_OUTPUT and sys.stdout.isatty():
        show.stop()
    else:
        show("waiting for events")
    patient = bad_records.policy is not Policy.FAIL
    run = _ArrivingRun(request, arriving_events(request.inputs.inputs[0], columns, patient=patient, say=warn))
    bound, written = Bound(request.max_matches), 0
    schema = run.recognizer.push(run.first.table.slice(0, 0)).shown_schema(**request.form)
    try:
        with open_sink(request.output.output, request.output_format, schema) as sink:
            for matches in run.matches():
                watch.done("reading")
                found = matches.announced(bound.add)
                for batch in found.to_batches(limits.OUTPUT_BATCH_ROWS, **request.form):
                    watch.done("recognising")
                    sink.write(batch)
                    written += batch.num_rows
                    watch.done("writing")
                watch.done("recognising")
    finally:
        # Also where a signal ends the run: the matches before it are written.
        bad_records.write()
    watch.done("writing")
    if not run.rows:
        warn("the input has no rows")
    warn_of_types(request.query, run.occurring)
    return RunSummary(run.rows - bad_records.count, written, bad_records.count, watch.phases)


class _ArrivingRun:
    """A recogniser that gets tables of events as they arrive."""

    def __init__(self, request: Request, parts: Iterator[SplitRows]) -> None:
        self.first = next(parts)
        #: The number of all rows so far, the types in them, and the types of the query that none of them has.
        self.rows = 0
        self.occurring: frozenset[str] | None = frozenset()
        self.missing = {name for each in queries_in(request.query) for name in each.types_named()}
        self._request = request
        self._parts = chain((self.first,), parts)
        self._fails = request.bad_records.policy is Policy.FAIL
        #: The rows that the recogniser got before, and the numbers of those that it gets, in the input.
        self._before = 0
        self._numbers = self.first.rows
        columns = request.inputs.columns
        self.recognizer = request.query.recognizer(
            self.first.table.schema,
            **columns.of_events(),
            positions=request.options.positions,
            on_bad_record="fail" if self._fails else self._refuse,
            memory=request.memory,
        )

    def matches(self) -> Iterator[Matches]:
        """The matches of one table after the other; those before a bad record come before it is raised."""
        columns, until = self._request.inputs.columns, self._request.until
        for part in self._parts:
            if self._before == 0 < len(part.table):
                schema = columns.schema(part.table.schema, None)
                self._request.query.warn_of_times(schema, extent(part.table, schema))
            self.rows += len(part.table) + (0 if part.refused is None else len(part.refused))
            if self.missing and self.occurring is not None:
                more = columns.schema(part.table.schema, None).types_in(part.table)
                self.occurring = None if more is None else self.occurring | more
                self.missing -= self.occurring or frozenset()
            yield from self._pushed(part)
        if until is not None:
            yield self.recognizer.advance(typed_time(until, self.first.table.schema, columns.time))

    def _pushed(self, part: SplitRows) -> Iterator[Matches]:
        table, self._numbers = part.table, part.rows
        fault = None
        if part.refused is not None:
            if self._fails:
                first = part.refused.sort_by("row").slice(0, 1).to_pylist()[0]
                fault = BadRecordError(first["row"], first["reason"])
                table = table.slice(0, int(self._numbers.searchsorted(first["row"])))
            else:
                self._request.bad_records.refuse(part.refused)
        try:
            found = self.recognizer.push(table)
        except BadRecordError as error:
            number = int(error.row) - self._before
            remedy = _IN_ORDER if error.reason.startswith(BACKWARDS) else ""
            fault = BadRecordError(int(self._numbers[number]), error.reason + remedy)
            found = self.recognizer.push(table.slice(0, number))
        self._before += len(table)
        yield found
        if fault is not None:
            raise fault

    def _refuse(self, rows: pa.Table) -> None:
        index = rows.schema.get_field_index("row")
        numbers = self._numbers[rows.column("row").to_numpy() - self._before]
        self._request.bad_records.refuse(rows.set_column(index, "row", pa.array(numbers)))
