"""``cerflow run --runner local``: the events are read, ordered and recognised in this process."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pyarrow as pa

from cerflow.cli.bad_records import Policy
from cerflow.cli.reading import read_events
from cerflow.cli.reporting import Outcome
from cerflow.cli.request import Request
from cerflow.cli.writing import STANDARD_OUTPUT, open_sink
from cerflow.engine.warmup import compiled, warm_up

__all__ = ["run_local"]

_BATCH_ROWS = 10_000


def run_local(request: Request, show: Callable[[str], None]) -> Outcome:
    """Do what is asked; ``show`` is told what is being done. Raises InputError and the errors of the query."""
    bad_records, columns = request.bad_records, request.inputs.columns
    started = time.perf_counter()
    show("reading")
    events = read_events(request.inputs.inputs, columns, named=request.inputs.named)
    if events.refused is not None:
        bad_records.refuse(events.refused)

    def refuse(rows: pa.Table) -> None:
        # The engine numbers the rows it was given; rows refused before that are not among them.
        if events.rows is not None:
            index = rows.schema.get_field_index("row")
            rows = rows.set_column(index, "row", pa.array(events.rows[rows.column("row").to_numpy()]))
        bad_records.refuse(rows)

    if not compiled():
        show("compiling the engine for this machine, which happens once and takes some seconds")
        warm_up()
    show(f"recognising in {len(events.table):,} events")
    matches = request.query.match(
        events.table,
        type=columns.type,
        time=columns.time,
        sequence=columns.sequence,
        stream=events.stream,
        positions=request.positions,
        on_bad_record="fail" if bad_records.policy is Policy.FAIL else refuse,
    )
    written = 0
    quiet = request.output == STANDARD_OUTPUT and sys.stdout.isatty()
    with open_sink(request.output, request.output_format, matches.schema) as sink:
        for batch in matches.to_batches(max_rows=_BATCH_ROWS):
            sink.write(batch)
            written += batch.num_rows
            if not quiet:
                show(f"{written:,} matches")
        # Before the matches take their name: where there are matches, their dead letters are complete.
        bad_records.write()
    usable = len(events.table) - (bad_records.count - (len(events.refused) if events.refused is not None else 0))
    return Outcome(usable, written, bad_records.count, time.perf_counter() - started)
